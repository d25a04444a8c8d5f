// Something that grows, 20 or 40 a second until a bound. Argument: the incident, then `healthy` for its twin,
// which gives back what it took.
//   threads   Mailbox.Open starts a thread that waits forever
//   fds       Journal.Append opens a file and does not close it
//   sockets   Courier.Send connects and does not close the connection
//   timers    Lease.Renew makes ten timers and keeps them
//   dynamic   Formulas.Compile keeps a dynamic method for every formula
//   contexts  Plugins.Load loads an assembly into a context of its own, which stays
//   pinned    Receiver.Begin pins a buffer, with garbage in between
//   native    Codec.Open allocates 1 MB of native memory
//   managed   Sessions.Remember adds to a static dictionary
using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Shop
{
    static class Mailbox
    {
        static readonly ManualResetEvent mail = new ManualResetEvent(false);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Open(int number)
        {
            var thread = new Thread(Watch, 256 << 10) { Name = "mailbox-" + number, IsBackground = true };
            thread.Start();
        }

        static void Watch() { if (Program.Healthy) mail.WaitOne(20); else mail.WaitOne(); }
    }

    static class Journal
    {
        static readonly List<FileStream> open = new List<FileStream>();
        static readonly string path = Path.GetTempFileName();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Append(int number)
        {
            var file = new FileStream(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
            file.WriteByte((byte)number);
            file.Flush();
            if (Program.Healthy) file.Dispose(); else open.Add(file);
        }
    }

    static class Courier
    {
        static readonly TcpListener office = new TcpListener(IPAddress.Loopback, 0);
        static readonly List<TcpClient> open = new List<TcpClient>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Send(int number)
        {
            if (number == 0) office.Start();
            var client = new TcpClient();
            client.Connect(IPAddress.Loopback, ((IPEndPoint)office.LocalEndpoint).Port);
            client.GetStream().WriteByte((byte)number);
            TcpClient server = office.AcceptTcpClient();
            server.GetStream().ReadByte();
            server.Close();
            if (Program.Healthy) client.Close(); else open.Add(client);
        }
    }

    sealed class Lease
    {
        static readonly List<Lease> all = new List<Lease>();
        Timer expiry;
        int renewals;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Renew(int number)
        {
            for (int i = 0; i < 10; i++)
            {
                var lease = new Lease();
                lease.expiry = new Timer(_ => lease.renewals++, null, 60000, 60000);
                if (Program.Healthy) lease.expiry.Dispose(); else all.Add(lease);
            }
        }
    }

    static class Formulas
    {
        static readonly List<Func<int, int>> all = new List<Func<int, int>>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Compile(int number)
        {
            if (Program.Healthy && all.Count > 0) { all[0](number); return; }
            var method = new DynamicMethod("formula_" + number, typeof(int), new[] { typeof(int) });
            ILGenerator code = method.GetILGenerator();
            code.Emit(OpCodes.Ldarg_0);
            for (int i = 0; i < 20; i++) { code.Emit(OpCodes.Ldc_I4, number + i); code.Emit(OpCodes.Add); }
            code.Emit(OpCodes.Ret);
            var formula = (Func<int, int>)method.CreateDelegate(typeof(Func<int, int>));
            formula(number);
            all.Add(formula);
        }
    }

    static class Plugins
    {
        static readonly List<object> all = new List<object>();
        static readonly Type context = Type.GetType("System.Runtime.Loader.AssemblyLoadContext, System.Runtime.Loader");

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Load(int number)
        {
            object own = Activator.CreateInstance(context, "plugin-" + number, true);
            var load = context.GetMethod("LoadFromAssemblyPath");
            var assembly = (Assembly)load.Invoke(own, new object[] { typeof(Plugins).Assembly.Location });
            Activator.CreateInstance(assembly.GetType("Shop.Lease"), true);
            if (Program.Healthy) context.GetMethod("Unload").Invoke(own, null); else all.Add(own);
            // Collections come, by which the twin's contexts go.
            for (int i = 0; i < 20; i++) Receiver.Garbage = new byte[40000];
        }
    }

    static class Receiver
    {
        static readonly List<GCHandle> pins = new List<GCHandle>();
        public static byte[] Garbage;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Begin(int number)
        {
            for (int i = 0; i < 10; i++)
            {
                for (int j = 0; j < 20; j++) Garbage = new byte[1000];
                GCHandle pin = GCHandle.Alloc(new byte[4000], GCHandleType.Pinned);
                if (Program.Healthy) pin.Free(); else pins.Add(pin);
            }
        }
    }

    static class Codec
    {
        static readonly List<IntPtr> open = new List<IntPtr>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Open(int number)
        {
            IntPtr state = Marshal.AllocHGlobal(1 << 20);
            for (int i = 0; i < 1 << 20; i += 4096) Marshal.WriteByte(state, i, 1);
            if (Program.Healthy) Marshal.FreeHGlobal(state); else open.Add(state);
        }
    }

    sealed class Session { public readonly List<string> Items = new List<string>(); }

    static class Sessions
    {
        static readonly Dictionary<string, Session> all = new Dictionary<string, Session>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Remember(int number)
        {
            for (int i = 0; i < 20; i++)
            {
                var session = new Session();
                for (int j = 0; j < 20; j++) session.Items.Add("item " + number + " " + i + " " + j);
                all["user " + (Program.Healthy ? i : number * 20 + i)] = session;
            }
        }
    }
}

static class Program
{
    public static bool Healthy;

    static void Main(string[] arguments)
    {
        Healthy = arguments.Length > 1 && arguments[1] == "healthy";
        Action<int> step;
        int bound = 20000;
        switch (arguments[0])
        {
            case "threads": step = Shop.Mailbox.Open; bound = 2000; break;
            case "fds": step = Shop.Journal.Append; break;
            case "sockets": step = Shop.Courier.Send; break;
            case "timers": step = Shop.Lease.Renew; break;
            case "dynamic": step = Shop.Formulas.Compile; break;
            case "contexts": step = Shop.Plugins.Load; bound = 5000; break;
            case "pinned": step = Shop.Receiver.Begin; break;
            case "native": step = Shop.Codec.Open; bound = 1000; break;
            case "managed": step = Shop.Sessions.Remember; break;
            default: throw new ArgumentException(arguments[0]);
        }
        Console.WriteLine("started");
        for (int number = 0; Healthy || number < bound; number++)
        {
            step(number);
            if (number % 40 == 0) Console.WriteLine("done " + number);
            Thread.Sleep(arguments[0] == "native" || arguments[0] == "threads" ? 50 : 25);
        }
        Thread.Sleep(Timeout.Infinite);
    }
}
