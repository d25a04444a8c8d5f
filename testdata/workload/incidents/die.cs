// The end of a process. Arguments: the incident, the time until then in milliseconds or `healthy` for its twin, which
// lives on.
//   failfast   Ledger.Check calls Environment.FailFast
//   overflow   Tree.Depth calls itself without an end
//   exit       Shutdown.Stop calls Environment.Exit(3)
//   unhandled  Billing.Charge throws on a thread of its own
//   kill       Watchdog.Bite kills the process by SIGKILL
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Shop
{
    static class Ledger
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Check(int left, int right)
        {
            if (left != right) Environment.FailFast("ledger inconsistent: " + left + " != " + right);
        }
    }

    sealed class Tree
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Depth(int n) { return 1 + Depth(n + 1); }
    }

    static class Shutdown
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Stop(string reason) { Console.WriteLine(reason); Environment.Exit(3); }
    }

    static class Billing
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Charge(string customer) { throw new InvalidOperationException("cannot charge " + customer); }
    }

    static class Watchdog
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Bite() { Process.GetCurrentProcess().Kill(); }
    }
}

static class Program
{
    static void Main(string[] arguments)
    {
        string incident = arguments[0], time = arguments.Length > 1 ? arguments[1] : "5000";
        Console.WriteLine("started");
        if (time == "healthy") while (true) { Console.WriteLine("done"); Thread.Sleep(1000); }
        Thread.Sleep(int.Parse(time));
        ThreadStart end;
        switch (incident)
        {
            case "failfast": end = () => Shop.Ledger.Check(42, 43); break;
            case "overflow": end = () => Console.WriteLine(new Shop.Tree().Depth(0)); break;
            case "exit": end = () => Shop.Shutdown.Stop("configuration changed"); break;
            case "unhandled": end = () => Shop.Billing.Charge("4711"); break;
            case "kill": end = Shop.Watchdog.Bite; break;
            default: throw new ArgumentException(incident);
        }
        new Thread(end) { Name = incident }.Start();
        Thread.Sleep(Timeout.Infinite);
    }
}
