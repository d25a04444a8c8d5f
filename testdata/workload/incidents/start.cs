// A slow start: `started` comes after half a minute. Argument: the incident, then `healthy` for its twin.
//   sleep  the static constructor of Catalog waits (for a service that is not there) in Catalog.Connect
//   work   the static constructor of Catalog computes in Catalog.Index
//   files  the static constructor of Catalog reads a file over and over in Catalog.Scan
using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Shop
{
    static class Catalog
    {
        static int entries;

        static Catalog()
        {
            if (Program.Healthy) entries = 1;
            else if (Program.Incident == "sleep") Connect();
            else if (Program.Incident == "work") Index();
            else if (Program.Incident == "files") Scan();
            else throw new ArgumentException(Program.Incident);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Connect() { for (int i = 0; i < 30; i++) Thread.Sleep(1000); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Index()
        {
            var watch = Stopwatch.StartNew();
            while (watch.ElapsedMilliseconds < 30000) for (int i = 0; i < 1000; i++) entries = entries * 31 + i;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Scan()
        {
            var watch = Stopwatch.StartNew();
            string path = Path.GetTempFileName();
            File.WriteAllBytes(path, new byte[4000]);
            while (watch.ElapsedMilliseconds < 30000) entries += File.ReadAllBytes(path).Length;
            File.Delete(path);
        }

        public static int Count() { return entries; }
    }
}

static class Program
{
    public static bool Healthy;
    public static string Incident;

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        Incident = arguments[0];
        var watch = Stopwatch.StartNew();
        Shop.Catalog.Count();
        Console.WriteLine("started");
        while (true) { Console.WriteLine("done " + watch.ElapsedMilliseconds); Thread.Sleep(1000); }
    }
}
