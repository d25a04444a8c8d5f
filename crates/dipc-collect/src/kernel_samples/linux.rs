//! The kernel's samples on Linux.

mod continuous;
mod drain;
mod event_kinds;
mod machine;
mod managed_code;
mod process_filter;
mod runtime_events;

use std::fmt;
use std::fmt::Write as _;
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
use linux_sampler::{
    Access, AllocationCounts, NativeAllocations, OffCpu, RecordKind, RecordingCounts, RecordingWriter,
    Records, Rights, Sampler, SamplerConfig, Scope, ThreadActivity, ThreadKey, ThreadWait, thread_activity,
};
use nettrace::Event;

use super::{
    Activity, KernelRecording, NativeSummary, SampleError, SampleSettings, SampleSummary, ThreadSnapshot,
};
use crate::observer::{Note, Observer};
use crate::staged::StagedFile;

pub use continuous::ContinuousSampler;
pub use linux_sampler::pid_of_id;
pub use machine::MachineSampler;
pub use runtime_events::RuntimeEvents;

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
pub struct KernelSampler {
    pid: u32,
    stop: Arc<AtomicBool>,
    /// The kind of samples and the right to take them, in words.
    description: String,
    /// The probes of native allocations and their cost, in words.
    probes: Option<String>,
    thread: JoinHandle<Result<KernelRecording, SampleError>>,
}

impl KernelSampler {
    /// Opens the kernel's events of a process and starts to sample it, into a temporary file in `folder`,
    /// with the events that its runtime writes to the kernel, if there are any.
    ///
    /// # Errors
    /// If the kernel does not permit it, the process does not exist, or the file cannot be created.
    pub fn start(
        pid: u32,
        settings: SampleSettings,
        events: Option<RuntimeEvents>,
        folder: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        Self::of(pid, OpenSampler::open(pid, settings, events, Begin::Running, observer)?, folder)
    }

    /// Starts a program and samples it from its first instruction on. It runs even if the kernel does not
    /// permit that.
    ///
    /// # Errors
    /// If the program cannot be started; the inner result is that of [`start`](Self::start).
    pub fn spawn(
        command: Command,
        settings: SampleSettings,
        folder: &Path,
        observer: &mut (dyn Observer + Send),
    ) -> io::Result<(Child, Result<Self, SampleError>)> {
        linux_sampler::spawn_prepared(command, |pid| {
            let pid = pid.unsigned_abs();
            let opened = OpenSampler::open(pid, settings, None, Begin::Starting, observer);
            opened.and_then(|opened| Self::of(pid, opened, folder))
        })
    }

    fn of(pid: u32, opened: OpenSampler, folder: &Path) -> Result<Self, SampleError> {
        let (file, staged) = StagedFile::create(folder)
            .map_err(|error| SampleError::Create { folder: folder.to_owned(), error })?;
        let (description, probes) = (opened.description.clone(), opened.probes.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || record(opened, (file, staged), &until));
        Ok(Self { pid, stop, description, probes, thread })
    }

    /// The sampled process.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The kind of samples and the right to take them, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The probes of native allocations, if there are any, with their cost as it was measured beforehand and
    /// in the first second, in words.
    pub fn probes(&self) -> Option<&str> {
        self.probes.as_deref()
    }

    /// Returns true if the process has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the sampling.
    ///
    /// # Errors
    /// If the kernel's events could not be read, or the samples not be written.
    pub fn finish(self) -> Result<KernelRecording, SampleError> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or(Err(SampleError::EndedEarly))
    }
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
    pid: i32,
    sampler: Sampler,
    recording: RecordingWriter,
    events: Option<RuntimeEvents>,
    description: String,
    /// The probes of native allocations and their cost, in words.
    probes: Option<String>,
}

/// The pages of each processor's buffer for records of allocations and for events: 16 MiB, for 3,900
/// allocations.
const PAGES_FOR_BURSTS: usize = 4096;

/// The time in which the cost of probes is measured before a recording begins.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Maximum sample rate with the default stack size: with a higher one, the buffers fill up before a busy
/// machine reads them.
const MAX_RATE_WITH_DEEP_STACKS: u32 = 1000;
/// The bytes of the stack in samples that are more frequent: enough for calls into the C library.
const FEW_STACK_BYTES: u32 = 512;

