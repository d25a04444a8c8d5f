//! TCP connections, the same on every system.

use std::io;

use mio::Interest;
use mio::net::TcpStream;

use crate::cancel::Interruption;
use crate::readiness::Readiness;
use crate::{Address, Deadline, Error, Operation, TcpAddress};

/// A connection attempt in progress.
#[derive(Debug)]
pub(crate) struct Connecting {
    address: Address,
    stream: TcpStream,
    readiness: Readiness,
}

impl Connecting {
    /// Starts to connect, without waiting.
    pub(crate) fn start(tcp: TcpAddress) -> Result<Self, Error> {
        let address = Address::Tcp(tcp);
        let start = || -> io::Result<_> {
            let mut stream = TcpStream::connect(tcp.socket_address())?;
            let readiness = Readiness::new(&mut stream, Interest::READABLE | Interest::WRITABLE)?;
            Ok((stream, readiness))
        };
        match start() {
            Ok((stream, readiness)) => Ok(Self { address, stream, readiness }),
            Err(error) => Err(connect_error(error, &address)),
        }
    }

    /// Waits until it is connected. After a time-out it can be called again.
    pub(crate) fn wait(&mut self, deadline: Deadline) -> Result<(), Error> {
        match self.readiness.retry(deadline, || is_connected(&self.stream)) {
            Ok(()) => Ok(()),
            Err(Interruption::Failed(error)) => Err(connect_error(error, &self.address)),
            Err(interruption) => Err(interruption.into_error(Operation::Connect, &self.address, None)),
        }
    }

    pub(crate) fn into_parts(self) -> (TcpStream, Readiness) {
        (self.stream, self.readiness)
    }
}

fn is_connected(stream: &TcpStream) -> io::Result<()> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        // A command is one small write, followed by a wait for the answer.
        Ok(_) => stream.set_nodelay(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error),
    }
}

fn connect_error(reason: io::Error, address: &Address) -> Error {
    let address = address.clone();
    match reason.kind() {
        io::ErrorKind::ConnectionRefused => Error::NoSocket { address },
        _ => Error::Io { operation: Operation::Connect, address, reason },
    }
}
