//! What is read of a process or a core dump.

use std::time::{Duration, Instant};

use clr_dump::{MemoryAccount, MemoryOwner, NativeHeapError, Runtime};
use linux_proc_stat::{ControlGroup, MemoryEvents, Pressure, Status, process_folder, read};

use crate::exit::{Exit, Failure};
use crate::inspect::core_source::Source;
use crate::render::units;

/// Maximum time for the mappings and the blocks of malloc of a process.
const PROCESS_TIME: Duration = Duration::from_millis(1200);
/// The same for a core dump.
const CORE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of settings to show.
const MAX_SETTINGS: usize = 32;
/// The share of a control group's limit that the runtime allows its heap, unless a setting says otherwise.
const DEFAULT_PERCENT: u64 = 75;

/// The memory of a process or a core dump, with its limits.
pub(super) struct Reading {
    pub(super) account: MemoryAccount,
    /// The version of the runtime; `None` without one that can be read.
    pub(super) runtime: Option<String>,
    pub(super) pid: Option<u32>,
    pub(super) process: ProcessNumbers,
    pub(super) group: Option<Group>,
    /// The settings of the collector and of malloc in the environment of the process, by name.
    pub(super) settings: Vec<(String, String)>,
    /// What is not known, and the reason.
    pub(super) missing: Vec<String>,
}

/// The kernel's further numbers of a process, in bytes; all `None` for a core dump.
#[derive(Default)]
pub(super) struct ProcessNumbers {
    pub(super) virtual_size: Option<u64>,
    pub(super) peak_resident: Option<u64>,
    pub(super) page_tables: Option<u64>,
    /// The number of threads.
    pub(super) threads: Option<u64>,
}

/// The memory of the control group of a process.
pub(super) struct Group {
    /// With pages of files that can be taken back at once, and without.
    pub(super) usage: Option<u64>,
    pub(super) working_set: u64,
    /// The memory, and the limit, of the group with the least left.
    pub(super) limited: Option<(u64, u64)>,
    pub(super) events: Option<MemoryEvents>,
    pub(super) pressure: Option<Pressure>,
}

/// The limit that the collector keeps, by settings that can be seen.
pub(super) struct HeapLimit {
    pub(super) bytes: u64,
    pub(super) source: &'static str,
}

impl Reading {
    pub(super) fn new(source: &Source) -> Result<Self, Failure> {
        let runtime = source.runtime();
        let (account, runtime, mut missing) = match &runtime {
            Ok(runtime) => (account(source, Some(runtime))?, Some(runtime.version().to_owned()), Vec::new()),
            Err(failure) => {
                let reason = format!("the managed heap and code: {}", failure.message);
                (account(source, None)?, None, vec![reason])
            }
        };
        missing.extend(missing_parts(&account, runtime.is_some()));
        let pid = source.pid();
        let status = pid.and_then(|pid| read(&process_folder(pid).join("status")).ok());
        let status = status.as_deref().map(Status::new);
        let size = |name: &str| status.and_then(|status| status.size(name));
        let process = ProcessNumbers {
            virtual_size: size("VmSize"),
            peak_resident: size("VmHWM"),
            page_tables: size("VmPTE"),
            threads: status.and_then(|status| status.thread_count()),
        };
        let settings = pid.map(settings).unwrap_or_default();
        Ok(Self { account, runtime, pid, process, group: pid.and_then(group), settings, missing })
    }

    /// Returns true for a core dump.
    pub(super) const fn is_dump(&self) -> bool {
        self.pid.is_none()
    }

    /// Returns true if the generations of the heap share segments, so that their memory is that of generation 2.
    pub(super) fn shares_generations(&self) -> bool {
        let is_young = |owner| matches!(owner, MemoryOwner::Generation(0 | 1));
        !self.account.generations.iter().any(|of| is_young(of.owner))
    }

