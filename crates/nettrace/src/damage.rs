//! What could not be read, and where.

use alloc::borrow::Cow;

/// A part of the recording that could not be read. What is whole before and after it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the recording, in bytes, of the first byte that makes no sense.
    pub offset: u64,
    /// How many bytes from there were passed over.
    pub skipped: u64,
    /// What was expected and what is wrong with it.
    pub what: Cow<'static, str>,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "offset {}: {} ({} bytes skipped)", self.offset, self.what, self.skipped)
    }
}
