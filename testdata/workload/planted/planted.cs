// A program in which one of five methods can be made slower: `work ROUNDS PERCENT` on standard input. The first line is "ready PID".
// A round calls Alpha, Bravo, Charlie, Delta and Echo, which do 30, 25, 20, 15 and 10 parts of the same work, Charlie PERCENT more of its own.
// The answer "ok work A B C D E" has what each ran, in microseconds by the thread's own clock. `quit` ends the program.
using System;
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

static class Program
{
    static volatile uint sink = 1;
    static readonly long[] Times = new long[5];

    struct Time { public long Seconds, Nanoseconds; }
    [DllImport("libc", EntryPoint = "clock_gettime")] static extern int GetTime(int clock, out Time time);
    // CLOCK_THREAD_CPUTIME_ID: other clocks go on while another program has the processor.
    static long Ran() { Time time; GetTime(3, out time); return time.Seconds * 1000000000 + time.Nanoseconds; }

    [MethodImpl(MethodImplOptions.NoInlining)] static uint Alpha(uint x, int n) { for (int i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Bravo(uint x, int n) { for (int i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Charlie(uint x, int n) { for (int i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Delta(uint x, int n) { for (int i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint Echo(uint x, int n) { for (int i = 0; i < n; i++) x = x * 1664525 + 1013904223; return x; }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Round(int part, int percent)
    {
        uint x = sink;
        long a = Ran(); x = Alpha(x, 30 * part);
        long b = Ran(); x = Bravo(x, 25 * part);
        long c = Ran(); x = Charlie(x, part * (100 + percent) / 5);
        long d = Ran(); x = Delta(x, 15 * part);
        long e = Ran(); x = Echo(x, 10 * part);
        long f = Ran();
        sink = x;
        Times[0] += b - a; Times[1] += c - b; Times[2] += d - c; Times[3] += e - d; Times[4] += f - e;
    }

    static string Work(int rounds, int percent)
    {
        Array.Clear(Times, 0, Times.Length);
        // The same rounds each time. Rounds of one length can be in step with a sampler.
        uint random = 1;
        for (int i = 0; i < rounds; i++) { random = random * 1664525 + 1013904223; Round(20000 + (int)((random >> 8) % 20011), percent); }
        var text = "";
        foreach (var time in Times) text += " " + (time / 1000).ToString(CultureInfo.InvariantCulture);
        return text;
    }

    static void Main()
    {
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id); Console.Out.Flush();
        string line;
        while ((line = Console.ReadLine()) != null)
        {
            var words = line.Split(' ');
            if (words[0] == "quit") return;
            Console.WriteLine("ok work" + Work(int.Parse(words[1], CultureInfo.InvariantCulture), int.Parse(words[2], CultureInfo.InvariantCulture))); Console.Out.Flush();
        }
    }
}
