//! What the events of the .NET runtime mean.
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
mod frame;
mod generated;
mod interval;
mod list;
mod map;
mod provider;
mod reader;
mod role;
mod schema;
mod stack;
mod value;
pub mod view;

pub use activity::{ActivityPath, Step, Steps};
pub use code::CodeMap;
pub use frame::{FrameId, Frames};
pub use generated::maps as enums;
pub use interval::{Interval, Intervals};
pub use list::List;
pub use map::{Map, MapKind, Named};
pub use provider::Provider;
pub use role::{ThreadRole, ThreadRoles};
pub use schema::{Count, Field, FieldType, Schema};
pub use stack::{StackId, StackTree};
pub use value::{Array, Fields, Rows, Value};
pub use view::ClrEvent;
