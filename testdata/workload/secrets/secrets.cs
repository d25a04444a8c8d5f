// A program that holds a secret of its command line in every form, for tests of core dumps without it. Built with:
// mcs -unsafe -langversion:7.2 -out:secrets.dll secrets.cs
//
// "secrets.dll SECRET NUMBER" holds the secret with other first letters in a string ("S-"), an array of characters ("C-")
// and of bytes ("B-"), in dead objects ("D-"), on a stack ("K-"), in native memory ("N-"), and in the message of an
// exception ("E-") that a thread handles, in fixed buffers of an object, of a structure in it, of the elements of an
// array and of a box ("F-"), in inline arrays there ("I-"), and in static fields; writes "ready PID" and waits for a
// line. Each secret is upper case where the argument is lower case, so that no copy of the argument is one of them.
// The number is the first eight bytes of its argument in upper case, in fields, static fields, elements, keys, boxes, a
// Guid, a lambda, and on a stack.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace System.Runtime.CompilerServices {
    // Runtimes know it by its name; those before .NET 8 do not.
    [AttributeUsage(AttributeTargets.Struct)]
    sealed class InlineArrayAttribute : Attribute {
        public InlineArrayAttribute(int length) { Length = length; }
        public int Length { get; private set; }
    }
}

namespace Secrets {
    [InlineArray(32)]
    struct Row {
        public char First;
    }

    struct Key {
        public long Number;
        public string Name;
    }

    class Numbers {
        public long Long;
        public int Int;
        public Guid Guid;
        public object Box;
        public object GuidBox;
        public Key[] Keys;
        public Dictionary<long, string> ByNumber;
        public Func<long> Lambda;
    }

    class Holder {
        public string Text;
        public char[] Characters;
        public byte[] Bytes;
        public long[] Numbers;
        public int Count;
        public Holder Next;
    }

    unsafe struct Inline {
        public int Before;
        public fixed byte Bytes[48];
        public fixed char Characters[32];
        public object After;

        public Inline(string text) {
            Before = 7;
            After = null;
            fixed (byte* bytes = Bytes)
            fixed (char* characters = Characters)
                for (int i = 0; i < text.Length && i < 32; i++) {
                    bytes[i] = (byte)text[i];
                    characters[i] = text[i];
                }
        }
    }

    class Buffers {
        public int Before = 7;
        public Row Row;
        public object RowBox;
        public Row[] Rows;
        public Inline Inner;
        public Inline[] Elements;
        public object Box;
    }

    static class Program {
        static Holder held;
        static Buffers buffers;
        static Inline inline;
        static Row row;
        static Numbers numbers;
        static long number;
        static IntPtr native;
        static readonly ManualResetEvent Parked = new ManualResetEvent(false);

        static string Make(string first, string secret) {
            return first + "-" + secret.ToUpperInvariant();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Hold(string secret) {
            for (int i = 0; i < 100; i++)
                held = new Holder {
                    Text = Make("S", secret), Characters = Make("C", secret).ToCharArray(),
                    Bytes = Encoding.UTF8.GetBytes(Make("B", secret)), Numbers = new long[] { i, 1 }, Count = i, Next = held
                };
            for (int i = 0; i < 100; i++) Make("D", secret);
            inline = new Inline(Make("F", secret));
            Fill(ref row, Make("I", secret));
            buffers = new Buffers {
                Inner = inline, Elements = new[] { inline, inline }, Box = inline,
                Row = row, Rows = new[] { row, row }, RowBox = row
            };
            native = Marshal.StringToHGlobalUni(Make("N", secret));
        }

        static unsafe void Fill(ref Row row, string text) {
            fixed (char* characters = &row.First)
                for (int i = 0; i < text.Length && i < sizeof(Row) / 2; i++) characters[i] = text[i];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Count(string text) {
            byte[] bytes = Encoding.ASCII.GetBytes(text.ToUpperInvariant().Substring(0, 8));
            long value = BitConverter.ToInt64(bytes, 0);
            Guid guid = new Guid((int)value, (short)(value >> 32), (short)(value >> 48), bytes);
            number = value;
            numbers = new Numbers {
                Long = value, Int = (int)value, Guid = guid, Box = value, GuidBox = guid,
                Keys = new[] { new Key { Number = value, Name = "key" } },
                ByNumber = new Dictionary<long, string> { { value, "value" } }, Lambda = () => value
            };
        }

        static unsafe void Park(string secret) {
            long local = number;
            string text = Make("K", secret);
            char* copy = stackalloc char[64];
            for (int i = 0; i < text.Length && i < 63; i++) copy[i] = text[i];
            try { throw new InvalidOperationException(Make("E", secret)); }
            catch (InvalidOperationException) { Parked.Set(); Thread.Sleep(Timeout.Infinite); }
            GC.KeepAlive(copy[0]);
            GC.KeepAlive(local);
        }

        static void Main(string[] arguments) {
            string secret = arguments[0];
            Hold(secret);
            if (arguments.Length > 1) Count(arguments[1]);
            new Thread(() => Park(secret)) { IsBackground = true, Name = "keeper" }.Start();
            Parked.WaitOne();
            Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
            Console.Out.Flush();
            Console.ReadLine();
            GC.KeepAlive(held);
            GC.KeepAlive(buffers);
            GC.KeepAlive(numbers);
        }
    }
}
