//! A process that is watched.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use dipc_client::dipc_transport::{self, ProcessState};
use dipc_client::{Error, ProcessInfo, ProviderConfig, Target, Uuid};
use linux_proc_stat::Container;
use nettrace_edit::Snapshot;

use crate::counters::SharedCounters;
use crate::filter::{ProcessFacts, cut};
use crate::filtered_sources::FilteredSources;
use crate::live_session::LostEvents;
use crate::owner_memory::OwnerMemory;
use crate::process_log::{ProcessLog, ProcessReport};
use crate::request_provider::http_provider;
use crate::system_process::SystemProcess;

/// A source of the last seconds of a process.
pub(crate) trait SnapshotSource: Send + Sync {
    /// Returns the current content; `None` without a session.
    ///
    /// # Errors
    /// If it cannot be copied.
    fn snapshot(&self) -> Option<Result<Snapshot, nettrace_edit::Error>>;
}

/// A process that is watched, from its first answer to its end.
pub struct Watched {
    /// The number in this monitor, which is not used for any other process.
    pub number: u32,
    /// The facts that filters compare.
    pub facts: ProcessFacts,
    /// The cookie of this run of the runtime; nil for .NET Core 3.1.
    pub uid: Uuid,
    /// The operating system as the runtime names it.
    pub operating_system: String,
    /// The processor architecture as the runtime names it.
    pub architecture: String,
    /// The product version of the runtime (.NET 6 and later).
    pub runtime_version: Option<String>,
    /// The shared session of its counters.
    pub counters: SharedCounters,
    /// The lost events of all processes.
    pub(crate) lost_events: LostEvents,
    /// The sessions that use EventSources with filters.
    pub(crate) filtered_sources: Arc<FilteredSources>,
    /// The source of its last seconds, if they are kept.
    pub(crate) last_seconds: OnceLock<Arc<dyn SnapshotSource>>,
    /// The readings of its memory.
    pub(crate) owner_memory: Arc<OwnerMemory>,
    target: Target,
    has_ended: Arc<AtomicBool>,
    /// Lines of ActivitySources that every request for spans has to have.
    source_lines: OnceLock<String>,
    /// The filter that the black box's request for log records has to have.
    log_filter: OnceLock<String>,
    container: Container,
    /// The attributes as a resource of OpenTelemetry, once they are known.
    pub(crate) attributes: OnceLock<Vec<(String, String)>>,
    /// The process as known to the system; `None` if only the runtime states its pid, which may be on another
    /// machine.
    system: Option<SystemProcess>,
    /// The directory for its dumps, which this program sees under the same path.
    dump_folder: Option<PathBuf>,
}

impl Watched {
    pub(crate) fn new(
        number: u32,
        target: Target,
        identity: Identity,
        lost_events: LostEvents,
        report: Option<ProcessReport>,
    ) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let Identity { facts, system, uid, operating_system, architecture, runtime_version } = identity;
        let log = ProcessLog { pid: facts.pid, process_name: facts.title().to_owned(), report };
        let ended = Arc::clone(&has_ended);
        let counters = SharedCounters::new(target.clone(), ended, lost_events.clone(), log.clone());
        let filtered_sources = Arc::new(FilteredSources::new(target.clone(), log));
        Self {
            number,
            facts,
            uid,
            operating_system,
            architecture,
            runtime_version,
            counters,
            lost_events,
            filtered_sources,
            last_seconds: OnceLock::new(),
            owner_memory: Arc::default(),
            target,
            has_ended,
            source_lines: OnceLock::new(),
            log_filter: OnceLock::new(),
            container: system
                .and_then(SystemProcess::pid)
                .and_then(|pid| Container::of_process(pid).ok())
                .unwrap_or_default(),
            attributes: OnceLock::new(),
            system,
            dump_folder: None,
        }
    }

    /// Sets the directory for its dumps.
    pub(crate) fn with_dump_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.dump_folder = folder;
        self
    }

    /// The directory for its dumps, which this program sees under the same path; `None` for the process's
    /// temporary directory.
    pub(crate) fn dump_folder(&self) -> Option<&Path> {
        self.dump_folder.as_deref()
    }

    /// Has every later session that asks for requests ask for these ActivitySources as well: the last
    /// session's argument is in force for all sessions of a process.
    pub(crate) fn set_source_lines(&self, lines: String) {
        // The lines are set once, when the process is identified.
        let _ = self.source_lines.set(lines);
    }

    /// Returns a provider as the sessions of this process ask for it.
    pub(crate) fn with_sources(&self, mut provider: ProviderConfig) -> ProviderConfig {
        if let Some(lines) = self.source_lines.get()
            && provider.arguments == http_provider().arguments
            && let Some(arguments) = provider.arguments.strip_suffix('"')
        {
            provider.arguments = format!("{arguments}\r\n{lines}\"");
        }
        provider
    }

    /// Has a later request of the black box for log records use this filter: the last session's filter is in
    /// force for all sessions of a process.
    pub(crate) fn set_log_filter(&self, arguments: String) {
        let _ = self.log_filter.set(arguments);
    }

    /// Returns the black box's provider of log records as its session has to ask for it.
    pub(crate) fn with_log_filter(&self, mut provider: ProviderConfig) -> ProviderConfig {
        if let Some(arguments) = self.log_filter.get() {
            provider.arguments.clone_from(arguments);
        }
        provider
    }

    /// The current pid in this system; `None` if the process has ended, or if only the runtime states a pid,
    /// which may be on another machine.
    pub fn system_pid(&self) -> Option<u32> {
        self.system?.pid()
    }

    /// The process by the system.
    pub(crate) const fn system(&self) -> Option<SystemProcess> {
        self.system
    }

    /// The state that keeps the process from answering, if the system shows it.
    pub fn obstacle(&self) -> Option<ProcessState> {
        let state = dipc_transport::process_state(self.system_pid()?).ok()?;
        state.is_unresponsive().then_some(state)
    }

    /// The container that the process is in.
    pub(crate) const fn container(&self) -> &Container {
        &self.container
    }

    /// The runtime, for commands.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The name for people: the name of the entry assembly if the process runs `dotnet`, otherwise its own.
    pub fn title(&self) -> &str {
        self.facts.title()
    }

    /// Returns true if the process has ended, or the monitor no longer watches it.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.counters.wake();
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("number", &self.number)
            .field("facts", &self.facts)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

