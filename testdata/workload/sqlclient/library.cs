// Commands as Microsoft.Data.SqlClient 7.1 has them, without that library, of which no package could be had: types
// of the same names, with the fields that the view of requests reads. The text of dotnet/SqlClient is the source of
// names and fields; the assembly has the library's name, by which it is found.
// Built with: mcs -optimize+ -langversion:7.2 -nostdlib -noconfig (references to all of Microsoft.NETCore.App 3.1.23)
// -target:library -out:Microsoft.Data.SqlClient.dll library.cs
using System;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Microsoft.Data.SqlClient
{
    public class SqlConnectionOptions
    {
        public string _dataSource, _initialCatalog;
        public string _userID = "clerk", _password = "unsaid-words";
        public int _commandTimeout;
    }

    public class DbConnectionInternal { }

    public class DbConnectionClosed : DbConnectionInternal { }

    public class SqlConnectionInternal : DbConnectionInternal
    {
        public string CurrentDatabase { get; set; }
        public string CurrentDataSource { get; set; }
    }

    public class SqlConnection
    {
        public SqlConnectionOptions _userConnectionOptions;
        public DbConnectionInternal _innerConnection;
        public string _connectionString = "Password=unsaid-words";
    }

    public class TdsParserStateObject
    {
        public TaskCompletionSource<object> _networkPacketTaskSource, _writeCompletionSource;
        public long _timeoutTime;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public void ReadSni()
        {
            new ManualResetEventSlim().Wait();
            GC.KeepAlive(this);
        }
    }

    public class CommandCallContext<T>
    {
        public readonly TaskCompletionSource<T> _source = new TaskCompletionSource<T>();
        public AsyncCallback _callback;

        public static void Complete(Task<T> task, object context) { ((CommandCallContext<T>)context)._source.TrySetResult(task.Result); }

        public static void Call(Task<object> task, object context) { ((CommandCallContext<T>)context)._callback(task); }
    }

    public class SqlCommand
    {
        class AsyncState { public TaskCompletionSource<object> _cachedAsyncResult; }

        public SqlConnection _activeConnection;
        public string _commandText;
        public int? _commandTimeout;
        public TdsParserStateObject _stateObj;
        AsyncState _cachedAsyncState;

        public Task<SqlDataReader> ExecuteReaderAsync()
        {
            var context = new CommandCallContext<SqlDataReader>();
            Task<SqlDataReader>.Factory.FromAsync(Begin, End, context)
                .ContinueWith(CommandCallContext<SqlDataReader>.Complete, context, TaskScheduler.Default);
            return context._source.Task;
        }

        IAsyncResult Begin(AsyncCallback callback, object state)
        {
            var completion = new TaskCompletionSource<object>(state);
            _cachedAsyncState = new AsyncState();
            _cachedAsyncState._cachedAsyncResult = completion;
            var context = new CommandCallContext<SqlDataReader>();
            context._callback = callback;
            completion.Task.ContinueWith(CommandCallContext<SqlDataReader>.Call, context, TaskScheduler.Default);
            return completion.Task;
        }

        SqlDataReader End(IAsyncResult result) { return null; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public void ExecuteNonQuery()
        {
            _stateObj.ReadSni();
            GC.KeepAlive(this);
        }
    }

    public class SqlDataReader
    {
        public SqlCommand _command;
        public TdsParserStateObject _stateObj;
        public bool _isClosed, _metaDataConsumed;

        // With a method of the context in the place of a closure.
        public Task<bool> ReadAsync()
        {
            var context = new CommandCallContext<bool>();
            _stateObj._networkPacketTaskSource = new TaskCompletionSource<object>();
            _stateObj._networkPacketTaskSource.Task.ContinueWith(Read, context, TaskScheduler.Default);
            return context._source.Task;
        }

        static void Read(Task<object> task, object context) { ((CommandCallContext<bool>)context)._source.TrySetResult(true); }
    }
}
