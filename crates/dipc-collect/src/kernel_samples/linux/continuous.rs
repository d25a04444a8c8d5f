//! The samples of a machine, all the time, in a ring on disk or for a receiver.
//!
//! One sampler stays open. Its records are cut into segments, each a whole recording with the names of the
//! methods in it: these are read from the memory of the processes while they run, with no session in any of
//! them. A segment names the processes and the code that were sampled in it, not all that exist.

mod own_processes;
mod source;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use linux_sampler::{Record, RecordBatch, RecordKind, RecordingWriter, Sampler, SamplerConfig, Scope};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::describe;
use super::machine::affordable_frequency;
use super::process_filter::ProcessFilter;
use crate::kernel_samples::{
    ContinuousEvent, ContinuousSettings, ContinuousStatus, SampleError, SampleSettings, SegmentReceiver,
    SegmentSinks,
};
use crate::names::SampledNames;
use crate::observer::{Note, Observer};
use crate::profile_ring::{RingTotals, Segment, SegmentStore};
use crate::retention::Retention;
use source::{OpenSource, Source};

/// The pages of each processor's buffer: 512 KiB, for the samples of some seconds and the mappings of many
/// programs that start at once.
const BUFFER_PAGES: usize = 128;
/// Maximum number of bytes of records that wait to be decoded.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Maximum number of open files to ask for.
const MAX_OPEN_FILES: u64 = 1 << 14;
/// Maximum number of bytes of a segment: it ends with them.
const MAX_SEGMENT_BYTES: usize = 8 << 20;

/// A sampler of the machine into a ring. It ends when it is dropped.
#[derive(Debug)]
pub struct ContinuousSampler {
    shared: Arc<Shared>,
    description: String,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    stop: Arc<AtomicBool>,
    totals: Arc<Mutex<RingTotals>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    samples: u64,
    lost: u64,
    ended: Option<String>,
    /// The time up to which segments are wanted, on the clock of the records.
    wanted_ns: u64,
    /// The time up to which they were given to the ring.
    complete_ns: u64,
    /// Settings that are to apply from now on.
    changes: Changes,
}

