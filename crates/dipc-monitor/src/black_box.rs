//! The last seconds of each process, kept in memory until it crashes.
//!
//! A process has one session for it: exceptions, garbage collections, changes of the thread pool, and log
//! records from warnings up. Its counters are taken from the shared session. When the stream ends without the
//! end that a runtime writes and the process no longer answers, the content goes into a bundle.

mod bundle;
mod last_counters;
mod overview;
mod recorder;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use dipc_collect::{Retention, RingRecorder};
use nettrace_edit::Snapshot;
use serde::Serialize;

use crate::counters::{CounterRequest, CounterSubscription};
use crate::monitor::ProcessObserver;
use crate::process::{SnapshotSource, Watched};
use crate::stop::await_end;

use last_counters::LastCounters;

/// The stack of a recorder's thread.
const STACK: usize = 512 << 10;
/// Maximum time that the start of a process waits for its session.
const MAX_START_TIME: Duration = Duration::from_secs(5);
/// The time for bundles that are being written at the end.
const LAST_BUNDLES: Duration = Duration::from_secs(30);
/// Minimum number of bytes per process, regardless of their number.
const MIN_BYTES: u64 = 256 << 10;

/// The settings of [`BlackBoxes`].
///
/// ```
/// use dipc_monitor::{BlackBoxConfig, BlackBoxes};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let config = BlackBoxConfig::default()
///     .with_time(Duration::from_secs(60))
///     .with_directory(Some("/var/crashes".into()));
/// let boxes = BlackBoxes::new(config, Arc::new(|message| println!("{}: {:?}", message.pid, message.event)));
/// // Among the observers of a `Monitor`; no process has crashed so far.
/// boxes.stop();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BlackBoxConfig {
    /// The time to keep.
    pub time: Duration,
    /// Maximum bytes of events of a process.
    pub max_bytes: u64,
    /// Maximum bytes of events of all processes. Each process has an equal part.
    pub total_bytes: u64,
    /// The directory of bundles; without one, crashes are only reported.
    pub directory: Option<PathBuf>,
    /// The limits on the bundles in it.
    pub retention: Retention,
    /// The counters to keep last values of.
    pub counters: Option<CounterRequest>,
    /// The name of this machine.
    pub host_name: String,
}

impl Default for BlackBoxConfig {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            max_bytes: 32 << 20,
            total_bytes: 128 << 20,
            directory: None,
            retention: Retention::default().with_files(Some(20)).with_bytes(Some(1 << 30)),
            counters: None,
            host_name: String::new(),
        }
    }
}

impl BlackBoxConfig {
    /// With this [`time`](Self::time).
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// With these [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// With these [`total_bytes`](Self::total_bytes).
    #[must_use]
    pub fn with_total_bytes(self, total_bytes: u64) -> Self {
        Self { total_bytes, ..self }
    }

    /// With this [`directory`](Self::directory).
    #[must_use]
    pub fn with_directory(self, directory: Option<PathBuf>) -> Self {
        Self { directory, ..self }
    }

    /// With this [`retention`](Self::retention).
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// With these [`counters`](Self::counters).
    #[must_use]
    pub fn with_counters(self, counters: Option<CounterRequest>) -> Self {
        Self { counters, ..self }
    }

    /// With this [`host_name`](Self::host_name).
    #[must_use]
    pub fn with_host_name(self, host_name: String) -> Self {
        Self { host_name, ..self }
    }
}

/// A message about a process's end, or about its session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BlackBoxMessage {
    /// The pid of the process.
    pub pid: u32,
    /// The name of the process. It is untrusted.
    pub process_name: String,
    /// The event.
    pub event: BlackBoxEvent,
}

/// An event of a black box.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlackBoxEvent {
    /// The process has crashed, and its bundle was written.
    Crashed {
        /// The cause of the end, if known.
        reason: &'static str,
        /// The bundle; `None` without a directory.
        bundle: Option<PathBuf>,
    },
    /// The process has crashed, and its bundle could not be written.
    BundleFailed(String),
    /// The session could not be started, or its stream not be kept. It is tried again.
    SessionFailed(String),
}

