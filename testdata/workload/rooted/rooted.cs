// A program with objects in known places of blocked frames: registers, slots, `this`, arguments, and places that are no longer
// used. Built with: mcs -langversion:7.2 -optimize+ -out:rooted.dll rooted.cs
//
// The first line is "ready". `collect` on standard input runs a collection: the answer is the names of the types with an object
// that it kept, and "end". Each class has one object, of which only frames know: the program has weak references.
//
// rooted10.dll is the same program for the assemblies of the single file of .NET 10.0.5, as of ../statics. It and the program of
// 8.0.28 need DOTNET_TieredCompilation=0.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

class Known
{
    public static readonly List<WeakReference> All = new List<WeakReference>();
    public int Number;
    public Known() { lock (All) All.Add(new WeakReference(this)); }
}

class InRegister : Known { }
class First : Known { } class Second : Known { } class Third : Known { } class Fourth : Known { } class Fifth : Known { }
class Sixth : Known { } class Seventh : Known { } class Eighth : Known { } class Ninth : Known { } class Tenth : Known { }
class OfCaller : Known { }
class InStructure : Known { }
class InArgument : Known { } class InStackArgument : Known { }
class OfUnoptimized : Known { }
class BeforeTry : Known { } class InHandler : Known { } class InFinally : Known { }
class BeforeType : Known { } class InTypeConstructor : Known { }
class OfLock : Known { }
class BeforeFilter : Known { } class InFilter : Known { } class BelowFilter : Known { } class DeadBelowFilter : Known { }
class AtReference : Known { public int Inside; }
class DeadLocal : Known { } class DeadArgument : Known { } class DeadOfCaller : Known { } class DeadReplaced : Known { }
class DeadInHandler : Known { } class DeadThis : Known { [MethodImpl(MethodImplOptions.NoInlining)] public void Leave() { Number++; Program.Wait(); } }

class AsThis : Known
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Stay(string text) { Program.Wait(); Number += text.Length; }
}

struct Pair { public object One, Two; }

class Slow
{
    public static readonly int Value;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static Slow() { var own = new InTypeConstructor(); Program.Wait(); Program.Use(own); Value = own.Number; }
}

static class Program
{
    // Without tiered compilation (rooted.runtimeconfig.json) methods are optimized at once: references are dead after their last use.
    const MethodImplOptions Optimized = MethodImplOptions.NoInlining;
    static readonly ManualResetEvent end = new ManualResetEvent(false);
    static readonly object held = new object();
    static int arrived;
    static volatile int sum;

    [MethodImpl(Optimized)] public static void Use(object of) { sum += of.GetHashCode(); }
    [MethodImpl(Optimized)] public static void Wait() { Interlocked.Increment(ref arrived); end.WaitOne(); }

    [MethodImpl(Optimized)] static void Register() { var own = new InRegister(); Wait(); Use(own); }

    [MethodImpl(Optimized)]
    static void Ten()
    {
        var a = new First(); var b = new Second(); var c = new Third(); var d = new Fourth(); var e = new Fifth();
        var f = new Sixth(); var g = new Seventh(); var h = new Eighth(); var i = new Ninth(); var j = new Tenth();
        Wait();
        Use(a); Use(b); Use(c); Use(d); Use(e); Use(f); Use(g); Use(h); Use(i); Use(j);
    }

    // The callee uses all registers that it must preserve: that of the caller is on the stack.
    [MethodImpl(Optimized)] static void Caller() { var own = new OfCaller(); var dead = new DeadOfCaller(); Use(dead); Ten(); Use(own); }

