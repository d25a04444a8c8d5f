// Finalizers. Argument: the incident, then `healthy` for its twin.
//   blocked  the finalizer of Attachment calls Attachment.Close, which wants a lock that Mailer.Deliver never gives back
//   slow     the finalizer of Attachment calls Attachment.Close, which sleeps for 200 ms
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Shop
{
    static class Mailer
    {
        public static readonly object Outbox = new object();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Deliver() { lock (Outbox) Thread.Sleep(Timeout.Infinite); }
    }

    sealed class Attachment
    {
        public static long Made, Closed;
        public static string Incident;
        public static readonly byte[] None = { };
        readonly byte[] bytes = new byte[4000];

        public Attachment() { Made++; bytes[0] = 1; }

        ~Attachment() { Close(); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Close()
        {
            if (Incident == "blocked") { lock (Mailer.Outbox) Closed++; }
            else if (Incident == "slow") { Thread.Sleep(200); Closed++; }
            else Closed++;
        }
    }
}

static class Program
{
    static byte[] garbage;

    static void Main(string[] arguments)
    {
        bool healthy = arguments.Length > 1 && arguments[1] == "healthy";
        Shop.Attachment.Incident = healthy ? "" : arguments[0];
        if (arguments[0] == "blocked" && !healthy)
            new Thread(Shop.Mailer.Deliver) { Name = "mailer", IsBackground = true }.Start();
        Thread.Sleep(100);
        Console.WriteLine("started");
        for (int n = 0; garbage != Shop.Attachment.None; n++)
        {
            // 1600 a second, 6 MB, until 400 MB are kept; and 30 MB of garbage, so that collections come.
            for (int i = 0; i < 40; i++)
            {
                if (Shop.Attachment.Made - Shop.Attachment.Closed < 100000) new Shop.Attachment();
                garbage = new byte[20000];
            }
            Thread.Sleep(25);
            if (n % 40 == 0) Console.WriteLine("made " + Shop.Attachment.Made + ", closed " + Shop.Attachment.Closed);
        }
    }
}
