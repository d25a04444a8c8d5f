// Ends by an exception that has others in it, or by a small stack that overflows, once a line comes on standard
// input.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

static class Nested
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void First() { throw new ArgumentNullException("order"); }

    // Each handler throws the next one: at the end the thread has three.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Handlers()
    {
        try
        {
            try { First(); }
            catch (Exception first) { throw new FormatException("the middle", first); }
        }
        catch (Exception middle) { throw new InvalidOperationException("the outermost", middle); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Aggregate()
    {
        throw new AggregateException("several", new FormatException("one", new TimeoutException("its cause")), new ArgumentException("two", "count"));
    }

    static int _depth;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deep(int n) { _depth = n; return Deep(n + 1) + 1; }
    static void Overflow() { Deep(0); }

    static void Main(string[] arguments)
    {
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        Console.ReadLine();
        ThreadStart start = arguments[0] == "handlers" ? new ThreadStart(Handlers) : arguments[0] == "overflow" ? new ThreadStart(Overflow) : Aggregate;
        var thread = new Thread(start, 262144);
        thread.Name = "thrower";
        thread.Start();
        thread.Join();
    }
}
