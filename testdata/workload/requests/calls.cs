// A client with calls in known states, for tests of the view of requests of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23)
// -out:calls.dll calls.cs
//
// It writes its own account as one line of JSON once all calls have been sent. A line lets it end.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

// The content of a request that is never whole.
class Slow : HttpContent
{
    static readonly TaskCompletionSource<int> never = new TaskCompletionSource<int>();

    internal static async Task<int> Find() { return await never.Task; }

    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext context)
    {
        await stream.FlushAsync();
        await Find();
    }

    protected override bool TryComputeLength(out long length)
    {
        length = 100;
        return true;
    }
}

static class Program
{
    static readonly List<object> kept = new List<object>();
    static readonly List<string> account = new List<string>();
    static int served;

    // Answers nothing, or a part for a path that asks for it.
    static void Serve(Socket socket)
    {
        byte[] bytes = new byte[4096];
        string text = "";
        while (!text.Contains("\r\n\r\n"))
        {
            int count = socket.Receive(bytes);
            if (count == 0) return;
            text += Encoding.ASCII.GetString(bytes, 0, count);
        }
        if (text.StartsWith("GET /part"))
            socket.Send(Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"));
        Interlocked.Increment(ref served);
        Thread.Sleep(Timeout.Infinite);
    }

    static void AwaitServed(int count)
    {
        while (Volatile.Read(ref served) < count) Thread.Sleep(5);
    }

    static string StartSupplier()
    {
        TcpListener listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        Thread acceptor = new Thread(() =>
        {
            while (true)
            {
                Socket socket = listener.AcceptSocket();
                kept.Add(socket);
                Thread thread = new Thread(() => Serve(socket));
                thread.IsBackground = true;
                thread.Start();
            }
        });
        acceptor.IsBackground = true;
        acceptor.Start();
        return "http://127.0.0.1:" + ((IPEndPoint)listener.LocalEndpoint).Port;
    }

    static async Task Fetch(HttpClient client, string url) { await client.GetStringAsync(url); }

    static async Task Post(HttpClient client, string url) { await client.PostAsync(url, new Slow()); }

    static HttpClient NewClient(int connections)
    {
        HttpClientHandler handler = new HttpClientHandler();
        handler.MaxConnectionsPerServer = connections;
        HttpClient client = new HttpClient(handler);
        client.Timeout = TimeSpan.FromHours(2);
        return client;
    }

    static void Add(string state, string method, string url, string code)
    {
        account.Add("{\"state\":\"" + state + "\",\"method\":\"" + method + "\",\"url\":\"" + url
            + "\",\"version\":\"1.1\",\"code\":\"" + code + "\",\"trace_id\":null}");
    }

    static void Main()
    {
        string supplier = StartSupplier();
        HttpClient narrow = NewClient(1);
        kept.Add(Fetch(narrow, supplier + "/narrow/1"));
        AwaitServed(1);
        kept.Add(Fetch(narrow, supplier + "/narrow/2"));
        kept.Add(Fetch(narrow, supplier + "/narrow/3"));
        kept.Add(Fetch(NewClient(1), supplier + "/part/1"));
        kept.Add(Post(NewClient(1), supplier + "/slow/1"));
        AwaitServed(3);
        Add("waiting for response", "GET", supplier + "/narrow/1", "Program.Fetch");
        Add("waiting for a connection", "GET", supplier + "/narrow/2", "Program.Fetch");
        Add("waiting for a connection", "GET", supplier + "/narrow/3", "Program.Fetch");
        Add("reading response", "GET", supplier + "/part/1", "Program.Fetch");
        Add("sending", "POST", supplier + "/slow/1", "Slow.Find");
        Console.WriteLine("{\"incoming\":[],\"outgoing\":[" + string.Join(",", account) + "],\"idle\":0}");
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
