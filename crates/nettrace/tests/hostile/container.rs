//! Wrong beginnings, objects and sizes of V4.

use nettrace_synth::{Bytes, TraceHeader, nettrace as v4};

use crate::{Expect, Row, block, events, row, trace};

/// A V4 recording with event block 1 written by `write`, between metadata and an event block with event 2.
fn between(write: impl FnOnce(&mut v4::Trace)) -> Vec<u8> {
    let mut trace = trace();
    write(&mut trace);
    trace.event_block(&block(&[2]));
    trace.finish()
}

fn header(header: &TraceHeader) -> Vec<u8> {
    v4::Trace::new(header).finish()
}

/// The tags and the type of an object.
fn object(name_size: u32, name: &str, least_reader_version: u32) -> Vec<u8> {
    let mut out = Bytes::new();
    out.raw(&[5, 5, 1]).u32(2).u32(least_reader_version).u32(name_size).raw(name.as_bytes()).u8(6);
    out.into_vec()
}

pub(crate) fn rows() -> Vec<Row> {
    [beginnings(), headers(), objects(), sizes(), missing(), ends()].into_iter().flatten().collect()
}

fn beginnings() -> Vec<Row> {
    let version = |version, least| v4::Trace::with_version(&TraceHeader::default(), version, least).finish();
    let mut other_object = v4::Trace::without_header();
    other_object.block("EventBlock", &[]);
    let mut no_end = header(&TraceHeader::default());
    *no_end.iter_mut().rev().nth(1).expect("the end tag of the Trace object") = 0;
    vec![
        row("nothing", vec![], Expect::Refused("empty")),
        row("a part of the magic", b"Nettr".to_vec(), Expect::Refused("not a nettrace")),
        row("only the magic", b"Nettrace".to_vec(), Expect::Refused("ends inside its header")),
        row(
            "another magic",
            b"NotTrace\x14\0\0\0!FastSerialization.1".to_vec(),
            Expect::Refused("not a nettrace"),
        ),
        row(
            "another signature",
            b"Nettrace\x14\0\0\0!FastSerialization.2".to_vec(),
            Expect::Refused("not a nettrace"),
        ),
        row(
            "a text file",
            b"Hello, world. This is no trace at all, but text.".to_vec(),
            Expect::Refused("not a nettrace"),
        ),
        row("zeros", vec![0; 1000], Expect::Refused("not a nettrace")),
        row("no object", v4::Trace::without_header().unfinished(), Expect::Refused("ends inside its header")),
        row(
            "the end in place of the Trace object",
            v4::Trace::without_header().finish(),
            Expect::Refused("no object"),
        ),
        row("another object than Trace", other_object.finish(), Expect::Refused("another type than Trace")),
        row("a version for newer readers", version(5, 5), Expect::Refused("newer than this reader")),
        row("a version that older readers read", version(5, 4), events(&[])),
        row("the Trace object without its end", no_end, Expect::Refused("has no end")),
    ]
}

fn headers() -> Vec<Row> {
    let default = TraceHeader::default();
    vec![
        row(
            "no frequency",
            header(&TraceHeader { frequency: 0, ..default.clone() }),
            Expect::Refused("frequency"),
        ),
        row(
            "negative frequency",
            header(&TraceHeader { frequency: -1, ..default.clone() }),
            Expect::Refused("frequency"),
        ),
        row(
            "pointers of 0 bytes",
            header(&TraceHeader { pointer_size: 0, ..default.clone() }),
            Expect::Refused("pointer size"),
        ),
        row(
            "pointers of 3 bytes",
            header(&TraceHeader { pointer_size: 3, ..default.clone() }),
            Expect::Refused("pointer size"),
        ),
        row(
            "pointers of 255 bytes",
            header(&TraceHeader { pointer_size: 255, ..default.clone() }),
            Expect::Refused("pointer size"),
        ),
        row(
            "pointers of -8 bytes",
            header(&TraceHeader { pointer_size: -8, ..default.clone() }),
            Expect::Refused("pointer size"),
        ),
        row(
            "no calendar time",
            header(&TraceHeader {
                start: nettrace_synth::SystemTime { month: 13, ..default.start },
                ..default.clone()
            }),
            events(&[]),
        ),
        row(
            "clock at its ends",
            header(&TraceHeader { sync_ticks: i64::MIN, frequency: i64::MAX, ..default }),
            events(&[]),
        ),
    ]
}

