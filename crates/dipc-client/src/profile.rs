//! Named sets of providers for common questions, and the keywords of the runtime's own events, both with
//! dotnet-trace's names.

use dipc_wire::{Keywords, Level, ProviderConfig};

/// The provider of the runtime's own events.
pub const RUNTIME_PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";
/// The provider of log records.
const LOGGING: &str = "Microsoft-Extensions-Logging";
/// The provider that samples the stacks of managed threads.
pub const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// One provider of a [`Profile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileProvider {
    /// The provider's name.
    pub name: &'static str,
    /// The keywords to enable.
    pub keywords: Keywords,
    /// The level.
    pub level: Level,
    /// The argument string as sent; empty if the provider takes none.
    pub arguments: &'static str,
}

impl ProfileProvider {
    /// Returns the provider as part of a request.
    pub fn to_config(self) -> ProviderConfig {
        ProviderConfig {
            keywords: self.keywords,
            level: self.level,
            name: self.name.to_owned(),
            arguments: self.arguments.to_owned(),
        }
    }
}

/// A named set of providers, as `--profile` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The name that users type.
    pub name: &'static str,
    /// The purpose of the profile, in one or more lines.
    pub description: &'static str,
    /// The providers, in the order in which they are requested.
    pub providers: &'static [ProfileProvider],
    /// The rundown that suffices for this profile, if it is less than the runtime's default.
    pub rundown_keyword: Option<Keywords>,
}

impl Profile {
    /// Returns the profile with this name, in any case. Other names than these are unknown:
    ///
    /// | name | events |
    /// |---|---|
    /// | `dotnet-common` | collections, loading, compilation, exceptions and threads, at little cost |
    /// | `dotnet-sampled-thread-time` | stacks of managed threads, sampled |
    /// | `cpu` | both of these; `dipc trace` has the kernel sample the threads instead where it may |
    /// | `gc-verbose` | collections, and samples of allocations |
    /// | `gc-collect` | collections alone |
    /// | `live-alloc` | samples of allocations, and what survives each collection |
    /// | `database` | commands of ADO.NET and of Entity Framework |
    /// | `aspnet` | requests of ASP.NET with route and status, calls over HTTP, tasks, stacks |
    /// | `tasks` | tasks, awaits and items of the thread pool, with activity ids |
    /// | `async` | who awaits whom: tasks, asynchronous operations and when they run |
    /// | `all` | what `dipc profile` records: everything but `database` and single tasks |
    ///
    /// ```
    /// use dipc_client::{PROFILES, Profile};
    ///
    /// let profile = Profile::find("gc-collect").ok_or("unknown profile")?;
    /// assert_eq!(profile.providers[0].keywords, dipc_client::Keywords::GC);
    /// let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
    /// assert!(Profile::find("memory").is_none(), "use one of {names:?}");
    /// # Ok::<(), &str>(())
    /// ```
    pub fn find(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name.eq_ignore_ascii_case(name))
    }
}

/// The default profiles.
pub const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];

/// The name of the profile that requests the runtime's sampler in case the kernel's samples are not
/// permitted.
pub const CPU_PROFILE: &str = "cpu";

/// The name of the profile of everything, which requests the runtime's sampler as [`CPU_PROFILE`] does.
pub const ALL_PROFILE: &str = "all";

