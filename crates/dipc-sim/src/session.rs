//! A session: a stream that goes on until it is stopped.

use crate::server::Server;
use dipc_wire::SessionId;

/// A session that is known to the server until this is dropped, however its stream ends.
#[derive(Debug)]
pub(crate) struct Session<'s> {
    server: &'s Server,
    id: SessionId,
}

impl<'s> Session<'s> {
    pub(crate) const fn new(server: &'s Server, id: SessionId) -> Self {
        Self { server, id }
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.id
    }

    /// Whether a StopTracing has come.
    pub(crate) fn is_stopped(&self) -> bool {
        self.server.is_stopped(self.id)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.server.close_session(self.id);
    }
}
