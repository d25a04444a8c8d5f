//! The samples of a machine, all the time, in a ring on disk.
//!
//! One sampler stays open. Its records are cut into segments, each a whole recording with the names of the
//! methods in it: these are read from the memory of the processes while they run, with no session in any of
//! them. A segment names the processes and the code that were sampled in it, not all that exist.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use linux_sampler::{
    RecordDecoder, RecordKind, RecordReader, RecordingWriter, Sampler, SamplerConfig, Scope,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::describe;
use super::drain::Drain;
use super::machine::affordable_frequency;
use crate::kernel_samples::{
    ContinuousEvent, ContinuousSettings, ContinuousStatus, SampleError, SampleSettings,
};
use crate::names::SampledNames;
use crate::observer::{Note, Observer};
use crate::profile_ring::{ProfileRing, RingTotals, Segment, SegmentStore};

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
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContinuousSampler {
    /// Opens the kernel's events of the machine, and starts to fill a ring. `report` receives changes.
    ///
    /// # Errors
    /// If the kernel does not permit samples of the machine.
    pub fn start(
        settings: ContinuousSettings,
        ring: ProfileRing,
        observer: &mut dyn Observer,
        report: impl Fn(&ContinuousEvent) + Send + Clone + 'static,
    ) -> Result<Self, SampleError> {
        let sample_settings =
            SampleSettings::of_processors(settings.frequency.min(affordable_frequency()), false);
        let config = SamplerConfig::new(Scope::Machine)
            .with_frequency(sample_settings.frequency)
            .with_buffer_pages(BUFFER_PAGES);
        allow_open_files();
        let sampler = Sampler::open(&config).map_err(SampleError::Open)?;
        let access = sampler.access();
        if !access.kernel {
            observer.note(Note::UserModeOnly { off_cpu: false });
        }
        let description = describe(sample_settings, false, access, true);
        let of_store = report.clone();
        let store =
            SegmentStore::new(ring, Box::new(move |event| of_store(&ContinuousEvent::Store(event.clone()))));
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            stop: Arc::clone(&stop),
            totals: store.totals(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (reader, decoder) = sampler.into_parts();
        let segments = Segments::begin(config, description.clone(), settings.segment, store)?;
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("profile".to_owned()).spawn(move || {
            let ended = segments.fill(reader, decoder, &of_thread);
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

/// The current segment, and the ring of those before.
struct Segments {
    config: SamplerConfig,
    description: String,
    length_ns: u64,
    store: SegmentStore,
    recording: RecordingWriter,
    names: SampledNames,
    start_unix_ms: u64,
    start_ns: u64,
    /// Processes that have ended, or have become another program, in this segment.
    ended: HashSet<u32>,
    /// The counts of the segments before.
    samples: u64,
    lost: u64,
}

impl Segments {
    fn begin(
        config: SamplerConfig,
        description: String,
        length: Duration,
        store: SegmentStore,
    ) -> Result<Self, SampleError> {
        let start_ns = Sampler::now_ns();
        let start_unix_ms = unix_ms_at(start_ns);
        let recording = RecordingWriter::new(start_unix_ms, start_ns, None, &config, &description);
        let recording = recording.and_then(|recording| recording.of_sampled_processes(&config));
        let recording = recording.map_err(SampleError::Record)?;
        let recording =
            recording.with_runtime_unwinder(Box::new(super::managed_code::ManagedCodes::default()));
        Ok(Self {
            config,
            description,
            length_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            store,
            recording,
            names: SampledNames::default(),
            start_unix_ms,
            start_ns,
            ended: HashSet::new(),
            samples: 0,
            lost: 0,
        })
    }

    /// Writes segments until a stop is requested.
    fn fill(
        mut self,
        reader: RecordReader,
        mut decoder: RecordDecoder,
        shared: &Shared,
    ) -> Result<(), SampleError> {
        let drain = Drain::start(reader, false, MAX_QUEUED_BYTES, Arc::clone(&shared.stop));
        // Records are complete up to the read before the last.
        let (mut complete_ns, mut read_ns) = (self.start_ns, self.start_ns);
        while let Some(batch) = drain.next() {
            let batch = batch?;
            for record in decoder.records(&batch) {
                self.note_end(&record.kind, record.thread.pid);
                self.recording.record(&record).map_err(SampleError::Record)?;
            }
            for (pid, id, addresses) in self.recording.take_other_code() {
                self.names.add(pid.unsigned_abs(), id, &addresses);
            }
            self.names.read();
            if batch.read_ns() > 0 {
                complete_ns = std::mem::replace(&mut read_ns, batch.read_ns());
            }
            let is_wanted = {
                let mut state = shared.state();
                let counts = self.recording.counts();
                state.samples = self.samples + counts.cpu_samples;
                state.lost = self.lost + counts.lost;
                state.wanted_ns > self.start_ns && complete_ns >= state.wanted_ns
            };
            let is_long = complete_ns.saturating_sub(self.start_ns) >= self.length_ns;
            if is_wanted || is_long || self.recording.bytes().len() >= MAX_SEGMENT_BYTES {
                self = self.cut(complete_ns)?;
                shared.state().complete_ns = complete_ns;
                shared.changed.notify_all();
            }
            self.store.retry();
        }
        self.end(Sampler::now_ns())?;
        self.store.finish();
        Ok(())
    }

    /// Notes a process whose memory is no longer the same.
    fn note_end(&mut self, kind: &RecordKind<'_>, pid: i32) {
        match kind {
            RecordKind::Ended { thread } if thread.pid == thread.tid => {
                self.ended.insert(thread.pid.unsigned_abs());
            }
            RecordKind::Name { exec: true, .. } => {
                self.ended.insert(pid.unsigned_abs());
            }
            _ => {}
        }
    }

    /// Ends the segment and gives it to the ring.
    fn end(&mut self, end_ns: u64) -> Result<(), SampleError> {
        // The names of the kernel's functions are kept for the segments that follow.
        self.recording.flush().map_err(SampleError::Record)?;
        self.names.write(&mut self.recording, |_| true).map_err(SampleError::Record)?;
        let counts = self.recording.finish(end_ns).map_err(SampleError::Record)?;
        self.samples += counts.cpu_samples;
        self.lost += counts.lost;
        let milliseconds = end_ns.saturating_sub(self.start_ns) / 1_000_000;
        let segment =
            Segment { start_ms: self.start_unix_ms, end_ms: self.start_unix_ms.saturating_add(milliseconds) };
        self.store.add(segment, self.recording.bytes().to_vec());
        self.recording.clear_bytes();
        Ok(())
    }

    /// Ends the segment, and begins the next.
    fn cut(mut self, end_ns: u64) -> Result<Self, SampleError> {
        self.end(end_ns)?;
        let start_unix_ms = unix_ms_at(end_ns);
        let recording = self.recording.following(start_unix_ms, end_ns, &self.config, &self.description);
        let recording = recording.map_err(SampleError::Record)?;
        let ended = std::mem::take(&mut self.ended);
        let exists = |pid: u32| linux_proc_stat::process_folder(pid).exists();
        let names = self.names.following(|pid| !ended.contains(&pid) && exists(pid));
        Ok(Self { recording, names, start_unix_ms, start_ns: end_ns, ..self })
    }
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
