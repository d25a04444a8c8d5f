//! Requests: messages as decoded by a server.

use crate::{
    ApplyStartupHook, AttachProfiler, CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4,
    CollectTracing5, CollectTracing6, Command, CommandId, DecodeError, DisablePerfMap, EnablePerfMap,
    EncodeError, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3, Message, ProcessEnvironment,
    ProcessInfo1, ProcessInfo2, ProcessInfo3, ResumeRuntime, SetEnvironmentVariable, StartupProfiler,
    StopTracing,
};
use alloc::vec::Vec;

/// Defines [`Request`] from the list of commands it knows.
macro_rules! requests {
    ($($command:ident),+ $(,)?) => {
        /// A decoded request.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Request {
            $(
                #[doc = concat!("[`", stringify!($command), "`].")]
                $command($command),
            )+
            /// A command that this crate does not know, undecoded.
            Unknown(Message),
        }

        impl Request {
            /// Decodes a message as the command its header names.
            ///
            /// Bytes after the command's last field are ignored, as runtimes do.
            ///
            /// ```
            /// use dipc_wire::{Command as _, Feed, MessageReader, Request, StopTracing, SessionId};
            ///
            /// // The other end of the connection: a server, or a proxy.
            /// let received = StopTracing { session: SessionId(7) }.to_bytes()?;
            /// let Feed::Message { message, .. } = MessageReader::new().feed(&received)? else { return Ok(()) };
            /// assert!(matches!(Request::decode(&message)?, Request::StopTracing(stop) if stop.session == SessionId(7)));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn decode(message: &Message) -> Result<Self, DecodeError> {
                match message.header.command {
                    $(<$command as Command>::ID => message.decode().map(Self::$command),)+
                    _ => Ok(Self::Unknown(message.clone())),
                }
            }

            /// Returns the request's bytes.
            pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
                match self {
                    $(Self::$command(command) => command.to_bytes(),)+
                    Self::Unknown(message) => message.to_bytes(),
                }
            }

            /// Returns the command of the request.
            pub const fn command(&self) -> CommandId {
                match self {
                    $(Self::$command(_) => <$command as Command>::ID,)+
                    Self::Unknown(message) => message.header.command,
                }
            }
        }

        $(
            impl From<$command> for Request {
                fn from(command: $command) -> Self {
                    Self::$command(command)
                }
            }
        )+
    };
}

requests! {
    GenerateCoreDump1,
    GenerateCoreDump2,
    GenerateCoreDump3,
    StopTracing,
    CollectTracing1,
    CollectTracing2,
    CollectTracing3,
    CollectTracing4,
    CollectTracing5,
    CollectTracing6,
    AttachProfiler,
    StartupProfiler,
    ProcessInfo1,
    ResumeRuntime,
    ProcessEnvironment,
    SetEnvironmentVariable,
    ProcessInfo2,
    EnablePerfMap,
    DisablePerfMap,
    ApplyStartupHook,
    ProcessInfo3,
}
