//! Parts of recordings of which some blocks are not read.

use std::io::{Cursor, Seek as _};

use nettrace::{Reader, SliceReader, Ticks};
use nettrace_synth::{
    Event, EventBlock, Metadata, TraceHeader,
    v6::{ThreadEntry, ThreadRow, Trace},
};
use nettrace_writer::{Transcoder, Version};

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
fn events_that_are_not_read_are_no_losses_and_losses_stay() {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    let row = |index| ThreadRow { index, entries: vec![ThreadEntry::ThreadId(100 + index)] };
    trace.thread_block(&[1, 2, 3, 4, 5].map(row));
    // Skipped.
    for thread in 1..=3 {
        trace.event_block(&block(thread, 1_000, &[1, 2, 3, 4]));
    }
    // Thread 1 has no more events, thread 2 ends without any, thread 3 has some, of which 2 are lost, and thread 4 loses 5 at its end.
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
