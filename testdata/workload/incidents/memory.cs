// Work for the collector. Argument: the incident, then `healthy` for its twin.
//   rate     Pricing.Quote allocates some hundred MB a second, of which a window survives
//   induced  Cache.Trim calls GC.Collect 40 times a second
//   loh      Thumbnails.Render allocates arrays of 1 to 3 MB, of which a window survives
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Shop
{
    sealed class Quote { public string Text; public decimal[] Steps; }

    static class Pricing
    {
        static readonly Quote[] window = new Quote[200000];
        static readonly Quote own = new Quote { Text = "", Steps = new decimal[8] };

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static decimal Quote(int item)
        {
            Quote quote = Program.Healthy ? own : new Quote { Text = new string('q', 40), Steps = new decimal[8] };
            for (int i = 0; i < 8; i++) quote.Steps[i] = item + i;
            if (!Program.Healthy) window[item % window.Length] = quote;
            return quote.Steps[item & 7];
        }
    }

    static class Cache
    {
        static readonly Dictionary<int, string> entries = new Dictionary<int, string>();

        public static void Fill() { for (int i = 0; i < 500000; i++) entries[i] = "entry " + i; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Trim() { entries.Remove(-1); if (!Program.Healthy) GC.Collect(); }
    }

    static class Thumbnails
    {
        static readonly byte[][] shown = new byte[30][];
        static readonly byte[] buffer = new byte[3 << 20];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Render(int picture)
        {
            int size = (1 << 20) * (1 + picture % 3) - 100;
            byte[] pixels = Program.Healthy ? buffer : new byte[size];
            for (int i = 0; i < size; i += 4096) pixels[i] = (byte)picture;
            if (!Program.Healthy) shown[picture % shown.Length] = pixels;
            return pixels[picture];
        }
    }
}

static class Program
{
    public static bool Healthy;

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        string incident = arguments[0];
        if (incident == "induced") Shop.Cache.Fill();
        Console.WriteLine("started");
        DateTime next = DateTime.UtcNow;
        for (int n = 0, start = 0; ; n++)
        {
            switch (incident)
            {
                // The twin does as much as one that allocates, and waits for as long as that collects.
                case "rate": for (int i = 0; i < 20000; i++) Shop.Pricing.Quote((n * 20000 + i) & int.MaxValue); if (Healthy || n % 4 == 0) Thread.Sleep(5); break;
                case "induced": Shop.Cache.Trim(); Thread.Sleep(15); break;
                case "loh": Shop.Thumbnails.Render(n & 0xffff); Thread.Sleep(1); break;
                default: throw new ArgumentException(incident);
            }
            if (DateTime.UtcNow < next) continue;
            next = DateTime.UtcNow.AddSeconds(1);
            Console.WriteLine("done " + (n - start) + ", collections " + GC.CollectionCount(0) + " " + GC.CollectionCount(1) + " " + GC.CollectionCount(2));
            start = n;
        }
    }
}
