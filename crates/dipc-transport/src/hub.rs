use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Instant;

use crate::cancel::{Canceller, Interruption};
use crate::sys::{ListeningSocket, Socket, Stream, Watcher};
use crate::{Address, Connection, Deadline, Error, Operation, PeerCredentials};

/// A listener that watches all its connections in the thread that calls [`Hub::next`]: for thousands of
/// runtimes that connect to a diagnostic port and then mostly wait.
///
/// An idle connection costs one descriptor and some dozens of bytes. Its bytes can be read here without
/// waiting; for a request it is taken out as an ordinary [`Connection`], and can be returned afterwards.
///
/// ```
/// use std::time::Duration;
/// use dipc_transport::{Address, Connection, Deadline, Hub, HubEvent, PeerCheck};
///
/// let mut hub = Hub::bind("127.0.0.1:0".parse::<Address>()?)?;
/// let deadline = Deadline::after(Duration::from_secs(60));
/// let mut runtime = Connection::connect(hub.address(), PeerCheck::Any, deadline)?;
/// runtime.write_all(b"ADVR_V1\0", deadline)?;
/// loop {
///     if let HubEvent::Readable(token) = hub.next(deadline)? {
///         let connection = hub.take(token)?;
///         assert!(connection.is_some() && hub.is_empty());
///         break;
///     }
/// }
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug)]
pub struct Hub {
    // Declared first, so that connections are closed before the watcher.
    connections: HashMap<usize, WatchedConnection>,
    /// The number of connections of each known process.
    process_lens: HashMap<u32, usize>,
    listener: ListeningSocket,
    address: Address,
    watcher: Watcher,
    wakes: Canceller,
    /// The tokens that may be ready, each once, in the order in which they became ready.
    candidates: VecDeque<usize>,
    /// The number of candidates that are polled before the watcher is asked for more.
    round: usize,
    next_token: usize,
    /// Maximum number of simultaneous connections; `None` for no limit.
    limit: Option<usize>,
    /// True if a client may be waiting for `accept` because of the limit.
    is_accept_paused: bool,
}

/// One connection of a [`Hub`]. Tokens of a hub are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(usize);

/// An event of a [`Hub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client has connected.
    Accepted(Token),
    /// Bytes can be read. The event is repeated when more arrive, and when [`Hub::read`] has left some.
    Readable(Token),
    /// The peer has closed, or died; bytes that it sent before were reported first. The connection is
    /// removed.
    Closed(Token),
    /// Another thread has called [`HubWaker::wake`], once or more.
    Woken,
}

/// A handle that makes [`Hub::next`] return, so that the thread of the hub can serve requests of other
/// threads.
///
/// ```
/// use dipc_transport::{Address, Deadline, Hub, HubEvent};
///
/// let mut hub = Hub::bind("127.0.0.1:0".parse::<Address>()?)?;
/// let waker = hub.waker();
/// let other = std::thread::spawn(move || waker.wake());
/// assert_eq!(hub.next(Deadline::never())?, HubEvent::Woken);
/// # other.join().expect("a thread that ends");
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HubWaker(Canceller);

impl HubWaker {
    /// Makes [`Hub::next`] return [`HubEvent::Woken`], now or when it is called next.
    pub fn wake(&self) {
        self.0.cancel();
    }
}

/// A connection of the hub, with everything needed to make it a [`Connection`] again.
#[derive(Debug)]
struct WatchedConnection {
    socket: Socket,
    address: Address,
    peer: PeerCredentials,
    /// True if its token is among the candidates.
    is_candidate: bool,
}

/// The token of the listener; the tokens of connections follow.
const LISTENER: usize = 0;

