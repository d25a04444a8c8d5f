// The client of both programs: its calls in known states, a server that answers them in part or not at all, and
// the account of them.
using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

static class Account
{
    static readonly List<string> incoming = new List<string>();
    static readonly List<string> outgoing = new List<string>();

    static string Quoted(string text) { return text == null ? "null" : "\"" + text + "\""; }

    static string Row(string state, string method, string url, string version, string code, string trace)
    {
        return "{\"state\":\"" + state + "\",\"method\":\"" + method + "\",\"url\":\"" + url + "\",\"version\":\""
            + version + "\",\"code\":" + Quoted(code) + ",\"trace_id\":" + Quoted(trace) + "}";
    }

    internal static void Incoming(string state, string method, string url, string code, string trace, string version = "1.1")
    {
        incoming.Add(Row(state, method, url, version, code, trace));
    }

    internal static void Outgoing(string state, string method, string url, string code, string trace = null, string version = "1.1")
    {
        outgoing.Add(Row(state, method, url, version, code, trace));
    }

    internal static void Write(int idle)
    {
        Console.WriteLine("{\"incoming\":[" + string.Join(",", incoming) + "],\"outgoing\":["
            + string.Join(",", outgoing) + "],\"idle\":" + idle + "}");
    }
}

static class Stock
{
    static readonly TaskCompletionSource<int> never = new TaskCompletionSource<int>();

    internal static async Task<int> Find() { return await never.Task; }
}

// The content of a request that is never whole.
class Slow : HttpContent
{
    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext context)
    {
        await stream.FlushAsync();
        await Stock.Find();
    }

    protected override bool TryComputeLength(out long length)
    {
        length = 100;
        return true;
    }
}

// Answers nothing, or a part for a path that asks for it.
static class Supplier
{
    static readonly List<object> kept = new List<object>();
    static int served;

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

    internal static void Await(int count)
    {
        while (Volatile.Read(ref served) < count) Thread.Sleep(5);
    }

    // Returns the URL of the server.
    internal static string Start()
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
}

static class Client
{
    internal static readonly List<object> Kept = new List<object>();

    internal static HttpClient New(int connections)
    {
        HttpClientHandler handler = new HttpClientHandler();
        handler.MaxConnectionsPerServer = connections;
        HttpClient client = new HttpClient(handler);
        client.Timeout = TimeSpan.FromHours(2);
        return client;
    }

    static async Task Fetch(HttpClient client, string url) { await client.GetStringAsync(url); }

    static async Task Post(HttpClient client, string url) { await client.PostAsync(url, new Slow()); }

    // Five calls in the states of calls; the supplier has served a number of others.
    internal static void Call(string supplier, int served)
    {
        HttpClient narrow = New(1);
        Kept.Add(Fetch(narrow, supplier + "/narrow/1"));
        Supplier.Await(served + 1);
        Kept.Add(Fetch(narrow, supplier + "/narrow/2"));
        Kept.Add(Fetch(narrow, supplier + "/narrow/3"));
        Kept.Add(Fetch(New(1), supplier + "/part/1"));
        Kept.Add(Post(New(1), supplier + "/slow/1"));
        Supplier.Await(served + 3);
        Account.Outgoing("waiting for response", "GET", supplier + "/narrow/1", "Client.Fetch");
        for (int i = 2; i <= 3; i++) Account.Outgoing("waiting for a connection", "GET", supplier + "/narrow/" + i, "Client.Fetch");
        Account.Outgoing("reading response", "GET", supplier + "/part/1", "Client.Fetch");
        Account.Outgoing("sending", "POST", supplier + "/slow/1", "Stock.Find");
    }
}
