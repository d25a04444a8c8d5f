//! A diagnostic port of this process, to which runtimes connect.

mod private;
mod server;
mod state;

use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use dipc_transport::{Address, Canceller, Deadline, Hub, HubWaker};
use tempfile::TempDir;
use uuid::Uuid;

use self::server::Server;
use self::state::Shared;
use crate::link::PortLink;
use crate::{Error, PortError, Target};

/// A diagnostic port that any number of runtimes connect to: those with `DOTNET_DiagnosticPorts=ADDRESS` in
/// their environment.
///
/// A cookie identifies each runtime; only its own process can use the cookie if the system identifies the
/// peer (not for a TCP address). Each runtime connects again after every command. One thread serves them all;
/// an idle runtime costs a descriptor and a few hundred bytes. Idle connections take three quarters of the
/// open files that the process may have, one process half of that, and 65,536 at most. Dropping the server
/// releases them: suspended runtimes wait for the next server.
///
/// ```
/// use std::time::Duration;
/// use dipc_client::{Deadline, PortEvent, PortServer};
///
/// let port = PortServer::private()?;
/// // Programs with DOTNET_DiagnosticPorts={port.address()} connect; this one is simulated.
/// # let config = dipc_client::dipc_wire::PortConfig::new(port.address().to_string())?;
/// # let simulated = dipc_sim::Runtime::builder().suspended().connect(&config)?;
/// match port.next(Deadline::after(Duration::from_secs(60)))? {
///     PortEvent::Connected(runtime) => runtime.target().resume()?,
///     PortEvent::Exited(runtime) => println!("{:?} has exited", runtime.pid()),
///     other => println!("{other:?}"),
/// }
/// assert_eq!(port.runtimes().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PortServer {
    shared: Arc<Shared>,
    address: Address,
    waker: HubWaker,
    canceller: Canceller,
    thread: Option<JoinHandle<()>>,
    /// Removed when the server is dropped.
    _folder: Option<TempDir>,
}

/// An event at a port.
#[derive(Debug)]
#[non_exhaustive]
pub enum PortEvent {
    /// A runtime has connected for the first time. Unless its port was configured with `nosuspend`, it waits
    /// for [`Target::resume`].
    Connected(PortRuntime),
    /// A runtime has ended.
    Exited(PortRuntime),
    /// A connection was not accepted: too many open files, or the peer was not a runtime.
    Error(Error),
}

/// A runtime that has connected to a [`PortServer`].
#[derive(Clone)]
pub struct PortRuntime {
    link: Arc<PortLink>,
}

impl PortServer {
    /// Listens at `address`, and raises the limit on open files as far as the system allows.
    ///
    /// # Errors
    /// If another process listens there, or permission is missing.
    pub fn bind(address: impl Into<Address>) -> Result<Self, Error> {
        // Without it there is space for fewer runtimes, and `PortError::Full` is reported earlier.
        let _ = dipc_transport::raise_descriptor_limit();
        Self::start(address.into(), None)
    }

    /// Listens in a new folder of this user, for the programs that [`configure`](Self::configure) directs
    /// there. The limit on open files is unchanged.
    pub fn private() -> Result<Self, Error> {
        let (address, folder) = private::address()?;
        Self::start(address, folder)
    }

    /// Sets the environment of a program before it is started, so that it and its children connect to this
    /// port and wait there to be resumed. Ports that are already in its environment stay. Its limit on open
    /// files is the limit from before [`bind`](Self::bind).
    ///
    /// ```
    /// use std::process::Command;
    /// use dipc_client::PortServer;
    ///
    /// let port = PortServer::private()?;
    /// let mut program = Command::new("./app");
    /// port.configure(&mut program);
    /// assert!(program.get_envs().any(|(name, _)| name == "DOTNET_DiagnosticPorts"));
    /// # Ok::<(), dipc_client::Error>(())
    /// ```
    pub fn configure(&self, command: &mut Command) {
        private::configure(&self.address, command);
        dipc_transport::restore_descriptor_limit(command);
    }

    fn start(address: Address, folder: Option<TempDir>) -> Result<Self, Error> {
        let hub = Hub::bind(address)?;
        let (address, waker) = (hub.address().clone(), hub.waker());
        let shared = Arc::new(Shared::default());
        let server = Server::new(hub, Arc::clone(&shared));
        let thread = thread::Builder::new().name("diagnostic port".into()).spawn(move || server.run());
        let thread = thread.map_err(|error| PortError::Thread { address: address.clone(), error })?;
        let waiting = Arc::clone(&shared);
        let canceller = Canceller::waking(move || waiting.wake());
        Ok(Self { shared, address, waker, canceller, thread: Some(thread), _folder: folder })
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// A time-out ([`Error::is_deadline`]) if nothing happens until the deadline; [`PortError::Cancelled`].
    pub fn next(&self, deadline: Deadline) -> Result<PortEvent, Error> {
        Ok(self.shared.next_event(deadline, &self.canceller, &self.address)?)
    }

    /// Returns a handle that ends a pending [`next`](Self::next), and every later one, from another thread.
    /// Runtimes continue to connect, and commands to them are not affected.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// The current runtimes.
    pub fn runtimes(&self) -> Vec<PortRuntime> {
        self.shared.links().into_iter().map(|link| PortRuntime { link }).collect()
    }

    /// Returns the address of the port.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for PortServer {
    fn drop(&mut self) {
        self.shared.close();
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has already been printed.
            let _ = thread.join();
        }
    }
}

impl PortRuntime {
    /// Returns the cookie of this run of the runtime; the same as in [`ProcessInfo`](crate::ProcessInfo).
    pub fn cookie(&self) -> Uuid {
        self.link.cookie
    }

    /// The process id as the process itself sees it: inside a container it differs from the pid outside.
    pub fn namespace_pid(&self) -> u64 {
        self.link.namespace_pid
    }

    /// The process id as seen from here, if the system identifies the peer.
    pub fn pid(&self) -> Option<u32> {
        self.link.pid
    }

    /// Returns the number of connections since the first one.
    pub fn reconnects(&self) -> u64 {
        self.link.reconnects()
    }

    /// Returns true if it has exited.
    pub fn has_exited(&self) -> bool {
        self.link.has_exited()
    }

    /// The runtime as a target of commands. A command waits for the runtime's next connection, up to
    /// [`Timeouts::connect`](crate::Timeouts).
    pub fn target(&self) -> Target {
        Target::from_port(&self.link)
    }
}

impl fmt::Debug for PortRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortRuntime")
            .field("cookie", &self.cookie())
            .field("pid", &self.pid())
            .field("reconnects", &self.reconnects())
            .finish_non_exhaustive()
    }
}
