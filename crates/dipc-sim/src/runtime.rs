//! A simulated runtime, from its start to its end.

use crate::server::{Behaviour, Server};
use crate::{Builder, Error, Identity};
use dipc_transport::{Address, Listener};
use dipc_wire::Request;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A simulated runtime, listening from its start until it is dropped.
///
/// Dropping it ends all conversations and sessions, waits for its threads, and removes the socket.
#[derive(Debug)]
pub struct Runtime {
    server: Arc<Server>,
    path: PathBuf,
    pid: u32,
    identity: Identity,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Begins to describe a runtime: a .NET 9 with the id of this process, without a recording and without faults.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(
        path: PathBuf,
        pid: u32,
        identity: Identity,
        behaviour: Behaviour,
    ) -> Result<Self, Error> {
        let listener = Listener::bind(&path)?;
        let server = Arc::new(Server::new(behaviour, listener.canceller()));
        let thread = std::thread::Builder::new().name("dipc-sim".into()).spawn({
            let server = Arc::clone(&server);
            let path = path.clone();
            move || server.run(listener, &path)
        });
        match thread {
            Ok(thread) => Ok(Self { server, path, pid, identity, thread: Some(thread) }),
            Err(source) => Err(Error::Thread { path, source }),
        }
    }

    /// The socket.
    pub fn endpoint_path(&self) -> &Path {
        &self.path
    }

    /// Where to connect to.
    pub fn address(&self) -> Address {
        Address::Unix(self.path.clone())
    }

    /// The process id in the socket's name.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the process says it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How many sessions there are now: their streams have not ended, and their clients are still there as far as is known.
    pub fn session_count(&self) -> usize {
        self.server.session_count()
    }

    /// The requests so far in the order of their arrival, those that were refused too; at most the last 1000.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Whether the simulated process has ended, by a fault or by a request that ends real ones of its version.
    pub fn has_died(&self) -> bool {
        self.server.has_died()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.server.shut_down();
        if let Some(thread) = self.thread.take() {
            // A panic of a thread of ours was printed where it happened.
            let _ = thread.join();
        }
        if self.server.has_died() {
            // Nothing else removes what a dead process leaves behind.
            let _ = fs::remove_file(&self.path);
        }
    }
}
