//! The built-in counters of .NET and ASP.NET Core. Programs add their own.
//!
//! # Source
//! The events of .NET 10.0, and the sources of dotnet/runtime, dotnet/aspnetcore and dotnet/efcore.

/// An EventSource, or a Meter, with its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownProvider {
    /// The name of the provider.
    pub name: &'static str,
    /// True if it is a Meter rather than an EventSource.
    pub is_meter: bool,
    /// The first version that has it; empty for all since 3.1.
    pub since: &'static str,
    /// The counters, or instruments.
    pub counters: &'static [KnownCounter],
}

/// A counter, or an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownCounter {
    /// The name by which it is requested.
    pub name: &'static str,
    /// The kind of instrument; empty for EventCounters.
    pub kind: &'static str,
    /// The unit; may be empty.
    pub unit: &'static str,
    /// The display name, if this crate knows one.
    pub display_name: &'static str,
}

/// Returns the names of the EventSources that have EventCounters.
pub fn event_sources() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().filter(|provider| !provider.is_meter).map(|provider| provider.name)
}

const fn counter(name: &'static str, unit: &'static str, display_name: &'static str) -> KnownCounter {
    KnownCounter { name, kind: "", unit, display_name }
}

const fn instrument(name: &'static str, kind: &'static str, unit: &'static str) -> KnownCounter {
    KnownCounter { name, kind, unit, display_name: "" }
}

