//! Writing of V4 objects at any offset of a stream.

use std::ops::Range;

/// The tag after an object's type and data.
const END_OBJECT: u8 = 6;
/// The tag of an absent object, which also marks the end of the stream.
pub(super) const NULL_REFERENCE: u8 = 1;

/// A writer of blocks, which are aligned to their offset in the stream.
pub(super) struct BlockWriter<'o> {
    bytes: &'o mut Vec<u8>,
    /// The stream's offset of the first byte.
    base: u64,
}

impl<'o> BlockWriter<'o> {
    pub(super) fn new(bytes: &'o mut Vec<u8>, base: u64) -> Self {
        Self { bytes, base }
    }

    /// Returns the stream's offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    pub(super) fn write_raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a block with the given tags and type as `head`.
    pub(super) fn write_block(&mut self, head: &[u8], content: &[u8]) {
        self.write_raw(head);
        self.write_raw(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        while !self.offset().is_multiple_of(4) {
            self.write_raw(&[0]);
        }
        self.write_raw(content);
        self.write_raw(&[END_OBJECT]);
    }

    /// Writes a block of the type `name`.
    pub(super) fn write_named_block(&mut self, name: &str, content: &[u8]) {
        let mut head = vec![5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0];
        head.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        head.extend(name.bytes());
        head.push(END_OBJECT);
        self.write_block(&head, content);
    }

    /// Writes a sequence point: the id of each thread, and the sequence number of its last event.
    pub(super) fn write_sequence_point(
        &mut self,
        ticks: u64,
        threads: impl ExactSizeIterator<Item = (u64, u32)>,
    ) {
        let mut content = ticks.to_le_bytes().to_vec();
        content.extend(u32::try_from(threads.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (thread, sequence) in threads {
            content.extend(thread.to_le_bytes());
            content.extend(sequence.to_le_bytes());
        }
        self.write_named_block("SPBlock", &content);
    }

    /// Writes the mark of the stream's end.
    pub(super) fn write_end(&mut self) {
        self.write_raw(&[NULL_REFERENCE]);
    }
}

/// Returns a range of a recording's bytes; empty if the recording is shorter.
pub(super) fn slice<'a>(bytes: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    bytes.get(range.clone()).unwrap_or_default()
}
