// A program with commands of the stand-in for Microsoft.Data.SqlClient in known states.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23
// and to Microsoft.Data.SqlClient.dll) -out:standin.dll standin.cs
//
// It writes its own account as one line of JSON. A line lets it end.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Data.SqlClient;

static class Store
{
    internal static async Task Query(SqlCommand command) { await command.ExecuteReaderAsync(); }

    internal static async Task List(SqlDataReader reader) { while (await reader.ReadAsync()) { } }

    internal static void ChangeNow(SqlCommand command) { command.ExecuteNonQuery(); }
}

static class Program
{
    static readonly List<object> kept = new List<object>();
    static readonly List<string> account = new List<string>();

    static SqlCommand NewCommand(string server, string database, string text, int? timeout, int defaultTimeout, bool isOpen)
    {
        var options = new SqlConnectionOptions { _dataSource = server, _initialCatalog = database, _commandTimeout = defaultTimeout };
        var connection = new SqlConnection { _userConnectionOptions = options, _innerConnection = new DbConnectionClosed() };
        if (isOpen)
        {
            options._initialCatalog = "master";
            connection._innerConnection = new SqlConnectionInternal { CurrentDatabase = database, CurrentDataSource = server };
        }
        var session = new TdsParserStateObject { _timeoutTime = long.MaxValue };
        int seconds = timeout ?? defaultTimeout;
        if (seconds > 0) session._timeoutTime = DateTime.UtcNow.AddSeconds(seconds).ToFileTimeUtc();
        var command = new SqlCommand { _activeConnection = connection, _commandText = text, _commandTimeout = timeout, _stateObj = session };
        kept.Add(command);
        return command;
    }

    static void Add(string state, string server, string database, string text, bool isAged, string code)
    {
        account.Add("{\"state\":\"" + state + "\",\"server\":\"" + server + "\",\"database\":\"" + database
            + "\",\"text\":\"" + text + "\",\"aged\":" + (isAged ? "true" : "false") + ",\"code\":\"" + code + "\"}");
    }

    static SqlDataReader NewReader(string text, bool isClosed)
    {
        SqlCommand command = NewCommand("db2", "stock", text, 60, 30, true);
        var reader = new SqlDataReader { _command = command, _stateObj = command._stateObj, _metaDataConsumed = true, _isClosed = isClosed };
        command._stateObj = null;
        kept.Add(reader);
        return reader;
    }

    static void Main()
    {
        kept.Add(Store.Query(NewCommand("db1", "shop", "SELECT own", 7200, 30, true)));
        Add("executing", "db1", "shop", "SELECT own", true, "Store.Query");
        kept.Add(Store.Query(NewCommand("db1", "shop", "SELECT default", null, 600, true)));
        Add("executing", "db1", "shop", "SELECT default", true, "Store.Query");
        kept.Add(Store.Query(NewCommand("db3", "lost", "SELECT endless", 0, 30, false)));
        Add("executing", "db3", "lost", "SELECT endless", false, "Store.Query");
        kept.Add(Store.List(NewReader("SELECT rows", false)));
        Add("reading rows", "db2", "stock", "SELECT rows", false, "Store.List");
        SqlCommand change = NewCommand("db1", "shop", "DELETE now", 60, 30, true);
        var thread = new Thread(() => Store.ChangeNow(change));
        thread.IsBackground = true;
        thread.Start();
        Add("executing", "db1", "shop", "DELETE now", true, "Store.ChangeNow");
        // A result that nothing reads from, a closed one, and a command that has ended.
        NewReader("SELECT unread", false);
        NewReader("SELECT closed", true);
        NewCommand("db1", "shop", "SELECT ended", 60, 30, true)._stateObj = null;
        Console.WriteLine("{\"commands\":[" + string.Join(",", account) + "],\"unread\":1}");
        Console.ReadLine();
        Process.GetCurrentProcess().Kill();
    }
}
