//! Objects of V4 in the midst of a stream.

use std::ops::Range;

/// The tag behind an object's type and data.
const END_OBJECT: u8 = 6;
/// Stands in place of an object, and ends the stream.
pub(super) const NULL_REFERENCE: u8 = 1;

/// Bytes that follow others of the same stream: blocks are aligned to its offset.
pub(super) struct Output<'o> {
    bytes: &'o mut Vec<u8>,
    /// The stream's offset of the first byte.
    base: u64,
}

impl<'o> Output<'o> {
    pub(super) fn new(bytes: &'o mut Vec<u8>, base: u64) -> Self {
        Self { bytes, base }
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A block behind the given tags and type.
    pub(super) fn block(&mut self, head: &[u8], content: &[u8]) {
        self.raw(head);
        self.raw(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        while !self.offset().is_multiple_of(4) {
            self.raw(&[0]);
        }
        self.raw(content);
        self.raw(&[END_OBJECT]);
    }

    /// A block with this type's name, as runtimes write it.
    pub(super) fn named_block(&mut self, name: &str, content: &[u8]) {
        let mut head = vec![5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0];
        head.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        head.extend(name.bytes());
        head.push(END_OBJECT);
        self.block(&head, content);
    }

    /// A sequence point: threads, and the number of the last event of each.
    pub(super) fn sequence_point(&mut self, ticks: u64, threads: impl ExactSizeIterator<Item = (u64, u32)>) {
        let mut content = ticks.to_le_bytes().to_vec();
        content.extend(u32::try_from(threads.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (thread, sequence) in threads {
            content.extend(thread.to_le_bytes());
            content.extend(sequence.to_le_bytes());
        }
        self.named_block("SPBlock", &content);
    }

    /// The mark of the stream's end.
    pub(super) fn end(&mut self) {
        self.raw(&[NULL_REFERENCE]);
    }
}

/// A part of a recording; empty if the recording is shorter.
pub(super) fn part<'a>(bytes: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    bytes.get(range.clone()).unwrap_or_default()
}
