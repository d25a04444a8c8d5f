//! The reading of a live process.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use clr_dump::{Dump, Machine, MemoryAccount, ProcessMemory, Runtime};
use linux_proc_stat::{ControlGroup, Status, process_folder, read};

use super::reading::{MAX_SETTINGS, MemoryGroup, MemoryReading, ProcessNumbers};

/// Maximum time for the blocks of malloc.
const BLOCKS_TIME: Duration = Duration::from_millis(1200);

impl MemoryReading {
    /// Reads a live process, with the runtime that was found in it, or the reason why none was. The process
    /// is not stopped. Mappings and threads take milliseconds, and have five seconds on a machine that is
    /// overloaded; blocks of malloc have about one second.
    ///
    /// # Errors
    /// If the process has ended, or the caller may not trace it.
    pub fn of_process(memory: &ProcessMemory, runtime: Result<&Runtime, &str>) -> io::Result<Self> {
        let pid = memory.pid();
        let end = Instant::now().checked_add(BLOCKS_TIME);
        let dump = runtime.map(|runtime| Dump::new(memory, runtime));
        let account = MemoryAccount::read(memory, dump.as_ref().ok(), end)?;
        let status = read(&process_folder(pid).join("status")).ok();
        let status = status.as_deref().map(Status::new);
        let size = |name: &str| status.and_then(|status| status.size(name));
        let process = ProcessNumbers {
            virtual_size: size("VmSize"),
            peak_resident: size("VmHWM"),
            page_tables: size("VmPTE"),
            threads: status.and_then(|status| status.thread_count()),
        };
        let mut reading = Self::of_account(account, dump.as_ref().map_err(|reason| *reason));
        reading.pid = Some(pid);
        reading.process = process;
        reading.group = group(pid);
        reading.machine_memory = machine_memory();
        let properties = std::mem::replace(&mut reading.settings, settings(pid));
        reading.settings.extend(properties);
        Ok(reading)
    }

    /// Finds the runtime of a live process, and reads the process as [`of_process`](Self::of_process).
    ///
    /// # Errors
    /// With the reason, if the process has ended, or the caller may not trace it.
    pub fn of_pid(pid: u32) -> Result<Self, String> {
        let memory = ProcessMemory::open(pid).map_err(|error| error.to_string())?.with_kept_files();
        let machine = memory.machine().map_or(Ok(()), Machine::check);
        let runtime = machine.and_then(|()| Runtime::find(&memory, &memory.files()?));
        let runtime = runtime.map_err(|error| format!("process {pid}: {error}"));
        let read = Self::of_process(&memory, runtime.as_ref().map_err(|reason| &**reason));
        read.map_err(|error| format!("read the mappings of process {pid}: {error}"))
    }
}

/// The control group of a process; `None` if its memory is not counted.
fn group(pid: u32) -> Option<MemoryGroup> {
    let group = ControlGroup::of_process(pid).ok()?;
    let memory = group.memory()?;
    Some(MemoryGroup {
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
