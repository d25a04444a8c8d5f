//! The thread of a port: it reads the Advertise messages, keeps idle connections, hands them over, and
//! detects exits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dipc_transport::{Deadline, Hub, HubEvent, PeerCredentials, Token, start_key};
use dipc_wire::Advertise;
use uuid::Uuid;

use super::state::Shared;
use super::{PortEvent, PortRuntime};
use crate::link::{PortLink, WaiterQueue};
use crate::{Error, PortError};

/// Maximum time between a connection and its Advertise message.
const ADVERTISE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval of checks whether a runtime without a connection has exited.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time without a connection of a runtime in a process that is not visible: it tries to connect at
/// least twice a second, unless it serves a command, which keeps a connection open.
const ABSENCE: Duration = Duration::from_secs(5);
/// Maximum number of runtimes of one process that are kept without a connection: beyond that, the runtimes
/// absent longest count as exited. A process has a single runtime, or a few if it loads libraries with a
/// runtime of their own; a process that keeps inventing runtimes would fill the memory.
const MAX_ABSENT_OF_PROCESS: usize = 16;
/// Maximum number of runtimes of unknown processes that are kept without a connection.
const MAX_ABSENT_OF_UNKNOWN: usize = 4096;

/// Maximum number of simultaneous connections, even if more open files are allowed: they take memory.
const MAX_CONNECTIONS: usize = 1 << 16;
/// Lower bound on the limit of connections.
const MIN_CONNECTIONS: usize = 16;

pub(super) struct Server {
    hub: Hub,
    /// Maximum number of simultaneous connections. One process may have half of them.
    limit: usize,
    /// True if the limit is reached.
    is_full: bool,
    waiters: Arc<WaiterQueue>,
    shared: Arc<Shared>,
    /// The connections without an Advertise message.
    arriving: HashMap<Token, Arriving>,
    runtimes: BTreeMap<Uuid, Runtime>,
    /// The runtime of each idle connection.
    idle: HashMap<Token, Uuid>,
    /// The runtimes without a connection, with the time since when.
    absent: BTreeMap<Uuid, Instant>,
    next_look: Instant,
}

struct Arriving {
    bytes: Vec<u8>,
    until: Instant,
}

struct Runtime {
    link: Arc<PortLink>,
    process: ProcessIdentity,
    idle: Option<Token>,
}

/// The process of a connection, as far as the system identifies it.
#[derive(Clone, Copy)]
struct ProcessIdentity {
    pid: Option<u32>,
    uid: Option<u32>,
    /// The start time, since another process may get the pid.
    start_key: Option<u64>,
}

impl Server {
    pub(super) fn new(mut hub: Hub, shared: Arc<Shared>) -> Self {
        let limit = connection_limit(dipc_transport::descriptor_limit());
        hub.set_limit(limit);
        Self {
            waiters: Arc::new(WaiterQueue::new(hub.waker())),
            hub,
            limit,
            is_full: false,
            shared,
            arriving: HashMap::new(),
            runtimes: BTreeMap::new(),
            idle: HashMap::new(),
            absent: BTreeMap::new(),
            next_look: Instant::now() + LOOK,
        }
    }

    pub(super) fn run(mut self) {
        while !self.shared.is_closed() {
            match self.hub.next(self.deadline()) {
                Ok(HubEvent::Accepted(token)) => self.accepted(token),
                Ok(HubEvent::Readable(token)) => self.read(token),
                Ok(HubEvent::Closed(token)) => self.lost(token),
                Ok(HubEvent::Woken) => {
                    for cookie in self.waiters.take() {
                        self.serve(cookie);
                    }
                }
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(error) => self.shared.tell(PortEvent::Error(error.into())),
            }
            if Instant::now() >= self.next_look {
                self.look();
            }
        }
        for runtime in self.runtimes.values() {
            runtime.link.end();
        }
    }

    fn accepted(&mut self, token: Token) {
        let of_process = self.limit / 2;
        if let Some(pid) = self.hub.peer(token).and_then(|peer| peer.pid)
            && self.hub.process_len(pid) > of_process
        {
            self.hub.close(token);
            let address = self.hub.address().clone();
            self.tell_error(PortError::ProcessFull { address, pid, limit: of_process });
            return;
        }
        let until = Instant::now() + ADVERTISE_TIMEOUT;
        self.arriving.insert(token, Arriving { bytes: Vec::new(), until });
        let was_full = std::mem::replace(&mut self.is_full, self.hub.len() >= self.limit);
        if self.is_full && !was_full {
            let (address, limit) = (self.hub.address().clone(), self.limit);
            self.tell_error(PortError::Full { address, limit });
        }
    }

