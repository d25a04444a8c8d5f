//! Recordings that are cut, and recordings with wrong bytes anywhere: no panic, and no more output than the
//! input can have.

use std::time::Instant;

use nettrace::{Decoder, RelativeTime};
use nettrace_edit::{
    Criteria, MappingIds, RedactionLetters, Redactor, Ring, RingCapacity, Rotation, SegmentStorage, Slice,
    copy,
};
use nettrace_synth::{
    Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace as v4, payload, v6,
};

/// Kinds of events that name code, are samples, and have strings.
fn kinds() -> [Metadata; 4] {
    let kind = |id, provider: &str, event_id, name: &str, fields| Metadata {
        id,
        provider: provider.into(),
        event_id,
        name: name.into(),
        fields,
        ..Metadata::default()
    };
    let texts = vec![Field::new("path", Type::String16), Field::new("count", Type::Int32)];
    [
        kind(1, "Microsoft-Windows-DotNETRuntimeRundown", 144, "MethodDCEndVerbose", Vec::new()),
        kind(2, "Microsoft-DotNETCore-SampleProfiler", 0, "ThreadSample", Vec::new()),
        kind(3, "Shop", 1, "Order", texts),
        kind(4, "Universal.System", 3, "ProcessMapping", Vec::new()),
    ]
}

fn block(mut block: EventBlock) -> EventBlock {
    for sequence in 1..=24_u32 {
        let metadata_id = sequence % 4 + 1;
        let text = [Value::string16("/home/anna/orders"), Value::Int32(7)];
        let payload = if metadata_id == 3 { payload(&text) } else { vec![9; 12 + sequence as usize] };
        block.event(&Event {
            metadata_id,
            sequence,
            thread: 1,
            capture_thread: 1,
            stack_id: u32::from(metadata_id == 2),
            sorted: true,
            timestamp: u64::from(sequence) * 1_000_000,
            payload,
            ..Event::default()
        });
    }
    block
}

fn recordings() -> [Vec<u8>; 2] {
    let header = TraceHeader::default();
    let stack: Vec<u8> = [0x1000_u64, 0x2000].iter().flat_map(|address| address.to_le_bytes()).collect();
    let mut old = v4::Trace::new(&header);
    old.metadata_block(&kinds());
    old.stack_block(1, std::slice::from_ref(&stack));
    old.event_block(&block(EventBlock::v4()));
    old.sequence_point(25_000_000, &[(1, 24)]);
    let mut new = v6::Trace::new(&header);
    new.metadata_block(&kinds());
    new.thread_block(&[v6::ThreadRow { index: 1, entries: vec![v6::ThreadEntry::ThreadId(100)] }]);
    new.stack_block(1, &[stack]);
    new.event_block(&block(EventBlock::v6()));
    new.sequence_point(25_000_000, 0, &[(1, 24)]);
    [old.finish(), new.finish()]
}

/// Maximum size of an output in bytes: a wrong length cannot make it larger than some copies of the input.
fn most(input: &[u8]) -> usize {
    16 * input.len() + (64 << 10)
}

fn slice_and_redact(bytes: &[u8]) -> usize {
    let at = |milliseconds: i64| Some(RelativeTime::from_nanos(milliseconds * 1_000_000));
    let criteria = Criteria::default().with_from(at(5)).with_to(at(15)).with_threads(vec![1, 100]);
    let redactions = vec!["paths".parse().unwrap(), "Shop/*.*".parse().unwrap()];
    let mut out = Vec::new();
    let mut slice = Slice::new(criteria).with_redactor(Redactor::new(redactions, RedactionLetters::Same));
    let outcome = copy(bytes, &mut out, &mut slice);
    assert!(out.len() < most(bytes), "{}", out.len());
    outcome.map_or(0, |copied| usize::try_from(copied.kept).unwrap())
}

/// Keeps a stream in a ring and in parts, and renumbers its mappings.
fn keep(bytes: &[u8]) -> u64 {
    let (mut decoder, now) = (Decoder::new(), Instant::now());
    let (mut ring, mut rotation, mut parts) = (None, None, 0_usize);
    let mut ids = MappingIds::new(2);
    for chunk in bytes.chunks(200) {
        decoder.feed(chunk);
        let Ok(Some(info)) = decoder.read_header() else { continue };
        if ring.is_none() {
            let capacity = RingCapacity { time: None, bytes: 256 };
            ring = Some(Ring::new(capacity, SegmentStorage::Memory, info, now).unwrap());
            rotation = Some(Rotation::new(300, info));
        }
        let (Some(ring), Some(rotation)) = (&mut ring, &mut rotation) else { continue };
        let mut part = Vec::new();
        rotation.begin(decoder.threads(), &mut part).unwrap();
        ring.receive(now);
        while let Ok(Some(record)) = decoder.next_record() {
            if let nettrace::Record::Event(event) = &record {
                assert!(ids.payload(0, 1, event).len() <= event.payload().len() + 20);
            }
            ring.add(&record).unwrap();
            rotation.add(&record, &mut part).unwrap();
        }
        ring.turn_if_due(decoder.threads()).unwrap();
        rotation.end(decoder.threads(), None, &mut part).unwrap();
        parts += 1;
        assert!(part.len() < most(bytes), "{}", part.len());
        assert!(ring.bytes() < most(bytes) as u64, "{}", ring.bytes());
    }
    let Some(mut ring) = ring else { return 0 };
    let mut out = Vec::new();
    let written = ring.snapshot(decoder.threads()).unwrap().write(None, &mut out).unwrap();
    assert!(parts > 0 && out.len() < most(bytes), "{}", out.len());
    written.events
}

#[test]
fn whole_recordings_are_edited() {
    for bytes in recordings() {
        assert!(slice_and_redact(&bytes) > 5);
        assert!(keep(&bytes) > 0);
    }
}

#[test]
fn recordings_may_end_anywhere() {
    for bytes in recordings() {
        let kept: Vec<_> = (0..bytes.len()).map(|end| slice_and_redact(&bytes[..end])).collect();
        assert_eq!(kept[0], 0);
        assert_eq!(kept.iter().max(), Some(&slice_and_redact(&bytes)));
        (0..bytes.len()).step_by(7).for_each(|end| {
            keep(&bytes[..end]);
        });
    }
}

#[test]
fn every_byte_may_be_wrong() {
    for bytes in recordings() {
        let mut unreadable = 0;
        for index in 0..bytes.len() {
            for wrong in [0, 0xff, bytes[index] ^ 1, bytes[index].wrapping_add(0x80)] {
                let mut bytes = bytes.clone();
                bytes[index] = wrong;
                unreadable += usize::from(slice_and_redact(&bytes) == 0);
                if index % 5 == 0 {
                    keep(&bytes);
                }
            }
        }
        // Most bytes belong to one event or block, and the rest is still read.
        assert!(unreadable > 0 && unreadable < 4 * bytes.len() / 2, "{unreadable} of {}", bytes.len());
    }
}
