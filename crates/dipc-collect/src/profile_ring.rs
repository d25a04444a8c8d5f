//! A ring of recordings in a folder: the samples of a machine, cut into segments, until they are too old or
//! too many.
//!
//! [`ContinuousSampler`](crate::kernel_samples::ContinuousSampler) fills it, and [`read_range`] answers for a
//! time range afterwards. Each segment is a whole recording in a file, with its times in its name. A file has
//! its name once it is complete, so that a program that is killed loses the current segment alone.

mod folder;
mod range;
mod segment;
mod store;

pub use folder::{ProfileRing, StoredSegment, stored_segments};
pub use range::{RangeError, RangeRecording, RangeRequest, read_range};
pub use segment::Segment;
pub use store::{RingTotals, SegmentStore, StoreEvent};
