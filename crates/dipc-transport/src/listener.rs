use std::path::Path;

use mio::Interest;

use crate::readiness::{Canceller, Readiness};
use crate::sys;
use crate::{Address, Connection, Deadline, Error, Operation};

/// A listening socket that only this user can connect to (mode 0600). Dropping it closes it and removes its file.
#[derive(Debug)]
pub struct Listener {
    acceptor: sys::Acceptor,
    readiness: Readiness,
    address: Address,
}

impl Listener {
    /// Listens at `path`. A socket that a dead process left there is replaced; a living one, or another kind of
    /// file, is [`Error::InUse`].
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let mut acceptor = sys::Acceptor::bind(path)?;
        let address = Address::Unix(path.to_path_buf());
        let readiness = Readiness::new(&mut acceptor, Interest::READABLE).map_err(|source| Error::Io {
            operation: Operation::Listen,
            address: address.clone(),
            source,
        })?;
        Ok(Self { acceptor, readiness, address })
    }

    /// Waits for the next connection. Its [`Connection::peer`] is the client.
    pub fn accept(&mut self, deadline: Deadline) -> Result<Connection, Error> {
        let stream = self
            .readiness
            .retry(deadline, || self.acceptor.accept())
            .map_err(|interruption| interruption.into_error(Operation::Accept, &self.address))?;
        Connection::new(stream, self.address.clone(), Operation::Accept)
    }

    /// The address that is listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A handle that ends a pending [`Listener::accept`] from another thread.
    pub fn canceller(&self) -> Canceller {
        self.readiness.canceller()
    }
}
