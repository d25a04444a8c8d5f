//! Event blocks of V4, V5 and V6, with headers compressed or not.

use crate::{Bytes, Event, bytes::length16, bytes::length32};

/// The bits of a compressed header's first byte: which groups of fields follow.
pub mod group {
    /// Metadata id.
    pub const METADATA_ID: u8 = 1;
    /// Sequence number, capture thread and processor.
    pub const CAPTURE: u8 = 2;
    /// Thread.
    pub const THREAD: u8 = 4;
    /// Stack id.
    pub const STACK: u8 = 8;
    /// V4, V5: the activity.
    pub const ACTIVITY: u8 = 16;
    /// V6: the label list.
    pub const LABEL_LIST: u8 = 16;
    /// V4, V5: the related activity. V6: nothing.
    pub const RELATED: u8 = 32;
    /// No field: the event is sorted.
    pub const SORTED: u8 = 64;
    /// The size of the payload.
    pub const PAYLOAD_SIZE: u8 = 128;
    /// Every group, and not the sorted bit.
    pub const ALL: u8 = !SORTED;
}

/// The form of the event headers of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Headers of a fixed size; the block's flag is clear.
    Uncompressed,
    /// Compressed headers with the values that differ from the event before, as the runtime writes them.
    Compressed,
    /// Compressed headers with all groups.
    CompressedInFull,
}

/// An event block, or a metadata block of V4 and V5, under construction.
///
/// | offset | size | meaning |
/// |---|---|---|
/// | 0 | 2 | size of this header, itself included |
/// | 2 | 2 | flags: 1 = compressed headers |
/// | 4 | 8 | oldest timestamp of the block |
/// | 12 | 8 | newest timestamp of the block |
/// | 20 | … | reserved, up to the header's size |
/// | … | … | events |
///
/// A compressed event (each value is a `var_u64` unless noted otherwise; an absent value is unchanged from
/// the previous event, and before a block's first event everything is zero):
///
/// | bit | value |
/// |---|---|
/// | – | the bits, one byte |
/// | 1 | metadata id |
/// | 2 | sequence number less the previous one, less 1; capture thread; processor |
/// | 4 | thread |
/// | 8 | stack id |
/// | – | timestamp less the previous one |
/// | 16 | V4, V5: activity, 16 bytes. V6: label list |
/// | 32 | V4, V5: related activity, 16 bytes |
/// | 128 | size of the payload |
/// | – | the payload |
///
/// Without bit 2 the sequence number is the previous one, plus 1 unless the metadata id is 0.
///
/// An uncompressed event: u32 size (not counting itself, counting padding), u32 metadata id with the high bit
/// *set* when the event is *not* sorted, u32 sequence, u64 thread, u64 capture thread, u32 processor, u32
/// stack id, u64 timestamp, then in V4 and V5 two GUIDs and in V6 a u32 label list, u32 size of the payload,
/// the payload, and in V4 and V5 zeros up to a file offset that is a multiple of 4.
///
/// ```
/// use nettrace_synth::{Event, EventBlock, Headers};
///
/// let mut block = EventBlock::v4().with_headers(Headers::Uncompressed);
/// block.event(&Event { metadata_id: 1, timestamp: 5, ..Event::default() });
/// block.event(&Event { metadata_id: 1, timestamp: 9, ..Event::default() });
/// assert_eq!((block.oldest, block.newest, block.flags), (5, 9, 0));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "Event blobs", and
/// `NetTraceFormat.md`, "Event rows"; the sorted bit is as dotnet/runtime's `ep-block.c` and TraceEvent have
/// it, the documents do not define its polarity.
#[derive(Clone, Debug)]
pub struct EventBlock {
    /// The flags of the header; 1 = compressed headers.
    pub flags: u16,
    /// The oldest timestamp, kept up to date by [`EventBlock::event`].
    pub oldest: i64,
    /// The newest timestamp, kept up to date by [`EventBlock::event`].
    pub newest: i64,
    /// The bytes after the known part of the header.
    pub reserved: Vec<u8>,
    /// The size that the header claims, where it is not the true one.
    pub header_size: Option<u16>,
    is_v6: bool,
    headers: Headers,
    last: Event,
    events: Bytes,
}

impl EventBlock {
    /// Creates a block of V4 or V5 with compressed headers.
    pub fn v4() -> Self {
        Self::new(false, Headers::Compressed)
    }

    /// Creates a block of V6 with compressed headers.
    pub fn v6() -> Self {
        Self::new(true, Headers::Compressed)
    }

    /// Sets the form of the headers; to be called before the first event.
    #[must_use]
    pub fn with_headers(self, headers: Headers) -> Self {
        Self { reserved: self.reserved, ..Self::new(self.is_v6, headers) }
    }

    /// Sets further bytes of the header; to be called before the first event.
    #[must_use]
    pub fn with_reserved(self, reserved: &[u8]) -> Self {
        Self { reserved: reserved.to_vec(), ..self }
    }

    fn new(is_v6: bool, headers: Headers) -> Self {
        Self {
            flags: u16::from(headers != Headers::Uncompressed),
            oldest: i64::MAX,
            newest: i64::MIN,
            reserved: Vec::new(),
            header_size: None,
            is_v6,
            headers,
            last: Event::default(),
            events: Bytes::new(),
        }
    }

