// Work, and then an end of the kind that the first argument names, once a line comes on standard input.
//
// crash10.dll is the same program for the single file of .NET 10.0.5, built as deadlock10.dll.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Crash
{
    static int _sink;
    static readonly List<byte[]> Held = new List<byte[]>();

    [MethodImpl(MethodImplOptions.NoInlining)] static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void LastWork(int ms) { var w = Stopwatch.StartNew(); while (w.ElapsedMilliseconds < ms) _sink += Fib(18); }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Endless(int n) { return Endless(n + 1) + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Unhandled() { throw new InvalidOperationException("the last straw"); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Devour() { while (true) { var block = new byte[1 << 20]; for (int i = 0; i < block.Length; i += 4096) block[i] = 1; Held.Add(block); } }

    static void Main(string[] arguments)
    {
#if TRIMMED
        Console.WriteLine("ready");
#else
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
#endif
        Console.ReadLine();
        LastWork(1500);
        switch (arguments[0])
        {
            case "failfast": Environment.FailFast("enough"); break;
            case "unhandled": Unhandled(); break;
            case "overflow": _sink += Endless(0); break;
            case "memory": Devour(); break;
#if !TRIMMED
            case "exit": Environment.Exit(3); break;
#endif
            default: LastWork(600000); break;
        }
    }
}
