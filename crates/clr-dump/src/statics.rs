//! The places of static fields, and the types that have them.

pub(crate) mod field;
pub(crate) mod instances;
pub(crate) mod objects;
pub(crate) mod places;
pub(crate) mod thread;

use crate::dump::view;

view! {
    /// The static fields of a dump, of all threads and of each thread.
    Statics, statics
}
