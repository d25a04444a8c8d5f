// A web server and its own client with requests in known states, for tests of the view of requests of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23
// and Microsoft.AspNetCore.App 9.0.1) -out:requests.dll requests.cs client.cs
//
// It writes its own account as one line of JSON once all requests have arrived. A line lets it end.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;

// The requests that have arrived at their handlers.
static class Arrivals
{
    static readonly ConcurrentDictionary<string, string> traces = new ConcurrentDictionary<string, string>();
    static int arrived;

    internal static void Add(string url)
    {
        traces[url] = Activity.Current.TraceId.ToHexString();
        Interlocked.Increment(ref arrived);
    }

    internal static void Await(int count)
    {
        while (Volatile.Read(ref arrived) < count) Thread.Sleep(5);
    }

    internal static string Trace(string url)
    {
        string trace;
        traces.TryGetValue(url, out trace);
        return trace;
    }
}

// Makes the server give each request an activity.
class Listeners : IObserver<DiagnosticListener>, IObserver<KeyValuePair<string, object>>
{
    public void OnNext(DiagnosticListener listener)
    {
        if (listener.Name == "Microsoft.AspNetCore")
            listener.Subscribe(this, name => name.StartsWith("Microsoft.AspNetCore.Hosting.HttpRequestIn"));
    }

    public void OnNext(KeyValuePair<string, object> happened) { }

    public void OnCompleted() { }

    public void OnError(Exception error) { }
}

static class Handlers
{
    internal static readonly object Gate = new object();
    internal static HttpClient CallClient;
    internal static string SupplierUrl;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Enter() { lock (Gate) { } }

    internal static Task Locked(HttpContext context)
    {
        Enter();
        return Task.CompletedTask;
    }

    // Blocks a thread that the server did not start the request on.
    internal static async Task LockedLater(HttpContext context)
    {
        await Task.Yield();
        Enter();
    }

    internal static async Task Awaiting(HttpContext context)
    {
        await Stock.Find();
    }

    internal static async Task Calling(HttpContext context)
    {
        await CallClient.GetStringAsync(SupplierUrl + context.Request.Path);
    }

    internal static async Task Reading(HttpContext context)
    {
        byte[] bytes = new byte[100];
        while (await context.Request.Body.ReadAsync(bytes, 0, bytes.Length) > 0) { }
    }

    internal static async Task Begun(HttpContext context)
    {
        await context.Response.WriteAsync("begun");
        await context.Response.Body.FlushAsync();
        await Stock.Find();
    }

    internal static async Task Writing(HttpContext context)
    {
        byte[] bytes = new byte[1 << 16];
        while (true) await context.Response.Body.WriteAsync(bytes, 0, bytes.Length);
    }

    internal static async Task Quick(HttpContext context)
    {
        await context.Response.WriteAsync("quick");
    }
}

static class Audit
{
    internal static async Task Invoke(HttpContext context, Func<Task> next)
    {
        Arrivals.Add(context.Request.Path + context.Request.QueryString);
        await next();
    }
}

static class Program
{
    static Task Handle(HttpContext context)
    {
        string path = context.Request.Path;
        if (path.StartsWith("/locked/later/")) return Handlers.LockedLater(context);
        if (path.StartsWith("/locked/")) return Handlers.Locked(context);
        if (path.StartsWith("/awaiting/")) return Handlers.Awaiting(context);
        if (path.StartsWith("/calling/")) return Handlers.Calling(context);
        if (path.StartsWith("/reading/")) return Handlers.Reading(context);
        if (path.StartsWith("/begun/")) return Handlers.Begun(context);
        if (path.StartsWith("/writing/")) return Handlers.Writing(context);
        return Handlers.Quick(context);
    }

    static Stream Send(int port, string text)
    {
        TcpClient client = new TcpClient("127.0.0.1", port);
        Client.Kept.Add(client);
        Stream stream = client.GetStream();
        byte[] bytes = Encoding.ASCII.GetBytes(text);
        stream.Write(bytes, 0, bytes.Length);
        return stream;
    }

    static void Get(int port, string url) { Send(port, "GET " + url + " HTTP/1.1\r\nHost: shop\r\n\r\n"); }

    static async Task Fetch2(HttpClient client, string url)
    {
        HttpRequestMessage request = new HttpRequestMessage(HttpMethod.Get, url);
        request.Version = new Version(2, 0);
        // .NET Core 3.1, which this is compiled against, does not have it: RequestVersionExact.
        PropertyInfo policy = typeof(HttpRequestMessage).GetProperty("VersionPolicy");
        policy.SetValue(request, Enum.ToObject(policy.PropertyType, 2));
        await client.SendAsync(request);
    }

    // .NET Core 3.1 does not have HttpClient.Send.
    static void Delete(string url)
    {
        MethodInfo send = typeof(HttpClient).GetMethod("Send", new Type[] { typeof(HttpRequestMessage) });
        Type type = typeof(Func<HttpClient, HttpRequestMessage, HttpResponseMessage>);
        Func<HttpClient, HttpRequestMessage, HttpResponseMessage> call =
            (Func<HttpClient, HttpRequestMessage, HttpResponseMessage>)Delegate.CreateDelegate(type, send);
        call(Client.New(1), new HttpRequestMessage(HttpMethod.Delete, url));
    }

