//! The places of static fields, and the types that have them.

pub(crate) mod instances;
pub(crate) mod places;
pub(crate) mod thread;
