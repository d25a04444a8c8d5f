// Channels in known states, with known methods that wait to write to them and to read from them, for tests of
// the view of channels of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to assemblies of 3.1.23:
// System.Private.CoreLib, System.Runtime, System.Console, System.Collections, System.Threading.Tasks and
// System.Threading.Channels) -out:channels.dll channels.cs
//
// It writes its own account as one line of JSON: for each channel its items, its capacity, and the methods that
// wait, by the type of its items. A line lets it end.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

class Order { public int Number; }
class Invoice { }
class Mail { }
class Page { }
class Tick { }
class Done { }

static class Channels
{
    static readonly List<object> Kept = new List<object>();

    // Each ends at once at an await that does not end.
    static async Task PlaceOrder(ChannelWriter<Order> writer, int number) { await writer.WriteAsync(new Order { Number = number }); }
    static async Task AwaitPlace(ChannelWriter<Order> writer) { await writer.WaitToWriteAsync(); }
    static async Task Bill(ChannelReader<Invoice> reader) { GC.KeepAlive(await reader.ReadAsync()); }
    static async Task BillAll(ChannelReader<Invoice> reader) { while (await reader.WaitToReadAsync()) { } }
    static async Task CancelledBill(ChannelReader<Invoice> reader, CancellationToken token) { GC.KeepAlive(await reader.ReadAsync(token)); }
    static async Task Send(ChannelReader<Mail> reader) { GC.KeepAlive(await reader.ReadAsync()); }
    static async Task Caller(ChannelReader<Mail> reader) { await Send(reader); }
    static async Task Render(ChannelReader<Page> reader) { await reader.WaitToReadAsync(); }

    static readonly List<string> Account = new List<string>();

    // Full, with three writers that have an item each, and one that waits for a place.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Orders()
    {
        var orders = Channel.CreateBounded<Order>(4);
        for (int number = 0; number < 4; number++) orders.Writer.TryWrite(new Order { Number = number });
        for (int number = 4; number < 7; number++) Kept.Add(PlaceOrder(orders.Writer, number));
        Kept.Add(AwaitPlace(orders.Writer));
        Kept.Add(orders);
        Account.Add("\"Order\":[4,4,{\"Channels.PlaceOrder\":3,\"Channels.AwaitPlace\":1},{}]");
    }

    // Empty, with two readers of an item, and one that waits for any. One more was cancelled.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Invoices()
    {
        var invoices = Channel.CreateUnbounded<Invoice>();
        var source = new CancellationTokenSource();
        Kept.Add(Bill(invoices.Reader));
        var cancelled = CancelledBill(invoices.Reader, source.Token);
        Kept.Add(Bill(invoices.Reader));
        Kept.Add(BillAll(invoices.Reader));
        source.Cancel();
        try { cancelled.Wait(); } catch (AggregateException) { }
        Kept.Add(invoices);
        Account.Add("\"Invoice\":[0,null,{},{\"Channels.Bill\":2,\"Channels.BillAll\":1}]");
    }

    // One reader at a time: one that reads, and one whose items nobody reads, more than an array of its queue has.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void OneReader()
    {
        var mails = Channel.CreateUnbounded<Mail>(new UnboundedChannelOptions { SingleReader = true });
        Kept.Add(Caller(mails.Reader));
        var pages = Channel.CreateUnbounded<Page>(new UnboundedChannelOptions { SingleReader = true });
        Kept.Add(Render(pages.Reader));
        var ticks = Channel.CreateUnbounded<Tick>(new UnboundedChannelOptions { SingleReader = true });
        for (int number = 0; number < 100; number++) ticks.Writer.TryWrite(new Tick());
        Tick tick;
        for (int number = 0; number < 7; number++) ticks.Reader.TryRead(out tick);
        Kept.AddRange(new object[] { mails, pages, ticks });
        Account.Add("\"Mail\":[0,null,{},{\"Channels.Send\":1}],\"Page\":[0,null,{},{\"Channels.Render\":1}],"
            + "\"Tick\":[93,null,{},{}]");
    }

    // Completed, with two items left.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Completed()
    {
        var done = Channel.CreateUnbounded<Done>();
        for (int number = 0; number < 2; number++) done.Writer.TryWrite(new Done());
        done.Writer.Complete();
        Kept.Add(done);
        Account.Add("\"Done\":[2,null,{},{}]");
    }

    static void Main()
    {
        foreach (Action make in new Action[] { Orders, Invoices, OneReader, Completed })
        {
            // A trimmed framework does not have all kinds.
            try { make(); } catch (MissingMethodException) { }
        }
        Console.WriteLine("{" + string.Join(",", Account) + "}");
        Console.ReadLine();
        GC.KeepAlive(Kept);
    }
}
