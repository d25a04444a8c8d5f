//! The difference of two readings.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{DescriptorKind, Descriptors, ProcessIo, ProcessUsage, float};

mod group;
mod machine;
mod threads;

pub use group::{GroupChange, PressureChange, ThrottlingChange};
pub use machine::MachineChange;
use threads::Threads;
pub use threads::{ProcessCpu, ThreadChange};

/// The changes between two readings of a process.
///
/// Times are shares of the time between the readings: 1.5 cores of processor time are 3 s in 2 s. Rates are
/// per second. Values are `None` if one of the readings does not have them, and if a count went back.
///
/// ```
/// use linux_proc_stat::{ProcessUsage, UsageChange};
///
/// # #[cfg(target_os = "linux")]
/// # {
/// let first = ProcessUsage::read(std::process::id())?;
/// let second = ProcessUsage::read(std::process::id())?;
/// let change = UsageChange::between(&first, &second).ok_or("another process")?;
/// println!("{:?} cores of {:?}", change.cpu.cores, second.usable_processors());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UsageChange {
    /// The time between the readings.
    pub elapsed: Duration,
    /// The processor time of the process, and its waits for processors.
    pub cpu: ProcessCpu,
    /// The threads that are in the second reading, in the order of their ids. Threads that are not in the
    /// first reading count from their start.
    pub threads: Vec<ThreadChange>,
    /// Threads that are in the second reading only; 0 if one of the readings does not have all threads.
    pub started_threads: u64,
    /// Threads that are in the first reading only; 0 if one of the readings does not have all threads.
    pub ended_threads: u64,
    /// The growth of the number of threads.
    pub thread_growth: Option<i64>,
    /// Page faults without a wait for a disk, per second.
    pub minor_faults_per_second: Option<f64>,
    /// Page faults that waited for a disk, per second.
    pub major_faults_per_second: Option<f64>,
    /// The growth of memory.
    pub memory: MemoryChange,
    /// The growth of the number of descriptors.
    pub descriptor_growth: Option<i64>,
    /// The growth of the number of descriptors by kind, without kinds that stayed the same.
    pub descriptor_kind_growth: BTreeMap<DescriptorKind, i64>,
    /// Bytes per second that system calls have read.
    pub bytes_read_per_second: Option<f64>,
    /// Bytes per second that system calls have written.
    pub bytes_written_per_second: Option<f64>,
    /// Bytes per second that were read from disks.
    pub disk_bytes_read_per_second: Option<f64>,
    /// Bytes per second that were or will be written to disks.
    pub disk_bytes_written_per_second: Option<f64>,
    /// The control group.
    pub group: GroupChange,
    /// The machine.
    pub machine: MachineChange,
}

/// The growth of memory in bytes, negative if it shrank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryChange {
    /// Resident memory.
    pub resident: Option<i64>,
    /// Resident memory that belongs to no file.
    pub anonymous: Option<i64>,
    /// Resident pages of files.
    pub file: Option<i64>,
    /// Resident shared memory.
    pub shared: Option<i64>,
    /// Memory that is swapped out.
    pub swap: Option<i64>,
    /// Reserved addresses.
    pub virtual_size: Option<i64>,
}

impl UsageChange {
    /// Maximum number of other processes in [`MachineChange::busiest`].
    pub const MAX_BUSIEST: usize = 10;

