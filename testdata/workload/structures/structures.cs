// Fields of generic structures and of the framework's own ones, enumerations, buffers and texts that are known.
// Built with: mcs -unsafe -langversion:7.2 -r:System.Core.dll -out:structures.dll structures.cs
//
// It writes "ready", and as a second line of JSON the contents of its collections as it enumerates them itself.
using System;
using System.Collections;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Globalization;
using System.Net;
using System.Reflection;
using System.Text;

enum Size : short { Small = -1, Large = 2 }
[Flags] enum Access { None = 0, Read = 1, Write = 2, All = 7 }

unsafe struct Digits { public fixed int Values[5]; }

class Generic<T> { public KeyValuePair<T, int>? Pair; }

class Fields
{
    public int? Number = 5, Nothing;
    public KeyValuePair<string, int> Pair = new KeyValuePair<string, int>("key", 7);
    public (int, long) Tuple = (1, -2);
    public DateTime? When = new DateTime(2024, 1, 2, 3, 4, 5, DateTimeKind.Utc);
    public DateTimeOffset Offset = new DateTimeOffset(2024, 1, 2, 3, 4, 5, TimeSpan.FromHours(-2));
    public TimeSpan Span = new TimeSpan(1, 2, 3, 4, 5);
    public decimal? Price = -1234567890123456789.05m;
    public Guid Id = new Guid("00112233-4455-6677-8899-aabbccddeeff");
    public Size Size = Size.Small;
    public Access Access = Access.Read | Access.Write;
    public double NotANumber = double.NaN;
    public float Infinite = float.NegativeInfinity;
    public Digits Digits;
    public string Quoted = "a \"b\"";
    public Array FromThree = Array.CreateInstance(typeof(int), new[] { 2 }, new[] { 3 });
    public Generic<string> Generic = new Generic<string> { Pair = new KeyValuePair<string, int>("x", 9) };
}

class Contents
{
    public List<int> List = new List<int>();
    // Other assemblies have them than those of the compiler.
    public IEnumerable Queue = New("Queue`1", typeof(int));
    public IEnumerable Stack = New("Stack`1", typeof(string));
    public HashSet<string> HashSet = new HashSet<string>();
    public Dictionary<string, List<int>> Dictionary = new Dictionary<string, List<int>>();
    public ConcurrentDictionary<int, string> Concurrent = new ConcurrentDictionary<int, string>(2, 4);
    public ConcurrentQueue<int> Waiting = new ConcurrentQueue<int>();
    // The compiler does not have these types.
    public IEnumerable ImmutableList = Immutable("ImmutableList", typeof(int), new[] { 5, 6, 7, 8, 9 });
    public IEnumerable ImmutableArray = Immutable("ImmutableArray", typeof(int), new[] { 4, 2 });
    public IEnumerable ImmutableDictionary = (IEnumerable)Type("ImmutableDictionary").GetMethods().First("CreateRange")
        .MakeGenericMethod(typeof(int), typeof(string)).Invoke(null, new object[] {
            new Dictionary<int, string> { { 3, "three" }, { 1, "one" }, { 2, "two" } } });
    public StringBuilder Builder = new StringBuilder();
    public Uri Uri = new Uri("https://example.com/a?b=c");
    public Version Version = new Version(1, 2, 3);
    public IPAddress Address = IPAddress.Parse("10.1.2.3"), Address6 = IPAddress.Parse("fe80::1:2");
    public Exception Exception = new InvalidOperationException("not now");
    public object Empty = new List<string>();
    public List<object> Boxed = new List<object> { 7, -8L, (byte)200, 2.5, 'x', Size.Large, Access.Read | Access.Write,
        new Guid(1, 2, 3, new byte[8]), new TimeSpan(1, 2, 3), 12.50m, "text" };

    static IEnumerable New(string name, Type of)
    {
        var type = System.Type.GetType("System.Collections.Generic." + name + ", System.Collections", true);
        return (IEnumerable)Activator.CreateInstance(type.MakeGenericType(of));
    }