impl OpenSampler {
    /// Opens the kernel's events of a process. Notes missing parts, unless they were opened before.
    fn open(
        pid: u32,
        settings: SampleSettings,
        mut events: Option<RuntimeEvents>,
        begin: Begin,
        observer: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        let pid = i32::try_from(pid)?;
        let mut config = SamplerConfig::of_process(pid).with_frequency(settings.frequency);
        if settings.frequency > MAX_RATE_WITH_DEEP_STACKS {
            config = config.with_stack_bytes(FEW_STACK_BYTES);
        }
        if settings.off_cpu {
            config = config.with_off_cpu(OffCpu::Stacks { every: 1 });
        }
        let native = settings.native_allocations.map(|of| {
            NativeAllocations::default().with_interval(of.interval).with_limit_percent(of.limit_percent)
        });
        if native.is_some() || events.is_some() {
            // They come in bursts, each record has a stack, and an allocation that is lost looks like a leak.
            config = config.with_buffer_pages(PAGES_FOR_BURSTS);
        }
        config = config.with_native_allocations(native);
        if let Some(events) = &events {
            config = config.with_tracepoints(events.tracepoints());
        }
        let by_processor = settings.may_sample_processors().then(|| {
            let config = config.clone().with_scope(Scope::ProcessesByProcessor(vec![pid]));
            Sampler::open(&config).map(|sampler| (sampler, config))
        });
        let sees_short_threads = matches!(by_processor, Some(Ok(_)));
        let (sampler, config) = match by_processor {
            Some(Ok(opened)) => opened,
            _ => (Sampler::open(&config).map_err(SampleError::Open)?, config),
        };
        let access = sampler.access();
        let is_new = !matches!(begin, Begin::Again);
        if !access.kernel && is_new {
            observer.note(Note::UserModeOnly { off_cpu: settings.off_cpu });
        }
        if !access.children_excluded && is_new {
            observer.note(Note::ChildrenIncluded);
        }
        // Before its first instruction, a process is a copy of this one, which the program replaces.
        let description = describe(settings, events.is_some(), access, sees_short_threads);
        let recording = begin_recording(pid, &config, &description, !matches!(begin, Begin::Starting))?;
        if let Some(events) = &mut events {
            // Its events are not older than the recording.
            events.begin()?;
        }
        let mut opened = Self { pid, sampler, recording, events, description, probes: None };
        if native.is_some() {
            opened.look_at_allocations()?;
        }
        Ok(opened)
    }

    /// Reads the records of a moment, to describe the cost of probes by it.
    fn look_at_allocations(&mut self) -> Result<(), SampleError> {
        let end = Instant::now() + FIRST_LOOK;
        let is_running = loop {
            let left = end.saturating_duration_since(Instant::now());
            let is_running = self.read(left.min(INTERVAL))?;
            if !is_running || left.is_zero() {
                break is_running;
            }
        };
        let (Some(counts), Some(probes)) =
            (self.sampler.allocation_counts(), self.sampler.allocation_probes())
        else {
            return Ok(());
        };
        let mut text = probes;
        if is_running {
            let milliseconds = |nanoseconds: u64| nanoseconds / 1_000_000;
            let _ = write!(
                text,
                "; {} calls in the first second cost {} ms, and the process ran {} ms",
                counts.hits_per_second(),
                milliseconds(counts.cost_ns),
                milliseconds(counts.cpu_ns),
            );
        }
        self.probes = Some(text);
        Ok(())
    }

    /// Turns the records of the next moment into events. Returns false once the process has ended.
    fn read(&mut self, timeout: Duration) -> Result<bool, SampleError> {
        let records = self.sampler.read(timeout).map_err(SampleError::Read)?;
        write_records(records, &mut self.recording, &mut self.events)?;
        Ok(self.sampler.running() > 0)
    }

    /// Ends the sampling.
    fn stop(&mut self) -> Result<(), SampleError> {
        if let Some(events) = &mut self.events {
            // A runtime that does not answer has ended, or will end the session with its connection.
            let _ = events.stop();
        }
        write_records(self.sampler.finish(), &mut self.recording, &mut self.events)?;
        if let Some(counts) = self.sampler.allocation_counts() {
            let ended = self.recording.native_allocations_end(self.pid, &counts);
            ended.map_err(SampleError::Record)?;
        }
        Ok(())
    }

