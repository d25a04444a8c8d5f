//! The kernel's samples of a process as commands have them: the choice of a sampler, words for errors and
//! numbers, and the samples in the recording of the process.

use std::fmt;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use dipc_collect::kernel_samples::{NativeSummary, SampleError, SampleSummary};

use crate::exit::{Exit, Failure};
use crate::process::tracing_rights;
use crate::record::notes::Messages;
use crate::render::output_file::{NameOrigin, OutputFile};
use crate::render::{messages, units};

pub(crate) use dipc_collect::kernel_samples::{
    Activity, KernelRecording, KernelSampler, LIVE_FREQUENCY, LiveSamples, NativeAllocationSettings,
    RuntimeEvents, SampleSettings, ThreadSnapshot, snapshot,
};

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
    /// Starts the kernel's samples of a process, also of times off the processors with `off_cpu`, and says so
    /// if the process `is_new`; `None` if the runtime samples itself, for a stated reason unless the user
    /// asked for it.
    ///
    /// # Errors
    /// Fails if the kernel's samples are not available, but the user asked for them or the program lacks a
    /// sampler.
    pub(crate) fn start(
        self,
        pid: Result<u32, Failure>,
        off_cpu: bool,
        title: &str,
        has_runtime_sampler: bool,
        is_new: bool,
    ) -> Result<Option<LiveSamples>, Failure> {
        if self == Self::Runtime {
            return Ok(None);
        }
        let settings = SampleSettings::of_processors(LIVE_FREQUENCY, off_cpu);
        let start = |pid| Ok(LiveSamples::start(pid, settings, is_new, Box::new(Messages))?);
        match pid.and_then(start) {
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

/// The name of the samples in messages.
pub(crate) const NAME: &str = "kernel's samples";

pub(crate) fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: {error}", path.display()))
}

impl From<SampleError> for Failure {
    fn from(error: SampleError) -> Self {
        match error {
            SampleError::Session(error) => error.into(),
            SampleError::Write(error) => unwritten(Path::new(NAME), &error),
            SampleError::StacksRefused(reason) => {
                let failure = Self::new(Exit::Refused, format_args!("stack: {reason}"));
                // The reason begins with a file of the process.
                match tracing_rights::process_of(Path::new(&reason)) {
                    Some(pid) => failure.with_help(tracing_rights::to_attach(pid)),
                    None => failure,
                }
            }
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            SampleError::Open(error) => not_opened(&error),
            error => Self::new(Exit::Failed, format_args!("{NAME}: {error}")),
        }
    }
}

/// Returns the failure to open the kernel's events, with the least that would permit it.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn not_opened(error: &linux_sampler::Error) -> Failure {
    use linux_sampler::{AllocationObstacle, Obstacle};

    let failure = Failure::new(Exit::Failed, format_args!("{NAME}: {error}"));
    let help = match error {
        linux_sampler::Error::UserEvents(_) => {
            let failure = Failure::new(Exit::Refused, error);
            return failure.with_help("without --user-events the events come in a stream, on any kernel");
        }
        linux_sampler::Error::NoProcess { .. } => return Failure { exit: Exit::NotReachable, ..failure },
        linux_sampler::Error::NativeAllocations(reason) => {
            let help = match reason {
                AllocationObstacle::NotPermitted => {
                    "run dipc as root, or setcap cap_perfmon,cap_bpf+ep on the file of dipc; in a container also --cap-add PERFMON --cap-add BPF"
                }
                AllocationObstacle::Seccomp => {
                    "run dipc on the host, or its container with --cap-add PERFMON --cap-add BPF, or another seccomp profile"
                }
                _ => return Failure { exit: Exit::NotReachable, ..failure },
            };
            return Failure { exit: Exit::NotReachable, ..failure }.with_help(help);
        }
        linux_sampler::Error::NotPermitted { reason, .. } => match reason {
            Obstacle::Paranoid(level) if *level > 2 => {
                "sysctl kernel.perf_event_paranoid=2 (1 for the time in the kernel), or run dipc as root on the host, or its container with --cap-add SYS_ADMIN: CAP_PERFMON is not enough"
            }
            Obstacle::Paranoid(_) => {
                "setcap cap_perfmon+ep on the file of dipc, or sysctl kernel.perf_event_paranoid=2 (1 for the time in the kernel), or run dipc as root"
            }
            Obstacle::ParanoidForMachine(_) => {
                "setcap cap_perfmon,cap_sys_ptrace+ep on the file of dipc, or sysctl kernel.perf_event_paranoid=0, or run dipc as root"
            }
            Obstacle::OtherUser => {
                "run dipc as the user of the process, as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
            }
            Obstacle::Seccomp => {
                "run dipc on the host, or its container with --cap-add PERFMON (SYS_ADMIN if kernel.perf_event_paranoid is above 2)"
            }
            _ => return Failure { exit: Exit::NotReachable, ..failure },
        },
        _ => return failure,
    };
    Failure { exit: Exit::NotReachable, ..failure }.with_help(help)
}

