//! The kernel's samples on Linux.

#[cfg(target_arch = "x86_64")]
mod managed_code;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use dipc_client::LiveReader;
use dipc_collect::staged::StagedFile;
use linux_sampler::{
    Access, Obstacle, OffCpu, RecordingCounts, RecordingWriter, Rights, Sampler, SamplerConfig, Scope,
    ThreadActivity, ThreadKey, ThreadWait, thread_activity,
};
use nettrace::Event;
use nettrace_writer::MergerOptions;

use super::{Activity, KernelRecording, NAME, SampleSettings, SampleSummary, ThreadSnapshot, unwritten};
use crate::exit::{Exit, Failure};
use crate::inspect::merging::Merging;
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::warn_of_omissions;
use crate::render::destination::Destination;
use crate::render::messages;
use crate::render::output_file::{NameOrigin, OutputFile};

/// Maximum time between two reads of the buffers.
const INTERVAL: Duration = Duration::from_millis(200);
/// The same for samples that are shown while they are taken.
const LIVE_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of pieces of live samples that wait for a reader.
const MAX_PIECES: usize = 64;
/// Maximum wait for the last piece of live samples.
const LAST_PIECE: Duration = Duration::from_secs(5);

/// A sampler that writes its samples into a file.
#[derive(Debug)]
pub(crate) struct KernelSampler {
    pid: u32,
    stop: Arc<AtomicBool>,
    /// The kind of samples and the right to take them, in words.
    description: String,
    thread: JoinHandle<Result<KernelRecording, Failure>>,
}

impl KernelSampler {
    /// Opens the kernel's events of a process and starts to sample it, into a temporary file in `folder`.
    pub(crate) fn start(pid: u32, settings: SampleSettings, folder: &Path) -> Result<Self, Failure> {
        Self::of(pid, OpenSampler::open(pid, settings, Begin::Running)?, folder)
    }

    /// Starts a program and samples it from its first instruction on. It runs even if the kernel does not
    /// permit that.
    pub(crate) fn spawn(
        command: Command,
        settings: SampleSettings,
        folder: &Path,
    ) -> io::Result<(Child, Result<Self, Failure>)> {
        linux_sampler::spawn_prepared(command, |pid| {
            let pid = pid.unsigned_abs();
            let opened = OpenSampler::open(pid, settings, Begin::Starting);
            opened.and_then(|opened| Self::of(pid, opened, folder))
        })
    }

    fn of(pid: u32, opened: OpenSampler, folder: &Path) -> Result<Self, Failure> {
        let (file, staged) = StagedFile::create(folder)
            .map_err(|error| failed(&format_args!("{}: {error}", folder.display())))?;
        let description = opened.description.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || record(opened, (file, staged), &until));
        Ok(Self { pid, stop, description, thread })
    }

    /// The sampled process.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// The kind of samples and the right to take them, in words.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Returns true if the process has ended.
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

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format_args!("{NAME}: {error}"))
}

/// Returns the failure to open the kernel's events, with the least that would permit it.
fn not_opened(error: &linux_sampler::Error) -> Failure {
    let failure = failed(error);
    let help = match error {
        linux_sampler::Error::NoProcess { .. } => return Failure { exit: Exit::NotReachable, ..failure },
        linux_sampler::Error::NotPermitted { reason, .. } => match reason {
            Obstacle::Paranoid(_) => {
                "setcap cap_perfmon+ep on the file of dipc, or sysctl kernel.perf_event_paranoid=2 (1 for the time in the kernel), or run dipc as root"
            }
            Obstacle::OtherUser => {
                "run dipc as the user of the process, as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
            }
            Obstacle::Seccomp => {
                "run dipc on the host, or its container with --cap-add PERFMON or another seccomp profile"
            }
            _ => return Failure { exit: Exit::NotReachable, ..failure },
        },
        _ => return failure,
    };
    Failure { exit: Exit::NotReachable, ..failure }.with_help(help)
}

/// The begin of the sampling of a process.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// The process runs.
    Running,
    /// The process runs, and was sampled before.
    Again,
    /// The process has not begun its program.
    Starting,
}

/// A sampler, and the writer of its records.
struct OpenSampler {
    sampler: Sampler,
    recording: RecordingWriter,
    description: String,
}

