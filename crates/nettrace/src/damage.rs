//! Damaged parts of a recording.

use alloc::borrow::Cow;
use alloc::vec::Vec;

/// Maximum number of listed damages. The traced process controls the count: further ones are only counted.
const LISTED: usize = 1024;

/// An unreadable part of the recording. Everything whole before and after it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Offset in the recording, in bytes, of the first byte that violates the format.
    pub offset: u64,
    /// The number of bytes from there that were skipped.
    pub skipped: u64,
    /// The thing that was expected there, and its fault.
    pub what: Cow<'static, str>,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "offset {}: {} ({} bytes skipped)", self.offset, self.what, self.skipped)
    }
}

/// All damage of a recording.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    pub(crate) listed: Vec<Damage>,
    pub(crate) count: u64,
}

impl Damages {
    pub(crate) fn add(&mut self, offset: u64, skipped: u64, what: impl Into<Cow<'static, str>>) {
        self.count = self.count.saturating_add(1);
        if self.listed.len() < LISTED {
            self.listed.push(Damage { offset, skipped, what: what.into() });
        }
    }

    #[cfg(feature = "std")]
    pub(crate) fn append(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        let room = LISTED.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(room));
    }

    /// Sorts by offset, which damage from several threads is not.
    #[cfg(feature = "rayon")]
    pub(crate) fn sort(&mut self) {
        self.listed.sort_by_key(|damage| damage.offset);
    }
}
