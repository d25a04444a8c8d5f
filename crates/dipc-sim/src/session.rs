//! An open session.

use crate::server::Server;
use dipc_wire::{Request, SessionId};
use std::time::Duration;

/// A session that is registered with the server until this is dropped.
#[derive(Debug)]
pub(crate) struct Session<'s> {
    server: &'s Server,
    id: SessionId,
}

impl<'s> Session<'s> {
    /// The interval at which a stream without bytes to send checks whether the session was stopped.
    pub(crate) const STOP_POLL: Duration = Duration::from_millis(10);

    /// Opens a session; `None` if the runtime has as many as it can.
    pub(crate) fn open(server: &'s Server, request: &Request) -> Option<Self> {
        server.add_session(request).map(|id| Self { server, id })
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns true if a StopTracing has arrived.
    pub(crate) fn is_stopped(&self) -> bool {
        self.server.is_stopped(self.id)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.server.remove_session(self.id);
    }
}