impl Hub {
    /// Listens as [`Listener::bind`](crate::Listener::bind) does.
    pub fn bind(address: impl Into<Address>) -> Result<Self, Error> {
        let (mut listener, address) = ListeningSocket::bind(&address.into())?;
        let mut watch = || -> io::Result<Watcher> {
            let mut watcher = Watcher::new()?;
            watcher.add(LISTENER, listener.source())?;
            Ok(watcher)
        };
        match watch() {
            Ok(watcher) => Ok(Self {
                wakes: watcher.canceller().renewed(),
                connections: HashMap::new(),
                process_lens: HashMap::new(),
                listener,
                address,
                watcher,
                candidates: VecDeque::new(),
                round: 0,
                next_token: LISTENER + 1,
                limit: None,
                is_accept_paused: false,
            }),
            Err(reason) => Err(Error::Io { operation: Operation::Listen, address, reason }),
        }
    }

    /// Accepts at most `limit` connections at a time; others wait until a connection is closed. A caller that
    /// takes connections out needs descriptors for these as well
    /// ([`raise_descriptor_limit`](crate::raise_descriptor_limit)).
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = Some(limit);
        self.resume_accept();
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if nothing happens until the deadline, [`Error::Cancelled`], and [`Error::Io`] if
    /// a connection cannot be accepted, perhaps for lack of descriptors. It can be called again after each.
    pub fn next(&mut self, deadline: Deadline) -> Result<HubEvent, Error> {
        let started = Instant::now();
        let mut has_waited = false;
        loop {
            if self.watcher.canceller().is_cancelled() {
                return Err(self.failed(Interruption::Cancelled));
            }
            if self.wakes.take() {
                return Ok(HubEvent::Woken);
            }
            while self.round > 0
                && let Some(token) = self.candidates.pop_front()
            {
                self.round -= 1;
                if let Some(event) = self.poll_candidate(token)? {
                    return Ok(event);
                }
            }
            if !self.candidates.is_empty() {
                // Connections that always have something to read would otherwise starve all others.
                self.watch_until(Deadline::at(Instant::now()))?;
                continue;
            }
            if has_waited && deadline.is_over() {
                return Err(self.failed(Interruption::TimedOut(started.elapsed())));
            }
            self.watch_until(deadline)?;
            has_waited = true;
        }
    }

    /// Waits until a connection is ready or the deadline passes, and begins a round of all candidates.
    fn watch_until(&mut self, deadline: Deadline) -> Result<(), Error> {
        let mut ready = Vec::new();
        self.watcher.wait(deadline, &mut ready).map_err(|error| self.failed(Interruption::Failed(error)))?;
        for token in ready {
            self.enqueue(token);
        }
        self.round = self.candidates.len();
        Ok(())
    }

    fn failed(&self, interruption: Interruption) -> Error {
        interruption.into_error(Operation::Accept, &self.address, None)
    }

    /// Makes a token a candidate, unless it is one already or its connection is gone.
    fn enqueue(&mut self, token: usize) {
        match self.connections.get_mut(&token) {
            Some(watched) if !watched.is_candidate => watched.is_candidate = true,
            None if token == LISTENER => {}
            _ => return,
        }
        self.candidates.push_back(token);
    }

    /// Returns the event of a candidate, if it has one.
    fn poll_candidate(&mut self, token: usize) -> Result<Option<HubEvent>, Error> {
        if token == LISTENER {
            return self.accept();
        }
        let Some(watched) = self.connections.get_mut(&token) else { return Ok(None) };
        watched.is_candidate = false;
        Ok(match watched.socket.has_bytes() {
            Ok(true) => Some(HubEvent::Readable(Token(token))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.enqueue(token);
                None
            }
            Ok(false) | Err(_) => {
                self.remove(token);
                Some(HubEvent::Closed(Token(token)))
            }
        })
    }

