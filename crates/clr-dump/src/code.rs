//! Managed code by address.

pub(crate) mod debug_info;
pub(crate) mod gc_info;
pub(crate) mod map;
pub(crate) mod method_info;
pub(crate) mod native_array;
pub(crate) mod ready_to_run;
