// Deadlocks of two, three and five threads through different primitives. Each thread holds something, or is
// the one that signals it, and waits for what the next thread holds. The line that the program prints is its
// account: the threads of each ring, in the order of their waits, with the kind of object that each waits for.
// mcs -optimize+ -langversion:7.2 -out:rings.dll rings.cs
using System;
using System.Collections.Concurrent;
using System.Threading;
using System.Threading.Tasks;

sealed class Ring
{
    readonly CountdownEvent _ready;
    public Ring(int threads) { _ready = new CountdownEvent(threads); }
    // All threads hold what they hold before any of them waits for another.
    public void Meet() { _ready.Signal(); _ready.Wait(); }
}

// Two semaphores, and async methods that have met once both have entered theirs.
sealed class Crossing
{
    public readonly SemaphoreSlim Left = new SemaphoreSlim(1, 1), Right = new SemaphoreSlim(1, 1);
    readonly TaskCompletionSource<bool> _met = new TaskCompletionSource<bool>();
    int _missing = 2;
    public Task Meet()
    {
        if (Interlocked.Decrement(ref _missing) == 0) _met.SetResult(true);
        return _met.Task;
    }
}

static class Rings
{
    static readonly Mutex Ledger = new Mutex();
    static readonly object Account = new object();

    static Thread Start(string name, ThreadStart body)
    {
        var thread = new Thread(body) { Name = name, IsBackground = true };
        thread.Start();
        return thread;
    }

    // Two threads: a semaphore and a monitor.
    static void PermitThenLock(Ring ring, SemaphoreSlim held, object wanted)
    {
        held.Wait();
        ring.Meet();
        lock (wanted) { }
        held.Release();
    }

    static void LockThenPermit(Ring ring, object held, SemaphoreSlim wanted)
    {
        lock (held)
        {
            ring.Meet();
            wanted.Wait();
            wanted.Release();
        }
    }

    // Two threads: a monitor and a barrier.
    static void LockThenBarrier(Ring ring, object held, Barrier barrier)
    {
        lock (held)
        {
            ring.Meet();
            barrier.SignalAndWait();
        }
    }

    static void LockBeforeBarrier(Ring ring, object wanted, Barrier barrier)
    {
        ring.Meet();
        lock (wanted) { }
        barrier.SignalAndWait();
    }

    // Two threads: the value of a Lazy and a monitor.
    static void LazyThenLock(Lazy<string> lazy) { GC.KeepAlive(lazy.Value); }

    static void LockThenLazy(Ring ring, object held, Lazy<string> wanted)
    {
        lock (held)
        {
            ring.Meet();
            GC.KeepAlive(wanted.Value);
        }
    }

    // Three threads: a mutex in a static field, a lock that is read, and a countdown.
    static void MutexThenWrite(Ring ring, ReaderWriterLockSlim wanted)
    {
        Ledger.WaitOne();
        ring.Meet();
        wanted.EnterWriteLock();
        Ledger.ReleaseMutex();
    }

    static void ReadThenCountdown(Ring ring, ReaderWriterLockSlim held, CountdownEvent wanted)
    {
        held.EnterReadLock();
        ring.Meet();
        wanted.Wait();
        held.ExitReadLock();
    }

    static void MutexBeforeCountdown(Ring ring, CountdownEvent signaled)
    {
        ring.Meet();
        Ledger.WaitOne();
        signaled.Signal();
    }

    // Five threads: events, a collection, a thread, and an async method that waits for a semaphore.
    static void EventThenSlim(Ring ring, AutoResetEvent wanted, ManualResetEventSlim signaled)
    {
        ring.Meet();
        wanted.WaitOne();
        signaled.Set();
    }

    static void TakeThenEvent(Ring ring, BlockingCollection<int> wanted, AutoResetEvent signaled)
    {
        ring.Meet();
        wanted.Take();
        signaled.Set();
    }

    static void JoinThenAdd(Ring ring, Thread wanted, BlockingCollection<int> filled)
    {
        ring.Meet();
        wanted.Join();
        filled.Add(1);
    }

    static async Task EnterAsync(SemaphoreSlim wanted)
    {
        await wanted.WaitAsync();
        wanted.Release();
    }

    static async Task CallAsync(SemaphoreSlim wanted) { await EnterAsync(wanted); }

    static void BlockOnAwait(Ring ring, SemaphoreSlim wanted)
    {
        ring.Meet();
        CallAsync(wanted).Wait();
    }

