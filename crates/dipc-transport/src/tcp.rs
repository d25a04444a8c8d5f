//! TCP connections, the same on every system.

use std::io;

use mio::Interest;
use mio::net::TcpStream;

use crate::cancel::Interruption;
use crate::readiness::Readiness;
use crate::{Address, Deadline, Error, Operation, TcpAddress};

/// Connects, waiting until the deadline.
pub(crate) fn connect(tcp: TcpAddress, deadline: Deadline) -> Result<(TcpStream, Readiness), Error> {
    let address = Address::Tcp(tcp);
    let start = || -> io::Result<_> {
        let mut stream = TcpStream::connect(tcp.socket_address())?;
        let readiness = Readiness::new(&mut stream, Interest::READABLE | Interest::WRITABLE)?;
        Ok((stream, readiness))
    };
    let (stream, mut readiness) = start().map_err(|error| connect_error(error, &address))?;
    let connected = readiness.retry(deadline, || is_connected(&stream));
    match connected {
        Ok(()) => Ok((stream, readiness)),
        Err(Interruption::Failed(error)) => Err(connect_error(error, &address)),
        Err(interruption) => Err(interruption.into_error(Operation::Connect, &address, None)),
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
