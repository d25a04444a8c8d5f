//! V6 that is wrong.

use nettrace_synth::v6::{Label, ThreadEntry, ThreadRow, Trace, kind};
use nettrace_synth::{Bytes, Event, EventBlock, Field, Metadata, TraceHeader, Type};

use crate::{Expect, Row, event, events, plain, row};

fn trace() -> Trace {
    let mut trace = Trace::new(&TraceHeader::default());
    trace
        .metadata_block(&[plain()])
        .thread_block(&[ThreadRow { index: 7, entries: vec![ThreadEntry::ThreadId(70)] }]);
    trace
}

fn block(numbers: &[u8]) -> EventBlock {
    let mut block = EventBlock::v6();
    for number in numbers {
        block.event(&event(*number));
    }
    block
}

/// A recording of the output of `write`, and event 2.
fn before(write: impl FnOnce(&mut Trace)) -> Vec<u8> {
    let mut trace = trace();
    write(&mut trace);
    trace.event_block(&block(&[2]));
    trace.finish()
}

/// A recording with this second metadata row.
fn metadata_row(bytes: &[u8]) -> Vec<u8> {
    before(|trace| _ = trace.metadata_block_of(&[], &[bytes.to_vec()]))
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut out = Bytes::new();
    out.u16(u16::try_from(bytes.len()).expect("a small row")).raw(bytes);
    out.into_vec()
}

pub(crate) fn rows() -> Vec<Row> {
    [beginnings(), blocks(), hidden_blocks(), metadata(), threads(), labels(), points()]
        .into_iter()
        .flatten()
        .collect()
}

