// Threads and async methods that wait for what does not happen, or for one another. Argument: the incident, then
// `healthy` for its twin.
//   semaphore  Printer.Print returns without a release when a document is empty
//   tcs        Bank.ConfirmAsync awaits a reply that Bank.OnReply gives to nobody
//   rwlock     Catalog.Reprice upgrades a ReaderWriterLockSlim under a lock that Catalog.Export wants while it reads
//   join       Month.Post waits for a task in which Month.Close joins the thread of Month.Post
//   chain      Ledger.Post archives, which takes 1.5 s, under the lock that ten tellers want
//   starve     Checkout.Total blocks a thread of the pool on the result of Prices.LoadAsync
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Shop
{
    static class Printer
    {
        static readonly SemaphoreSlim trays = new SemaphoreSlim(3, 3);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Print(string document)
        {
            trays.Wait();
            if (document.Length == 0 && !Program.Healthy) return;
            Thread.Sleep(10);
            trays.Release();
            Program.Count();
        }
    }

    static class Bank
    {
        static readonly ConcurrentDictionary<int, TaskCompletionSource<bool>> waiting =
            new ConcurrentDictionary<int, TaskCompletionSource<bool>>();

        public static async Task ConfirmAsync(int payment)
        {
            var reply = new TaskCompletionSource<bool>();
            waiting[payment] = reply;
            AnswerAsync(Program.Healthy ? payment : -payment);
            await reply.Task;
            Program.Count();
        }

        static async void AnswerAsync(int payment) { await Task.Delay(20); OnReply(payment); }

        static void OnReply(int payment)
        {
            TaskCompletionSource<bool> reply;
            if (waiting.TryRemove(payment, out reply)) reply.SetResult(true);
        }
    }

    static class Orders
    {
        public static async Task PayAsync(int first)
        {
            for (int i = first; ; i += 1000) { await Bank.ConfirmAsync(i); await Task.Delay(30); }
        }
    }

    static class Catalog
    {
        static readonly ReaderWriterLockSlim prices = new ReaderWriterLockSlim();
        static readonly object audit = new object();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Reprice()
        {
            lock (audit)
            {
                prices.EnterUpgradeableReadLock();
                Thread.Sleep(20);
                prices.EnterWriteLock();
                Program.Count();
                prices.ExitWriteLock();
                prices.ExitUpgradeableReadLock();
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Export()
        {
            if (Program.Healthy) { lock (audit) { } }
            prices.EnterReadLock();
            Thread.Sleep(20);
            if (!Program.Healthy) { lock (audit) { } }
            prices.ExitReadLock();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Price() { prices.EnterReadLock(); prices.ExitReadLock(); }
    }

    sealed class Month
    {
        Thread poster;
        Task closing;

        public void Run()
        {
            poster = new Thread(Post) { Name = "poster", IsBackground = true };
            closing = Task.Run(() => Close());
            poster.Start();
            closing.Wait();
            Program.Count();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        void Post() { Thread.Sleep(50); if (!Program.Healthy) closing.Wait(); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        void Close() { while (poster.ThreadState.HasFlag(ThreadState.Unstarted)) Thread.Sleep(1); poster.Join(); }
    }

    static class Ledger
    {
        static readonly object book = new object();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Post(int teller)
        {
            lock (book)
            {
                Thread.SpinWait(1000);
                if (teller == 0 && !Program.Healthy) Archive();
            }
            if (teller == 0 && Program.Healthy) Archive();
            Program.Count();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Archive() { Thread.Sleep(1500); }
    }

    static class Prices
    {
        public static async Task<int> LoadAsync(int sku) { await Task.Delay(100); return sku; }
    }

    static class Checkout
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Total(int sku) { return Prices.LoadAsync(sku).Result; }
        public static async Task<int> TotalAsync(int sku) { return await Prices.LoadAsync(sku); }
    }
}

static class Program
{
    public static bool Healthy;
    static long count;

    public static void Count() { Interlocked.Increment(ref count); }

    static void Loop(string name, int pause, Action action)
    {
        var thread = new Thread(() => { while (true) { action(); Thread.Sleep(pause); } });
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
            case "semaphore":
                for (int i = 0; i < 6; i++)
                    Loop("clerk-" + i, 20, () => Shop.Printer.Print(new string('x', Interlocked.Increment(ref number) % 5)));
                break;
            case "tcs":
                for (int i = 1; i <= 20; i++) Shop.Orders.PayAsync(i).ConfigureAwait(false);
                break;
            case "rwlock":
                Loop("repricer", 5, Shop.Catalog.Reprice);
                Loop("exporter", 5, Shop.Catalog.Export);
                for (int i = 0; i < 6; i++) Loop("shopper-" + i, 20, Shop.Catalog.Price);
                break;
            case "join":
                Loop("month", 20, () => new Shop.Month().Run());
                break;
            case "chain":
                for (int i = 0; i <= 10; i++) { int teller = i; Loop("teller-" + i, i == 0 ? 5 : 20, () => Shop.Ledger.Post(teller)); }
                break;
            case "starve":
                Loop("gateway", 50, () =>
                {
                    for (int i = 0; i < 5; i++)
                        if (Healthy) Task.Run(async () => { await Shop.Checkout.TotalAsync(1); Count(); });
                        else Task.Run(() => { Shop.Checkout.Total(1); Count(); });
                });
                break;
            default: throw new ArgumentException(arguments[0]);
        }
        Console.WriteLine("started");
        while (true) { Thread.Sleep(1000); Console.WriteLine("done " + Interlocked.Read(ref count)); }
    }
}
