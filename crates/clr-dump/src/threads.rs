//! Threads with their stacks, exceptions and monitors.

pub(crate) mod exception;
pub(crate) mod lock;
pub(crate) mod stack;
pub(crate) mod thread;
