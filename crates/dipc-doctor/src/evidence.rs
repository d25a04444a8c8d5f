//! Evidence: the facts that a finding rests on.

mod answer;
mod process;
mod runtime;
mod sampling;
mod settings;
mod socket;

use dipc_client::Hazard;
use dipc_transport::ProcessState;

use crate::Check;

pub use answer::{AnswerEvidence, TimeoutReason};
pub use process::{ProcessEvidence, UserEvidence};
pub use runtime::{RuntimeEvidence, RuntimeKind, VersionSupport};
pub use sampling::{SamplingEvidence, SamplingExtent, SamplingObstacle};
pub use settings::{SettingsEvidence, StartupEvidence, SuspendReason, TmpdirEvidence};
pub use socket::{MissingSocketReason, SocketEvidence, StaleSocketsEvidence};

/// The facts that a [`Finding`](crate::Finding) rests on, by [`Check`]. Paths are as seen by the examined
/// process unless stated otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Evidence {
    /// For [`Check::Process`].
    Process(ProcessEvidence),
    /// For [`Check::User`].
    User(UserEvidence),
    /// For [`Check::Container`]: the process has namespaces of its own.
    Container {
        /// The pid as seen from here.
        pid: u32,
        /// The pid that the process itself sees, if it differs.
        inner_pid: Option<u32>,
        /// True if paths refer to other files there.
        has_own_files: bool,
    },
    /// For [`Check::Runtime`].
    Runtime(RuntimeEvidence),
    /// For [`Check::Version`].
    Version {
        /// The version of the runtime.
        version: String,
        /// The part of the protocol that such a runtime supports.
        support: VersionSupport,
    },
    /// For [`Check::Platform`]: the process runs on musl.
    Musl {
        /// The .NET name of the platform, such as `linux-musl-x64`.
        runtime_identifier: String,
    },
    /// For [`Check::Settings`].
    Settings(SettingsEvidence),
    /// For [`Check::Startup`].
    Startup(StartupEvidence),
    /// For [`Check::Tmpdir`].
    Tmpdir(TmpdirEvidence),
    /// For [`Check::Socket`].
    Socket(SocketEvidence),
    /// For [`Check::StaleSockets`].
    StaleSockets(StaleSocketsEvidence),
    /// For [`Check::State`]: a state in which the process cannot answer.
    State(ProcessState),
    /// For [`Check::Answer`].
    Answer(AnswerEvidence),
    /// For [`Check::Createdump`]: the reason why the runtime cannot write dumps.
    Createdump(Hazard),
    /// For [`Check::Sampling`].
    Sampling(SamplingEvidence),
    /// For [`Check::Memory`]: the program was built for another processor than x86-64, or for arm64 and
    /// not for .NET 10.
    Memory {
        /// The processor's architecture, as ELF numbers it (`e_machine`).
        machine: u16,
    },
    /// For [`Check::CoreDumps`]: the kernel's pattern (`kernel.core_pattern`), the name of a file, or a
    /// program after `|`.
    CoreDumps {
        /// The pattern.
        pattern: String,
    },
}

impl Evidence {
    /// Returns the check that the evidence belongs to.
    pub fn check(&self) -> Check {
        match self {
            Self::Process(_) => Check::Process,
            Self::User(_) => Check::User,
            Self::Container { .. } => Check::Container,
            Self::Runtime(_) => Check::Runtime,
            Self::Version { .. } => Check::Version,
            Self::Musl { .. } => Check::Platform,
            Self::Settings(_) => Check::Settings,
            Self::Startup(_) => Check::Startup,
            Self::Tmpdir(_) => Check::Tmpdir,
            Self::Socket(_) => Check::Socket,
            Self::StaleSockets(_) => Check::StaleSockets,
            Self::State(_) => Check::State,
            Self::Answer(_) => Check::Answer,
            Self::Createdump(_) => Check::Createdump,
            Self::Sampling(_) => Check::Sampling,
            Self::Memory { .. } => Check::Memory,
            Self::CoreDumps { .. } => Check::CoreDumps,
        }
    }
}
