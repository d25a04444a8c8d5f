//! Loops over events that break off.

use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use nettrace::Reader;
use nettrace_synth::v6::{ThreadEntry, ThreadRow, Trace};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};

/// Blocks of 1,000 events each, the first at time 0: more bytes than are read at once.
fn recording(blocks: u32) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(101)] }]);
    for number in 0..blocks {
        let mut block = EventBlock::v6();
        for within in 0..1_000 {
            let sequence = number * 1_000 + within;
            block.event(&Event {
                metadata_id: 1,
                sequence,
                thread: 1,
                capture_thread: 1,
                timestamp: u64::from(sequence),
                payload: vec![0; 100],
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
    trace.finish()
}

/// A file of which it is known how much was read.
struct Counted<'a>(Cursor<&'a [u8]>, &'a std::cell::Cell<usize>);

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.set(self.1.get() + count);
        Ok(count)
    }
}

#[test]
fn a_loop_that_breaks_off_reads_no_further_block() {
    let bytes = recording(100);
    let break_at = |limit: u32, seen: &mut u32| {
        *seen += 1;
        if *seen == limit { ControlFlow::Break(limit) } else { ControlFlow::Continue(()) }
    };
    for limit in [1, 1_000, 2_500] {
        let read = std::cell::Cell::new(0);
        let mut seen = 0;
        let mut events = Reader::new(Counted(Cursor::new(&bytes), &read)).unwrap();
        let flow = events.try_for_each(|_| break_at(limit, &mut seen)).unwrap();
        assert_eq!((flow, seen), (ControlFlow::Break(limit), limit));
        assert!(read.get() < bytes.len() / 2, "{} of {} bytes", read.get(), bytes.len());
        // The next event is that of the next block.
        let sequence = events.next().unwrap().unwrap().sequence();
        assert_eq!(sequence, Some(limit.next_multiple_of(1_000)));

        let mut seen = 0;
        let mut events = Reader::new(Cursor::new(&bytes)).unwrap().in_time_order();
        let flow = events.try_for_each(|_| break_at(limit, &mut seen)).unwrap();
        assert_eq!((flow, seen), (ControlFlow::Break(limit), limit));
    }
}

#[test]
fn a_continued_loop_has_every_event_and_reports_the_cut() {
    let bytes = recording(5);
    let cut = &bytes[..bytes.len() - 50_000];
    let mut count = 0;
    let mut events = Reader::new(Cursor::new(cut)).unwrap().in_time_order();
    let flow = events.try_for_each(|_| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    let mut expected = Reader::new(Cursor::new(cut)).unwrap();
    let mut all = 0;
    expected.for_each(|_| all += 1).unwrap();
    assert!(all >= 4_000);
    assert_eq!((count, events.truncated_at()), (all, expected.truncated_at()));
    assert!(events.truncated_at().is_some());
}
