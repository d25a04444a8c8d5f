//! A simulated runtime that has started.

use crate::config::RuntimeConfig;
use crate::error::Error;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::server::{STACK_SIZE, Server};
use crate::state::State;
use crate::{listener, port};
use dipc_transport::{Address, Listener, TcpReach};
use dipc_wire::{Request, SessionId};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A simulated runtime, which runs until it is dropped.
///
/// Dropping it ends all conversations and sessions, waits for its threads, and removes the socket.
///
/// ```
/// use dipc_sim::Runtime;
///
/// # let folder = tempfile::tempdir()?;
/// let runtime = Runtime::builder().suspended().start_in(folder.path())?;
/// // The tool under test attaches to `runtime.endpoint_path()`; afterwards these have its requests.
/// assert!(runtime.state().suspended && runtime.requests().is_empty() && runtime.session_count() == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    server: Arc<Server>,
    address: Address,
    /// The path of the socket, or an address that is not a path.
    path: PathBuf,
    /// True if the runtime has a socket of its own at `path`, rather than connecting to one.
    listens: bool,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    pub(crate) fn listen(path: PathBuf, config: RuntimeConfig, suspended: bool) -> Result<Self, Error> {
        let address = address(&path);
        let listener = Listener::bind(&address)?;
        let server = Arc::new(Server::new(config, suspended));
        if server.config.has(Fault::ForeignOwner) {
            change_owner(&path).map_err(|reason| Error::Owner { path: path.clone(), reason })?;
        }
        if server.config.has(Fault::StaleSocket) {
            server.die();
            listener::close_and_keep_socket(listener, &path);
            return Ok(Self { server, address, path, listens: true, thread: None });
        }
        let run = {
            let (server, path) = (Arc::clone(&server), path.clone());
            move || listener::run(&server, listener, &path)
        };
        let thread = Some(spawn(&path, run)?);
        Ok(Self { server, address, path, listens: true, thread })
    }

    pub(crate) fn connect(address: Address, config: RuntimeConfig, suspended: bool) -> Result<Self, Error> {
        let path = address.path().map_or_else(|| address.to_string().into(), Path::to_owned);
        let server = Arc::new(Server::new(config, suspended));
        if server.config.has(Fault::StaleSocket) {
            server.die();
        }
        let run = {
            let (server, address) = (Arc::clone(&server), address.clone());
            move || port::run(&server, &address)
        };
        let thread = Some(spawn(&path, run)?);
        Ok(Self { server, address, path, listens: false, thread })
    }

    /// Returns the socket: the runtime's own, or that of the port to which it connects (the address itself if
    /// that is TCP).
    pub fn endpoint_path(&self) -> &Path {
        &self.path
    }

    /// Returns the address of that socket.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// Returns the process id in the socket's name.
    pub fn pid(&self) -> u32 {
        self.server.config.pid
    }

    /// Returns the identity of the process.
    pub fn identity(&self) -> &Identity {
        &self.server.config.identity
    }

    /// Returns the state of the process, with the changes by clients: its environment, profilers, dumps and
    /// so on.
    pub fn state(&self) -> State {
        self.server.state().clone()
    }

    /// Returns the open sessions, each with the request that started it. A session closes when its stream
    /// ends, or when its client is found to have left.
    pub fn sessions(&self) -> Vec<(SessionId, Request)> {
        self.server.sessions()
    }

    /// Returns the number of open [`sessions`](Self::sessions).
    pub fn session_count(&self) -> usize {
        self.server.session_count()
    }

    /// Returns the requests in the order of their arrival, including refused requests; at most the last 1000.
    ///
    /// ```
    /// use dipc_sim::{CommandId, Runtime};
    /// use dipc_transport::{Connection, Deadline, PeerCheck};
    /// use std::time::Duration;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let runtime = Runtime::builder().start_in(folder.path())?;
    /// // The tool under test; here ResumeRuntime as bytes.
    /// let deadline = Deadline::after(Duration::from_secs(60));
    /// let mut tool = Connection::connect(&runtime.address(), PeerCheck::Any, deadline)?;
    /// tool.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0", deadline)?;
    /// tool.read(&mut [0; 64], deadline)?;
    /// assert_eq!(runtime.requests()[0].command(), CommandId::RESUME_RUNTIME);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns true if the simulated process has ended, because of a fault or a request that ends real
    /// processes of its version.
    pub fn has_died(&self) -> bool {
        self.server.has_died()
    }
}

/// Returns the address of a runtime's own socket, which on Windows is a named pipe.
fn address(path: &Path) -> Address {
    let pipe = cfg!(windows).then(|| Address::parse(&path.to_string_lossy(), TcpReach::Loopback));
    pipe.and_then(Result::ok).unwrap_or_else(|| Address::Unix(path.to_owned()))
}

fn spawn(path: &Path, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let builder = std::thread::Builder::new().name("dipc-sim".into()).stack_size(STACK_SIZE);
    builder.spawn(run).map_err(|reason| Error::Thread { path: path.to_owned(), reason })
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.server.shut_down();
        if let Some(thread) = self.thread.take() {
            // The thread's panic has printed its message.
            let _ = thread.join();
        }
        if self.listens && self.server.has_died() {
            // The thread has left the socket of the dead process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn change_owner(path: &Path) -> io::Result<()> {
    std::os::unix::fs::chown(path, Some(Fault::FOREIGN_USER), None)
}

/// Fails: a pipe does not have an owner.
#[cfg(not(unix))]
fn change_owner(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
