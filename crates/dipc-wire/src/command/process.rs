//! The command set Process: what the process is, its environment, resuming it.

use super::{Command, CommandId};
use crate::codec::{Decoder, Encoder, Payload};
use crate::{DecodeError, EncodeError, HResult};
use alloc::string::String;
use alloc::vec::Vec;
use uuid::Uuid;

/// Defines a command without a payload.
macro_rules! empty_command {
    ($(#[doc = $doc:literal])+ $command:ident = $id:ident $name:literal -> $reply:ty) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $command;

        impl Payload for $command {
            fn encode(&self, _: &mut Encoder) -> Result<(), EncodeError> {
                Ok(())
            }

            fn decode(_: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Ok(Self)
            }
        }

        impl Command for $command {
            const ID: CommandId = CommandId::$id;
            const NAME: &'static str = $name;
            type Reply = $reply;
        }
    };
}

empty_command! {
    /// ProcessInfo (0x0400): asks what the process is. The request has no payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo"; seen on .NET 8 to 10, unknown to 3.1.
    ProcessInfo1 = PROCESS_INFO_1 "ProcessInfo" -> ProcessInfo1Reply
}

empty_command! {
    /// ProcessInfo2 (0x0404): asks what the process is, with entry assembly and runtime version. The request has no
    /// payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo2"; seen on .NET 8 to 10, unknown to 3.1.
    ProcessInfo2 = PROCESS_INFO_2 "ProcessInfo2" -> ProcessInfo2Reply
}

empty_command! {
    /// ProcessInfo3 (0x0408): asks what the process is, in a form that grows. The request has no payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo3"; seen on .NET 8 to 10, unknown to 3.1.
    ProcessInfo3 = PROCESS_INFO_3 "ProcessInfo3" -> ProcessInfo3Reply
}

empty_command! {
    /// ProcessEnvironment (0x0402): asks for the environment block. The request has no payload.
    ///
    /// After the reply, the connection carries [`EnvironmentReply::incoming_bytes`] bytes that [`Environment::decode`]
    /// reads, and then ends.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessEnvironment"; seen on .NET 8 to 10, unknown to 3.1.
    ProcessEnvironment = PROCESS_ENVIRONMENT "ProcessEnvironment" -> EnvironmentReply
}

empty_command! {
    /// ResumeRuntime (0x0401): resumes a runtime that was started suspended, on the port the command came on; does
    /// nothing to one that runs. The request has no payload.
    ///
    /// The text says that the reply has no payload; runtimes send an [`HResult`], 0.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ResumeRuntime"; the reply as seen on .NET 8 to 10; unknown to 3.1.
    ResumeRuntime = RESUME_RUNTIME "ResumeRuntime" -> HResult
}

/// What the process is.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 8 | u64 | process id, in the process's own pid namespace |
/// | 8 | 16 | GUID | runtime cookie, unique across pid namespaces |
/// | 24 | … | string | command line |
/// | … | … | string | operating system |
/// | … | … | string | architecture |
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessInfo"; the `struct Payload` of the text has the cookie elsewhere, and is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessInfo1Reply {
    /// The process id as the process itself sees it: inside a container not the id outside.
    pub process_id: u64,
    /// Names this runtime instance; the same in every reply and in its advertise messages.
    pub runtime_cookie: Uuid,
    /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows` or `Unknown`.
    pub os: String,
    /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
    pub arch: String,
}

impl Payload for ProcessInfo1Reply {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u64(self.process_id);
        encoder.guid(self.runtime_cookie);
        encoder.string(&self.command_line, "command line")?;
        encoder.string(&self.os, "operating system")?;
        encoder.string(&self.arch, "architecture")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            process_id: decoder.u64("process id")?,
            runtime_cookie: decoder.guid("runtime cookie")?,
            command_line: decoder.string("command line")?,
            os: decoder.string("operating system")?,
            arch: decoder.string("architecture")?,
        })
    }
}

/// What the process is, with entry assembly and runtime version.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | … | | the fields of [`ProcessInfo1Reply`] |
/// | … | … | string | name of the managed entry point's assembly |
/// | … | … | string | product version of the runtime |
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessInfo2".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessInfo2Reply {
    /// The process id as the process itself sees it: inside a container not the id outside.
    pub process_id: u64,
    /// Names this runtime instance; the same in every reply and in its advertise messages.
    pub runtime_cookie: Uuid,
    /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows` or `Unknown`.
    pub os: String,
    /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
    pub arch: String,
    /// The name of the entry assembly, without `.dll`; empty while the runtime is suspended at its start.
    pub managed_entrypoint_assembly: String,
    /// The product version of the runtime, such as `9.0.1` or `10.0.0-preview.7.25380.108`.
    pub clr_version: String,
}

