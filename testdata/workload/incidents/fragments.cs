// Memory that is free and not given back. Argument: the incident, then `healthy` for its twin, which keeps as much, and
// in one piece.
//   native  Codec.Decode frees 297,000 of 300,000 native blocks of 1,000 bytes; each hundredth stays between them
//   loh     Album.Load drops 500 of 600 large arrays of 1 MB; each sixth stays between them
//   pinned  Receiver.Begin pins each fortieth of 100,000 buffers of 4 KB, and drops the others
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Shop
{
    static class Codec
    {
        const int Size = 1000;
        static readonly List<IntPtr> open = new List<IntPtr>();
        static readonly List<byte[]> copies = new List<byte[]>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Decode(int pictures)
        {
            var blocks = new IntPtr[pictures];
            for (int i = 0; i < pictures; i++)
            {
                blocks[i] = Marshal.AllocHGlobal(Size);
                for (int j = 0; j < Size; j += 8) Marshal.WriteInt64(blocks[i], j, i);
            }
            for (int i = 0; i < pictures; i++)
            {
                bool isKept = i % 100 == 0;
                if (isKept && !Program.Healthy) { open.Add(blocks[i]); continue; }
                if (isKept) copies.Add(new byte[Size]);
                Marshal.FreeHGlobal(blocks[i]);
            }
        }
    }

    static class Album
    {
        static readonly List<byte[]> shown = new List<byte[]>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Load(int pictures)
        {
            var all = new byte[pictures][];
            for (int i = 0; i < pictures; i++)
            {
                all[i] = new byte[1 << 20];
                for (int j = 0; j < all[i].Length; j += 4096) all[i][j] = 1;
            }
            for (int i = 0; i < pictures; i++)
                if (Program.Healthy ? i < pictures / 6 : i % 6 == 0) shown.Add(all[i]);
            all = null;
        }
    }

    static class Receiver
    {
        static readonly List<GCHandle> pins = new List<GCHandle>();
        static readonly List<byte[]> copies = new List<byte[]>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Begin(int buffers)
        {
            var all = new byte[buffers][];
            for (int i = 0; i < buffers; i++)
            {
                all[i] = new byte[4000];
                if (i % 40 != 0) continue;
                if (Program.Healthy) copies.Add(all[i]); else pins.Add(GCHandle.Alloc(all[i], GCHandleType.Pinned));
            }
        }
    }
}

static class Program
{
    public static bool Healthy;

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        switch (arguments[0])
        {
            case "native": Shop.Codec.Decode(300000); break;
            case "loh": Shop.Album.Load(600); break;
            case "pinned": Shop.Receiver.Begin(100000); break;
            default: throw new ArgumentException(arguments[0]);
        }
        // The second collection finds what finalizers of the first one have released; none is asked for later.
        for (int i = 0; i < 2; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
        Console.WriteLine("started");
        for (int n = 0; ; n++)
        {
            Console.WriteLine("done " + n);
            Thread.Sleep(1000);
        }
    }
}
