//! Loss in recordings with threads that ended: V4 does not report all of it, V6 does.

use nettrace::{Loss, SliceReader};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace as v4, v6};

fn metadata() -> Metadata {
    Metadata { id: 1, provider: "P".into(), event_id: 1, ..Metadata::default() }
}

/// Adds events of one thread.
fn events(block: &mut EventBlock, thread: u64, sequences: impl IntoIterator<Item = u32>) {
    for sequence in sequences {
        block.event(&Event {
            metadata_id: 1,
            sequence,
            thread,
            capture_thread: thread,
            timestamp: u64::from(sequence),
            ..Event::default()
        });
    }
}

/// A recording of a runtime with full buffers, as .NET 9.0.1 writes it: of 20 events of each of three
/// threads, thread 7 has 3 in the recording and is in the first sequence point only, with the number 16;
/// thread 8 is in the second; thread 9 never had a buffer, and is in none.
fn full_buffers() -> Vec<u8> {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[metadata()]);
    let mut block = EventBlock::v4();
    events(&mut block, 7, 1..=3);
    events(&mut block, 8, 1..=5);
    trace.event_block(&block).sequence_point(100, &[(7, 16), (8, 9)]);
    let mut block = EventBlock::v4();
    events(&mut block, 8, 18..=20);
    trace.event_block(&block).sequence_point(200, &[(8, 20)]);
    trace.finish()
}

fn loss(recording: &[u8]) -> Loss {
    let mut events = SliceReader::new(recording).expect("a recording");
    events.for_each(|_| {}).expect("readable");
    assert!(events.damage().is_empty(), "{:?}", events.damage());
    events.loss().clone()
}

#[test]
fn loss_of_v4_is_a_lower_bound() {
    let loss = loss(&full_buffers());
    // 4 events of thread 7 after its last number and 20 of thread 9 are not in the recording in any form.
    assert_eq!((loss.total(), loss.is_lower_bound()), (13 + 12, true));
}

#[test]
fn without_loss_no_bound_is_claimed() {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    let mut block = EventBlock::v4();
    events(&mut block, 7, 1..=3);
    trace.metadata_block(&[metadata()]).event_block(&block).sequence_point(100, &[(7, 3)]);
    trace.sequence_point(200, &[]);
    let loss = loss(&trace.finish());
    assert_eq!((loss.total(), loss.is_lower_bound()), (0, false));
}

#[test]
fn removed_threads_of_v6_have_their_last_number() {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    let thread = |index| v6::ThreadRow { index, ..v6::ThreadRow::default() };
    trace.metadata_block(&[metadata()]).thread_block(&[thread(7), thread(9)]);
    let mut block = EventBlock::v6();
    events(&mut block, 7, 1..=3);
    trace.event_block(&block).remove_thread_block(&[(7, 20), (9, 20)]);
    let loss = loss(&trace.finish());
    assert_eq!((loss.total(), loss.is_lower_bound()), (17 + 20, false));
}
