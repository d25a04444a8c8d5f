//! Profiles and reports out of .NET EventPipe recordings.
#![forbid(unsafe_code)]

mod by;
pub mod format;
mod frame;
mod gather;
pub mod kind;
mod measure;
mod pattern;
mod profile;
pub mod report;
mod shape;
mod track;
mod weigh;

pub use by::By;
pub use format::{Format, Labels, write};
pub use frame::{FrameId, Frames};
pub use gather::{Gatherer, Missing, Options};
pub use measure::{Measure, Unit};
pub use pattern::Pattern;
pub use profile::{Process, Profile, Site, Thread};
pub use shape::Shape;
pub use track::{Span, Track};
