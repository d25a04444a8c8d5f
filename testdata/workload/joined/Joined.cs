// Work that one thread causes and another does, for views by task and by request: every method named Burn* says whose time it is.
// Each line on standard input is a round, answered "ok N"; the first line is "ready PID". Built with: mcs -optimize+ -out:joined.dll Joined.cs
//   N      N requests of each kind, at once, and a loop of continuations beside them
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

[EventSource(Name = "Workload-Requests")]
sealed class Requests : EventSource
{
    public static readonly Requests Log = new Requests();
    [Event(1)] public void RequestStart(int id, string url) { WriteEvent(1, id, url); }
    [Event(2)] public void RequestStop(int id) { WriteEvent(2, id); }
    [Event(3)] public void QueryStart(string table) { WriteEvent(3, table); }
    [Event(4)] public void QueryStop() { WriteEvent(4); }
}

static class Program
{
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnBefore(int ms) { Burn(ms); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnAfter(int ms) { Burn(ms); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnQuery(int ms) { Burn(ms); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnInTask(int ms) { Burn(ms); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnInLoop(int ms) { Burn(ms); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnForNobody(int ms) { Burn(ms); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Burn(int ms)
    {
        Stopwatch watch = Stopwatch.StartNew();
        while (watch.ElapsedMilliseconds < ms) { }
    }

    static async Task Handle(int id, string url, int ms)
    {
        Requests.Log.RequestStart(id, url);
        BurnBefore(ms);
        await Task.Delay(5);
        await Query(url.Substring(1), ms);
        await Task.Run(() => BurnInTask(ms));
        BurnAfter(ms);
        Requests.Log.RequestStop(id);
    }

    static async Task Query(string table, int ms)
    {
        Requests.Log.QueryStart(table);
        await Task.Yield();
        BurnQuery(ms);
        Requests.Log.QueryStop();
    }

    // Each continuation is what schedules the next one.
    static async Task Loop(int rounds)
    {
        for (int i = 0; i < rounds; i++)
        {
            await Task.Yield();
            BurnInLoop(1);
        }
    }

    static void Round(int n)
    {
        List<Task> tasks = new List<Task>();
        for (int i = 0; i < n; i++)
        {
            int id = i;
            tasks.Add(Task.Run(() => Handle(2 * id, "/fast", 20)));
            tasks.Add(Task.Run(() => Handle(2 * id + 1, "/slow", 60)));
        }
        tasks.Add(Loop(100 * n));
        Thread nobody = new Thread(() => BurnForNobody(100 * n));
        nobody.Start();
        nobody.Join();
        Task.WaitAll(tasks.ToArray());
    }

    static int Main()
    {
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        string line;
        while ((line = Console.ReadLine()) != null)
        {
            if (line == "quit") return 0;
            Round(int.Parse(line));
            Console.WriteLine("ok " + line);
        }
        return 0;
    }
}