    /// Returns the limit of the heap; `None` without a setting, and without a limit of the group.
    pub(super) fn heap_limit(&self) -> Option<HeapLimit> {
        let number = |setting: &str| {
            let is_named = |(name, _): &&(String, String)| name.ends_with(&format!("_{setting}"));
            let (_, value) = self.settings.iter().find(is_named)?;
            let digits = value.trim_start_matches("0x").trim_start_matches("0X");
            u64::from_str_radix(digits, 16).ok().filter(|number| *number > 0)
        };
        if let Some(bytes) = number("GCHeapHardLimit") {
            return Some(HeapLimit { bytes, source: "GCHeapHardLimit" });
        }
        let (_, limit) = self.group.as_ref()?.limited?;
        let (percent, source) = match number("GCHeapHardLimitPercent") {
            Some(percent) => (percent.min(100), "GCHeapHardLimitPercent"),
            None => (DEFAULT_PERCENT, "the runtime's default in a control group with a limit"),
        };
        Some(HeapLimit { bytes: (limit / 100).saturating_mul(percent), source })
    }
}

fn account(source: &Source, runtime: Option<&Runtime>) -> Result<MemoryAccount, Failure> {
    let dump = runtime.map(|runtime| source.dump(runtime));
    match source {
        Source::Core(core) => {
            Ok(MemoryAccount::of_core(core, dump.as_ref(), Instant::now().checked_add(CORE_TIME)))
        }
        #[cfg(target_os = "linux")]
        Source::Process(memory) => {
            let end = Instant::now().checked_add(PROCESS_TIME);
            MemoryAccount::read(memory, dump.as_ref(), end).map_err(|error| {
                let what = format_args!("read the mappings of process {}: {error}", memory.pid()).to_string();
                Failure::new(Exit::NotReachable, what)
            })
        }
    }
}

/// The parts of an account that are not known.
fn missing_parts(account: &MemoryAccount, has_runtime: bool) -> Vec<String> {
    let mut missing = Vec::new();
    if has_runtime && !account.has_heap {
        missing.push("the managed heap: the collector's description of it cannot be read".to_owned());
    } else if has_runtime && !account.has_tables {
        missing.push("the collector's card tables: they were not found, and are in 'Not known'".to_owned());
    }
    match &account.native_heap {
        Ok(heap) => {
            let unread = heap.sum(|arena| arena.unread);
            if unread >= 1 << 20 {
                missing.push(format!("{} of the arenas: their blocks were not read", units::bytes(unread)));
            }
        }
        Err(NativeHeapError::NotGlibc) => missing.push(
            "the heap of the C library, apart from [heap]: it is not glibc, so its blocks are in 'Not known'"
                .to_owned(),
        ),
        Err(error) => missing.push(format!("the heap of the C library, apart from [heap]: {error}")),
    }
    if account.running_threads > 0 {
        let threads = units::counted(account.running_threads, "thread", "threads");
        missing.push(format!("the stacks of {threads} by name: no stack pointer was seen"));
    }
    if !account.is_complete {
        missing.push("the last mappings: the time was over".to_owned());
    }
    missing
}

/// The control group of a process; `None` if its memory is not counted.
fn group(pid: u32) -> Option<Group> {
    let group = ControlGroup::of_process(pid).ok()?;
    let memory = group.memory()?;
    Some(Group {
        usage: group.memory_usage(),
        working_set: memory.used,
        limited: memory.limited,
        events: group.memory_events(),
        pressure: group.pressure().memory,
    })
}

/// The settings of the collector and of malloc that a process was started with.
fn settings(pid: u32) -> Vec<(String, String)> {
    let Ok(bytes) = read(&process_folder(pid).join("environ")) else { return Vec::new() };
    let mut settings: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .filter_map(|line| String::from_utf8_lossy(line).split_once('=').map(own))
        .filter(|(name, _)| is_setting(name))
        .take(MAX_SETTINGS)
        .collect();
    settings.sort();
    settings
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn is_setting(name: &str) -> bool {
    let of_runtime = ["DOTNET_", "COMPlus_"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let is_collector = of_runtime.is_some_and(|name| name.starts_with("GC") || name.starts_with("gc"));
    is_collector || name.starts_with("MALLOC_") || name == "GLIBC_TUNABLES"
}

#[cfg(test)]
mod tests {
    use super::is_setting;

    #[test]
    fn settings_of_the_collector_and_of_malloc_are_shown() {
        for name in ["DOTNET_GCHeapHardLimit", "COMPlus_gcServer", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"] {
            assert!(is_setting(name), "{name}");
        }
        for name in ["GCHeapHardLimit", "DOTNET_ROOT", "SECRET", "XDOTNET_GCx", ""] {
            assert!(!is_setting(name), "{name}");
        }
    }
}