/// Maximum sample rate with the default stack size: with a higher one, the buffers fill up before a busy
/// machine reads them.
const MAX_RATE_WITH_DEEP_STACKS: u32 = 1000;
/// The bytes of the stack in samples that are more frequent: enough for calls into the C library.
const FEW_STACK_BYTES: u32 = 512;

impl OpenSampler {
    /// Opens the kernel's events of a process. Warns of missing parts, unless they were opened before.
    fn open(pid: u32, settings: SampleSettings, begin: Begin) -> Result<Self, Failure> {
        let pid = i32::try_from(pid).map_err(|error| failed(&error))?;
        let mut config = SamplerConfig::new(Scope::Processes(vec![pid]));
        config.frequency = settings.frequency;
        if settings.frequency > MAX_RATE_WITH_DEEP_STACKS {
            config.stack_bytes = FEW_STACK_BYTES;
        }
        if settings.off_cpu {
            config.off_cpu = OffCpu::Stacks { every: 1 };
        }
        let by_processor = settings.may_sample_processors().then(|| {
            config.scope = Scope::ProcessesByProcessor(vec![pid]);
            Sampler::open(&config)
        });
        let sees_short_threads = matches!(by_processor, Some(Ok(_)));
        let sampler = if let Some(Ok(sampler)) = by_processor {
            sampler
        } else {
            config.scope = Scope::Processes(vec![pid]);
            Sampler::open(&config).map_err(|error| not_opened(&error))?
        };
        let access = sampler.access();
        let is_new = !matches!(begin, Begin::Again);
        if !access.kernel && is_new {
            messages::warning(format_args!(
                "the kernel permits samples of user mode only: no time in the kernel{}; root, CAP_PERFMON or kernel.perf_event_paranoid of at most 1 gives them",
                if settings.off_cpu { ", and no stacks of waits" } else { "" }
            ));
        }
        if !access.children_excluded && is_new {
            messages::warning("kernel's samples: before Linux 5.13 they include the child processes");
        }
        // Before its first instruction, a process is a copy of this one, which the program replaces.
        let description = describe(settings, access, sees_short_threads);
        let recording = begin_recording(pid, &config, &description, !matches!(begin, Begin::Starting))?;
        Ok(Self { sampler, recording, description })
    }

    /// Turns the records of the next moment into events. Returns false once the process has ended.
    fn read(&mut self, timeout: Duration) -> Result<bool, Failure> {
        for record in self.sampler.read(timeout).map_err(|error| failed(&error))? {
            self.recording.record(&record).map_err(|error| failed(&error))?;
        }
        Ok(self.sampler.running() > 0)
    }

