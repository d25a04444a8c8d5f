// Threads that wait for mutexes: a named one, and one that a thread had when it ended, which another has taken.
using System;
using System.Diagnostics;
using System.Threading;

static class Mutexes
{
    static readonly ManualResetEvent NamedHeld = new ManualResetEvent(false), LeftHeld = new ManualResetEvent(false);
    static readonly Mutex Left = new Mutex();
    static Mutex _named;

    static Thread Start(string name, ThreadStart run)
    {
        var thread = new Thread(run) { Name = name, IsBackground = true };
        thread.Start();
        return thread;
    }

    static void HoldNamed() { _named.WaitOne(); NamedHeld.Set(); Thread.Sleep(-1); }
    static void Leave() { Left.WaitOne(); }
    static void HoldLeft()
    {
        try { Left.WaitOne(); } catch (AbandonedMutexException) { LeftHeld.Set(); }
        Thread.Sleep(-1);
    }

    static void Main()
    {
        _named = new Mutex(false, "dipc-mutexes-" + Process.GetCurrentProcess().Id);
        Start("leaver", Leave).Join();
        Start("named-holder", HoldNamed);
        Start("heir", HoldLeft);
        NamedHeld.WaitOne();
        LeftHeld.WaitOne();
        Start("named-waiter", () => _named.WaitOne());
        Start("left-waiter", () => Left.WaitOne());
        Console.WriteLine("ready");
        Console.ReadLine();
        Thread.Sleep(-1);
    }
}
