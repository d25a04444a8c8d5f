//! Stack blocks and sequence points of V4 that are wrong.

use nettrace_synth::{Bytes, Event, EventBlock, TraceHeader, nettrace as v4, stack_block};

use crate::{Row, block, event, events, row, trace};

/// A recording with a stack block of this content, and event 1, which has stack 1.
fn with_stacks(content: &[u8]) -> Vec<u8> {
    let mut trace = trace();
    let mut block = EventBlock::v4();
    block.event(&Event { stack_id: 1, ..event(1) });
    trace.block("StackBlock", content).event_block(&block);
    trace.finish()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A recording of event 1, a sequence point of this content, and event 2.
fn with_point(content: &[u8]) -> Vec<u8> {
    let mut trace = trace();
    trace.event_block(&block(&[1])).block("SPBlock", content).event_block(&block(&[2]));
    trace.finish()
}

fn point(count: u32, threads: &[(u64, u32)]) -> Vec<u8> {
    let mut out = Bytes::new();
    out.u64(150).u32(count);
    for (thread, sequence) in threads {
        out.u64(*thread).u32(*sequence);
    }
    out.into_vec()
}

pub(crate) fn rows() -> Vec<Row> {
    [stacks(), points()].into_iter().flatten().collect()
}

fn stacks() -> Vec<Row> {
    let bad = || events(&[1]).damage("past the end of its block");
    let mut narrow = v4::Trace::new(&TraceHeader { pointer_size: 4, ..TraceHeader::default() });
    narrow.metadata_block(&[crate::plain()]).stack_block(1, &[vec![1; 7]]);
    let mut events_with_stack = EventBlock::v4();
    events_with_stack.event(&Event { stack_id: 1, ..event(1) });
    narrow.event_block(&events_with_stack);
    // Found by fuzzing: in time order these events had stacks that were defined only after them.
    let with_stack = |number, stack| {
        let mut block = EventBlock::v4();
        block.event(&Event { stack_id: stack, ..event(number) });
        block
    };
    let stack = |address| vec![vec![address; 8]];
    let mut late = trace();
    late.event_block(&with_stack(1, 1)).stack_block(1, &stack(1)).event_block(&with_stack(2, 1));
    let mut again = trace();
    again.stack_block(1, &[stack(1), stack(2), stack(3)].concat());
    again.event_block(&with_stack(1, 1)).event_block(&with_stack(2, 2)).stack_block(2, &stack(4));
    again.event_block(&with_stack(3, 2)).event_block(&with_stack(4, 3)).event_block(&with_stack(5, 1));
    vec![
        row("a stack that is defined past its event", late.finish(), events(&[1, 2])),
        row("a stack that is defined again", again.finish(), events(&[1, 2, 3, 4, 5])),
        row("a stack block of half a header", with_stacks(&[1, 0, 0, 0, 1, 0]), bad()),
        row("2^32 - 1 stacks, of which there is one", with_stacks(&words(&[1, u32::MAX, 8, 5, 0])), bad()),
        row("a stack of 2 GB", with_stacks(&words(&[1, 1, i32::MAX.cast_unsigned()])), bad()),
        row(
            "a stack of negative size",
            with_stacks(&words(&[1, 1, u32::MAX])),
            events(&[1]).damage("negative size"),
        ),
        row(
            "a stack that is no multiple of a pointer",
            with_stacks(&stack_block(1, &[vec![1; 9], vec![]])),
            events(&[1]),
        ),
        row("a narrow stack that is no multiple of a pointer", narrow.finish(), events(&[1])),
        row("stacks whose ids wrap", with_stacks(&stack_block(u32::MAX, &vec![vec![1; 8]; 4])), events(&[1])),
        row(
            "bytes after the stacks",
            with_stacks(&[stack_block(1, &[vec![1; 8]]), vec![9; 5]].concat()),
            events(&[1]),
        ),
    ]
}

fn points() -> Vec<Row> {
    let mut after_twelve = EventBlock::v4();
    after_twelve.event(&Event { sequence: 12, ..event(2) });
    let mut ahead = trace();
    ahead.event_block(&block(&[1])).block("SPBlock", &point(1, &[(7, 11)])).event_block(&after_twelve);
    let ahead = ahead.finish();
    vec![
        row(
            "half a sequence point",
            with_point(&[1; 7]),
            events(&[1, 2]).damage("past the end of its block"),
        ),
        row(
            "a sequence point of 2^32 - 1 threads",
            with_point(&point(u32::MAX, &[(7, 1)])),
            events(&[1, 2]).damage("past the end of its block").lost(0),
        ),
        row(
            "a sequence point of -2^31 threads",
            with_point(&point(1 << 31, &[])),
            events(&[1, 2]).damage("past the end of its block"),
        ),
        row("a sequence point that is ahead", ahead, events(&[1, 2]).lost(10)),
        row("a sequence point of the past", with_point(&point(1, &[(7, 0)])), events(&[1, 2])),
        row(
            "a sequence point of a thread without events",
            with_point(&point(1, &[(99, 4)])),
            events(&[1, 2]).lost(4),
        ),
        row(
            "a sequence point that names a thread twice",
            with_point(&point(2, &[(7, 1), (7, 1)])),
            events(&[1, 2]).lost(0),
        ),
        row(
            "bytes after the threads of a sequence point",
            with_point(&[point(1, &[(7, 1)]), vec![9; 5]].concat()),
            events(&[1, 2]).lost(0),
        ),
    ]
}
