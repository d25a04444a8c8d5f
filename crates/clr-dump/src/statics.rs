//! The places of static fields, and the types that have them.

pub(crate) mod collections;
pub(crate) mod field;
pub(crate) mod instances;
pub(crate) mod load_contexts;
pub(crate) mod objects;
pub(crate) mod places;
pub(crate) mod properties;
pub(crate) mod thread;
pub(crate) mod timers;

use crate::dump::view;

view! {
    /// The static fields of a dump, of all threads and of each thread.
    Statics, statics
}
