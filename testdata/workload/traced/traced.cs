// A program whose stacks are known by IL offset and by line, as the runtime itself finds them. Its argument is the folder of
// Lines.dll, whose PDB has the lines. A row for each exception, which a Kept holds, and for the stack of the thread `parked`:
// name|token:IL token:IL …|file:line file:line …, the innermost frame first. It ends with its standard input.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

class Kept
{
    internal string Name;
    internal Exception Exception;
}

// Never runs what is posted to it.
class Keeping : SynchronizationContext
{
    readonly List<object> _posted = new List<object>();
    public override void Post(SendOrPostCallback callback, object state) { _posted.Add(callback); _posted.Add(state); }
}

static class Traced
{
    static Task Pending;
    static readonly List<Kept> All = new List<Kept>();
    static readonly ManualResetEventSlim Gate = new ManualResetEventSlim();
    static readonly ManualResetEventSlim IsParked = new ManualResetEventSlim();
    static int Zero;

    static void Main(string[] arguments)
    {
        var assembly = Assembly.LoadFrom(Path.Combine(arguments[0], "Lines.dll"));
        var lines = assembly.GetType("Lines");
        const BindingFlags Hidden = BindingFlags.Static | BindingFlags.NonPublic;
        Func<string, Action> method = name => (Action)Delegate.CreateDelegate(typeof(Action), lines.GetMethod(name, Hidden));
        var looped = (Func<int, int>)Delegate.CreateDelegate(typeof(Func<int, int>), lines.GetMethod("Looped", Hidden));
        var later = (Func<Task>)Delegate.CreateDelegate(typeof(Func<Task>), lines.GetMethod("Later", Hidden));
        var numbers = (Func<IEnumerable<int>>)Delegate.CreateDelegate(
            typeof(Func<IEnumerable<int>>), lines.GetMethod("Numbers", Hidden));
        var moved = (Action)Delegate.CreateDelegate(typeof(Action), assembly.GetType("Moved").GetMethod("Throw", Hidden));
        Keep("loop", () => looped(3));
        Keep("iterator", () => numbers().ToList());
        Keep("async", () => later().GetAwaiter().GetResult());
        Keep("local", method("WithLocal"));
        Keep("handler", method("Handler"));
        Keep("moved", moved);
        Keep("parse", () => int.Parse("x"));
        Keep("missing", () => Console.Write(new Dictionary<string, int> { { "a", 1 } }["b"]));
        Keep("first", () => new int[0].First());
        Keep("null", () => Fault(null, 3));
        Keep("zero", () => Divide(7));
        Keep("index", () => Index(new int[3], 3));
        Keep("nested", () => Nested(5));
        Keep("finally", Finally);
        Keep("filter", Filter);
        var caught = (Action<string, Action>)Delegate.CreateDelegate(
            typeof(Action<string, Action>), lines.GetMethod("Caught", Hidden));
        new Thread(() => caught("parked", Park)) { Name = "parked", IsBackground = true }.Start();
        IsParked.Wait();
        // It stays at its await.
        SynchronizationContext.SetSynchronizationContext(new Keeping());
        Pending = later();
        Console.WriteLine("ready");
        Console.ReadLine();
        GC.KeepAlive(All);
    }

    static void Keep(string name, Action action)
    {
        try
        {
            action();
        }
        catch (Exception e)
        {
            All.Add(new Kept { Name = name, Exception = e });
            Write(name, new StackTrace(e, true));
        }
    }

    static void Write(string name, StackTrace trace)
    {
        var frames = trace.GetFrames();
        var offsets = frames.Select(f => f.GetMethod().MetadataToken.ToString("x8") + ":" + f.GetILOffset());
        var lines = frames.Select(f => Path.GetFileName(f.GetFileName() ?? "") + ":" + f.GetFileLineNumber());
        Console.WriteLine(name + "|" + string.Join(" ", offsets) + "|" + string.Join(" ", lines));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Park()
    {
        // Of the thread as it is parked, but for this frame.
        Write("parked", new StackTrace(1, true));
        IsParked.Set();
        Gate.Wait();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fault(string text, int times)
    {
        int sum = 0;
        for (int i = 0; i < times; i++)
            sum += i;
        sum += text.Length;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Divide(int number)
    {
        int zero = Zero;
        return number / zero;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Index(int[] array, int index)
    {
        array[0] = index;
        return array[index];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Nested(int times)
    {
        int sum = 0;
        for (int i = 0; i < times; i++)
        {
            sum += i * 3;
            if (sum > 20)
                Helper(sum);
        }
        return sum + Helper(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Helper(int number)
    {
        if (number < 5)
            return number;
        throw new InvalidOperationException("helper");
    }

    static void Finally()
    {
        try
        {
            Helper(4);
        }
        finally
        {
            Helper(40);
            Zero = 0;
        }
    }

    static void Filter()
    {
        try
        {
            Helper(50);
        }
        catch (InvalidOperationException e) when (e.Message == "helper")
        {
            Zero = 0;
            Helper(60);
        }
    }
}
