//! Methods that tell of waits.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use crate::wait_role;

/// The role and the pattern of each.
pub(crate) static FRAMES: &[(u8, &str)] = &[
    // A worker of the pool that has nothing to do; `WaitCore` on Windows.
    (wait_role::SPINNING_WAIT, "System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.Wait*"),
    // The same before it sleeps: it uses a processor, and does no work.
    (wait_role::SPINNING_WAIT, "System.Private.CoreLib!System.Threading.LowLevelSpinWaiter.Wait*"),
    // Waits for events, processes and other handles.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.WaitHandle.Wait*"),
    // The same in a method of the runtime.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.WaitHandle.InternalWait*"),
    // Waits for a pulse.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Monitor.Wait"),
    // The same in a method of the runtime.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Monitor.ObjWait"),
    // Waits for an event.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.ManualResetEventSlim.Wait"),
    // Waits for a semaphore.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.SemaphoreSlim.Wait*"),
    // Waits for a count.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.CountdownEvent.Wait"),
    // Waits for tasks.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Tasks.Task.Wait*"),
    // The same, below the public methods.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Tasks.Task.InternalWait*"),
    // The same, below the public methods.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Tasks.Task.SpinThenBlockingWait"),
    // Sleeps.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Thread.Sleep*"),
    // Waits for the end of a thread.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Thread.Join*"),
    // Waits for a lock; 8 and 9 show its caller alone.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Monitor.Enter"),
    // Waits for a lock.
    (wait_role::WAIT, "System.Private.CoreLib!System.Threading.Monitor.Enter_Slowpath"),
    // Reads the console.
    (wait_role::WAIT, "System.Console!Interop+Sys.Read"),
    // Reads what has changed in watched folders.
    (wait_role::WAIT, "System.IO.FileSystem.Watcher!Interop+Sys.Read"),
    // The same.
    (wait_role::WAIT, "System.IO.FileSystem.Watcher!System.IO.FileSystemWatcher+RunningInstance.TryReadEvent"),
    // An `await`, or `GetResult`, that waits for a task.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Runtime.CompilerServices.TaskAwaiter*"),
    // The same.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Runtime.CompilerServices.ValueTaskAwaiter*"),
    // The same.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Runtime.CompilerServices.Configured*Awaiter*"),
    // The result of a task that is waited for.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Threading.Tasks.Task`1*.get_Result"),
    // The same.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Threading.Tasks.Task`1*.GetResultCore"),
    // A lock that is waited for by a handle.
    (wait_role::BETWEEN, "System.Private.CoreLib!System.Threading.Lock.*"),
    // A collection whose next item is waited for.
    (wait_role::BETWEEN, "System.Collections.Concurrent!System.Collections.Concurrent.BlockingCollection`1*"),
    // Workers of the pool.
    (wait_role::WAIT_FOR_WORK, "System.Private.CoreLib!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart"),
    // The thread that watches the pool.
    (wait_role::WAIT_FOR_WORK, "System.Private.CoreLib!System.Threading.PortableThreadPool+GateThread.GateThreadStart"),
    // Threads that wait for handles on behalf of the pool.
    (wait_role::WAIT_FOR_WORK, "System.Private.CoreLib!System.Threading.PortableThreadPool+WaitThread.WaitThreadStart"),
    // The thread of timers; it is native in 3.1.
    (wait_role::WAIT_FOR_WORK, "System.Private.CoreLib!System.Threading.TimerQueue.TimerThread"),
    // The thread of counters.
    (wait_role::WAIT_FOR_WORK, "System.Private.CoreLib!System.Diagnostics.Tracing.CounterGroup.PollForValues"),
    // Waits for a line of the console.
    (wait_role::WAIT_FOR_WORK, "System.Console!System.ConsolePal.Read"),
    // The thread that writes logs to the console.
    (wait_role::WAIT_FOR_WORK, "Microsoft.Extensions.Logging.Console!Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor.TryDequeue"),
    // The same.
    (wait_role::WAIT_FOR_WORK, "Microsoft.Extensions.Logging.Console!Microsoft.Extensions.Logging.Console.Internal.ConsoleLoggerProcessor.ProcessLogQueue"),
    // The first thread of a web server, until that shuts down.
    (wait_role::WAIT_FOR_WORK, "Microsoft.AspNetCore.Hosting!Microsoft.AspNetCore.Hosting.WebHostExtensions.Run"),
    // The thread that looks after a web server's connections each second.
    (wait_role::WAIT_FOR_WORK, "Microsoft.AspNetCore.Server.Kestrel.Core!Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat.TimerLoop"),
    // The first thread of a program with a host, until that shuts down.
    (wait_role::WAIT_FOR_WORK, "Microsoft.Extensions.Hosting.Abstractions!Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions.Run"),
    // The thread that watches folders.
    (wait_role::WAIT_FOR_WORK, "System.IO.FileSystem.Watcher!System.IO.FileSystemWatcher+RunningInstance.ProcessEvents"),
    // Threads that send telemetry.
    (wait_role::WAIT_FOR_WORK, "OpenTelemetry!*.ExporterProc"),
    // The first thread of a program whose `Main` is `async`.
    (wait_role::WAIT_FOR_WORK, "*.<Main>"),
    // Threads that wait for sockets: native code below it has no name.
    (wait_role::IDLE, "System.Net.Sockets!System.Net.Sockets.SocketAsyncEngine.EventLoop"),
    // The same on Windows.
    (wait_role::IDLE, "System.Private.CoreLib!System.Threading.PortableThreadPool+IOCompletionPoller.Poll"),
    // Threads of a web server that wait for sockets.
    (wait_role::IDLE, "Microsoft.AspNetCore.Server.Kestrel.Transport.Libuv!Microsoft.AspNetCore.Server.Kestrel.Transport.Libuv.Internal.Networking.LibuvFunctions.run"),
    // Waits for a line of the console.
    (wait_role::IDLE, "System.Console!System.ConsolePal.Read"),
    // Reads a file.
    (wait_role::BLOCKING_CALL, "System.Private.CoreLib!Interop+Sys.PRead*"),
    // Reads a file.
    (wait_role::BLOCKING_CALL, "System.Private.CoreLib!Interop+Sys.Read"),
    // Writes a file.
    (wait_role::BLOCKING_CALL, "System.Private.CoreLib!Interop+Sys.PWrite*"),
    // Writes a file.
    (wait_role::BLOCKING_CALL, "System.Private.CoreLib!Interop+Sys.Write"),
    // Looks at a file.
    (wait_role::BLOCKING_CALL, "System.Private.CoreLib!Interop+Sys.Stat"),
    // Asks for the address of a host.
    (wait_role::BLOCKING_CALL, "System.Net.NameResolution!Interop+Sys.GetHostEntryForName"),
    // Reads a socket.
    (wait_role::BLOCKING_CALL, "System.Net.Sockets!Interop+Sys.Receive*"),
    // Writes a socket.
    (wait_role::BLOCKING_CALL, "System.Net.Sockets!Interop+Sys.Send*"),
    // Reads or writes a socket.
    (wait_role::BLOCKING_CALL, "System.Net.Sockets!System.Net.Sockets.SocketAsyncContext.PerformSyncOperation"),
];
