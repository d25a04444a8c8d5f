use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Instant;

use crate::cancel::{Canceller, Interruption};
use crate::sys::{ListeningSocket, Socket, Stream, Watcher};
use crate::{Address, Connection, Deadline, Error, Operation, PeerCredentials};

/// A listener that watches all its connections at once, in the thread that calls [`Hub::next`]: for thousands of
/// runtimes that connect to a diagnostic port and then mostly wait.
///
/// An idle connection costs one descriptor and some dozens of bytes. What is said on it can be read here without waiting;
/// for an exchange it is taken out as an ordinary [`Connection`], and can be given back afterwards.
#[derive(Debug)]
pub struct Hub {
    // Connections first: they are closed before what watches them.
    connections: HashMap<usize, Watched>,
    listener: ListeningSocket,
    address: Address,
    watcher: Watcher,
    wakes: Canceller,
    /// What may have something to say, each once, in the order in which it became so.
    candidates: VecDeque<usize>,
    next_token: usize,
    limit: usize,
    /// Somebody may be waiting for `accept` whom we had no room for.
    accept_waits: bool,
}

/// One connection of a [`Hub`]. No two of a hub's connections ever have the same token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(usize);

/// What has happened at a [`Hub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubEvent {
    /// Somebody has connected.
    Accepted(Token),
    /// There is something to read. It is told again when more comes, and when [`Hub::read`] has left something.
    Readable(Token),
    /// The other side has closed, or died; what it had sent before was told of first. The connection is gone.
    Closed(Token),
    /// Another thread has called [`HubWaker::wake`], once or more often.
    Woken,
}

/// Makes [`Hub::next`] return, so that the thread of the hub looks at what another thread has left for it.
#[derive(Debug, Clone)]
pub struct HubWaker(Canceller);

impl HubWaker {
    /// Has [`Hub::next`] tell [`HubEvent::Woken`], now or when it is called next.
    pub fn wake(&self) {
        self.0.cancel();
    }
}

