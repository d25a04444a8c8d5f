//! Netperf that is wrong.

use nettrace_synth::{Event, Metadata, TraceHeader, netperf};

use crate::{Expect, Row, events, plain, row};

fn event(number: u8) -> Event {
    Event { metadata_id: 1, thread: 7, timestamp: 100, payload: vec![number], ..Event::default() }
}

/// A V3 recording of two blocks: metadata, event 1 and these bytes; event 2.
fn v3(bytes: &[u8]) -> Vec<u8> {
    let mut trace = netperf::Trace::new(&TraceHeader::default());
    trace.event_block(&[
        netperf::metadata_event(&plain(), 1, 0),
        netperf::event(&event(1), true),
        bytes.to_vec(),
    ]);
    trace.event_block(&[netperf::event(&event(2), true)]);
    trace.finish()
}

/// An event of V3 with some of its sizes changed: its own, of its payload (4 bytes), of its stack.
fn sizes(size: Option<u32>, payload: Option<u32>, stack: Option<u32>) -> Vec<u8> {
    let mut bytes = netperf::event(&Event { payload: vec![3, 0, 0, 0], ..event(3) }, true);
    for (offset, value) in [(0, size), (52, payload), (60, stack)] {
        if let Some(value) = value {
            bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

/// A V2 recording of event 1 and these bytes.
fn v2(bytes: &[u8]) -> netperf::EarlyTrace {
    let mut trace = netperf::EarlyTrace::v2(&TraceHeader::default());
    let metadata_id = trace.metadata(&plain());
    trace.event(&Event { metadata_id, ..event(1) }).raw(bytes);
    trace
}

pub(crate) fn rows() -> Vec<Row> {
    let mut other = netperf::Trace::new(&TraceHeader::default()).finish();
    let name = other.windows(5).position(|window| window == b"Trace").expect("the name of the first object");
    other[name..name + 5].copy_from_slice(b"Track");
    [blocks(), vec![row("netperf of another object", other, Expect::Refused("another type"))], flat()]
        .into_iter()
        .flatten()
        .collect()
}

fn blocks() -> Vec<Row> {
    let with = |size, payload, stack| v3(&sizes(size, payload, stack));
    let bad = || events(&[1, 2]);
    let mut nettrace_block = netperf::Trace::new(&TraceHeader::default());
    nettrace_block
        .block("MetadataBlock", &[0; 20])
        .event_block(&[netperf::metadata_event(&plain(), 1, 0), netperf::event(&event(1), true)]);
    vec![
        row("a V3 event as it should be", with(None, None, None), events(&[1, 3, 2])),
        row("a V3 event of negative size", with(Some(u32::MAX), None, None), bad().damage("negative size")),
        row("a V3 event of size 0", with(Some(0), None, None), bad().damage("smaller than")),
        row(
            "a V3 event of 2 GB",
            with(Some(i32::MAX.cast_unsigned()), None, None),
            bad().damage("past the end of its block"),
        ),
        row("a V3 payload of negative size", with(None, Some(u32::MAX), None), bad().damage("negative size")),
        row("a V3 payload past its event", with(None, Some(5), None), bad().damage("smaller than")),
        row("a V3 stack of negative size", with(None, None, Some(u32::MAX)), bad().damage("negative size")),
        row("a V3 stack past its event", with(None, None, Some(8)), bad().damage("smaller than")),
        row(
            "a V3 event of metadata that nothing defines",
            v3(&netperf::event(&Event { metadata_id: 99, ..event(3) }, true)),
            bad().damage("defined nowhere"),
        ),
        row(
            "V3 metadata without bytes",
            v3(&netperf::event(&Event { metadata_id: 0, payload: vec![], ..event(3) }, true)),
            bad().damage("names no event"),
        ),
        row(
            "V3 metadata that is defined again",
            v3(&netperf::metadata_event(&Metadata { name: "again".into(), ..plain() }, 1, 0)),
            bad().damage("defined again"),
        ),
    ]
}

fn flat() -> Vec<Row> {
    let mut trailing = v2(&[]).finish();
    trailing.extend([1, 2, 3]);
    let mut wrong_reference = v2(&[]).finish();
    let tail = wrong_reference.len() - 12;
    wrong_reference[tail] ^= 1;
    let unknown = netperf::event(&Event { metadata_id: 3, ..event(3) }, false);
    vec![
        row("a V2 recording without its end", v2(&[]).unfinished(), events(&[1]).truncated()),
        row(
            "a V2 recording whose forward reference leads elsewhere",
            wrong_reference,
            events(&[1]).truncated(),
        ),
        row("a V2 recording with bytes after its end", trailing, events(&[1]).damage("after the end")),
        row(
            "a V2 event of negative size",
            v2(&[0xff; 60]).finish(),
            events(&[1]).damage("negative size").truncated(),
        ),
        row(
            "a V2 event of 200 MB that is not there",
            v2(&[0, 0, 0, 12, 1, 2, 3]).unfinished(),
            events(&[1]).truncated(),
        ),
        row(
            "a V2 event of metadata that nothing defines",
            v2(&unknown).finish(),
            events(&[1]).damage("defined nowhere"),
        ),
        row("a V2 event of size 0", v2(&[0; 4]).finish(), events(&[1]).damage("smaller than")),
    ]
}
