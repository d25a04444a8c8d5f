//! Pages of a process that take memory.

/// Maximum size of memory with pages that are looked at, in bytes: 64 GB take half a second. A process can
/// reserve more.
pub(crate) const MAX_RESIDENT_RANGE: u64 = 64 << 30;

/// The pages of a process that take memory: they are resident or swapped out. Others were never touched, or
/// were given back.
pub trait ResidentPages {
    /// Returns the bytes of such pages in a range of whole pages; `None` if unknown, or the range too large.
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64>;
}
