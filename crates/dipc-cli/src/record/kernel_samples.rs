//! The kernel's samples of a process, first kept next to its recording and then merged into it.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use dipc_collect::staged::StagedFile;
use nettrace_export::{Measure, Metric, Profile};

use crate::exit::{Exit, Failure};
use crate::inspect::recording::Recording;
use crate::render::output_file::{NameOrigin, OutputFile};
use crate::render::{messages, units};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use linux::{KernelSampler, LiveSamples, merge_into, snapshot};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) use elsewhere::{KernelSampler, LiveSamples, merge_into, snapshot};

/// The weaknesses of the runtime's own sampler, in words.
pub(crate) const RUNTIME_SAMPLER: &str =
    "it stops all threads for each sample, sees managed code only, and cannot tell running from waiting";

/// The sampler that a command takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplerChoice {
    /// The kernel, or the runtime if the kernel does not permit it
    #[default]
    Auto,
    /// The kernel: the time of running threads, with native and kernel frames (Linux)
    Kernel,
    /// The runtime, which stops all threads for each sample
    Runtime,
}

impl SamplerChoice {
    /// Starts the kernel's samples of a process, and says so if that `is_new`; `None` if the runtime samples
    /// itself, for a stated reason unless the user asked for it.
    ///
    /// # Errors
    /// Fails if the kernel's samples are not available, but the user asked for them or the program lacks a
    /// sampler.
    pub(crate) fn start(
        self,
        pid: Result<u32, Failure>,
        title: &str,
        has_runtime_sampler: bool,
        is_new: bool,
    ) -> Result<Option<LiveSamples>, Failure> {
        if self == Self::Runtime {
            return Ok(None);
        }
        match pid.and_then(|pid| LiveSamples::start(pid, LIVE_FREQUENCY, is_new)) {
            Ok(samples) => {
                if is_new {
                    messages::note(format_args!("Samples        : {title}: {}", samples.description()));
                }
                Ok(Some(samples))
            }
            Err(failure) if self == Self::Kernel || !has_runtime_sampler => Err(failure),
            Err(failure) => {
                messages::warning(format_args!("{title}: {failure}"));
                messages::warning(format_args!("{title}: the runtime samples itself: {RUNTIME_SAMPLER}"));
                Ok(None)
            }
        }
    }
}

/// Marks a profile as processor time, even if no thread of the process ran.
pub(crate) fn into_processor_time(profile: &mut Profile) {
    profile.metric = Metric::Cpu;
    profile.measure = Measure::CPU_TIME;
}

/// The samples per second of commands that watch a process: they cost it next to nothing.
pub(crate) const LIVE_FREQUENCY: u32 = 99;

/// The activity of a thread at the time of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The thread runs, or waits for a processor.
    Running,
    /// The thread waits in the kernel.
    Waiting {
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
pub(crate) struct ThreadSnapshot {
    /// Thread id as the process itself sees it.
    pub(crate) id: u64,
    pub(crate) activity: Activity,
}

impl ThreadSnapshot {
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.activity, Activity::Waiting { .. })
    }
}

/// The requested samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSettings {
    /// Samples per second of a running thread; 0 for none.
    pub(crate) frequency: u32,
    /// True to record threads leaving a processor.
    pub(crate) off_cpu: bool,
    /// True to sample whole processors if that is permitted, which sees threads that live for
    /// milliseconds.
    pub(crate) short_threads: bool,
}

impl SampleSettings {
    /// Samples of whole processors where that is permitted, of running threads elsewhere.
    pub(crate) const fn of_processors(frequency: u32, off_cpu: bool) -> Self {
        Self { frequency: out_of_step(frequency), off_cpu, short_threads: true }
    }

    /// Samples of running threads that live for more than moments.
    pub(crate) const fn of_threads(frequency: u32) -> Self {
        Self { frequency, off_cpu: false, short_threads: false }
    }
}

