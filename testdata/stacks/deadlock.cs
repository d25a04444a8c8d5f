using System.Threading;

// Two threads take two locks in opposite orders; a third waits behind them.
static class Program
{
    static readonly object A = new object(), B = new object();

    static void First() { lock (A) { Thread.Sleep(1500); lock (B) { } } }
    static void Second() { lock (B) { Thread.Sleep(1500); lock (A) { } } }
    static void Third() { Thread.Sleep(2000); lock (A) { } }

    static void Main()
    {
        foreach (ThreadStart start in new ThreadStart[] { First, Second, Third })
            new Thread(start) { IsBackground = true }.Start();
        Thread.Sleep(10000);
    }
}
