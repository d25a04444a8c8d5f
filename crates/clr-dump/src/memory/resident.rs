//! Pages of a process that take memory.

/// The pages of a process that take memory: they are resident or swapped out. Others were never touched, or were given
/// back.
pub trait ResidentPages {
    /// Returns the bytes of such pages in a range of whole pages; `None` if unknown, or the range too large.
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64>;
}
