use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mio::event::Source;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Type};

use super::platform;
use crate::cancel::{Canceller, Interruption};
use crate::readiness::Readiness;
use crate::{Deadline, PeerCredentials};

/// A non-blocking socket, of the Unix domain or TCP.
#[derive(Debug)]
pub(crate) struct Socket(socket2::Socket);

impl Socket {
    /// Creates a socket that is close-on-exec, and on Apple's systems does not raise SIGPIPE; `socket2` sets
    /// both.
    pub(super) fn new(domain: Domain) -> io::Result<Self> {
        let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
        Self::connected(socket)
    }

    pub(super) fn connected(socket: socket2::Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    pub(super) fn inner(&self) -> &socket2::Socket {
        &self.0
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }

    /// Sends without raising SIGPIPE: a closed peer is an error of this call, not the end of the program.
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send_with_flags(bytes, platform::SEND_FLAGS)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        }
    }

    /// Returns whether bytes can be read (`false`: the peer has closed), without reading them.
    pub(crate) fn has_bytes(&self) -> io::Result<bool> {
        Ok(self.0.peek(&mut [MaybeUninit::uninit()])? > 0)
    }

    /// Returns the credentials of the peer; TCP peers are unknown.
    pub(crate) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        if self.0.local_addr()?.is_unix() {
            return platform::peer_credentials(&self.0);
        }
        Ok(PeerCredentials { pid: None, uid: None, gid: None })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).register(registry, token, interest)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).deregister(registry)
    }
}

/// A socket with its means of waiting.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) socket: Socket,
    pub(super) readiness: Readiness,
}

impl Stream {
    pub(crate) fn new(mut socket: Socket) -> io::Result<Self> {
        let readiness = Readiness::new(&mut socket, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { socket, readiness })
    }

    pub(crate) fn tcp(stream: TcpStream, readiness: Readiness) -> Self {
        Self { socket: Socket(socket2::Socket::from(OwnedFd::from(stream))), readiness }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Interruption> {
        self.readiness.retry(deadline, || self.socket.read(buffer))
    }

    pub(crate) fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<usize, Interruption> {
        self.readiness.retry(deadline, || self.socket.write(bytes))
    }

    pub(crate) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        self.socket.peer_credentials()
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.readiness.canceller()
    }

    pub(crate) fn renew_canceller(&mut self) {
        self.readiness.renew_canceller();
    }

    /// Returns the socket alone, so that another watcher can take it.
    pub(crate) fn into_socket(self) -> Socket {
        // Its own `Poll`, which is closed here, was its only watcher.
        self.socket
    }
}
