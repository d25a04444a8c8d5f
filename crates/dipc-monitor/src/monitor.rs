//! The table of processes.

mod arrivals;
mod error;
mod memory;
mod search_pause;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::{Address, Endpoint, PortRuntime, Target, Timeouts, Uuid, discover};

use crate::filter::Filter;
use crate::live_session::LostEvents;
use crate::process::{Identity, Watched};
use crate::process_log::ProcessReport;
use crate::stop::await_end;

use arrivals::Port;
pub use error::MonitorError;
use search_pause::SearchPause;

/// The time between two searches for processes.
const LOOK: Duration = Duration::from_secs(2);
/// The time limit of the first question to a process: hung ones are asked again later.
const FIRST_ANSWER: Duration = Duration::from_secs(3);
/// The time limits of later commands.
const REQUEST: Duration = Duration::from_secs(10);
/// The wait before a process that did not answer is asked again, which doubles up to [`MAX_RETRY_DELAY`].
const FIRST_RETRY: Duration = Duration::from_secs(2);
/// Maximum wait before the next query of a process.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Maximum number of concurrent queries of processes.
const MAX_CONCURRENT_QUERIES: usize = 16;
/// Maximum number of processes in the table, and of processes that wait for a query.
const MAX_PROCESSES: usize = 4096;
/// The stack of a thread that asks a process.
const STACK: usize = 512 << 10;
/// The time for the threads of sessions to stop at the monitor's end.
const LAST_SESSIONS: Duration = Duration::from_secs(3);

/// The settings of a [`Monitor`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MonitorConfig {
    /// The port that runtimes connect to, in addition to discovered runtimes.
    pub port: Option<Address>,
    /// Filters that all must match for a process to be watched; all processes without any.
    pub filters: Vec<Filter>,
    /// The directory in which the sockets of processes have to be, except sockets at the port; anywhere
    /// without it.
    pub socket_folder: Option<PathBuf>,
    /// True if only runtimes at the port are watched, as in dotnet-monitor's `Listen` mode.
    pub only_port: bool,
    /// The directory into which processes write their dumps, which this program sees under the same path. By
    /// default, it is the temporary directory of a process on this machine.
    pub dump_folder: Option<PathBuf>,
    /// The receiver of messages about the sessions of processes.
    pub report: Option<ProcessReport>,
    /// The time between two readings of the memory of a process, for [`Metrics`](crate::Metrics), exports and
    /// rules that use them; without it, none is read. Of many or large processes, readings are further apart:
    /// they take one fiftieth of a processor's time at most.
    pub memory_interval: Option<Duration>,
}

impl MonitorConfig {
    /// With this [`port`](Self::port).
    #[must_use]
    pub fn with_port(self, port: Option<Address>) -> Self {
        Self { port, ..self }
    }

    /// With these [`filters`](Self::filters).
    #[must_use]
    pub fn with_filters(self, filters: Vec<Filter>) -> Self {
        Self { filters, ..self }
    }

    /// With this [`socket_folder`](Self::socket_folder).
    #[must_use]
    pub fn with_socket_folder(self, socket_folder: Option<PathBuf>) -> Self {
        Self { socket_folder, ..self }
    }

    /// With runtimes at the port [alone](Self::only_port), or not.
    #[must_use]
    pub fn with_only_port(self, only_port: bool) -> Self {
        Self { only_port, ..self }
    }

    /// With this [`dump_folder`](Self::dump_folder).
    #[must_use]
    pub fn with_dump_folder(self, dump_folder: Option<PathBuf>) -> Self {
        Self { dump_folder, ..self }
    }

    /// With this [`report`](Self::report).
    #[must_use]
    pub fn with_report(self, report: Option<ProcessReport>) -> Self {
        Self { report, ..self }
    }

    /// With this [`memory_interval`](Self::memory_interval).
    #[must_use]
    pub fn with_memory_interval(self, memory_interval: Option<Duration>) -> Self {
        Self { memory_interval, ..self }
    }

