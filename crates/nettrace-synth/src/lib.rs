//! Writes .NET EventPipe recordings of every version, block by block, to test readers with.
//!
//! **Use it** to test a reader of recordings, with every version and every mistake. **Not for** recordings
//! that others read: `nettrace-writer` checks its output.
//!
//! Features: none. Rust 1.89 or later.
//!
//! The crate is an independent second reading of the format documents: it shares no code with any reader, so
//! a misreading has to be made twice to go unseen. Correctness and legibility take precedence over speed, and
//! nothing is checked: every length, flag, kind and id can be made wrong on purpose.
//!
//! | version | container | writer |
//! |---|---|---|
//! | V1, V2 (.NET Core 2.0) | netperf, events without blocks | [`netperf::EarlyTrace`] |
//! | V3 (.NET Core 2.1; later runtimes when asked for format 0) | netperf, `EventBlock` objects | [`netperf::Trace`] |
//! | V4 (.NET Core 3.0), V5 (.NET 5: further metadata tags in the same container) | nettrace, objects | [`nettrace::Trace`] |
//! | V6 | nettrace, block headers | [`v6::Trace`] |
//!
//! The layers, lowest first, each of which can be used alone:
//! - [`Bytes`]: little-endian numbers, variable-length numbers, the three kinds of strings;
//! - [`Value`] and [`payload`]: typed field values to the bytes of an event's payload;
//! - [`Metadata`], [`Field`], [`Type`]: the description of a kind of event, in the encoding of every version;
//! - [`Event`] and [`EventBlock`]: event rows, with headers compressed as the runtime does it or otherwise;
//! - [`stack_block`], [`v6::ThreadRow`], [`v6::Label`] and so on: the content of the other blocks;
//! - the four `Trace` writers, which put blocks into a stream. All have `raw`, which writes bytes as they
//!   are;
//! - [`clr`]: well-formed recordings of the runtime's own events, by what they mean.
//!
//! ```
//! use nettrace_synth::{nettrace, payload, Event, EventBlock, Field, Metadata, TraceHeader, Type, Value};
//!
//! let tick = Metadata {
//!     id: 1,
//!     provider: "Demo".into(),
//!     event_id: 7,
//!     name: "Tick".into(),
//!     fields: vec![Field::new("count", Type::Int32)],
//!     ..Metadata::default()
//! };
//! let mut trace = nettrace::Trace::new(&TraceHeader::default());
//! trace.metadata_block(&[tick]);
//! let mut block = EventBlock::v4();
//! block.event(&Event {
//!     metadata_id: 1,
//!     sequence: 1,
//!     timestamp: 1_000,
//!     payload: payload(&[Value::Int32(42)]),
//!     ..Event::default()
//! });
//! trace.event_block(&block);
//! let bytes = trace.finish();
//! assert!(bytes.starts_with(b"Nettrace"));
//! ```
//!
//! # Panics
//!
//! A length that its field cannot hold (a V6 metadata row of 70,000 bytes) panics: a test that wants a wrong
//! length writes the raw bytes instead.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod bytes;
pub mod clr;
mod event;
mod event_block;
mod metadata;
pub mod netperf;
pub mod nettrace;
mod objects;
mod trace_header;
pub mod v6;
mod value;

pub use bytes::Bytes;
pub use event::{Event, stack_block, stack_bytes};
pub use event_block::{EventBlock, Headers, group};
pub use metadata::{Field, Metadata, Type};
pub use objects::ObjectStream;
pub use trace_header::{SystemTime, TraceHeader};
pub use value::{Value, payload};

/// Sixteen bytes, as the stream has them.
///
/// The textual form groups them as u32, u16, u16 (each little-endian) and eight single bytes.
pub type Guid = [u8; 16];

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
