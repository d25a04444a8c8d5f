// Threads that wait for one another in every way, and threads whose whole stacks are known.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

// A thread that runs what is posted to it.
sealed class Loop : SynchronizationContext
{
    readonly BlockingCollection<Tuple<SendOrPostCallback, object>> _posted =
        new BlockingCollection<Tuple<SendOrPostCallback, object>>();

    internal int Posts;

    public override void Post(SendOrPostCallback call, object state)
    {
        _posted.Add(Tuple.Create(call, state));
        Interlocked.Increment(ref Posts);
    }

    internal void Run()
    {
        SetSynchronizationContext(this);
        foreach (var posted in _posted.GetConsumingEnumerable()) posted.Item1(posted.Item2);
    }
}

static class Waits
{
    static void Start(string name, Action body)
    {
        new Thread(() => body()) { Name = name, IsBackground = true }.Start();
    }

    // Two threads that each take a lock and then want the other's.
    static void Cross<T>(string name, T first, T second, Action<T> enter)
    {
        var both = new Barrier(2);
        Start(name + "-1", () => { enter(first); both.SignalAndWait(); enter(second); });
        Start(name + "-2", () => { enter(second); both.SignalAndWait(); enter(first); });
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitForTask(object held)
    {
        lock (held) Task.Factory.StartNew(() => { lock (held) { } }, TaskCreationOptions.LongRunning).Wait();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitForThread(object held)
    {
        lock (held)
        {
            var other = new Thread(() => { lock (held) { } }) { Name = "join-2", IsBackground = true };
            other.Start();
            other.Join();
        }
    }

    static async Task Later() { await Task.Delay(1); }

    static async Task DelayedWork() { await Task.Delay(50); Thread.Sleep(-1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitForAny()
    {
        WaitHandle.WaitAny(new WaitHandle[] { new ManualResetEvent(false), new AutoResetEvent(false) });
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InParallel() { Parallel.For(0, 1, number => Thread.Sleep(-1)); }

    static void Main()
    {
        Start("any", WaitForAny);
        Start("parallel", InParallel);
        var hot = new object();
        Start("holder", () => { lock (hot) Thread.Sleep(-1); });
        while (Monitor.TryEnter(hot)) { Monitor.Exit(hot); Thread.Sleep(1); }
        for (int i = 0; i < 3; i++) Start("hot-" + i, () => { lock (hot) { } });
        Start("task-1", () => WaitForTask(new object()));
        Start("join-1", () => WaitForThread(new object()));
        Cross("writer", new ReaderWriterLockSlim(), new ReaderWriterLockSlim(), of => of.EnterWriteLock());
        var read = new ReaderWriterLockSlim();
        Start("reader", () => { read.EnterReadLock(); Thread.Sleep(-1); });
        while (read.CurrentReadCount == 0) Thread.Sleep(1);
        Start("write-waiter", () => read.EnterWriteLock());
        var mutex = new Mutex();
        Start("mutex-holder", () => { mutex.WaitOne(); Thread.Sleep(-1); });
        while (mutex.WaitOne(0)) { mutex.ReleaseMutex(); Thread.Sleep(1); }
        Start("mutex-waiter", () => mutex.WaitOne());
        var semaphore = new SemaphoreSlim(0, 1);
        Start("semaphore-waiter", () => semaphore.Wait());
        var loop = new Loop();
        loop.Post(state => Later().Wait(), null);
        Start("loop", loop.Run);
        while (Volatile.Read(ref loop.Posts) < 2) Thread.Sleep(1);
        var type = typeof(object).Assembly.GetType("System.Threading.Lock");
        if (type != null)
        {
            var enter = type.GetMethod("Enter", Type.EmptyTypes);
            Cross("lock", Activator.CreateInstance(type), Activator.CreateInstance(type),
                of => ((Action)Delegate.CreateDelegate(typeof(Action), of, enter))());
        }
        // More delays than threads of the pool.
        int least, ports;
        ThreadPool.GetMinThreads(out least, out ports);
        ThreadPool.SetMaxThreads(least, ports);
        for (int i = 0; i < least + 8; i++) DelayedWork();
        Console.WriteLine("ready");
        Console.ReadLine();
    }
}
