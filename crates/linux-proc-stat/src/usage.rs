//! One reading of all that the kernel counts for a process, and for the group and the machine that it runs
//! in.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cgroup::{ControlGroup, GroupCpu, GroupMemory, MemoryEvents, Throttling};
use crate::file::read;
use crate::limits::Limits;
use crate::pressure::ResourcePressure;
use crate::stat::Stat;
use crate::status::Status;

mod change;
mod descriptors;
mod machine;
mod memory;
mod sockets;
mod tcp_table;
mod threads;

pub use change::{
    GroupChange, MachineChange, MemoryChange, PressureChange, ProcessCpu, ThreadChange, ThrottlingChange,
    UsageChange,
};
pub use descriptors::{DescriptorKind, Descriptors};
pub use machine::{MachineCpu, MachineMemory, MachineUsage, OtherProcess};
pub use memory::{MappedMemory, ProcessIo, ProcessMemory};
pub use sockets::{Peer, Sockets};
pub use tcp_table::TcpState;
pub use threads::ThreadUsage;

/// Default maximum number of threads in a reading.
const MAX_THREADS: usize = 20_000;
/// Default time after which a reading leaves out further threads, descriptors and processes.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The kernel's counts for a process, read once. Two readings make a [`UsageChange`].
///
/// Fields are `None` where the kernel does not count, or where the reader may not read:
/// [`unread`](Self::unread) says why. The files are read one after another, so the values are not of the same
/// moment. Times are in nanoseconds and sizes in bytes, both since the process, the group or the machine
/// began unless the field says otherwise. Names are chosen by the processes, and may have control characters.
///
/// ```
/// use linux_proc_stat::ProcessUsage;
///
/// # #[cfg(target_os = "linux")]
/// # {
/// let usage = ProcessUsage::read(std::process::id())?;
/// let memory = usage.memory.ok_or("a zombie")?;
/// println!("{} threads, {:?} bytes resident", usage.threads.len(), memory.resident);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ProcessUsage {
    /// The process, in the reader's pid namespace.
    pub pid: u32,
    /// The time of the reading, before the first file. It has no meaning in another process: serde leaves it
    /// out.
    #[cfg_attr(feature = "serde", serde(skip, default = "Instant::now"))]
    pub at: Instant,
    /// The name of the first thread, with replacements for bytes that are not UTF-8.
    pub name: String,
    /// The kernel's letter for the state of the first thread, as in [`Stat::state`]; `Z` is a process that
    /// has ended.
    pub state: Option<char>,
    /// The start in clock ticks since the system's start: another process with the same id has another start.
    pub start_ticks: Option<u64>,
    /// Processor time in user mode, to 10 ms, with threads that have ended.
    pub user_ns: Option<u64>,
    /// Processor time in kernel mode, to 10 ms, with threads that have ended.
    pub system_ns: Option<u64>,
    /// Page faults that the kernel answered from memory.
    pub minor_faults: Option<u64>,
    /// Page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
    /// The number of threads.
    pub thread_count: Option<u64>,
    /// The threads in the order of their ids.
    pub threads: Vec<ThreadUsage>,
    /// True if no thread was left out because of the limits of the reader.
    pub has_all_threads: bool,
    /// The memory by `status`; `None` for zombies.
    pub memory: Option<ProcessMemory>,
    /// The memory by `smaps_rollup`, if [`UsageReader::mapped_memory`] asks for it.
    pub mapped_memory: Option<MappedMemory>,
    /// The open files; needs the same user, or `CAP_SYS_PTRACE`.
    pub descriptors: Option<Descriptors>,
    /// Bytes read and written; needs the same user, or `CAP_SYS_PTRACE`.
    pub io: Option<ProcessIo>,
    /// The score by which the kernel chooses the process to kill when memory runs out, from 0 to 2000. The
    /// highest is killed first.
    pub oom_score: Option<u32>,
    /// The part of the score that is set by hand, from -1000 (never) to 1000.
    pub oom_score_adjustment: Option<i32>,
    /// The number of processors that the first thread may run on, by its affinity and cpuset.
    pub allowed_processors: Option<u32>,
    /// The control group; `None` if it cannot be found.
    pub group: Option<GroupUsage>,
    /// The machine.
    pub machine: MachineUsage,
    /// Files and folders that could not be read. Those of single threads and other processes are not here.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub unread: Vec<UnreadFile>,
}

