use std::sync::Arc;

use dipc_transport::{Address, Connection, Connector, Deadline, PeerCheck};

use crate::Error;
use crate::link::{PortLease, PortLink};

/// The route to a runtime.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// A connection to it, if the expected process listens.
    Connect(PeerCheck),
    /// The runtime's own connections to a port of this process.
    Port(Arc<PortLink>),
}

/// A connection to a runtime, for one command.
#[derive(Debug)]
pub(crate) struct RouteConnection {
    // Closed before the lease ends.
    pub(crate) connection: Connection,
    /// For a connection from a port: shows the port that it is in use, while it is open.
    pub(crate) lease: Option<PortLease>,
}

impl Route {
    /// Connects to the runtime at `address`, or waits for a connection from it.
    pub(crate) fn connect(&self, address: &Address, deadline: Deadline) -> Result<RouteConnection, Error> {
        let (connection, lease) = match self {
            Self::Connect(peer) => (Connection::connect(address, *peer, deadline)?, None),
            Self::Port(link) => {
                let (connection, lease) = link.connect(deadline)?;
                (connection, Some(lease))
            }
        };
        Ok(RouteConnection { connection, lease })
    }

    /// Returns a connector for several steps; `None` for a runtime at a port, which connects itself.
    pub(crate) fn connector(&self, address: &Address) -> Option<Connector> {
        match self {
            Self::Connect(peer) => Some(Connector::new(address.clone(), *peer)),
            Self::Port(_) => None,
        }
    }
}
