//! What the threads of a simulated runtime share: the listening one, and one a connection.

use crate::client::Client;
use crate::fault::Fault;
use crate::identity::FixedReplies;
use crate::session::Session;
use crate::{Speed, Version};
use dipc_transport::{Canceller, Connection, Deadline, Listener};
use dipc_wire::{CommandId, Request, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// More clients at once than this are turned away, so that no client can make threads without end.
const MAX_CONNECTIONS: usize = 256;
/// As many sessions as a real runtime has at once.
const MAX_SESSIONS: usize = 64;
/// As many requests as are remembered.
const MAX_REQUESTS: usize = 1000;
/// How long a StopTracing waits for the session's stream to end before it is answered all the same.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the listening thread rests when the system cannot give it a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What the runtime is like.
#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) version: Version,
    pub(crate) replies: FixedReplies,
    pub(crate) recording: Arc<[u8]>,
    pub(crate) speed: Speed,
    pub(crate) ends_with_recording: bool,
    pub(crate) faults: Vec<(Option<CommandId>, Fault)>,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) behaviour: Behaviour,
    listening: Canceller,
    state: Mutex<State>,
    /// Notified when a session ends.
    session_ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Set once, when the process is to end.
    ending: Option<Ending>,
    /// Ends what each connection waits for.
    connections: BTreeMap<u64, Canceller>,
    next_connection: u64,
    /// Whether each session is to stop.
    sessions: BTreeMap<SessionId, bool>,
    sessions_so_far: u64,
    requests: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// In good order.
    ShutDown,
    /// As if killed.
    Death,
}

impl Server {
    pub(crate) fn new(behaviour: Behaviour, listening: Canceller) -> Self {
        Self { behaviour, listening, state: Mutex::default(), session_ended: Condvar::new() }
    }

    /// Serves clients until the end, and returns when the last of their threads has ended.
    pub(crate) fn run(&self, mut listener: Listener, path: &Path) {
        thread::scope(|scope| {
            while !self.is_ending() {
                match listener.accept(Deadline::never()) {
                    Ok(connection) => self.serve(scope, connection),
                    Err(error) if error.is_cancelled() => break,
                    // Too many open files, say: the next attempt may succeed.
                    Err(_) => thread::sleep(ACCEPT_PAUSE),
                }
            }
            if self.has_died() {
                drop_but_leave_file(listener, path);
            }
        });
    }

    /// Serves one client on a thread of its own.
    fn serve<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, connection: Connection) {
        let Some(id) = self.register(connection.canceller()) else { return };
        let client = Client::new(self, connection);
        let serve = move || {
            client.serve();
            self.state().connections.remove(&id);
        };
        let thread = thread::Builder::new().name(format!("dipc-sim {id}")).spawn_scoped(scope, serve);
        if thread.is_err() {
            self.state().connections.remove(&id);
        }
    }

    /// `None` if there are too many connections, or the end has come.
    fn register(&self, canceller: Canceller) -> Option<u64> {
        let mut state = self.state();
        if state.ending.is_some() || state.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let id = state.next_connection;
        state.next_connection = id.wrapping_add(1);
        state.connections.insert(id, canceller);
        Some(id)
    }

    /// Ends in good order.
    pub(crate) fn shut_down(&self) {
        self.end(Ending::ShutDown);
    }

    /// Ends as if killed: every connection is cut, and the socket stays behind.
    pub(crate) fn die(&self) {
        self.end(Ending::Death);
    }

    fn end(&self, ending: Ending) {
        let mut state = self.state();
        state.ending.get_or_insert(ending);
        self.listening.cancel();
        for canceller in state.connections.values() {
            canceller.cancel();
        }
        self.session_ended.notify_all();
    }

    fn is_ending(&self) -> bool {
        self.state().ending.is_some()
    }

    pub(crate) fn has_died(&self) -> bool {
        self.state().ending == Some(Ending::Death)
    }

    /// Remembers a request, and forgets the oldest if there are too many.
    pub(crate) fn note(&self, request: Request) {
        let requests = &mut self.state().requests;
        if requests.len() >= MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().requests.iter().cloned().collect()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.state().sessions.len()
    }

    /// Opens a session; `None` if there are as many as a runtime can have.
    pub(crate) fn open_session(&self) -> Option<Session<'_>> {
        let mut state = self.state();
        if state.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        // Real ids look like addresses, and are multiples of 16.
        let id = SessionId(state.sessions_so_far.wrapping_mul(0x10).wrapping_add(0x7f5c_0018_e000));
        state.sessions_so_far = state.sessions_so_far.wrapping_add(1);
        state.sessions.insert(id, false);
        Some(Session::new(self, id))
    }

    pub(crate) fn close_session(&self, id: SessionId) {
        self.state().sessions.remove(&id);
        self.session_ended.notify_all();
    }

    pub(crate) fn is_stopped(&self, id: SessionId) -> bool {
        self.state().sessions.get(&id).copied().unwrap_or(true)
    }

    /// Stops a session and waits until its stream has ended, as long as a real one takes to write the rundown.
    pub(crate) fn stop_session(&self, id: SessionId) {
        let mut state = self.state();
        if let Some(stop) = state.sessions.get_mut(&id) {
            *stop = true;
        }
        let unfinished = |state: &mut State| state.ending.is_none() && state.sessions.contains_key(&id);
        // Whatever became of it, the reply is the same.
        drop(self.session_ended.wait_timeout_while(state, STOP_TIMEOUT, unfinished));
    }

    /// A thread that panicked leaves nothing half done here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener removes its file when it goes; a killed process does not.
fn drop_but_leave_file(listener: Listener, path: &Path) {
    let aside = path.with_extension("dead");
    let moved = fs::rename(path, &aside);
    drop(listener);
    if moved.is_ok() {
        // If it cannot be moved back there is no stale socket to show, which no test would take for one.
        let _ = fs::rename(&aside, path);
    }
}
