//! The readings of a process or a core dump.

use std::path::Path;
use std::time::{Duration, Instant};

use clr_dump::{Dump, MemoryAccount, MemoryOwner, NativeHeapError};
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
/// The share of a control group's limit that the runtime allows its heap, and the bytes that it allows in any case,
/// unless a setting says otherwise.
const DEFAULT_PERCENT: u64 = 75;
const MIN_DEFAULT: u64 = 20 << 20;
/// The beginning of the names of the collector's properties in `runtimeconfig.json`.
const PROPERTIES: &str = "System.GC.";

/// The memory of a process or a core dump, with its limits.
pub(super) struct Reading {
    pub(super) account: MemoryAccount,
    /// The version of the runtime; `None` without one that can be read.
    pub(super) runtime: Option<String>,
    pub(super) pid: Option<u32>,
    pub(super) process: ProcessNumbers,
    pub(super) group: Option<Group>,
    /// Bytes of the machine's memory; `None` for a core dump.
    pub(super) machine_memory: Option<u64>,
    /// The settings of the collector and of malloc in the environment of the process, and the collector's properties in
    /// its `runtimeconfig.json`, by name.
    pub(super) settings: Vec<(String, String)>,
    /// Unknown parts, each with the reason.
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
    /// The setting, or the rule.
    pub(super) source: &'static str,
}

/// A setting of the collector that is a number: its name in the environment, after the prefix, where numbers are
/// hexadecimal, and its property.
#[derive(Clone, Copy)]
struct NumberSetting {
    variable: &'static str,
    property: &'static str,
}

const HARD_LIMIT: NumberSetting =
    NumberSetting { variable: "GCHeapHardLimit", property: "System.GC.HeapHardLimit" };
const HARD_LIMIT_PERCENT: NumberSetting =
    NumberSetting { variable: "GCHeapHardLimitPercent", property: "System.GC.HeapHardLimitPercent" };

impl Reading {
    pub(super) fn new(source: &Source) -> Result<Self, Failure> {
        let runtime = source.runtime();
        let (account, runtime, mut missing, properties) = match &runtime {
            Ok(runtime) => {
                let dump = source.dump(runtime);
                let version = Some(runtime.version().to_owned());
                (account(source, Some(&dump))?, version, Vec::new(), properties(&dump))
            }
            Err(failure) => {
                let reason = format!("the managed heap and code: {}", failure.message);
                (account(source, None)?, None, vec![reason], Vec::new())
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
        let mut settings = pid.map(settings).unwrap_or_default();
        settings.extend(properties);
        let machine_memory = pid.and_then(|_| machine_memory());
        let group = pid.and_then(group);
        Ok(Self { account, runtime, pid, process, group, machine_memory, settings, missing })
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
        if let Some((bytes, source)) = self.number(HARD_LIMIT) {
            return Some(HeapLimit { bytes, source });
        }
        let limit = self.group.as_ref().and_then(|group| group.limited).map(|(_, limit)| limit);
        let of = |memory: u64, percent: u64| (memory / 100).saturating_mul(percent.min(100));
        if let Some((percent, source)) = self.number(HARD_LIMIT_PERCENT) {
            // Without a group's limit it is a share of the machine's memory.
            let bytes = of(limit.or(self.machine_memory)?, percent);
            return Some(HeapLimit { bytes, source });
        }
        let bytes = of(limit?, DEFAULT_PERCENT).max(MIN_DEFAULT);
        Some(HeapLimit { bytes, source: "the runtime's default in a control group with a limit" })
    }

    /// Returns the value of a setting, and the name by which it is set. The environment precedes `runtimeconfig.json`.
    fn number(&self, setting: NumberSetting) -> Option<(u64, &'static str)> {
        let NumberSetting { variable, property } = setting;
        let find = |is_named: &dyn Fn(&str) -> bool| self.settings.iter().find(|(name, _)| is_named(name));
        let of_variable = || {
            let (_, value) = find(&|name| {
                name.strip_prefix("DOTNET_").or(name.strip_prefix("COMPlus_")) == Some(variable)
            })?;
            Some((hexadecimal(value)?, variable))
        };
        let of_property = || {
            let (_, value) = find(&|name| name == property)?;
            let number = if value.starts_with("0x") || value.starts_with("0X") {
                hexadecimal(value)
            } else {
                value.parse().ok()
            };
            Some((number?, property))
        };
        of_variable().filter(|(number, _)| *number > 0).or_else(of_property).filter(|(number, _)| *number > 0)
    }
}

/// Parses a number with or without `0x`.
fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

/// The collector's properties.
fn properties(dump: &Dump<'_>) -> Vec<(String, String)> {
    let mut properties = dump.statics().properties(|name| name.starts_with(PROPERTIES)).unwrap_or_default();
    properties.truncate(MAX_SETTINGS);
    properties
}

fn account(source: &Source, dump: Option<&Dump<'_>>) -> Result<MemoryAccount, Failure> {
    match source {
        Source::Core(core) => Ok(MemoryAccount::of_core(core, dump, Instant::now().checked_add(CORE_TIME))),
        #[cfg(target_os = "linux")]
        Source::Process(memory) => {
            let end = Instant::now().checked_add(PROCESS_TIME);
            MemoryAccount::read(memory, dump, end).map_err(|error| {
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
        Err(NativeHeapError::Musl) => {
            missing.push("what is free in the native heap: the C library is musl".to_owned());
        }
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

/// The memory of this machine.
fn machine_memory() -> Option<u64> {
    let text = read(Path::new("/proc/meminfo")).ok()?;
    Status::new(&text).size("MemTotal")
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
