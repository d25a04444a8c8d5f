// A program whose objects, strings, static fields, handles and roots are known, for tests of heaps that are read
// from memory. Built with: mcs -langversion:7.2 -out:heap.dll heap.cs
//
// "heap.dll [ROWS]" allocates them, writes "ready PID" and waits for a line.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Shop {
    enum Color : short { Red = 1, Blue = -2 }

    struct Point { public int X; public long Y; public string Label; }

    class Base { protected int number = 41; private string name = "base"; }

    class Everything : Base {
        public bool Yes = true;
        public char Letter = 'x';
        public sbyte Small = -5;
        public ushort Port = 65000;
        public int Number = -1234567;
        public ulong Large = ulong.MaxValue;
        public float Single = 1.5f;
        public double Double = -2.25;
        public Color Color = Color.Blue;
        public Point Point = new Point { X = 7, Y = -8, Label = "a point" };
        public string Text = "some text \u001b[31m\n\u202e";
        public object Nothing = null;
        public Everything Self;
        public int[] Numbers = { 1, 2, 3 };
        public Point[] Points = { new Point { X = 1, Label = "first" }, new Point { X = 2, Label = "second" } };
        public string[] Texts = { "one", null, "three" };
        public int[,] Table = { { 1, 2, 3 }, { 4, 5, 6 } };
        public TimeSpan Span = TimeSpan.FromTicks(77);
        public new string name = "derived";
        public Everything() { Self = this; }
    }

    // A node of a ring: each object leads back to itself.
    class Ring { public Ring Next; public int Index; }

    class Row { public int Id; public string Title; public byte[] Data; }

    // Reached only by the static field of a type.
    class Treasure { public string Secret = "treasure"; }

    // Reached only by a handle.
    // Sequential: .NET Core 3.1 pins no other classes.
    [StructLayout(LayoutKind.Sequential)]
    class Pinned { public int Value = 1; }
    class Handled { public int Value = 2; }
    class Weak { public int Value = 3; }
    class Key { public int Value = 4; }
    class Attached { public int Value = 5; }

    // Reached only by a local variable of a waiting method.
    class Local { public int Value = 6; }

    // Reached only by the queue of objects that wait to be finalized: a finalizer waits before it.
    class Finalized { public int Value = 7; ~Finalized() { Program.Finalizing.Set(); Thread.Sleep(Timeout.Infinite); } }

    class Generic<T> { public static Treasure OfGeneric; public T Value; }

    static class Program {
        static Treasure treasure = new Treasure();
        static int counter = 4711;
        static double ratio = 0.5;
        static string motto = "a static text";
        static Everything everything = new Everything();
        static Ring ring;
        static List<Row> rows = new List<Row>();
        static Dictionary<string, Row> byTitle = new Dictionary<string, Row>();
        static ConditionalWeakTable<Key, Attached> table = new ConditionalWeakTable<Key, Attached>();
        static Key key = new Key();
        [ThreadStatic] static Treasure ofThread;
        public static readonly ManualResetEventSlim Finalizing = new ManualResetEventSlim();
        static GCHandle[] handles;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Allocate(int count) {
            Ring first = new Ring(), last = first;
            for (int i = 1; i < 1000; i++) last = last.Next = new Ring { Index = i };
            last.Next = first;
            ring = first;
            for (int i = 0; i < count; i++) {
                var row = new Row { Id = i, Title = "row " + i, Data = new byte[i % 100] };
                rows.Add(row);
                if (i < 1000) byTitle.Add(row.Title, row);
            }
            for (int i = 0; i < 50; i++) rows[i].Title = new string('d', 40);
            table.Add(key, new Attached());
            ofThread = new Treasure { Secret = "of a thread" };
            Generic<string>.OfGeneric = new Treasure { Secret = "of a generic type" };
            Generic<int>.OfGeneric = new Treasure { Secret = "of another generic type" };
            handles = new[] {
                GCHandle.Alloc(new Pinned(), GCHandleType.Pinned),
                GCHandle.Alloc(new Handled(), GCHandleType.Normal),
                GCHandle.Alloc(new Weak(), GCHandleType.Weak),
            };
            for (int i = 0; i < 3; i++) new Finalized();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Wait() {
            var local = new Local();
            var weak = (Weak)handles[2].Target;
            Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
            Console.Out.Flush();
            Console.ReadLine();
            GC.KeepAlive(weak);
            return local.Value;
        }

        static int Main(string[] arguments) {
            Allocate(arguments.Length > 0 ? int.Parse(arguments[0]) : 2000);
            GC.Collect();
            if (!Finalizing.Wait(60000)) return 1;
            return Wait() == 6 ? 0 : 1;
        }
    }
}
