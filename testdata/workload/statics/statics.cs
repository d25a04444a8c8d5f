// A program whose static fields are known, those of threads and of generic types as well, for tests of
// `dump analyze CORE statics`. Built with: mcs -langversion:7.2 -out:statics.dll statics.cs
//
// "statics.dll" sets them, starts its threads, writes "ready" and waits for a line.
//
// statics10.dll is the same program for the assemblies of the single file of .NET 10.0.5, which were trimmed:
// it takes the place of azmcp.dll there. Built with these assemblies in the folder of the command:
// mcs -langversion:7.2 -nostdlib -noconfig -out:statics10.dll
//   -r:System.Private.CoreLib.dll -r:System.Runtime.dll -r:System.Console.dll statics.cs
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Known {
    struct Point { public int X; public long Y; public string Label; }

    // There are no objects of these types: only their static fields are used.
    static class Settings<T> {
        public static int Number;
        public static string Text;
        public static Point Place;
        public static T Own;
        [ThreadStatic] public static long OfThread;
        [ThreadStatic] public static string TextOfThread;
    }

    class Outer<T> {
        internal class Inner<U> { public static string Text; }
    }

    static class Numbers {
        [ThreadStatic] public static int Small;
        [ThreadStatic] public static double Ratio;
        [ThreadStatic] public static bool Yes;
    }

    static class Mixed {
        public static int Shared = 1001;
        [ThreadStatic] public static int Number;
        [ThreadStatic] public static string Text;
        [ThreadStatic] public static Point Place;
        [ThreadStatic] public static int[] Items;
        [ThreadStatic] public static object Nothing;
    }

    // Its constructor has not ended, so that the runtime keeps its fields apart.
    static class Unfinished {
        [ThreadStatic] static int number;
        [ThreadStatic] static string text;
        static int shared;
        static Unfinished() {
            number = 61;
            text = "of an unfinished type";
            shared = 62;
            Program.Park();
        }
        public static int Use() { return number + shared + ((object)text == null ? 0 : 1); }
    }

    static class Program {
        static readonly SemaphoreSlim set = new SemaphoreSlim(0);
        static readonly ManualResetEvent never = new ManualResetEvent(false);

        internal static void Park() {
            set.Release();
            never.WaitOne();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void SetOfThread(int number, string text, string other) {
            Settings<int>.OfThread = number + 1;
            Settings<string>.OfThread = number + 2;
            Settings<string>.TextOfThread = text;
            Settings<object>.TextOfThread = other;
            Mixed.Number = number + 3;
            Mixed.Text = text;
            Mixed.Place = new Point { X = number + 4, Y = -number, Label = other };
            Mixed.Items = new[] { number, number + 5 };
            Numbers.Small = -number;
            Numbers.Ratio = number + 0.25;
            Numbers.Yes = true;
        }

        static void Start(string name, Action body) {
            new Thread(() => { body(); Park(); }) { Name = name, IsBackground = true }.Start();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Set() {
            Settings<int>.Number = 11;
            Settings<int>.Text = "of int";
            Settings<int>.Own = 12;
            Settings<int>.Place = new Point { X = 13, Y = -14, Label = "place of int" };
            Settings<string>.Number = 21;
            Settings<string>.Text = "of string";
            Settings<string>.Own = "own of string";
            Settings<object>.Number = 31;
            Settings<object>.Text = "of object";
            Settings<Point>.Own = new Point { X = 41, Label = "own point" };
            Outer<byte>.Inner<string>.Text = "of an inner type";
            SetOfThread(100, "text of main", "other of main");
        }

        static int Main() {
            Set();
            Start("first", () => SetOfThread(200, "text of first", "other of first"));
            Start("second", () => { Mixed.Number = 303; });
            Start("unfinished", () => Unfinished.Use());
            for (int thread = 0; thread < 3; thread++) set.Wait();
            Console.WriteLine("ready");
            Console.ReadLine();
            return Mixed.Shared == 1001 ? 0 : 1;
        }
    }
}
