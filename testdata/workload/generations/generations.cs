// A program with objects in known generations, for tests of heaps by generation. Built with:
// mcs -langversion:7.2 -out:generations.dll generations.cs
//
// It writes a line for each of its types, "TYPE GEN0 GEN1 GEN2": the number of its objects in each generation, as the
// runtime counts them; large and pinned objects are of generation 2. Then it writes "ready PID" and waits for a line.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Shop {
    class Old { public int Value; }
    class Middle { public int Value; }
    class Young { public int Value; }

    // Elements of large arrays, of arrays in the heap of pinned objects, and of pinned ones among others.
    struct Page { public long Number; }
    struct Cell { public long Number; }
    struct Slot { public long Number; }

    // In use.
    class Closed { public int Value; ~Closed() { Value = 0; } }

    // Not in use. The finalizer of the first one waits.
    class Leaked { public int Value; ~Leaked() { Program.Finalizing.Set(); Thread.Sleep(Timeout.Infinite); } }

    static class Program {
        public static readonly ManualResetEventSlim Finalizing = new ManualResetEventSlim();
        static Old[] old;
        static Middle[] middle;
        static Young[] young;
        static Closed[] closed;
        static Page[][] pages;
        static Array[] cells = new Array[5];
        static Slot[][] slots;

        static T[] Make<T>(int count) where T : new() {
            var all = new T[count];
            for (int i = 0; i < count; i++) all[i] = new T();
            return all;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Allocate() {
            old = Make<Old>(1000);
            closed = Make<Closed>(30);
            Make<Leaked>(7);
            // Ten of twenty large arrays of 160,000 bytes stay.
            pages = new Page[20][];
            for (int i = 0; i < 20; i++) pages[i] = new Page[20000];
            for (int i = 0; i < 20; i += 2) pages[i] = null;
            // Each hundredth of 2,000 arrays of 4,000 bytes stays, and is pinned.
            slots = new Slot[20][];
            for (int i = 0; i < 2000; i++) {
                var slot = new Slot[500];
                if (i % 100 != 50) continue;
                slots[i / 100] = slot;
                GCHandle.Alloc(slot, GCHandleType.Pinned);
            }
            // .NET 5 and later have a heap for pinned objects.
            var make = typeof(GC).GetMethod("AllocateArray");
            if (make == null) { cells = new Array[0]; return; }
            make = make.MakeGenericMethod(typeof(Cell));
            for (int i = 0; i < cells.Length; i++) cells[i] = (Array)make.Invoke(null, new object[] { 100, true });
        }

        static void Write(string name, Array all) {
            var counts = new int[3];
            foreach (object one in all) if (one != null) counts[GC.GetGeneration(one)]++;
            Console.WriteLine("Shop." + name + " " + counts[0] + " " + counts[1] + " " + counts[2]);
        }

        static int Main() {
            Allocate();
            for (int i = 0; i < 2; i++) GC.Collect();
            if (!Finalizing.Wait(60000)) return 1;
            GC.Collect();
            middle = Make<Middle>(500);
            GC.Collect(0);
            young = Make<Young>(200);
            Write("Old", old);
            Write("Middle", middle);
            Write("Young", young);
            Write("Closed", closed);
            Write("Page[]", pages);
            Write("Cell[]", cells);
            Write("Slot[]", slots);
            Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
            Console.Out.Flush();
            Console.ReadLine();
            return 0;
        }
    }
}
