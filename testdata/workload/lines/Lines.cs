// A program whose stacks are known line by line: it prints, as the runtime itself finds them, the lines of every stack that a
// recording of it must have. It waits for a line on standard input before it begins, and for another before it ends.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

static class Lines
{
    static void Main()
    {
        Console.WriteLine("ready");
        Console.ReadLine();
        Caught("loop", () => Looped(3));
        Caught("generic", () => Generic<int>.Throw("text"));
        Caught("iterator", () => Numbers().ToList());
        Caught("async", () => Later().GetAwaiter().GetResult());
        Caught("local", WithLocal);
        Caught("moved", Moved.Throw);
        Caught("handler", Handler);
        for (int i = 0; i < 200; i++)
            Caught(null, () => Looped(3)); // Compiled again meanwhile, better.
        Caught("loop", () => Looped(3));
        Spin(new Stopwatch(), 1000);
        Console.WriteLine("done");
        Console.ReadLine();
    }

    // The runtime's own words for where an exception went through; only lines of this file.
    static void Caught(string name, Action action)
    {
        try
        {
            action();
        }
        catch (Exception e)
        {
            if (name == null)
                return;
            var text = e.StackTrace.Split('\n').Where(l => l.Contains(":line ")).Select(l => l.Trim().Split('/').Last());
            Console.WriteLine(name + "|" + string.Join("|", text));
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Looped(int times)
    {
        int sum = 0;
        for (int i = 0; i < 10; i++)
        {
            sum += i;
            if (sum > times)
                throw new InvalidOperationException("loop");
        }
        return sum;
    }

    static class Generic<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void Throw<U>(U value)
        {
            var list = new List<T>();
            if (list.Count == 0 &&
                value != null)
                throw new ArgumentException(
                    "generic");
        }
    }

    static IEnumerable<int> Numbers()
    {
        yield return 1;
        yield return Looped(1);
    }

    static async Task Later()
    {
        await Task.Yield();
        try
        {
            Looped(2);
        }
        finally
        {
            Count++;
        }
    }

    static void WithLocal()
    {
        int times = 5;
        Local();
        void Local()
        {
            Looped(times);
        }
    }

    static void Handler()
    {
        try
        {
            Looped(0);
        }
        catch (InvalidOperationException e)
        {
            throw new Exception("again", e);
        }
    }

    static int Count;

    // Two hot lines.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Spin(Stopwatch watch, int milliseconds)
    {
        double x = 0;
        watch.Start();
        while (watch.ElapsedMilliseconds < milliseconds)
        {
            x += Work(1);
            x += Work(3);
            Thread.Sleep(1);
        }
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Work(int times)
    {
        double x = 0;
        for (int i = 0; i < times * 20000; i++)
            x += Math.Sqrt(i);
        return x;
    }
}

static class Moved
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Throw()
    {
#line 7 "Elsewhere.cs"
        throw new Exception("moved");
#line hidden
        GC.KeepAlive(null);
#line default
    }
}
