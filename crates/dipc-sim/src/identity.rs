//! The identity of a simulated process.

use crate::error::Error;
use crate::version::{Quirk, Version};
use dipc_wire::{
    Command as _, Encode, Environment, ProcessEnvironment, ProcessInfo1, ProcessInfo1Reply, ProcessInfo2,
    ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply, encode_ok,
};
use std::env::consts;
use uuid::Uuid;

/// The answers of a process to ProcessInfo and ProcessEnvironment.
///
/// ```
/// use dipc_sim::{Identity, Runtime, Version};
///
/// # let folder = tempfile::tempdir()?;
/// let mut identity = Identity::new(4711, Version::NET9);
/// identity.command_line = "dotnet /srv/shop/Shop.dll".to_owned();
/// identity.environment.push("LANG=C".to_owned());
/// let runtime = Runtime::builder().pid(4711).key(98765).identity(identity).start_in(folder.path())?;
/// assert!(runtime.identity().command_line.ends_with("Shop.dll"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The process id in the process's own pid namespace.
    pub process_id: u32,
    /// The id of the runtime instance.
    pub runtime_cookie: Uuid,
    /// The executable's path and its arguments, separated by spaces.
    pub command_line: String,
    /// `Linux`, `macOS` or `Windows`.
    pub os: String,
    /// `x86`, `x64`, `arm32` or `arm64`.
    pub arch: String,
    /// The name of the entry assembly, without `.dll`.
    pub managed_entrypoint_assembly: String,
    /// The product version of the runtime.
    pub clr_version: String,
    /// The platform the runtime was built for, such as `linux-x64`.
    pub runtime_identifier: String,
    /// The environment, `NAME=value` each.
    pub environment: Vec<String>,
}

impl Identity {
    /// Creates the identity of a program called Simulated, for a version on this machine's platform, with an
    /// environment of two variables and a new cookie.
    pub fn new(process_id: u32, version: Version) -> Self {
        let os = match consts::OS {
            "linux" => "Linux",
            "macos" => "macOS",
            "windows" => "Windows",
            _ => "Unknown",
        };
        let arch = match consts::ARCH {
            "x86" => "x86",
            "x86_64" => "x64",
            "arm" => "arm32",
            "aarch64" => "arm64",
            _ => "Unknown",
        };
        let platform = if os == "macOS" { "osx".into() } else { os.to_lowercase() };
        Self {
            process_id,
            runtime_cookie: Uuid::new_v4(),
            command_line: "/usr/share/dotnet/dotnet /srv/simulated/Simulated.dll".into(),
            os: os.into(),
            arch: arch.into(),
            managed_entrypoint_assembly: "Simulated".into(),
            clr_version: version.clr_version().into(),
            runtime_identifier: format!("{platform}-{arch}"),
            environment: vec!["DOTNET_ROOT=/usr/share/dotnet".into(), "LANG=C.UTF-8".into()],
        }
    }

    /// Returns the identity of the process while it is suspended at its start.
    pub(crate) fn while_suspended(&self, version: Version) -> Self {
        let mut identity = self.clone();
        if version.has(Quirk::ProgramAloneWhileSuspended) {
            let program = self.command_line.split(' ').next();
            identity.command_line = program.unwrap_or_default().into();
        }
        if version.has(Quirk::NoAssemblyNameWhileSuspended) {
            identity.managed_entrypoint_assembly.clear();
        }
        identity
    }

    /// Encodes each reply once, so that a runtime with an identity that cannot be sent does not start.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.reply_1()?;
        self.reply_2()?;
        self.reply_3()?;
        let environment = Environment(self.environment.clone()).to_bytes();
        environment.map(drop).map_err(|reason| Error::Reply { command: ProcessEnvironment::NAME, reason })
    }

    pub(crate) fn reply_1(&self) -> Result<Vec<u8>, Error> {
        encode(ProcessInfo1::NAME, &self.info_1())
    }

    pub(crate) fn reply_2(&self) -> Result<Vec<u8>, Error> {
        encode(ProcessInfo2::NAME, &self.info_2())
    }

    pub(crate) fn reply_3(&self) -> Result<Vec<u8>, Error> {
        encode(ProcessInfo3::NAME, &self.info_3())
    }

    fn info_1(&self) -> ProcessInfo1Reply {
        let mut info = ProcessInfo1Reply::<String>::new(self.process_id.into(), self.runtime_cookie);
        info.command_line.clone_from(&self.command_line);
        info.os.clone_from(&self.os);
        info.arch.clone_from(&self.arch);
        info
    }

    fn info_2(&self) -> ProcessInfo2Reply {
        let entrypoint = self.managed_entrypoint_assembly.clone();
        ProcessInfo2Reply::new(self.info_1(), entrypoint, self.clr_version.clone())
    }

    fn info_3(&self) -> ProcessInfo3Reply {
        ProcessInfo3Reply::new(self.info_2(), self.runtime_identifier.clone())
    }
}

/// Encodes the OK reply to a command.
fn encode<P: Encode>(command: &'static str, reply: &P) -> Result<Vec<u8>, Error> {
    encode_ok(reply).map_err(|reason| Error::Reply { command, reason })
}
