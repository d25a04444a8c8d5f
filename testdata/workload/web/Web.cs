// A web server and a client in one, for reports of requests. Each line on standard input is a round, answered "ok N"; the first line is "ready PID".
//   N      N requests of each kind, two at a time
// Built with: mcs -optimize+ -nostdlib -noconfig (references to all of Microsoft.NETCore.App and Microsoft.AspNetCore.App 9.0.1) -out:web.dll Web.cs
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Net.Http;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

static class Program
{
    static readonly HttpClient client = new HttpClient();
    static string address;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BurnHere(int ms)
    {
        Stopwatch watch = Stopwatch.StartNew();
        while (watch.ElapsedMilliseconds < ms) { }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BlockHere(int ms) { Thread.Sleep(ms); }

    static async Task Hello(HttpContext context)
    {
        await context.Response.WriteAsync("hello " + context.Request.RouteValues["n"]);
    }

    static async Task Burn(HttpContext context)
    {
        BurnHere(Convert.ToInt32((string)context.Request.RouteValues["ms"]));
        await context.Response.WriteAsync("burnt");
    }

    static async Task Wait(HttpContext context)
    {
        await Task.Delay(Convert.ToInt32((string)context.Request.RouteValues["ms"]));
        BurnHere(2);
        await context.Response.WriteAsync("waited");
    }

    // Two calls at once, and one more.
    static async Task Fan(HttpContext context)
    {
        Task<string> first = client.GetStringAsync(address + "/wait/30");
        Task<string> second = client.GetStringAsync(address + "/wait/40");
        await Task.WhenAll(first, second);
        string third = await client.GetStringAsync(address + "/hello/7");
        BurnHere(5);
        await context.Response.WriteAsync(third);
    }

    static async Task Collect(HttpContext context)
    {
        GC.Collect();
        await context.Response.WriteAsync("collected");
    }

    static async Task Queue(HttpContext context)
    {
        await Task.Run(() => BurnHere(3));
        await context.Response.WriteAsync("done");
    }

    static Task Fail(HttpContext context) { throw new InvalidOperationException("on purpose"); }

    static async Task Lost(HttpContext context)
    {
        try { await client.GetStringAsync("http://127.0.0.1:1/nobody"); }
        catch (HttpRequestException) { context.Response.StatusCode = 502; }
    }

    static void Configure(IApplicationBuilder app)
    {
        app.UseRouting();
        app.UseEndpoints(routes =>
        {
            routes.MapGet("/hello/{n}", Hello);
            routes.MapGet("/burn/{ms}", Burn);
            routes.MapGet("/wait/{ms}", Wait);
            routes.MapGet("/fan", Fan);
            routes.MapGet("/collect", Collect);
            routes.MapGet("/queue", Queue);
            routes.MapGet("/fail", Fail);
            routes.MapGet("/lost", Lost);
        });
    }

    static async Task Round(int n)
    {
        string[] paths = { "/hello/1", "/hello/2", "/burn/5", "/wait/20", "/fan", "/collect", "/queue", "/fail", "/lost", "/nosuch" };
        for (int i = 0; i < n; i++)
        {
            for (int p = 0; p < paths.Length; p += 2)
            {
                Task<HttpResponseMessage> one = client.GetAsync(address + paths[p]);
                Task<HttpResponseMessage> other = client.GetAsync(address + paths[p + 1]);
                (await one).Dispose();
                (await other).Dispose();
            }
        }
    }

    static int Main()
    {
        IWebHost host = new WebHostBuilder()
            .UseKestrel().UseUrls("http://127.0.0.1:0")
            .ConfigureLogging(logging => logging.AddEventSourceLogger())
            .ConfigureServices(services => services.AddRouting())
            .Configure(Configure)
            .Build();
        host.Start();
        address = host.ServerFeatures.Get<IServerAddressesFeature>().Addresses.First();
        Round(1).Wait();
        Console.WriteLine("ready " + Process.GetCurrentProcess().Id);
        string line;
        while ((line = Console.ReadLine()) != null)
        {
            if (line == "quit") break;
            Round(Convert.ToInt32(line)).Wait();
            Console.WriteLine("ok " + line);
        }
        return 0;
    }
}
