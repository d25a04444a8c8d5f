//! Types and methods, with their names and fields.

pub(crate) mod calls;
pub(crate) mod enumeration;
pub(crate) mod field;
pub(crate) mod instructions;
pub(crate) mod method;
pub(crate) mod names;
#[cfg(feature = "analysis")]
pub(crate) mod receivers;
pub(crate) mod signature;

use crate::dump::view;

view! {
    /// The types and methods of a dump: their names, modules and fields.
    Types, types
}
