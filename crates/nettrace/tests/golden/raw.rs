//! The raw layer against the readers: the same bytes, the same events.

use nettrace::SliceReader;
use nettrace::raw::{Block, BlockContent, BlockKind, Blocks, EventRow, Header, Layout};

use crate::recordings;

/// The values of an event that both layers have: range of the payload, time, metadata id, sequence number.
type Values = (u64, Vec<u8>, u64, u32, u32);

fn blocks(bytes: &[u8]) -> Vec<Block<'_>> {
    let mut blocks = Blocks::new(bytes).expect("a recording");
    let found: Vec<_> = blocks.by_ref().map(|block| block.expect("a whole block")).collect();
    assert_eq!(blocks.offset(), bytes.len(), "the end mark is the last byte");
    found
}

fn events<'a>(block: &Block<'a>) -> Vec<EventRow<'a>> {
    let BlockContent::Event(events) = block.parse().expect("a block") else { return Vec::new() };
    let rows = events.rows().map(|row| row.expect("a whole row"));
    rows.filter(|row| row.metadata_row().is_none()).collect()
}

fn raw_values(bytes: &[u8]) -> Vec<Values> {
    let blocks = blocks(bytes);
    let rows = blocks.iter().flat_map(|block| events(block).into_iter().map(move |row| (block, row)));
    rows.map(|(block, row)| {
        let offset = block.content_offset() + u64::from(row.offset);
        (offset, row.payload.to_vec(), row.time.0, row.metadata_id, row.sequence)
    })
    .collect()
}

#[test]
fn raw_rows_are_the_events_of_the_readers() {
    for recording in recordings() {
        let raw = raw_values(&recording.bytes);
        let mut reader = SliceReader::new(&recording.bytes).expect("a recording");
        let mut read = Vec::new();
        reader
            .for_each(|event| {
                let sequence = event.sequence().unwrap_or(0);
                let id = event.metadata().id();
                read.push((event.offset(), event.payload().to_vec(), event.time().0, id, sequence));
            })
            .expect("a recording");
        assert_eq!(raw.len(), read.len(), "{}", recording.name);
        assert!(raw == read, "{}", recording.name);
    }
}

#[test]
fn raw_threads_stacks_and_activities_match_the_readers() {
    for recording in recordings() {
        let header = Header::parse(&recording.bytes).expect("a recording");
        let pointer_size = header.info().pointer_size;
        let mut reader = SliceReader::new(&recording.bytes).expect("a recording");
        let mut stacks = std::collections::HashMap::new();
        for block in blocks(&recording.bytes) {
            match block.parse().expect("a block") {
                BlockContent::Stack(block) => stacks.extend(block.rows().map(|row| {
                    let row = row.expect("a whole stack");
                    (row.id, row.addresses(pointer_size).collect::<Vec<_>>())
                })),
                BlockContent::SequencePoint(_) => stacks.clear(),
                _ => {}
            }
            for row in events(&block) {
                let event = reader.next().expect("a recording").expect("as many events");
                let name = format!("{} at {}", recording.name, event.offset());
                let expected: Vec<u64> = event.stack().collect();
                if header.layout() == Layout::Netperf {
                    assert_eq!(row.stack.len(), expected.len() * usize::from(pointer_size), "{name}");
                } else {
                    assert_eq!(stacks.get(&row.stack_id).cloned().unwrap_or_default(), expected, "{name}");
                }
                if header.layout() != Layout::V6 {
                    assert_eq!(row.thread, event.thread_id().0, "{name}");
                    assert_eq!(row.capture_thread, event.capture_thread_id().0, "{name}");
                    assert_eq!(Some(row.activity).filter(|id| !id.is_nil()), event.activity(), "{name}");
                }
                assert_eq!(row.is_sorted, event.is_sorted(), "{name}");
            }
        }
    }
}

#[test]
fn raw_metadata_rows_are_the_kinds_of_the_readers() {
    for recording in recordings() {
        let mut raw = Vec::new();
        for block in blocks(&recording.bytes) {
            match block.parse().expect("a block") {
                BlockContent::Metadata(rows) => raw.extend(rows.map(|row| row.expect("a whole row").parse())),
                BlockContent::Event(events) => {
                    let rows = events.rows().filter_map(|row| row.expect("a whole row").metadata_row());
                    raw.extend(rows.map(|row| row.parse()));
                }
                _ => {}
            }
        }
        let raw: Vec<_> = raw.into_iter().map(|row| row.expect("a kind of event").metadata).collect();
        let mut reader = SliceReader::new(&recording.bytes).expect("a recording");
        reader.for_each(|_| {}).expect("a recording");
        for kind in reader.metadata() {
            assert!(raw.contains(kind), "{}: {kind:?}", recording.name);
        }
        assert!(raw.iter().all(|row| reader.metadata().contains(row)), "{}", recording.name);
    }
}

#[test]
fn blocks_follow_one_another_without_a_gap() {
    for recording in recordings() {
        let header = Header::parse(&recording.bytes).expect("a recording");
        let mut next = header.size() as u64;
        for block in blocks(&recording.bytes) {
            let range = block.range();
            assert_eq!(range.start, next, "{}", recording.name);
            let start = usize::try_from(block.content_offset()).expect("in memory");
            assert_eq!(&recording.bytes[start..start + block.content().len()], block.content());
            assert!(block.content_offset() + block.content().len() as u64 <= range.end);
            // Runtimes write no unknown kinds; a recording of our own has one.
            assert!(block.kind() != BlockKind::Unknown || recording.name.starts_with("synth"));
            next = range.end;
        }
        let end_mark = recording.bytes.len() as u64 - next;
        let expected = match (header.info().version, header.layout()) {
            (1 | 2, _) => 17,
            (_, Layout::V6) => 4,
            _ => 1,
        };
        assert_eq!(end_mark, expected, "{}", recording.name);
    }
}

/// Cut anywhere, the blocks are a prefix of all blocks, followed by an error with the offset of the cut
/// block.
#[test]
fn cut_anywhere_blocks_are_a_prefix() {
    for recording in recordings() {
        let whole = blocks(&recording.bytes);
        let length = recording.bytes.len();
        let step = (length / 300).max(1);
        for cut in (0..length).step_by(step) {
            let Ok(mut blocks) = Blocks::new(&recording.bytes[..cut]) else { continue };
            let mut count = 0;
            let error = loop {
                match blocks.next() {
                    Some(Ok(block)) => {
                        assert_eq!(block.range(), whole[count].range(), "{} cut at {cut}", recording.name);
                        count += 1;
                    }
                    Some(Err(error)) => break error,
                    None => panic!("{} cut at {cut} has no error", recording.name),
                }
            };
            let expected = whole.get(count).map_or(error.offset, |block| block.range().start);
            assert_eq!(error.offset, expected, "{} cut at {cut}", recording.name);
            assert!(blocks.next().is_none(), "an iterator ends after its error");
        }
    }
}