/// The control group of a process and its limits, some of which may be those of a group above.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupUsage {
    /// Memory and its limit.
    pub memory: Option<GroupMemory>,
    /// The events of the limit of memory.
    pub memory_events: Option<MemoryEvents>,
    /// Bytes that are swapped out.
    pub swap: Option<u64>,
    /// Processor time and its limit.
    pub cpu: Option<GroupCpu>,
    /// The waits for the next period of the limit of processor time; `None` without a limit.
    pub throttling: Option<Throttling>,
    /// The pressure in the group; version 2 only.
    pub pressure: ResourcePressure,
}

impl GroupUsage {
    fn read(group: &ControlGroup) -> Self {
        Self {
            memory: group.memory(),
            memory_events: group.memory_events(),
            swap: group.swap(),
            cpu: group.cpu(),
            throttling: group.throttling(),
            pressure: group.pressure(),
        }
    }

    /// Returns the number of processors that the smallest quota is worth, such as 0.5.
    pub fn quota(&self) -> Option<f64> {
        let (quota, period) = self.cpu?.limit?;
        Some(float(quota) / float(period))
    }
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadFile {
    /// The file.
    pub path: PathBuf,
    /// The reason: `NotFound` if the kernel does not have it or the process has ended, `PermissionDenied` if
    /// the reader may not trace the process.
    pub error: io::ErrorKind,
}

/// Options of a reading.
///
/// ```
/// use linux_proc_stat::UsageReader;
///
/// # #[cfg(target_os = "linux")]
/// # {
/// let usage = UsageReader::new().max_threads(100).mapped_memory(true).read(std::process::id())?;
/// assert!(usage.mapped_memory.is_some_and(|memory| memory.proportional > Some(0)));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct UsageReader {
    proc: PathBuf,
    max_threads: usize,
    max_time: Duration,
    mapped_memory: bool,
    other_processes: bool,
}

impl Default for UsageReader {
    fn default() -> Self {
        Self::new()
    }
}

impl UsageReader {
    /// Reads from `/proc`, up to 20,000 threads, without the memory by `smaps_rollup`.
    pub fn new() -> Self {
        Self {
            proc: "/proc".into(),
            max_threads: MAX_THREADS,
            max_time: MAX_TIME,
            mapped_memory: false,
            other_processes: true,
        }
    }

    /// Reads from another folder than `/proc`. The mounts in its `self/mountinfo` say where control groups
    /// are.
    #[must_use]
    pub fn proc(mut self, folder: impl Into<PathBuf>) -> Self {
        self.proc = folder.into();
        self
    }

    /// Sets the maximum number of threads; those with the smallest ids are read.
    #[must_use]
    pub const fn max_threads(mut self, max: usize) -> Self {
        self.max_threads = max;
        self
    }

    /// Sets the time after which further threads, descriptors and processes are left out, 2 s by default.
    #[must_use]
    pub const fn max_time(mut self, max: Duration) -> Self {
        self.max_time = max;
        self
    }

    /// Reads `smaps_rollup`, for which the kernel walks all pages: up to 0.1 s for each resident gigabyte, in
    /// which the process cannot map memory.
    #[must_use]
    pub const fn mapped_memory(mut self, is_read: bool) -> Self {
        self.mapped_memory = is_read;
        self
    }

    /// Reads the processor time of the other processes of the machine, true by default.
    #[must_use]
    pub const fn other_processes(mut self, are_read: bool) -> Self {
        self.other_processes = are_read;
        self
    }

