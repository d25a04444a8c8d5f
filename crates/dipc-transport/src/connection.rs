use std::time::Duration;

use crate::cancel::{Canceller, Interruption};
use crate::sys;
use crate::tcp::Connecting;
use crate::{Address, Deadline, Error, Operation, PeerCheck, PeerCredentials};

/// A connection to a diagnostic port, or from a client of one.
///
/// Nothing is buffered: each read returns the bytes that the system has. Dropping it closes it.
///
/// ```
/// use std::time::Duration;
/// use dipc_transport::{Address, Connection, Deadline, Listener, PeerCheck};
///
/// let mut listener = Listener::bind("127.0.0.1:0".parse::<Address>()?)?;
/// let deadline = Deadline::after(Duration::from_secs(60));
/// let mut client = Connection::connect(listener.address(), PeerCheck::Any, deadline)?;
/// let mut server = listener.accept(deadline)?;
/// client.write_all(b"hello", deadline)?;
/// let mut bytes = [0; 5];
/// assert!(server.read(&mut bytes, deadline)? > 0);
/// assert_eq!(bytes[0], b'h');
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    pub(crate) stream: sys::Stream,
    pub(crate) address: Address,
    peer: PeerCredentials,
}

impl Connection {
    /// Connects to `address` and checks the process that listens there.
    ///
    /// If the listener's queue is full, or all instances of the pipe are busy, the attempt is repeated until
    /// the deadline. With [`PeerCheck::Process`] the socket's file is opened once, and that file is both
    /// checked and connected to: a link, or a file of another user, is refused.
    pub fn connect(address: &Address, check: PeerCheck, deadline: Deadline) -> Result<Self, Error> {
        Connector::new(address.clone(), check).connect(deadline)
    }

    pub(crate) fn new(stream: sys::Stream, address: Address, operation: Operation) -> Result<Self, Error> {
        match stream.peer_credentials() {
            Ok(peer) => Ok(Self { stream, address, peer }),
            Err(reason) => Err(Error::Io { operation, address, reason }),
        }
    }

    pub(crate) fn from_parts(stream: sys::Stream, address: Address, peer: PeerCredentials) -> Self {
        Self { stream, address, peer }
    }

    pub(crate) fn into_parts(self) -> (sys::Stream, Address, PeerCredentials) {
        (self.stream, self.address, self.peer)
    }

    /// Reads the available bytes, waiting until the deadline for at least one. 0 is the end of the stream (or
    /// an empty `buffer`).
    pub fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Error> {
        self.stream
            .read(buffer, deadline)
            .map_err(|interruption| self.interrupted(interruption, Operation::Read))
    }

    /// Reads as [`read`](Self::read) does, but returns `None` at the deadline: for callers that wait again
    /// and again. The state of the peer is not read, since that takes a look at each of its threads.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use dipc_transport::{Address, Connection, Deadline, Listener, PeerCheck};
    ///
    /// # let mut listener = Listener::bind("127.0.0.1:0".parse::<Address>()?)?;
    /// # let later = Deadline::after(Duration::from_secs(60));
    /// # let mut connection = Connection::connect(listener.address(), PeerCheck::Any, later)?;
    /// // Other work between short waits.
    /// let count = connection.poll_read(&mut [0; 512], Deadline::after(Duration::from_millis(10)))?;
    /// assert_eq!(count, None);
    /// # Ok::<(), dipc_transport::Error>(())
    /// ```
    pub fn poll_read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<Option<usize>, Error> {
        match self.stream.read(buffer, deadline) {
            Ok(count) => Ok(Some(count)),
            Err(Interruption::TimedOut(_)) => Ok(None),
            Err(interruption) => Err(self.interrupted(interruption, Operation::Read)),
        }
    }

    /// Returns the time-out error of a read that has waited for `after`. The state of the peer is read now.
    pub fn read_timed_out(&self, after: Duration) -> Error {
        self.interrupted(Interruption::TimedOut(after), Operation::Read)
    }

    /// Writes all of `bytes`. After an error it is not known how many of them were written.
    pub fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Error> {
        while !bytes.is_empty() {
            let count = self
                .stream
                .write(bytes, deadline)
                .map_err(|interruption| self.interrupted(interruption, Operation::Write))?;
            debug_assert!(count <= bytes.len(), "the system wrote more than it was given");
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    pub(crate) fn interrupted(&self, interruption: Interruption, operation: Operation) -> Error {
        interruption.into_error(operation, &self.address, self.peer.pid)
    }

    /// Returns the address that was connected to, or listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the credentials of the peer.
    pub fn peer(&self) -> PeerCredentials {
        self.peer
    }

    /// Returns a handle that ends reads and writes of this connection from another thread.
    pub fn canceller(&self) -> Canceller {
        self.stream.canceller()
    }

    /// Allows reads and writes again after a cancel. Earlier cancellers lose their effect.
    pub fn renew_canceller(&mut self) {
        self.stream.renew_canceller();
    }
}

/// A connection that is made in several steps: [`Connection::connect`] for a caller that has other work in
/// the meantime.
///
/// A TCP connection takes a round trip. The connection attempt continues from one step to the next, so each
/// step may be shorter than that.
///
/// ```no_run
/// use std::time::Duration;
/// use dipc_transport::{Address, Connector, Deadline, PeerCheck};
///
/// let mut connector = Connector::new("127.0.0.1:9000".parse::<Address>()?, PeerCheck::Any);
/// let connection = loop {
///     match connector.connect(Deadline::after(Duration::from_millis(50))) {
///         // Redraw the screen, look at the keyboard, and continue.
///         Err(error) if error.is_timeout() => println!("connecting"),
///         other => break other?,
///     }
/// };
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug)]
pub struct Connector {
    address: Address,
    check: PeerCheck,
    /// The TCP connection that an earlier step began.
    tcp: Option<Connecting>,
}

impl Connector {
    /// Creates an idle connector to `address`.
    pub fn new(address: Address, check: PeerCheck) -> Self {
        Self { address, check, tcp: None }
    }

    /// Connects, or continues to connect, until the deadline.
    ///
    /// # Errors
    /// The errors of [`Connection::connect`]. After a time-out the next call continues; after any other
    /// error, and after a connection, it starts again.
    pub fn connect(&mut self, deadline: Deadline) -> Result<Connection, Error> {
        let stream = match self.address {
            Address::Tcp(tcp) => {
                let mut connecting = match self.tcp.take() {
                    Some(connecting) => connecting,
                    None => Connecting::start(tcp)?,
                };
                if let Err(error) = connecting.wait(deadline) {
                    self.tcp = error.is_timeout().then_some(connecting);
                    return Err(error);
                }
                let (stream, readiness) = connecting.into_parts();
                sys::Stream::tcp(stream, readiness)
            }
            Address::Unix(_) | Address::Pipe(_) => sys::connect(&self.address, self.check, deadline)?,
        };
        let connection = Connection::new(stream, self.address.clone(), Operation::Connect)?;
        self.check.verify(connection.peer, &self.address)?;
        Ok(connection)
    }
}