    /// Compares two readings; `None` if they are of different processes, or if no time has passed between
    /// them.
    pub fn between(first: &ProcessUsage, second: &ProcessUsage) -> Option<Self> {
        let elapsed = second.at.checked_duration_since(first.at).filter(|elapsed| !elapsed.is_zero())?;
        if (first.pid, first.start_ticks) != (second.pid, second.start_ticks) {
            return None;
        }
        let rates = Rates { seconds: elapsed.as_secs_f64() };
        let threads = Threads::between(first, second, rates);
        let per_second = |of: fn(&ProcessUsage) -> Option<u64>| rates.per_second(of(first), of(second));
        let io = |of: fn(&ProcessIo) -> Option<u64>| {
            rates.per_second(first.io.as_ref().and_then(of), second.io.as_ref().and_then(of))
        };
        let (descriptor_growth, descriptor_kind_growth) =
            first.descriptors.as_ref().zip(second.descriptors.as_ref()).map(descriptor_growth).unzip();
        let cpu = ProcessCpu::between(first, second, &threads, rates);
        Some(Self {
            elapsed,
            machine: MachineChange::between(&first.machine, &second.machine, cpu.cores, rates),
            cpu,
            threads: threads.list,
            started_threads: threads.started,
            ended_threads: threads.ended,
            thread_growth: growth(first.thread_count, second.thread_count),
            minor_faults_per_second: per_second(|usage| usage.minor_faults),
            major_faults_per_second: per_second(|usage| usage.major_faults),
            memory: MemoryChange::between(first, second),
            descriptor_growth,
            descriptor_kind_growth: descriptor_kind_growth.unwrap_or_default(),
            bytes_read_per_second: io(|io| io.read_by_calls),
            bytes_written_per_second: io(|io| io.written_by_calls),
            disk_bytes_read_per_second: io(|io| io.read_from_disk),
            disk_bytes_written_per_second: io(|io| io.written_to_disk),
            group: match (&first.group, &second.group) {
                (Some(first), Some(second)) => GroupChange::between(first, second, rates),
                _ => GroupChange::default(),
            },
        })
    }

    /// Returns the threads with the most processor time, the first with most.
    pub fn top_by_cpu(&self, max: usize) -> Vec<&ThreadChange> {
        self.top(max, |thread| thread.cores)
    }

    /// Returns the threads that were runnable without a processor longest, the first with most.
    pub fn top_by_run_queue(&self, max: usize) -> Vec<&ThreadChange> {
        self.top(max, |thread| thread.run_queue)
    }

    fn top(&self, max: usize, of: fn(&ThreadChange) -> Option<f64>) -> Vec<&ThreadChange> {
        let mut threads: Vec<_> = self.threads.iter().filter(|thread| of(thread) > Some(0.0)).collect();
        threads.sort_by(|one, other| of(other).unwrap_or(0.0).total_cmp(&of(one).unwrap_or(0.0)));
        threads.truncate(max);
        threads
    }
}

/// The time between two readings.
#[derive(Debug, Clone, Copy)]
struct Rates {
    seconds: f64,
}

impl Rates {
    fn per_second(self, first: Option<u64>, second: Option<u64>) -> Option<f64> {
        Some(float(difference(first, second)?) / self.seconds)
    }

    /// Returns nanoseconds as a share of the time.
    fn share(self, first: Option<u64>, second: Option<u64>) -> Option<f64> {
        Some(float(difference(first, second)?) / 1e9 / self.seconds)
    }
}

fn difference(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    second?.checked_sub(first?)
}

fn growth(first: Option<u64>, second: Option<u64>) -> Option<i64> {
    i64::try_from(second?).ok()?.checked_sub(i64::try_from(first?).ok()?)
}

fn descriptor_growth((first, second): (&Descriptors, &Descriptors)) -> (i64, BTreeMap<DescriptorKind, i64>) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut kinds: BTreeMap<_, i64> =
        second.kinds.iter().map(|(&kind, &number)| (kind, signed(number))).collect();
    for (&kind, &number) in &first.kinds {
        let growth = kinds.entry(kind).or_default();
        *growth = growth.saturating_sub(signed(number));
    }
    kinds.retain(|_, growth| *growth != 0);
    (signed(second.count).saturating_sub(signed(first.count)), kinds)
}

impl MemoryChange {
    fn between(first: &ProcessUsage, second: &ProcessUsage) -> Self {
        let (Some(first), Some(second)) = (&first.memory, &second.memory) else { return Self::default() };
        Self {
            resident: growth(first.resident, second.resident),
            anonymous: growth(first.anonymous, second.anonymous),
            file: growth(first.file, second.file),
            shared: growth(first.shared, second.shared),
            swap: growth(first.swap, second.swap),
            virtual_size: growth(first.virtual_size, second.virtual_size),
        }
    }
}
