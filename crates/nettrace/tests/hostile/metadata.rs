//! Metadata of V4 and V5 that say nothing, or too much.

use nettrace_synth::{Bytes, Field, Metadata, TraceHeader, Type, nettrace as v4};

use crate::{Row, block, events, plain, row};

/// A recording with metadata rows of these payloads, and event 1.
fn with(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block_of(payloads).event_block(&block(&[1]));
    trace.finish()
}

/// The row of metadata 1 up to its fields.
fn head() -> Bytes {
    let mut out = Bytes::new();
    out.u32(1).string16("P").u32(5).string16("E").u64(0).u32(0).u32(0);
    out
}

/// The row of metadata 1 with these bytes in place of its fields.
fn fields(bytes: &[u8]) -> Vec<u8> {
    let mut out = head();
    out.raw(bytes);
    out.into_vec()
}

/// Numbers of four bytes each.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn rows() -> Vec<Row> {
    [heads(), lists(), tags()].into_iter().flatten().collect()
}

fn heads() -> Vec<Row> {
    let unterminated = |text: &str| {
        let mut out = Bytes::new();
        out.u32(2).raw(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
        out.into_vec()
    };
    let other = |payload: Vec<u8>| with(&[plain().payload_v5(), payload]);
    let nothing = || events(&[1]).damage("names no event");
    let mut odd = head().into_vec();
    odd.truncate(odd.len() - 1);
    vec![
        row("a metadata row without bytes", other(vec![]), nothing()),
        row("a metadata row of an id", other(vec![2, 0, 0, 0]), nothing()),
        row("a provider without an end", other(unterminated("Provider")), nothing()),
        row(
            "a provider without an end, of odd length",
            other([unterminated("P"), vec![9]].concat()),
            nothing(),
        ),
        row("a metadata row that ends before its level", with(&[plain().payload_v5(), odd]), nothing()),
        row(
            "metadata that only its event misses",
            with(&[unterminated("P")]),
            events(&[]).damage("names no event").damage("defined nowhere"),
        ),
        row("metadata without a field list", with(&[head().into_vec()]), events(&[1]).damage("field list")),
        row(
            "empty names everywhere",
            with(&[Metadata { id: 1, ..Metadata::default() }.payload_v5()]),
            events(&[1]),
        ),
    ]
}

fn nested_object(depth: u32) -> Vec<u8> {
    (0..depth).flat_map(|_| words(&[1, 1])).collect()
}

fn lists() -> Vec<Row> {
    let bad = || events(&[1]).damage("field list");
    let objects = Type::Object(vec![]);
    let many = Metadata { fields: (0..5000).map(|_| Field::new("", Type::Byte)).collect(), ..plain() };
    vec![
        row("2^31 fields", with(&[fields(&words(&[1 << 31]))]), bad()),
        row(
            "2^32 - 1 fields, of which there is one",
            with(&[fields(&[words(&[u32::MAX, 6]), vec![b'x', 0, 0, 0]].concat())]),
            bad().fields(&[("x", "u8 1")]),
        ),
        row("a field without a name", with(&[fields(&words(&[1, 6]))]), bad()),
        row(
            "a field whose name has no end",
            with(&[fields(&[words(&[1, 6]), vec![b'x', 0]].concat())]),
            bad(),
        ),
        row("objects 10000 deep", with(&[fields(&nested_object(10_000))]), bad()),
        row("an object of 2^31 fields", with(&[fields(&words(&[1, 1, 1 << 31]))]), bad()),
        row("arrays 10000 deep", with(&[fields(&[words(&[1]), words(&vec![19; 10_000])].concat())]), bad()),
        row(
            "more fields than the payload has bytes",
            with(&[many.payload_v5()]),
            events(&[1]).fields(&[("", "u8 1"), ("!", "ends inside field 1 of 5000")]),
        ),
        row(
            "an object without fields",
            with(&[Metadata {
                fields: vec![Field::new("o", objects.clone()), Field::new("b", Type::Byte)],
                ..plain()
            }
            .payload_v5()]),
            events(&[1]).fields(&[("o", "{}"), ("b", "u8 1")]),
        ),
        row(
            "an array of objects without fields",
            with(&[Metadata { fields: vec![Field::new("a", Type::Array(Box::new(objects)))], ..plain() }
                .payload_v5()]),
            events(&[1]).damage("tag of a metadata row"),
        ),
    ]
}

fn tags() -> Vec<Row> {
    let tag = |bytes: &[u8]| with(&[fields(&[&[0; 4], bytes].concat())]);
    let v2 = |bytes: &[u8]| {
        let size = u32::try_from(bytes.len()).expect("a small tag");
        tag(&[&size.to_le_bytes()[..], &[2], bytes].concat())
    };
    let bad = || events(&[1]).damage("tag of a metadata row");
    let deep: Vec<u8> = [words(&[1, 4 + 2 + 4 * 10_000]), vec![0, 0], words(&vec![19; 10_000])].concat();
    vec![
        row("a tag of one byte", tag(&[1]), bad()),
        row("a tag of 4 GB", tag(&[0xff, 0xff, 0xff, 0xff, 1, 1]), bad()),
        row("a tag of an unknown kind", tag(&[2, 0, 0, 0, 99, 1, 2]), events(&[1])),
        row("an opcode without a byte", tag(&[0, 0, 0, 0, 1]), bad()),
        row("an opcode of two bytes", tag(&[2, 0, 0, 0, 1, 7, 8]), events(&[1])),
        row("a field list of 2^31 fields in a tag", v2(&words(&[1 << 31])), bad()),
        row("a field of size 0 in a tag", v2(&words(&[1, 0, 6])), bad()),
        row("a field of size 3 in a tag", v2(&words(&[1, 3, 6])), bad()),
        row("a field of 4 GB in a tag", v2(&words(&[1, u32::MAX, 6])), bad()),
        row("arrays 10000 deep in a tag", v2(&deep), bad()),
        row(
            "a field with room to spare in a tag",
            v2(&[words(&[1, 13]), vec![b'x', 0, 0, 0], vec![6, 0, 0, 0], vec![9]].concat()),
            events(&[1]).fields(&[("x", "u8 1")]),
        ),
        row(
            "an array type without an element type",
            v2(&[words(&[1, 10]), vec![0, 0], words(&[19])].concat()),
            bad(),
        ),
    ]
}
