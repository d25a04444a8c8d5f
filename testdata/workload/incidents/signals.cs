// Threads that wait for signals of other threads. Argument: the incident, then `healthy` for its twin.
//   barrier    Simulation.Step: one of four workers ends without its last phase, and three wait at the barrier
//   countdown  Batch.Close waits for eight parts, of which Batch.Work forgets the empty ones
//   reply      Gateway.Call blocks six threads on replies that Gateway.OnReply gives to nobody
//   lock       Ledger.Book uses a semaphore without a maximum as a lock, and does not release it after an error
//   mutex      Archive.Store takes a mutex, and does not release it after an error; its thread lives on
//   idle       nothing is wrong: threads and async methods wait for work in the usual ways
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Shop
{
    static class Simulation
    {
        static readonly Barrier phases = new Barrier(4);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Step(int worker)
        {
            Thread.Sleep(5 + worker);
            if (worker == 3 && Program.Count() > 100 && !Program.Healthy) Program.Leave();
            phases.SignalAndWait();
        }
    }

    static class Batch
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Close()
        {
            using (var parts = new CountdownEvent(8))
            {
                for (int i = 0; i < 8; i++) { int part = i; ThreadPool.QueueUserWorkItem(_ => Work(part, parts)); }
                parts.Wait();
            }
            Program.Count();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Work(int part, CountdownEvent parts)
        {
            if (part == 5 && !Program.Healthy) return;
            Thread.Sleep(5);
            parts.Signal();
        }
    }

    static class Gateway
    {
        static readonly ConcurrentDictionary<int, TaskCompletionSource<int>> calls =
            new ConcurrentDictionary<int, TaskCompletionSource<int>>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Call(int number)
        {
            var reply = new TaskCompletionSource<int>();
            calls[number] = reply;
            OnReply(Program.Healthy ? number : -number);
            int result = reply.Task.Result;
            Program.Count();
            return result;
        }

        static async void OnReply(int number)
        {
            await Task.Delay(20);
            TaskCompletionSource<int> reply;
            if (calls.TryRemove(number, out reply)) reply.SetResult(number);
        }
    }

    static class Ledger
    {
        static readonly SemaphoreSlim book = new SemaphoreSlim(1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Book(int amount)
        {
            book.Wait();
            if (amount == 7 && !Program.Healthy) return;
            Thread.Sleep(5);
            book.Release();
            Program.Count();
        }
    }

    static class Archive
    {
        static readonly Mutex mutex = new Mutex();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Store(int document)
        {
            mutex.WaitOne();
            if (document == 7 && !Program.Healthy) { Thread.Sleep(Timeout.Infinite); }
            Thread.Sleep(5);
            mutex.ReleaseMutex();
            Program.Count();
        }
    }

    // The usual ways to wait for work.
    static class Workers
    {
        static readonly BlockingCollection<int> queue = new BlockingCollection<int>();
        static readonly BlockingCollection<int> bounded = new BlockingCollection<int>(4);
        static readonly SemaphoreSlim work = new SemaphoreSlim(0);
        static readonly SemaphoreSlim asyncWork = new SemaphoreSlim(0);
        static readonly AutoResetEvent signal = new AutoResetEvent(false);
        static readonly ManualResetEventSlim gate = new ManualResetEventSlim();
        static readonly object monitor = new object();

        public static void Take() { queue.Take(); }
        public static void TakeBounded() { bounded.Take(); }
        public static void Enter() { work.Wait(); }
        public static void Signal() { signal.WaitOne(); }
        public static void Gate() { gate.Wait(); }
        public static void Pulse() { lock (monitor) Monitor.Wait(monitor); }
        public static async Task EnterAsync() { while (true) await asyncWork.WaitAsync(); }
        public static async Task ListenAsync(Task stop) { await stop; }
    }
}

static class Program
{
    public static bool Healthy;
    static long count;

    public static long Count() { return Interlocked.Increment(ref count); }

    // The thread ends.
    public static void Leave() { throw new OperationCanceledException(); }

    static void Loop(string name, int pause, Action action)
    {
        var thread = new Thread(() =>
        {
            try { while (true) { action(); Thread.Sleep(pause); } }
            catch (OperationCanceledException) { }
        });
        thread.Name = name;
        thread.IsBackground = true;
        thread.Start();
    }

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        int number = 0;
        switch (arguments[0])
        {
            case "barrier":
                for (int i = 0; i < 4; i++) { int worker = i; Loop("worker-" + i, 1, () => Shop.Simulation.Step(worker)); }
                break;
            case "countdown":
                Loop("batch", 20, Shop.Batch.Close);
                break;
            case "reply":
                for (int i = 0; i < 6; i++) Loop("caller-" + i, 20, () => Shop.Gateway.Call(Interlocked.Increment(ref number)));
                break;
            case "lock":
                for (int i = 0; i < 6; i++) Loop("clerk-" + i, 20, () => Shop.Ledger.Book(Interlocked.Increment(ref number)));
                break;
            case "mutex":
                for (int i = 0; i < 6; i++) Loop("archivist-" + i, 20, () => Shop.Archive.Store(Interlocked.Increment(ref number)));
                break;
            case "idle":
                Action[] ways = { Shop.Workers.Take, Shop.Workers.TakeBounded, Shop.Workers.Enter, Shop.Workers.Signal,
                                  Shop.Workers.Gate, Shop.Workers.Pulse };
                foreach (var way in ways) for (int i = 0; i < 10; i++) Loop("idle", 1, way);
                for (int i = 0; i < 10; i++) Shop.Workers.EnterAsync().ConfigureAwait(false);
                for (int i = 0; i < 4; i++) Shop.Workers.ListenAsync(new TaskCompletionSource<int>().Task).ConfigureAwait(false);
                break;
            default: throw new ArgumentException(arguments[0]);
        }
        Console.WriteLine("started");
        while (true) { Thread.Sleep(1000); Console.WriteLine("done " + Interlocked.Read(ref count)); }
    }
}