    /// Ends the sampling, and the recording.
    fn finish(&mut self) -> Result<SampleSummary, SampleError> {
        self.stop()?;
        let counts = self.recording.finish(Sampler::now_ns()).map_err(SampleError::Record)?;
        let native = self.sampler.allocation_counts().map(|of| native_summary(counts, &of));
        let unreadable_events = self.events.as_ref().map_or(0, RuntimeEvents::unreadable);
        Ok(SampleSummary { unreadable_events, native, ..counts.into() })
    }
}

/// Turns records into events of the recording.
fn write_records(
    records: Records<'_>,
    recording: &mut RecordingWriter,
    events: &mut Option<RuntimeEvents>,
) -> Result<(), SampleError> {
    for record in records {
        let written = match (&record.kind, &mut *events) {
            (RecordKind::Tracepoint(event), Some(events)) => events.add(recording, &record, event),
            _ => recording.record(&record),
        };
        written.map_err(SampleError::Record)?;
    }
    Ok(())
}

/// Begins a recording of a process, with its threads and mappings if it `runs`.
fn begin_recording(
    pid: i32,
    config: &SamplerConfig,
    description: &str,
    runs: bool,
) -> Result<RecordingWriter, SampleError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let start = Sampler::now_ns();
    let recording = RecordingWriter::new(now_ms, start, Some(pid), config, description);
    let recording = recording.map_err(SampleError::Record)?;
    let recording = recording.with_runtime_unwinder(Box::new(managed_code::ManagedCode::new(pid)));
    let mut recording = recording;
    if runs {
        // The stacks of threads that wait from before on have managed code.
        recording.existing_process(pid).map_err(SampleError::Record)?;
    }
    Ok(recording)
}

/// Returns the kind of samples and the right to take them, in words.
fn describe(settings: SampleSettings, has_events: bool, access: Access, sees_short_threads: bool) -> String {
    if !settings.samples_threads() {
        let parts = [("events", has_events), ("native allocations", settings.native_allocations.is_some())];
        let parts: Vec<_> = parts.iter().filter_map(|(name, is_there)| is_there.then_some(*name)).collect();
        return format!("by the kernel, {}", parts.join(" and "));
    }
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
) -> Result<KernelRecording, SampleError> {
    let mut write = |recording: &mut RecordingWriter| {
        let written = file.write_all(recording.bytes());
        recording.clear_bytes();
        written.map_err(SampleError::Write)
    };
    while opened.read(INTERVAL)? && !stop.load(Ordering::Acquire) {
        write(&mut opened.recording)?;
    }
    let summary = opened.finish()?;
    write(&mut opened.recording)?;
    Ok(KernelRecording { file, staged, summary })
}

/// Samples of a process that are read while they are taken. They end when it is dropped.
pub struct LiveSamples {
    stop: Arc<AtomicBool>,
    description: String,
    /// Pieces of a recording of the samples; an error is the last one.
    pieces: Receiver<Result<Vec<u8>, SampleError>>,
    reader: LiveReader,
    observer: Box<dyn Observer + Send>,
    /// True if the error that made the samples unreadable was noted.
    is_unreadable: bool,
    is_over: bool,
}

impl LiveSamples {
    /// Opens the kernel's events of a process, and starts to sample its threads; native allocations are not
    /// followed. Missing parts are noted if the process `is_new`.
    ///
    /// # Errors
    /// If the kernel does not permit it, or the process does not exist.
    pub fn start(
        pid: u32,
        settings: SampleSettings,
        is_new: bool,
        mut observer: Box<dyn Observer + Send>,
    ) -> Result<Self, SampleError> {
        let begin = if is_new { Begin::Running } else { Begin::Again };
        let settings = settings.with_native_allocations(None);
        let mut opened = OpenSampler::open(pid, settings, None, begin, &mut *observer)?;
        let description = opened.description.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        // A reader that is late makes the kernel lose samples, which are counted.
        let (sender, pieces) = mpsc::sync_channel(MAX_PIECES);
        thread::spawn(move || {
            if let Err(error) = send(&mut opened, &sender, &until) {
                let _ = sender.send(Err(error));
            }
        });
        let reader = LiveReader::new(Duration::ZERO);
        Ok(Self { stop, description, pieces, reader, observer, is_unreadable: false, is_over: false })
    }

