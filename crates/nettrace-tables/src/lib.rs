//! Recordings of many machines as one SQL data set: events, samples, stacks and frames in Parquet files.
//!
//! **Use it** to query recordings of many machines in SQL. **Not for** one recording, for which reports are
//! quicker (`nettrace-export`).
//!
//! Features: `parquet` (default: files of tables), `zstd`. Rust 1.89 or later.
//!
//! DuckDB, DataFusion, Spark, Trino and ClickHouse read the files; this crate writes them, and has the
//! [views] for queries.
//!
//! ```no_run
//! # #[cfg(feature = "parquet")]
//! # fn main() -> Result<(), nettrace_tables::Error> {
//! use nettrace_tables::{Dataset, Input, Labels, Options};
//!
//! let mut labels = Labels::default();
//! labels.insert("service", "shop");
//! labels.insert("version", "1.4");
//! let dataset = Dataset::new("data", Options::default());
//! let plan = dataset.plan(vec![Input::open("app.nettrace".as_ref(), labels)?])?;
//! for shard in &plan.shards {
//!     let summary = dataset.export(shard)?;
//!     println!("{:?}", summary.files);
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "parquet"))]
//! # fn main() {}
//! ```
//!
//! # Tables
//!
//! [`TABLES`] has all columns. Each event of a recording is one row of `events` or `samples`, or is counted
//! in `recordings.left_out`. `stack_id` refers to `stacks` and `frames`; `losses` and `damages` list missing
//! events and bytes.
//!
//! # Identity
//!
//! A frame is identified by a hash of its kind, module, type, method and signature, and a stack by a hash of
//! its caller's id and its frame's. Neither contains an address, a path or a version, so that a method and a
//! stack have the same id in all recordings. Code without a name is identified by the reason for that and by
//! its file. A row of `stacks` and `frames` may occur several times: the views take one for each id.
//!
//! # Data sets
//!
//! A [`Dataset`] is a directory: `TABLE/date=DATE/service=NAME/SHARD.parquet`. The name of a shard is a hash
//! of its recordings. The same recordings give the same bytes. Files are moved into place when all files of a
//! shard are complete, `recordings` last. Recordings that are in place are not exported again: an export that
//! was killed continues where it stopped.
//!
//! Any other place is a [`Storage`].
//!
//! # Further columns
//!
//! A [`PromotedColumn`] has a field of an event. The data set keeps its promoted columns in files of the
//! folder `_promoted`: from then on all exports into it have the column, and a name never changes its field
//! or its type.
//!
//! # Memory
//!
//! Bounded for recordings of any size: row groups are written as they fill, stacks are forgotten when there
//! are too many, and the names of at most some 100,000 methods of a recording are kept.
//!
//! # Features
//!
//! `parquet`, which is on by default, writes files, compressed by gzip; `zstd` compresses better and compiles
//! C. Without either feature the crate has the columns and the views, and no dependencies.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
mod code_ids;
#[cfg(feature = "parquet")]
mod column;
#[cfg(feature = "parquet")]
mod dataset;
#[cfg(feature = "parquet")]
mod error;
#[cfg(feature = "parquet")]
mod event_rows;
#[cfg(feature = "parquet")]
mod id;
#[cfg(feature = "parquet")]
mod input;
mod promoted;
#[cfg(feature = "parquet")]
mod promoted_values;
#[cfg(feature = "parquet")]
mod rewrite;
mod schema;
#[cfg(feature = "parquet")]
mod storage;
#[cfg(feature = "parquet")]
mod survey;
#[cfg(feature = "parquet")]
mod table_writer;
#[cfg(feature = "parquet")]
mod typed;
pub mod views;

#[cfg(feature = "parquet")]
pub use dataset::{Dataset, Plan, Shard, ShardSummary};
#[cfg(feature = "parquet")]
pub use error::Error;
#[cfg(feature = "parquet")]
pub use event_rows::{Counts, Options};
#[cfg(feature = "parquet")]
pub use id::Id;
#[cfg(feature = "parquet")]
pub use input::{Input, Labels};
pub use promoted::{PROMOTED_FOLDER, PromotedColumn, PromotedType};
#[cfg(feature = "parquet")]
pub use rewrite::{PayloadRewriter, Rewritten};
pub use schema::{Column, ColumnType, SCHEMA_VERSION, TABLES, Table};
#[cfg(feature = "parquet")]
pub use storage::{Directory, Storage};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
