// A program whose variables are known: a thread for each method below waits in it. The first lines are the program's own account,
// method|role|name|declared type|value, then "ready"; it ends with its standard input. Values of objects that are not strings are
// types, of structures fields.
//
// Built with: mcs -langversion:7.2 -debug -out:locals.exe locals.cs, and Portable.exe locals.exe locals.dll, which writes
// locals.pdb (Portable.cs). Not optimized: variables are live to the end of their methods. locals10.dll and locals10.pdb are the same
// for the assemblies of the single file of .NET 10.0.5, as of ../statics.
using System;
using System.Collections.Generic;
using System.Threading;

enum Color { Red = 1, Blue = 4 }
struct Point { public int X, Y; }

class Shop<T> where T : class
{
    public T Kept;
    public void Generic<U>(T item, U other) where U : class
    {
        T copy = item; U second = other; T[] items = { item };
        Locals.Wait();
        GC.KeepAlive(copy); GC.KeepAlive(second); GC.KeepAlive(items);
    }
}

static class Locals
{
    static readonly ManualResetEvent end = new ManualResetEvent(false);
    static int arrived;

    public static void Wait() { Interlocked.Increment(ref arrived); end.WaitOne(); }

    static void Row(string method, string role, string name, string type, object value)
    {
        Console.WriteLine(method + "|" + role + "|" + name + "|" + type + "|" + value);
    }

    static void Simple(string title, int times)
    {
        string name = "abc"; int count = 42; bool yes = true; char letter = 'x'; long large = 1L << 40; byte small = 200;
        double half = 2.5; float third = 0.25f; uint positive = 4000000000; short negative = -3; object thing = new Point();
        Color color = Color.Blue; DayOfWeek day = DayOfWeek.Friday; string nothing = null;
        Wait();
        GC.KeepAlive(name + count + yes + letter + large + small + half + third + positive + negative + thing + color + day + nothing);
    }

    // Two variables have one slot: the scope at the call decides which one it is.
    static void FirstScope(int turn)
    {
        if (turn == 1) { string sharedFirst = "first"; Wait(); GC.KeepAlive(sharedFirst); }
        else { string sharedSecond = "second"; Wait(); GC.KeepAlive(sharedSecond); }
    }
    static void SecondScope(int turn)
    {
        if (turn == 1) { string sharedFirst = "first"; Wait(); GC.KeepAlive(sharedFirst); }
        else { string sharedSecond = "second"; Wait(); GC.KeepAlive(sharedSecond); }
    }
    // After both scopes the slot has the value of one of them: it has no name.
    static void AfterScopes(int turn)
    {
        if (turn == 1) { string sharedFirst = "first"; GC.KeepAlive(sharedFirst); }
        else { string sharedSecond = "second"; GC.KeepAlive(sharedSecond); }
        Wait();
    }
    // After its scope, a variable still has the only name of its slot.
    static void AfterScope(int turn)
    {
        if (turn > 0) { string past = "past"; GC.KeepAlive(past); }
        Wait();
    }

    static void Collections(List<int> numbers, Dictionary<string, int[]> byName)
    {
        int[] array = { 1, 2, 3 }; string[,] grid = new string[2, 2]; IEnumerable<int> rows = numbers;
        KeyValuePair<string, int> pair = new KeyValuePair<string, int>("key", 7); int? maybe = 9; Point point; point.X = 3; point.Y = 4;
        Wait();
        GC.KeepAlive(array); GC.KeepAlive(grid); GC.KeepAlive(rows); GC.KeepAlive(pair); GC.KeepAlive(maybe); GC.KeepAlive(point);
        GC.KeepAlive(byName);
    }

    static void Main()
    {
        Row("Locals.Simple", "argument", "title", "string", "the title"); Row("Locals.Simple", "argument", "times", "int", 7);
        Row("Locals.Simple", "local", "name", "string", "abc"); Row("Locals.Simple", "local", "count", "int", 42);
        Row("Locals.Simple", "local", "yes", "bool", "true"); Row("Locals.Simple", "local", "letter", "char", 'x');
        Row("Locals.Simple", "local", "large", "long", 1L << 40); Row("Locals.Simple", "local", "small", "byte", 200);
        Row("Locals.Simple", "local", "half", "double", 2.5); Row("Locals.Simple", "local", "third", "float", 0.25f);
        Row("Locals.Simple", "local", "positive", "uint", 4000000000); Row("Locals.Simple", "local", "negative", "short", -3);
        Row("Locals.Simple", "local", "thing", "object", "Point"); Row("Locals.Simple", "local", "color", "Color", Color.Blue);
        Row("Locals.Simple", "local", "day", "System.DayOfWeek", DayOfWeek.Friday);
        Row("Locals.Simple", "local", "nothing", "string", "null");
        Row("Locals.FirstScope", "local", "sharedFirst", "string", "first");
        Row("Locals.SecondScope", "local", "sharedSecond", "string", "second");
        Row("Locals.AfterScopes", "local", "", "string", "second");
        Row("Locals.AfterScope", "local", "past", "string", "past");
        Row("Locals.Collections", "argument", "numbers", "System.Collections.Generic.List<int>", "System.Collections.Generic.List<int>");
        Row("Locals.Collections", "argument", "byName", "System.Collections.Generic.Dictionary<string, int[]>", "null");
        Row("Locals.Collections", "local", "array", "int[]", "int[]"); Row("Locals.Collections", "local", "grid", "string[,]", "string[,]");
        Row("Locals.Collections", "local", "rows", "System.Collections.Generic.IEnumerable<int>", "System.Collections.Generic.List<int>");
        Row("Locals.Collections", "local", "maybe", "int?", 9); Row("Locals.Collections", "local", "point", "Point", "X=3,Y=4");
        Row("Locals.Collections", "local", "pair", "System.Collections.Generic.KeyValuePair<string, int>", "key=key,value=7");
        Row("Shop<System.__Canon>.Generic", "argument", "item", "T", "item"); Row("Shop<System.__Canon>.Generic", "argument", "other", "U", "other");
        Row("Shop<System.__Canon>.Generic", "local", "copy", "T", "item"); Row("Shop<System.__Canon>.Generic", "local", "second", "U", "other");
        Row("Shop<System.__Canon>.Generic", "local", "items", "T[]", "string[]");
        Action[] all = { () => Simple("the title", 7), () => FirstScope(1), () => SecondScope(2), () => AfterScopes(2), () => AfterScope(1),
            () => Collections(new List<int> { 1, 2 }, null), () => new Shop<string>().Generic<string>("item", "other") };
        foreach (var start in all) { var thread = new Thread(new ThreadStart(start)) { IsBackground = true }; thread.Start(); }
        while (Volatile.Read(ref arrived) < all.Length) Thread.Sleep(1);
        Console.WriteLine("ready"); Console.Out.Flush();
        while (Console.ReadLine() != null) { }
    }
}
