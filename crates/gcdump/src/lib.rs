//! Heaps of .NET programs as graphs: which objects there are, what holds them, and how much each holds.
//!
//! A runtime that is asked for it sends its heap as events: types, objects, references, roots. This crate makes a [`HeapGraph`] of them, reads
//! and writes the `.gcdump` files of dotnet-gcdump, `PerfView` and Visual Studio, and says what a heap consists of. It reads no file, asks no
//! process and knows no clock.
//!
//! - [`request`](fn@request) says what a session has to ask the runtime for.
//! - [`HeapGraphBuilder`] is the way from events to a graph, in 4.3 bytes an object and 4 a reference; [`Completeness`] says what is missing.
//! - [`mod@file`] has the way from files to graphs and back. Of the same events the file is dotnet-gcdump's, byte for byte.
//! - [`Dominators`] knows what each object retains: the bytes that would be free without it. [`RetainedSets`] knows that of sets of objects.
//! - [`Report`] sums up by type, module or namespace, [`Diff`] compares two of them, [`PathTree`] knows through what roots reach objects.
//! - [`TypeTree`] is the dominator tree with the objects of a type put together.
//! - [`dotnet_gcdump`] prints that tool's report.
//!
//! ```no_run
//! use gcdump::{Dominators, Grouping, Report, file};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = file::read(&std::fs::read("app.gcdump")?)?;
//! let dominators = Dominators::new(&graph);
//! for row in Report::new(&graph, Grouping::Type, Some(&dominators)).rows {
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
//! | 10 million, 12.5 million, with a hole behind each object | 142 MB | 192 MB | 512 MB | measured |
//! | 100 million, 300 million | 2.0 GB | 2.5 GB | 6.8 GB | computed |
//!
//! A graph has at most 4,294,967,294 objects and as many references, and objects in 524,287 chunks of 64 KB; further ones are counted. A file
//! can have 2 GB of records, which is some 200 million objects.
//!
//! # Modules
//!
//! - `request`: the session that makes a runtime dump its heap.
//! - `address`, `object_addresses`, `object_index`: addresses in 32 bits, and objects by address.
//! - `type_name`, `type_table`, `root_groups`, `definitions` (types as their modules define them, from the
//!   caller).
//! - `builder`: from events to the `graph`, with its `completeness`.
//! - `file`: `.gcdump` files, read and written.
//! - `dominators`, `retained_sets`, `paths`, `type_tree`: computations over a graph.
//! - `report`, `diff`, `dotnet_gcdump`: sums, and the text of that tool.
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
mod dominators;
pub mod dotnet_gcdump;
mod error;
pub mod file;
mod graph;
mod object_addresses;
mod object_index;
mod paths;
mod report;
mod request;
mod retained_sets;
mod root_groups;
mod type_name;
mod type_table;
mod type_tree;

pub use builder::HeapGraphBuilder;
pub use completeness::Completeness;
pub use definitions::DefinedType;
pub use diff::{Change, Diff, DiffRow};
pub use dominators::Dominators;
pub use error::Error;
pub use graph::{HeapGraph, HeapType, NodeId, Object, RootGroup, TypeId};
pub use paths::{Path, PathTree, Paths, Step};
pub use report::{Grouping, Report, Row, Unreachable};
pub use request::{DumpRequest, request};
pub use retained_sets::{RetainedBytes, RetainedSets};
pub use type_tree::{TypeNode, TypeTree};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
