//! Parts of recordings of which some blocks are not read.

use std::io::{Cursor, Seek as _};

use nettrace::{Reader, SliceReader, Ticks};
use nettrace_synth::{
    Event, EventBlock, Metadata, TraceHeader,
    v6::{ThreadEntry, ThreadRow, Trace},
};
use nettrace_writer::{Transcoder, Version, Writer};

/// A block of events of a thread: their numbers, the first of them as late as that.
fn block(thread: u64, timestamp: u64, numbers: &[u32]) -> EventBlock {
    let mut block = EventBlock::v6();
    for (after, sequence) in (0..).zip(numbers) {
        block.event(&Event {
            metadata_id: 1,
            sequence: *sequence,
            thread,
            capture_thread: thread,
            timestamp: timestamp + after,
            ..Event::default()
        });
    }
    block
}

/// Returns the recording from that time on, written with blocks before it skipped, with the number of those.
fn from(bytes: &[u8], time: u64, version: Version) -> (Vec<u8>, u64) {
    let mut events =
        Reader::with_skip(Cursor::new(bytes), |input, count| input.seek_relative(count.cast_signed()))
            .unwrap();
    events.skip_blocks_outside(Ticks(time)..=Ticks(u64::MAX >> 1), |_| false);
    let mut out = Transcoder::new(version, events.info().unwrap()).unwrap();
    out.take_losses_from_reader();
    while let Some(record) = events.next_record().unwrap() {
        out.write(&record).unwrap();
    }
    out.finish(events.threads()).unwrap();
    (out.bytes().to_vec(), events.skipped_blocks())
}

#[test]
fn unread_events_are_not_losses_and_losses_are_kept() {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    let row = |index| ThreadRow { index, entries: vec![ThreadEntry::ThreadId(100 + index)] };
    trace.thread_block(&[1, 2, 3, 4, 5].map(row));
    // Skipped.
    for thread in 1..=3 {
        trace.event_block(&block(thread, 1_000, &[1, 2, 3, 4]));
    }
    // Thread 1 has no more events, thread 2 ends without any, thread 3 has some, of which 2 are lost, and
    // thread 4 loses 5 at its end.
    trace.event_block(&block(3, 9_000, &[9, 10, 13]));
    trace.event_block(&block(4, 9_100, &[3, 4]));
    trace.event_block(&block(5, 9_200, &[4]));
    trace.remove_thread_block(&[(2, 4), (4, 9)]);
    trace.sequence_point(9_500, 0, &[(1, 4), (3, 14), (5, 4)]);
    trace.event_block(&block(1, 9_600, &[5]));
    trace.event_block(&block(3, 9_700, &[15]));
    let bytes = trace.finish();
    for version in [Version::V6, Version::V4] {
        let (out, skipped) = from(&bytes, 9_000, version);
        assert_eq!(skipped, 3);
        let mut events = SliceReader::new(&out).unwrap();
        let mut count = 0;
        events.for_each(|_| count += 1).unwrap();
        assert_eq!((events.damage(), count), (&[][..], 8), "{version:?}");
        let lost = events.threads().iter().map(|thread| (thread.id().0, thread.lost()));
        let lost: Vec<_> = lost.filter(|(_, lost)| *lost > 0).collect();
        assert_eq!(lost, [(103, 3), (104, 5)], "{version:?}");
    }
}

#[test]
fn a_recording_that_is_cut_in_a_block_that_is_skipped_is_cut_there() {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(101)] }]);
    let start = trace.clone().unfinished().len();
    // Larger than a single read.
    let numbers: Vec<_> = (0..1_000_000).collect();
    trace.event_block(&block(1, 1_000, &numbers));
    let end = trace.clone().unfinished().len();
    trace.event_block(&block(1, 2_000_000, &[1_000_000]));
    let bytes = trace.finish();
    assert!(end - start > 1 << 20, "{start} to {end}");
    for (length, truncated_at, events) in [
        (end - 300_000, Some(start), 0),
        (end - 1, Some(start), 0),
        (end, Some(end), 0),
        (bytes.len(), None, 1),
    ] {
        let seek = |input: &mut Cursor<&[u8]>, count: u64| input.seek_relative(count.cast_signed());
        let mut reader = Reader::with_skip(Cursor::new(&bytes[..length]), seek).unwrap();
        reader.skip_blocks_outside(Ticks(2_000_000)..=Ticks(u64::MAX >> 1), |_| false);
        let mut count = 0;
        reader.for_each(|_| count += 1).unwrap();
        assert_eq!((reader.skipped_blocks(), count), (1, events), "of {length} bytes");
        assert_eq!(reader.truncated_at(), truncated_at.map(|at| at as u64), "of {length} bytes");
        assert_eq!(reader.damage_count(), 0, "{:?}", reader.damage());
    }
}

#[test]
fn a_writer_leaves_out_the_losses_before_an_event_of_a_skipped_part() {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(101)] }]);
    // Seven are lost between the first event and the second, two between the second and the third.
    trace.event_block(&block(1, 1_000, &[1, 9, 12]));
    let bytes = trace.finish();
    for (without_losses, lost) in [(false, 9), (true, 2)] {
        let mut events = SliceReader::new(&bytes).unwrap();
        let mut writer = Writer::new(Version::V6, events.info().unwrap(), Vec::new()).unwrap();
        while let Some(record) = events.next_record().unwrap() {
            match &record {
                nettrace::Record::Event(event) if without_losses && event.sequence() == Some(9) => {
                    writer.skip_losses_before(event);
                }
                _ => {}
            }
            writer.write(&record).unwrap();
        }
        let (out, _) = writer.finish(events.threads()).unwrap();
        let mut written = SliceReader::new(&out).unwrap();
        let mut count = 0;
        written.for_each(|_| count += 1).unwrap();
        assert_eq!((count, written.loss().total()), (3, lost));
    }
}
