// A client of SQL Server with commands in known states, for tests of the view of requests of a dump.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23
// and to System.Data.SqlClient 4.6) -out:commands.dll commands.cs server.cs
//
// It writes its own account as one line of JSON once the server holds all commands. A line lets it end.
using System;
using System.Collections.Generic;
using System.Data.SqlClient;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

static class Store
{
    // Awaits the answer to a command.
    internal static async Task Change(SqlCommand command) { await command.ExecuteNonQueryAsync(); }

    internal static async Task<object> Find(SqlCommand command) { return await command.ExecuteScalarAsync(); }

    internal static async Task Query(SqlCommand command)
    {
        using (SqlDataReader reader = await command.ExecuteReaderAsync()) await reader.ReadAsync();
    }

    // Awaits the second row.
    internal static async Task List(SqlCommand command)
    {
        using (SqlDataReader reader = await command.ExecuteReaderAsync())
            while (await reader.ReadAsync()) { }
    }

    internal static void ChangeNow(SqlCommand command) { command.ExecuteNonQuery(); }

    internal static void QueryNow(SqlCommand command) { command.ExecuteReader().Read(); }

    // Blocks a thread by an asynchronous call.
    internal static void WaitNow(SqlCommand command) { command.ExecuteNonQueryAsync().Wait(); }

    internal static void ListNow(SqlCommand command)
    {
        using (SqlDataReader reader = command.ExecuteReader())
            while (reader.Read()) { }
    }

    // A command for each row of another.
    internal static void JoinNow(SqlCommand rows, SqlCommand each)
    {
        using (SqlDataReader reader = rows.ExecuteReader())
            while (reader.Read()) each.ExecuteNonQuery();
    }
}

static class Cart
{
    internal static async Task Pay(SqlCommand command) { await Store.Change(command); }
}

static class Program
{
    static readonly List<object> kept = new List<object>();
    static readonly List<string> account = new List<string>();
    static Server server;

    static SqlCommand NewCommand(string database, string text, int timeout)
    {
        SqlConnection connection = new SqlConnection("Server=tcp:127.0.0.1," + server.Port + ";Database=" + database
            + ";User ID=clerk;Password=unsaid-words;Encrypt=false;Connect Timeout=600;Pooling=false");
        connection.Open();
        SqlCommand command = new SqlCommand(text, connection);
        command.CommandTimeout = timeout;
        kept.Add(command);
        return command;
    }

    static void Add(string state, string database, string text, bool isAged, string code)
    {
        account.Add("{\"state\":\"" + state + "\",\"server\":\"tcp:127.0.0.1," + server.Port + "\",\"database\":\""
            + database + "\",\"text\":\"" + text + "\",\"aged\":" + (isAged ? "true" : "false") + ",\"code\":\""
            + code + "\"}");
    }

    static void Await(string database, string text, string state, string code, int timeout, Func<SqlCommand, Task> run)
    {
        kept.Add(run(NewCommand(database, text, timeout)));
        Add(state, database, text, timeout > 0 && state == "executing", code);
    }

    static void Block(string database, string text, string state, string code, int timeout, Action<SqlCommand> run)
    {
        SqlCommand command = NewCommand(database, text, timeout);
        Thread thread = new Thread(() => run(command));
        thread.IsBackground = true;
        thread.Start();
        Add(state, database, text, timeout > 0 && state == "executing", code);
    }

    // Commands that have ended, and a result that is open and that is not read.
    static void End()
    {
        for (int i = 1; i <= 2; i++) NewCommand("shop", "quick " + i, 7200).ExecuteNonQuery();
        NewCommand("shop", "quick 3", 7200).ExecuteNonQueryAsync().Wait();
        SqlDataReader reader = NewCommand("shop", "rows, unread", 7200).ExecuteReader();
        reader.Read();
        kept.Add(reader);
    }

    static void Main()
    {
        server = new Server();
        End();
        Await("shop", "hold: UPDATE cart", "executing", "Store.Change", 7200, Cart.Pay);
        Await("shop", "hold: SELECT total", "executing", "Store.Find", 7200, Store.Find);
        Await("stock", "hold: SELECT items", "executing", "Store.Query", 0, Store.Query);
        Await("stock", "rows: SELECT prices", "reading rows", "Store.List", 7200, Store.List);
        Block("shop", "hold: DELETE carts", "executing", "Store.ChangeNow", 7200, Store.ChangeNow);
        Block("shop", "hold: SELECT orders", "executing", "Store.QueryNow", 7200, Store.QueryNow);
        Block("stock", "rows: SELECT shelves", "reading rows", "Store.ListNow", 7200, Store.ListNow);
        Block("shop", "hold: INSERT carts", "executing", "Store.WaitNow", 7200, Store.WaitNow);
        SqlCommand rows = NewCommand("stock", "rows, joined", 7200);
        Block("shop", "hold: UPDATE each", "executing", "Store.JoinNow", 7200, each => Store.JoinNow(rows, each));
        // With the three that have ended, the one that is not read, and the one with the rows.
        server.Await(4 + 9 + 1);
        Console.WriteLine("{\"commands\":[" + string.Join(",", account) + "],\"unread\":2}");
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