    static void PermitThenSlim(Ring ring, SemaphoreSlim held, ManualResetEventSlim wanted)
    {
        held.Wait();
        ring.Meet();
        wanted.Wait();
        held.Release();
    }

    // Two threads: the last of several tasks, which wants a monitor, by Task.WaitAll.
    static void LockThenAll(Ring ring, object held, params Task[] wanted)
    {
        lock (held)
        {
            ring.Meet();
            Task.WaitAll(wanted);
        }
    }

    static void LockInTask(Ring ring, object wanted)
    {
        Thread.CurrentThread.Name = "worker";
        ring.Meet();
        lock (wanted) { }
    }

    // Two threads: the last of several tasks, which awaits a semaphore, by the task of Task.WhenAll.
    static void LockThenBoth(Ring ring, object held, Task completed, SemaphoreSlim wanted)
    {
        lock (held)
        {
            ring.Meet();
            Task.WhenAll(completed, Task.Delay(-1), CallAsync(wanted)).Wait();
        }
    }

    // Two async methods: each has entered what the other waits for.
    static async Task LeftThenRight(Crossing of)
    {
        await of.Left.WaitAsync();
        try
        {
            await of.Meet();
            await of.Right.WaitAsync();
            of.Right.Release();
        }
        finally { of.Left.Release(); }
    }

    static async Task RightThenLeft(Crossing of)
    {
        await of.Right.WaitAsync();
        try
        {
            await of.Meet();
            await of.Left.WaitAsync();
            of.Left.Release();
        }
        finally { of.Right.Release(); }
    }

    // An async method that enters a semaphore twice, the second time in a method that it awaits.
    static async Task EnterAgain(Crossing of)
    {
        await of.Left.WaitAsync();
        await EnterAsync(of.Left);
        of.Left.Release();
    }

    // A thread, an async method, and a thread that runs a task: a monitor, a semaphore and a task.
    static void LockThenEntered(Ring ring, object held, SemaphoreSlim wanted)
    {
        lock (held)
        {
            ring.Meet();
            wanted.Wait();
            wanted.Release();
        }
    }

    static async Task EnterThenTask(Crossing of, Task wanted)
    {
        await of.Left.WaitAsync();
        await wanted;
        of.Left.Release();
    }

    static void LockInRing(Ring ring, object wanted)
    {
        ring.Meet();
        lock (wanted) { }
    }

    // An async method that has entered a semaphore and goes on one day: no deadlock.
    static async Task EnterThenPause(Crossing of)
    {
        await of.Left.WaitAsync();
        await Task.Delay(-1);
        of.Left.Release();
    }

    // Two threads: a monitor, and one of several handles by WaitHandle.WaitAny, or all of them by WaitAll.
    static void LockThenAny(Ring ring, object held, params WaitHandle[] wanted)
    {
        lock (held)
        {
            ring.Meet();
            WaitHandle.WaitAny(wanted);
        }
    }

    static void LockThenEvery(Ring ring, object held, EventWaitHandle[] wanted)
    {
        lock (held)
        {
            ring.Meet();
            WaitHandle.WaitAll(wanted);
        }
    }

    static void LockThenSet(Ring ring, object wanted, EventWaitHandle signaled)
    {
        ring.Meet();
        lock (wanted) { }
        signaled.Set();
    }

    static void PauseThenSet(EventWaitHandle signaled)
    {
        Thread.Sleep(-1);
        signaled.Set();
    }

    // A thread that waits for an event which another sets, after a pause that does not end: no deadlock.
    static void Signal(ManualResetEventSlim signaled)
    {
        Thread.Sleep(-1);
        signaled.Set();
    }

