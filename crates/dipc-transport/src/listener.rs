use crate::cancel::Canceller;
use crate::sys;
use crate::{Address, Connection, Deadline, Error, Operation};

/// A listening socket or pipe that only this user can connect to (a socket has mode 0600). Dropping it closes
/// it, and removes a socket's file.
///
/// A TCP port is the exception: any process that reaches it can connect.
///
/// ```
/// use std::time::Duration;
/// use dipc_transport::{Address, Connection, Deadline, Listener, PeerCheck};
///
/// let mut listener = Listener::bind("127.0.0.1:0".parse::<Address>()?)?;
/// println!("start programs with DOTNET_DiagnosticPorts={}", listener.address());
/// # let deadline = Deadline::after(Duration::from_secs(60));
/// # let client = Connection::connect(listener.address(), PeerCheck::Any, deadline)?;
/// let connection = listener.accept(Deadline::after(Duration::from_secs(60)))?;
/// assert_eq!(connection.peer().pid, None, "TCP does not know its peer");
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug)]
pub struct Listener {
    acceptor: sys::Acceptor,
    address: Address,
}

impl Listener {
    /// Listens at an address or path. A socket left there by a dead process is replaced; a live one, or
    /// another kind of file, is [`Error::InUse`]. TCP port 0 is a free port of the system's choice.
    pub fn bind(address: impl Into<Address>) -> Result<Self, Error> {
        let (acceptor, address) = sys::Acceptor::bind(&address.into())?;
        Ok(Self { acceptor, address })
    }

    /// Waits for the next connection. Its [`Connection::peer`] is the client.
    pub fn accept(&mut self, deadline: Deadline) -> Result<Connection, Error> {
        loop {
            let stream = self
                .acceptor
                .accept(deadline)
                .map_err(|interruption| interruption.into_error(Operation::Accept, &self.address, None))?;
            // macOS and Windows do not report credentials of a client that has already disconnected.
            if let Ok(connection) = Connection::new(stream, self.address.clone(), Operation::Accept) {
                return Ok(connection);
            }
        }
    }

    /// Returns the address that is listened on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns a handle that ends a pending [`Listener::accept`] from another thread.
    pub fn canceller(&self) -> Canceller {
        self.acceptor.canceller()
    }
}