    /// Ends the sampling.
    fn stop(&mut self) -> Result<(), Failure> {
        for record in self.sampler.finish() {
            self.recording.record(&record).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Ends the sampling, and the recording.
    fn finish(&mut self) -> Result<RecordingCounts, Failure> {
        self.stop()?;
        self.recording.finish(Sampler::now_ns()).map_err(|error| failed(&error))
    }
}

/// Begins a recording of a process, with its threads and mappings if it `runs`.
fn begin_recording(
    pid: i32,
    config: &SamplerConfig,
    description: &str,
    runs: bool,
) -> Result<RecordingWriter, Failure> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let start = Sampler::now_ns();
    let recording = RecordingWriter::new(now_ms, start, Some(pid), config, description);
    let mut recording = recording.map_err(|error| failed(&error))?;
    if runs {
        recording.existing_process(pid).map_err(|error| failed(&error))?;
    }
    #[cfg(not(target_arch = "x86_64"))]
    messages::warning(format_args!(
        "the memory of programs of {} is not read yet: callers of methods without frame pointer are missing",
        std::env::consts::ARCH
    ));
    #[cfg(target_arch = "x86_64")]
    recording.set_runtime_unwinder(Box::new(managed_code::ManagedCode::new(pid)));
    Ok(recording)
}

/// Returns the kind of samples and the right to take them, in words.
fn describe(settings: SampleSettings, access: Access, sees_short_threads: bool) -> String {
    let SampleSettings { frequency, off_cpu, .. } = settings;
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
    let short_threads = if sees_short_threads { ", threads of milliseconds included" } else { "" };
    format!("by the kernel, {samples}, with time in the kernel ({right}){short_threads}")
}

/// Writes samples until a stop is requested or the process ends.
fn record(
    mut opened: OpenSampler,
    (mut file, staged): (File, StagedFile),
    stop: &AtomicBool,
) -> Result<KernelRecording, Failure> {
    let mut write = |recording: &mut RecordingWriter| {
        let written = file.write_all(recording.bytes());
        recording.clear_bytes();
        written.map_err(|error| unwritten(Path::new(NAME), &error))
    };
    while opened.read(INTERVAL)? && !stop.load(Ordering::Acquire) {
        write(&mut opened.recording)?;
    }
    let counts = opened.finish()?;
    write(&mut opened.recording)?;
    Ok(KernelRecording { file, staged, summary: counts.into() })
}

/// Samples of a process that are read while they are taken. They end when it is dropped.
pub(crate) struct LiveSamples {
    stop: Arc<AtomicBool>,
    description: String,
    /// Pieces of a recording of the samples.
    pieces: Receiver<Vec<u8>>,
    reader: LiveReader,
    /// True if the error that made the samples unreadable was reported.
    is_unreadable: bool,
    is_over: bool,
}

impl LiveSamples {
    /// Opens the kernel's events of a process, and starts to sample its running threads.
    pub(crate) fn start(pid: u32, frequency: u32, is_new: bool) -> Result<Self, Failure> {
        let begin = if is_new { Begin::Running } else { Begin::Again };
        let settings = SampleSettings::of_processors(frequency, false);
        let mut opened = OpenSampler::open(pid, settings, begin)?;
        let description = opened.description.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        // A reader that is late makes the kernel lose samples, which are counted.
        let (sender, pieces) = mpsc::sync_channel(MAX_PIECES);
        thread::spawn(move || {
            let outcome = send(&mut opened, &sender, &until);
            if let Err(failure) = outcome {
                messages::warning(failure);
            }
        });
        let reader = LiveReader::new(Duration::ZERO);
        Ok(Self { stop, description, pieces, reader, is_unreadable: false, is_over: false })
    }

    /// The kind of samples and the right to take them, in words.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Returns true if the process has ended and its last samples were read.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Passes the samples taken so far to `add`, with the names of their frames.
    pub(crate) fn read(&mut self, mut add: impl FnMut(&Event<'_>)) {
        loop {
            match self.pieces.try_recv() {
                Ok(bytes) => self.reader.feed(&bytes),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    break;
                }
            }
        }
        // Before its header, a stream cannot release events.
        if self.reader.info().is_none() {
            return;
        }
        self.reader.release();
        while let Some(event) = self.reader.next() {
            add(&event);
        }
        if let Some(error) = self.reader.unreadable().filter(|_| !self.is_unreadable) {
            messages::warning(format_args!("{NAME}: {error}"));
            self.is_unreadable = true;
        }
    }