/// The facts about a process that it gives in its first answer.
#[derive(Debug)]
pub(crate) struct Identity {
    facts: ProcessFacts,
    system: Option<SystemProcess>,
    uid: Uuid,
    operating_system: String,
    architecture: String,
    runtime_version: Option<String>,
}

impl Identity {
    pub(crate) const fn facts(&self) -> &ProcessFacts {
        &self.facts
    }

    /// Asks the runtime. `pid` and `name` are as shown by the system. A runtime that answers without a
    /// description (.NET Core 3.1 does not support it, and a command line may not fit a message) is described
    /// by the system alone.
    pub(crate) fn ask(target: &Target, pid: Option<u32>, name: Option<&str>) -> Result<Self, Error> {
        match target.info() {
            Ok(info) => Ok(Self::of(info, pid, name)),
            Err(error) if error.is_answer() && pid.is_some() => {
                Ok(Self::of_system(pid.unwrap_or_default(), name.unwrap_or_default()))
            }
            Err(error) => Err(error),
        }
    }

    fn of(info: ProcessInfo, pid: Option<u32>, name: Option<&str>) -> Self {
        let system = pid.and_then(|pid| SystemProcess::of(pid, Some(info.process_id)));
        let pid = system.and_then(SystemProcess::pid).or_else(|| u32::try_from(info.process_id).ok());
        let pid = pid.unwrap_or_default();
        let command_line = cut(info.command_line);
        // Otherwise the name belongs to a process that forwards the connections.
        let name = name.filter(|_| system.is_some());
        let name = name.map_or_else(|| program_name(&command_line).to_owned(), ToOwned::to_owned);
        Self {
            facts: ProcessFacts {
                pid,
                name,
                command_line: Some(command_line),
                entry_assembly: info.managed_entrypoint_assembly.map(cut),
            },
            system,
            uid: info.runtime_cookie,
            operating_system: info.os,
            architecture: info.arch,
            runtime_version: info.clr_version,
        }
    }

    fn of_system(pid: u32, name: &str) -> Self {
        Self {
            facts: ProcessFacts::of_system(pid, name.to_owned()),
            system: SystemProcess::of(pid, None),
            uid: Uuid::nil(),
            operating_system: system_name(std::env::consts::OS).to_owned(),
            architecture: architecture_name(std::env::consts::ARCH).to_owned(),
            runtime_version: None,
        }
    }
}

/// Returns the file name of the program at the start of a command line.
fn program_name(command_line: &str) -> &str {
    let program = command_line.split(' ').next().unwrap_or_default();
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

/// The name of a system as runtimes report it.
fn system_name(system: &str) -> &str {
    match system {
        "linux" => "Linux",
        "macos" => "macOS",
        "windows" => "Windows",
        _ => "Unknown",
    }
}

/// The name of an architecture as runtimes report it.
fn architecture_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "arm" => "arm32",
        "x86" => "x86",
        _ => "Unknown",
    }
}
