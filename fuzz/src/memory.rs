//! The bound of memory: what reads an input holds no more than a fixed amount and a multiple of the input's
//! size.

use std::panic::Location;

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The bytes that a reader may hold whatever its input: tables of a fixed size, and the room for a block that
/// is said to be long, at most 4 MiB, beside the smaller one that it replaces.
const FIXED: usize = 6 << 20;
/// The bytes that a reader may hold for each byte of its input: an interned value has a few words for its few
/// bytes.
const FOR_EACH_BYTE: usize = 1 << 10;

/// Runs `work` on an input of this size.
///
/// # Panics
/// If it holds too much at any time. Inputs are read by one thread at a time.
#[track_caller]
pub fn bounded<T>(input: usize, work: impl FnOnce() -> T) -> T {
    bounded_beyond(0, input, work)
}

/// The same for what may hold so many bytes more whatever its input.
///
/// # Panics
/// As [`bounded`].
#[track_caller]
pub fn bounded_beyond<T>(fixed: usize, input: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let held = ALLOCATOR.peak_usage().saturating_sub(before);
    let most = fixed + FIXED + FOR_EACH_BYTE * input;
    assert!(held <= most, "{held} bytes are held for an input of {input}, at {}", Location::caller());
    result
}