impl Payload for ProcessInfo2Reply {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u64(self.process_id);
        encoder.guid(self.runtime_cookie);
        encoder.string(&self.command_line, "command line")?;
        encoder.string(&self.os, "operating system")?;
        encoder.string(&self.arch, "architecture")?;
        encoder.string(&self.managed_entrypoint_assembly, "entry assembly")?;
        encoder.string(&self.clr_version, "runtime version")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let first = ProcessInfo1Reply::decode(decoder)?;
        Ok(Self {
            process_id: first.process_id,
            runtime_cookie: first.runtime_cookie,
            command_line: first.command_line,
            os: first.os,
            arch: first.arch,
            managed_entrypoint_assembly: decoder.string("entry assembly")?,
            clr_version: decoder.string("runtime version")?,
        })
    }
}

/// What the process is, in a form that grows: later versions add fields at the end.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | version of this payload |
/// | 4 | … | | the fields of [`ProcessInfo2Reply`] |
/// | … | … | string | runtime identifier, from version 1 on |
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessInfo3".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessInfo3Reply {
    /// The version of the payload: 1 in .NET 8, 9 and 10.
    pub version: u32,
    /// The process id as the process itself sees it: inside a container not the id outside.
    pub process_id: u64,
    /// Names this runtime instance; the same in every reply and in its advertise messages.
    pub runtime_cookie: Uuid,
    /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows` or `Unknown`.
    pub os: String,
    /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
    pub arch: String,
    /// The name of the entry assembly, without `.dll`; empty while the runtime is suspended at its start.
    pub managed_entrypoint_assembly: String,
    /// The product version of the runtime, such as `9.0.1`.
    pub clr_version: String,
    /// The platform the runtime was built for, such as `linux-x64`; on the wire only if `version` is at least 1.
    pub runtime_identifier: String,
}

impl Payload for ProcessInfo3Reply {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.version);
        encoder.u64(self.process_id);
        encoder.guid(self.runtime_cookie);
        encoder.string(&self.command_line, "command line")?;
        encoder.string(&self.os, "operating system")?;
        encoder.string(&self.arch, "architecture")?;
        encoder.string(&self.managed_entrypoint_assembly, "entry assembly")?;
        encoder.string(&self.clr_version, "runtime version")?;
        if self.version >= 1 {
            encoder.string(&self.runtime_identifier, "runtime identifier")?;
        }
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let version = decoder.u32("version")?;
        let second = ProcessInfo2Reply::decode(decoder)?;
        let runtime_identifier =
            if version >= 1 { decoder.string("runtime identifier")? } else { String::new() };
        Ok(Self {
            version,
            process_id: second.process_id,
            runtime_cookie: second.runtime_cookie,
            command_line: second.command_line,
            os: second.os,
            arch: second.arch,
            managed_entrypoint_assembly: second.managed_entrypoint_assembly,
            clr_version: second.clr_version,
            runtime_identifier,
        })
    }
}

/// How much environment follows the reply to [`ProcessEnvironment`].
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | bytes that follow after this message, the 4 of their count included |
/// | 4 | 2 | u16 | 0, for the future |
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessEnvironment"; that the count is included as seen on .NET 9 and 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvironmentReply {
    /// The length in bytes of the [`Environment`] that follows. It is the peer's word: read up to it, allocate as the
    /// bytes arrive.
    pub incoming_bytes: u32,
    /// 0 so far.
    pub future: u16,
}

impl Payload for EnvironmentReply {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.incoming_bytes);
        encoder.u16(self.future);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { incoming_bytes: decoder.u32("incoming bytes")?, future: decoder.u16("future")? })
    }
}

/// The environment block, which follows the reply to [`ProcessEnvironment`] outside of any message.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | number of strings |
/// | 4 | … | strings | `NAME=value` each |
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessEnvironment".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Environment(pub Vec<String>);

impl Environment {
    /// Decodes the bytes that follow the reply. On bytes that are merely cut short the error's
    /// [`is_incomplete`](DecodeError::is_incomplete) is true.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let count = decoder.count(4, "environment")?;
        let variables = (0..count).map(|_| decoder.string("environment variable"));
        variables.collect::<Result<_, _>>().map(Self)
    }

    /// The reply that announces the environment, and the bytes that follow it.
    pub fn encode(&self) -> Result<(EnvironmentReply, Vec<u8>), EncodeError> {
        let mut encoder = Encoder::new();
        encoder.count(self.0.len(), "environment")?;
        for variable in &self.0 {
            encoder.string(variable, "environment variable")?;
        }
        let bytes = encoder.into_bytes();
        let len = bytes.len();
        let incoming_bytes =
            u32::try_from(len).map_err(|_| EncodeError::TooManyItems { field: "environment", len })?;
        Ok((EnvironmentReply { incoming_bytes, future: 0 }, bytes))
    }
}
