//! Types and methods, with their names and fields.

pub(crate) mod delegate;
pub(crate) mod enumeration;
pub(crate) mod field;
pub(crate) mod names;
pub(crate) mod signature;
