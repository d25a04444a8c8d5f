// Fields of generic structures and of the framework's own ones, enumerations, buffers and texts that are known.
// Built with: mcs -unsafe -langversion:7.2 -out:structures.dll structures.cs
using System;
using System.Collections.Generic;

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

static unsafe class Structures
{
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
        Console.ReadLine();
        GC.KeepAlive(fields);
    }
}
