//! The events of a block, as a loop has to know them: who wrote them, when and which of theirs they are.

use super::cursor::Cursor;
use nettrace_synth::{Event, EventBlock};

/// Bits of a row's first byte: which fields follow.
mod bit {
    pub(super) const METADATA_ID: u8 = 1;
    pub(super) const CAPTURE: u8 = 2;
    pub(super) const THREAD: u8 = 4;
    pub(super) const STACK: u8 = 8;
    pub(super) const ACTIVITY: u8 = 16;
    pub(super) const RELATED: u8 = 32;
    pub(super) const SORTED: u8 = 64;
    pub(super) const PAYLOAD_SIZE: u8 = 128;
}

/// Gives each event of a block's content to `each`; `None` if it is not an event block with compressed headers, which is
/// what runtimes write.
pub(super) fn for_each(content: &[u8], mut each: impl FnMut(&Event)) -> Option<()> {
    let mut cursor = Cursor::new(content);
    let header_size = usize::from(cursor.u16()?);
    let compressed = cursor.u16()? & 1 != 0;
    cursor.take(header_size.checked_sub(4)?)?;
    let mut row = Event::default();
    let mut payload_size = 0;
    while compressed && !cursor.is_empty() {
        read(&mut cursor, &mut row, &mut payload_size)?;
        each(&row);
    }
    compressed.then_some(())
}

fn read(cursor: &mut Cursor<'_>, row: &mut Event, payload_size: &mut usize) -> Option<()> {
    let bits = cursor.u8()?;
    let has = |bit| bits & bit != 0;
    if has(bit::METADATA_ID) {
        row.metadata_id = cursor.var_u32()?;
    }
    if has(bit::CAPTURE) {
        row.sequence = row.sequence.wrapping_add(cursor.var_u32()?);
        row.capture_thread = cursor.var_u64()?;
        row.processor = cursor.var_u32()?;
    }
    if row.metadata_id != 0 {
        row.sequence = row.sequence.wrapping_add(1);
    }
    if has(bit::THREAD) {
        row.thread = cursor.var_u64()?;
    }
    if has(bit::STACK) {
        row.stack_id = cursor.var_u32()?;
    }
    row.timestamp = row.timestamp.wrapping_add(cursor.var_u64()?);
    if has(bit::ACTIVITY) {
        row.activity = cursor.array()?;
    }
    if has(bit::RELATED) {
        row.related = cursor.array()?;
    }
    row.sorted = has(bit::SORTED);
    if has(bit::PAYLOAD_SIZE) {
        *payload_size = usize::try_from(cursor.var_u32()?).ok()?;
    }
    row.payload.clear();
    row.payload.extend_from_slice(cursor.take(*payload_size)?);
    Some(())
}

/// The content of the same block with its events changed.
pub(super) fn changed(content: &[u8], mut change: impl FnMut(&mut Event)) -> Option<Vec<u8>> {
    let mut block = EventBlock::v4();
    for_each(content, |event| {
        let mut event = event.clone();
        change(&mut event);
        block.event(&event);
    })?;
    Some(block.content())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u32, timestamp: u64) -> Event {
        Event {
            metadata_id: 1,
            sequence,
            timestamp,
            capture_thread: 7,
            thread: 7,
            payload: vec![1, 2],
            ..Event::default()
        }
    }

    #[test]
    fn rows_survive_being_read_and_written() {
        let mut block = EventBlock::v4();
        let related = [3; 16];
        let events = [
            event(1, 1000),
            Event { related, sorted: true, payload: Vec::new(), ..event(2, 1010) },
            Event { capture_thread: 8, stack_id: 5, processor: u32::MAX, ..event(90, 2000) },
        ];
        for event in &events {
            block.event(event);
        }
        let mut read = Vec::new();
        for_each(&block.content(), |event| read.push(event.clone())).unwrap();
        assert_eq!(read, events);
        assert_eq!(changed(&block.content(), |_| ()).unwrap(), block.content());
    }

    #[test]
    fn a_cut_block_is_no_block() {
        let mut block = EventBlock::v4();
        block.event(&event(1, 1000));
        let content = block.content();
        for len in 0..content.len() {
            // Behind the header there may be no event at all.
            assert_eq!(for_each(&content[..len], |_| ()).is_some(), len == 20, "{len}");
        }
    }
}
