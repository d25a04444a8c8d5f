// A program that stays in System.Text.Json, whose code was compiled ahead of time, while that handles an exception: in a filter
// (`when`) of .NET Core 3.1, where frames between it and its method are not left, and in a handler of .NET 9. Built with the assemblies of .NET Core 3.1.23:
// mcs -langversion:7.2 -optimize+ -nostdlib -noconfig -out:filters.dll -r:System.Private.CoreLib.dll -r:System.Runtime.dll
//   -r:System.Console.dll -r:System.Text.Json.dll -r:System.Memory.dll -r:System.Runtime.Extensions.dll filters.cs
//
// The first line is "ready". `collect` on standard input runs a collection: the answer is the names of the types with an object
// that it kept, and "end".
using System;
using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Text.Json.Serialization;
using System.Threading;

class BelowFilter { } class AtThrow { } class BeforeFilter { } class InGetter { } class DeadBelowFilter { }
class Item { }

class Slow : InvalidOperationException
{
    public override string Source { get { var own = new InGetter(); Program.Keep(own); Program.Wait(); Program.Use(own); return "Slow"; } set { } }
}

class Converter : JsonConverter<Item>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public override Item Read(ref Utf8JsonReader reader, Type type, JsonSerializerOptions options)
    {
        var own = new BelowFilter(); var dead = new DeadBelowFilter();
        Program.Keep(own); Program.Keep(dead); Program.Use(dead);
        try { return Program.Throw(new AtThrow()); } finally { Program.Use(own); }
    }
    public override void Write(Utf8JsonWriter writer, Item value, JsonSerializerOptions options) { }
}

static class Program
{
    static readonly ManualResetEvent end = new ManualResetEvent(false);
    static readonly WeakReference[] all = new WeakReference[16];
    static int count, arrived;
    static volatile int sum;

    [MethodImpl(MethodImplOptions.NoInlining)] public static void Keep(object of) { all[count++] = new WeakReference(of); }
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Use(object of) { sum += of.GetHashCode(); }
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Wait() { Interlocked.Increment(ref arrived); end.WaitOne(); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Item Throw(object of) { Keep(of); try { throw new Slow(); } finally { Use(of); } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Read()
    {
        var own = new BeforeFilter(); Keep(own);
        var options = new JsonSerializerOptions(); options.Converters.Add(new Converter());
        try { JsonSerializer.Deserialize<Item>("{}", options); } catch (InvalidOperationException) { }
        Use(own);
    }

    static void Main()
    {
        var thread = new Thread(new ThreadStart(Read)); thread.IsBackground = true; thread.Start();
        while (Volatile.Read(ref arrived) < 1) Thread.Sleep(1);
        while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
        Console.WriteLine("ready"); Console.Out.Flush();
        string line;
        while ((line = Console.ReadLine()) != null)
        {
            for (int i = 0; i < 3; i++) GC.Collect();
            foreach (var weak in all) { var of = weak?.Target; if (of != null) Console.WriteLine(of.GetType().Name); }
            Console.WriteLine("end"); Console.Out.Flush();
        }
    }
}