    /// Returns true if a process may be asked for its identity: facts of the system rule some out.
    fn may_watch(&self, pid: u32, socket: &Path) -> bool {
        self.socket_folder.as_deref().is_none_or(|folder| socket.parent() == Some(folder))
            && self.filters.iter().all(|filter| filter.may_match(pid))
    }
}

/// An observer of the table. Its methods are called from threads of the monitor.
///
/// ```
/// use dipc_monitor::{Monitor, MonitorConfig, ProcessObserver, Watched};
/// use std::sync::Arc;
///
/// struct Printer;
///
/// impl ProcessObserver for Printer {
///     fn started(&self, process: &Arc<Watched>) {
///         println!("{} {}", process.facts.pid, process.title());
///     }
///     fn ended(&self, process: &Arc<Watched>) {
///         println!("{} has ended", process.facts.pid);
///     }
/// }
///
/// // Only processes with their sockets there.
/// let config = MonitorConfig::default().with_socket_folder(Some("/no/such/folder".into()));
/// let monitor = Monitor::start(config, vec![Arc::new(Printer)])?;
/// assert!(monitor.processes().is_empty());
/// # Ok::<(), dipc_monitor::MonitorError>(())
/// ```
pub trait ProcessObserver: Send + Sync {
    /// Called when a process was identified. A process that waits at its start is resumed afterwards: work
    /// that has to see its beginning starts here, in a bounded time.
    fn started(&self, process: &Arc<Watched>);

    /// Called when a process has ended; twice if it ended while it was added.
    fn ended(&self, process: &Arc<Watched>);
}

/// A process that was found but is not in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// The pid, if known.
    pub pid: Option<u32>,
    /// The number of times that it was asked.
    pub attempts: u32,
    /// The last error.
    pub error: Option<String>,
}

/// The .NET processes of the machine, watched until this is dropped.
pub struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    port: Option<Port>,
}

pub(crate) struct Shared {
    config: MonitorConfig,
    observers: Vec<Arc<dyn ProcessObserver>>,
    state: Mutex<State>,
    changed: Condvar,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    next_number: u32,
    /// The processes in the table, by number.
    processes: BTreeMap<u32, Arc<Watched>>,
    /// The numbers of the processes, by discovery key.
    numbers: BTreeMap<Key, u32>,
    /// The processes that have not answered so far.
    candidates: BTreeMap<Key, Candidate>,
    /// Processes that answered and do not match the filters.
    excluded: BTreeSet<Key>,
    /// The number of candidates that are being asked.
    asked: usize,
    /// The number of processes that were left out because there were too many.
    left_out: u64,
    lost_events: LostEvents,
    /// True to search at once.
    look_now: bool,
}

/// The identity of a runtime before it has answered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A socket: the pid, the start time and the path.
    Endpoint(u32, u64, PathBuf),
    /// A runtime at the port, by cookie.
    Port(Uuid),
}

struct Candidate {
    target: Target,
    pid: Option<u32>,
    name: Option<String>,
    /// True if it may wait at its start for this monitor.
    may_wait: bool,
    attempts: u32,
    due: Instant,
    is_asked: bool,
    error: Option<String>,
}