fn beginnings() -> Vec<Row> {
    let version = |major, minor| {
        let mut trace = Trace::without_header(major, minor);
        let mut content = Bytes::new();
        TraceHeader::default().write_v6_content(&mut content);
        trace.block(kind::TRACE, content.as_slice());
        trace.finish()
    };
    let trace_block = |count: u32, pairs: &[u8]| {
        let mut content = Bytes::new();
        TraceHeader::default().write_v6_content(&mut content);
        let count_at = content.len() - 4;
        content.set_u32(count_at, count).raw(pairs);
        let mut trace = Trace::without_header(6, 0);
        trace.block(kind::TRACE, content.as_slice());
        trace.finish()
    };
    let mut no_trace_block = Trace::without_header(6, 0);
    no_trace_block.event_block(&block(&[1]));
    vec![
        row("version 7", version(7, 0), Expect::Refused("newer than this reader")),
        row("version 2^32 - 1", version(u32::MAX, 0), Expect::Refused("newer than this reader")),
        row("version 5 with the header of 6", version(5, 0), Expect::Refused("before 6")),
        row("version 0", version(0, 0), Expect::Refused("before 6")),
        row("version 6.4294967295", version(6, u32::MAX), events(&[])),
        row(
            "only the version",
            Trace::without_header(6, 0).unfinished(),
            Expect::Refused("ends inside its header"),
        ),
        row("no trace block", no_trace_block.finish(), Expect::Refused("not a Trace block")),
        row(
            "a trace block that is cut",
            Trace::new(&TraceHeader::default()).finish()[..40].to_vec(),
            Expect::Refused("ends inside its header"),
        ),
        row(
            "2^31 - 1 key values",
            trace_block(i32::MAX.cast_unsigned(), &[]),
            Expect::Refused("shorter than"),
        ),
        row("-1 key values", trace_block(u32::MAX, &[]), Expect::Refused("negative number")),
        row(
            "a key of 4 GB",
            trace_block(1, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            Expect::Refused("shorter than"),
        ),
        row("a key that is no UTF-8", trace_block(1, &[2, 0xff, 0xfe, 1, 0x80]), events(&[])),
        row("bytes after the key values", trace_block(0, &[1, 2, 3]), events(&[])),
    ]
}

fn blocks() -> Vec<Row> {
    let mut with_content = trace();
    with_content.event_block(&block(&[2])).block(kind::END_OF_STREAM, &[1, 2, 3]);
    let mut trailing = trace();
    trailing.event_block(&block(&[2]));
    let mut trailing = trailing.finish();
    trailing.extend([1, 2, 3]);
    let mut cut = trace();
    cut.block_of_claimed_size(kind::EVENT, 0xff_ffff, &block(&[1]).content());
    let mut second_header = TraceHeader { pointer_size: 4, ..TraceHeader::default() };
    second_header.sync_ticks = 5;
    let mut second = Bytes::new();
    second_header.write_v6_content(&mut second);
    let too_large = damaged(|t| _ = t.block_of_claimed_size(kind::EVENT, 0xff_ffff, &block(&[1]).content()));
    let unknown = damaged(|t| _ = t.block_of_claimed_size(0x77, 150, &block(&[1]).content()));
    let garbage = damaged(|t| _ = t.raw(&[0xff; 99]));
    // Found by fuzzing: before the end of the input, the unknown block was searched for other blocks.
    let mut before_the_end = trace();
    for number in 1..5 {
        before_the_end.event_block(&block(&[number]));
    }
    let mut hidden = trace();
    hidden.event_block(&block(&[1]));
    let inner = before_the_end.clone().unfinished()[trace().unfinished().len()..].to_vec();
    hidden.block(99, &inner);
    vec![
        row("an unknown block at the end", hidden.finish(), events(&[1])),
        row(
            "a block of a size that hides the others, V6",
            too_large,
            events(&[2, 3, 4, 5]).damage("larger than the rest"),
        ),
        row("an unknown block that hides others", unknown, events(&[2, 3, 4, 5]).damage("hides others")),
        row(
            "99 bytes of garbage between blocks, V6",
            garbage,
            events(&[2, 3, 4, 5]).damage("larger than the rest"),
        ),
        row(
            "blocks of every unknown kind",
            before(|t| (9..=255).for_each(|kind| _ = t.block(kind, &[1, 2, 3]))),
            events(&[2]),
        ),
        row("an unknown block of 16 MB", before(|t| _ = t.block(99, &vec![2; 0xff_ffff])), events(&[2])),
        row("a block that is larger than the rest, V6", cut.unfinished(), events(&[1]).truncated()),
        row("an end with content", with_content.unfinished(), events(&[2])),
        row("bytes after the end, V6", trailing, events(&[2]).damage("after the end")),
        row("no end, V6", trace().unfinished(), events(&[]).truncated()),
        row(
            "an empty event block, V6",
            before(|t| _ = t.block(kind::EVENT, &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "an empty metadata block, V6",
            before(|t| _ = t.block(kind::METADATA, &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row("an empty thread block", before(|t| _ = t.block(kind::THREAD, &[])), events(&[2])),
        row(
            "an empty block of removed threads",
            before(|t| _ = t.block(kind::REMOVE_THREAD, &[])),
            events(&[2]),
        ),
        row(
            "an empty label list block",
            before(|t| _ = t.block(kind::LABEL_LIST, &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "the unused header group",
            before(|t| {
                let mut block = EventBlock::v6();
                block.compressed(0xff, &event(1));
                t.event_block(&block);
            }),
            events(&[1, 2]),
        ),
        row(
            "an uncompressed event of size 0, V6",
            before(|t| {
                let mut block = EventBlock::v6().with_headers(nettrace_synth::Headers::Uncompressed);
                block.event(&event(1)).raw(&[0; 4]);
                t.event_block(&block);
            }),
            events(&[1, 2]).damage("smaller than"),
        ),
    ]
}

/// A recording in which blocks of four events follow the output of `write`: if that is wrong, it hides only a
/// part of the recording.
fn damaged(write: fn(&mut Trace)) -> Vec<u8> {
    let mut trace = trace();
    write(&mut trace);
    for number in 2..6 {
        trace.event_block(&block(&[number]));
    }
    trace.finish()
}

/// Ends and sizes that hide blocks.
fn hidden_blocks() -> Vec<Row> {
    let zeros = damaged(|t| _ = t.event_block(&block(&[1])).raw(&[0; 97]));
    let end_in_the_midst =
        damaged(|t| _ = t.event_block(&block(&[1])).block(kind::END_OF_STREAM, &[1, 2, 3]));
    let mut two = trace();
    two.event_block(&block(&[1]));
    let two = [two.clone().finish(), two.finish()].concat();
    let mut endless_end = trace();
    endless_end.event_block(&block(&[1])).block_of_claimed_size(kind::END_OF_STREAM, 0xff_ffff, &[0; 50]);
    let hides_some = damaged(|t| {
        let content = block(&[1]).content();
        let size = u32::try_from(content.len() + 70).expect("a small block");
        t.block_of_claimed_size(kind::EVENT, size, &content);
    });
    // The events before metadata are decoded first: the block is met once all the same.
    let metadata_hides_some = damaged(|t| {
        t.event_block(&block(&[1]));
        let content = [&[0, 0][..], &Metadata { id: 3, ..plain() }.row_v6_with(&[], &[])].concat();
        let size = u32::try_from(content.len() + 70).expect("a small block");
        t.block_of_claimed_size(kind::METADATA, size, &content);
    });
    vec![
        row(
            "zeros between blocks, V6",
            zeros,
            events(&[1, 2, 3, 4, 5]).damage("end of the stream that blocks follow"),
        ),
        row(
            "an end with content that blocks follow",
            end_in_the_midst,
            events(&[1, 2, 3, 4, 5]).damage("end of the stream that blocks follow"),
        ),
        row("an end that is larger than the rest", endless_end.unfinished(), events(&[1]).truncated()),
        row("two recordings in one, V6", two, events(&[1]).damage("after the end")),
        row(
            "a block of a size that hides some of the others, V6",
            hides_some,
            events(&[1, 2, 3, 4, 5]).damage("a size that hides others"),
        ),
        row(
            "metadata of a size that hides some of the others, V6",
            metadata_hides_some,
            events(&[1, 2, 3, 4, 5]).damage("a size that hides others"),
        ),
    ]
}

fn metadata() -> Vec<Row> {
    let names_nothing = || events(&[2]).damage("names no event");
    let bad_fields = || events(&[2]).damage("field list");
    let bad_options = || events(&[2]).damage("optional part");
    let with_type = |ty: &[u8]| {
        let field = sized(&[&[1, b'x'], ty].concat());
        metadata_row(&sized(&[&[3, 0, 0, 0, 1, 0][..], &field, &[0, 0]].concat()))
    };
    let options = |optional: &[u8]| metadata_row(&Metadata { id: 3, ..plain() }.row_v6_with(optional, &[]));
    let far = Metadata { id: u32::MAX, ..plain() };
    let redefined = Metadata { fields: vec![Field::new("a", Type::Byte)], ..plain() };
    vec![
        row("a metadata row of 0 bytes, V6", metadata_row(&[0, 0]), names_nothing()),
        row(
            "a metadata row past its block, V6",
            metadata_row(&[200, 0, 1]),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "a metadata header past its block",
            before(|t| _ = t.block(kind::METADATA, &[9, 0, 1])),
            events(&[2]).damage("past the end of its block"),
        ),
        row("an endless metadata id, V6", metadata_row(&sized(&[0xff; 12])), names_nothing()),
        row("a provider past its row", metadata_row(&sized(&[3, 100, b'x'])), names_nothing()),
        row("a provider of 4 GB", metadata_row(&sized(&[3, 0xff, 0xff, 0xff, 0xff, 0x0f])), names_nothing()),
        row(
            "a provider that is no UTF-8",
            metadata_row(&sized(&[3, 1, 0xff, 5, 0, 0, 0, 0, 0])),
            events(&[2]),
        ),
        row("65535 fields that are not there", metadata_row(&sized(&[3, 0, 5, 0, 0xff, 0xff])), bad_fields()),
        row("a field of 0 bytes", metadata_row(&sized(&[3, 0, 5, 0, 1, 0, 0, 0, 0, 0])), bad_fields()),
        row("a field past its row", metadata_row(&sized(&[3, 0, 5, 0, 1, 0, 99, 0, 1])), bad_fields()),
        row("arrays 1000 deep, V6", with_type(&[19; 1000]), bad_fields()),
        row("fixed arrays 1000 deep", with_type(&[22; 1000]), bad_fields()),
        row("locations 1000 deep", with_type(&[25; 1000]), bad_fields()),
        row("a fixed array without a count", with_type(&[22, 6]), bad_fields()),
        row("an array of empty objects, V6", with_type(&[19, 1, 0, 0]), bad_fields()),
        row("a fixed array of empty fixed arrays", with_type(&[22, 22, 6, 0, 0, 0xff, 0xff]), bad_fields()),
        row("a field with room to spare", with_type(&[6, 9, 9, 9]), events(&[2])),
        row("an optional part past its row", metadata_row(&sized(&[3, 0, 5, 0, 0, 0, 9, 0])), bad_options()),
        row("an optional element of an unknown kind", options(&[77, 1, 2]), events(&[2])),
        row("an optional element of kind 2, which is no longer used", options(&[2, 1, 2]), events(&[2])),
        row("keywords of 3 bytes", options(&[3, 1, 2, 3]), bad_options()),
        row("a template after the optional part", options(&[4, 50, b'x']), bad_options()),
        row(
            "metadata 2^32 - 1, V6",
            before(|t| {
                let mut block = EventBlock::v6();
                block.event(&Event { metadata_id: u32::MAX, ..event(1) });
                t.metadata_block(&[far]).event_block(&block);
            }),
            events(&[1, 2]),
        ),
        row(
            "metadata that is defined again, V6",
            before(|t| _ = t.metadata_block(&[redefined])),
            events(&[2]).damage("defined again").fields(&[("a", "u8 2")]),
        ),
        row(
            "metadata that was forgotten",
            before(|t| _ = t.sequence_point(1, 2, &[])),
            events(&[]).damage("defined nowhere"),
        ),
    ]
}

fn threads() -> Vec<Row> {
    let thread_block = |content: &[u8]| before(|t| _ = t.block(kind::THREAD, content));
    let remove = |content: &[u8]| before(|t| _ = t.block(kind::REMOVE_THREAD, content));
    let raw = |bytes: &[u8]| {
        before(|t| {
            _ = t.thread_block(&[ThreadRow { index: 8, entries: vec![ThreadEntry::Raw(bytes.to_vec())] }]);
        })
    };
    vec![
        row("a thread row of 0 bytes", thread_block(&[0, 0]), events(&[2]).damage("thread row")),
        row(
            "a thread row past its block",
            thread_block(&[9, 0, 1]),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "an endless thread index",
            thread_block(&sized(&[0xff; 20])),
            events(&[2]).damage("variable-length"),
        ),
        row("a thread name past its row", raw(&[1, 100]), events(&[2]).damage("thread row")),
        row("a thread entry of an unknown kind", raw(&[99, 1, 2]), events(&[2])),
        row(
            "a thread that is described again",
            before(|t| _ = t.thread_block(&[ThreadRow { index: 7, entries: vec![] }])),
            events(&[2]).damage("described again"),
        ),
        row(
            "an event of a thread that nothing describes",
            before(|t| {
                let mut block = EventBlock::v6();
                block.event(&Event { thread: 99, capture_thread: 98, ..event(1) });
                t.event_block(&block);
            }),
            events(&[1, 2]).damage("not described").damage("not described"),
        ),
        row("a removed thread that nobody knows", remove(&[55, 3]), events(&[2]).damage("not there")),
        row(
            "a thread that is removed twice",
            remove(&[7, 1, 7, 1]),
            events(&[2]).damage("not there").damage("not described"),
        ),
        row("half a removed thread", remove(&[7]), events(&[2]).damage("past the end of its block")),
        row("an endless removed thread", remove(&[0xff; 20]), events(&[2]).damage("variable-length")),
        row(
            "an event of a thread that was removed",
            before(|t| {
                t.event_block(&block(&[1])).remove_thread_block(&[(7, 1)]);
            }),
            events(&[1, 2]).damage("not described"),
        ),
    ]
}

fn labels() -> Vec<Row> {
    /// A label list block of this content, and event 1, which has list 1.
    fn with(content: &[u8]) -> Vec<u8> {
        before(|trace| {
            let mut block = EventBlock::v6();
            block.event(&Event { label_list: 1, ..event(1) });
            trace.block(kind::LABEL_LIST, content).event_block(&block);
        })
    }
    let head =
        |first: u32, count: u32, rest: &[u8]| [&first.to_le_bytes()[..], &count.to_le_bytes(), rest].concat();
    let bad = || events(&[1, 2]).damage("past the end of its block");
    // Found by fuzzing: in time order the first event had the label that was defined after it.
    let labelled = |number| {
        let mut block = EventBlock::v6();
        block.event(&Event { label_list: 1, ..event(number) });
        block
    };
    let again = before(|trace| {
        trace.label_list_block(1, &[vec![Label::Level(1)]]).event_block(&labelled(1));
        trace.label_list_block(1, &[vec![Label::Level(3)]]).event_block(&labelled(3));
    });
    vec![
        row("a label list that is defined again", again, events(&[1, 3, 2])),
        row("label lists from 0 on", with(&head(0, 1, &[0x87, 1])), events(&[1, 2]).damage("counted from 1")),
        row("2^32 - 1 label lists", with(&head(1, u32::MAX, &[0x87, 1])), bad()),
        row("a label list without a last label", with(&head(1, 1, &[7, 1, 7, 2])), bad()),
        row(
            "a label of an unknown kind",
            with(&head(1, 1, &[0x8b, 1, 2])),
            events(&[1, 2]).damage("unknown kind"),
        ),
        row("a label of kind 0", with(&head(1, 1, &[0x80])), events(&[1, 2]).damage("unknown kind")),
        row("a label whose text is past its block", with(&head(1, 1, &[0x85, 100, b'k'])), bad()),
        row(
            "a label of an endless number",
            with(&[&head(1, 1, &[0x86, 0])[..], &[0xff; 20]].concat()),
            events(&[1, 2]).damage("variable-length"),
        ),
        row(
            "a label list that nothing defines",
            before(|trace| {
                let mut block = EventBlock::v6();
                block.event(&Event { label_list: u32::MAX, ..event(1) });
                trace.label_list_block(1, &[vec![Label::Opcode(1)]]).event_block(&block);
            }),
            events(&[1, 2]),
        ),
        row(
            "label lists whose indexes wrap",
            before(|trace| {
                let lists = vec![vec![Label::Opcode(1)]; 4];
                trace.label_list_block(u32::MAX, &lists);
            }),
            events(&[2]),
        ),
        row("bytes after the label lists", with(&head(1, 1, &[0x87, 1, 9, 9])), events(&[1, 2])),
    ]
}

fn points() -> Vec<Row> {
    let point =
        |content: &[u8]| before(|t| _ = t.event_block(&block(&[1])).block(kind::SEQUENCE_POINT, content));
    let head = |flags: u32, count: u32, rest: &[u8]| {
        [&150u64.to_le_bytes()[..], &flags.to_le_bytes(), &count.to_le_bytes(), rest].concat()
    };
    let mut after_five = EventBlock::v6();
    after_five.event(&Event { sequence: 6, ..event(2) });
    let mut ahead = trace();
    ahead.event_block(&block(&[1])).sequence_point(150, 0, &[(7, 5)]).event_block(&after_five);
    let ahead = ahead.finish();
    // Whether threads have ended then must not depend on the kinds of events that are asked for.
    let mut cut = trace();
    cut.event_block(&block(&[1])).sequence_point(150, 1, &[(7, 1), (8, 1)]);
    let mut cut = cut.unfinished();
    cut.truncate(cut.len() - 4);
    vec![
        row("the end within a sequence point that forgets threads", cut, events(&[1]).truncated()),
        row(
            "half a sequence point, V6",
            point(&[1; 11]),
            events(&[1, 2]).damage("past the end of its block"),
        ),
        row(
            "a sequence point of 2^32 - 1 threads, V6",
            point(&head(0, u32::MAX, &[7, 1])),
            events(&[1, 2]).damage("past the end of its block").lost(0),
        ),
        row(
            "a sequence point with unknown flags",
            point(&head(0xffff_fffc, 1, &[7, 1])),
            events(&[1, 2]).lost(0),
        ),
        row(
            "a sequence point with an endless number",
            point(&head(0, 1, &[0xff; 20])),
            events(&[1, 2]).damage("variable-length"),
        ),
        row("a sequence point that is ahead, V6", ahead, events(&[1, 2]).lost(4)),
        row(
            "a sequence point that forgets threads",
            point(&head(1, 1, &[7, 1])),
            events(&[1, 2]).damage("not described"),
        ),
    ]
}

/// A recording of five blocks of an event each, the first of which claims too many bytes.
fn with_first_too_large_by(bytes: usize) -> Vec<u8> {
    let mut trace = trace();
    let content = block(&[1]).content();
    let size = u32::try_from(content.len() + bytes).expect("a small block");
    trace.block_of_claimed_size(kind::EVENT, size, &content);
    for number in 2..6 {
        trace.event_block(&block(&[number]));
    }
    trace.finish()
}

/// The first byte of each event that can be read.
fn numbers<S: nettrace::Source>(events: &mut nettrace::Events<S>) -> Vec<u8> {
    let mut numbers = Vec::new();
    events.for_each(|event| numbers.push(event.payload()[0])).expect("a recording");
    numbers
}

#[test]
fn no_size_makes_events_that_were_not_written() {
    let whole = with_first_too_large_by(0);
    let mut events = nettrace::SliceReader::new(&whole).unwrap();
    assert_eq!((numbers(&mut events), events.damage_count()), (vec![1, 2, 3, 4, 5], 0));
    let next = 4 + block(&[2]).content().len();
    // Behind a whole block the next one begins as it should.
    for bytes in (1..3 * next).filter(|bytes| bytes % next != 0) {
        let recording = with_first_too_large_by(bytes);
        let mut events = nettrace::SliceReader::new(&recording).unwrap();
        let numbers = numbers(&mut events);
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{bytes} too many: {:?}", events.damage());
        assert_eq!(events.damage_count(), 1, "{bytes} too many: {:?}", events.damage());
    }
}

#[test]
fn a_live_block_does_not_wait_for_the_next_one() {
    let mut begun = trace();
    begun.event_block(&block(&[1]));
    let begun = begun.unfinished();
    let mut events = nettrace::Decoder::new();
    events.feed(&begun);
    assert_eq!(numbers(&mut events), [1]);
    let mut events = nettrace::Decoder::new().with_lookahead();
    events.feed(&begun);
    assert_eq!(numbers(&mut events), []);
    events.feed(&[0; 4]);
    events.end_of_input();
    assert_eq!((numbers(&mut events), events.damage_count()), (vec![1], 0));

    let mut events = nettrace::Decoder::new();
    events.feed(&with_first_too_large_by(5));
    events.end_of_input();
    assert_eq!(
        (numbers(&mut events), events.damage_count()),
        (vec![1, 2, 3, 4, 5], 1),
        "what is there is looked at"
    );
}
