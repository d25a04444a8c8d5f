// Ends by an exception that has others in it, or by a small stack that overflows, once a line comes on standard
// input. With "allocate" two threads allocate, and a third one collects without a pause.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection;
using System.Reflection.Emit;
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

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        var list = new LinkedList<object>();
        while (true)
        {
            list.AddLast(new byte[100]);
            if (list.Count > 100000) for (int i = 0; i < 50000; i++) list.RemoveFirst();
        }
    }

    static void Collect()
    {
        for (int i = 0; i < 2; i++)
        {
            var thread = new Thread(Allocate);
            thread.Name = "allocates";
            thread.IsBackground = true;
            thread.Start();
        }
        while (true) GC.Collect();
    }

    static object _made;

    // An object of a type that is made in memory.
    static void Make()
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run);
        var type = assembly.DefineDynamicModule("Made").DefineType("Made.InMemory", TypeAttributes.Public);
        type.DefineField("Field", typeof(int), FieldAttributes.Public);
        _made = Activator.CreateInstance(type.CreateType());
        Console.WriteLine("made");
        Console.ReadLine();
    }

    static void Main(string[] arguments)
    {
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        Console.ReadLine();
        if (arguments[0] == "allocate") Collect();
        if (arguments[0] == "dynamic") { Make(); return; }
        ThreadStart start = arguments[0] == "handlers" ? new ThreadStart(Handlers) : arguments[0] == "overflow" ? new ThreadStart(Overflow) : Aggregate;
        var thread = new Thread(start, 262144);
        thread.Name = "thrower";
        thread.Start();
        thread.Join();
    }
}
