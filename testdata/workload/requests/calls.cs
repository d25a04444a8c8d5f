// A client with calls in known states, for tests of the view of requests of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23)
// -out:calls.dll calls.cs client.cs
//
// It writes its own account as one line of JSON once all calls have been sent. A line lets it end.
using System;
using System.Diagnostics;

static class Program
{
    static void Main()
    {
        Client.Call(Supplier.Start(), 0);
        Account.Write(0);
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
