//! The port that runtimes connect to.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use dipc_client::{Address, Canceller, Deadline, PortEvent, PortServer};

use super::{MonitorError, Shared};

/// A thread that passes on the runtimes at a port, until this is dropped.
pub(super) struct Port {
    address: Address,
    canceller: Canceller,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    pub(super) fn open(address: Address, shared: &Arc<Shared>) -> Result<Self, MonitorError> {
        let server = PortServer::bind(address)?;
        let (address, canceller) = (server.address().clone(), server.canceller());
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("port".to_owned()).spawn(move || serve(&server, &shared))?;
        Ok(Self { address, canceller, thread: Some(thread) })
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }
}

fn serve(server: &PortServer, shared: &Shared) {
    loop {
        match server.next(Deadline::never()) {
            Ok(PortEvent::Connected(runtime)) => shared.connected(&runtime),
            Ok(PortEvent::Exited(runtime)) => shared.exited(&runtime),
            // A connection that was not accepted concerns no runtime of the table.
            Ok(_) => {}
            Err(error) if error.is_deadline() => {}
            Err(_) => return,
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.canceller.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was already printed.
            let _ = thread.join();
        }
    }
}
