//! The thread that keeps the events of a process.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::{ProcessState, process_state};
use dipc_client::{
    CrashFiles, Deadline, Keywords, Level, OptionalFeature, ProviderConfig, RUNTIME_PROVIDER, Rundown,
    Session, SessionConfig, Timeouts,
};
use dipc_collect::logs::warnings_provider;
use dipc_collect::{RetryWait, RingRecorder};
use nettrace_edit::{RingCapacity, SegmentStorage};

use super::bundle::Bundle;
use super::{BlackBox, BlackBoxEvent, Context};
use crate::live_session::{BUFFER_MB, DRAIN};
use crate::process::Watched;

/// The runtime's keywords: garbage collections, exceptions and the thread pool.
const RUNTIME_KEYWORDS: Keywords = Keywords(0x1 | 0x8000 | 0x1_0000);
/// The bytes read at once.
const CHUNK: usize = 16 << 10;
/// Maximum wait between checks for an end.
const TICK: Duration = Duration::from_secs(1);
/// Time limit for asking a process whether it still runs after its stream was cut.
const ANSWER: Duration = Duration::from_secs(3);

/// Time between checks for the end of a process after its stream was cut.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time that a process takes to die once its stream was cut.
const MAX_DEATH_TIME: Duration = Duration::from_secs(5);
/// The same while createdump writes its memory.
const MAX_DUMP_TIME: Duration = Duration::from_secs(300);
/// The reason in bundles of ended processes.
const CRASHED: &str = "the process has crashed or was killed";

/// The end of a session.
enum SessionEnd {
    /// The black box was asked to end.
    Stopped,
    /// The stream is complete.
    Complete,
    /// The stream was cut.
    Cut,
    /// The stream cannot be read, or not be kept.
    Unusable(String),
}

impl BlackBox {
    /// Keeps the events of a process until its end.
    pub(super) fn run(&self, process: &Watched, context: &Context) {
        // Before the crash: afterwards the system no longer shows the process.
        let files = CrashFiles::of(process.target(), &context.config.host_name);
        let mut retry = RetryWait::default();
        while !self.is_over(process) {
            let config = session_config(process);
            // Left after the end of the session.
            let _filtered = process.filtered_sources.enter(&config);
            let started = process.target().start_session(&config);
            self.begun();
            let end = match started {
                Ok(session) => {
                    let capacity = RingCapacity { time: Some(context.config.time), bytes: context.share() };
                    self.state().ring = Some(RingRecorder::new(capacity, SegmentStorage::Memory));
                    self.record(session, process, context)
                }
                Err(error) => SessionEnd::Unusable(error.to_string()),
            };
            match end {
                SessionEnd::Stopped => break,
                SessionEnd::Cut => {
                    if let Some(reason) = self.reason_of_end(process) {
                        self.write_bundle(process, context, reason, &files);
                        break;
                    }
                }
                SessionEnd::Complete => {}
                SessionEnd::Unusable(error) => {
                    if retry.is_first() && !process.has_ended() {
                        context.report(process, BlackBoxEvent::SessionFailed(error));
                    }
                }
            }
            self.state().ring = None;
            self.wait(process, retry.next_wait());
        }
        self.ended();
    }

    fn is_over(&self, process: &Watched) -> bool {
        process.has_ended() || self.state().is_stopped
    }

    fn wait(&self, process: &Watched, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state();
        while !state.is_stopped && !process.has_ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads the stream of a session to its end.
    fn record(&self, mut session: Session, process: &Watched, context: &Context) -> SessionEnd {
        let mut buffer = vec![0; CHUNK];
        let mut ended: Option<Instant> = None;
        loop {
            match session.poll_read(&mut buffer, Deadline::after(TICK)) {
                Ok(Some(0)) => {
                    let mut state = self.state();
                    return if state.ring.as_mut().is_none_or(end) {
                        SessionEnd::Complete
                    } else {
                        SessionEnd::Cut
                    };
                }
                Ok(Some(count)) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    let share = context.share();
                    let mut state = self.state();
                    let Some(ring) = state.ring.as_mut() else { return SessionEnd::Stopped };
                    let lost_before = lost(ring);
                    let added = add(ring, bytes, share);
                    let (bytes, newly_lost) = (ring.bytes(), lost(ring).saturating_sub(lost_before));
                    state.bytes = bytes;
                    state.lost = state.lost.saturating_add(newly_lost);
                    drop(state);
                    context.lost.fetch_add(newly_lost, Ordering::Relaxed);
                    if let Err(error) = added {
                        return SessionEnd::Unusable(error);
                    }
                }
                Ok(None) => {
                    // The stream has an end, unless another process holds the connection.
                    let ended = process.has_ended().then(|| *ended.get_or_insert_with(Instant::now));
                    if ended.is_some_and(|ended| ended.elapsed() > DRAIN) {
                        return SessionEnd::Cut;
                    }
                }
                Err(_) => return SessionEnd::Cut,
            }
            if self.state().is_stopped {
                // The session is stopped when it is dropped, so that the runtime releases it.
                drop(session);
                return SessionEnd::Stopped;
            }
        }
    }

