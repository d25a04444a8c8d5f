//! The builder of simulated runtimes.

use crate::config::{CountedFault, RuntimeConfig};
use crate::error::Error;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::runtime::Runtime;
use crate::scoped_fault::ScopedFault;
use crate::speed::Speed;
use crate::stream::{Recording, StreamConfig, StreamOptions};
use crate::version::Version;
use dipc_transport::{Address, SocketName, TcpReach};
use dipc_wire::{CommandId, PortConfig};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// A builder of a [`Runtime`], made by [`Runtime::builder`].
///
/// ```
/// use dipc_sim::{Runtime, Speed, Version};
///
/// # let folder = tempfile::tempdir()?;
/// let runtime = Runtime::builder()
///     .version(Version::NET8)
///     .pid(4711)
///     .key(98765)
///     .rate(1000)
///     .speed(Speed::Max)
///     .start_in(folder.path())?;
/// assert_eq!((runtime.pid(), runtime.identity().clr_version.as_str()), (4711, Version::NET8.clr_version()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    version: Version,
    pid: u32,
    key: Option<u64>,
    cookie: Option<Uuid>,
    identity: Option<Identity>,
    suspended: bool,
    stream: StreamOptions,
    user_events: bool,
    serial: bool,
    faults: Vec<ScopedFault>,
}