    static IWebHost StartServer(HttpProtocols protocols)
    {
        IWebHost host = new WebHostBuilder()
            .UseKestrel(options =>
            {
                options.Limits.MinRequestBodyDataRate = null;
                options.Limits.MinResponseDataRate = null;
                options.Limits.RequestHeadersTimeout = TimeSpan.FromHours(2);
                options.Limits.KeepAliveTimeout = TimeSpan.FromHours(2);
                options.Listen(IPAddress.Loopback, 0, listen => listen.Protocols = protocols);
            })
            .Configure(app =>
            {
                app.Use(new Func<HttpContext, Func<Task>, Task>(Audit.Invoke));
                app.Run(Handle);
            })
            .Build();
        host.Start();
        Client.Kept.Add(host);
        return host;
    }

    static int Port(IWebHost host)
    {
        return new Uri(host.ServerFeatures.Get<IServerAddressesFeature>().Addresses.First()).Port;
    }

    static void Incoming(string state, string method, string url, string code, string version = "1.1")
    {
        Account.Incoming(state, method, url, code, Arrivals.Trace(url), version);
    }

    static void Main()
    {
        ThreadPool.SetMinThreads(32, 32);
        DiagnosticListener.AllListeners.Subscribe(new Listeners());
        Monitor.Enter(Handlers.Gate);
        Handlers.SupplierUrl = Supplier.Start();
        Handlers.CallClient = Client.New(100);
        int port = Port(StartServer(HttpProtocols.Http1));
        int port2 = Port(StartServer(HttpProtocols.Http2));
        string supplier = Handlers.SupplierUrl;

        for (int i = 1; i <= 3; i++)
        {
            // Connections without a request.
            Stream stream = Send(port, "GET /quick/" + i + " HTTP/1.1\r\nHost: shop\r\n\r\n");
            int ends = 0;
            // The last chunk of the answer.
            for (int last = -1; ends < 2; last = stream.ReadByte()) if (last == '0') { ends = stream.ReadByte() == '\r' ? 2 : 0; }
        }
        for (int i = 1; i <= 2; i++) Get(port, "/locked/" + i + "?key=" + i);
        for (int i = 1; i <= 2; i++) Get(port, "/locked/later/" + i);
        for (int i = 1; i <= 5; i++) Get(port, "/awaiting/" + i);
        for (int i = 1; i <= 4; i++) Get(port, "/calling/" + i);
        for (int i = 1; i <= 2; i++) Send(port, "POST /reading/" + i + " HTTP/1.1\r\nHost: shop\r\nContent-Length: 50\r\n\r\nabc");
        Get(port, "/begun/1");
        Get(port, "/writing/1");
        Send(port, "PUT /half/1 HTTP/1.1\r\nHost: sh");
        HttpClient two = Client.New(100);
        for (int i = 1; i <= 2; i++) Client.Kept.Add(Fetch2(two, "http://127.0.0.1:" + port2 + "/awaiting/two/" + i));
        Arrivals.Await(3 + 4 + 5 + 4 + 2 + 1 + 1 + 2);
        Supplier.Await(4);
        Client.Call(supplier, 4);
        Thread thread = new Thread(() => Delete(supplier + "/sync/1"));
        thread.Name = "caller";
        thread.IsBackground = true;
        thread.Start();
        Supplier.Await(8);

        for (int i = 1; i <= 2; i++) Incoming("handler", "GET", "/locked/" + i + "?key=" + i, "Handlers.Enter()");
        for (int i = 1; i <= 2; i++) Incoming("handler", "GET", "/locked/later/" + i, "Handlers.Enter()");
        for (int i = 1; i <= 5; i++) Incoming("handler", "GET", "/awaiting/" + i, "Stock.Find");
        for (int i = 1; i <= 4; i++) Incoming("handler", "GET", "/calling/" + i, "Handlers.Calling");
        for (int i = 1; i <= 2; i++) Incoming("reading body", "POST", "/reading/" + i, "Handlers.Reading");
        Incoming("responding", "GET", "/begun/1", "Stock.Find");
        Incoming("writing", "GET", "/writing/1", "Handlers.Writing");
        Incoming("reading", "PUT", "/half/1", null);
        for (int i = 1; i <= 2; i++) Incoming("handler", "GET", "/awaiting/two/" + i, "Stock.Find", "2");

        for (int i = 1; i <= 4; i++)
            Account.Outgoing("waiting for response", "GET", supplier + "/calling/" + i, "Handlers.Calling", Arrivals.Trace("/calling/" + i));
        for (int i = 1; i <= 2; i++)
            Account.Outgoing("waiting for response", "GET", "http://127.0.0.1:" + port2 + "/awaiting/two/" + i, "Program.Fetch2", null, "2");
        Account.Outgoing("waiting for response", "DELETE", supplier + "/sync/1", "Program.Delete(string)", null);
        Account.Write(3);
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
