//! Event blocks of V4 with wrong headers or rows.

use nettrace_synth::{Bytes, Event, EventBlock, Headers, Metadata, group};

use crate::{Row, block, event, events, plain, row, trace};

/// A recording with this block, followed by one with event 9.
fn with(block: &EventBlock) -> Vec<u8> {
    let mut trace = trace();
    trace.event_block(block).event_block(&crate::block(&[9]));
    trace.finish()
}

fn built(build: impl FnOnce(&mut EventBlock)) -> Vec<u8> {
    let mut block = block(&[1]);
    build(&mut block);
    with(&block)
}

fn uncompressed(build: impl FnOnce(&mut EventBlock)) -> Vec<u8> {
    let mut block = EventBlock::v4().with_headers(Headers::Uncompressed);
    block.event(&event(1));
    build(&mut block);
    with(&block)
}

/// A row with its first byte and then these.
fn raw(groups: u8, rest: &[u8]) -> Vec<u8> {
    built(|block| _ = block.raw(&[&[groups], rest].concat()))
}

pub(crate) fn rows() -> Vec<Row> {
    [headers(), compressed_rows(), uncompressed_rows(), references(), order()].into_iter().flatten().collect()
}

fn headers() -> Vec<Row> {
    let header_size = |size| built(|block| block.header_size = Some(size));
    vec![
        row("a block header of 0 bytes", header_size(0), events(&[9]).damage("header shorter")),
        row("a block header of 19 bytes", header_size(19), events(&[9]).damage("header shorter")),
        row(
            "a block header of 65535 bytes",
            header_size(u16::MAX),
            events(&[9]).damage("past the end of its block"),
        ),
        row("unknown flags", built(|block| block.flags = u16::MAX), events(&[1, 9])),
        row(
            "oldest and newest exchanged",
            built(|block| (block.oldest, block.newest) = (i64::MAX, i64::MIN)),
            events(&[1, 9]),
        ),
    ]
}

fn compressed_rows() -> Vec<Row> {
    let broken = || events(&[1, 9]);
    let endless = [0xff; 40];
    vec![
        row("a row of one byte", raw(0, &[]), broken().damage("past the end of its block")),
        row("an endless metadata id", raw(group::METADATA_ID, &endless), broken().damage("variable-length")),
        row("an endless sequence number", raw(group::CAPTURE, &endless), broken().damage("variable-length")),
        row("an endless thread", raw(group::THREAD, &endless), broken().damage("variable-length")),
        row("an endless stack id", raw(group::STACK, &endless), broken().damage("variable-length")),
        row("an endless time", raw(0, &endless), broken().damage("variable-length")),
        row(
            "an endless payload size",
            raw(group::PAYLOAD_SIZE, &[&[0][..], &endless].concat()),
            broken().damage("variable-length"),
        ),
        row(
            "a metadata id of 35 bits",
            raw(group::METADATA_ID, &[0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0]),
            broken().damage("variable-length"),
        ),
        row(
            "a metadata id of 6 bytes",
            raw(group::METADATA_ID, &[0x81, 0x80, 0x80, 0x80, 0x80, 0, 0, 0]),
            broken().damage("variable-length"),
        ),
        row(
            "a time of 70 bits",
            raw(0, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]),
            broken().damage("variable-length"),
        ),
        row(
            "a number with needless bytes",
            raw(group::METADATA_ID, &[0x81, 0x80, 0, 0, 2]),
            events(&[1, 2, 9]),
        ),
        row(
            "a payload past its block",
            raw(group::PAYLOAD_SIZE, &[0, 100]),
            broken().damage("past the end of its block"),
        ),
        row(
            "a payload of 4 GB",
            raw(group::PAYLOAD_SIZE, &[0, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            broken().damage("past the end of its block"),
        ),
        row(
            "a GUID past its block",
            raw(group::ACTIVITY, &[0, 1, 2, 3]),
            broken().damage("past the end of its block"),
        ),
        row("a row of all groups and nothing", raw(0xff, &[]), broken().damage("past the end of its block")),
        row("zeros in place of rows", built(|block| _ = block.raw(&[0; 30])), {
            // Each is a row: no groups, the time of before, and a payload of one byte.
            events(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9])
        }),
    ]
}

fn uncompressed_row(size: u32, metadata_id: u32, payload_size: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Bytes::new();
    out.u32(size).u32(metadata_id | 1 << 31).u32(2).u64(7).u64(7).u32(0).u32(0).u64(101);
    out.raw(&[0; 32]).u32(payload_size).raw(payload);
    out.into_vec()
}

