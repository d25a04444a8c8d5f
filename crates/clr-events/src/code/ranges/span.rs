//! Things that lie at addresses for some time.

use nettrace::Ticks;

/// Something that lies at addresses for some time.
pub(crate) trait Span: Copy {
    /// First address.
    fn start(&self) -> u64;
    /// Last address.
    fn last(&self) -> u64;
    /// Since when; 0 if that is not known.
    #[inline]
    fn from(&self) -> Ticks {
        Ticks(0)
    }
    /// Until when; the maximum if that is not known.
    #[inline]
    fn to(&self) -> Ticks {
        Ticks(u64::MAX)
    }
    /// Ranges that begin at one address and are ordered as equal may be one thing that several events
    /// describe.
    fn order(&self) -> (u64, u64);
    /// Takes in another that begins at the same address, if both are the same thing.
    fn merge_with(&mut self, other: &Self) -> bool;
}

/// The result of [`Ranges::find`](super::Ranges::find).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The index of the range.
    pub(crate) index: usize,
    /// No other code was ever at the address: the answer is the same for all times.
    pub(crate) is_only: bool,
}

/// Returns the distance of a time from a range's lifetime, which is 0 within it, and the time since the range
/// began, which is 0 before it. The least of these belongs to the newest range that was live, or else to the
/// nearest.
#[inline]
pub(super) fn distance<T: Span>(range: &T, time: Ticks) -> (u64, u64) {
    let away = range.from().0.saturating_sub(time.0).max(time.0.saturating_sub(range.to().0));
    (away, time.0.saturating_sub(range.from().0))
}
