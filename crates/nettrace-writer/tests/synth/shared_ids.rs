//! Several threads with one id, as recordings have them that were merged.

use nettrace::SliceReader;
use nettrace_synth::{
    Event, EventBlock, Metadata, TraceHeader,
    v6::{ThreadEntry, ThreadRow, Trace},
};
use nettrace_writer::{Error, Version, transcode};

#[test]
fn the_end_of_one_hides_no_loss_of_the_other() {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    let row = |index| ThreadRow { index, entries: vec![ThreadEntry::ThreadId(101)] };
    trace.thread_block(&[1, 2].map(row));
    let event = |thread, timestamp, sequence| Event {
        metadata_id: 1,
        sequence,
        thread,
        capture_thread: thread,
        timestamp,
        ..Event::default()
    };
    let block = |events: &[Event]| {
        let mut block = EventBlock::v6();
        for event in events {
            block.event(event);
        }
        block
    };
    trace.event_block(&block(&[event(1, 1_000, 1), event(1, 1_001, 2), event(1, 1_002, 3)]));
    trace.event_block(&block(&[event(2, 1_003, 1), event(2, 1_004, 2)]));
    trace.remove_thread_block(&[(2, 2)]);
    trace.sequence_point(1_500, 0, &[(1, 3)]);
    // Two events of the first thread were lost, and none of the second.
    trace.event_block(&block(&[event(1, 2_000, 6), event(1, 2_001, 7)]));
    trace.sequence_point(2_500, 0, &[(1, 7)]);
    let bytes = trace.finish();
    for (version, numbers) in [(Version::V6, [1, 2, 3, 1, 2, 6, 7]), (Version::V4, [1, 2, 3, 4, 5, 8, 9])] {
        let mut out = Vec::new();
        let write = |bytes: &[u8]| -> Result<(), Error> {
            out.extend_from_slice(bytes);
            Ok(())
        };
        transcode(SliceReader::new(&bytes).unwrap(), version, write).unwrap();
        let mut events = SliceReader::new(&out).unwrap();
        let mut seen = Vec::new();
        events.for_each(|event| seen.push(event.sequence().unwrap())).unwrap();
        assert_eq!((events.damage(), events.loss().total()), (&[][..], 2), "{version:?}");
        assert_eq!(seen, numbers, "{version:?}");
    }
}
