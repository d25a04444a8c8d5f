//! The readings of a process or a core dump.

use std::time::{Duration, Instant, SystemTime};

use clr_dump::{CoreFile, Dump, MemoryAccount, MemoryOwner, NativeHeap, NativeHeapError, Runtime};
use linux_proc_stat::{MemoryEvents, Pressure};
use nettrace_export::units;

/// Maximum time for the blocks of malloc in a core dump.
const CORE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of settings to show.
pub(super) const MAX_SETTINGS: usize = 32;
/// The share of a control group's limit that the runtime allows its heap, and the bytes that it allows in any
/// case, unless a setting says otherwise.
const DEFAULT_PERCENT: u64 = 75;
const MIN_DEFAULT: u64 = 20 << 20;
/// The beginning of the names of the collector's properties in `runtimeconfig.json`.
const PROPERTIES: &str = "System.GC.";

/// The memory of a process or a core dump by its owners, with its limits.
#[derive(Debug)]
#[non_exhaustive]
pub struct MemoryReading {
    /// The time of the reading.
    pub time: SystemTime,
    /// The owners.
    pub account: MemoryAccount,
    /// The version of the runtime; `None` without one that can be read.
    pub runtime: Option<String>,
    /// The process; `None` for a core dump.
    pub pid: Option<u32>,
    /// The kernel's further numbers of the process.
    pub process: ProcessNumbers,
    /// The control group of the process.
    pub group: Option<MemoryGroup>,
    /// Bytes of the machine's memory; `None` for a core dump.
    pub machine_memory: Option<u64>,
    /// The settings of the collector and of malloc in the environment of the process, and the collector's
    /// properties in its `runtimeconfig.json`, by name.
    pub settings: Vec<(String, String)>,
    /// Unknown parts, each with the reason.
    pub missing: Vec<String>,
}

/// The kernel's further numbers of a process, in bytes; all `None` for a core dump.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ProcessNumbers {
    /// Addresses.
    pub virtual_size: Option<u64>,
    /// Maximum resident memory so far.
    pub peak_resident: Option<u64>,
    /// Page tables, which are not resident memory of the process.
    pub page_tables: Option<u64>,
    /// The number of threads.
    pub threads: Option<u64>,
}

/// The memory of the control group of a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryGroup {
    /// With pages of files that can be taken back at once.
    pub usage: Option<u64>,
    /// Without these pages.
    pub working_set: u64,
    /// The memory, and the limit, of the group with the least left.
    pub limited: Option<(u64, u64)>,
    /// The kernel's counts of limits that were reached.
    pub events: Option<MemoryEvents>,
    /// The time for which threads were stalled.
    pub pressure: Option<Pressure>,
}

/// The limit that the collector keeps, by settings that can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapLimit {
    /// The limit.
    pub bytes: u64,
    /// The setting, or the rule.
    pub source: &'static str,
}

/// A setting of the collector that is a number: its name in the environment, after the prefix, where numbers
/// are hexadecimal, and its property.
#[derive(Clone, Copy)]
struct NumberSetting {
    variable: &'static str,
    property: &'static str,
}

const HARD_LIMIT: NumberSetting =
    NumberSetting { variable: "GCHeapHardLimit", property: "System.GC.HeapHardLimit" };
const HARD_LIMIT_PERCENT: NumberSetting =
    NumberSetting { variable: "GCHeapHardLimitPercent", property: "System.GC.HeapHardLimitPercent" };

impl MemoryReading {
    /// Reads a core dump.
    pub fn of_core(core: &CoreFile, runtime: Result<&Runtime, &str>) -> Self {
        let dump = runtime.map(|runtime| Dump::new(core, runtime));
        let end = Instant::now().checked_add(CORE_TIME);
        let account = MemoryAccount::of_core(core, dump.as_ref().ok(), end);
        Self::of_account(account, dump.as_ref().map_err(|reason| *reason))
    }

    /// Finds the runtime of a live process, and reads the process.
    ///
    /// # Errors
    /// Always: this system has no such account.
    #[cfg(not(target_os = "linux"))]
    pub fn of_pid(_: u32) -> Result<Self, String> {
        Err("it is read only on Linux".to_owned())
    }

    pub(super) fn of_account(account: MemoryAccount, dump: Result<&Dump<'_>, &str>) -> Self {
        let reason = dump.err().map(|reason| format!("the managed heap and code: {reason}"));
        let mut missing: Vec<_> = reason.into_iter().collect();
        missing.extend(missing_parts(&account, dump.is_ok()));
        Self {
            time: SystemTime::now(),
            account,
            runtime: dump.ok().map(|dump| dump.runtime().version().to_owned()),
            pid: None,
            process: ProcessNumbers::default(),
            group: None,
            machine_memory: None,
            settings: dump.map(properties).unwrap_or_default(),
            missing,
        }
    }

    /// Returns true for a core dump.
    pub const fn is_dump(&self) -> bool {
        self.pid.is_none()
    }

    /// Returns true if the generations of the heap share segments, so that their memory is that of generation
    /// 2.
    pub fn shares_generations(&self) -> bool {
        let is_young = |owner| matches!(owner, MemoryOwner::Generation(0 | 1));
        !self.account.generations.iter().any(|of| is_young(of.owner))
    }

    /// Returns the resident bytes that malloc has given to no one; `None` without glibc.
    pub fn native_free(&self) -> Option<u64> {
        self.account.native_heap.as_ref().ok().map(NativeHeap::held)
    }

    /// Returns the limit of the heap; `None` without a setting, and without a limit of the group.
    pub fn heap_limit(&self) -> Option<HeapLimit> {
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

    /// Returns the value of a setting, and the name by which it is set. The environment precedes
    /// `runtimeconfig.json`.
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