/// Every profile, in the order in which they are listed: [`Profile::find`] has a table of the names.
///
/// # Source
/// `dotnet-trace list-profiles` and the requests of dotnet-trace 10.0.750501; `database` is documented in
/// `docs/dotnet-trace-instructions.md` of the repository dotnet/diagnostics. `live-alloc`, `aspnet`, `tasks`,
/// `async` and `all` are our own.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "dotnet-common",
        description: "Lightweight .NET runtime diagnostics designed to stay low overhead.\n\
            Includes GC, AssemblyLoader, Loader, JIT, Exceptions, Threading, JittedMethodILToNativeMap, and Compilation events\n\
            Equivalent to --providers \"Microsoft-Windows-DotNETRuntime:0x100003801D:4\".",
        providers: &[runtime(Keywords(0x10_0003_801D), Level::INFORMATIONAL)],
        rundown_keyword: None,
    },
    Profile {
        name: "dotnet-sampled-thread-time",
        description: "Samples .NET thread stacks (about every millisecond) to estimate how much wall clock time code is using.",
        providers: &[ProfileProvider {
            name: SAMPLE_PROFILER,
            keywords: Keywords::SAMPLES,
            level: Level::INFORMATIONAL,
            arguments: "",
        }],
        rundown_keyword: None,
    },
    Profile {
        name: CPU_PROFILE,
        description: "CPU time of threads: dipc trace has the kernel sample them where it may, with native and kernel frames, and\n\
            otherwise the runtime, and says which and why. With the events of dotnet-common.",
        providers: &[
            runtime(Keywords(0x10_0003_801D), Level::INFORMATIONAL),
            source(SAMPLE_PROFILER, Keywords::SAMPLES, Level::INFORMATIONAL),
        ],
        rundown_keyword: None,
    },
    Profile {
        name: "gc-verbose",
        description: "Tracks GC collections and samples object allocations.",
        providers: &[runtime(Keywords(0x8003), Level::VERBOSE)],
        rundown_keyword: None,
    },
    Profile {
        name: "gc-collect",
        description: "Tracks GC collections only at very low overhead.",
        providers: &[
            runtime(Keywords::GC, Level::INFORMATIONAL),
            ProfileProvider {
                name: "Microsoft-Windows-DotNETRuntimePrivate",
                keywords: Keywords(0x1),
                level: Level::INFORMATIONAL,
                arguments: "",
            },
        ],
        rundown_keyword: Some(Keywords::GC),
    },
    Profile {
        name: "live-alloc",
        description: "Samples object allocations, and follows these objects through collections, for 'dipc report FILE topN --by live-alloc': what\n\
            is still in use, by the stack that allocated it. Collections take longer: each reports all that survives it.",
        // Ticks of allocations are verbose; from .NET 10 on objects are sampled at random.
        providers: &[runtime(LIVE_ALLOCATION_KEYWORDS, Level::VERBOSE)],
        rundown_keyword: None,
    },
    Profile {
        name: "database",
        description: "Captures ADO.NET and Entity Framework database commands",
        providers: &[
            ProfileProvider {
                name: "System.Threading.Tasks.TplEventSource",
                keywords: Keywords(0x80),
                level: Level::INFORMATIONAL,
                arguments: "",
            },
            ProfileProvider {
                name: "Microsoft-Diagnostics-DiagnosticSource",
                keywords: Keywords(0x3),
                level: Level::VERBOSE,
                arguments: DATABASE_ARGUMENTS,
            },
        ],
        rundown_keyword: None,
    },
    Profile {
        name: "aspnet",
        description: "Tells of each request of an ASP.NET server how long it took, its route and status, its calls over HTTP, and whether it\n\
            ran, waited or was queued, for 'dipc report FILE requests'. Samples stacks, too. Events of tasks make this costly for a busy server.",
        providers: &[
            source("Microsoft.AspNetCore.Hosting", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.Http", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.NameResolution", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.Sockets", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.Security", ALL_KEYWORDS, Level::INFORMATIONAL),
            ProfileProvider {
                name: LOGGING,
                // Messages as JSON.
                keywords: Keywords(0x8),
                level: Level::INFORMATIONAL,
                arguments: ROUTE_AND_STATUS_ARGUMENTS,
            },
            // The keywords of `tasks`, plus asynchronous operations.
            source("System.Threading.Tasks.TplEventSource", Keywords(0xEB), Level::VERBOSE),
            source("System.Diagnostics.Eventing.FrameworkEventSource", Keywords(0x12), Level::VERBOSE),
            // Collections, waits for locks, exceptions, threads of the pool.
            runtime(Keywords(0x1_C001), Level::INFORMATIONAL),
            source(SAMPLE_PROFILER, Keywords::SAMPLES, Level::INFORMATIONAL),
        ],
        rundown_keyword: None,
    },
    Profile {
        name: "tasks",
        description: "Tells which task, await or item of the thread pool made a thread do what it does, and gives activities ids that go with\n\
            the work, so that reports can join it (--by-task, --by-request). Name the EventSource of the requests as well, for ASP.NET\n\
            --providers Microsoft.AspNetCore.Hosting:FFFFFFFFFFFFFFFF:4.",
        providers: &[
            ProfileProvider {
                name: "System.Threading.Tasks.TplEventSource",
                // Transfers, tasks and their ends, synchronous work, activity ids that flow.
                keywords: Keywords(0xE3),
                level: Level::VERBOSE,
                arguments: "",
            },
            ProfileProvider {
                name: "System.Diagnostics.Eventing.FrameworkEventSource",
                // The thread pool's queue, and transfers between threads.
                keywords: Keywords(0x12),
                level: Level::VERBOSE,
                arguments: "",
            },
        ],
        rundown_keyword: None,
    },
    Profile {
        name: "async",
        description: "Tells who awaits whom and which task was started where, so that stacks can be shown as the awaits have them (--async).\n\
            Take it beside a profile that samples stacks, such as cpu: four or five events for each await that has to wait.",
        providers: &[
            // Tasks and their ends, asynchronous operations and when they run.
            source("System.Threading.Tasks.TplEventSource", Keywords(0x6A), Level::INFORMATIONAL),
            // From .NET 11 on: when threads resume, suspend and complete operations, and the methods of each.
            source(
                "System.Runtime.CompilerServices.AsyncProfilerEventSource",
                Keywords(0x584E),
                Level::INFORMATIONAL,
            ),
        ],
        rundown_keyword: None,
    },
    Profile {
        name: ALL_PROFILE,
        description: "Everything at once, as 'dipc profile' records it: CPU time, waits, allocations, locks, exceptions, collections, requests,\n\
            compiled methods and counters. The kernel samples threads where it may, and otherwise the runtime. Add tasks for single tasks.",
        providers: &[
            // Ticks of allocations and waits for handles are verbose.
            runtime(ALL_RUNTIME_KEYWORDS, Level::VERBOSE),
            source(SAMPLE_PROFILER, Keywords::SAMPLES, Level::INFORMATIONAL),
            ProfileProvider {
                name: "Microsoft.AspNetCore.Hosting",
                keywords: ALL_KEYWORDS,
                level: Level::INFORMATIONAL,
                arguments: EVERY_SECOND,
            },
            source("System.Net.Http", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.NameResolution", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.Sockets", ALL_KEYWORDS, Level::INFORMATIONAL),
            source("System.Net.Security", ALL_KEYWORDS, Level::INFORMATIONAL),
            ProfileProvider {
                name: LOGGING,
                keywords: Keywords(0x8),
                level: Level::INFORMATIONAL,
                arguments: ROUTE_AND_STATUS_ARGUMENTS,
            },
            // Activity ids flow with the work. Events of each task, as in `aspnet` and `tasks`, are costly.
            source("System.Threading.Tasks.TplEventSource", Keywords(0x80), Level::INFORMATIONAL),
            ProfileProvider {
                name: "System.Runtime",
                keywords: ALL_KEYWORDS,
                level: Level::INFORMATIONAL,
                arguments: EVERY_SECOND,
            },
        ],
        rundown_keyword: None,
    },
];