    static void Call(object target, string name, params object[] arguments)
    {
        target.GetType().GetMethod(name).Invoke(target, arguments);
    }

    static Type Type(string name)
    {
        return System.Type.GetType("System.Collections.Immutable." + name + ", System.Collections.Immutable", true);
    }

    static IEnumerable Immutable(string name, Type of, object items)
    {
        return (IEnumerable)Type(name).GetMethods().First("CreateRange").MakeGenericMethod(of).Invoke(null, new[] { items });
    }

    public Contents()
    {
        for (int i = 0; i < 40; i++) List.Add(i * i);
        // The head is in the middle of the array.
        for (int i = 0; i < 6; i++)
        {
            Call(Queue, "Enqueue", i);
            if (i % 2 == 0) Call(Queue, "Dequeue");
        }
        foreach (var word in new[] { "bottom", "middle", "top" }) Call(Stack, "Push", word);
        // Some entries are free.
        for (int i = 0; i < 6; i++) { HashSet.Add("h" + i); Dictionary["k" + i] = new List<int> { i, i + 1 }; }
        HashSet.Remove("h1"); HashSet.Remove("h4"); Dictionary.Remove("k0"); Dictionary.Remove("k3");
        for (int i = 0; i < 12; i++) Concurrent[i * 3] = "c" + i;
        for (int i = 0; i < 50; i++) Waiting.Enqueue(i);
        int taken;
        for (int i = 0; i < 37; i++) Waiting.TryDequeue(out taken);
        for (int i = 0; i < 40; i++) Builder.Append("part ").Append(i).Append(';');
    }

    static string Json(object value)
    {
        var text = value as string;
        if (text != null) return "\"" + text + "\"";
        if (value is Enum || value is Guid || value is TimeSpan || value is char || value is decimal)
            return "\"" + Convert.ToString(value, CultureInfo.InvariantCulture) + "\"";
        var items = value as IEnumerable;
        if (items == null)
        {
            var type = value.GetType();
            if (!type.Name.StartsWith("KeyValuePair")) return value.ToString();
            return "[" + Json(type.GetProperty("Key").GetValue(value)) + ", " + Json(type.GetProperty("Value").GetValue(value)) + "]";
        }
        var parts = new List<string>();
        foreach (var item in items) parts.Add(Json(item));
        return "[" + string.Join(", ", parts) + "]";
    }

    public string Account()
    {
        var parts = new List<string>();
        foreach (var field in typeof(Contents).GetFields())
        {
            var value = field.GetValue(this);
            if (value is Exception) value = ((Exception)value).Message;
            if (!(value is IEnumerable)) value = value.ToString();
            parts.Add("\"" + field.Name + "\": " + Json(value));
        }
        return "{" + string.Join(", ", parts) + "}";
    }
}

static class Methods
{
    public static MethodInfo First(this MethodInfo[] methods, string name)
    {
        foreach (var method in methods)
            if (method.Name == name && method.GetParameters().Length == 1 && method.GetParameters()[0].ParameterType.Name.StartsWith("IEnumerable"))
                return method;
        throw new MissingMethodException(name);
    }
}

static unsafe class Structures
{
    static Contents contents = new Contents();
    static int? number = 9;
    static (string, int) tuple = ("s", 3);
    static Size size = Size.Large;
    static Fields fields = new Fields();
    static string[] lone = new string[3];

    static void Main()
    {
        fixed (int* values = fields.Digits.Values)
            for (int i = 0; i < 5; i++) values[i] = i * i;
        // Not constants, which the compiler would write in another form.
        for (int i = 0; i < 2; i++) lone[i] = new string(new[] { (char)(0xd800 + i), '!', '?' });
        lone[2] = new string(new[] { '\ufffd', '!', '?' });
        Console.WriteLine("ready " + number + tuple + size);
        Console.WriteLine(contents.Account());
        Console.ReadLine();
        GC.KeepAlive(contents);
        GC.KeepAlive(fields);
    }
}