#[derive(Debug)]
struct Watched {
    socket: Socket,
    address: Address,
    peer: PeerCredentials,
    is_candidate: bool,
}

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
                listener,
                address,
                watcher,
                candidates: VecDeque::new(),
                next_token: LISTENER + 1,
                limit: usize::MAX,
                accept_waits: false,
            }),
            Err(source) => Err(Error::Io { operation: Operation::Listen, address, source }),
        }
    }

    /// Accepts no more than `limit` connections at a time; others wait until one has gone. Whoever takes connections out
    /// needs descriptors for these, too ([`raise_descriptor_limit`](crate::raise_descriptor_limit)).
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.room_was_made();
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if nothing happens until the deadline, [`Error::Cancelled`], and [`Error::Io`] where a
    /// connection cannot be accepted, for want of descriptors perhaps. It can be called again after each.
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
            while let Some(token) = self.candidates.pop_front() {
                if let Some(event) = self.look(token)? {
                    return Ok(event);
                }
            }
            if has_waited && deadline.is_over() {
                return Err(self.failed(Interruption::TimedOut(started.elapsed())));
            }
            let mut ready = Vec::new();
            self.watcher
                .wait(deadline, &mut ready)
                .map_err(|error| self.failed(Interruption::Failed(error)))?;
            for token in ready {
                self.consider(token);
            }
            has_waited = true;
        }
    }

    fn failed(&self, interruption: Interruption) -> Error {
        interruption.into_error(Operation::Accept, &self.address, None)
    }

    fn consider(&mut self, token: usize) {
        match self.connections.get_mut(&token) {
            Some(watched) if !watched.is_candidate => watched.is_candidate = true,
            None if token == LISTENER => {}
            _ => return,
        }
        self.candidates.push_back(token);
    }

    /// Whether a candidate really has something to say.
    fn look(&mut self, token: usize) -> Result<Option<HubEvent>, Error> {
        if token == LISTENER {
            return self.accept();
        }
        let Some(watched) = self.connections.get_mut(&token) else { return Ok(None) };
        watched.is_candidate = false;
        Ok(match watched.socket.has_bytes() {
            Ok(true) => Some(HubEvent::Readable(Token(token))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.consider(token);
                None
            }
            Ok(false) | Err(_) => {
                self.remove(token);
                Some(HubEvent::Closed(Token(token)))
            }
        })
    }

    fn accept(&mut self) -> Result<Option<HubEvent>, Error> {
        if self.connections.len() >= self.limit {
            self.accept_waits = true;
            return Ok(None);
        }
        let accepted = self.listener.accept().and_then(|socket| Ok((socket.peer_credentials()?, socket)));
        match accepted {
            Ok((peer, socket)) => {
                // There may be more, after what else is waiting.
                self.candidates.push_back(LISTENER);
                let token = self.add(socket, self.address.clone(), peer)?;
                Ok(Some(HubEvent::Accepted(token)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // It has gone again, or we were interrupted.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) =>
            {
                self.candidates.push_back(LISTENER);
                Ok(None)
            }
            Err(error) => {
                // Told once, not at every call: it is tried again when a connection has gone.
                self.accept_waits = true;
                Err(self.failed(Interruption::Failed(error)))
            }
        }
    }

    fn add(&mut self, mut socket: Socket, address: Address, peer: PeerCredentials) -> Result<Token, Error> {
        let token = self.next_token;
        self.next_token += 1;
        self.watcher.add(token, &mut socket).map_err(|error| self.failed(Interruption::Failed(error)))?;
        self.connections.insert(token, Watched { socket, address, peer, is_candidate: false });
        Ok(Token(token))
    }

    fn remove(&mut self, token: usize) -> Option<Watched> {
        let mut watched = self.connections.remove(&token)?;
        self.watcher.remove(token, &mut watched.socket);
        self.room_was_made();
        Some(watched)
    }

    fn room_was_made(&mut self) {
        if std::mem::take(&mut self.accept_waits) {
            self.candidates.push_back(LISTENER);
        }
    }

    /// Reads what is there, without waiting: `Ok(None)` if there is nothing, or no such connection. 0 is the end, which
    /// [`HubEvent::Closed`] will tell as well.
    pub fn read(&mut self, token: Token, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        let Some(watched) = self.connections.get_mut(&token.0) else { return Ok(None) };
        match watched.socket.read(buffer) {
            Ok(count) => {
                self.consider(token.0);
                Ok(Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                self.consider(token.0);
                Err(Interruption::Failed(error).into_error(Operation::Read, &self.address, None))
            }
        }
    }

    /// Takes a connection out, to read and write it with deadlines. `None` if it is not (any more) here.
    pub fn take(&mut self, token: Token) -> Result<Option<Connection>, Error> {
        let Some(Watched { socket, address, peer, .. }) = self.remove(token.0) else { return Ok(None) };
        match Stream::new(socket) {
            Ok(stream) => Ok(Some(Connection::from_parts(stream, address, peer))),
            Err(source) => Err(Error::Io { operation: Operation::Accept, address, source }),
        }
    }

    /// Watches a connection from now on: one that was taken out, or any other. It is told of by a new token.
    pub fn watch(&mut self, connection: Connection) -> Result<Token, Error> {
        let (stream, address, peer) = connection.into_parts();
        self.add(stream.into_socket(), address, peer)
    }

    /// Closes a connection.
    pub fn close(&mut self, token: Token) {
        self.remove(token.0);
    }

    /// Who is on the other side of a connection.
    pub fn peer(&self, token: Token) -> Option<PeerCredentials> {
        self.connections.get(&token.0).map(|watched| watched.peer)
    }

    /// How many connections are watched.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The address that is listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A handle that ends a pending [`Hub::next`] from another thread.
    pub fn canceller(&self) -> Canceller {
        self.watcher.canceller().clone()
    }

    /// A handle that makes [`Hub::next`] return from another thread.
    pub fn waker(&self) -> HubWaker {
        HubWaker(self.wakes.clone())
    }
}