impl fmt::Display for BlackBoxMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.process_name, self.pid)?;
        match &self.event {
            BlackBoxEvent::Crashed { reason, bundle: Some(bundle) } => {
                write!(f, "{reason}: {}", bundle.display())
            }
            BlackBoxEvent::Crashed { reason, bundle: None } => write!(f, "{reason}"),
            BlackBoxEvent::BundleFailed(error) => write!(f, "it has crashed; its bundle: {error}"),
            BlackBoxEvent::SessionFailed(error) => write!(f, "its events are not kept: {error}"),
        }
    }
}

/// A receiver of messages. It is called from many threads, and must not block.
pub type BlackBoxLog = Arc<dyn Fn(&BlackBoxMessage) + Send + Sync>;

/// The black boxes of all processes. Add this to the observers of a [`Monitor`](crate::Monitor).
pub struct BlackBoxes {
    context: Arc<Context>,
    boxes: Mutex<BTreeMap<u32, Arc<BlackBox>>>,
}

/// The state that all black boxes share.
struct Context {
    config: BlackBoxConfig,
    log: BlackBoxLog,
    /// The number of processes.
    count: Mutex<u64>,
    /// The number of events that were lost in the sessions of all processes, ended ones included.
    lost: AtomicU64,
    /// Held while a bundle is written: retention looks at the whole directory.
    writing: Mutex<()>,
}

/// The last data of a process, kept until it ends.
pub(crate) struct BlackBox {
    state: Mutex<State>,
    changed: Condvar,
    counters: Arc<Mutex<LastCounters>>,
    process: Weak<Watched>,
}

#[derive(Default)]
struct State {
    ring: Option<RingRecorder>,
    /// True if the first session was neither started nor refused.
    awaits_session: bool,
    /// True if the thread runs.
    is_running: bool,
    /// True if it was asked to end.
    is_stopped: bool,
    /// True if its process was reported as ended.
    has_left: bool,
    subscription: Option<CounterSubscription>,
    /// The bytes that it holds.
    bytes: u64,
    /// The number of events that were lost in its sessions.
    lost: u64,
}

/// The state of all black boxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlackBoxTotals {
    /// The number of sessions that run.
    pub sessions: usize,
    /// The bytes of events that are kept.
    pub bytes: u64,
    /// The number of events that were lost in all sessions, including sessions of ended processes.
    #[serde(rename = "lostEvents")]
    pub lost: u64,
}

impl BlackBoxes {
    /// Creates the state without any process.
    pub fn new(config: BlackBoxConfig, log: BlackBoxLog) -> Self {
        let context = Context {
            config,
            log,
            count: Mutex::default(),
            lost: AtomicU64::new(0),
            writing: Mutex::default(),
        };
        Self { context: Arc::new(context), boxes: Mutex::default() }
    }

    /// The directory of bundles.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.context.config.directory.as_deref()
    }

    fn boxes(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<BlackBox>>> {
        lock(&self.boxes)
    }

    /// Returns the sums over all processes.
    pub fn totals(&self) -> BlackBoxTotals {
        let boxes: Vec<_> = self.boxes().values().cloned().collect();
        let lost = self.context.lost.load(Ordering::Relaxed);
        let mut totals = BlackBoxTotals { lost, ..BlackBoxTotals::default() };
        for black_box in boxes {
            let state = black_box.state();
            totals.sessions += usize::from(state.ring.is_some());
            totals.bytes = totals.bytes.saturating_add(state.bytes);
        }
        totals
    }

    /// Ends the sessions. Bundles that are being written are completed within a limited time. Bundles of
    /// processes that the system keeps from answering get less.
    pub fn stop(&self) {
        let boxes: Vec<_> = self.boxes().values().cloned().collect();
        for black_box in &boxes {
            black_box.stop();
        }
        await_end(&boxes, |it| it.can_answer(), |it| it.state().is_running, LAST_BUNDLES);
    }
}

