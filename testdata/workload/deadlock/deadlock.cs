// Two threads that each take a lock, and after a line on standard input each want the other's: a deadlock.
//
// deadlock10.dll is the same program for the assemblies of the single file of .NET 10.0.5, which were trimmed:
// it takes the place of azmcp.dll there. Built with these assemblies in the folder of the command:
// mcs -optimize -langversion:7.2 -define:TRIMMED -nostdlib -noconfig -out:deadlock10.dll
//   -r:System.Private.CoreLib.dll -r:System.Runtime.dll -r:System.Console.dll deadlock.cs
using System;
#if !TRIMMED
using System.Diagnostics;
#endif
using System.Runtime.CompilerServices;
using System.Threading;

#if TRIMMED
// Barrier(3), twice: that class was trimmed.
sealed class Gate
{
    int _first, _second;

    internal void SignalAndWait()
    {
        if (Volatile.Read(ref _first) < 3) Meet(ref _first);
        else Meet(ref _second);
    }

    static void Meet(ref int count)
    {
        Interlocked.Increment(ref count);
        while (Volatile.Read(ref count) < 3) Thread.Sleep(1);
    }
}
#endif

static class Bank
{
    static readonly object Savings = new object(), Current = new object();
#if TRIMMED
    static readonly Gate Both = new Gate();
#else
    static readonly Barrier Both = new Barrier(3);
#endif
    static int _transfers;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Transfer1() { lock (Savings) { Both.SignalAndWait(); Both.SignalAndWait(); lock (Current) _transfers++; } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Transfer2() { lock (Current) { Both.SignalAndWait(); Both.SignalAndWait(); lock (Savings) _transfers++; } }

    static void Start(string name, ThreadStart transfer)
    {
        new Thread(transfer) { Name = name, IsBackground = true }.Start();
    }

    static void Main()
    {
        Start("transfer-1", Transfer1);
        Start("transfer-2", Transfer2);
        Both.SignalAndWait();
#if TRIMMED
        Console.WriteLine("ready");
#else
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
#endif
        Console.ReadLine();
        Both.SignalAndWait();
        Console.WriteLine("locked");
        Console.ReadLine();
    }
}
