// Requests and deadlocks with calls that .NET 11 suspends without state machines, as continuations.cs lays them
// out: the types of Kestrel and of HttpClient that the view of requests reads have the same names and fields.
// Built with: mcs -optimize+ -unsafe -langversion:7.2 -nostdlib -noconfig (references to all of
// Microsoft.NETCore.App 3.1.23) -out:requests.dll requests.cs continuations.cs
//
// It writes "ready" once its threads wait for one another. A line lets it end.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net.Http;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http;

namespace Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http
{
    enum RequestProcessingStatus { RequestPending, ParsingRequestLine, ParsingHeaders, AppStarted }

    enum HttpVersion { Unknown = -1, Http10, Http11 }

    enum HttpMethod { Get, Put }

    abstract class HttpProtocol
    {
        public RequestProcessingStatus _requestProcessingStatus = RequestProcessingStatus.AppStarted;
        public HttpVersion _httpVersion = HttpVersion.Http11;
        public HttpMethod Method = HttpMethod.Put;
        public string RawTarget;
        public void ProcessRequests() { Console.WriteLine("process"); }
    }

    class Http1Connection : HttpProtocol { }
}

namespace System.Net.Http
{
    class HttpConnection { public void SendAsync() { Console.WriteLine("send"); } }
}

static class Program
{
    public static class Stock { public static void Find() { Console.WriteLine("find"); } }
    public static class Shop { public static void Fetch() { Console.WriteLine("fetch"); } }

    static readonly List<object> kept = new List<object>();
    static readonly TaskCompletionSource<int> answer = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<int> stock = new TaskCompletionSource<int>();

    static Thread Start(string name, ThreadStart body)
    {
        Thread thread = new Thread(body);
        thread.Name = name;
        thread.IsBackground = true;
        thread.Start();
        return thread;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Enter(object gate) { lock (gate) { } }

    // A thread that holds what the task needs, which it waits for; the task's calls await one that a thread runs.
    static void Await(CountdownEvent ready)
    {
        object gate = new object();
        Start("holder", () =>
        {
            lock (gate)
            {
                Task run = new Task(() =>
                {
                    Thread.CurrentThread.Name = "runner";
                    ready.Signal();
                    Enter(gate);
                }, TaskCreationOptions.LongRunning);
                run.Start();
                Task suspended = Calls.Suspend(Calls.Suspend(run, new Call(typeof(Stock), "Find")), new Call(typeof(Shop), "Fetch"));
                kept.Add(suspended);
                ready.Signal();
                suspended.Wait();
            }
        });
    }

    // The calls of the task run on another thread.
    static void Dispatch(CountdownEvent ready)
    {
        object gate = new object();
        var task = new AsyncHelpers.RuntimeAsyncTask<int>(null);
        task.Body = () => Enter(gate);
        kept.Add(task);
        Start("waiter", () =>
        {
            lock (gate)
            {
                Start("dispatcher", () =>
                {
                    ready.Signal();
                    task.DispatchContinuations();
                });
                ready.Signal();
                task.Wait();
            }
        });
    }

    static void Main()
    {
        var connection = new Http1Connection { RawTarget = "/suspended/1" };
        kept.Add(Calls.Suspend(stock.Task, new Call(typeof(Stock), "Find"),
            new Call(typeof(HttpProtocol), "ProcessRequests", connection)));
        var request = new HttpRequestMessage(System.Net.Http.HttpMethod.Delete, "http://shop/suspended/2");
        kept.Add(Calls.Suspend(answer.Task, new Call(typeof(HttpConnection), "SendAsync", new HttpConnection(), request),
            new Call(typeof(Shop), "Fetch")));
        CountdownEvent ready = new CountdownEvent(4);
        Await(ready);
        Dispatch(ready);
        ready.Wait();
        Console.WriteLine("ready");
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
