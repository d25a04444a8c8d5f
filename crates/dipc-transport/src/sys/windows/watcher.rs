//! A watcher of many pipes in one thread.
//!
//! Windows waits for 64 objects at once, and a completion port keeps a pipe for ever, so that it could not be
//! handed out as a connection. Polling each pipe avoids both limits: it takes some microseconds.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::windows::io::OwnedSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Interest;
use mio::net::TcpStream;

use super::acceptor::Acceptor;
use super::event::Event;
use super::pipe::Pipe;
use super::stream::Stream;
use crate::cancel::{Canceller, Interruption};
use crate::readiness::Readiness;
use crate::{Address, Deadline, Error, PeerCredentials};

/// The pause between two polls.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection without its means of waiting.
#[derive(Debug)]
pub(crate) enum Socket {
    Pipe(Pipe),
    Tcp(TcpStream),
}

impl Socket {
    /// Returns whether bytes can be read (`false`: the peer has closed), without reading them.
    pub(crate) fn has_bytes(&self) -> io::Result<bool> {
        match self {
            Self::Pipe(pipe) => pipe.has_bytes(),
            Self::Tcp(stream) => Ok(stream.peek(&mut [0])? > 0),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer, Deadline::at(Instant::now())).map_err(at_once),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        match self {
            Self::Pipe(pipe) => pipe.peer_credentials(),
            Self::Tcp(_) => Ok(PeerCredentials { pid: None, uid: None, gid: None }),
        }
    }
}

/// Converts the interruption of an operation that must not wait.
fn at_once(interruption: Interruption) -> io::Error {
    match interruption {
        Interruption::Failed(error) => error,
        Interruption::TimedOut(_) | Interruption::Cancelled => io::ErrorKind::WouldBlock.into(),
    }
}

impl Stream {
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Pipe(pipe) => Self::Pipe(pipe),
            Socket::Tcp(mut stream) => {
                let readiness = Readiness::new(&mut stream, Interest::READABLE | Interest::WRITABLE)?;
                Self::Tcp { stream, readiness }
            }
        })
    }

    pub(crate) fn into_socket(self) -> Socket {
        match self {
            Self::Pipe(mut pipe) => {
                pipe.renew_canceller();
                Socket::Pipe(pipe)
            }
            // Through the standard library's type: mio's remembers the `Poll` that watched it.
            Self::Tcp { stream, .. } => {
                let stream = std::net::TcpStream::from(OwnedSocket::from(stream));
                Socket::Tcp(TcpStream::from_std(stream))
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct ListeningSocket(Acceptor);

impl ListeningSocket {
    pub(crate) fn bind(address: &Address) -> Result<(Self, Address), Error> {
        let (acceptor, address) = Acceptor::bind(address)?;
        Ok((Self(acceptor), address))
    }

    pub(crate) fn accept(&mut self) -> io::Result<Socket> {
        self.0.accept(Deadline::at(Instant::now())).map(Stream::into_socket).map_err(at_once)
    }

    pub(crate) fn source(&mut self) -> &mut Self {
        self
    }
}

/// A poll of many sockets for bytes to read: all of them, several times a second.
#[derive(Debug)]
pub(crate) struct Watcher {
    tokens: BTreeSet<usize>,
    cancel: Arc<Event>,
    canceller: Canceller,
}

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let cancel = Arc::new(Event::auto_reset()?);
        Ok(Self { tokens: BTreeSet::new(), canceller: Canceller::new(cancel.clone()), cancel })
    }

    pub(crate) fn add<S>(&mut self, token: usize, _socket: &mut S) -> io::Result<()> {
        self.tokens.insert(token);
        Ok(())
    }

    pub(crate) fn remove(&mut self, token: usize, _socket: &mut Socket) {
        self.tokens.remove(&token);
    }

    pub(crate) fn wait(&mut self, deadline: Deadline, ready: &mut Vec<usize>) -> io::Result<()> {
        self.cancel.wait(deadline.min(Deadline::after(PAUSE)))?;
        ready.extend(&self.tokens);
        Ok(())
    }

    pub(crate) fn canceller(&self) -> &Canceller {
        &self.canceller
    }
}