impl Runtime {
    /// Creates a builder of a .NET 9 with the id of this process, without a recording and without faults.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            version: Version::NET9,
            pid: std::process::id(),
            key: None,
            cookie: None,
            identity: None,
            suspended: false,
            stream: StreamOptions::default(),
            user_events: false,
            serial: false,
            faults: Vec::new(),
        }
    }

    /// Sets the version of .NET. Default: [`Version::NET9`].
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Sets the process id, in the socket's name and in the replies. Default: the id of this process, which
    /// tools that check the peer accept.
    pub fn pid(mut self, pid: u32) -> Self {
        self.pid = pid;
        self
    }

    /// Sets the number in the socket's name that distinguishes processes with the same id. Default: the start
    /// time of the process.
    pub fn key(mut self, key: u64) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the runtime cookie. Default: a new one.
    pub fn cookie(mut self, cookie: Uuid) -> Self {
        self.cookie = Some(cookie);
        self
    }

    /// Sets the identity. Default: [`Identity::new`]. It takes precedence over [`pid`](Self::pid) and
    /// [`cookie`](Self::cookie) in replies.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Suspends the runtime at its start until ResumeRuntime arrives; until then replies contain only the
    /// identity known so far. [`connect`](Self::connect) takes this from [`PortConfig::suspend`] instead.
    pub fn suspended(mut self) -> Self {
        self.suspended = true;
        self
    }

    /// Sets the recording that is the stream of each session: the bytes of a `.nettrace` or `.netperf` file.
    /// The bytes are sent unchanged, with any providers of the session; the rundown at the end of a
    /// recording, and its end mark, are sent when the session is stopped. Default: an empty stream.
    pub fn replay(mut self, recording: impl Into<Arc<[u8]>>) -> Self {
        self.stream.recording = Arc::new(Recording::new(recording.into()));
        self
    }

    /// Plays the recording in a loop until the session is stopped. The stream is one recording: times and
    /// sequence numbers continue across rounds, and references stay valid. Only for complete recordings of
    /// nettrace V4 and V5, the versions that runtimes write.
    ///
    /// ```
    /// use dipc_sim::Runtime;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// // Only complete recordings are played in a loop.
    /// let cut = Runtime::builder().replay(b"Nettrace".to_vec()).looped().start_in(folder.path());
    /// assert!(cut.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn looped(mut self) -> Self {
        self.stream.looped = true;
        self
    }

    /// Sends synthetic events at this rate in each session, instead of a recording: ticks of the provider
    /// `Dipc-Simulated`, samples of `Microsoft-DotNETCore-SampleProfiler`, or both in turn, whichever the
    /// session enables. Events are lost if the client reads too slowly; sequence numbers show how many.
    pub fn rate(mut self, events_per_second: u64) -> Self {
        self.stream.rate = Some(events_per_second);
        self
    }

    /// Simulates a kernel with user_events: user_events sessions of CollectTracing5 and 6 write an event of
    /// each provider to the file descriptor that the client passes, of any kind of file. Default: such
    /// sessions are refused, as on most kernels.
    pub fn user_events(mut self) -> Self {
        self.user_events = true;
        self
    }

    /// Serves one command after the other, as a real runtime does: no other client is served until a command
    /// is answered, and the runtime does not connect to its port again before. Streams of sessions continue
    /// in parallel. Default: each client has a thread.
    pub fn serial(mut self) -> Self {
        self.serial = true;
        self
    }

    /// Sets the speed at which the recording is sent. Default: [`Speed::Max`].
    pub fn speed(mut self, speed: Speed) -> Self {
        self.stream.speed = speed;
        self
    }

    /// Ends each session's stream with the recording, as when the process exits. Default: the stream ends
    /// when the session is stopped.
    pub fn end_with_recording(mut self) -> Self {
        self.stream.ends_with_recording = true;
        self
    }

    /// Adds a fault that applies to every command.
    pub fn fault(self, fault: Fault) -> Self {
        self.scoped_fault(fault)
    }

    /// Adds a fault that applies to one command.
    ///
    /// ```
    /// use dipc_sim::{CommandId, Fault, Runtime};
    /// use std::time::Duration;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let late = Fault::AnswerLate(Duration::from_millis(200));
    /// let runtime = Runtime::builder()
    ///     .fault_on(CommandId::PROCESS_INFO_2, late)
    ///     .fault_on(CommandId::STOP_TRACING, Fault::NeverStop)
    ///     .start_in(folder.path())?;
    /// assert!(!runtime.has_died());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fault_on(self, command: CommandId, fault: Fault) -> Self {
        self.scoped_fault(ScopedFault::new(fault).on(command))
    }

    /// Adds a fault that applies to some requests, such as the second one.
    pub fn scoped_fault(mut self, fault: impl Into<ScopedFault>) -> Self {
        self.faults.push(fault.into());
        self
    }

    /// Starts a runtime that listens on the socket `dotnet-diagnostic-{pid}-{key}-socket` in `directory`,
    /// with access for this user only; on Windows on the pipe `dotnet-diagnostic-{pid}`, which is not in a
    /// directory.
    pub fn start_in(self, directory: &Path) -> Result<Runtime, Error> {
        let key = match self.key {
            Some(key) => key,
            None => dipc_transport::start_key(self.pid)?,
        };
        let path = if cfg!(windows) {
            format!(r"\\.\pipe\dotnet-diagnostic-{}", self.pid).into()
        } else {
            directory.join(SocketName::new(self.pid, key).to_string())
        };
        let suspended = self.suspended;
        Runtime::listen(path, self.config()?, suspended)
    }

    /// Starts a runtime that connects to a port, advertises itself, and connects again after each command and
    /// after each failure. The port may be opened later. An address such as `127.0.0.1:9000` is TCP, which
    /// real runtimes have on phones only.
    ///
    /// ```
    /// use dipc_sim::Runtime;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// // The tool under test listens there, now or later.
    /// let port = folder.path().join("port").display().to_string();
    /// let runtime = Runtime::builder().connect(&format!("{port},suspend").parse()?)?;
    /// assert!(runtime.state().suspended);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(self, port: &PortConfig) -> Result<Runtime, Error> {
        let address = Address::parse(port.address(), TcpReach::Loopback)?;
        Runtime::connect(address, self.config()?, port.suspend)
    }

    fn config(self) -> Result<RuntimeConfig, Error> {
        let identity = self.identity.unwrap_or_else(|| {
            let mut identity = Identity::new(self.pid, self.version);
            identity.runtime_cookie = self.cookie.unwrap_or(identity.runtime_cookie);
            identity
        });
        identity.check()?;
        let stream = StreamConfig::new(self.stream, identity.process_id)?;
        let Self { version, pid, user_events, serial, .. } = self;
        let faults = self.faults.into_iter().map(CountedFault::new).collect();
        Ok(RuntimeConfig { version, pid, identity, stream, user_events, serial, faults })
    }
}
