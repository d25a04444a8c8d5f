//! Managed code by address.

pub(crate) mod map;
pub(crate) mod ready_to_run;
