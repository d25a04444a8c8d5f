// Two threads that each take a lock, and after a line on standard input each want the other's: a deadlock.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

static class Bank
{
    static readonly object Savings = new object(), Current = new object();
    static readonly Barrier Both = new Barrier(3);
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
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        Console.ReadLine();
        Both.SignalAndWait();
        Console.WriteLine("locked");
        Console.ReadLine();
    }
}