/// The keywords of `dotnet-common`, with locks, waits for handles (.NET 9) and sampled allocations (.NET 10).
const ALL_RUNTIME_KEYWORDS: Keywords = Keywords(0x10_0003_801D | 0x4000 | 0x400_0000_0000 | 0x800_0000_0000);

/// Collections and allocations, surviving and moved objects (`GCHeapSurvivalAndMovement`), sampled
/// allocations (.NET 10).
pub const LIVE_ALLOCATION_KEYWORDS: Keywords = Keywords(0x1 | 0x40_0000 | 0x800_0000_0000);

/// Counters are sent once a second.
const EVERY_SECOND: &str = "EventCounterIntervalSec=1";

/// Events of an EventSource without a keyword have high bits of their own, so all bits are requested.
const ALL_KEYWORDS: Keywords = Keywords::ALL;

/// Returns a provider that takes no arguments.
const fn source(name: &'static str, keywords: Keywords, level: Level) -> ProfileProvider {
    ProfileProvider { name, keywords, level, arguments: "" }
}

/// The log messages of ASP.NET with the route and the status of a request, which no event has.
const ROUTE_AND_STATUS_ARGUMENTS: &str = concat!(
    "FilterSpecs=\"",
    "Microsoft.AspNetCore.Hosting.Diagnostics:Information;",
    "Microsoft.AspNetCore.Routing.EndpointMiddleware:Information",
    "\""
);

/// Returns the runtime's own provider.
const fn runtime(keywords: Keywords, level: Level) -> ProfileProvider {
    ProfileProvider { name: RUNTIME_PROVIDER, keywords, level, arguments: "" }
}