#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    segment: Option<Duration>,
    limits: Option<Retention>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContinuousSampler {
    /// Opens the kernel's events of the machine, and starts to fill the sinks. Where the kernel does not
    /// permit that, this user's processes are sampled. `report` receives changes.
    ///
    /// # Errors
    /// If the kernel permits neither.
    pub fn start(
        settings: ContinuousSettings,
        sinks: SegmentSinks,
        observer: &mut dyn Observer,
        report: impl Fn(&ContinuousEvent) + Send + Clone + 'static,
    ) -> Result<Self, SampleError> {
        let sample_settings =
            SampleSettings::of_processors(settings.frequency.min(affordable_frequency()), false);
        let config = SamplerConfig::new(Scope::Machine)
            .with_frequency(sample_settings.frequency)
            .with_kernel_stacks(settings.kernel_frames);
        allow_open_files();
        let SegmentSinks { ring, receiver, select } = sinks;
        let OpenSource { source, access } = Source::open(config, select.map(ProcessFilter::new))?;
        if !access.kernel {
            observer.note(Note::UserModeOnly { off_cpu: false });
        }
        let mut description = describe(sample_settings, false, access, source.is_machine());
        if !source.is_machine() {
            description.push_str("; only processes of this user");
        }
        let of_store = report.clone();
        let store = ring.map(|ring| {
            SegmentStore::new(ring, Box::new(move |event| of_store(&ContinuousEvent::Store(event.clone()))))
        });
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            stop: Arc::clone(&stop),
            totals: store.as_ref().map(SegmentStore::totals).unwrap_or_default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let outputs = Outputs { store, receiver };
        let segments = Segments::begin(&source, description.clone(), settings.segment, outputs)?;
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("profile".to_owned()).spawn(move || {
            let ended = segments.fill(source, &of_thread);
            if let Err(error) = &ended {
                report(&ContinuousEvent::Ended(error.to_string()));
            }
            of_thread.state().ended =
                Some(ended.map_or_else(|error| error.to_string(), |()| "stopped".into()));
            of_thread.changed.notify_all();
        });
        let thread = thread.map_err(SampleError::Write)?;
        Ok(Self { shared, description, thread: Mutex::new(Some(thread)) })
    }

    /// The kind of samples and the right to take them, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The counts so far.
    pub fn status(&self) -> ContinuousStatus {
        let ring = self.shared.totals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = self.shared.state();
        ContinuousStatus { samples: state.samples, lost: state.lost, ring, ended: state.ended.clone() }
    }

    /// Applies another time of a segment, to the current one as well.
    pub fn set_segment(&self, segment: Duration) {
        self.shared.state().changes.segment = Some(segment);
    }

    /// Applies other limits to the ring, within a moment.
    pub fn set_limits(&self, limits: Retention) {
        self.shared.state().changes.limits = Some(limits);
    }

    /// Ends the current segment, so that the ring has everything up to now. Returns false if that takes
    /// longer than `timeout`, or the sampler has ended.
    pub fn complete_now(&self, timeout: Duration) -> bool {
        let now_ns = Sampler::now_ns();
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.state();
        state.wanted_ns = state.wanted_ns.max(now_ns);
        while state.complete_ns < now_ns {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended.is_some() || left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Ends the sampling, and writes the last segment.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of that thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for ContinuousSampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The recipients of segments.
struct Outputs {
    store: Option<SegmentStore>,
    receiver: Option<SegmentReceiver>,
}

/// The current segment, and the recipients of those before.
struct Segments {
    description: String,
    length_ns: u64,
    outputs: Outputs,
    recording: RecordingWriter,
    names: SampledNames,
    start_unix_ms: u64,
    start_ns: u64,
    /// The times of the last two reads of the kernel's buffers: records are complete up to the earlier one.
    complete_ns: u64,
    read_ns: u64,
    /// Processes that have ended, or have become another program, in this segment.
    ended: HashSet<u32>,
    /// The counts of the segments before.
    samples: u64,
    lost: u64,
}

impl Segments {
    fn begin(
        source: &Source,
        description: String,
        length: Duration,
        outputs: Outputs,
    ) -> Result<Self, SampleError> {
        let start_ns = Sampler::now_ns();
        let start_unix_ms = unix_ms_at(start_ns);
        let config = source.config();
        let recording = RecordingWriter::new(start_unix_ms, start_ns, None, config, &description);
        let recording = recording.and_then(|recording| recording.of_sampled_processes(config));
        let recording = recording.map_err(SampleError::Record)?;
        let recording =
            recording.with_runtime_unwinder(Box::new(super::managed_code::ManagedCodes::default()));
        Ok(Self {
            description,
            length_ns: nanoseconds(length),
            outputs,
            recording,
            names: SampledNames::default(),
            start_unix_ms,
            start_ns,
            complete_ns: start_ns,
            read_ns: start_ns,
            ended: HashSet::new(),
            samples: 0,
            lost: 0,
        })
    }

    /// Writes segments until a stop is requested.
    fn fill(mut self, mut source: Source, shared: &Shared) -> Result<(), SampleError> {
        loop {
            while let Some(batch) = source.next() {
                self.add(&mut source, &batch?)?;
                self.count(shared);
                self.change(std::mem::take(&mut shared.state().changes));
                if self.is_due(shared) {
                    self = self.cut(&source)?;
                    shared.state().complete_ns = self.start_ns;
                    shared.changed.notify_all();
                    if source.misses_processes() {
                        source.stop();
                    }
                }
                if let Some(store) = &mut self.outputs.store {
                    store.retry();
                }
                if shared.stop.load(Ordering::Acquire) {
                    source.stop();
                }
            }
            if shared.stop.load(Ordering::Acquire) {
                break;
            }
            source = source.reopened()?;
        }
        self.end(Sampler::now_ns())?;
        if let Some(store) = self.outputs.store {
            store.finish();
        }
        Ok(())
    }

    /// Adds the records of a batch to the segment.
    fn add(&mut self, source: &mut Source, batch: &RecordBatch) -> Result<(), SampleError> {
        source.for_each(batch, |record| self.add_record(record))?;
        for (pid, id, addresses) in self.recording.take_other_code() {
            self.names.add(pid.unsigned_abs(), id, &addresses);
        }
        self.names.read();
        if batch.read_ns() > 0 {
            self.complete_ns = std::mem::replace(&mut self.read_ns, batch.read_ns());
        }
        Ok(())
    }

    fn add_record(&mut self, record: &Record<'_>) -> Result<(), SampleError> {
        self.note_end(&record.kind, record.thread.pid);
        self.recording.record(record).map_err(SampleError::Record)
    }

    fn count(&self, shared: &Shared) {
        let counts = self.recording.counts();
        let mut state = shared.state();
        state.samples = self.samples + counts.cpu_samples;
        state.lost = self.lost + counts.lost;
    }

    fn change(&mut self, changes: Changes) {
        if let Some(segment) = changes.segment {
            self.length_ns = nanoseconds(segment);
        }
        if let (Some(limits), Some(store)) = (changes.limits, &mut self.outputs.store) {
            store.set_limits(limits);
        }
    }

    /// Returns true if the segment is to end: it is long, or somebody wants it.
    fn is_due(&self, shared: &Shared) -> bool {
        let wanted_ns = shared.state().wanted_ns;
        let is_wanted = wanted_ns > self.start_ns && self.complete_ns >= wanted_ns;
        let is_long = self.complete_ns.saturating_sub(self.start_ns) >= self.length_ns;
        is_wanted || is_long || self.recording.bytes().len() >= MAX_SEGMENT_BYTES
    }

    /// Notes a process whose memory is no longer the same.
    fn note_end(&mut self, kind: &RecordKind<'_>, pid: i32) {
        match kind {
            RecordKind::Ended { thread } if thread.pid == thread.tid => {
                self.ended(thread.pid.unsigned_abs());
            }
            RecordKind::Name { exec: true, .. } => self.ended(pid.unsigned_abs()),
            _ => {}
        }
    }

    fn ended(&mut self, pid: u32) {
        self.ended.insert(pid);
        self.names.ended(pid);
    }

    /// Ends the segment and gives it to the recipients.
    fn end(&mut self, end_ns: u64) -> Result<(), SampleError> {
        // The names of the kernel's functions are kept for the segments that follow.
        self.recording.flush().map_err(SampleError::Record)?;
        self.names.read_all();
        self.names.write(&mut self.recording, |_| true).map_err(SampleError::Record)?;
        let counts = self.recording.finish(end_ns).map_err(SampleError::Record)?;
        self.samples += counts.cpu_samples;
        self.lost += counts.lost;
        let milliseconds = end_ns.saturating_sub(self.start_ns) / 1_000_000;
        let segment =
            Segment { start_ms: self.start_unix_ms, end_ms: self.start_unix_ms.saturating_add(milliseconds) };
        if let Some(receiver) = &mut self.outputs.receiver {
            receiver(segment, self.recording.bytes());
        }
        if let Some(store) = &mut self.outputs.store {
            store.add(segment, self.recording.bytes().to_vec());
        }
        self.recording.clear_bytes();
        Ok(())
    }

    /// Ends the segment, and begins the next.
    fn cut(mut self, source: &Source) -> Result<Self, SampleError> {
        let end_ns = self.complete_ns;
        self.end(end_ns)?;
        let start_unix_ms = unix_ms_at(end_ns);
        let recording = self.recording.following(start_unix_ms, end_ns, source.config(), &self.description);
        let recording = recording.map_err(SampleError::Record)?;
        let ended = std::mem::take(&mut self.ended);
        let exists = |pid: u32| linux_proc_stat::process_folder(pid).exists();
        let names = self.names.following(|pid| !ended.contains(&pid) && exists(pid));
        Ok(Self { recording, names, start_unix_ms, start_ns: end_ns, ..self })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Permits as many open files as the system does, up to a limit: sampled images and the memory of processes
/// are open, and sockets need some as well.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(MAX_OPEN_FILES, |maximum| maximum.min(MAX_OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        // With fewer, some code has no names.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// The milliseconds since 1970 at a recent time of the records' clock.
fn unix_ms_at(time_ns: u64) -> u64 {
    let ago = Duration::from_nanos(Sampler::now_ns().saturating_sub(time_ns));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(u64::MAX)
}
