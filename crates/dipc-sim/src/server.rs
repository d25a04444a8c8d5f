//! The state that the threads of a simulated runtime share.

use crate::config::RuntimeConfig;
use crate::state::State;
use dipc_transport::Canceller;
use dipc_wire::{Request, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// The highest number of connections at once: more are closed, since each takes a thread.
const MAX_CONNECTIONS: usize = 256;
/// The highest number of sessions at once, as in real runtimes.
const MAX_SESSIONS: usize = 64;
/// The number of requests that are kept.
const MAX_REQUESTS: usize = 1000;
/// The time after which a StopTracing is answered even if the session's stream has not ended.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The stack size of a thread: there can be thousands of threads, and none calls deeply.
pub(crate) const STACK_SIZE: usize = 256 * 1024;

/// A simulated runtime, shared between its threads.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) config: RuntimeConfig,
    state: Mutex<State>,
    shared: Mutex<Shared>,
    /// Notified when a session ends, and when the runtime does.
    changed: Condvar,
}

/// The state that threads change.
#[derive(Debug, Default)]
struct Shared {
    /// The end of the process: set once.
    ending: Option<Ending>,
    /// The cancellers of connections and listeners, by number.
    connections: BTreeMap<u64, Canceller>,
    next_connection: u64,
    sessions: BTreeMap<SessionId, OpenSession>,
    sessions_opened: u64,
    requests: VecDeque<Request>,
}

/// A session with a stream that has not ended.
#[derive(Debug)]
struct OpenSession {
    request: Request,
    /// True if a StopTracing has arrived.
    stopped: bool,
}

/// The manner in which the runtime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// An orderly end, without a trace.
    ShutDown,
    /// An end as of a killed process.
    Death,
}

impl Server {
    pub(crate) fn new(config: RuntimeConfig, suspended: bool) -> Self {
        let state = Mutex::new(State::new(&config.identity, suspended));
        Self { config, state, shared: Mutex::default(), changed: Condvar::new() }
    }

    /// Runs `work` for a registered connection on a thread of its own.
    pub(crate) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        id: u64,
        work: impl FnOnce() + Send + 'scope,
    ) {
        let work = move || {
            work();
            self.unregister(id);
        };
        let builder = thread::Builder::new().name(format!("dipc-sim {id}")).stack_size(STACK_SIZE);
        if builder.spawn_scoped(scope, work).is_err() {
            self.unregister(id);
        }
    }

    pub(crate) fn unregister(&self, id: u64) {
        self.shared().connections.remove(&id);
    }

    /// Registers a connection or a listener and returns its number; `None` if there are too many, or the
    /// runtime is ending.
    pub(crate) fn register(&self, canceller: Canceller) -> Option<u64> {
        let mut shared = self.shared();
        if shared.ending.is_some() || shared.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let id = shared.next_connection;
        shared.next_connection = id.wrapping_add(1);
        shared.connections.insert(id, canceller);
        Some(id)
    }

    /// Ends the runtime in an orderly way.
    pub(crate) fn shut_down(&self) {
        self.end(Ending::ShutDown);
    }

    /// Ends the runtime as if the process was killed: connections are cut, and the socket stays.
    pub(crate) fn die(&self) {
        self.end(Ending::Death);
    }

    fn end(&self, ending: Ending) {
        let mut shared = self.shared();
        shared.ending.get_or_insert(ending);
        for canceller in shared.connections.values() {
            canceller.cancel();
        }
        self.changed.notify_all();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.shared().ending.is_some()
    }

    pub(crate) fn has_died(&self) -> bool {
        self.shared().ending == Some(Ending::Death)
    }

    /// Keeps a request, in place of the oldest if there are too many.
    pub(crate) fn record_request(&self, request: Request) {
        let requests = &mut self.shared().requests;
        if requests.len() >= MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared().requests.iter().cloned().collect()
    }

    pub(crate) fn sessions(&self) -> Vec<(SessionId, Request)> {
        self.shared().sessions.iter().map(|(id, session)| (*id, session.request.clone())).collect()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.shared().sessions.len()
    }

    /// Sleeps for `time`, or until the runtime ends.
    pub(crate) fn sleep(&self, time: Duration) {
        let is_alive = |shared: &mut Shared| shared.ending.is_none();
        drop(self.changed.wait_timeout_while(self.shared(), time, is_alive));
    }

    /// Adds a session; `None` if there are as many as a runtime can have.
    pub(crate) fn add_session(&self, request: &Request) -> Option<SessionId> {
        let mut shared = self.shared();
        if shared.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        // Real ids look like addresses, and are multiples of 16.
        let id = SessionId(shared.sessions_opened.wrapping_mul(0x10).wrapping_add(0x7f5c_0018_e000));
        shared.sessions_opened = shared.sessions_opened.wrapping_add(1);
        shared.sessions.insert(id, OpenSession { request: request.clone(), stopped: false });
        Some(id)
    }

    pub(crate) fn remove_session(&self, id: SessionId) {
        self.shared().sessions.remove(&id);
        self.changed.notify_all();
    }

    /// Returns true if a session should end, or does not exist.
    pub(crate) fn is_stopped(&self, id: SessionId) -> bool {
        self.shared().sessions.get(&id).is_none_or(|session| session.stopped)
    }

    /// Stops a session, and waits until its stream has ended, at most for [`STOP_TIMEOUT`].
    pub(crate) fn stop_session(&self, id: SessionId) {
        let mut shared = self.shared();
        if let Some(session) = shared.sessions.get_mut(&id) {
            session.stopped = true;
        }
        let unfinished = |shared: &mut Shared| shared.ending.is_none() && shared.sessions.contains_key(&id);
        // The reply is the same after the timeout.
        drop(self.changed.wait_timeout_while(shared, STOP_TIMEOUT, unfinished));
    }

    /// Returns the state of the process, locked.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the shared state. A thread that panics while it holds the lock leaves the state consistent.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
