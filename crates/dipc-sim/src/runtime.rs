//! A simulated runtime, from its start to its end.

use crate::fault::Fault;
use crate::port;
use crate::server::{Behaviour, STACK_SIZE, Server, drop_but_leave_file};
use crate::{Builder, Error, Identity, State};
use dipc_transport::{Address, Listener};
use dipc_wire::{Request, SessionId};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A simulated runtime, reachable from its start until it is dropped.
///
/// Dropping it ends all conversations and sessions, waits for its threads, and removes the socket.
#[derive(Debug)]
pub struct Runtime {
    server: Arc<Server>,
    path: PathBuf,
    /// Whether the socket is this runtime's own.
    listens: bool,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Begins to describe a runtime: a .NET 9 with the id of this process, without a recording and without faults.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn listen(path: PathBuf, behaviour: Behaviour, suspended: bool) -> Result<Self, Error> {
        let listener = Listener::bind(&path)?;
        let server = Arc::new(Server::new(behaviour, suspended));
        if server.behaviour.has(Fault::ForeignOwner) {
            give_away(&path).map_err(|source| Error::Owner { path: path.clone(), source })?;
        }
        if server.behaviour.has(Fault::StaleSocket) {
            server.die();
            drop_but_leave_file(listener, &path);
            return Ok(Self { server, path, listens: true, thread: None });
        }
        let run = {
            let (server, path) = (Arc::clone(&server), path.clone());
            move || server.listen(listener, &path)
        };
        let thread = Some(spawn(&path, run)?);
        Ok(Self { server, path, listens: true, thread })
    }

    pub(crate) fn connect(address: Address, behaviour: Behaviour, suspended: bool) -> Result<Self, Error> {
        let path = address.path().map(Path::to_owned).unwrap_or_default();
        let server = Arc::new(Server::new(behaviour, suspended));
        if server.behaviour.has(Fault::StaleSocket) {
            server.die();
        }
        let run = {
            let server = Arc::clone(&server);
            move || port::run(&server, &address)
        };
        let thread = Some(spawn(&path, run)?);
        Ok(Self { server, path, listens: false, thread })
    }

    /// The socket: this runtime's own, or that of the port to which it connects.
    pub fn endpoint_path(&self) -> &Path {
        &self.path
    }

    /// Where to connect to, or where the runtime does.
    pub fn address(&self) -> Address {
        Address::Unix(self.path.clone())
    }

    /// The process id in the socket's name.
    pub fn pid(&self) -> u32 {
        self.server.behaviour.pid
    }

    /// What the process says it is.
    pub fn identity(&self) -> &Identity {
        &self.server.behaviour.identity
    }

    /// What clients have done to the process so far: its environment, profilers, dumps and so on.
    pub fn state(&self) -> State {
        self.server.state().clone()
    }

    /// The sessions that there are now, each with the request that started it: their streams have not ended, and their clients are still
    /// there as far as is known.
    pub fn sessions(&self) -> Vec<(SessionId, Request)> {
        self.server.sessions()
    }

    /// How many [`sessions`](Self::sessions) there are now.
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

fn spawn(path: &Path, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let builder = std::thread::Builder::new().name("dipc-sim".into()).stack_size(STACK_SIZE);
    builder.spawn(run).map_err(|source| Error::Thread { path: path.to_owned(), source })
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.server.shut_down();
        if let Some(thread) = self.thread.take() {
            // A panic of a thread of ours was printed where it happened.
            let _ = thread.join();
        }
        if self.listens && self.server.has_died() {
            // Nothing else removes what a dead process leaves behind.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn give_away(path: &Path) -> io::Result<()> {
    std::os::unix::fs::chown(path, Some(Fault::FOREIGN_USER), None)
}

/// A pipe has no owner.
#[cfg(not(unix))]
fn give_away(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
