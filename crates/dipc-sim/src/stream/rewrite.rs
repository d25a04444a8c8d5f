//! Event blocks with changed events.

use nettrace::raw::{self, EventRow, Layout};
use nettrace_synth::{Event, EventBlock};

/// Calls `each` with each event of a block's content; `None` if it is not an event block with compressed
/// headers, as runtimes write it.
pub(super) fn for_each(content: &[u8], mut each: impl FnMut(&Event)) -> Option<()> {
    let block = raw::EventBlock::parse(content, Layout::V4).ok().filter(raw::EventBlock::is_compressed)?;
    let mut event = Event::default();
    for row in block.rows() {
        copy(&row.ok()?, &mut event);
        each(&event);
    }
    Some(())
}

/// Copies a row into an event, with the row's payload.
fn copy(row: &EventRow<'_>, event: &mut Event) {
    let mut payload = std::mem::take(&mut event.payload);
    payload.clear();
    payload.extend_from_slice(row.payload);
    *event = Event {
        metadata_id: row.metadata_id,
        sorted: row.is_sorted,
        sequence: row.sequence,
        thread: row.thread,
        capture_thread: row.capture_thread,
        processor: row.processor,
        stack_id: row.stack_id,
        timestamp: row.time.0,
        activity: row.activity.to_bytes_le(),
        related: row.related_activity.to_bytes_le(),
        payload,
        ..Event::default()
    };
}

/// Returns the content of the same block with its events changed.
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
    fn a_cut_block_is_not_a_block() {
        let mut block = EventBlock::v4();
        block.event(&event(1, 1000));
        let content = block.content();
        for len in 0..content.len() {
            // There may be no events after the header.
            assert_eq!(for_each(&content[..len], |_| ()).is_some(), len == 20, "{len}");
        }
    }
}