    fn tell_error(&self, error: PortError) {
        self.shared.tell(PortEvent::Error(error.into()));
    }

    /// No checks are due while all connections have advertised themselves and all runtimes have a connection.
    fn deadline(&self) -> Deadline {
        let nothing_to_look_at = self.arriving.is_empty() && self.absent.is_empty();
        if nothing_to_look_at { Deadline::never() } else { Deadline::at(self.next_look) }
    }

    fn read(&mut self, token: Token) {
        let mut buffer = [0; Advertise::LEN];
        let Some(arriving) = self.arriving.get_mut(&token) else {
            // A runtime sends nothing until it is asked, so this connection is not usable.
            self.hub.close(token);
            self.lost(token);
            return;
        };
        let missing = Advertise::LEN.saturating_sub(arriving.bytes.len());
        match self.hub.read(token, buffer.get_mut(..missing).unwrap_or_default()) {
            Ok(Some(count)) => arriving.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            // `Closed` follows.
            Ok(None) | Err(_) => return,
        }
        match Advertise::from_bytes(&arriving.bytes) {
            Ok(advertise) => {
                self.arriving.remove(&token);
                self.arrived(token, &advertise);
            }
            Err(error) if error.is_incomplete() => {}
            Err(error) => {
                self.arriving.remove(&token);
                self.hub.close(token);
                let address = self.hub.address().clone();
                self.shared.tell(PortEvent::Error(Error::Protocol { command: "Advertise", address, error }));
            }
        }
    }

    /// Adds a connection after its Advertise message has arrived.
    fn arrived(&mut self, token: Token, advertise: &Advertise) {
        let cookie = advertise.runtime_cookie;
        let process = ProcessIdentity::of(self.hub.peer(token));
        if let Some(runtime) = self.runtimes.get(&cookie)
            && !runtime.process.is_same(&process)
        {
            if !runtime.process.has_ended() {
                // Commands, with their contents, are for the process that advertised itself first.
                let pid = runtime.process.pid;
                self.hub.close(token);
                let address = self.hub.address().clone();
                self.tell_error(PortError::ForeignCookie { cookie, address, pid, found: process.pid });
                return;
            }
            self.end(cookie);
        }
        self.idle.insert(token, cookie);
        if let Some(runtime) = self.runtimes.get_mut(&cookie) {
            runtime.link.count_reconnect();
            self.absent.remove(&cookie);
            if let Some(old) = runtime.idle.replace(token) {
                // A runtime connects again only after it has dropped its connection.
                self.idle.remove(&old);
                self.hub.close(old);
            }
            self.serve(cookie);
            return;
        }
        let (address, waiters) = (self.hub.address().clone(), Arc::clone(&self.waiters));
        let link = Arc::new(PortLink::new(cookie, advertise.process_id, process.pid, address, waiters));
        let runtime = Runtime { link: Arc::clone(&link), process, idle: Some(token) };
        self.runtimes.insert(cookie, runtime);
        self.shared.insert(Arc::clone(&link));
        self.shared.tell(PortEvent::Connected(PortRuntime { link }));
    }

    /// Gives a connection to a waiting command.
    fn serve(&mut self, cookie: Uuid) {
        let Some(runtime) = self.runtimes.get_mut(&cookie) else { return };
        let Some(token) = runtime.idle.filter(|_| runtime.link.is_wanted()) else { return };
        runtime.idle = None;
        self.absent.insert(cookie, Instant::now());
        self.idle.remove(&token);
        match self.hub.take(token) {
            Ok(Some(connection)) => {
                if let Some(unwanted) = runtime.link.hand_over(connection)
                    && let Ok(token) = self.hub.watch(unwanted)
                {
                    runtime.idle = Some(token);
                    self.absent.remove(&cookie);
                    self.idle.insert(token, cookie);
                }
            }
            Err(error) => self.shared.tell(PortEvent::Error(error.into())),
            Ok(None) => {}
        }
    }

    /// Handles the end of a connection.
    fn lost(&mut self, token: Token) {
        self.arriving.remove(&token);
        let Some(cookie) = self.idle.remove(&token) else { return };
        if let Some(runtime) = self.runtimes.get_mut(&cookie).filter(|runtime| runtime.idle == Some(token)) {
            runtime.idle = None;
            let pid = runtime.link.pid;
            self.absent.insert(cookie, Instant::now());
            self.end_surplus(pid);
        }
    }

