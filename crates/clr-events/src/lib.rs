//! The schemas and the meaning of the .NET runtime's events.
//!
//! **Use it** to give meaning to the runtime's events: fields, typed views, methods at addresses, stacks.
//! **Not for** other EventSources: their events describe themselves, so `nettrace` alone decodes them.
//!
//! Features: `std` (default; otherwise `no_std` with `alloc`), `json` (fields as JSON). Rust 1.89 or later.
//!
//! A recording carries the runtime's own events without names and fields: provider, number, version and
//! bytes. This crate knows the rest, from a table of facts that was read out of the manifest compiled into
//! .NET.
//!
//! # Fields of any event
//!
//! ```
//! use clr_events::{Provider, Schema};
//!
//! // GC/Stop: u32 count, u32 depth, u16 instance.
//! let schema = Schema::find(Provider::Runtime, 2, 1).expect("a known event");
//! assert_eq!((schema.name, schema.task, schema.opcode_name), ("GC/Stop", "GarbageCollection", "win:Stop"));
//! let payload = [7, 0, 0, 0, 2, 0, 0, 0, 0, 0];
//! for field in schema.fields(&payload, 8) {
//!     let (name, value) = field?;
//!     println!("{name} = {value}");
//! }
//! # Ok::<(), nettrace::FieldError>(())
//! ```
//!
//! # Events that programs work with
//!
//! ```no_run
//! use clr_events::ClrEvent;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! while let Some(event) = events.next()? {
//!     if let Some(ClrEvent::ExceptionStart(thrown)) = ClrEvent::of(&event)? {
//!         println!("{}: {}", thrown.exception_type, thrown.exception_message);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`ids`] has the ids of events as constants, [`sets`] the events of one subject: [`EventSet::contains`]
//! quickly excludes most events from decoding.
//!
//! # Names for stacks
//!
//! Most methods are named at the end of a recording, so it is read twice: once for a [`CodeMap`], and once
//! for the events that need the names.
//!
//! ```no_run
//! use clr_events::CodeMap;
//! use nettrace::Reader;
//! use std::fs::File;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut code = CodeMap::default();
//! Reader::new(File::open("app.nettrace")?)?.for_each(|event| code.add(&event))?;
//! let symbolizer = code.symbolizer();
//! Reader::new(File::open("app.nettrace")?)?.for_each(|event| {
//!     for address in event.stack() {
//!         println!("{}", symbolizer.resolve(event.process_id(), address, event.time()));
//!     }
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! [`CodeFrames`] does the same with a cache, [`StackTree`] keeps stacks, [`Intervals`] turns samples into
//! durations, [`ThreadRoles`] has the purposes of threads, [`ThreadState`] whether they worked or waited,
//! [`ActivityPath`] the content of activity ids.
//!
//! # What this crate does not do
//!
//! The crate does not read files or a clock, does not print, and keeps only the parts of events named above.
//! Events of EventSources describe themselves: see [`nettrace::Event::fields`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![allow(
    clippy::copy_iterator,
    reason = "fields, arrays and lists are small views: copying one is how to look twice"
)]
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

extern crate alloc;

mod activity;
pub mod code;
mod code_frames;
pub mod csharp;
mod dynamic;
mod escape;
mod event_set;
mod generated;
mod glob;
mod interval;
#[cfg(feature = "json")]
pub mod json;
mod kernel_sample;
mod list;
mod lookup;
mod macros;
mod name;
mod native_allocation;
mod provider;
mod reader;
mod role;
mod schema;
mod stack;
pub mod view;
mod wait;
mod wait_role;

/// The reader of recordings. Its types are part of this crate's API.
pub use nettrace;
/// The parts of schemas.
pub use nettrace::schema::{Count, Field, FieldType, NamedValue, ValueNames, ValueNamesKind};

pub use activity::{ActivityPath, Ancestors, PathSegment, PathSegments};
pub use code::CodeMap;
pub use code_frames::{CodeFrameId, CodeFrames};
pub use escape::{escape_controls, escape_controls_from, is_control, may_begin_control, push_escaped};
pub use event_set::EventSet;
pub use generated::{enums, ids, sets};
pub use glob::Glob;
pub use interval::{Interval, Intervals};
pub use kernel_sample::{KernelSample, KernelSampleKind};
pub use list::List;
pub use lookup::event_fields;
pub use name::{EventName, event_name, event_opcode, is_named_by_kind, kind_opcode};
pub use native_allocation::{NativeAllocation, NativeAllocationEnd, NativeAllocationKind};
pub use provider::Provider;
pub use role::{ThreadRole, ThreadRoles};
pub use schema::Schema;
pub use stack::{StackId, StackTree};
pub use view::ClrEvent;
pub use wait::{ThreadState, WaitFrame};

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
        is_send::<(CodeFrames<'static>, CodeMap, EventSet, Glob, Intervals<u8>, StackTree<u8>, ThreadRoles)>(
        );
    };
}
