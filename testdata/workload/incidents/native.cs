// Native memory that is kept and freed by a C library, whose source is native.c: two methods keep known bytes, and
// a third one frees all that it takes.
//   native.dll        as many large blocks as fit into the buffers of a sampler
//   native.dll many   20,000 blocks of 1,000 bytes more, in Codec.Open
// It writes "ready", waits for a line, takes memory, writes a line with the name of each method that keeps some and
// one with the bytes, and "done", and waits for a line.
// The library is libkeeping.so, in a folder of LD_LIBRARY_PATH.
//
// Built with: mcs -optimize+ -langversion:7.2 -out:native.dll native.cs
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

enum Kind { Malloc, Calloc, Realloc, PosixMemalign, AlignedAlloc, Map }

static class Keeping
{
    [DllImport("keeping")] public static extern IntPtr take(Kind kind, UIntPtr bytes);
    [DllImport("keeping")] public static extern void give(Kind kind, IntPtr memory, UIntPtr bytes);
}

namespace Shop
{
    static class Codec
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Open(int blocks, int bytes)
        {
            for (int i = 0; i < blocks; i++)
            {
                Program.Take(Kind.Malloc, bytes);
                // A reader of the records keeps up.
                if (i % 200 == 199) Thread.Sleep(1);
            }
            return (long)blocks * bytes;
        }
    }

    static class Album
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Load()
        {
            long kept = 0;
            for (int i = 0; i < 10; i++)
            {
                Program.Take(Kind.Calloc, 8000);
                Program.Take(Kind.Realloc, 12288);
                Program.Take(Kind.PosixMemalign, 4608);
                Program.Take(Kind.AlignedAlloc, 5120);
                Program.Take(Kind.Map, 1048576);
                kept += 8000 + 12288 + 4608 + 5120 + 1048576;
            }
            return kept;
        }
    }

    static class Scratch
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Fill()
        {
            for (int i = 0; i < 10; i++)
                for (Kind kind = Kind.Malloc; kind <= Kind.Map; kind++)
                    Keeping.give(kind, Program.Take(kind, 65536), (UIntPtr)65536);
        }
    }
}

static class Program
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static IntPtr Take(Kind kind, int bytes)
    {
        return Keeping.take(kind, (UIntPtr)bytes);
    }

    static void Main(string[] arguments)
    {
        // The library and the code are loaded.
        Shop.Scratch.Fill();
        Console.WriteLine("ready");
        Console.ReadLine();
        Shop.Scratch.Fill();
        long opened = Shop.Codec.Open(40, 5000);
        if (arguments.Length > 0) opened += Shop.Codec.Open(20000, 1000);
        long loaded = Shop.Album.Load();
        Console.WriteLine("Codec.Open");
        Console.WriteLine(opened);
        Console.WriteLine("Album.Load");
        Console.WriteLine(loaded);
        Console.WriteLine("done");
        Console.ReadLine();
    }
}
