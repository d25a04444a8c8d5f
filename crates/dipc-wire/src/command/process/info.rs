//! Information about the process.

use crate::codec::{Decode, Decoder, Encode, Encoder};
use crate::payload::payload;
use crate::{DecodeError, EncodeError};
use alloc::string::String;
use uuid::Uuid;

payload! {
    /// ProcessInfo (0x0400): asks for information about the process, without a payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo"; seen on .NET 8 to 10, unknown to 3.1.
    command PROCESS_INFO_1 -> ProcessInfo1Reply =>
    pub struct ProcessInfo1;
}

payload! {
    /// ProcessInfo2 (0x0404): asks for the same with entry assembly and runtime version, without a payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo2"; seen on .NET 8 to 10, unknown to 3.1.
    command PROCESS_INFO_2 -> ProcessInfo2Reply =>
    pub struct ProcessInfo2;
}

payload! {
    /// ProcessInfo3 (0x0408): asks for the same in a versioned form, which grows, without a payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo3"; seen on .NET 8 to 10, unknown to 3.1.
    command PROCESS_INFO_3 -> ProcessInfo3Reply =>
    pub struct ProcessInfo3;
}

payload! {
    /// The reply to [`ProcessInfo1`].
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
    /// Diagnostic IPC Protocol, "ProcessInfo"; the `struct Payload` of the text has the cookie elsewhere, and
    /// is wrong.
    #[non_exhaustive]
    pub struct ProcessInfo1Reply<S = String> {
        /// The process id as the process itself sees it: inside a container it differs from the id outside.
        pub process_id: u64 = "process id",
        /// The id of this runtime instance; the same in every reply and in its advertise messages.
        pub runtime_cookie: Uuid = "runtime cookie",
        /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
        pub command_line: S = "command line",
        /// `Linux`, `macOS`, `Windows` or `Unknown`.
        pub os: S = "operating system",
        /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
        pub arch: S = "architecture",
    }
}

payload! {
    /// The reply to [`ProcessInfo2`]: with entry assembly and runtime version.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | | the fields of [`ProcessInfo1Reply`] |
    /// | … | … | string | name of the managed entry point's assembly |
    /// | … | … | string | product version of the runtime |
    ///
    /// ```
    /// use dipc_wire::{Feed, MessageReader, ProcessInfo1Reply, ProcessInfo2Reply, Utf16, Uuid};
    /// use dipc_wire::{decode_reply_as, encode_ok};
    ///
    /// // A fake runtime answers, and a client reads without a copy.
    /// let first = ProcessInfo1Reply::new(4711, Uuid::from_u128(1));
    /// let received = encode_ok(&ProcessInfo2Reply::new(first, "shop", "9.0.1"))?;
    /// let Feed::Message { message, .. } = MessageReader::new().feed(&received)? else { return Ok(()) };
    /// let info = decode_reply_as::<ProcessInfo2Reply<Utf16<'_>>>(&message)??;
    /// assert_eq!(info.process_id, 4711);
    /// assert_eq!(info.managed_entrypoint_assembly, "shop");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessInfo2".
    #[non_exhaustive]
    pub struct ProcessInfo2Reply<S = String> {
        /// The process id as the process itself sees it: inside a container it differs from the id outside.
        pub process_id: u64 = "process id",
        /// The id of this runtime instance; the same in every reply and in its advertise messages.
        pub runtime_cookie: Uuid = "runtime cookie",
        /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
        pub command_line: S = "command line",
        /// `Linux`, `macOS`, `Windows` or `Unknown`.
        pub os: S = "operating system",
        /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
        pub arch: S = "architecture",
        /// The name of the entry assembly, without `.dll`.
        pub managed_entrypoint_assembly: S = "entry assembly",
        /// The product version of the runtime, such as `9.0.1` or `10.0.0-preview.7.25380.108`.
        pub clr_version: S = "runtime version",
    }
}

impl<S: Default> ProcessInfo1Reply<S> {
    /// Returns a reply with empty strings.
    pub fn new(process_id: u64, runtime_cookie: Uuid) -> Self {
        Self { process_id, runtime_cookie, ..Self::default() }
    }
}

impl<S> ProcessInfo2Reply<S> {
    /// Returns the reply with the fields of a [`ProcessInfo1Reply`] and its own.
    pub fn new(first: ProcessInfo1Reply<S>, managed_entrypoint_assembly: S, clr_version: S) -> Self {
        let ProcessInfo1Reply { process_id, runtime_cookie, command_line, os, arch } = first;
        Self { process_id, runtime_cookie, command_line, os, arch, managed_entrypoint_assembly, clr_version }
    }
}

/// The reply to [`ProcessInfo3`], which grows: later versions add fields at the end.
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
#[non_exhaustive]
pub struct ProcessInfo3Reply<S = String> {
    /// The version of the payload: 1 in .NET 8, 9 and 10.
    pub version: u32,
    /// The process id as the process itself sees it: inside a container it differs from the id outside.
    pub process_id: u64,
    /// The id of this runtime instance; the same in every reply and in its advertise messages.
    pub runtime_cookie: Uuid,
    /// The executable's path and its arguments, separated by spaces, unquoted outside Windows.
    pub command_line: S,
    /// `Linux`, `macOS`, `Windows` or `Unknown`.
    pub os: S,
    /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
    pub arch: S,
    /// The name of the entry assembly, without `.dll`.
    pub managed_entrypoint_assembly: S,
    /// The product version of the runtime, such as `9.0.1`.
    pub clr_version: S,
    /// The platform the runtime was built for, such as `linux-x64`; on the wire only if `version` is at least
    /// 1.
    pub runtime_identifier: S,
}

impl<S> ProcessInfo3Reply<S> {
    /// Returns version 1 of the reply, with the fields of a [`ProcessInfo2Reply`] and its own.
    pub fn new(second: ProcessInfo2Reply<S>, runtime_identifier: S) -> Self {
        Self::from_2(1, second, runtime_identifier)
    }

    fn from_2(version: u32, second: ProcessInfo2Reply<S>, runtime_identifier: S) -> Self {
        Self {
            version,
            process_id: second.process_id,
            runtime_cookie: second.runtime_cookie,
            command_line: second.command_line,
            os: second.os,
            arch: second.arch,
            managed_entrypoint_assembly: second.managed_entrypoint_assembly,
            clr_version: second.clr_version,
            runtime_identifier,
        }
    }
}

impl<S: Encode> Encode for ProcessInfo3Reply<S> {
    fn encode(&self, encoder: &mut Encoder, _: &'static str) -> Result<(), EncodeError> {
        encoder.u32(self.version);
        encoder.u64(self.process_id);
        encoder.guid(self.runtime_cookie);
        encoder.put(&self.command_line, "command line")?;
        encoder.put(&self.os, "operating system")?;
        encoder.put(&self.arch, "architecture")?;
        encoder.put(&self.managed_entrypoint_assembly, "entry assembly")?;
        encoder.put(&self.clr_version, "runtime version")?;
        if self.version >= 1 {
            encoder.put(&self.runtime_identifier, "runtime identifier")?;
        }
        Ok(())
    }
}

impl<'a, S: Decode<'a> + Default> Decode<'a> for ProcessInfo3Reply<S> {
    const MIN_LEN: usize = ProcessInfo2Reply::<S>::MIN_LEN.saturating_add(4);

    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let version = decoder.u32("version")?;
        let second = ProcessInfo2Reply::decode(decoder, field)?;
        let runtime_identifier =
            if version >= 1 { decoder.take("runtime identifier")? } else { S::default() };
        Ok(Self::from_2(version, second, runtime_identifier))
    }
}