/// Returns a frequency that is not in step with the ticks at which the kernel switches threads.
///
/// Timers of processors that are in step with the ticks take each sample at the same moment of a thread's turn.
/// On two busy processors a method with 70 % of the time had 64 to 78 % of the samples at 1,000 Hz, by `perf`
/// as well, and 70 to 71 % at 997 Hz.
const fn out_of_step(frequency: u32) -> u32 {
    let is_in_step = frequency > 10 && (1000_u32.is_multiple_of(frequency) || frequency.is_multiple_of(1000));
    if is_in_step { frequency - frequency.div_ceil(400) } else { frequency }
}

/// A file without a name, with the samples of a process: it disappears however the program ends.
#[derive(Debug)]
pub(crate) struct KernelRecording {
    file: File,
    staged: StagedFile,
    summary: SampleSummary,
}

/// The numbers of samples taken and missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleSummary {
    samples: u64,
    cpu: Duration,
    off_cpu: Duration,
    waits: u64,
    lost: u64,
    lost_stacks: u64,
    throttled: u64,
    cut_stacks: u64,
}

impl SampleSummary {
    /// The exit code for lost samples; warns of them if they are a failure.
    pub(crate) fn exit(self, fail_on_loss: bool) -> Exit {
        if !fail_on_loss || self.lost == 0 {
            return Exit::Done;
        }
        messages::warning(format_args!("the kernel lost {} samples and records of switches", self.lost));
        messages::help("a lower --frequency loses less");
        Exit::EventsLost
    }
}

impl KernelRecording {
    /// The numbers of its samples.
    pub(crate) const fn summary(&self) -> SampleSummary {
        self.summary
    }

    /// Opens the samples as a recording.
    pub(crate) fn open(&self) -> Result<Recording, Failure> {
        let file = self.file.try_clone().map_err(|error| unwritten(Path::new(NAME), &error))?;
        Recording::of_file(file, NAME)
    }

    /// Names the file `path`, or a similar name if that is taken and the user did not choose it.
    pub(crate) fn save(mut self, path: &Path, is_chosen: bool) -> Result<PathBuf, Failure> {
        messages::note(format_args!("CPU samples    : {}", self.summary));
        let origin = if is_chosen { NameOrigin::User } else { NameOrigin::Chosen };
        let mut out = OutputFile::beside(path, origin)?;
        let written = self.file.rewind().and_then(|()| io::copy(&mut self.file, &mut out));
        written.map_err(|error| unwritten(path, &error))?;
        out.close()?;
        messages::note(format_args!("Output File    : {out}"));
        Ok(out.path().to_owned())
    }

    /// Keeps the file under a name of its own, in case it cannot be merged into the recording.
    fn keep(mut self, recording: &Path) -> Result<PathBuf, Failure> {
        let path = recording.with_extension("kernel.nettrace");
        self.staged.name_new(&path).map_err(|error| unwritten(&path, &error))?;
        Ok(path)
    }
}

/// The name of the samples in messages.
const NAME: &str = "kernel's samples";

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: {error}", path.display()))
}

impl fmt::Display for SampleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cpu, off_cpu) = (units::time(self.cpu), units::time(self.off_cpu));
        let waits = format!("{} times off CPU of {off_cpu}", self.waits);
        match (self.samples, self.waits) {
            (0, 1..) => f.write_str(&waits)?,
            (samples, 0) => write!(f, "{samples} samples of {cpu} on CPU")?,
            (samples, _) => write!(f, "{samples} samples of {cpu} on CPU, {waits}")?,
        }
        write!(f, ", {} lost", self.lost)?;
        if self.lost_stacks > 0 {
            write!(f, ", {} stacks of waits left out, represented by others", self.lost_stacks)?;
        }
        if self.throttled > 0 {
            write!(f, ", throttled {} times", self.throttled)?;
        }
        if self.cut_stacks > 0 {
            write!(f, ", {} stacks cut at the kernel's limit of frames", self.cut_stacks)?;
        }
        Ok(())
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