fn uncompressed_rows() -> Vec<Row> {
    let with_row = |size, payload_size| {
        uncompressed(|block| _ = block.raw(&uncompressed_row(size, 1, payload_size, &[2, 0, 0, 0])))
    };
    let broken = || events(&[1, 9]);
    let unpadded = uncompressed(|block| {
        block.raw(&uncompressed_row(77, 1, 1, &[2])).raw(&uncompressed_row(77, 1, 1, &[3]));
    });
    vec![
        row("an uncompressed event as it should be", with_row(80, 4), events(&[1, 2, 9])),
        row("an uncompressed event without padding", unpadded, events(&[1, 2, 3, 9])),
        row("an uncompressed event of size 0", with_row(0, 4), broken().damage("smaller than")),
        row("an uncompressed event of size 75", with_row(75, 4), broken().damage("smaller than")),
        row(
            "an uncompressed event of negative size",
            with_row(u32::MAX, 4),
            broken().damage("past the end of its block"),
        ),
        row(
            "an uncompressed event past its block",
            with_row(84, 4),
            broken().damage("past the end of its block"),
        ),
        row("an uncompressed payload past its event", with_row(80, 5), broken().damage("smaller than")),
        row("an uncompressed payload of 4 GB", with_row(80, u32::MAX), broken().damage("smaller than")),
        row("an uncompressed event with room to spare", with_row(80, 1), events(&[1, 2, 9])),
        row(
            "compressed rows that are said to be uncompressed",
            built(|block| block.flags = 0),
            events(&[9]).any_damage(),
        ),
        row(
            "uncompressed rows that are said to be compressed",
            uncompressed(|block| block.flags = 1),
            events(&[9]).any_damage(),
        ),
    ]
}

fn references() -> Vec<Row> {
    let id =
        |metadata_id| built(|block| _ = block.event(&Event { metadata_id, ..event(2) }).event(&event(3)));
    let mut far = trace();
    far.metadata_block(&[Metadata { id: u32::MAX, ..plain() }]);
    let mut events_of_far = block(&[1]);
    events_of_far.event(&Event { metadata_id: u32::MAX, ..event(2) });
    far.event_block(&events_of_far);
    let mut twice = trace();
    twice.event_block(&block(&[1]));
    twice.metadata_block(&[
        Metadata { name: "again".into(), ..plain() },
        Metadata { name: "and again".into(), ..plain() },
    ]);
    twice.event_block(&block(&[2]));
    let mut late = nettrace_synth::nettrace::Trace::new(&nettrace_synth::TraceHeader::default());
    late.event_block(&block(&[1])).metadata_block(&[plain()]).event_block(&block(&[2]));
    let mut stack = trace();
    let mut with_stack = EventBlock::v4();
    with_stack.event(&Event { stack_id: u32::MAX, ..event(1) }).event(&Event { stack_id: 3, ..event(2) });
    stack.stack_block(1, &[vec![1; 8], vec![2; 8]]).event_block(&with_stack);
    vec![
        row(
            "an event of metadata that nothing defines",
            id(77),
            events(&[1, 3, 9]).damage("defined nowhere"),
        ),
        row("an event of metadata 0", id(0), events(&[1, 3, 9]).damage("defined nowhere")),
        row(
            "an event of metadata 2^32 - 1 that nothing defines",
            id(u32::MAX),
            events(&[1, 3, 9]).damage("defined nowhere"),
        ),
        row("metadata 2^32 - 1", far.finish(), events(&[1, 2])),
        row(
            "metadata that is defined again",
            twice.finish(),
            events(&[1, 2]).damage("defined again").damage("defined again"),
        ),
        row("metadata past its event", late.finish(), events(&[2]).damage("defined nowhere")),
        row("a stack that nothing defines", stack.finish(), events(&[1, 2])),
    ]
}

fn order() -> Vec<Row> {
    let sequences = |sequences: &[u32]| {
        let mut block = EventBlock::v4();
        for (number, sequence) in (1..).zip(sequences) {
            block.event(&Event { sequence: *sequence, ..event(number) });
        }
        let mut trace = trace();
        trace.event_block(&block);
        trace.finish()
    };
    let times = |times: &[u64], sorted| {
        let mut block = EventBlock::v4();
        for (number, timestamp) in (1..).zip(times) {
            block.event(&Event { timestamp: *timestamp, sorted, ..event(number) });
        }
        let mut trace = trace();
        trace.event_block(&block);
        trace.finish()
    };
    vec![
        row(
            "sequence numbers that begin again",
            sequences(&[1, 2, 3, 1, 2]),
            events(&[1, 2, 3, 4, 5]).lost(0),
        ),
        row("sequence numbers that run backwards", sequences(&[5, 4, 3, 2, 1]), events(&[1, 2, 3, 4, 5])),
        row("sequence numbers that wrap", sequences(&[u32::MAX - 1, u32::MAX, 0, 1]), events(&[1, 2, 3, 4])),
        row("sequence number 0 first", sequences(&[0, 1]), events(&[1, 2]).lost(0)),
        row("a sequence number that repeats", sequences(&[1, 2, 2, 3]), events(&[1, 2, 3, 4])),
        row("times that run backwards", times(&[500, 400, 300], false), events(&[1, 2, 3])),
        row("sorted events that are not", times(&[500, 400, 600, 300], true), events(&[1, 2, 3, 4])),
        row(
            "times at the ends of the clock",
            times(&[0, u64::MAX, 1 << 63, 0], false),
            events(&[1, 2, 3, 4]),
        ),
    ]
}
