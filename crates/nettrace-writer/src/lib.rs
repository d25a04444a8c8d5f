//! Writes .NET EventPipe recordings: nettrace V4 and V6, from the events that `nettrace` reads.
//!
//! **Use it** to write recordings: a reader's recording in another version or in part, many merged, or events
//! of your own. **Not for** selecting time ranges and threads or redacting strings: `nettrace-edit` does that
//! with this crate.
//!
//! Features: `std` (default; otherwise `no_std` with `alloc`). Rust 1.89 or later.
//!
//! # Rewriting a recording
//!
//! ```no_run
//! use nettrace::Record;
//! use nettrace_writer::{Version, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let info = events.info().ok_or("an empty file")?;
//! let mut writer = Writer::new(Version::of(info), info, std::fs::File::create("gc.nettrace")?)?;
//! while let Some(record) = events.next_record()? {
//!     match &record {
//!         Record::Event(event) if event.keywords() & 1 == 0 => writer.remove(event),
//!         _ => writer.write(&record)?,
//!     }
//! }
//! let (_, omissions) = writer.finish(events.threads())?;
//! println!("{} field lists could not be said", omissions.field_lists);
//! # Ok(())
//! # }
//! ```
//!
//! # Contents
//!
//! * [`Transcoder`] turns the records of a reader into bytes, without input or output.
//! * [`Writer`] (feature `std`) writes them to a [`std::io::Write`].
//! * [`transcode`] rewrites a whole recording, also netperf.
//! * [`EventWriter`] writes events from other sources than a recording.
//! * [`merge`] writes many recordings into a single V6 recording: [`MergeOrder`] orders their events by time,
//!   [`Merger`] encodes them.
//!
//! # Guarantees
//!
//! A recording that is written without omissions has the same events: times, threads, sequence numbers,
//! processors, stacks, activities, labels, payloads, kinds with their fields, in the same order; and the same
//! losses. [`Omissions`] counts the things that a version cannot express. The bytes are canonical: they
//! depend only on the records, and writing a written recording again gives the same bytes.
//!
//! | | V4 | V6 |
//! |---|---|---|
//! | names and processes of threads, labels besides activities | no | yes |
//! | templates, descriptions and further pairs of kinds of events | no | yes |
//! | fields of V6's own types; times as `SYSTEMTIME` | no | yes |
//! | versions and levels above 255 | yes | no |
//! | the type of fields that are times before V6 | yes | as numbers of 64 bits |
//!
//! Events that are [removed](Transcoder::remove) leave no gap in the sequence numbers of their thread, and
//! losses remain gaps. The losses of a [skipped](Transcoder::skip) part are left out with it.
//!
//! # Out of scope
//!
//! This crate opens no file, chooses no events, and knows nothing of their meaning.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of things that are in memory, and whose bytes are checked against the size of a block"
)]

extern crate alloc;

mod bytes;
mod error;
mod omissions;
mod version;

mod container;
mod event_block;
mod event_kind;
mod interner;
mod labels;
mod metadata;

mod encoder;
mod thread_state;

mod transcoder;

mod clock;
mod merge_order;
mod merger;
mod process_ids;
mod repeated;

mod copy;
mod event_writer;
#[cfg(feature = "std")]
mod writer;

pub use clock::ClockRelation;
pub use copy::{merge, transcode};
pub use error::Error;
pub use event_kind::{EventKind, FieldKind};
pub use event_writer::{Activities, EventKindId, EventWriter, OwnEvent, ThreadIndex};
pub use merge_order::MergeOrder;
pub use merger::{Merger, MergerOptions, REQUESTED_EVENTS};
pub use omissions::Omissions;
pub use transcoder::Transcoder;
pub use version::Version;
#[cfg(feature = "std")]
pub use writer::Writer;

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
        is_send::<(EventWriter, MergeOrder<u8>, Merger, MergerOptions, Transcoder)>();
    };
}
