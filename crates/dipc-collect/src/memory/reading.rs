//! The reading of a process or a core dump.

use std::time::{Duration, Instant, SystemTime};

use clr_dump::{CoreFile, Dump, MemoryAccount, MemoryOwner, NativeHeap, NativeHeapError, Runtime};
use linux_proc_stat::{MemoryEvents, Pressure};
use nettrace_export::units;

/// Maximum time for the blocks of malloc in a core dump.
const CORE_TIME: Duration = Duration::from_secs(60);
/// The share of a control group's limit that the runtime allows its heap, unless a setting says otherwise.
const DEFAULT_PERCENT: u64 = 75;

/// The memory of a process or a core dump by its owners, with its limits.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
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
    /// The settings of the collector and of malloc in the environment of the process, by name.
    pub settings: Vec<(String, String)>,
    /// The parts that are not known, with the reasons.
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
    /// The setting that it follows from.
    pub source: &'static str,
}

impl Reading {
    /// Reads a core dump.
    pub fn of_core(core: &CoreFile, runtime: Result<&Runtime, &str>) -> Self {
        let dump = runtime.ok().map(|runtime| Dump::new(core, runtime));
        let account = MemoryAccount::of_core(core, dump.as_ref(), Instant::now().checked_add(CORE_TIME));
        Self::of_account(account, runtime)
    }

    /// Finds the runtime of a live process, and reads the process.
    ///
    /// # Errors
    /// Always: this system has no such account.
    #[cfg(not(target_os = "linux"))]
    pub fn of_pid(_: u32) -> Result<Self, String> {
        Err("it is read only on Linux".to_owned())
    }

    pub(super) fn of_account(account: MemoryAccount, runtime: Result<&Runtime, &str>) -> Self {
        let mut missing: Vec<_> =
            runtime.err().map(|reason| format!("the managed heap and code: {reason}")).into_iter().collect();
        missing.extend(missing_parts(&account, runtime.is_ok()));
        Self {
            time: SystemTime::now(),
            account,
            runtime: runtime.ok().map(|runtime| runtime.version().to_owned()),
            pid: None,
            process: ProcessNumbers::default(),
            group: None,
            settings: Vec::new(),
            missing,
        }
    }

    /// Returns true for a core dump.
    pub const fn is_dump(&self) -> bool {
        self.pid.is_none()
    }

    /// Returns true if the generations of the heap share segments, so that their memory is that of generation 2.
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
