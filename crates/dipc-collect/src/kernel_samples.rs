//! Samples of a process by the Linux kernel, with managed code unwound by the runtime's own structures.
//!
//! [`ContinuousSampler`] samples the machine, all the time, into a ring on disk or for a receiver.
//! [`KernelSampler`] writes samples into a file, [`LiveSamples`] passes them on while they are taken, and
//! [`snapshot`] takes those of a moment, with the stacks of waiting threads. All are recordings of
//! [`linux-sampler`](https://docs.rs/linux-sampler): addresses of managed code get their names from the list
//! of methods of the runtime.
//!
//! Linux on x86-64 and aarch64; elsewhere, each start fails with [`SampleError::Unavailable`].

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nettrace::Event;

use crate::live::KernelSamples;
use crate::profile_ring::{ProfileRing, RingTotals, Segment, StoreEvent};
use crate::staged::StagedFile;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use linux::{
    ContinuousSampler, KernelSampler, LiveSamples, MachineSampler, RuntimeEvents, pid_of_id, snapshot,
};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use elsewhere::{
    ContinuousSampler, KernelSampler, LiveSamples, MachineSampler, RuntimeEvents, pid_of_id, snapshot,
};

mod scope;
pub use scope::{GroupError, GroupName, SampleScope};

/// The samples per second for programs that watch a process: they cost it next to nothing.
pub const LIVE_FREQUENCY: u32 = 99;

/// The samples per second and processor of a machine that is sampled all the time.
pub const CONTINUOUS_FREQUENCY: u32 = 19;

/// An error of taking samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The kernel's events of the process cannot be opened.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[error(transparent)]
    Open(linux_sampler::Error),
    /// The opened events or the process cannot be read.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[error(transparent)]
    Read(linux_sampler::Error),
    /// The samples cannot be events of a recording.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[error(transparent)]
    Record(nettrace_writer::Error),
    /// The runtime does not write its events to the kernel.
    #[error(transparent)]
    Session(#[from] dipc_client::Error),
    /// No process has such an id.
    #[error(transparent)]
    InvalidPid(#[from] std::num::TryFromIntError),
    /// A file cannot be created.
    #[error("{folder}: {error}")]
    Create {
        /// The folder of the file.
        folder: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The samples cannot be written.
    #[error("write: {0}")]
    Write(io::Error),
    /// The memory of the process cannot be read, so that no waiting thread has a stack.
    #[error("{0}")]
    StacksRefused(String),
    /// The thread that takes the samples has ended early.
    #[error("their thread has ended early")]
    EndedEarly,
    /// The system or the processor has no such samples.
    #[error("they are available only on Linux, on x86-64 and aarch64")]
    Unavailable,
}

/// The activity of a thread at the time of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a thread runs or waits, or the kernel does not say")]
pub enum Activity {
    /// The thread runs, or waits for a processor.
    Running,
    /// The thread waits in the kernel.
    Waiting {
        /// The number of the system call, if it waits in one.
        system_call: Option<u64>,
        /// The function of the kernel that waits.
        function: Option<String>,
        /// The functions of the kernel, leaf first, if this user may read them.
        kernel_frames: Vec<String>,
    },
    /// The kernel does not say, for a reason.
    Unknown(String),
}

/// A thread at the time of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSnapshot {
    /// Thread id as the process itself sees it.
    pub id: u64,
    /// The activity of the thread.
    pub activity: Activity,
}

impl ThreadSnapshot {
    /// Returns true if the thread waits in the kernel.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.activity, Activity::Waiting { .. })
    }
}

/// The requested samples.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SampleSettings {
    /// Samples per second of a running thread; 0 for none.
    pub frequency: u32,
    /// True to record threads leaving a processor.
    pub off_cpu: bool,
    /// True to sample whole processors if that is permitted, which sees threads that live for milliseconds.
    pub short_threads: bool,
    /// The native allocations to follow; `None` for none.
    pub native_allocations: Option<NativeAllocationSettings>,
}

/// The native allocations that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the settings of linux-sampler")]
pub struct NativeAllocationSettings {
    /// The bytes that a smaller allocation represents, if it is followed; 1 follows all.
    pub interval: u32,
    /// The percentage of the process's processor time beyond which the probes are removed.
    pub limit_percent: u32,
}

impl SampleSettings {
    /// Samples of whole processors where that is permitted, of running threads elsewhere. The frequency is
    /// lowered a little if it is in step with the kernel's ticks.
    pub const fn of_processors(frequency: u32, off_cpu: bool) -> Self {
        Self { frequency: out_of_step(frequency), off_cpu, short_threads: true, native_allocations: None }
    }

    /// Samples of running threads that live for more than moments.
    pub const fn of_threads(frequency: u32) -> Self {
        Self { frequency, off_cpu: false, short_threads: false, native_allocations: None }
    }

    /// With these native allocations.
    #[must_use]
    pub const fn with_native_allocations(self, native_allocations: Option<NativeAllocationSettings>) -> Self {
        Self { native_allocations, ..self }
    }

    /// Returns true if threads are sampled, on the processors or off them.
    pub const fn samples_threads(&self) -> bool {
        self.frequency > 0 || self.off_cpu
    }
}