    static void Main()
    {
        var permit = new SemaphoreSlim(1, 1);
        var monitor = new object();
        var two = new Ring(2);
        Start("permit", () => PermitThenLock(two, permit, monitor));
        Start("lock", () => LockThenPermit(two, monitor, permit));

        var barrier = new Barrier(2);
        var gate = new object();
        var met = new Ring(2);
        var holder = new ManualResetEventSlim();
        Start("barrier", () => { lock (gate) { holder.Set(); LockThenBarrier(met, gate, barrier); } });
        holder.Wait();
        Start("late", () => LockBeforeBarrier(met, gate, barrier));

        var lazily = new Ring(2);
        var lazy = new Lazy<string>(() =>
        {
            lazily.Meet();
            lock (Account) return "value";
        });
        Start("lazy", () => LazyThenLock(lazy));
        Start("eager", () => LockThenLazy(lazily, Account, lazy));

        var three = new Ring(3);
        var table = new ReaderWriterLockSlim();
        var countdown = new CountdownEvent(1);
        Start("mutex", () => MutexThenWrite(three, table));
        Start("read", () => ReadThenCountdown(three, table, countdown));
        Start("count", () => MutexBeforeCountdown(three, countdown));

        var five = new Ring(5);
        var changed = new AutoResetEvent(false);
        var opened = new ManualResetEventSlim();
        var orders = new BlockingCollection<int>();
        var place = new SemaphoreSlim(1);
        Start("event", () => EventThenSlim(five, changed, opened));
        Start("take", () => TakeThenEvent(five, orders, changed));
        var awaiting = Start("await", () => BlockOnAwait(five, place));
        Start("join", () => JoinThenAdd(five, awaiting, orders));
        Start("slim", () => PermitThenSlim(five, place, opened));

        var all = new Ring(2);
        var shelf = new object();
        var worker = Task.Factory.StartNew(() => LockInTask(all, shelf), TaskCreationOptions.LongRunning);
        Start("all", () => LockThenAll(all, shelf, Task.FromResult(1), Task.Delay(-1), worker));

        var both = new Ring(2);
        var stock = new object();
        var ticket = new SemaphoreSlim(1);
        Start("both", () => LockThenBoth(both, stock, Task.FromResult(1), ticket));
        Start("ticket", () => PermitThenLock(both, ticket, stock));

        var crossing = new Crossing();
        var crossed = Task.WhenAll(LeftThenRight(crossing), RightThenLeft(crossing));
        var again = EnterAgain(new Crossing());
        var mixed = new Ring(2);
        var gallery = new object();
        var entered = new Crossing();
        var guard = Task.Factory.StartNew(() => { Thread.CurrentThread.Name = "guard"; LockInRing(mixed, gallery); },
            TaskCreationOptions.LongRunning);
        var entering = EnterThenTask(entered, guard);
        Start("visitor", () => LockThenEntered(mixed, gallery, entered.Left));
        var pause = new Crossing();
        var paused = Task.WhenAll(EnterThenPause(pause), EnterAsync(pause.Left));

        var any = new Ring(3);
        var desk = new object();
        var paper = new AutoResetEvent(false);
        var pen = new ManualResetEvent(false);
        Start("any", () => LockThenAny(any, desk, paper, pen));
        Start("paper", () => LockThenSet(any, desk, paper));
        Start("pen", () => LockThenSet(any, desk, pen));

        var every = new Ring(2);
        var room = new object();
        var key = new ManualResetEvent(false);
        Start("every", () => LockThenEvery(every, room, new EventWaitHandle[] { key, new AutoResetEvent(false) }));
        Start("key", () => LockThenSet(every, room, key));

        // One of the handles is enough, and the thread that sets it goes on one day: no deadlock.
        var spare = new Ring(2);
        var hall = new object();
        var late = new AutoResetEvent(false);
        var never = new ManualResetEvent(false);
        Start("patient-handles", () => LockThenAny(spare, hall, never, late));
        Start("never", () => LockThenSet(spare, hall, never));
        Start("late-handle", () => PauseThenSet(late));

        // Tasks that nobody ends yet, and one of which is enough: no deadlock.
        Start("patient-all", () => Task.WaitAll(Task.Delay(-1), Task.Delay(-1)));
        Start("patient-any", () => Task.WaitAny(Task.Delay(-1), worker));

        var slow = new ManualResetEventSlim();
        Start("slow", () => Signal(slow));
        Start("patient", () => slow.Wait());

        Console.WriteLine("permit: monitor, lock: semaphore; barrier: barrier, late: monitor; "
            + "lazy: monitor, eager: monitor; "
            + "mutex: reader_writer_lock, read: countdown, count: mutex; "
            + "event: event, take: collection, join: thread, await: task, slim: event; "
            + "all: task, worker: monitor; both: task, ticket: monitor; "
            + "any: event, paper: monitor; every: event, key: monitor; "
            + "Rings.LeftThenRight: semaphore, Rings.RightThenLeft: semaphore; Rings.EnterAgain: semaphore; "
            + "visitor: semaphore, Rings.EnterThenTask: task, guard: monitor");
        Console.ReadLine();
        GC.KeepAlive(crossed);
        GC.KeepAlive(again);
        GC.KeepAlive(entering);
        GC.KeepAlive(paused);
    }
}
