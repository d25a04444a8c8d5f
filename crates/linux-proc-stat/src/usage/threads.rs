//! The threads of a process.

use std::path::Path;

use super::Files;
use crate::file::{ids, read as read_file};
use crate::schedstat::SchedStat;
use crate::stat::Stat;
use crate::status::Status;

/// The kernel's counts for a thread since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ThreadUsage {
    /// The thread, in the reader's pid namespace.
    pub tid: u32,
    /// The name, at most 15 bytes, with replacements for bytes that are not UTF-8.
    pub name: String,
    /// The kernel's letter for the state: `R` is running or runnable, `D` waits for a disk or the like.
    pub state: Option<char>,
    /// The start in clock ticks since the system's start.
    pub start_ticks: Option<u64>,
    /// Processor time in nanoseconds; to 10 ms if the kernel does not have it more exactly.
    pub cpu_ns: Option<u64>,
    /// Processor time in user mode, to 10 ms.
    pub user_ns: Option<u64>,
    /// Processor time in kernel mode, to 10 ms.
    pub system_ns: Option<u64>,
    /// Nanoseconds in which it was runnable and did not run. Most kernels include the time in which its
    /// control group was throttled. The wait that has not ended yet is missing.
    pub run_queue_ns: Option<u64>,
    /// Nanoseconds, to 10 ms, of waits for block devices and swapping in; `None` if the kernel does not count
    /// them (`kernel.task_delayacct`).
    pub io_delay_ns: Option<u64>,
    /// The number of times that it left a processor to wait.
    pub voluntary_switches: Option<u64>,
    /// The number of times that it left a processor because another thread was to run.
    pub involuntary_switches: Option<u64>,
}

pub(super) struct Threads {
    pub(super) list: Vec<ThreadUsage>,
    pub(super) is_complete: bool,
}

/// Returns false if the kernel writes 0 for delays because it does not count them.
pub(super) fn counts_delay(proc: &Path) -> bool {
    // Linux before 5.14 does not have the file, and counts.
    read_file(&proc.join("sys/kernel/task_delayacct")).map_or(true, |text| text.trim_ascii() != b"0")
}

/// Reads up to `max` threads.
pub(super) fn read(folder: &Path, max: usize, counts_delay: bool, files: &mut Files) -> Threads {
    let folder = folder.join("task");
    let Some(tids) = files.kept(&folder, ids(&folder)) else {
        return Threads { list: Vec::new(), is_complete: false };
    };
    let mut threads =
        Threads { list: Vec::with_capacity(tids.len().min(max)), is_complete: tids.len() <= max };
    for tid in tids.into_iter().take(max) {
        if files.is_late() {
            threads.is_complete = false;
            break;
        }
        // A thread without a line has just ended.
        threads.list.extend(ThreadUsage::read(&folder.join(tid.to_string()), tid, counts_delay));
    }
    threads
}

impl ThreadUsage {
    fn read(folder: &Path, tid: u32, counts_delay: bool) -> Option<Self> {
        let line = read_file(&folder.join("stat")).ok()?;
        let stat = Stat::parse(&line)?;
        let times = read_file(&folder.join("schedstat")).ok().and_then(|text| SchedStat::parse(&text));
        let status = read_file(&folder.join("status")).unwrap_or_default();
        let status = Status::new(&status);
        Some(Self {
            tid,
            name: String::from_utf8_lossy(stat.name()).into_owned(),
            state: stat.state(),
            start_ticks: stat.start_ticks(),
            cpu_ns: times.map(|times| times.cpu_ns).or(stat.cpu_ns()),
            user_ns: stat.user_ns(),
            system_ns: stat.system_ns(),
            run_queue_ns: times.map(|times| times.queue_ns),
            io_delay_ns: stat.io_delay_ns().filter(|_| counts_delay),
            voluntary_switches: status.voluntary_switches(),
            involuntary_switches: status.involuntary_switches(),
        })
    }
}