/// Returns a frequency that is not in step with the ticks at which the kernel switches threads.
///
/// Timers of processors that are in step with the ticks take each sample at the same moment of a thread's
/// turn. On two busy processors a method with 70 % of the time had 64 to 78 % of the samples at 1,000 Hz, by
/// `perf` as well, and 70 to 71 % at 997 Hz.
const fn out_of_step(frequency: u32) -> u32 {
    let is_in_step = frequency > 10 && (1000_u32.is_multiple_of(frequency) || frequency.is_multiple_of(1000));
    if is_in_step { frequency - frequency.div_ceil(400) } else { frequency }
}

/// A file without a name, with the samples of a process: it disappears however the program ends.
#[derive(Debug)]
pub struct KernelRecording {
    file: File,
    staged: StagedFile,
    summary: SampleSummary,
}

/// The samples of many processes.
#[derive(Debug)]
#[non_exhaustive]
pub struct MachineRecording {
    /// The samples.
    pub samples: KernelRecording,
    /// The number of processes.
    pub processes: u64,
    /// The number of processes that were started meanwhile.
    pub born: u64,
    /// The number of processes that have ended meanwhile.
    pub ended: u64,
    /// Samples that were left out because their processes are outside this process's pid namespace.
    pub outside: u64,
    /// Running processes with sampled code that the recording does not name, such as a JIT compiler's, with
    /// the id of each in the recording: first those with the most samples.
    pub without_names: Vec<(u32, u64)>,
    /// The number of processes that have ended and whose methods have names in the recording: their memory
    /// was read before.
    pub ended_named: usize,
    /// True if the recording has ended because it has as many bytes as it may have.
    pub is_full: bool,
}

/// The settings of a [`ContinuousSampler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct ContinuousSettings {
    /// Samples per second of each processor.
    pub frequency: u32,
    /// The time of a segment.
    pub segment: Duration,
    /// True if stacks have the kernel's frames. Time in the kernel is sampled without them, too.
    pub kernel_frames: bool,
}

/// Chooses the processes that are sampled. Returns `None` if the process cannot be read.
pub type ProcessSelector = Box<dyn FnMut(u32) -> Option<bool> + Send>;

/// A receiver of segments, each a whole recording with its times. It delays the samples while it works.
pub type SegmentReceiver = Box<dyn FnMut(Segment, &[u8]) + Send>;

/// The recipients of the segments of a [`ContinuousSampler`], and the processes in them.
#[derive(Default)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct SegmentSinks {
    /// The ring that is filled.
    pub ring: Option<ProfileRing>,
    /// The receiver of each segment.
    pub receiver: Option<SegmentReceiver>,
    /// The processes that are sampled; all if `None`.
    pub select: Option<ProcessSelector>,
}

impl Default for ContinuousSettings {
    fn default() -> Self {
        Self { frequency: CONTINUOUS_FREQUENCY, segment: Duration::from_secs(60), kernel_frames: true }
    }
}

/// The state of a [`ContinuousSampler`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContinuousStatus {
    /// The samples of running threads so far.
    pub samples: u64,
    /// The samples and records that the kernel lost.
    pub lost: u64,
    /// The segments.
    pub ring: RingTotals,
    /// The reason for which the sampler has ended.
    pub ended: Option<String>,
}

/// A change of a [`ContinuousSampler`] that its user should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContinuousEvent {
    /// A change of the ring.
    Store(StoreEvent),
    /// The sampler has ended, for a reason.
    Ended(String),
}

/// The numbers of samples taken and missing.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SampleSummary {
    /// The samples of running threads.
    pub samples: u64,
    /// The time that these stand for.
    pub cpu: Duration,
    /// The time of the waits.
    pub off_cpu: Duration,
    /// The number of times that a thread left a processor.
    pub waits: u64,
    /// The samples and records of switches that the kernel lost.
    pub lost: u64,
    /// The stacks of waits that were left out, which others represent.
    pub lost_stacks: u64,
    /// The number of times that the kernel throttled the samples.
    pub throttled: u64,
    /// The stacks that were cut at the kernel's limit of frames.
    pub cut_stacks: u64,
    /// The events that the runtime has written to the kernel.
    pub events: u64,
    /// More of these, whose parts could not be read.
    pub unreadable_events: u64,
    /// The native allocations, if they were followed.
    pub native: Option<NativeSummary>,
}

/// The numbers of native allocations, and the cost of following them.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct NativeSummary {
    /// Allocations that were followed.
    pub allocations: u64,
    /// Calls of the probed functions.
    pub calls: u64,
    /// The time that these took longer.
    pub cost: Duration,
    /// The processor time of the process meanwhile.
    pub cpu: Duration,
    /// Lost records of allocations and of freed memory.
    pub lost: u64,
    /// The time after which the probes were removed because of their cost.
    pub stopped_after: Option<Duration>,
}

impl KernelRecording {
    /// The numbers of its samples.
    pub const fn summary(&self) -> SampleSummary {
        self.summary
    }

    /// Returns the file. Its position is anywhere, and shared by all that this returns.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives the file a name that no other file has.
    ///
    /// # Errors
    /// As [`StagedFile::name_new`].
    pub fn name_new(&mut self, path: &Path) -> io::Result<()> {
        self.staged.name_new(path)
    }
}

impl KernelSamples for LiveSamples {
    fn read(&mut self, add: &mut dyn FnMut(&Event<'_>)) {
        Self::read(self, add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_not_in_step_with_ticks() {
        let seen = [1000, 100, 250, 500, 5000, 10_000, 997, 99, 3000, 1, 10, 0].map(out_of_step);
        assert_eq!(seen, [997, 99, 249, 498, 4987, 9975, 997, 99, 2992, 1, 10, 0]);
    }
}
