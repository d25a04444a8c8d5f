//! Roles of frames in waits. A frame can have several.

pub(crate) const WAIT: u8 = 1;
/// Between a wait and the method that waits.
pub(crate) const BETWEEN: u8 = 2;
/// The method waits for work.
pub(crate) const WAIT_FOR_WORK: u8 = 4;
/// A wait for work without a frame of its own.
pub(crate) const IDLE: u8 = 8;
/// A wait in the midst of work without a frame of its own.
pub(crate) const BLOCKING_CALL: u8 = 16;
/// Native code, or code without a name.
pub(crate) const OPAQUE: u8 = 32;
/// A wait that uses a processor for a while.
pub(crate) const SPIN: u8 = 64;
/// Native code of the runtime.
pub(crate) const RUNTIME: u8 = 128;
pub(crate) const SPINNING_WAIT: u8 = WAIT | SPIN;