    /// The reason for which a stream was cut; `None` if the runtime goes on. A process that dies may take
    /// some time for it, and createdump more.
    fn reason_of_end(&self, process: &Watched) -> Option<&'static str> {
        let start = Instant::now();
        loop {
            if process.target().clone().with_timeouts(Timeouts::each(ANSWER)).answers() {
                return None;
            }
            let Some(system) = process.system() else {
                let is_known = process.has_ended();
                return Some(if is_known { CRASHED } else { "the process has disappeared" });
            };
            let longest = match system.pid().map(process_state) {
                None if system.has_ended() => return Some(CRASHED),
                Some(Ok(ProcessState::Gone | ProcessState::Zombie)) => return Some(CRASHED),
                Some(Ok(ProcessState::Dumping { .. })) if !self.state().is_stopped => MAX_DUMP_TIME,
                Some(Ok(ProcessState::Stopped | ProcessState::Traced { .. })) => return None,
                _ => MAX_DEATH_TIME,
            };
            if start.elapsed() > longest {
                return Some("the process has closed its diagnostic port, and still runs");
            }
            thread::sleep(LOOK);
        }
    }

    fn write_bundle(&self, process: &Watched, context: &Context, reason: &'static str, files: &CrashFiles) {
        let (snapshot, lost) = {
            let mut state = self.state();
            (state.ring.as_mut().and_then(RingRecorder::snapshot), state.lost)
        };
        let Some(directory) = &context.config.directory else {
            context.report(process, BlackBoxEvent::Crashed { reason, bundle: None });
            return;
        };
        let bundle = Bundle {
            process,
            reason,
            files,
            snapshot: snapshot.and_then(Result::ok),
            lost,
            counters: super::lock(&self.counters).rows(),
        };
        let _turn = super::lock(&context.writing);
        let event = match bundle.write(directory, &context.config.retention) {
            Ok(path) => BlackBoxEvent::Crashed { reason, bundle: Some(path) },
            Err(error) => BlackBoxEvent::BundleFailed(error.to_string()),
        };
        context.report(process, event);
    }
}

/// Adds the next bytes of the stream.
fn add(ring: &mut RingRecorder, bytes: &[u8], max_bytes: u64) -> Result<(), String> {
    ring.limit_bytes(max_bytes);
    ring.feed(bytes, |_| {}).map_err(|error| error.to_string())?;
    ring.stream().unreadable().map_or(Ok(()), |error| Err(error.to_string()))
}

/// Ends the stream. Returns true if it had the end that a runtime writes.
fn end(ring: &mut RingRecorder) -> bool {
    ring.end(|_| {}).is_ok() && ring.stream().is_whole()
}

fn lost(ring: &RingRecorder) -> u64 {
    ring.stream().decoder().loss().total()
}

fn session_config(process: &Watched) -> SessionConfig {
    let runtime = ProviderConfig {
        keywords: RUNTIME_KEYWORDS,
        level: Level::INFORMATIONAL,
        name: RUNTIME_PROVIDER.to_owned(),
        arguments: String::new(),
    };
    SessionConfig::new([runtime, process.with_log_filter(warnings_provider())])
        .with_buffer_mb(BUFFER_MB)
        .with_rundown(Rundown::Off)
        .with_stackwalk(false)
        .with_optional(vec![OptionalFeature::NoRundown, OptionalFeature::NoStacks])
}
