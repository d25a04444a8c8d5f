//! Events of another recording at the end.

use nettrace::SliceReader;
use nettrace_synth::{
    Event, EventBlock, Metadata, TraceHeader,
    v6::{ThreadEntry, ThreadRow, Trace},
};
use nettrace_writer::{Transcoder, Version};

/// A recording of a number of events of one thread.
fn recording(count: u32) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(100)] }]);
    let mut block = EventBlock::v6();
    for sequence in 1..=count {
        let timestamp = u64::from(sequence);
        let (metadata_id, thread, capture_thread) = (1, 1, 1);
        block.event(&Event { metadata_id, sequence, timestamp, thread, capture_thread, ..Event::default() });
    }
    trace.event_block(&block);
    trace.sequence_point(count.into(), 0, &[(1, count)]);
    trace.finish()
}

#[test]
fn a_thread_of_both_recordings_has_lost_nothing_between_them() {
    let (first, second) = (recording(5), recording(3));
    for version in [Version::V4, Version::V6] {
        let mut events = SliceReader::new(&first).unwrap();
        let mut out = Transcoder::new(version, events.info().unwrap()).unwrap();
        while let Some(record) = events.next_record().unwrap() {
            out.write(&record).unwrap();
        }
        let mut others = SliceReader::new(&second).unwrap();
        out.next_source(others.info().unwrap(), events.threads()).unwrap();
        while let Some(event) = others.next().unwrap() {
            out.event_at_end(&event).unwrap();
        }
        out.sequence_point(others.threads()).unwrap();
        out.finish(others.threads()).unwrap();
        let mut events = SliceReader::new(out.bytes()).unwrap();
        let mut count = 0;
        events.for_each(|_| count += 1).unwrap();
        assert_eq!((events.damage(), count, events.loss().total()), (&[][..], 8, 0), "{version:?}");
    }
}
