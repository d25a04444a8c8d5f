//! The .NET Diagnostic IPC protocol as bytes: messages encoded and decoded in both directions, without I/O.
//!
//! **Use it** to speak the protocol in a program that has I/O of its own: async, an event loop, a proxy, a
//! fake server. **Not for** a program that just wants an answer: `dipc-client` connects, waits and falls
//! back to older forms.
//!
//! Features: none; the crate is `no_std` with `alloc`. Rust 1.89 or later.
//!
//! A .NET runtime listens on a socket or pipe for diagnostic commands. A client sends one message and gets
//! one message back; after some commands the connection then carries other data, such as the event stream of
//! an EventPipe session. This crate turns commands into messages and messages into commands, for both ends of
//! the connection, and does nothing more: it opens no sockets, reads no clock and starts no threads, so it
//! works with blocking I/O, any async runtime or an event loop.
//!
//! # A client
//!
//! ```
//! use dipc_wire::{Command as _, Feed, MessageReader, ProcessInfo2, decode_reply};
//! # use dipc_wire::{ProcessInfo2Reply, encode_ok};
//!
//! let request: Vec<u8> = ProcessInfo2.to_bytes()?;
//! // … write `request` to the runtime's socket, then read the reply:
//! # let mut reply = ProcessInfo2Reply::<&str>::default();
//! # (reply.process_id, reply.clr_version) = (7, "9.0.1");
//! # let received = encode_ok(&reply)?;
//! let mut reader = MessageReader::new();
//! match reader.feed(&received)? {
//!     Feed::NeedMore(bytes) => println!("read {bytes} more bytes and feed them"),
//!     Feed::Message { message, used } => {
//!         assert_eq!(used, received.len());
//!         match decode_reply::<ProcessInfo2>(&message)? {
//!             Ok(info) => println!("pid {} runs on .NET {}", info.process_id, info.clr_version),
//!             Err(refusal) => println!("the runtime refused: {refusal}"),
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The layers, from the bottom up
//!
//! * [`Header`]: the 20 bytes that begin every message: magic, size, [`CommandId`], reserved.
//! * [`Decoder`] and [`Encoder`]: the numbers, GUIDs, strings and arrays that a payload consists of.
//! * [`Message`]: one whole frame, header and raw payload. A command this crate does not know survives in it
//!   unchanged.
//! * [`MessageReader`]: messages in bytes as they arrive. It returns the number of missing bytes, or a
//!   message and the number of its bytes.
//! * [`Command`]: one type a command, each naming the type of its reply, in four sets: dumps
//!   ([`GenerateCoreDump3`], …), EventPipe sessions ([`CollectTracing4`], [`StopTracing`], …), profilers
//!   ([`AttachProfiler`], …) and the process itself ([`ProcessInfo3`], [`ProcessEnvironment`],
//!   [`ResumeRuntime`], …).
//! * [`decode_reply`] for clients, [`Request`] with [`encode_ok`] and [`encode_error`] for servers.
//!
//! Outside of messages there are [`Advertise`], the first bytes of a runtime that connects to the port of a
//! tool, and two kinds of text: [`PortConfig`], the value of `DOTNET_DiagnosticPorts`, and [`EndpointName`],
//! the name of a socket or pipe.
//!
//! # Owned and borrowed types
//!
//! Message types have parameters for their strings and arrays. The defaults are `String` and `Vec`. With
//! [`Utf16`] and [`Items`] the same types borrow the received bytes, and nothing is allocated; with `&str`
//! they are encoded without a copy.
//!
//! ```
//! use dipc_wire::{Command as _, DumpFlags, DumpType, GenerateCoreDump3, Utf16};
//! # use dipc_wire::{Feed, MessageReader};
//!
//! let dump = GenerateCoreDump3 { path: "/tmp/core", dump_type: DumpType::WITH_HEAP, flags: DumpFlags::NONE };
//! let bytes: Vec<u8> = dump.to_bytes()?;
//!
//! # let Feed::Message { message, .. } = MessageReader::new().feed(&bytes)? else { unreachable!() };
//! let received: GenerateCoreDump3<Utf16<'_>> = message.decode()?;
//! assert_eq!(received.path, "/tmp/core");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stability
//!
//! The protocol never changes a command; a new form has its own number. Commands and their parts are
//! therefore exhaustive structs. Replies, which grow, are `#[non_exhaustive]`.
//!
//! # Untrusted input
//!
//! Either end may be hostile. Decoding never panics, and a count or length is checked against the bytes that
//! are left before anything is allocated for it. Unknown command ids, HRESULTs, levels and formats are
//! values, not errors.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]

extern crate alloc;

mod hresult;
mod keywords;
mod level;
mod limits;

mod codec;
mod error;

mod header;

mod message;
mod reader;

mod command;
mod payload;
mod reply;
mod request;

mod advertise;
mod endpoint_name;

mod port_config;

mod runtime_event;

pub use advertise::Advertise;
pub use codec::{Decode, DecodeOwned, Decoder, Encode, Encoder, Items, Utf16};
pub use command::dump::{DumpFlags, DumpType, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3};
pub use command::event_pipe::{
    BufferMode, CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5,
    CollectTracing6, EventFilter, FilteredProviderConfig, Format, ProviderConfig, SessionId, StopTracing,
    StreamingSession, StreamingSession6, TracepointConfig, TracepointSet, UserEventsProviderConfig,
    UserEventsSession,
};
pub use command::process::{
    ApplyStartupHook, DisablePerfMap, EnablePerfMap, Environment, EnvironmentReply, PerfMapType,
    ProcessEnvironment, ProcessInfo1, ProcessInfo1Reply, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3,
    ProcessInfo3Reply, ResumeRuntime, SetEnvironmentVariable,
};
pub use command::profiler::{AttachProfiler, StartupProfiler};
pub use command::{Command, CommandId, CommandSet};
pub use endpoint_name::{EndpointName, ParseEndpointNameError};
pub use error::{DecodeError, EncodeError};
pub use header::Header;
pub use hresult::HResult;
pub use keywords::Keywords;
pub use level::Level;
pub use limits::{HEADER_LEN, MAGIC, MAX_MESSAGE_LEN, MAX_PAYLOAD_LEN};
pub use message::Message;
pub use port_config::{ParsePortError, PortConfig, PortKind, parse_port_configs};
pub use reader::{Feed, MessageReader};
pub use reply::{ServerError, decode_reply, decode_reply_as, encode_error, encode_ok, encode_server_error};
pub use request::Request;
pub use runtime_event::{EventExtension, RuntimeEvent};

pub use uuid::Uuid;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