/// The events that `Microsoft-Diagnostics-DiagnosticSource` is asked to forward: the start and the end of
/// each command of ADO.NET and of Entity Framework, with the properties that distinguish commands. The
/// runtime parses it as lines.
const DATABASE_ARGUMENTS: &str = concat!(
    "FilterAndPayloadSpecs=\"",
    "SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:",
    "-Command;Command.CommandText;ConnectionId;Operation;Command.Connection.ServerVersion;Command.CommandTimeout;",
    "Command.CommandType;Command.Connection.ConnectionString;Command.Connection.Database;Command.Connection.DataSource;",
    "Command.Connection.PacketSize\r\n",
    "SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:\r\n",
    "Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:",
    "-Command.CommandText;Command;ConnectionId;IsAsync;Command.Connection.ClientConnectionId;",
    "Command.Connection.ServerVersion;Command.CommandTimeout;Command.CommandType;Command.Connection.ConnectionString;",
    "Command.Connection.Database;Command.Connection.DataSource;Command.Connection.PacketSize\r\n",
    "Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:",
    "\""
);

/// The keywords of [`RUNTIME_PROVIDER`] by the names that `--clrevents` takes, in order of their bits.
///
/// # Source
/// The manifest of the runtime's events, `src/coreclr/vm/ClrEtwAll.man` of the repository dotnet/runtime; the
/// names are dotnet-trace's.
pub const CLR_KEYWORDS: &[(&str, Keywords)] = &[
    ("gc", Keywords(0x1)),
    ("gchandle", Keywords(0x2)),
    ("fusion", Keywords(0x4)),
    ("assemblyloader", Keywords(0x4)),
    ("loader", Keywords(0x8)),
    ("jit", Keywords(0x10)),
    ("ngen", Keywords(0x20)),
    ("startenumeration", Keywords(0x40)),
    ("endenumeration", Keywords(0x80)),
    ("security", Keywords(0x400)),
    ("appdomainresourcemanagement", Keywords(0x800)),
    ("jittracing", Keywords(0x1000)),
    ("interop", Keywords(0x2000)),
    ("contention", Keywords(0x4000)),
    ("exception", Keywords(0x8000)),
    ("threading", Keywords(0x1_0000)),
    ("jittedmethodiltonativemap", Keywords(0x2_0000)),
    ("overrideandsuppressngenevents", Keywords(0x4_0000)),
    ("type", Keywords(0x8_0000)),
    ("gcheapdump", Keywords(0x10_0000)),
    ("gcsampledobjectallocationhigh", Keywords(0x20_0000)),
    ("gcheapsurvivalandmovement", Keywords(0x40_0000)),
    ("gcheapcollect", Keywords(0x80_0000)),
    ("managedheapcollect", Keywords(0x80_0000)),
    // Misspelt in dotnet-trace, and therefore in its users' scripts.
    ("managedheadcollect", Keywords(0x80_0000)),
    ("gcheapandtypenames", Keywords(0x100_0000)),
    ("gcsampledobjectallocationlow", Keywords(0x200_0000)),
    ("perftrack", Keywords(0x2000_0000)),
    ("stack", Keywords(0x4000_0000)),
    ("threadtransfer", Keywords(0x8000_0000)),
    ("debugger", Keywords(0x1_0000_0000)),
    ("monitoring", Keywords(0x2_0000_0000)),
    ("codesymbols", Keywords(0x4_0000_0000)),
    ("eventsource", Keywords(0x8_0000_0000)),
    ("compilation", Keywords(0x10_0000_0000)),
    ("compilationdiagnostic", Keywords(0x20_0000_0000)),
    ("methoddiagnostic", Keywords(0x40_0000_0000)),
    ("typediagnostic", Keywords(0x80_0000_0000)),
    ("jitinstrumentationdata", Keywords(0x100_0000_0000)),
    ("profiler", Keywords(0x200_0000_0000)),
    ("waithandle", Keywords(0x400_0000_0000)),
    ("allocationsampling", Keywords(0x800_0000_0000)),
];