    /// Adds an event, with the headers that the block was made for.
    pub fn event(&mut self, event: &Event) -> &mut Self {
        match self.headers {
            Headers::Uncompressed => self.uncompressed(event),
            Headers::Compressed => self.compressed(self.needed_groups(event), event),
            Headers::CompressedInFull => {
                self.compressed(group::ALL | if event.sorted { group::SORTED } else { 0 }, event)
            }
        }
    }

    /// Returns the first byte that the runtime writes before this event: the groups that differ, and the
    /// sorted bit.
    pub fn needed_groups(&self, event: &Event) -> u8 {
        let last = &self.last;
        let next_sequence = last.sequence.wrapping_add(u32::from(event.metadata_id != 0));
        let mut groups = 0;
        for (bit, needed) in [
            (group::METADATA_ID, event.metadata_id != last.metadata_id),
            (
                group::CAPTURE,
                event.sequence != next_sequence
                    || event.capture_thread != last.capture_thread
                    || event.processor != last.processor,
            ),
            (group::THREAD, event.thread != last.thread),
            (group::STACK, event.stack_id != last.stack_id),
            (group::ACTIVITY, !self.is_v6 && event.activity != last.activity),
            (group::LABEL_LIST, self.is_v6 && event.label_list != last.label_list),
            (group::RELATED, !self.is_v6 && event.related != last.related),
            (group::SORTED, event.sorted),
            (group::PAYLOAD_SIZE, event.payload.len() != last.payload.len()),
        ] {
            groups |= if needed { bit } else { 0 };
        }
        groups
    }

    /// Adds an event with a compressed header of exactly these groups, needed or not.
    ///
    /// ```
    /// use nettrace_synth::{Event, EventBlock, group};
    ///
    /// // A header that states more than it has to.
    /// let mut block = EventBlock::v6();
    /// let event = Event { metadata_id: 1, sequence: 1, timestamp: 5, ..Event::default() };
    /// let needed = block.needed_groups(&event);
    /// block.compressed(needed | group::STACK, &event);
    /// assert_eq!(needed & group::STACK, 0);
    /// ```
    pub fn compressed(&mut self, groups: u8, event: &Event) -> &mut Self {
        let out = &mut self.events;
        out.u8(groups);
        if groups & group::METADATA_ID != 0 {
            out.var_u64(event.metadata_id.into());
        }
        if groups & group::CAPTURE != 0 {
            out.var_u64(event.sequence.wrapping_sub(self.last.sequence).wrapping_sub(1).into());
            out.var_u64(event.capture_thread).var_u64(event.processor.into());
        }
        if groups & group::THREAD != 0 {
            out.var_u64(event.thread);
        }
        if groups & group::STACK != 0 {
            out.var_u64(event.stack_id.into());
        }
        out.var_u64(event.timestamp.wrapping_sub(self.last.timestamp));
        if groups & group::ACTIVITY != 0 && !self.is_v6 {
            out.raw(&event.activity);
        }
        if groups & group::LABEL_LIST != 0 && self.is_v6 {
            out.var_u64(event.label_list.into());
        }
        if groups & group::RELATED != 0 && !self.is_v6 {
            out.raw(&event.related);
        }
        if groups & group::PAYLOAD_SIZE != 0 {
            out.var_u64(event.payload.len() as u64);
        }
        out.raw(&event.payload);
        self.remember(event)
    }

    /// Adds an event with an uncompressed header.
    pub fn uncompressed(&mut self, event: &Event) -> &mut Self {
        let at = self.events.len();
        let unsorted = if event.sorted { 0 } else { 1 << 31 };
        let out = &mut self.events;
        out.u32(0).u32(event.metadata_id | unsorted).u32(event.sequence);
        out.u64(event.thread).u64(event.capture_thread).u32(event.processor).u32(event.stack_id);
        out.u64(event.timestamp);
        if self.is_v6 {
            out.u32(event.label_list);
        } else {
            out.raw(&event.activity).raw(&event.related);
        }
        out.u32(length32(event.payload.len())).raw(&event.payload);
        if !self.is_v6 {
            // The content of a block begins aligned, so its events are aligned within it, header and all.
            while !(20 + self.reserved.len() + out.len()).is_multiple_of(4) {
                out.u8(0);
            }
        }
        let size = length32(out.len() - at - 4);
        out.set_u32(at, size);
        self.remember(event)
    }

    /// Adds bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.events.raw(bytes);
        self
    }

    fn remember(&mut self, event: &Event) -> &mut Self {
        self.oldest = self.oldest.min(event.timestamp.cast_signed());
        self.newest = self.newest.max(event.timestamp.cast_signed());
        self.last = event.clone();
        self
    }

    /// Returns the content of the block.
    pub fn content(&self) -> Vec<u8> {
        let mut out = Bytes::new();
        out.u16(self.header_size.unwrap_or_else(|| length16(20 + self.reserved.len())));
        out.u16(self.flags).i64(self.oldest).i64(self.newest).raw(&self.reserved).raw(self.events.as_slice());
        out.into_vec()
    }
}

#[cfg(test)]
mod tests;
