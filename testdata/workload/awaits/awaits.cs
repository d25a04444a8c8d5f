// A program whose async methods wait for known things, for tests of chains of awaits.
// Built with: mcs -optimize -langversion:7.2 -out:awaits.dll awaits.cs
//
// "awaits.dll" starts them, writes "ready PID" and waits for a line.
//
// awaits10.dll is the same program for the assemblies of the single file of .NET 10.0.5, which were trimmed:
// it takes the place of azmcp.dll there. Built with these assemblies in the folder of the command:
// mcs -optimize -langversion:7.2 -define:TRIMMED -nostdlib -noconfig -out:awaits10.dll
//   -r:System.Private.CoreLib.dll -r:System.Runtime.dll -r:System.Console.dll -r:System.Net.Sockets.dll
//   -r:System.Net.Primitives.dll -r:System.Collections.dll awaits.cs
using System;
using System.Collections.Generic;
#if !TRIMMED
using System.Diagnostics;
#endif
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

static class Awaits
{
    static readonly TaskCompletionSource<int> shared = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<int> first = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<int> second = new TaskCompletionSource<int>();
    static readonly SemaphoreSlim semaphore = new SemaphoreSlim(0);
    static readonly List<Task> kept = new List<Task>();
    static readonly ManualResetEventSlim never = new ManualResetEventSlim();
    static Task[] knot = new Task[2];
    static readonly SemaphoreSlim tied = new SemaphoreSlim(0);

    // Fifty requests, each two methods deep, that one source holds up.
    static async Task<int> Load(int key) { var value = await shared.Task; return value + key; }
    static async Task Request(int key) { await Task.Yield(); var value = await Load(key); GC.KeepAlive(value); }

    // Three methods, and a timer of an hour.
    static async Task Sleep(int hours) { await Task.Delay(hours * 3600 * 1000); }
    static async Task Nap() { await Sleep(1); }
    static async Task Night() { await Nap(); }

    // A semaphore.
    static async Task Enter() { await semaphore.WaitAsync(); }

    // Two sources, joined.
    static async Task Part(Task<int> of) { await of; }
    static async Task All() { await Task.WhenAll(Part(first.Task), Part(second.Task)); }

    // A socket: the operation is the source of a ValueTask.
    static async Task<int> Receive(Socket socket) { return await socket.ReceiveAsync(new Memory<byte>(new byte[16]), SocketFlags.None, default(CancellationToken)); }
    static async Task Serve(Socket socket) { while (await Receive(socket) > 0) { } }

    // A thread that waits for a task, and a delegate that continues one.
    static async Task Work() { await Task.Run(() => never.Wait()); }
    static void Blocked() { Work().Wait(); }

    // Two methods that wait for each other.
    static async Task Tie(int other) { await tied.WaitAsync(); await knot[other]; }

    // One that has ended, and one that failed.
    static async Task Ended() { await Task.Yield(); }
    static async Task Failed() { await Task.Yield(); throw new InvalidOperationException("expected"); }

    static Socket Listen(out Socket client)
    {
        var listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        client = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        client.Connect(listener.LocalEndPoint);
#if TRIMMED
        return listener.AcceptAsync(CancellationToken.None).AsTask().Result;
#else
        return listener.Accept();
#endif
    }

    static void Main()
    {
        for (int i = 0; i < 50; i++) kept.Add(Request(i));
        kept.Add(Night());
        kept.Add(Enter());
        kept.Add(All());
        Socket client;
        var server = Listen(out client);
        kept.Add(Serve(server));
        var blocked = new Thread(Blocked) { Name = "waits-for-work", IsBackground = true };
        blocked.Start();
        knot[0] = Tie(1);
        knot[1] = Tie(0);
        tied.Release(2);
        var ended = Ended();
        ended.Wait();
        var failed = Failed();
        ((IAsyncResult)failed).AsyncWaitHandle.WaitOne();
        kept.Add(ended);
        kept.Add(failed);
        kept.Add(Task.Delay(3600 * 1000).ContinueWith(_ => Blocked()));
        Thread.Sleep(500);
#if TRIMMED
        Console.WriteLine("ready");
#else
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
#endif
        Console.Out.Flush();
        Console.ReadLine();
        GC.KeepAlive(client);
        GC.KeepAlive(server);
    }
}