/// Returns the keyword of the runtime's provider with a name, in any case.
///
/// ```
/// use dipc_client::{Keywords, clr_keyword};
///
/// assert_eq!(clr_keyword("GC"), Some(Keywords::GC));
/// assert_eq!(clr_keyword("allocationsampling"), Some(Keywords(0x800_0000_0000)));
/// assert_eq!(clr_keyword("memory"), None);
/// ```
pub fn clr_keyword(name: &str) -> Option<Keywords> {
    CLR_KEYWORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, bits)| bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Provider, keywords and level.
    type Sent = (&'static str, u64, u32);

    /// The requests that dotnet-trace 10.0.750501 sent for these profiles.
    const SENT: &[(&str, &[Sent])] = &[
        ("dotnet-common", &[("Microsoft-Windows-DotNETRuntime", 0x10_0003_801D, 4)]),
        ("dotnet-sampled-thread-time", &[("Microsoft-DotNETCore-SampleProfiler", 0xF000_0000_0000, 4)]),
        ("gc-verbose", &[("Microsoft-Windows-DotNETRuntime", 0x8003, 5)]),
        (
            "gc-collect",
            &[
                ("Microsoft-Windows-DotNETRuntime", 0x1, 4),
                ("Microsoft-Windows-DotNETRuntimePrivate", 0x1, 4),
            ],
        ),
    ];

    #[test]
    fn profiles_request_the_providers_of_dotnet_trace() {
        for (name, sent) in SENT {
            let profile = Profile::find(name).unwrap();
            let ours: Vec<_> = profile.providers.iter().map(|p| (p.name, p.keywords.0, p.level.0)).collect();
            assert_eq!(ours, *sent, "{name}");
            assert!(profile.providers.iter().all(|p| p.arguments.is_empty()), "{name}");
        }
        assert_eq!(Profile::find("gc-collect").unwrap().rundown_keyword, Some(Keywords::GC));
    }

    #[test]
    fn the_profile_everything_has_all_events_but_tasks() {
        let all = Profile::find(ALL_PROFILE).unwrap();
        let of_tasks = |name: &str| name.contains("TplEventSource") || name.contains("FrameworkEventSource");
        for name in ["dotnet-common", "cpu", "aspnet"] {
            let providers = Profile::find(name).unwrap().providers.iter();
            for provider in providers.filter(|provider| !of_tasks(provider.name)) {
                let found = all.providers.iter().find(|of_all| of_all.name == provider.name).unwrap();
                assert_eq!(found.keywords & provider.keywords, provider.keywords, "{name}: {provider:?}");
                assert!(found.level >= provider.level, "{name}: {provider:?}");
            }
        }
        let tasks = all.providers.iter().find(|provider| of_tasks(provider.name)).unwrap();
        assert_eq!((tasks.keywords, tasks.level), (Keywords(0x80), Level::INFORMATIONAL));
        for keyword in ["gc", "jit", "contention", "exception", "waithandle", "allocationsampling"] {
            assert!(ALL_RUNTIME_KEYWORDS.intersects(clr_keyword(keyword).unwrap()), "{keyword}");
        }
    }

    #[test]
    fn the_documentation_of_find_lists_every_profile() {
        let (before, _) = include_str!("profile.rs").split_once("pub fn find").unwrap();
        let row = |line: &'static str| line.trim().strip_prefix("/// | `")?.split_once('`');
        let listed: Vec<_> = before.lines().filter_map(row).map(|(name, _)| name).collect();
        let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn profile_names_are_found_in_any_case() {
        assert_eq!(Profile::find("GC-Verbose").map(|p| p.name), Some("gc-verbose"));
        assert_eq!(Profile::find("cpu-sampling"), None);
        assert!(DEFAULT_PROFILES.iter().all(|name| Profile::find(name).is_some()));
    }

    #[test]
    fn the_database_argument_is_four_lines_in_quotes() {
        let profile = Profile::find("database").unwrap();
        let arguments = profile.providers[1].arguments;
        let specs = arguments
            .strip_prefix("FilterAndPayloadSpecs=\"")
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap();
        let targets: Vec<_> = specs
            .split("\r\n")
            .map(|line| line.split_once(':').unwrap().0.split_once('@').unwrap().1)
            .collect();
        assert_eq!(targets, ["Activity1Start", "Activity1Stop", "Activity2Start", "Activity2Stop"]);
    }

    #[test]
    fn the_keywords_of_the_captured_clrevents_request() {
        let bits = ["gc", "Contention", "exception"]
            .iter()
            .map(|name| clr_keyword(name).unwrap())
            .fold(Keywords::NONE, |a, b| a | b);
        assert_eq!(bits, Keywords(0xC001));
        assert_eq!(clr_keyword("nosuch"), None);
    }

    #[test]
    fn every_keyword_is_one_bit_in_rising_order() {
        assert!(CLR_KEYWORDS.iter().all(|(_, bits)| bits.0.is_power_of_two()));
        assert!(CLR_KEYWORDS.is_sorted_by_key(|(_, bits)| bits));
    }
}