impl fmt::Debug for BlackBoxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlackBoxes").field("config", &self.context.config).finish_non_exhaustive()
    }
}

impl ProcessObserver for BlackBoxes {
    fn started(&self, process: &Arc<Watched>) {
        let black_box = Arc::new(BlackBox {
            state: Mutex::new(State { awaits_session: true, is_running: true, ..State::default() }),
            changed: Condvar::new(),
            counters: Arc::default(),
            process: Arc::downgrade(process),
        });
        let source: Arc<dyn SnapshotSource> = Arc::clone(&black_box) as _;
        if process.last_seconds.set(source).is_err() {
            return;
        }
        self.boxes().insert(process.number, Arc::clone(&black_box));
        *lock(&self.context.count) += 1;
        if let Some(request) = &self.context.config.counters {
            let consumer = LastCounters::consumer(&black_box.counters);
            let subscription = process.counters.subscribe(request.clone(), consumer);
            black_box.state().subscription = Some(subscription);
        }
        let thread = thread::Builder::new().name("black box".to_owned()).stack_size(STACK);
        let (recorder, context, watched) =
            (Arc::clone(&black_box), Arc::clone(&self.context), Arc::clone(process));
        if let Err(error) = thread.spawn(move || recorder.run(&watched, &context)) {
            self.context.report(process, BlackBoxEvent::SessionFailed(format!("start a thread: {error}")));
            black_box.ended();
        }
        // The session begins before a process that waits runs on.
        black_box.wait_for_start(Instant::now() + MAX_START_TIME);
    }

    fn ended(&self, process: &Arc<Watched>) {
        let Some(black_box) = self.boxes().get(&process.number).cloned() else { return };
        let (had_left, subscription) = {
            let mut state = black_box.state();
            (std::mem::replace(&mut state.has_left, true), state.subscription.take())
        };
        if !had_left {
            let mut count = lock(&self.context.count);
            *count = count.saturating_sub(1);
        }
        // The session of counters is locked when a subscription is dropped: not while the state is.
        drop(subscription);
        black_box.changed.notify_all();
        // A black box that still writes its bundle is kept until it is done.
        self.boxes().retain(|_, black_box| {
            let state = black_box.state();
            state.is_running || !state.has_left
        });
    }
}

impl Context {
    fn report(&self, process: &Watched, event: BlackBoxEvent) {
        (self.log)(&BlackBoxMessage {
            pid: process.facts.pid,
            process_name: process.title().to_owned(),
            event,
        });
    }

    /// Current maximum of bytes per process.
    fn share(&self) -> u64 {
        let count = (*lock(&self.count)).max(1);
        let share = self.config.total_bytes.checked_div(count).unwrap_or_default();
        share.min(self.config.max_bytes).max(MIN_BYTES)
    }
}

impl SnapshotSource for BlackBox {
    fn snapshot(&self) -> Option<Result<Snapshot, nettrace_edit::Error>> {
        self.state().ring.as_mut()?.snapshot()
    }
}

impl BlackBox {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait_for_start(&self, deadline: Instant) {
        let mut state = self.state();
        while state.awaits_session {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true if the system shows nothing that keeps its process from answering.
    fn can_answer(&self) -> bool {
        self.process.upgrade().is_none_or(|process| process.obstacle().is_none())
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// Records that the first session was started or refused.
    fn begun(&self) {
        self.state().awaits_session = false;
        self.changed.notify_all();
    }

    /// Records that the thread has ended.
    fn ended(&self) {
        let mut state = self.state();
        state.is_running = false;
        state.awaits_session = false;
        state.ring = None;
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
    }
}

impl fmt::Debug for BlackBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlackBox").field("bytes", &self.state().bytes).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
