// Calls to a server of its own. Argument: the incident, then `healthy` for its twin.
//   slow     Billing.ChargeAsync calls a server that answers after 2 s
//   connect  Billing.ChargeAsync calls a port at which connections are not accepted: each call ends after 3 s
//   refused  Billing.ChargeAsync calls a port at which nobody listens
//   pool     Billing.ChargeAsync may have two connections, and 20 callers wait for them
// The twin calls a server that answers within 20 ms, over as many connections as there are calls.
// Built with: mcs -r:System.Net.Http.dll -out:calls.dll calls.cs
using System;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Shop
{
    static class Server
    {
        public static int Listen(int delay)
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            var thread = new Thread(() => { while (true) AnswerAsync(listener.AcceptTcpClient(), delay).ConfigureAwait(false); });
            thread.Name = "server";
            thread.IsBackground = true;
            thread.Start();
            return ((IPEndPoint)listener.LocalEndpoint).Port;
        }

        static async Task AnswerAsync(TcpClient client, int delay)
        {
            NetworkStream stream = client.GetStream();
            var request = new byte[4096];
            byte[] answer = Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            while (await stream.ReadAsync(request, 0, request.Length) > 0)
            {
                await Task.Delay(delay);
                await stream.WriteAsync(answer, 0, answer.Length);
            }
        }

        // The queue of a socket that accepts nothing is full after a few connections; the kernel drops the next.
        public static int ListenWithoutAccepting()
        {
            var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            socket.Listen(1);
            int port = ((IPEndPoint)socket.LocalEndPoint).Port;
            for (int i = 0; i < 4; i++)
            {
                var filler = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                filler.ConnectAsync(IPAddress.Loopback, port);
                kept[i] = filler;
            }
            kept[4] = socket;
            return port;
        }

        static readonly Socket[] kept = new Socket[5];
    }

    static class Billing
    {
        public static HttpClient Client;
        public static long Charged, Failed;

        public static async Task ChargeAsync(string address)
        {
            try { await Client.GetStringAsync(address); Interlocked.Increment(ref Charged); }
            catch (HttpRequestException) { Interlocked.Increment(ref Failed); }
            catch (OperationCanceledException) { Interlocked.Increment(ref Failed); }
        }
    }

    static class Checkout
    {
        public static async Task CustomerAsync(string address)
        {
            while (true) { await Billing.ChargeAsync(address); await Task.Delay(100); }
        }
    }
}

static class Program
{
    static void Main(string[] arguments)
    {
        bool healthy = arguments.Length > 1 && arguments[1] == "healthy";
        string incident = arguments[0];
        int port;
        var handler = new HttpClientHandler { UseProxy = false };
        if (healthy) port = Shop.Server.Listen(10);
        else if (incident == "slow") port = Shop.Server.Listen(2000);
        else if (incident == "connect") port = Shop.Server.ListenWithoutAccepting();
        else if (incident == "refused") port = 9;
        else if (incident == "pool") { port = Shop.Server.Listen(100); handler.MaxConnectionsPerServer = 2; }
        else throw new ArgumentException(incident);
        Shop.Billing.Client = new HttpClient(handler);
        if (incident == "connect") Shop.Billing.Client.Timeout = TimeSpan.FromSeconds(3);
        Console.WriteLine("started");
        for (int i = 0; i < 20; i++) Shop.Checkout.CustomerAsync("http://127.0.0.1:" + port + "/charge").ConfigureAwait(false);
        while (true)
        {
            Thread.Sleep(1000);
            Console.WriteLine("done " + Interlocked.Read(ref Shop.Billing.Charged) + ", failed " + Interlocked.Read(ref Shop.Billing.Failed));
        }
    }
}
