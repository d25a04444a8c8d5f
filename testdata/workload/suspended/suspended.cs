// Calls that .NET 11 suspends without state machines, as its libraries lay them out: types of the same names,
// with the same fields, made by hand on earlier runtimes. The text of dotnet/runtime is the source of names
// and fields (AsyncHelpers.CoreCLR.cs); that this is what a runtime of .NET 11 does is not proven here.
// Built with: mcs -optimize+ -unsafe -langversion:7.2 -out:suspended.dll suspended.cs continuations.cs
//
// "suspended.dll" makes them, writes "ready PID" and waits for a line.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

static class Suspended
{
    static readonly List<object> kept = new List<object>();
    static readonly TaskCompletionSource<int> shared = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<int> other = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<int> third = new TaskCompletionSource<int>();

    // Their code is never run: its addresses say where a call was suspended.
    public static class Store { public static void Read() { Console.WriteLine("read"); } public static void Find() { Console.WriteLine("find"); } }
    public static class Cart { public static void Total() { Console.WriteLine("total"); } public static void Pay() { Console.WriteLine("pay"); } }

    // With state machines, which await calls without, and the other way round.
    static async Task Checkout(Task of) { await of; }
    static async Task<int> Wait() { return await third.Task; }

    static Task Suspend(Task task, Type type, params string[] methods)
    {
        Task suspended = Calls.Suspend(task, Array.ConvertAll(methods, method => new Call(type, method)));
        kept.Add(suspended);
        return suspended;
    }

    static void Main()
    {
        // Three carts: a source, two calls without state machines, one with.
        for (int index = 0; index < 3; index++) { kept.Add(Checkout(Suspend(shared.Task, typeof(Store), "Read", "Find"))); }
        // A task of such calls that awaits another one.
        Suspend(Suspend(other.Task, typeof(Store), "Read"), typeof(Cart), "Total", "Pay");
        // A call without a state machine that awaits one with.
        Suspend(Wait(), typeof(Cart), "Pay");
        // Calls that run: the runtime has taken them from the task.
        kept.Add(Checkout(new AsyncHelpers.RuntimeAsyncTask<int>(null)));
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        Console.ReadLine();
        GC.KeepAlive(kept);
    }
}
