//! Zero-copy reader of .NET EventPipe recordings: every version of netperf (V1–V3) and nettrace (V4–V6).
//!
//! **Use it** to read recordings and live streams: events, stacks, losses and damage, with bounded memory.
//! **Not for** names and fields of the runtime's own events (`clr-events`), profiles (`nettrace-export`),
//! writing (`nettrace-writer`).
//!
//! Features: `std` (default; otherwise `no_std` with `alloc`), `rayon` (a slice on all processors). Rust
//! 1.89 or later.
//!
//! # Counting events
//!
//! By provider and id: the runtime's own events are recorded without names (`clr-events` has them).
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let mut count = BTreeMap::new();
//! while let Some(event) = events.next()? {
//!     *count.entry((event.provider().to_owned(), event.id())).or_insert(0u64) += 1;
//! }
//! println!("{count:?}, lost {}", events.loss().total());
//! # Ok(())
//! # }
//! ```
//!
//! # Three sources
//!
//! * [`SliceReader`] reads a recording in memory (or mapped) without copying it.
//! * [`Reader`] (feature `std`) reads from [`std::io::Read`], in memory bounded by the largest block.
//!   [`Reader::par_fold`] reads a file on several threads.
//! * [`Decoder`] takes bytes as they arrive and gives events as soon as they are whole: for event loops and
//!   live sessions.
//!
//! All three give the same events for the same bytes, however the bytes are split, and the same properties of
//! the recording: [`TraceInfo`], [`Loss`], [`Damage`], the offset of a cut. Events are returned in file
//! order, which is the order in which the runtime wrote them: in time order for each capturing thread, not
//! across threads. [`TimeOrder`] wraps any of them and gives the events of all threads in time order. The
//! module [`raw`] has the layer below: blocks and rows as they are.
//!
//! An [`Event`] borrows its payload and its stack. Its fields are decoded on demand, by the field list of the
//! recording. The runtime's own events are recorded without field lists: `clr-events` provides each as a
//! [`schema`], which gives the same [`Fields`].
//!
//! # Untrusted recordings
//!
//! The traced process, which writes the recordings, need not be trusted. Every length is checked against the
//! available bytes before anything is allocated or skipped; nesting is bounded. A cut or damaged recording
//! yields every event that is whole; the rest is a result ([`Damage`],
//! [`truncated_at`](Events::truncated_at)), not an error. An [`Error`] means that the bytes are not a
//! recording, are of a newer version, or could not be read.
//!
//! # Out of scope
//!
//! This crate opens no file, reads no clock, prints nothing, starts threads only in `par_fold`, and knows
//! neither sockets nor the meaning of events.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![allow(
    clippy::copy_iterator,
    reason = "fields, stacks and labels are small views: a copy of one is a second iteration"
)]
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

mod cursor;

mod damage;
mod error;
mod info;
mod interned;
mod label;
mod loss;
mod metadata;
mod metadata_map;
mod stack;
mod thread;
mod time;
mod utf16;

pub mod schema;
mod value;
mod value_names;

pub mod raw;

mod event;
mod event_buffer;
mod tables;
mod thread_table;

mod engine;

mod record;

mod events;
mod read_buffer;

mod decoder;
#[cfg(feature = "std")]
mod reader;
mod slice;

mod order;
#[cfg(feature = "rayon")]
mod parallel;
#[cfg(feature = "std")]
mod parallel_reader;
#[cfg(feature = "std")]
mod read_at;

pub use damage::Damage;
pub use decoder::{Decoder, PushSource};
pub use error::Error;
pub use event::Event;
pub use event_buffer::EventBuffer;
pub use events::{Events, Source};
pub use info::{Format, TraceInfo};
pub use label::{Label, Labels};
pub use loss::{Gap, Loss};
pub use metadata::{Field, FieldType, Metadata, TypeCode};
pub use metadata_map::MetadataMap;
pub use order::{Interest, TimeOrder};
#[cfg(all(feature = "std", any(unix, windows)))]
pub use read_at::read_file_at;
#[cfg(feature = "std")]
pub use read_at::{ReadAt, ReadAtInput};
#[cfg(feature = "std")]
pub use reader::{ReadSource, Reader};
pub use record::{PassedPoint, Record};
pub use slice::{SliceReader, SliceSource};
pub use stack::Stack;
pub use thread::{Thread, ThreadId};
pub use time::{RelativeTime, SystemTime, Ticks};
pub use utf16::Utf16;
/// The GUID type of activities, providers and fields in this crate's API.
pub use uuid::Uuid;
pub use value::{Array, DateTime, FieldError, Fields, Value};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(Event<'_>, Events<u8>, Metadata, MetadataMap<u8>, Thread, TimeOrder<u8>, TraceInfo)>();
    };
}
