//! What could not be read, and where.

use alloc::borrow::Cow;
use alloc::vec::Vec;

/// Damages beyond this many are counted and not listed: their number is the traced process's to choose.
const LISTED: usize = 1024;

/// A part of the recording that could not be read. What is whole before and after it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

/// All that could not be read.
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

    #[cfg(feature = "rayon")]
    pub(crate) fn append(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        let room = LISTED.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(room));
    }

    /// What was found at the same time is put in the order of the file.
    #[cfg(feature = "rayon")]
    pub(crate) fn sort(&mut self) {
        self.listed.sort_by_key(|damage| damage.offset);
    }
}
