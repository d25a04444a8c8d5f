//! Methods that `await`, and what they wait for.

pub(crate) mod async_roles;
pub(crate) mod async_type;
pub(crate) mod chain;
pub(crate) mod graph;