    /// Closes connections without an Advertise message, and detects exited runtimes.
    fn look(&mut self) {
        let now = Instant::now();
        self.next_look = now + LOOK;
        let late = self.arriving.iter().filter(|(_, arriving)| arriving.until <= now);
        let late: Vec<_> = late.map(|(token, _)| *token).collect();
        for token in late {
            self.arriving.remove(&token);
            self.hub.close(token);
        }
        let has_ended = |(cookie, since): &(&Uuid, &Instant)| {
            self.runtimes.get(*cookie).is_some_and(|runtime| runtime.has_ended(**since, now))
        };
        let gone: Vec<_> = self.absent.iter().filter(has_ended).map(|(cookie, _)| *cookie).collect();
        for cookie in gone {
            self.end(cookie);
        }
    }

    /// Ends the runtimes of a process that have been without a connection for longest, if there are too many.
    fn end_surplus(&mut self, pid: Option<u32>) {
        let most = if pid.is_some() { MAX_ABSENT_OF_PROCESS } else { MAX_ABSENT_OF_UNKNOWN };
        let counts =
            |cookie| self.runtimes.get(cookie).is_some_and(|it| it.link.pid == pid && !it.link.is_in_use());
        let absent = self.absent.iter().filter(|(cookie, _)| counts(cookie));
        let mut absent: Vec<_> = absent.map(|(cookie, since)| (*since, *cookie)).collect();
        absent.sort_unstable();
        let surplus = absent.len().saturating_sub(most);
        for (_, cookie) in absent.into_iter().take(surplus) {
            self.end(cookie);
        }
    }

    fn end(&mut self, cookie: Uuid) {
        self.absent.remove(&cookie);
        let Some(runtime) = self.runtimes.remove(&cookie) else { return };
        if let Some(token) = runtime.idle {
            self.idle.remove(&token);
            self.hub.close(token);
        }
        runtime.link.end();
        self.shared.remove(PortRuntime { link: runtime.link });
    }
}

/// Returns the most connections at a time. A quarter of the descriptors is for commands and sessions, which
/// take several each.
fn connection_limit(descriptors: Option<u64>) -> usize {
    let descriptors = descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (descriptors - descriptors / 4).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

impl Runtime {
    /// Returns true if the runtime has exited, given that it has been without a connection here since then.
    fn has_ended(&self, since: Instant, now: Instant) -> bool {
        if self.process.is_visible() {
            // Between two commands a runtime is briefly without a connection.
            now.saturating_duration_since(since) >= LOOK && self.process.has_ended()
        } else {
            self.link.absence(since, now) > ABSENCE
        }
    }
}

impl ProcessIdentity {
    fn of(peer: Option<PeerCredentials>) -> Self {
        let pid = peer.and_then(|peer| peer.pid);
        let start_key = pid.and_then(|pid| start_key(pid).ok());
        Self { pid, uid: peer.and_then(|peer| peer.uid), start_key }
    }

    /// Returns true if both are one process, as far as can be determined. A process can change its user;
    /// users distinguish processes if their pids are not visible. A process that has ended since it connected
    /// no longer has a start time.
    fn is_same(&self, other: &Self) -> bool {
        match (self.pid, other.pid) {
            (Some(mine), Some(other_pid)) => {
                let keys = self.start_key.zip(other.start_key);
                mine == other_pid && keys.is_none_or(|(mine, other_key)| mine == other_key)
            }
            (None, None) => self.uid == other.uid,
            _ => false,
        }
    }

    /// Returns true if the end of the process can be seen.
    fn is_visible(&self) -> bool {
        self.pid.is_some() && self.start_key.is_some()
    }

    /// Returns true if the process is seen to have ended; a zombie has.
    fn has_ended(&self) -> bool {
        let (Some(pid), Some(key)) = (self.pid, self.start_key) else { return false };
        match start_key(pid) {
            Ok(now) => now != key,
            // Other errors, such as too many open files, are not evidence.
            Err(error) => matches!(error, dipc_transport::Error::NoSuchProcess { .. }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessIdentity;

    fn identity(pid: u32, start_key: Option<u64>) -> ProcessIdentity {
        ProcessIdentity { pid: Some(pid), uid: Some(0), start_key }
    }

    #[test]
    fn a_connection_that_is_read_after_the_end_of_its_process_is_of_the_same_process() {
        let process = identity(7, Some(1));
        assert!(process.is_same(&identity(7, Some(1))));
        assert!(process.is_same(&identity(7, None)));
        assert!(!process.is_same(&identity(7, Some(2))));
        assert!(!process.is_same(&identity(8, None)));
    }
}