/// The exit code for lost samples; warns of them if they are a failure.
pub(crate) fn loss_exit(summary: SampleSummary, fail_on_loss: bool) -> Exit {
    if !fail_on_loss || summary.lost == 0 {
        return Exit::Done;
    }
    messages::warning(format_args!(
        "the kernel lost {} samples, events and records of switches",
        summary.lost
    ));
    messages::help("a lower --frequency loses less");
    Exit::EventsLost
}

/// Writes samples into the file `path`, or one with a similar name if that is taken and the user did not
/// choose it.
pub(crate) fn save(samples: &KernelRecording, path: &Path, is_chosen: bool) -> Result<PathBuf, Failure> {
    announce(samples.summary());
    let origin = if is_chosen { NameOrigin::User } else { NameOrigin::Chosen };
    let mut out = OutputFile::beside(path, origin)?;
    let copied = samples.file().and_then(|mut file| {
        file.rewind()?;
        io::copy(&mut file, &mut out)
    });
    copied.map_err(|error| unwritten(path, &error))?;
    out.close()?;
    messages::note(format_args!("Output File    : {out}"));
    Ok(out.path().to_owned())
}

/// Prints the numbers of samples.
pub(crate) fn announce(summary: SampleSummary) {
    if let Some(native) = summary.native {
        announce_allocations(native);
    }
    if summary.events > 0 || summary.unreadable_events > 0 {
        messages::note(format_args!(
            "User events    : {}",
            units::counted(summary.events, "event", "events")
        ));
    }
    if summary.unreadable_events > 0 {
        messages::warning(format_args!(
            "{} of the runtime's events are unreadable and left out",
            units::count(summary.unreadable_events)
        ));
    }
    let is_only_samples = summary.native.is_none() && summary.events == 0;
    if is_only_samples || summary.samples > 0 || summary.waits > 0 || summary.lost > 0 {
        messages::note(format_args!("CPU samples    : {}", Numbers(summary)));
    }
}

/// Prints the numbers of native allocations, and what following them has cost.
fn announce_allocations(native: NativeSummary) {
    let NativeSummary { allocations, calls, cost, cpu, lost, stopped_after, .. } = native;
    let share =
        units::percent(100.0 * cost.as_secs_f64() / cpu.as_secs_f64().max(cost.as_secs_f64()).max(1e-9));
    messages::note(format_args!(
        "Native allocs  : {} followed, {lost} records lost; {} cost {}, {share} of the process's time",
        units::count(allocations),
        units::counted(calls, "call", "calls"),
        units::time(cost),
    ));
    if let Some(time) = stopped_after {
        messages::warning(format_args!(
            "the probes of native allocations were removed after {}: they cost more than the limit; what was recorded until then is kept",
            units::time(time)
        ));
        messages::help("--native-alloc-limit PERCENT sets another limit");
    }
}

/// The numbers of samples in words.
struct Numbers(SampleSummary);

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(summary) = self;
        let (cpu, off_cpu) = (units::time(summary.cpu), units::time(summary.off_cpu));
        let waits = format!("{} times off CPU of {off_cpu}", summary.waits);
        match (summary.samples, summary.waits) {
            (0, 1..) => f.write_str(&waits)?,
            (samples, 0) => write!(f, "{samples} samples of {cpu} on CPU")?,
            (samples, _) => write!(f, "{samples} samples of {cpu} on CPU, {waits}")?,
        }
        write!(f, ", {} lost", summary.lost)?;
        if summary.lost_stacks > 0 {
            write!(f, ", {} stacks of waits left out, represented by others", summary.lost_stacks)?;
        }
        if summary.throttled > 0 {
            write!(f, ", throttled {} times", summary.throttled)?;
        }
        if summary.cut_stacks > 0 {
            write!(f, ", {} stacks cut at the kernel's limit of frames", summary.cut_stacks)?;
        }
        Ok(())
    }
}