    [MethodImpl(Optimized)] static void Local() { var dead = new DeadLocal(); Use(dead); Wait(); }
    [MethodImpl(Optimized)] static void Replaced() { object dead = new DeadReplaced(); Use(dead); dead = "text"; Wait(); Use(dead); }
    [MethodImpl(Optimized)] static void Structure() { Pair pair; pair.One = new InStructure(); pair.Two = null; Fill(ref pair); Wait(); Use(pair.One); }
    [MethodImpl(Optimized)] static void Fill(ref Pair pair) { pair.Two = pair.One; }
    [MethodImpl(Optimized)] static void Arguments() { Eight("1", new InArgument(), new DeadArgument(), "4", "5", "6", "7", new InStackArgument()); }
    [MethodImpl(Optimized)]
    static void Eight(object a, object b, object c, object d, object e, object f, object g, object h)
    {
        Use(a); Use(c); Use(d); Use(e); Use(f); Use(g); Wait(); Use(b); Use(h);
    }
    [MethodImpl(Optimized)] static void This() { new AsThis().Stay("text"); }
    [MethodImpl(Optimized)] static void Leaving() { new DeadThis().Leave(); }
    // Variables are live to the end.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)] static void Unoptimized() { var own = new OfUnoptimized(); Use(own); Wait(); }

    [MethodImpl(Optimized)]
    static void Handler()
    {
        var before = new BeforeTry();
        try { Fail(before); }
        catch (InvalidOperationException exception)
        {
            var own = new InHandler(); var dead = new DeadInHandler(); Use(dead);
            try { Use(exception); } finally { var last = new InFinally(); Wait(); Use(last); Use(own); }
        }
        Use(before);
    }
    [MethodImpl(Optimized)] static void Fail(object of) { Use(of); throw new InvalidOperationException("known"); }

    // While the filter waits, no frame below it has been left.
    [MethodImpl(Optimized)]
    static void Filtered()
    {
        var before = new BeforeFilter();
        try { Throwing(); } catch (InvalidOperationException) when (Filter()) { Use("handled"); }
        Use(before);
    }
    [MethodImpl(Optimized)] static bool Filter() { var own = new InFilter(); Wait(); Use(own); return true; }
    [MethodImpl(Optimized)] static void Throwing() { var own = new BelowFilter(); Use(new DeadBelowFilter()); try { Fail("text"); } finally { Use(own); } }

    [MethodImpl(Optimized)] static void TypeConstructor() { var own = new BeforeType(); sum += Slow.Value; Use(own); }
    [MethodImpl(Optimized)] static void Lock() { var own = new OfLock(); Interlocked.Increment(ref arrived); lock (held) Use(own); }

    [MethodImpl(Optimized)] static void Reference() { ref int inside = ref Inside(new AtReference()); Wait(); inside++; }
    [MethodImpl(Optimized)] static ref int Inside(AtReference of) { return ref of.Inside; }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Values(int number, bool yes, char letter, DayOfWeek day, long large, double half, string words, Pair pair, ref int place)
    {
        var local = new object(); Wait(); Use(local); Use(words); Use(pair.One); sum += number + place;
    }
    static void PassValues() { Pair pair; pair.One = "one"; pair.Two = null; int place = 5; Values(-7, true, 'x', DayOfWeek.Friday, 1L << 40, 2.5, "words", pair, ref place); }

    static void Collect()
    {
        for (int i = 0; i < 3; i++) GC.Collect();
        lock (Known.All) foreach (var weak in Known.All) { var of = weak.Target; if (of != null) Console.WriteLine(of.GetType().Name); }
        Console.WriteLine("end"); Console.Out.Flush();
    }

    static void Main()
    {
        Action[] all = { Register, Caller, Local, Replaced, Structure, Arguments, This, Leaving, Unoptimized, Handler, TypeConstructor, Lock, Reference, PassValues, Filtered };
        Monitor.Enter(held);
        var threads = new List<Thread>();
        foreach (var start in all) { var thread = new Thread(new ThreadStart(start)) { Name = start.Method.Name, IsBackground = true }; thread.Start(); threads.Add(thread); }
        while (Volatile.Read(ref arrived) < all.Length) Thread.Sleep(1);
        foreach (var thread in threads) while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
        Console.WriteLine("ready"); Console.Out.Flush();
        string line;
        while ((line = Console.ReadLine()) != null && line != "quit") if (line == "collect") Collect();
    }
}
