// Allocations of five kinds by five methods, in batches of about 1 MB, of which one in a hundred is kept. A sixth
// method fills 50 MB that live through collections and are given up before the last one.
//   kept.dll ROUNDS   20 batches a round
// It writes "ready", waits for a line, allocates, collects twice, writes a line with the name of each method and
// one with the bytes of what it has kept of it, and "done", and waits for a line.
// Objects are small or large: .NET Core 3.1 counts up to one object too many for each 8 KB.
//
// Built with: mcs -optimize+ -langversion:7.2 -out:kept.dll kept.cs
//
// kept10.dll is the same program for the assemblies of the single file of .NET 10.0.5, which were trimmed: it takes
// the place of azmcp.dll there. Built with these assemblies in the folder of the command:
// mcs -optimize -langversion:7.2 -nostdlib -noconfig -out:kept10.dll
//   -r:System.Private.CoreLib.dll -r:System.Runtime.dll -r:System.Console.dll kept.cs
using System;
using System.Runtime.CompilerServices;

namespace Shop
{
    // 40 bytes: the header, the type, and three fields.
    sealed class Order { public Order Next; public long Number, Price = 1; }

    static class Orders
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Take()
        {
            Order last = null;
            for (int i = 0; i < 25000; i++) last = new Order { Next = last, Number = i };
            return last;
        }
    }

    static class Letters
    {
        // 264 bytes each: 22 and two for each character, in steps of 8.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Write()
        {
            object[] all = new object[3700];
            for (int i = 0; i < all.Length; i++) all[i] = new string('x', 120);
            return all;
        }
    }

    static class Pictures
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Load()
        {
            object[] all = new object[2300];
            for (int i = 0; i < all.Length; i++) all[i] = new byte[400];
            return all;
        }
    }

    static class Sounds
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Record()
        {
            object[] all = new object[25];
            for (int i = 0; i < all.Length; i++) all[i] = new int[9994];
            return all;
        }
    }

    static class Films
    {
        // Large objects.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Shoot()
        {
            object[] all = new object[7];
            for (int i = 0; i < all.Length; i++) all[i] = new byte[149976];
            return all;
        }
    }

    static class Scratch
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static object Fill()
        {
            object[] all = new object[1500];
            for (int i = 0; i < all.Length; i++) all[i] = new byte[i % 10 == 0 ? 150000 : 20000];
            return all;
        }
    }
}

static class Program
{
    static readonly string[] names = { "Orders.Take", "Letters.Write", "Pictures.Load", "Sounds.Record", "Films.Shoot" };
    // With the arrays: 24 bytes, and 8 for each reference.
    static readonly long[] bytes = { 25000 * 40, 24 + 3700 * 272, 24 + 2300 * 432, 24 + 25 * 40008, 24 + 7 * 150008 };
    // Batches of each kind in a round.
    static readonly int[] batches = { 3, 5, 5, 1, 6 };
    static readonly int[] made = new int[5];
    static readonly long[] kept = new long[5];
    static object[] store = new object[0];
    static int stored;
    static object scratch;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Make(int kind)
    {
        switch (kind)
        {
            case 0: return Shop.Orders.Take();
            case 1: return Shop.Letters.Write();
            case 2: return Shop.Pictures.Load();
            case 3: return Shop.Sounds.Record();
            default: return Shop.Films.Shoot();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Round()
    {
        for (int kind = 0; kind < 5; kind++)
            for (int i = 0; i < batches[kind]; i++)
            {
                object batch = Make(kind);
                if (made[kind]++ % 100 != 37) continue;
                store[stored++] = batch;
                kept[kind] += bytes[kind];
            }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Run(int rounds)
    {
        store = new object[rounds];
        scratch = Shop.Scratch.Fill();
        GC.Collect();
        for (int i = 0; i < rounds; i++) Round();
        if (scratch != null) scratch = null;
    }

    static void Main(string[] arguments)
    {
        int rounds = 0;
        foreach (char digit in arguments[0]) rounds = rounds * 10 + digit - '0';
        Console.WriteLine("ready");
        Console.ReadLine();
        Run(rounds);
        GC.Collect();
        GC.Collect();
        for (int kind = 0; kind < 5; kind++)
        {
            Console.WriteLine(names[kind]);
            Console.WriteLine(kept[kind].ToString());
        }
        Console.WriteLine("done");
        Console.ReadLine();
        GC.KeepAlive(store);
    }
}
