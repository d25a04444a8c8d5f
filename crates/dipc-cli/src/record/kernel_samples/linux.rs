//! The kernel's samples on Linux.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use linux_sampler::{
    Access, OffCpu, RecordingCounts, RecordingWriter, Rights, Sampler, SamplerConfig, Scope,
};
use nettrace_writer::MergerOptions;

use super::{KernelRecording, NAME, SampleSettings, SampleSummary, unwritten};
use crate::exit::{Exit, Failure};
use crate::inspect::merging::Merging;
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::warn_of_omissions;
use crate::render::destination::Destination;
use crate::render::messages;
use crate::render::output_file::{NameOrigin, OutputFile};
use crate::render::staged_file::StagedFile;

/// The longest time between two reads of the buffers.
const INTERVAL: Duration = Duration::from_millis(200);

/// A sampler that writes its samples into a file.
#[derive(Debug)]
pub(crate) struct KernelSampler {
    stop: Arc<AtomicBool>,
    /// The kind of samples and the right to take them, in words.
    description: String,
    thread: JoinHandle<Result<KernelRecording, Failure>>,
}

impl KernelSampler {
    /// Opens the kernel's events of a process and starts to sample it, into a temporary file in `folder`.
    pub(crate) fn start(pid: u32, settings: SampleSettings, folder: &Path) -> Result<Self, Failure> {
        let failed =
            |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, format_args!("{NAME}: {error}"));
        let pid = i32::try_from(pid).map_err(|error| failed(&error))?;
        let mut config = SamplerConfig::new(Scope::Processes(vec![pid]));
        config.frequency = settings.frequency;
        if settings.off_cpu {
            config.off_cpu = OffCpu::Stacks { every: 1 };
        }
        let sampler = Sampler::open(&config).map_err(|error| failed(&error))?;
        let access = sampler.access();
        if !access.kernel {
            messages::warning(format_args!(
                "the kernel permits samples of user mode only: no time in the kernel{}; root, CAP_PERFMON or kernel.perf_event_paranoid of at most 1 gives them",
                if settings.off_cpu { ", and no stacks of waits" } else { "" }
            ));
        }
        if !access.children_excluded {
            messages::warning("kernel's samples: before Linux 5.13 they include the child processes");
        }
        let (file, staged) = StagedFile::create(folder)
            .map_err(|error| failed(&format_args!("{}: {error}", folder.display())))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let start = Sampler::now_ns();
        let mut recording =
            RecordingWriter::new(now_ms, start, Some(pid), &config).map_err(|error| failed(&error))?;
        recording.existing_process(pid).map_err(|error| failed(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || record(sampler, recording, (file, staged), &until));
        Ok(Self { stop, description: describe(settings, access), thread })
    }

    /// The kind of samples and the right to take them, in words.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Whether the process has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the sampling.
    pub(crate) fn finish(self) -> Result<KernelRecording, Failure> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| {
            Err(Failure::new(Exit::Failed, "kernel's samples: their thread has ended early"))
        })
    }
}

/// Returns the kind of samples and the right to take them, in words.
fn describe(settings: SampleSettings, access: Access) -> String {
    let SampleSettings { frequency, off_cpu } = settings;
    let samples = match (frequency, off_cpu) {
        (0, _) => "waits".to_owned(),
        (_, false) => format!("{frequency} samples a second of each running thread"),
        (_, true) => format!("{frequency} samples a second of each running thread, and waits"),
    };
    if !access.kernel {
        return format!("by the kernel, {samples}, in user mode only");
    }
    let rights = Rights::of_self();
    let right = match rights.paranoid {
        _ if rights.has_capability => "root or CAP_PERFMON".to_owned(),
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => "permitted".to_owned(),
    };
    format!("by the kernel, {samples}, with time in the kernel ({right})")
}

/// Writes samples until a stop is requested or the process ends.
fn record(
    mut sampler: Sampler,
    mut recording: RecordingWriter,
    (mut file, staged): (File, StagedFile),
    stop: &AtomicBool,
) -> Result<KernelRecording, Failure> {
    let encoding = |error| Failure::new(Exit::Failed, format_args!("{NAME}: {error}"));
    let write = |recording: &mut RecordingWriter, file: &mut File| {
        let written = file.write_all(recording.bytes());
        recording.clear_bytes();
        written.map_err(|error| unwritten(Path::new(NAME), &error))
    };
    while !stop.load(Ordering::Acquire) && sampler.running() > 0 {
        let records = sampler
            .read(INTERVAL)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("{NAME}: {error}")))?;
        for record in records {
            recording.record(&record).map_err(encoding)?;
        }
        write(&mut recording, &mut file)?;
    }
    for record in sampler.finish() {
        recording.record(&record).map_err(encoding)?;
    }
    let counts = recording.finish(Sampler::now_ns()).map_err(encoding)?;
    write(&mut recording, &mut file)?;
    Ok(KernelRecording { file, staged, summary: counts.into() })
}

impl From<RecordingCounts> for SampleSummary {
    fn from(counts: RecordingCounts) -> Self {
        Self {
            samples: counts.cpu_samples,
            cpu: Duration::from_nanos(counts.cpu_ns),
            off_cpu: Duration::from_nanos(counts.off_cpu_ns),
            waits: counts.off_cpu_intervals,
            lost: counts.lost,
            throttled: counts.throttled,
            cut_stacks: counts.cut_stacks,
        }
    }
}

/// Merges the samples into the recording of the same process, which becomes a V6 recording. If that fails,
/// both files stay.
pub(crate) fn merge_into(recording: &Path, samples: KernelRecording) -> Result<(), Failure> {
    messages::note(format_args!("CPU samples    : {}", samples.summary));
    merge(&samples, recording).or_else(|failure| {
        let kept = samples.keep(recording)?;
        Err(failure.with_help(format_args!(
            "the samples are in {}, and dipc merge --same-process puts them into the recording",
            kept.display()
        )))
    })
}

fn merge(samples: &KernelRecording, recording: &Path) -> Result<(), Failure> {
    let both = vec![Recording::open(recording)?, samples.open()?];
    let mut merging = Merging::of(both, MergerOptions::default().with_same_processes(true))?;
    let mut out = Destination::File(OutputFile::beside(recording, NameOrigin::Derived)?);
    merging.write(&mut out)?;
    warn_of_omissions(merging.merger.omissions());
    match out {
        Destination::File(mut file) => file.close(),
        Destination::StandardOutput => Ok(()),
    }
}
