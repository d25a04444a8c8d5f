//! `.gcdump` files: a graph in the serialization format of .NET's own performance tools.
//!
//! # Source
//! microsoft/perfview, `src/MemoryGraph/graph.cs` and `src/FastSerialization/FastSerialization.cs`;
//! dotnet/diagnostics, `src/Tools/dotnet-gcdump`.

mod input;
mod number;
mod reader;
mod writer;

pub use reader::read;
pub use writer::{Writer, write};

/// The first text of every file.
const MAGIC: &str = "!FastSerialization.1";

/// Tags in front of objects and fields.
mod tag {
    pub(super) const NULL: u8 = 1;
    pub(super) const OBJECT_REFERENCE: u8 = 2;
    pub(super) const BEGIN: u8 = 4;
    pub(super) const BEGIN_PRIVATE: u8 = 5;
    pub(super) const END: u8 = 6;
    pub(super) const BYTE: u8 = 8;
    pub(super) const SKIP: u8 = 12;
    pub(super) const STRING: u8 = 13;
}
