use mio::Interest;

use crate::readiness::{Canceller, Readiness};
use crate::sys;
use crate::{Address, Deadline, Error, Operation, PeerCheck, PeerCredentials};

/// A connection to a diagnostic port, or from a client of one.
///
/// Nothing is buffered: each read gives what the system has. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    stream: sys::Stream,
    readiness: Readiness,
    address: Address,
    peer: PeerCredentials,
}

impl Connection {
    /// Connects to `address` and checks who listens there.
    ///
    /// Where the listener's queue is full the attempt is repeated until the deadline.
    pub fn connect(address: &Address, check: PeerCheck, deadline: Deadline) -> Result<Self, Error> {
        let stream = sys::connect(address, deadline)?;
        let connection = Self::new(stream, address.clone(), Operation::Connect)?;
        check.verify(connection.peer, address)?;
        Ok(connection)
    }

    pub(crate) fn new(
        mut stream: sys::Stream,
        address: Address,
        operation: Operation,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Io { operation, address: address.clone(), source };
        let peer = stream.peer_credentials().map_err(failed)?;
        let readiness =
            Readiness::new(&mut stream, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        Ok(Self { stream, readiness, address, peer })
    }

    /// Reads what is there, waiting until the deadline for at least one byte. 0 is the end of the stream (or an
    /// empty `buffer`).
    pub fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Error> {
        self.readiness
            .retry(deadline, || self.stream.read(buffer))
            .map_err(|interruption| interruption.into_error(Operation::Read, &self.address))
    }

    /// Writes all of `bytes`. After an error it is not known how many of them were written.
    pub fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Error> {
        while !bytes.is_empty() {
            let count = self
                .readiness
                .retry(deadline, || self.stream.write(bytes))
                .map_err(|interruption| interruption.into_error(Operation::Write, &self.address))?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// The address that was connected to, or listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Who is on the other side.
    pub fn peer(&self) -> PeerCredentials {
        self.peer
    }

    /// A handle that ends reads and writes of this connection from another thread.
    pub fn canceller(&self) -> Canceller {
        self.readiness.canceller()
    }

    /// Makes reads and writes possible again after a cancel. Cancellers that were handed out before lose their effect.
    pub fn renew_canceller(&mut self) {
        self.readiness.renew_canceller();
    }
}
