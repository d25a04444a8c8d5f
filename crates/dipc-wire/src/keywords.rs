//! The keywords of events.

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign, Not};

use crate::codec::transparent;

/// Keywords, the groups of a provider's events, as a bit mask. A provider sends the events with at least one
/// requested keyword, and the events without keywords. On the wire a u64.
///
/// The constants, except [`NONE`](Self::NONE) and [`ALL`](Self::ALL), are keywords that tools request from
/// the runtime's own providers.
///
/// ```
/// use dipc_wire::Keywords;
///
/// let keywords = Keywords::GC | Keywords::EXCEPTION | Keywords(0x4000);
/// assert_eq!(keywords, Keywords(0xc001));
/// ```
///
/// # Source
/// `src/coreclr/vm/ClrEtwAll.man` of dotnet/runtime; the sampler's keywords as dotnet-trace sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Keywords(pub u64);

impl Keywords {
    /// No keyword: only events that belong to none.
    pub const NONE: Self = Self(0);
    /// All keywords.
    pub const ALL: Self = Self(u64::MAX);
    /// Collections.
    pub const GC: Self = Self(0x1);
    /// Modules and assemblies.
    pub const LOADER: Self = Self(0x8);
    /// Methods that are compiled at run time.
    pub const JIT: Self = Self(0x10);
    /// Methods that were compiled before.
    pub const NGEN: Self = Self(0x20);
    /// All compiled methods.
    pub const METHODS: Self = Self::JIT.union(Self::NGEN);
    /// Waits for locks.
    pub const CONTENTION: Self = Self(0x4000);
    /// Exceptions.
    pub const EXCEPTION: Self = Self(0x8000);
    /// Samples of stacks, of the provider `Microsoft-DotNETCore-SampleProfiler`.
    pub const SAMPLES: Self = Self(0xF000_0000_0000);

    /// Returns the keywords of both; as `|`, for constants.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the two have a keyword in common.
    ///
    /// ```
    /// use dipc_wire::Keywords;
    ///
    /// assert!(Keywords::METHODS.intersects(Keywords::JIT | Keywords::GC));
    /// assert!(!Keywords::METHODS.intersects(Keywords::GC));
    /// ```
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the mask is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

transparent!(Keywords(u64));

impl From<u64> for Keywords {
    fn from(bits: u64) -> Self {
        Self(bits)
    }
}

impl BitOr for Keywords {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Keywords {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl BitAnd for Keywords {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Keywords {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::LowerHex for Keywords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl fmt::UpperHex for Keywords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::UpperHex::fmt(&self.0, f)
    }
}
