//! Events with another payload.

use alloc::vec::Vec;

use crate::event::{Event, at};
use crate::raw::{Layout, RowHeader};

/// A reusable buffer for an event with a replaced payload.
#[derive(Debug, Default)]
pub struct EventBuffer {
    header: Option<RowHeader>,
    block: Vec<u8>,
}

impl EventBuffer {
    /// Appends bytes of an event. Returns their offset, which is never 0.
    fn append(&mut self, bytes: &[u8]) -> u32 {
        let offset = u32::try_from(self.block.len()).unwrap_or(u32::MAX);
        self.block.extend_from_slice(bytes);
        offset
    }
}

impl<'a> Event<'a> {
    /// The event with another payload, for everything that decodes events, such as redaction. All else is
    /// unchanged; the [`range`](Self::range) is meaningless if the new payload has another length.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// use nettrace::{EventBuffer, Value};
    ///
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let mut buffer = EventBuffer::default();
    /// let event = events.next()?.expect("an event");
    /// let changed = event.with_payload(&[9, 0, 0, 0], &mut buffer);
    /// assert_eq!(changed.fields().next(), Some(Ok(("Count", Value::U32(9)))));
    /// assert_eq!(changed.time(), event.time());
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    #[must_use]
    pub fn with_payload<'b>(&self, payload: &[u8], buffer: &'b mut EventBuffer) -> Event<'b>
    where
        'a: 'b,
    {
        let mut header = *self.header;
        buffer.block.clear();
        // The header's own bytes keep their distance to the payload.
        let own = self.header.payload.checked_sub(self.header.start);
        let own = own.and_then(|length| at(self.block, self.header.start, length));
        buffer.append(own.filter(|own| !own.is_empty()).unwrap_or(&[0; 4]));
        header.start = 0;
        header.payload = buffer.append(payload);
        header.payload_len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if self.layout != Layout::V6 {
            for offset in [&mut header.activity, &mut header.related] {
                if *offset != 0 {
                    *offset = at(self.block, *offset, 16).map_or(0, |guid| buffer.append(guid));
                }
            }
        }
        if self.layout == Layout::Netperf {
            let stack = self.stack();
            let length = u32::try_from(stack.as_bytes().len()).unwrap_or(u32::MAX);
            header.stack = buffer.append(&length.to_le_bytes());
            buffer.append(stack.as_bytes());
        }
        let EventBuffer { header: place, block } = buffer;
        Event { header: place.insert(header), block, block_offset: self.offset(), ..*self }
    }
}
