//! What a simulated runtime is to be like.

use crate::fault::Fault;
use crate::identity::FixedReplies;
use crate::server::Behaviour;
use crate::{Error, Identity, Runtime, Speed, Version};
use dipc_transport::SocketName;
use dipc_wire::CommandId;
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
    recording: Arc<[u8]>,
    speed: Speed,
    ends_with_recording: bool,
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
            recording: Arc::default(),
            speed: Speed::Max,
            ends_with_recording: false,
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

    /// The recording that each session's stream consists of: the bytes of a `.nettrace` or `.netperf` file. They are sent as
    /// they are, whatever the session asks for. Without one a session's stream is empty.
    pub fn replay(mut self, recording: impl Into<Arc<[u8]>>) -> Self {
        self.recording = recording.into();
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
        let identity = self.identity.unwrap_or_else(|| {
            let mut identity = Identity::new(self.pid, self.version);
            identity.runtime_cookie = self.cookie.unwrap_or(identity.runtime_cookie);
            identity
        });
        let behaviour = Behaviour {
            version: self.version,
            replies: FixedReplies::new(&identity)?,
            recording: self.recording,
            speed: self.speed,
            ends_with_recording: self.ends_with_recording,
            faults: self.faults,
        };
        let name = SocketName { pid: self.pid, key };
        Runtime::start(directory.join(name.to_string()), self.pid, identity, behaviour)
    }
}
