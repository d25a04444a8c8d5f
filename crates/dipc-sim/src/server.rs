//! What the threads of a simulated runtime share: the listening one, and one a connection.

use crate::Version;
use crate::client::Client;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::session::Session;
use crate::state::State;
use crate::stream::Material;
use dipc_transport::{Canceller, Connection, Deadline, Listener};
use dipc_wire::{CommandId, Request, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
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

/// How much stack a thread has: there can be thousands of threads, and none of them goes deep.
pub(crate) const STACK_SIZE: usize = 256 * 1024;

/// What the runtime is like.
#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) version: Version,
    /// The process id in the socket's name.
    pub(crate) pid: u32,
    pub(crate) identity: Identity,
    pub(crate) material: Material,
    /// Whether the kernel has user_events.
    pub(crate) user_events: bool,
    pub(crate) faults: Vec<(Option<CommandId>, Fault)>,
}

impl Behaviour {
    /// The faults that concern a command.
    pub(crate) fn faults_of(&self, command: CommandId) -> impl Iterator<Item = Fault> {
        let concerns = move |only: &Option<CommandId>| only.is_none_or(|only| only == command);
        self.faults.iter().filter(move |(only, _)| concerns(only)).map(|(_, fault)| *fault)
    }

    /// Whether there is this fault, of those that concern no command.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|(_, other)| *other == fault)
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) behaviour: Behaviour,
    process: Mutex<State>,
    shared: Mutex<Shared>,
    /// Notified when a session ends, and when the runtime does.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shared {
    /// Set once, when the process is to end.
    ending: Option<Ending>,
    /// Ends what each connection, and each listener, waits for.
    connections: BTreeMap<u64, Canceller>,
    next_connection: u64,
    sessions: BTreeMap<SessionId, Running>,
    sessions_so_far: u64,
    requests: VecDeque<Request>,
}

#[derive(Debug)]
struct Running {
    /// What started it.
    request: Request,
    /// Whether it is to stop.
    stops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// In good order.
    ShutDown,
    /// As if killed.
    Death,
}

impl Server {
    pub(crate) fn new(behaviour: Behaviour, suspended: bool) -> Self {
        let process = Mutex::new(State::new(&behaviour.identity, suspended));
        Self { behaviour, process, shared: Mutex::default(), changed: Condvar::new() }
    }

    /// Serves clients until the end, and returns when the last of their threads has ended.
    pub(crate) fn listen(&self, mut listener: Listener, path: &Path) {
        thread::scope(|scope| {
            if self.register(listener.canceller()).is_some() {
                while !self.is_ending() {
                    match listener.accept(Deadline::never()) {
                        Ok(connection) => self.serve(scope, connection),
                        Err(error) if error.is_cancelled() => break,
                        // Too many open files, say: the next attempt may succeed.
                        Err(_) => thread::sleep(ACCEPT_PAUSE),
                    }
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
        self.spawn(scope, id, move || client.serve());
    }

    /// Does the work of a registered connection on a thread of its own.
    pub(crate) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        id: u64,
        work: impl FnOnce() + Send + 'scope,
    ) {
        let work = move || {
            work();
            self.forget(id);
        };
        let builder = thread::Builder::new().name(format!("dipc-sim {id}")).stack_size(STACK_SIZE);
        if builder.spawn_scoped(scope, work).is_err() {
            self.forget(id);
        }
    }

    pub(crate) fn forget(&self, id: u64) {
        self.shared().connections.remove(&id);
    }

    /// `None` if there are too many connections, or the end has come.
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

    /// Ends in good order.
    pub(crate) fn shut_down(&self) {
        self.end(Ending::ShutDown);
    }

    /// Ends as if killed: every connection is cut, and the socket stays behind.
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

    /// Remembers a request, and forgets the oldest if there are too many.
    pub(crate) fn note(&self, request: Request) {
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
        self.shared().sessions.iter().map(|(id, running)| (*id, running.request.clone())).collect()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.shared().sessions.len()
    }

    /// Rests, but not past the end of the runtime.
    pub(crate) fn rest(&self, time: Duration) {
        let goes_on = |shared: &mut Shared| shared.ending.is_none();
        drop(self.changed.wait_timeout_while(self.shared(), time, goes_on));
    }

    /// Opens a session; `None` if there are as many as a runtime can have.
    pub(crate) fn open_session(&self, request: &Request) -> Option<Session<'_>> {
        let mut shared = self.shared();
        if shared.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        // Real ids look like addresses, and are multiples of 16.
        let id = SessionId(shared.sessions_so_far.wrapping_mul(0x10).wrapping_add(0x7f5c_0018_e000));
        shared.sessions_so_far = shared.sessions_so_far.wrapping_add(1);
        shared.sessions.insert(id, Running { request: request.clone(), stops: false });
        Some(Session::new(self, id))
    }

    pub(crate) fn close_session(&self, id: SessionId) {
        self.shared().sessions.remove(&id);
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self, id: SessionId) -> bool {
        self.shared().sessions.get(&id).is_none_or(|running| running.stops)
    }

    /// Stops a session and waits until its stream has ended, as long as a real one takes to write the rundown.
    pub(crate) fn stop_session(&self, id: SessionId) {
        let mut shared = self.shared();
        if let Some(running) = shared.sessions.get_mut(&id) {
            running.stops = true;
        }
        let unfinished = |shared: &mut Shared| shared.ending.is_none() && shared.sessions.contains_key(&id);
        // Whatever became of it, the reply is the same.
        drop(self.changed.wait_timeout_while(shared, STOP_TIMEOUT, unfinished));
    }

    /// What clients have done to the process.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that panicked leaves nothing half done here.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener removes its file when it goes; a killed process does not.
pub(crate) fn drop_but_leave_file(listener: Listener, path: &Path) {
    let aside = path.with_extension("dead");
    let moved = fs::rename(path, &aside);
    drop(listener);
    if moved.is_ok() {
        // If it cannot be moved back there is no stale socket to show, which no test would take for one.
        let _ = fs::rename(&aside, path);
    }
}
