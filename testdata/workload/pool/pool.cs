// A starved thread pool with work, timers and tasks that are known, for tests of the views of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -out:pool.dll pool.cs
//
// It blocks every worker that the pool may have in Worker.Block, queues the work, and writes its own account as
// one line of JSON. A line lets it end.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

static class Worker
{
    public static readonly ManualResetEvent Open = new ManualResetEvent(false);
    public static int Blocked;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Block(object state) { Interlocked.Increment(ref Blocked); Open.WaitOne(); }

    // Waits for all other workers, so that none takes the work of its own queue.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void QueueAndBlock(int workers)
    {
        while (Volatile.Read(ref Blocked) < workers - 1) Thread.Sleep(1);
        for (int i = 0; i < 5; i++) Pool.Kept.Add(Task.Factory.StartNew(Stock.Count));
        Block(null);
    }
}

static class Mail { public static void Send(object state) { GC.KeepAlive(state); } }
static class Stock { public static void Count() { GC.KeepAlive(Worker.Open); } }
static class Report { public static void Print() { GC.KeepAlive(Worker.Open); } }

static class Clock
{
    public static readonly List<Timer> Timers = new List<Timer>();
    public static void Tick(object state) { GC.KeepAlive(state); }
    public static void Ring(object state) { GC.KeepAlive(state); }
}

static class Pool
{
    public static readonly List<Task> Kept = new List<Task>();
    static readonly TaskCompletionSource<int> source =
        new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);

    static async Task LoadAsync() { var value = await source.Task; GC.KeepAlive(value); }
    static async Task FailAsync() { await Task.Yield(); throw new InvalidOperationException("expected"); }

    static string Number(Type of, string property)
    {
        var found = of.GetProperty(property, BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic);
        return found == null ? "null" : found.GetValue(null).ToString();
    }

    static void Main()
    {
        int min, max, free, others;
        int workers = Math.Max(3, Environment.ProcessorCount);
        ThreadPool.SetMinThreads(workers, 1);
        ThreadPool.SetMaxThreads(workers, 1000);

        for (int i = 0; i < 3; i++) Clock.Timers.Add(new Timer(Clock.Tick, "tick", 3600 * 1000, 60 * 1000));
        for (int i = 0; i < 2; i++) Clock.Timers.Add(new Timer(Clock.Ring, null, 2 * 3600 * 1000, Timeout.Infinite));
        Clock.Timers.Add(new Timer(Clock.Ring, null, Timeout.Infinite, Timeout.Infinite));
        Kept.Add(Task.Delay(3 * 3600 * 1000));

        Kept.Add(Task.Run(() => { }));
        Kept[1].Wait();
        for (int i = 0; i < 2; i++) Kept.Add(FailAsync());
        while (!Kept[2].IsFaulted || !Kept[3].IsFaulted) Thread.Sleep(1);
        var canceled = new TaskCompletionSource<int>();
        canceled.SetCanceled();
        Kept.Add(canceled.Task);

        Kept.Add(Task.Run(() => Worker.QueueAndBlock(workers)));
        for (int i = 1; i < workers; i++) ThreadPool.QueueUserWorkItem(Worker.Block);
        while (Volatile.Read(ref Worker.Blocked) < workers) Thread.Sleep(1);

        for (int i = 0; i < 7; i++) ThreadPool.QueueUserWorkItem(Mail.Send, "letter");
        for (int i = 0; i < 4; i++) Kept.Add(Task.Run((Action)Report.Print));
        for (int i = 0; i < 3; i++) Kept.Add(LoadAsync());
        source.SetResult(1);

        ThreadPool.GetMinThreads(out min, out others);
        ThreadPool.GetMaxThreads(out max, out others);
        ThreadPool.GetAvailableThreads(out free, out others);
        var states = new SortedDictionary<string, int>();
        foreach (var task in Kept)
        {
            int count;
            states.TryGetValue(task.Status.ToString(), out count);
            states[task.Status.ToString()] = count + 1;
        }
        var tasks = new List<string>();
        foreach (var state in states) tasks.Add("\"" + state.Key + "\": " + state.Value);
        Console.WriteLine("{\"min\": " + min + ", \"max\": " + max + ", \"busy\": " + (max - free)
            + ", \"threads\": " + Number(typeof(ThreadPool), "ThreadCount")
            + ", \"pending\": " + Number(typeof(ThreadPool), "PendingWorkItemCount")
            + ", \"unmanaged\": " + Number(typeof(ThreadPool), "PendingUnmanagedWorkItemCount")
            + ", \"timers\": " + Number(typeof(Timer), "ActiveCount")
            + ", \"tasks\": {" + string.Join(", ", tasks) + "}}");
        Console.ReadLine();
        GC.KeepAlive(canceled);
    }
}
