//! Parts and redacted copies of .NET EventPipe recordings, and rings of the last events of a stream.
//!
//! **Use it** to cut, redact, filter or keep the last seconds of recordings in a program. **Not for**
//! recordings that are to be read only: `nettrace` has their events.
//!
//! Features: none. Rust 1.89 or later.
//!
//! - [`copy`] writes the part of a recording that a [`RecordSelector`] chooses. [`Slice`] chooses events by
//!   time, thread, process, provider and name ([`Criteria`]), and keeps the events that these need, so that
//!   the part has the names of its code and types. A [`Redactor`] replaces strings such as command lines and
//!   paths.
//! - [`Ring`] holds the last events of a live stream within limits on time and bytes, in memory or in files.
//!   A [`Snapshot`] of it is a whole recording.
//! - [`Rotation`] writes a stream as consecutive recordings.
//! - [`Filter`] applies criteria to events, and explains values that [match nothing](UnmatchedCriterion).
//! - [`MergedRecording`] writes many recordings as one; [`MappingIds`] renumbers the mapped files of
//!   recordings of whole machines in it.
//!
//! # Redacting a part of a recording
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use nettrace::RelativeTime;
//! use nettrace_edit::{Criteria, RedactionLetters, Redactor, Slice};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let seconds = |seconds| Some(RelativeTime::after_start(Duration::from_secs(seconds)));
//! let criteria = Criteria::default().with_from(seconds(5)).with_to(seconds(8));
//! let redactor = Redactor::new(vec!["command-lines".parse()?, "paths".parse()?], RedactionLetters::by_text());
//! let mut slice = Slice::new(criteria).with_redactor(redactor);
//! let (input, mut output) = (std::fs::File::open("app.nettrace")?, std::fs::File::create("part.nettrace")?);
//! let copied = nettrace_edit::copy(input, &mut output, &mut slice)?;
//! println!("{} of {} events", copied.kept, copied.read);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
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

pub use nettrace;
pub use nettrace_writer;

mod error;

mod filter;
mod redact;

mod copy;
mod range;
mod record_selector;
mod slice;

mod mapping_ids;
mod merged;

mod names_store;
mod receipt_clock;
mod ring;
mod rotation;
mod segment;
mod snapshot;

pub use clr_events::Glob;
pub use copy::{Copier, CopySummary, copy, write_to};
pub use error::Error;
pub use filter::{Criteria, EventMatch, Filter, TrackedCriteria, UnmatchedCriterion};
pub use mapping_ids::MappingIds;
pub use merged::MergedRecording;
pub use range::RecordedRange;
pub use record_selector::{EventDecision, KeepAll, RecordSelector};
pub use redact::{InvalidRedaction, Redacted, Redaction, RedactionClass, RedactionLetters, Redactor};
pub use ring::{Ring, RingCapacity};
pub use rotation::Rotation;
pub use segment::{Segment, SegmentReader, SegmentStorage};
pub use slice::Slice;
pub use snapshot::{RecordingSummary, Snapshot};

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
        is_send::<(
            Copier<u8>,
            Criteria,
            Filter,
            MappingIds,
            MergedRecording,
            Redactor,
            Ring,
            Rotation,
            Segment,
            Slice,
            Snapshot,
        )>();
    };
}
