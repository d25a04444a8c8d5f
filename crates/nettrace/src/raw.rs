//! The blocks of a recording and the rows in them, borrowed and as they are: the low-level API.
//!
//! The readers of this crate ([`Reader`](crate::Reader), [`SliceReader`](crate::SliceReader),
//! [`Decoder`](crate::Decoder)) are built on this layer. They are the right choice for events. This layer is
//! for programs that need the bytes of a recording: to rewrite one, to measure how its space is used, to show
//! the content of a block.
//!
//! # Layers
//!
//! 1. [`Header`]: format, version, clock and process of the recording, and the [`Layout`] of all that
//!    follows.
//! 2. [`Blocks`]: an iterator over the blocks of a recording in memory. A [`Block`] has its
//!    [kind](BlockKind), its content and the offsets of both. V1 and V2 do not have blocks: each of their
//!    events counts as a block here.
//! 3. [`Block::parse`]: the content of a block, by kind. Each kind has an iterator over its rows:
//!    [`EventRows`], [`MetadataRows`], [`StackRows`], [`LabelListRows`], [`ThreadRows`] and
//!    [`RemovedThreads`]; a [`SequencePoint`] has threads.
//! 4. Rows: borrowed, with the ids of the recording, resolved to nothing. [`MetadataRow::parse`] copies a row
//!    to a [`Metadata`](crate::Metadata).
//!
//! ```
//! use nettrace::raw::{BlockContent, Blocks};
//!
//! /// The payload bytes of a recording by metadata id.
//! fn sizes(recording: &[u8]) -> Result<std::collections::BTreeMap<u32, usize>, Box<dyn std::error::Error>> {
//!     let mut sizes = std::collections::BTreeMap::new();
//!     for block in Blocks::new(recording)? {
//!         if let BlockContent::Event(block) = block?.parse()? {
//!             for row in block.rows() {
//!                 let row = row?;
//!                 *sizes.entry(row.metadata_id).or_default() += row.payload.len();
//!             }
//!         }
//!     }
//!     Ok(sizes)
//! }
//! ```
//!
//! [`Cursor`] is the checked reader of values below all of these; it is public for programs that read
//! payloads of their own.
//!
//! # Differences from the readers
//!
//! Nothing is repaired, kept or counted. An iterator ends at the first violation of the format, with a
//! [`ParseError`] that has the offset; the readers continue after it. Ids are not resolved, because their
//! meaning depends on the blocks before: a stack id is valid up to the next sequence point, a thread index of
//! V6 up to its removal. Nothing here allocates, except [`MetadataRow::parse`] and the key/value pairs of a
//! [`Header`].

mod block;
mod block_kind;
mod event;
mod frame;
mod header;
mod label_list;
mod layout;
mod metadata;
mod metadata_rows;
mod rows;
mod sequence_point;
mod stack;
mod thread;
mod trace;

pub(crate) mod fast_serialization;
pub(crate) mod v6;

pub use crate::cursor::{Cursor, ReadError, ReadResult};
pub use block::{Block, BlockContent, Blocks};
pub use block_kind::BlockKind;
pub use event::{EventBlock, EventRow, EventRows};
pub use header::Header;
pub use label_list::{LabelListBlock, LabelListRow, LabelListRows};
pub use layout::Layout;
pub use metadata::{MetadataRow, ParsedMetadata};
pub use metadata_rows::MetadataRows;
pub use rows::ParseError;
pub use sequence_point::{SequenceNumber, SequenceNumbers, SequencePoint};
pub use stack::{StackBlock, StackRow, StackRows};
pub use thread::{RemovedThreads, ThreadEntries, ThreadEntry, ThreadRow, ThreadRows};

pub(crate) use event::decoder::{RowDecoder, RowHeader, RowKind, RowResolver, ThreadRef};
pub(crate) use frame::{Frame, ScanResult};
pub(crate) use metadata::MetadataEncoding;
