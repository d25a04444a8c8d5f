// A program that holds a secret of its command line in every form, for tests of core dumps without it. Built with:
// mcs -unsafe -langversion:7.2 -out:secrets.dll secrets.cs
//
// "secrets.dll SECRET" holds the secret with other first letters in a string ("S-"), an array of characters ("C-")
// and of bytes ("B-"), in dead objects ("D-"), on a stack ("K-"), in native memory ("N-"), and in the message of an
// exception ("E-") that a thread handles, in fixed buffers of an object, of a structure in it, of the elements of an
// array and of a box ("F-"); writes "ready PID" and waits for a line. Each secret is upper case where
// the argument is lower case, so that no copy of the argument is one of them.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Secrets {
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
        public Inline Inner;
        public Inline[] Elements;
        public object Box;
    }

    static class Program {
        static Holder held;
        static Buffers buffers;
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
            Inline inline = new Inline(Make("F", secret));
            buffers = new Buffers { Inner = inline, Elements = new[] { inline, inline }, Box = inline };
            native = Marshal.StringToHGlobalUni(Make("N", secret));
        }

        static unsafe void Park(string secret) {
            string text = Make("K", secret);
            char* copy = stackalloc char[64];
            for (int i = 0; i < text.Length && i < 63; i++) copy[i] = text[i];
            try { throw new InvalidOperationException(Make("E", secret)); }
            catch (InvalidOperationException) { Parked.Set(); Thread.Sleep(Timeout.Infinite); }
            GC.KeepAlive(copy[0]);
        }

        static void Main(string[] arguments) {
            string secret = arguments[0];
            Hold(secret);
            new Thread(() => Park(secret)) { IsBackground = true, Name = "keeper" }.Start();
            Parked.WaitOne();
            Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
            Console.Out.Flush();
            Console.ReadLine();
            GC.KeepAlive(held);
            GC.KeepAlive(buffers);
        }
    }
}