impl Monitor {
    /// Starts to watch.
    ///
    /// # Errors
    /// If the port cannot be listened at, or a thread not be started.
    pub fn start(
        config: MonitorConfig,
        observers: Vec<Arc<dyn ProcessObserver>>,
    ) -> Result<Self, MonitorError> {
        let address = config.port.clone();
        let shared = Arc::new(Shared {
            config,
            observers,
            state: Mutex::default(),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        let port = address.map(|address| Port::open(address, &shared)).transpose()?;
        let watching = Arc::clone(&shared);
        let thread = thread::Builder::new().name("processes".to_owned()).spawn(move || watching.watch())?;
        if let Some(interval) = shared.config.memory_interval {
            let reading = Arc::clone(&shared);
            let thread = thread::Builder::new().name("memory".to_owned()).stack_size(STACK);
            // At the end it is not waited for: the kernel can hold up a reading.
            thread.spawn(move || reading.read_memory(interval))?;
        }
        Ok(Self { shared, thread: Some(thread), port })
    }

    /// Returns the processes of the table, by number.
    pub fn processes(&self) -> Vec<Arc<Watched>> {
        self.shared.state().processes.values().cloned().collect()
    }

    /// Returns the processes that were found and have not answered so far.
    pub fn unanswered(&self) -> Vec<Unanswered> {
        let state = self.shared.state();
        let candidates = state.candidates.values();
        candidates
            .map(|candidate| Unanswered {
                pid: candidate.pid,
                attempts: candidate.attempts,
                error: candidate.error.clone(),
            })
            .collect()
    }

    /// The number of processes that were left out because there were too many.
    pub fn left_out(&self) -> u64 {
        self.shared.state().left_out
    }

    /// The numbers of events that runtimes dropped.
    pub(crate) fn lost_events(&self) -> LostEvents {
        self.shared.state().lost_events.clone()
    }

    /// Ends the sessions of all processes, within a limited time. Sessions of processes that the system keeps
    /// from answering get less. Returns the processes with sessions that have not ended: their runtimes end
    /// them when they notice that the connection is closed.
    pub fn stop(&self) -> Vec<Arc<Watched>> {
        let is_first = !self.shared.is_over.swap(true, Ordering::AcqRel);
        self.shared.changed.notify_all();
        let mut processes = self.processes();
        for process in &processes {
            process.end();
        }
        // Sessions are stopped rather than cut, so that runtimes release them.
        let longest = if is_first { LAST_SESSIONS } else { Duration::ZERO };
        let can_answer = |process: &Arc<Watched>| process.obstacle().is_none();
        await_end(&processes, can_answer, |process| process.counters.is_running(), longest);
        processes.retain(|process| process.counters.is_running());
        processes
    }

    /// The address of the port, if any.
    pub fn port_address(&self) -> Option<&Address> {
        self.port.as_ref().map(Port::address)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was already printed.
            let _ = thread.join();
        }
        // Some may have been added meanwhile.
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Searches for processes, and has new ones asked, until the end.
    fn watch(self: &Arc<Self>) {
        let mut next_look = Instant::now();
        let mut pause = SearchPause::default();
        while !self.is_over() {
            let now = Instant::now();
            if now >= next_look {
                next_look = now + LOOK;
                if !self.config.only_port && pause.is_due(linux_proc_stat::process_ids().ok()) {
                    let mut endpoints = discover().endpoints;
                    endpoints.retain(|endpoint| self.config.may_watch(endpoint.pid, &endpoint.path));
                    self.update(endpoints);
                }
            }
            self.ask_due();
            let mut state = self.state();
            if std::mem::take(&mut state.look_now) {
                next_look = Instant::now();
                pause.reset();
                continue;
            }
            let due = state.candidates.values().filter(|candidate| !candidate.is_asked).map(|it| it.due);
            let due = due.min().filter(|_| state.asked < MAX_CONCURRENT_QUERIES);
            let until = due.map_or(next_look, |due| due.min(next_look));
            let wait = until.saturating_duration_since(Instant::now());
            if !wait.is_zero() && !self.is_over() {
                drop(self.changed.wait_timeout(state, wait));
            }
        }
    }

    /// Compares the table with the endpoints that exist now.
    fn update(&self, endpoints: Vec<Endpoint>) {
        let mut ended = Vec::new();
        {
            let mut state = self.state();
            let found: BTreeSet<Key> = endpoints.iter().map(Key::of).collect();
            let is_gone = |key: &Key| matches!(key, Key::Endpoint(..)) && !found.contains(key);
            let gone: Vec<Key> = state.numbers.keys().filter(|key| is_gone(key)).cloned().collect();
            ended.extend(gone.iter().filter_map(|key| state.remove(key)));
            state.candidates.retain(|key, _| !is_gone(key));
            state.excluded.retain(|key| !is_gone(key));
            let at_port: BTreeSet<u32> = state.pids_at_port();
            for endpoint in endpoints {
                let key = Key::of(&endpoint);
                // A runtime that connects to the port listens at its own socket as well.
                if at_port.contains(&endpoint.pid) || endpoint.pid == std::process::id() {
                    continue;
                }
                let candidate = Candidate {
                    target: Target::from_endpoint(&endpoint),
                    pid: Some(endpoint.pid),
                    name: Some(endpoint.name),
                    may_wait: false,
                    attempts: 0,
                    due: Instant::now(),
                    is_asked: false,
                    error: None,
                };
                state.add(key, candidate);
            }
        }
        self.tell_ended(&ended);
    }

    /// Adds a runtime that has connected to the port.
    fn connected(&self, runtime: &PortRuntime) {
        let pid = runtime.pid();
        let candidate = Candidate {
            target: runtime.target(),
            pid,
            name: pid.and_then(|pid| dipc_client::dipc_transport::process_name(pid).ok()),
            may_wait: true,
            attempts: 0,
            due: Instant::now(),
            is_asked: false,
            error: None,
        };
        let mut ended = Vec::new();
        {
            let mut state = self.state();
            // The process was found by its own socket before it connected.
            let same = state.numbers.keys().chain(state.candidates.keys());
            let same = same.filter(|key| matches!(key, Key::Endpoint(other, ..) if Some(*other) == pid));
            for key in same.cloned().collect::<Vec<_>>() {
                ended.extend(state.remove(&key));
                state.candidates.remove(&key);
            }
            state.add(Key::Port(runtime.cookie()), candidate);
        }
        self.tell_ended(&ended);
        self.changed.notify_all();
    }

    /// Removes a runtime after its process has ended.
    fn exited(&self, runtime: &PortRuntime) {
        let key = Key::Port(runtime.cookie());
        let ended = {
            let mut state = self.state();
            state.candidates.remove(&key);
            state.excluded.remove(&key);
            state.remove(&key)
        };
        self.tell_ended(ended.as_slice());
    }

    fn tell_ended(&self, ended: &[Arc<Watched>]) {
        for process in ended {
            process.end();
            for observer in &self.observers {
                observer.ended(process);
            }
        }
    }

    /// Has due candidates asked, each in a thread of its own: a hanging one does not hold up the others.
    fn ask_due(self: &Arc<Self>) {
        let now = Instant::now();
        let mut state = self.state();
        let mut due: Vec<_> =
            state.candidates.iter().filter(|(_, it)| !it.is_asked && it.due <= now).collect();
        // New ones first: hanging candidates would otherwise always take all the threads.
        due.sort_by_key(|(_, candidate)| (candidate.attempts, candidate.due));
        let room = MAX_CONCURRENT_QUERIES.saturating_sub(state.asked);
        let keys: Vec<Key> = due.into_iter().take(room).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(candidate) = state.candidates.get_mut(&key) else { continue };
            let question = Question {
                target: candidate.target.clone().with_timeouts(Timeouts::each(FIRST_ANSWER)),
                pid: candidate.pid,
                name: candidate.name.clone(),
                may_wait: candidate.may_wait,
            };
            candidate.is_asked = true;
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("identify".to_owned()).stack_size(STACK);
            let asked_key = key.clone();
            match thread.spawn(move || shared.ask(&asked_key, question)) {
                Ok(_) => state.asked += 1,
                Err(error) => {
                    if let Some(candidate) = state.candidates.get_mut(&key) {
                        candidate.is_asked = false;
                        candidate.postpone(error.to_string());
                    }
                }
            }
        }
    }

    /// Asks a process, and adds it to the table.
    fn ask(&self, key: &Key, question: Question) {
        let Question { target, pid, name, may_wait } = question;
        let answer = Identity::ask(&target, pid, name.as_deref());
        let target = target.with_timeouts(Timeouts::default().with_request(REQUEST));
        let added = {
            let mut state = self.state();
            state.asked = state.asked.saturating_sub(1);
            match answer {
                Ok(identity) => state.identified(key, target.clone(), identity, &self.config),
                Err(error) => {
                    if let Some(candidate) = state.candidates.get_mut(key) {
                        candidate.is_asked = false;
                        candidate.postpone(error.to_string());
                    }
                    None
                }
            }
        };
        if let Some(process) = &added {
            for observer in &self.observers {
                observer.started(process);
            }
            // The process may have ended before the observers knew it.
            if process.has_ended() {
                self.tell_ended(std::slice::from_ref(process));
            }
        }
        // Whatever happened before: a program must not wait for a monitor that cannot use it.
        if may_wait {
            resume(&target);
        }
        self.changed.notify_all();
    }
}

/// Resumes a runtime that may wait at its start. A running one ignores it.
fn resume(target: &Target) {
    for _ in 0..3 {
        match target.resume() {
            Err(error) if error.is_deadline() => {}
            // The process runs, has ended, or does not know the command and never waits.
            _ => return,
        }
    }
}

/// A question to a candidate.
struct Question {
    target: Target,
    pid: Option<u32>,
    name: Option<String>,
    may_wait: bool,
}

impl Key {
    fn of(endpoint: &Endpoint) -> Self {
        Self::Endpoint(endpoint.pid, endpoint.key, endpoint.path.clone())
    }
}

impl Candidate {
    /// Sets the time of the next attempt.
    fn postpone(&mut self, error: String) {
        let wait = FIRST_RETRY.saturating_mul(1 << self.attempts.min(8)).min(MAX_RETRY_DELAY);
        self.attempts = self.attempts.saturating_add(1);
        self.due = Instant::now() + wait;
        self.error = Some(error);
    }
}

impl State {
    /// Adds a candidate, unless it is known.
    fn add(&mut self, key: Key, candidate: Candidate) {
        if self.numbers.contains_key(&key)
            || self.excluded.contains(&key)
            || self.candidates.contains_key(&key)
        {
            return;
        }
        if self.processes.len() + self.candidates.len() + self.excluded.len() >= MAX_PROCESSES {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.candidates.insert(key, candidate);
    }

    /// Moves a candidate that has answered to the table, if it matches the filters.
    fn identified(
        &mut self,
        key: &Key,
        target: Target,
        identity: Identity,
        config: &MonitorConfig,
    ) -> Option<Arc<Watched>> {
        // The process may have ended meanwhile.
        self.candidates.remove(key)?;
        if !config.filters.iter().all(|filter| filter.matches(identity.facts())) {
            self.excluded.insert(key.clone());
            return None;
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let process = Watched::new(number, target, identity, self.lost_events.clone(), config.report.clone());
        let process = Arc::new(process.with_dump_folder(config.dump_folder.clone()));
        if config.memory_interval.is_none() {
            process.owner_memory.skip();
        }
        self.processes.insert(number, Arc::clone(&process));
        self.numbers.insert(key.clone(), number);
        Some(process)
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Watched>> {
        let number = self.numbers.remove(key)?;
        self.processes.remove(&number)
    }

    /// The pids of the runtimes at the port.
    fn pids_at_port(&self) -> BTreeSet<u32> {
        let watched = self.numbers.iter().filter(|(key, _)| matches!(key, Key::Port(_)));
        let watched = watched.filter_map(|(_, number)| Some(self.processes.get(number)?.facts.pid));
        let candidates = self.candidates.iter().filter(|(key, _)| matches!(key, Key::Port(_)));
        watched.chain(candidates.filter_map(|(_, candidate)| candidate.pid)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_ruled_out_by_the_folder_of_their_socket() {
        let own = MonitorConfig::default().with_socket_folder(Some("/own/".into()));
        assert!(own.may_watch(7, Path::new("/own/dotnet-diagnostic-7-1-socket")));
        for other in ["/tmp/dotnet-diagnostic-7-1-socket", "/own/below/dotnet-diagnostic-7-1-socket"] {
            let other = Path::new(other);
            assert!(!own.may_watch(7, other) && MonitorConfig::default().may_watch(7, other));
        }
    }
}