    /// Reads all files once.
    ///
    /// # Errors
    /// If the process has ended, or is not visible: `NotFound`. A process that ends during the reading is not
    /// an error: later fields are `None`.
    pub fn read(&self, pid: u32) -> io::Result<ProcessUsage> {
        let at = Instant::now();
        let folder = self.proc.join(pid.to_string());
        let mut files = Files { deadline: at.checked_add(self.max_time), unread: Vec::new() };
        // The counts first: lists take longer, and would shift the moments at which counts are read.
        let line = read(&folder.join("stat"))?;
        let stat = Stat::parse(&line).ok_or(io::ErrorKind::InvalidData)?;
        let mut machine = MachineUsage::read(&self.proc, &mut files);
        let group = files.kept(&folder.join("cgroup"), ControlGroup::of_folder(&folder, &self.proc));
        let group = group.map(|group| GroupUsage::read(&group));
        let io = ProcessIo::read(&folder, &mut files);
        let status = files.read(&folder.join("status"));
        let status = status.as_deref().map(Status::new);
        let mut number = |name: &str| String::from_utf8(files.read(&folder.join(name))?).ok();
        let score = number("oom_score");
        let adjustment = number("oom_score_adj");
        let limits = files.read(&folder.join("limits"));
        let limit = limits.and_then(|limits| Limits::new(&limits).soft("Max open files")?.parse().ok());
        let counts_delay = threads::counts_delay(&self.proc);
        let threads = threads::read(&folder, self.max_threads, counts_delay, &mut files);
        if self.other_processes {
            machine.read_other_processes(&self.proc, pid, &mut files);
        }
        Ok(ProcessUsage {
            pid,
            at,
            name: String::from_utf8_lossy(stat.name()).into_owned(),
            state: stat.state(),
            start_ticks: stat.start_ticks(),
            user_ns: stat.user_ns(),
            system_ns: stat.system_ns(),
            minor_faults: stat.minor_faults(),
            major_faults: stat.major_faults(),
            thread_count: status.and_then(|status| status.thread_count()).or(stat.thread_count()),
            has_all_threads: threads.is_complete,
            threads: threads.list,
            memory: status.and_then(|status| ProcessMemory::of(&status)),
            mapped_memory: self.mapped_memory.then(|| MappedMemory::read(&folder, &mut files)).flatten(),
            descriptors: Descriptors::read(&folder, limit, &mut files),
            io,
            oom_score: score.and_then(|text| text.trim().parse().ok()),
            oom_score_adjustment: adjustment.and_then(|text| text.trim().parse().ok()),
            allowed_processors: status.and_then(|status| status.allowed_processors()),
            group,
            machine,
            unread: files.unread,
        })
    }
}

impl ProcessUsage {
    /// Reads a process with the default options of [`UsageReader`].
    ///
    /// # Errors
    /// As [`UsageReader::read`].
    pub fn read(pid: u32) -> io::Result<Self> {
        UsageReader::new().read(pid)
    }

    /// Returns the number of processors that the process can use at once: those of its affinity or of the
    /// machine, or the quota of its group if that is less.
    pub fn usable_processors(&self) -> Option<f64> {
        let allowed = self.allowed_processors.or(self.machine.processors).map(f64::from);
        let quota = self.group.and_then(|group| group.quota());
        match (allowed, quota) {
            (Some(allowed), Some(quota)) => Some(allowed.min(quota)),
            (one, other) => one.or(other),
        }
    }
}

/// Reads files, and remembers those that it could not read.
#[derive(Debug)]
struct Files {
    deadline: Option<Instant>,
    unread: Vec<UnreadFile>,
}

impl Files {
    fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.kept(path, read(path))
    }

    /// Returns the value of a result; an error is remembered with its path.
    fn kept<T>(&mut self, path: &Path, result: io::Result<T>) -> Option<T> {
        result.map_err(|error| self.unread.push(UnreadFile { path: path.into(), error: error.kind() })).ok()
    }

    /// Returns true once the reading has taken as long as it may.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Converts a count; beyond 2⁵³ to the nearest number.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a count that becomes a rate or a share"
)]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