/// All providers, EventSources first.
///
/// ```
/// use clr_counters::known::PROVIDERS;
///
/// let runtime = PROVIDERS.iter().find(|it| it.name == "System.Runtime" && !it.is_meter).ok_or("unknown")?;
/// let cpu = runtime.counters.iter().find(|counter| counter.name == "cpu-usage").ok_or("unknown")?;
/// assert_eq!((cpu.display_name, cpu.unit), ("CPU Usage", "%"));
/// # Ok::<(), &str>(())
/// ```
pub const PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "System.Runtime",
        is_meter: false,
        since: "",
        counters: &[
            counter("cpu-usage", "%", "CPU Usage"),
            counter("working-set", "MB", "Working Set"),
            counter("gc-heap-size", "MB", "GC Heap Size"),
            counter("gen-0-gc-count", "", "Gen 0 GC Count"),
            counter("gen-1-gc-count", "", "Gen 1 GC Count"),
            counter("gen-2-gc-count", "", "Gen 2 GC Count"),
            counter("gen-0-gc-budget", "MB", "Gen 0 GC Budget"),
            counter("threadpool-thread-count", "", "ThreadPool Thread Count"),
            counter("monitor-lock-contention-count", "", "Monitor Lock Contention Count"),
            counter("threadpool-queue-length", "", "ThreadPool Queue Length"),
            counter("threadpool-completed-items-count", "", "ThreadPool Completed Work Item Count"),
            counter("alloc-rate", "B", "Allocation Rate"),
            counter("active-timer-count", "", "Number of Active Timers"),
            counter("gc-fragmentation", "%", "GC Fragmentation"),
            counter("gc-committed", "MB", "GC Committed Bytes"),
            counter("exception-count", "", "Exception Count"),
            counter("time-in-gc", "%", "% Time in GC since last GC"),
            counter("total-pause-time-by-gc", "ms", "Time paused by GC"),
            counter("gen-0-size", "B", "Gen 0 Size"),
            counter("gen-1-size", "B", "Gen 1 Size"),
            counter("gen-2-size", "B", "Gen 2 Size"),
            counter("loh-size", "B", "LOH Size"),
            counter("poh-size", "B", "POH (Pinned Object Heap) Size"),
            counter("assembly-count", "", "Number of Assemblies Loaded"),
            counter("il-bytes-jitted", "B", "IL Bytes Jitted"),
            counter("methods-jitted-count", "", "Number of Methods Jitted"),
            counter("time-in-jit", "ms", "Time spent in JIT"),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Hosting",
        is_meter: false,
        since: "",
        counters: &[
            counter("requests-per-second", "", ""),
            counter("total-requests", "", ""),
            counter("current-requests", "", ""),
            counter("failed-requests", "", ""),
        ],
    },
    KnownProvider {
        name: "Microsoft-AspNetCore-Server-Kestrel",
        is_meter: false,
        since: "5.0",
        counters: &[
            counter("connections-per-second", "", ""),
            counter("total-connections", "", ""),
            counter("tls-handshakes-per-second", "", ""),
            counter("total-tls-handshakes", "", ""),
            counter("current-tls-handshakes", "", ""),
            counter("failed-tls-handshakes", "", ""),
            counter("current-connections", "", ""),
            counter("connection-queue-length", "", ""),
            counter("request-queue-length", "", ""),
            counter("current-upgraded-requests", "", ""),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Http.Connections",
        is_meter: false,
        since: "",
        counters: &[
            counter("connections-started", "", ""),
            counter("connections-stopped", "", ""),
            counter("connections-timed-out", "", ""),
            counter("current-connections", "", ""),
            counter("connections-duration", "ms", ""),
        ],
    },
    KnownProvider {
        name: "System.Net.Http",
        is_meter: false,
        since: "5.0",
        counters: &[
            counter("requests-started", "", ""),
            counter("requests-started-rate", "", ""),
            counter("requests-failed", "", ""),
            counter("requests-failed-rate", "", ""),
            counter("current-requests", "", ""),
            counter("http11-connections-current-total", "", ""),
            counter("http20-connections-current-total", "", ""),
            counter("http30-connections-current-total", "", ""),
            counter("http11-requests-queue-duration", "ms", ""),
            counter("http20-requests-queue-duration", "ms", ""),
            counter("http30-requests-queue-duration", "ms", ""),
        ],
    },
    KnownProvider {
        name: "System.Net.NameResolution",
        is_meter: false,
        since: "5.0",
        counters: &[
            counter("dns-lookups-requested", "", ""),
            counter("current-dns-lookups", "", ""),
            counter("dns-lookups-duration", "ms", ""),
        ],
    },
    KnownProvider {
        name: "System.Net.Security",
        is_meter: false,
        since: "5.0",
        counters: &[
            counter("tls-handshake-rate", "", ""),
            counter("total-tls-handshakes", "", ""),
            counter("current-tls-handshakes", "", ""),
            counter("failed-tls-handshakes", "", ""),
            counter("all-tls-sessions-open", "", ""),
            counter("tls10-sessions-open", "", ""),
            counter("tls11-sessions-open", "", ""),
            counter("tls12-sessions-open", "", ""),
            counter("tls13-sessions-open", "", ""),
            counter("all-tls-handshake-duration", "ms", ""),
            counter("tls10-handshake-duration", "ms", ""),
            counter("tls11-handshake-duration", "ms", ""),
            counter("tls12-handshake-duration", "ms", ""),
            counter("tls13-handshake-duration", "ms", ""),
        ],
    },
    KnownProvider {
        name: "System.Net.Sockets",
        is_meter: false,
        since: "5.0",
        counters: &[
            counter("outgoing-connections-established", "", ""),
            counter("incoming-connections-established", "", ""),
            counter("current-outgoing-connect-attempts", "", ""),
            counter("bytes-received", "", ""),
            counter("bytes-sent", "", ""),
            counter("datagrams-received", "", ""),
            counter("datagrams-sent", "", ""),
        ],
    },
    KnownProvider {
        name: "Microsoft.EntityFrameworkCore",
        is_meter: false,
        since: "",
        counters: &[
            counter("active-db-contexts", "", ""),
            counter("total-queries", "", ""),
            counter("queries-per-second", "", ""),
            counter("total-save-changes", "", ""),
            counter("save-changes-per-second", "", ""),
            counter("compiled-query-cache-hit-rate", "%", ""),
            counter("total-execution-strategy-operation-failures", "", ""),
            counter("execution-strategy-operation-failures-per-second", "", ""),
            counter("total-optimistic-concurrency-failures", "", ""),
            counter("optimistic-concurrency-failures-per-second", "", ""),
        ],
    },
    KnownProvider {
        name: "System.Runtime",
        is_meter: true,
        since: "9.0",
        counters: &[
            instrument("dotnet.process.cpu.time", "ObservableCounter", "s"),
            instrument("dotnet.process.cpu.count", "ObservableUpDownCounter", "{cpu}"),
            instrument("dotnet.process.memory.working_set", "ObservableUpDownCounter", "By"),
            instrument("dotnet.gc.collections", "ObservableCounter", "{collection}"),
            instrument("dotnet.gc.heap.total_allocated", "ObservableCounter", "By"),
            instrument("dotnet.gc.last_collection.memory.committed_size", "ObservableUpDownCounter", "By"),
            instrument("dotnet.gc.last_collection.heap.size", "ObservableUpDownCounter", "By"),
            instrument("dotnet.gc.last_collection.heap.fragmentation.size", "ObservableUpDownCounter", "By"),
            instrument("dotnet.gc.pause.time", "ObservableCounter", "s"),
            instrument("dotnet.jit.compiled_il.size", "ObservableCounter", "By"),
            instrument("dotnet.jit.compiled_methods", "ObservableCounter", "{method}"),
            instrument("dotnet.jit.compilation.time", "ObservableCounter", "s"),
            instrument("dotnet.monitor.lock_contentions", "ObservableCounter", "{contention}"),
            instrument("dotnet.thread_pool.thread.count", "ObservableCounter", "{thread}"),
            instrument("dotnet.thread_pool.work_item.count", "ObservableCounter", "{work_item}"),
            instrument("dotnet.thread_pool.queue.length", "ObservableCounter", "{work_item}"),
            instrument("dotnet.timer.count", "ObservableUpDownCounter", "{timer}"),
            instrument("dotnet.assembly.count", "ObservableUpDownCounter", "{assembly}"),
            instrument("dotnet.exceptions", "Counter", "{exception}"),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Hosting",
        is_meter: true,
        since: "8.0",
        counters: &[
            instrument("http.server.request.duration", "Histogram", "s"),
            instrument("http.server.active_requests", "UpDownCounter", "{request}"),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Routing",
        is_meter: true,
        since: "8.0",
        counters: &[instrument("aspnetcore.routing.match_attempts", "Counter", "{match_attempt}")],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Diagnostics",
        is_meter: true,
        since: "8.0",
        counters: &[instrument("aspnetcore.diagnostics.exceptions", "Counter", "{exception}")],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.RateLimiting",
        is_meter: true,
        since: "8.0",
        counters: &[
            instrument("aspnetcore.rate_limiting.active_request_leases", "UpDownCounter", "{request}"),
            instrument("aspnetcore.rate_limiting.request_lease.duration", "Histogram", "s"),
            instrument("aspnetcore.rate_limiting.queued_requests", "UpDownCounter", "{request}"),
            instrument("aspnetcore.rate_limiting.request.time_in_queue", "Histogram", "s"),
            instrument("aspnetcore.rate_limiting.requests", "Counter", "{request}"),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Server.Kestrel",
        is_meter: true,
        since: "8.0",
        counters: &[
            instrument("kestrel.active_connections", "UpDownCounter", "{connection}"),
            instrument("kestrel.connection.duration", "Histogram", "s"),
            instrument("kestrel.rejected_connections", "Counter", "{connection}"),
            instrument("kestrel.queued_connections", "UpDownCounter", "{connection}"),
            instrument("kestrel.queued_requests", "UpDownCounter", "{request}"),
            instrument("kestrel.upgraded_connections", "UpDownCounter", "{connection}"),
            instrument("kestrel.tls_handshake.duration", "Histogram", "s"),
            instrument("kestrel.active_tls_handshakes", "UpDownCounter", "{handshake}"),
        ],
    },
    KnownProvider {
        name: "Microsoft.AspNetCore.Http.Connections",
        is_meter: true,
        since: "8.0",
        counters: &[
            instrument("signalr.server.connection.duration", "Histogram", "s"),
            instrument("signalr.server.active_connections", "UpDownCounter", "{connection}"),
        ],
    },
    KnownProvider {
        name: "System.Net.Http",
        is_meter: true,
        since: "8.0",
        counters: &[
            instrument("http.client.request.duration", "Histogram", "s"),
            instrument("http.client.request.time_in_queue", "Histogram", "s"),
            instrument("http.client.connection.duration", "Histogram", "s"),
            instrument("http.client.open_connections", "UpDownCounter", "{connection}"),
            instrument("http.client.active_requests", "UpDownCounter", "{request}"),
        ],
    },
    KnownProvider {
        name: "System.Net.NameResolution",
        is_meter: true,
        since: "8.0",
        counters: &[instrument("dns.lookup.duration", "Histogram", "s")],
    },
    KnownProvider {
        name: "Microsoft.EntityFrameworkCore",
        is_meter: true,
        since: "EF 9",
        counters: &[
            instrument("microsoft.entityframeworkcore.active_dbcontexts", "ObservableUpDownCounter", ""),
            instrument("microsoft.entityframeworkcore.queries", "ObservableCounter", ""),
            instrument("microsoft.entityframeworkcore.savechanges", "ObservableCounter", ""),
            instrument("microsoft.entityframeworkcore.compiled_query_cache_hit_rate", "Gauge", "%"),
            instrument(
                "microsoft.entityframeworkcore.execution_strategy_operation_failures",
                "ObservableCounter",
                "",
            ),
            instrument(
                "microsoft.entityframeworkcore.optimistic_concurrency_failures",
                "ObservableCounter",
                "",
            ),
        ],
    },
];
