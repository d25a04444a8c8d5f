//! Profiles and reports out of .NET EventPipe recordings.
#![forbid(unsafe_code)]

pub mod format;
mod frame;
pub mod kind;
mod measure;
mod profile;
mod track;
mod tree;

pub use format::{Format, Labels, write};
pub use frame::{FrameId, Frames};
pub use measure::{Measure, Unit};
pub use profile::{Process, Profile, Site, Thread};
pub use track::{Span, Track};
pub use tree::{Node, NodeId, Tree};
