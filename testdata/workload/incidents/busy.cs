// Work that costs more than it should. Argument: the incident, then `healthy` for its twin.
//   regex       Signup.IsValid backtracks through what a user typed
//   exceptions  Importer.ParseLine throws for every other line, and Importer.Import catches it
//   jit         Rules.Evaluate compiles an expression at every call
//   console     Audit.Log writes to the console under a lock: slow where standard output is read slowly
//   convoy      Till.Ring computes under a lock that eight threads want
using System;
using System.Linq.Expressions;
using System.Runtime.CompilerServices;
using System.Text.RegularExpressions;
using System.Threading;

namespace Shop
{
    static class Signup
    {
        static readonly Regex words = new Regex(@"^([a-zA-Z0-9]+\s?)*$");

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static bool IsValid(string name) { return words.IsMatch(name); }
    }

    static class Importer
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Import(string[] lines)
        {
            int sum = 0;
            foreach (string line in lines)
            {
                int value;
                if (Program.Healthy) { if (int.TryParse(line, out value)) sum += value; continue; }
                try { sum += ParseLine(line); }
                catch (FormatException) { sum--; }
            }
            return sum;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int ParseLine(string line)
        {
            int value;
            if (!int.TryParse(line, out value)) throw new FormatException("not a number: " + line);
            return value;
        }
    }

    static class Rules
    {
        static Func<int, int> compiled;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Evaluate(int input)
        {
            Func<int, int> rule = Program.Healthy ? compiled ?? (compiled = Compile(input)) : Compile(input);
            return rule(input);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static Func<int, int> Compile(int seed)
        {
            ParameterExpression x = Expression.Parameter(typeof(int), "x");
            Expression body = x;
            for (int i = 0; i < 300; i++)
                body = Expression.Condition(
                    Expression.LessThan(x, Expression.Constant(seed + i)),
                    Expression.Add(x, Expression.Constant(i)),
                    body);
            return Expression.Lambda<Func<int, int>>(body, x).Compile();
        }
    }

    static class Audit
    {
        static readonly object log = new object();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Log(string line) { lock (log) Console.WriteLine(line); }
    }

    static class Till
    {
        static readonly object drawer = new object();
        static double total;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Ring(int items)
        {
            double price = Program.Healthy ? Price(items) : 0;
            lock (drawer) total += Program.Healthy ? price : Price(items);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static double Price(int items)
        {
            double price = 1;
            for (int i = 0; i < items; i++) price = Math.Sqrt(price + i);
            return price;
        }
    }
}

static class Program
{
    public static bool Healthy;
    static long count;

    static void Work(Action action)
    {
        while (true) { action(); Interlocked.Increment(ref count); }
    }

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        string padding = new string('.', 180);
        int number = 0;
        Action action;
        int threads = 1;
        switch (arguments[0])
        {
            case "regex":
                // 22 letters and one that does not match: four million ways. The twin's name is as long.
                string name = "abcdefghijklmnopqrstuv" + (Healthy ? "w" : "!");
                action = () => { Shop.Signup.IsValid(name); Thread.Sleep(20); };
                break;
            case "exceptions":
                var lines = new string[1000];
                for (int i = 0; i < lines.Length; i++) lines[i] = i % 2 == 0 ? "" + i : "n/a";
                action = () => { Shop.Importer.Import(lines); Thread.Sleep(5); };
                break;
            case "jit": action = () => { Shop.Rules.Evaluate(++number % 100); Thread.Sleep(1); }; break;
            case "console":
                threads = 8;
                action = () => { Shop.Audit.Log("request " + Interlocked.Increment(ref number) + padding); Thread.Sleep(Healthy ? 2000 : 2); };
                break;
            case "convoy":
                threads = 8;
                action = () => { Shop.Till.Ring(100000); Thread.Sleep(1); };
                break;
            default: throw new ArgumentException(arguments[0]);
        }
        Console.WriteLine("started");
        for (int i = 0; i < threads; i++) new Thread(() => Work(action)) { Name = "worker-" + i, IsBackground = true }.Start();
        while (true) { Thread.Sleep(1000); if (arguments[0] != "console") Console.WriteLine("done " + Interlocked.Read(ref count)); }
    }
}