fn objects() -> Vec<Row> {
    vec![
        row(
            "an object of an unknown type",
            between(|t| _ = t.block("FutureBlock", &[1, 2, 3])),
            events(&[2]),
        ),
        row(
            "an unknown object that holds an event block",
            between(|t| _ = t.block("FutureBlock", &block(&[1]).content())),
            events(&[2]),
        ),
        row("an object without a name", between(|t| _ = t.block("", &[1, 2, 3])), events(&[2])),
        row(
            "an object with a name of 4 GB",
            between(|t| _ = t.raw(&object(u32::MAX, "EventBlock", 2))),
            events(&[2]).damage("neither an object"),
        ),
        row("a tag that is none", between(|t| _ = t.raw(&[9])), events(&[2]).damage("neither an object")),
        row(
            "a stray end of an object",
            between(|t| _ = t.raw(&[6])),
            events(&[2]).damage("neither an object"),
        ),
        row(
            "1000 bytes of 0xff between objects",
            between(|t| _ = t.raw(&[0xff; 1000])),
            events(&[2]).damage("neither an object"),
        ),
        row(
            "1000 beginnings of objects",
            between(|t| _ = t.raw(&[5; 1000])),
            events(&[2]).damage("neither an object"),
        ),
        row(
            "a block for newer readers",
            between(|t| {
                t.raw(&object(10, "EventBlock", 3)).raw(&[0; 4]);
                // The size's place decides how much padding follows.
                while !t.offset().is_multiple_of(4) {
                    t.raw(&[0]);
                }
                t.raw(&[6]);
            }),
            events(&[2]).damage("only a newer reader"),
        ),
    ]
}

fn sizes() -> Vec<Row> {
    let sized =
        |size: u32| between(|t| _ = t.block_of_claimed_size("EventBlock", size, &block(&[1]).content()));
    let length = u32::try_from(block(&[1]).content().len()).expect("a small block");
    let mut last = trace();
    last.block_of_claimed_size("EventBlock", length + 100, &block(&[1]).content());
    vec![
        row("a block of negative size", sized(u32::MAX), events(&[2]).damage("negative size")),
        row("a block of 2 GB", sized(i32::MAX.cast_unsigned()), events(&[2]).damage("over 256 MB")),
        row(
            "a block of 200 MB that is not there",
            sized(200 << 20),
            events(&[2]).damage("larger than the rest"),
        ),
        row(
            "a block that ends in the next one",
            sized(length + 8),
            events(&[2]).damage("without its end tag"),
        ),
        row(
            "a block that is larger than the rest",
            sized(length + 200),
            events(&[2]).damage("larger than the rest"),
        ),
        row(
            "a block that is one byte longer than its size",
            sized(length - 1),
            events(&[2]).damage("without its end tag"),
        ),
        row("a block of size 0 with content", sized(0), events(&[2]).damage("without its end tag")),
        row("a last block that is larger than the rest", last.unfinished(), events(&[1]).truncated()),
        row(
            "an empty event block",
            between(|t| _ = t.block("EventBlock", &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "an empty metadata block",
            between(|t| _ = t.block("MetadataBlock", &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "an empty stack block",
            between(|t| _ = t.block("StackBlock", &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row(
            "an empty sequence point",
            between(|t| _ = t.block("SPBlock", &[])),
            events(&[2]).damage("past the end of its block"),
        ),
        row("an event block without events", between(|t| _ = t.event_block(&block(&[]))), events(&[2])),
        row("a metadata block without rows", between(|t| _ = t.metadata_block(&[])), events(&[2])),
        row("a stack block without stacks", between(|t| _ = t.stack_block(1, &[])), events(&[2])),
        row("a sequence point without threads", between(|t| _ = t.sequence_point(1, &[])), events(&[2])),
    ]
}

/// Bytes of event 1 are missing: the padding of the blocks after them no longer fits their place.
fn missing() -> Vec<Row> {
    let names = ["one byte is missing", "two bytes are missing", "three bytes are missing"];
    let rows = names.into_iter().zip(1..).map(|(name, count)| {
        let mut trace = trace();
        trace.event_block(&block(&[1]));
        let end = trace.offset();
        trace.event_block(&block(&[2])).event_block(&block(&[3, 4]));
        let mut bytes = trace.finish();
        bytes.drain(end - 10..end - 10 + count);
        row(
            name,
            bytes,
            events(&[2, 3, 4]).damage("without its end tag").damage("bytes before it are missing"),
        )
    });
    rows.collect()
}

fn ends() -> Vec<Row> {
    let mut whole = trace();
    whole.event_block(&block(&[1]));
    let mut trailing = whole.clone().finish();
    trailing.extend([1, 2, 3]);
    let mut two = whole.clone().finish();
    two.extend(whole.clone().finish());
    vec![
        row("no end", whole.unfinished(), events(&[1]).truncated()),
        row("bytes after the end", trailing, events(&[1]).damage("after the end")),
        row("two recordings in one", two, events(&[1]).damage("after the end")),
        row("only a header", v4::Trace::new(&TraceHeader::default()).unfinished(), events(&[]).truncated()),
    ]
}
