// Known amounts of work for profilers: `VERB MS` on standard input, answered "ok VERB RESULT" at its end. The first line is "ready PID".
//   small MS   methods that the JIT gives no frame: Leaf, whose callers Middle and Outer have at most one call each
//   split MS   Seven and Three, 7 and 3 parts of the time; the result is Seven's share in percent by the thread's processor time
//   copy MS    memset by P/Invoke, with managed work beside it; the result is memset's share in percent by the thread's processor time
//   lock MS    two threads that fight for a lock
//   sleep MS   sleeps of 30 ms in Sleeper, up to MS; the result is the slept milliseconds by the program's own clock
//   short N    N threads, one after the other, each of about a millisecond; the result is their time in milliseconds
//   pages MB   touches MB megabytes of new memory: page faults
//   many N     N threads, all at once, each of which runs a few milliseconds
using System;
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Program
{
    static volatile uint sink = 1;
    static readonly object Gate = new object();

    [DllImport("libc", EntryPoint = "memset")] static extern IntPtr Set(IntPtr at, int value, IntPtr size);

    struct Time { public long Seconds, Nanoseconds; }
    [DllImport("libc", EntryPoint = "clock_gettime")] static extern int GetTime(int clock, out Time time);
    // CLOCK_THREAD_CPUTIME_ID: other clocks go on while another program has the processor.
    static long Ran() { Time time; GetTime(3, out time); return time.Seconds * 1000000000 + time.Nanoseconds; }

    // One loop would give Leaf a frame: its work is straight.
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Leaf(uint x) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x / 3 + x % 1000003; x ^= x << 13; x = x / 7 + x % 99991; return x | 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Middle(uint x) { return Leaf(x) + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Outer(uint x) { return Middle(x ^ 5) + 3; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Loop(int n) { uint x = sink; for (int i = 0; i < n; i++) x = Outer(x); return x; }

    [MethodImpl(MethodImplOptions.NoInlining)] static uint Seven(uint x, int n) { for (int i = 0; i < 7 * n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Three(uint x, int n) { for (int i = 0; i < 3 * n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Sleeper() { Thread.Sleep(30); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Fight(Stopwatch watch, int ms) { while (watch.ElapsedMilliseconds < ms) lock (Gate) { sink = Seven(sink, 2000); } }

    static string Percent(long part, long whole) { return (100.0 * part / whole).ToString("F2", CultureInfo.InvariantCulture); }

    static string Run(string verb, int n)
    {
        var watch = Stopwatch.StartNew();
        long first = 0, second = 0;
        switch (verb)
        {
            case "small": while (watch.ElapsedMilliseconds < n) sink = Loop(20000); return "";
            case "split":
                while (watch.ElapsedMilliseconds < n)
                {
                    // Rounds of one length can be in step with a sampler, and reading the clock is part of short ones.
                    int part = 100000 + (int)(sink % 200011);
                    long a = Ran(); sink = Seven(sink, part);
                    long b = Ran(); sink = Three(sink, part);
                    first += b - a; second += Ran() - b;
                }
                return Percent(first, first + second);
            case "copy":
                var memory = Marshal.AllocHGlobal(1 << 20);
                while (watch.ElapsedMilliseconds < n)
                {
                    int part = 100000 + (int)(sink % 200011);
                    long a = Ran(); for (int i = 0; i < 10; i++) Set(memory, 1, (IntPtr)(1 << 20));
                    long b = Ran(); sink = Seven(sink, part);
                    first += b - a; second += Ran() - b;
                }
                Marshal.FreeHGlobal(memory);
                return Percent(first, first + second);
            case "lock":
                var other = new Thread(() => Fight(watch, n)); other.Start(); Fight(watch, n); other.Join(); return "";
            case "sleep": while (watch.ElapsedMilliseconds < n) Sleeper(); return watch.Elapsed.TotalMilliseconds.ToString("F1", CultureInfo.InvariantCulture);
            case "short":
                for (int i = 0; i < n; i++)
                {
                    var thread = new Thread(() => { long a = Stopwatch.GetTimestamp(); uint x = 1; while (Stopwatch.GetTimestamp() - a < Stopwatch.Frequency / 1000) x = Seven(x, 100); sink = x; });
                    thread.Start(); thread.Join();
                }
                return watch.Elapsed.TotalMilliseconds.ToString("F1", CultureInfo.InvariantCulture);
            case "many":
                var all = new Thread[n];
                for (int i = 0; i < n; i++) { all[i] = new Thread(() => { sink = Seven(sink, 200000); }, 1 << 17); all[i].Start(); }
                foreach (var one in all) one.Join();
                return watch.Elapsed.TotalMilliseconds.ToString("F1", CultureInfo.InvariantCulture);
            case "pages":
                for (int i = 0; i < n; i++) { var page = Marshal.AllocHGlobal(1 << 20); Set(page, 1, (IntPtr)(1 << 20)); }
                return "";
            default: return "unknown";
        }
    }

    static void Main()
    {
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id); Console.Out.Flush();
        string line;
        while ((line = Console.ReadLine()) != null)
        {
            var words = line.Split(' ');
            if (words[0] == "quit") return;
            Console.WriteLine(("ok " + words[0] + " " + Run(words[0], int.Parse(words[1], CultureInfo.InvariantCulture))).TrimEnd()); Console.Out.Flush();
        }
    }
}
