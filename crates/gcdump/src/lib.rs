//! Heaps of .NET programs as graphs: their objects, the paths that hold them, and the bytes that each
//! retains.
//!
//! **Use it** to read the heap of a process or of a `.gcdump` file: its objects, what holds them, what grew.
//! **Not for** contents of objects, which heap dumps lack: `clr-dump` reads them from memory.
//!
//! Features: `dipc-wire` (the request as a provider of `dipc-client`), `page` (a web page of a heap). Rust
//! 1.89 or later.
//!
//! A runtime sends its heap as events on request: types, objects, references, roots. This crate builds a
//! [`HeapGraph`] from them, reads and writes the `.gcdump` files of dotnet-gcdump, `PerfView` and Visual
//! Studio, and reports the contents of a heap. It does not open files, talk to processes or read a clock.
//!
//! - [`request`](fn@request) returns the providers that a session has to enable.
//! - [`HeapGraphBuilder`] builds a graph from events, in 3 bytes an object and 4 a reference;
//!   [`Completeness`] lists missing parts.
//! - [`MemoryGraphBuilder`] builds one from a heap that is read from memory.
//! - [`mod@file`] reads and writes files. For the same events the file is dotnet-gcdump's, byte for byte.
//! - [`Dominators`] has the retained bytes of each object: the bytes that would be free without it.
//!   [`RetainedSets`] has them for sets of objects.
//! - [`HeapReport`] sums up by type, module or namespace, [`HeapDiff`] compares two reports, [`PathTree`] has
//!   the paths from roots to objects.
//! - [`TypeTree`] is the dominator tree with the objects of a type merged.
//! - [`dotnet_gcdump`] prints that tool's report.
//! - `page` (a feature) writes a web page that shows a heap: treemap, dominator tree, types, paths.
//!
//! ```no_run
//! use gcdump::{Dominators, Grouping, HeapReport, file};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = file::read(&std::fs::read("app.gcdump")?)?;
//! let dominators = Dominators::new(&graph);
//! for row in HeapReport::new(&graph, Grouping::Type, Some(&dominators)).rows {
//!     println!("{} {} {:?} {}", row.objects, row.bytes, row.retained_bytes, row.csharp);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Large heaps
//!
//! | objects, references | graph | while a file is written | with dominators, at most | |
//! |---|---|---|---|---|
//! | 10 million, 12.5 million, with a hole after each object | 96 MB | 146 MB | 400 MB | measured |
//! | 100 million, 300 million | 1.6 GB | 2.1 GB | 5.6 GB | computed |
//!
//! In the first heap half of the objects are strings and arrays that one reference leads to, which take two
//! bits in the algorithm of the dominators; of the second none is assumed.
//!
//! A graph has at most 4,294,967,294 objects and as many references, and objects in 524,287 chunks of 64 KB;
//! further ones are only counted. A file can have 2 GB of records, which is some 200 million objects.
#![cfg_attr(docsrs, feature(doc_cfg))]
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

mod address;
mod builder;
mod completeness;
mod definitions;
mod diff;
mod dominator_tree;
mod dominators;
pub mod dotnet_gcdump;
mod error;
pub mod file;
mod graph;
mod group_references;
mod hanging_trees;
mod large_vec;
mod node_set;
mod object_addresses;
mod object_index;
#[cfg(feature = "page")]
pub mod page;
mod paths;
mod report;
mod request;
mod retained_sets;
mod root_groups;
mod shape_numbers;
mod type_name;
mod type_table;
mod type_tree;

pub use builder::{HeapGraphBuilder, MemoryCompleteness, MemoryGraphBuilder, MemoryType, RootKind};
pub use completeness::Completeness;
pub use definitions::DefinedType;
pub use diff::{DiffRow, HeapChange, HeapDiff};
pub use dominators::Dominators;
pub use error::Error;
pub use graph::{HeapGraph, HeapType, NodeId, Object, RootGroup, TypeId};
pub use paths::{HeapPath, HeapPaths, HeldObjects, PathStep, PathTree};
pub use report::{Grouping, HeapReport, ReportRow, Unreachable};
pub use request::{DumpRequest, request};
pub use retained_sets::{RetainedBytes, RetainedSets};
pub use type_tree::{TypeNode, TypeTree};

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
            Dominators<'_>,
            HeapGraph,
            HeapGraphBuilder,
            MemoryGraphBuilder,
            PathTree,
            RetainedSets<'_>,
            TypeTree,
        )>();
    };
}