    /// Ends the sampling, and passes the remaining samples to `add`.
    pub(crate) fn finish(mut self, mut add: impl FnMut(&Event<'_>)) {
        self.stop.store(true, Ordering::Release);
        let deadline = Instant::now() + LAST_PIECE;
        while !self.is_over && Instant::now() < deadline {
            self.read(&mut add);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for LiveSamples {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Sends samples until a stop is requested, the process ends or the receiver is gone.
fn send(opened: &mut OpenSampler, pieces: &SyncSender<Vec<u8>>, stop: &AtomicBool) -> Result<(), Failure> {
    loop {
        let is_running = opened.read(LIVE_INTERVAL)? && !stop.load(Ordering::Acquire);
        if is_running {
            opened.recording.flush().map_err(|error| failed(&error))?;
        } else {
            opened.finish()?;
        }
        let bytes = opened.recording.bytes().to_vec();
        opened.recording.clear_bytes();
        if pieces.send(bytes).is_err() || !is_running {
            return Ok(());
        }
    }
}

/// The samples of a running thread per second of a snapshot.
const SNAPSHOT_FREQUENCY: u32 = 997;

/// Samples the running threads of a process for a moment, then reads the stacks of waiting threads. `add`
/// takes each event, and whether it is of a waiting thread.
pub(crate) fn snapshot(
    pid: u32,
    duration: Duration,
    mut add: impl FnMut(&Event<'_>, bool),
) -> Result<Vec<ThreadSnapshot>, Failure> {
    let settings = SampleSettings::of_threads(SNAPSHOT_FREQUENCY);
    let mut reader = LiveReader::new(Duration::ZERO);
    let mut pass = |recording: &mut RecordingWriter, is_waiting| {
        reader.feed(recording.bytes());
        recording.clear_bytes();
        reader.release();
        while let Some(event) = reader.next() {
            add(&event, is_waiting);
        }
    };
    let mut recording = match OpenSampler::open(pid, settings, Begin::Running) {
        Ok(mut opened) => {
            let end = Instant::now() + duration;
            while opened.read(end.saturating_duration_since(Instant::now()))? && Instant::now() < end {}
            opened.stop()?;
            opened.recording
        }
        Err(failure) => {
            messages::warning(format_args!("running threads have no stacks: {failure}"));
            let pid = i32::try_from(pid).map_err(|error| failed(&error))?;
            begin_recording(pid, &SamplerConfig::of_process(pid), "not permitted", true)?
        }
    };
    recording.flush().map_err(|error| failed(&error))?;
    pass(&mut recording, false);
    let pid = i32::try_from(pid).map_err(|error| failed(&error))?;
    let mut tids = linux_sampler::threads(pid).map_err(|error| failed(&error))?;
    tids.sort_unstable();
    let mut threads = Vec::new();
    for tid in tids {
        let activity = match thread_activity(pid, tid) {
            Ok(ThreadActivity::Waiting(wait)) => {
                let thread = ThreadKey { pid, tid };
                recording.waiting_thread(thread, &wait, Sampler::now_ns()).map_err(|error| failed(&error))?;
                let ThreadWait { system_call, function, kernel_frames, .. } = wait;
                Activity::Waiting { system_call, function, kernel_frames }
            }
            Ok(_) => Activity::Running,
            // The thread has ended.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => continue,
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => continue,
            Err(error) => Activity::Unknown(format!("/proc/{pid}/task/{tid}/syscall: {error}")),
        };
        let id = linux_sampler::innermost_id(pid, tid).unwrap_or(tid).unsigned_abs().into();
        threads.push(ThreadSnapshot { id, activity });
    }
    if let Some(ThreadSnapshot { activity: Activity::Unknown(reason), .. }) = threads.first()
        && threads.iter().all(|thread| matches!(thread.activity, Activity::Unknown(_)))
    {
        return Err(Failure::new(Exit::Refused, format_args!("stack: {reason}")).with_help(
            "native stacks need the rights of a debugger: the user of the process (with kernel.yama.ptrace_scope 0), CAP_SYS_PTRACE or root",
        ));
    }
    recording.finish(Sampler::now_ns()).map_err(|error| failed(&error))?;
    pass(&mut recording, true);
    Ok(threads)
}

/// Maximum number of samples a second of the whole machine; samples of other processes are dropped: a process
/// pays 2 % for a thousand a second of each of its threads, and this one for all of them.
const MAX_MACHINE_RATE: u64 = 16_000;

impl SampleSettings {
    /// Returns true if the timers of all processors may take the samples.
    fn may_sample_processors(self) -> bool {
        let samples =
            |processors: Vec<i32>| u64::from(self.frequency).saturating_mul(processors.len() as u64);
        self.short_threads
            && self.frequency > 0
            && linux_sampler::processors().is_ok_and(|all| samples(all) <= MAX_MACHINE_RATE)
    }
}

impl From<RecordingCounts> for SampleSummary {
    fn from(counts: RecordingCounts) -> Self {
        Self {
            samples: counts.cpu_samples,
            cpu: Duration::from_nanos(counts.cpu_ns),
            off_cpu: Duration::from_nanos(counts.off_cpu_ns),
            waits: counts.off_cpu_intervals,
            lost: counts.lost,
            lost_stacks: counts.lost_stacks,
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
    let options = MergerOptions::default().with_same_processes(true).with_sampling_rate_of(1);
    let mut merging = Merging::of(both, options)?;
    let mut out = Destination::File(OutputFile::beside(recording, NameOrigin::Derived)?);
    merging.write(&mut out)?;
    warn_of_omissions(merging.merger.omissions());
    match out {
        Destination::File(mut file) => file.close(),
        Destination::StandardOutput => Ok(()),
    }
}