    /// The kind of samples and the right to take them, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns true if the process has ended and its last samples were read.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Passes the samples taken so far to `add`, with the names of their frames.
    pub fn read(&mut self, mut add: impl FnMut(&Event<'_>)) {
        loop {
            match self.pieces.try_recv() {
                Ok(Ok(bytes)) => self.reader.feed(&bytes),
                Ok(Err(error)) => self.observer.note(Note::SamplesEnded { reason: error.to_string() }),
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
            self.observer.note(Note::SamplesEnded { reason: error.to_string() });
            self.is_unreadable = true;
        }
    }

    /// Ends the sampling, and passes the remaining samples to `add`.
    pub fn finish(mut self, mut add: impl FnMut(&Event<'_>)) {
        self.stop.store(true, Ordering::Release);
        let deadline = Instant::now() + LAST_PIECE;
        while !self.is_over && Instant::now() < deadline {
            self.read(&mut add);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl fmt::Debug for LiveSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSamples").field("description", &self.description).finish_non_exhaustive()
    }
}

impl Drop for LiveSamples {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Sends samples until a stop is requested, the process ends or the receiver is gone.
fn send(
    opened: &mut OpenSampler,
    pieces: &SyncSender<Result<Vec<u8>, SampleError>>,
    stop: &AtomicBool,
) -> Result<(), SampleError> {
    loop {
        let is_running = opened.read(LIVE_INTERVAL)? && !stop.load(Ordering::Acquire);
        if is_running {
            opened.recording.flush().map_err(SampleError::Record)?;
        } else {
            opened.finish()?;
        }
        let bytes = opened.recording.bytes().to_vec();
        opened.recording.clear_bytes();
        if pieces.send(Ok(bytes)).is_err() || !is_running {
            return Ok(());
        }
    }
}

/// The samples of a running thread per second of a snapshot.
const SNAPSHOT_FREQUENCY: u32 = 997;

/// Samples the running threads of a process for a moment, then reads the stacks of waiting threads. `add`
/// takes each event, and whether it is of a waiting thread.
///
/// # Errors
/// If the process does not exist, or the memory of none of its threads can be read.
pub fn snapshot(
    pid: u32,
    duration: Duration,
    observer: &mut dyn Observer,
    mut add: impl FnMut(&Event<'_>, bool),
) -> Result<Vec<ThreadSnapshot>, SampleError> {
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
    let mut recording = match OpenSampler::open(pid, settings, None, Begin::Running, observer) {
        Ok(mut opened) => {
            let end = Instant::now() + duration;
            while opened.read(end.saturating_duration_since(Instant::now()))? && Instant::now() < end {}
            opened.stop()?;
            opened.recording
        }
        Err(error) => {
            observer.note(Note::RunningStacksMissing { reason: error.to_string() });
            let pid = i32::try_from(pid)?;
            begin_recording(pid, &SamplerConfig::of_process(pid), "not permitted", true)?
        }
    };
    recording.flush().map_err(SampleError::Record)?;
    pass(&mut recording, false);
    let pid = i32::try_from(pid)?;
    let mut tids = linux_sampler::threads(pid).map_err(SampleError::Read)?;
    tids.sort_unstable();
    let mut threads = Vec::new();
    for tid in tids {
        let activity = match thread_activity(pid, tid) {
            Ok(ThreadActivity::Waiting(wait)) => {
                let thread = ThreadKey { pid, tid };
                recording.waiting_thread(thread, &wait, Sampler::now_ns()).map_err(SampleError::Record)?;
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
        return Err(SampleError::StacksRefused(reason.clone()));
    }
    recording.finish(Sampler::now_ns()).map_err(SampleError::Record)?;
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

fn native_summary(counts: RecordingCounts, of: &AllocationCounts) -> NativeSummary {
    NativeSummary {
        allocations: counts.native_allocations,
        calls: of.hits,
        cost: Duration::from_nanos(of.cost_ns),
        cpu: Duration::from_nanos(of.cpu_ns),
        lost: of.lost_allocations.saturating_add(of.lost_frees),
        stopped_after: of.stopped_ns.map(|_| Duration::from_nanos(of.duration_ns)),
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
            events: counts.program_events,
            unreadable_events: 0,
            native: None,
        }
    }
}
