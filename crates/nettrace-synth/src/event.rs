//! An event, and the stacks that events refer to.

use crate::{Bytes, Guid, bytes::length32};

/// An event, with the header fields of all versions. Each version writes its own fields:
///
/// | field | V1–V3 | V4, V5 | V6 |
/// |---|---|---|---|
/// | `metadata_id` | i32 (V1, V2: a stream offset) | u32, 31 bits | u32, 31 bits |
/// | `sorted` | – | yes | yes |
/// | `sequence` | – | u32 | u32 |
/// | `thread` | 32 bits | an operating system's thread id | an index of the thread table |
/// | `capture_thread` | – | same | same |
/// | `processor` | – | u32 | u32 |
/// | `stack_id` | – | u32 | u32 |
/// | `timestamp` | yes | yes | yes |
/// | `activity`, `related` | yes | yes | – (labels instead) |
/// | `label_list` | – | – | u32 |
/// | `payload` | yes | yes | yes |
/// | `stack` | after the payload | – (`stack_id` instead) | – |
///
/// ```
/// use nettrace_synth::{Event, Value, payload};
///
/// let event = Event {
///     metadata_id: 1,
///     sequence: 1,
///     thread: 7,
///     capture_thread: 7,
///     timestamp: 1_000_000,
///     payload: payload(&[Value::UInt32(42)]),
///     ..Event::default()
/// };
/// assert_eq!(event.payload, [42, 0, 0, 0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Id of its metadata.
    pub metadata_id: u32,
    /// No later event is older than this one.
    pub sorted: bool,
    /// Sequence number of the event within its capture thread, from 1, including lost events.
    pub sequence: u32,
    /// The thread that the event is about.
    pub thread: u64,
    /// The thread that wrote it.
    pub capture_thread: u64,
    /// The processor that wrote it; `u32::MAX` where that is not known.
    pub processor: u32,
    /// The stack, 0 for none.
    pub stack_id: u32,
    /// Ticks.
    pub timestamp: u64,
    /// The activity, all zeros for none.
    pub activity: Guid,
    /// The related activity, all zeros for none.
    pub related: Guid,
    /// The label list, 0 for the empty one.
    pub label_list: u32,
    /// The field values.
    pub payload: Vec<u8>,
    /// The addresses of the stack, leaf first, as [`stack_bytes`] makes them.
    pub stack: Vec<u8>,
}

/// Returns the addresses of a stack, leaf first, as they are written with pointers of `pointer_size` bytes.
///
/// A pointer shorter than eight bytes loses the high bytes of the value.
///
/// ```
/// use nettrace_synth::{stack_block, stack_bytes};
///
/// let stack = stack_bytes(&[0x1010, 0x2020], 8);
/// assert_eq!(stack.len(), 16);
/// // The id of the first stack, the count, and each stack after its size.
/// assert_eq!(stack_block(1, &[stack])[..12], [1, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0]);
/// ```
pub fn stack_bytes(addresses: &[u64], pointer_size: usize) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_le_bytes().into_iter().take(pointer_size)).collect()
}

/// Returns the content of a stack block: stacks with the ids `first_id`, `first_id + 1` and so on.
///
/// | size | meaning |
/// |---|---|
/// | 4 | first id |
/// | 4 | count |
/// | 4, then that many bytes | one stack: its size in bytes, its addresses; `count` times |
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md` and `NetTraceFormat.md`, "StackBlock
/// Object".
pub fn stack_block(first_id: u32, stacks: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Bytes::new();
    out.u32(first_id).u32(length32(stacks.len()));
    for stack in stacks {
        out.u32(length32(stack.len())).raw(stack);
    }
    out.into_vec()
}

#[cfg(test)]
mod tests {
    use super::{stack_block, stack_bytes};

    #[test]
    fn stacks_have_addresses_of_the_pointer_size() {
        let stacks = [stack_bytes(&[0x0102_0304, 5], 4), stack_bytes(&[0x01_0203_0405], 8), Vec::new()];
        let expected = [
            &[7, 0, 0, 0, 3, 0, 0, 0][..],
            &[8, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0],
            &[8, 0, 0, 0, 5, 4, 3, 2, 1, 0, 0, 0],
            &[0, 0, 0, 0],
        ];
        assert_eq!(stack_block(7, &stacks), expected.concat());
    }
}