    fn accept(&mut self) -> Result<Option<HubEvent>, Error> {
        if self.limit.is_some_and(|limit| self.connections.len() >= limit) {
            self.is_accept_paused = true;
            return Ok(None);
        }
        match self.listener.accept() {
            Ok(socket) => {
                // There may be more clients; the other candidates are first.
                self.candidates.push_back(LISTENER);
                // macOS and Windows do not report credentials of a client that has already disconnected.
                let Ok(peer) = socket.peer_credentials() else { return Ok(None) };
                let token = self.add(socket, self.address.clone(), peer)?;
                Ok(Some(HubEvent::Accepted(token)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // The client has closed again, or a signal arrived.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) =>
            {
                self.candidates.push_back(LISTENER);
                Ok(None)
            }
            Err(error) => {
                // Reported once instead of at every call: accepting is tried again when a connection is
                // closed.
                self.is_accept_paused = true;
                Err(self.failed(Interruption::Failed(error)))
            }
        }
    }

    fn add(&mut self, mut socket: Socket, address: Address, peer: PeerCredentials) -> Result<Token, Error> {
        let token = self.next_token;
        self.next_token += 1;
        self.watcher.add(token, &mut socket).map_err(|error| self.failed(Interruption::Failed(error)))?;
        self.connections.insert(token, WatchedConnection { socket, address, peer, is_candidate: false });
        if let Some(pid) = peer.pid {
            *self.process_lens.entry(pid).or_default() += 1;
        }
        Ok(Token(token))
    }

    fn remove(&mut self, token: usize) -> Option<WatchedConnection> {
        let mut watched = self.connections.remove(&token)?;
        self.watcher.remove(token, &mut watched.socket);
        if let Some(Entry::Occupied(mut len)) = watched.peer.pid.map(|pid| self.process_lens.entry(pid)) {
            *len.get_mut() -= 1;
            if *len.get() == 0 {
                len.remove();
            }
        }
        self.resume_accept();
        Some(watched)
    }

    /// Makes the listener a candidate again, if the limit or an error prevented that.
    fn resume_accept(&mut self) {
        if std::mem::take(&mut self.is_accept_paused) {
            self.candidates.push_back(LISTENER);
        }
    }

    /// Reads the available bytes, without waiting: `Ok(None)` if no bytes are available, or the connection
    /// does not exist. 0 is the end, which [`HubEvent::Closed`] reports as well.
    pub fn read(&mut self, token: Token, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        let Some(watched) = self.connections.get_mut(&token.0) else { return Ok(None) };
        match watched.socket.read(buffer) {
            Ok(count) => {
                self.enqueue(token.0);
                Ok(Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                self.enqueue(token.0);
                Err(Interruption::Failed(error).into_error(Operation::Read, &self.address, None))
            }
        }
    }

    /// Takes a connection out, to read and write it with deadlines. `None` if the hub does not have it.
    pub fn take(&mut self, token: Token) -> Result<Option<Connection>, Error> {
        let Some(WatchedConnection { socket, address, peer, .. }) = self.remove(token.0) else {
            return Ok(None);
        };
        match Stream::new(socket) {
            Ok(stream) => Ok(Some(Connection::from_parts(stream, address, peer))),
            Err(reason) => Err(Error::Io { operation: Operation::Accept, address, reason }),
        }
    }

    /// Watches a connection from now on, taken out of a hub or not. The connection gets a new token.
    pub fn watch(&mut self, connection: Connection) -> Result<Token, Error> {
        let (stream, address, peer) = connection.into_parts();
        self.add(stream.into_socket(), address, peer)
    }

    /// Closes a connection.
    pub fn close(&mut self, token: Token) {
        self.remove(token.0);
    }

    /// Returns the credentials of the peer of a connection.
    pub fn peer(&self, token: Token) -> Option<PeerCredentials> {
        self.connections.get(&token.0).map(|watched| watched.peer)
    }

    /// Returns the number of watched connections.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of watched connections of a process, as the kernel reports their peers.
    pub fn process_len(&self, pid: u32) -> usize {
        self.process_lens.get(&pid).copied().unwrap_or_default()
    }

    /// Returns whether no connection is watched.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the address that is listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns a handle that ends a pending [`Hub::next`] from another thread.
    pub fn canceller(&self) -> Canceller {
        self.watcher.canceller().clone()
    }

    /// Returns a handle that makes [`Hub::next`] return from another thread.
    pub fn waker(&self) -> HubWaker {
        HubWaker(self.wakes.clone())
    }
}
