//! What a simulated runtime is to be like.

use crate::fault::Fault;
use crate::server::Behaviour;
use crate::stream::{Material, Recording};
use crate::{Error, Identity, Runtime, Speed, Version};
use dipc_transport::{Address, SocketName};
use dipc_wire::{CommandId, PortConfig};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// Collects what a [`Runtime`] is to be like; made by [`Runtime::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    version: Version,
    pid: u32,
    key: Option<u64>,
    cookie: Option<Uuid>,
    identity: Option<Identity>,
    suspended: bool,
    recording: Arc<Recording>,
    speed: Speed,
    ends_with_recording: bool,
    loops: bool,
    rate: Option<u64>,
    user_events: bool,
    faults: Vec<(Option<CommandId>, Fault)>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            version: Version::NET9,
            pid: std::process::id(),
            key: None,
            cookie: None,
            identity: None,
            suspended: false,
            recording: Arc::default(),
            speed: Speed::Max,
            ends_with_recording: false,
            loops: false,
            rate: None,
            user_events: false,
            faults: Vec::new(),
        }
    }

    /// Which version of .NET to simulate; [`Version::NET9`] if nothing is said.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// The process id, in the socket's name and in the replies; that of this process if nothing is said, so that tools
    /// which check the peer find a real process behind the name.
    pub fn pid(mut self, pid: u32) -> Self {
        self.pid = pid;
        self
    }

    /// The number in the socket's name that tells processes with the same id apart; the start time of the process if nothing
    /// is said.
    pub fn key(mut self, key: u64) -> Self {
        self.key = Some(key);
        self
    }

    /// The runtime cookie; a new one if nothing is said.
    pub fn cookie(mut self, cookie: Uuid) -> Self {
        self.cookie = Some(cookie);
        self
    }

    /// What the process says it is, instead of [`Identity::new`]. [`pid`](Self::pid) and [`cookie`](Self::cookie) do not
    /// change it.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Waits at the start until a ResumeRuntime comes, and says of itself only what is known by then. On a port that is connected to,
    /// [`PortConfig::suspend`] tells instead.
    pub fn suspended(mut self) -> Self {
        self.suspended = true;
        self
    }

    /// The recording that each session's stream consists of: the bytes of a `.nettrace` or `.netperf` file. They are sent as
    /// they are, whatever the session asks for; the rundown with which a recording ends, and the mark of its end, come when the
    /// session is stopped. Without a recording a session's stream is empty.
    pub fn replay(mut self, recording: impl Into<Arc<[u8]>>) -> Self {
        self.recording = Arc::new(Recording::new(recording.into()));
        self
    }

    /// Plays the recording over and over in each session, until it is stopped: the result is one recording, in which time, the threads' counts
    /// of events and all they refer to go on. Only for whole recordings of nettrace V4 and V5, which is what runtimes write.
    pub fn looped(mut self) -> Self {
        self.loops = true;
        self
    }

    /// Makes up so many events a second in each session, instead of a recording: ticks of the provider `Dipc-Simulated`, samples of
    /// `Microsoft-DotNETCore-SampleProfiler`, or both in turn, as the session asks for the one, the other or both. If the client
    /// does not read so fast, some are lost, as the events' sequence numbers tell.
    pub fn rate(mut self, events_per_second: u64) -> Self {
        self.rate = Some(events_per_second);
        self
    }

    /// Simulates a kernel with user_events: sessions of CollectTracing5 and 6 that ask for them write an event of each provider
    /// to the file whose descriptor they are handed, whatever that is. Without this they are refused, as on most kernels.
    pub fn user_events(mut self) -> Self {
        self.user_events = true;
        self
    }

    /// How fast the recording is sent; [`Speed::Max`] if nothing is said.
    pub fn speed(mut self, speed: Speed) -> Self {
        self.speed = speed;
        self
    }

    /// Ends each session's stream with the recording, as when the process exits, instead of keeping it open until the
    /// session is stopped.
    pub fn end_with_recording(mut self) -> Self {
        self.ends_with_recording = true;
        self
    }

    /// Makes the runtime misbehave, whatever the command. Several faults add up.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push((None, fault));
        self
    }

    /// Makes the runtime misbehave on one command only.
    pub fn fault_on(mut self, command: CommandId, fault: Fault) -> Self {
        self.faults.push((Some(command), fault));
        self
    }

    /// Starts the runtime: its socket is `dotnet-diagnostic-{pid}-{key}-socket` in `directory`, for this user only.
    pub fn start_in(self, directory: &Path) -> Result<Runtime, Error> {
        let key = match self.key {
            Some(key) => key,
            None => dipc_transport::start_key(self.pid)?,
        };
        let name = SocketName { pid: self.pid, key };
        let suspended = self.suspended;
        Runtime::listen(directory.join(name.to_string()), self.behaviour()?, suspended)
    }

    /// Starts the runtime: it connects to a port that somebody else listens on, says who it is, and connects again after each command and whenever
    /// that fails. Nobody need listen yet.
    pub fn connect(self, port: &PortConfig) -> Result<Runtime, Error> {
        let address = Address::Unix(port.address().into());
        Runtime::connect(address, self.behaviour()?, port.suspend)
    }

    fn behaviour(self) -> Result<Behaviour, Error> {
        let identity = self.identity.unwrap_or_else(|| {
            let mut identity = Identity::new(self.pid, self.version);
            identity.runtime_cookie = self.cookie.unwrap_or(identity.runtime_cookie);
            identity
        });
        identity.check()?;
        let material = Material::new(
            self.recording,
            self.speed,
            self.ends_with_recording,
            self.loops,
            self.rate,
            identity.process_id,
        )?;
        let Self { version, pid, user_events, faults, .. } = self;
        Ok(Behaviour { version, pid, identity, material, user_events, faults })
    }
}
