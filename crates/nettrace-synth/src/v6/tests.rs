use super::{Label, ThreadEntry, ThreadRow, Trace, kind};
use crate::{SystemTime, TraceHeader};

/// The one block that `write` writes.
fn block(write: impl FnOnce(&mut Trace)) -> Vec<u8> {
    let mut trace = Trace::without_header(6, 0);
    write(&mut trace);
    trace.unfinished()[20..].to_vec()
}

#[test]
fn the_first_bytes_and_the_trace_block() {
    let header = TraceHeader {
        start: SystemTime { year: 2025, month: 3, ..SystemTime::default() },
        sync_ticks: 11,
        frequency: 10,
        pointer_size: 4,
        minor: 2,
        key_values: vec![("ProcessId".into(), "77".into())],
        ..TraceHeader::default()
    };
    let expected = [
        &b"Nettrace"[..],
        &[0, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0],
        &[53, 0, 0, 1],
        &[0xe9, 7, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[11, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0],
        &[4, 0, 0, 0, 1, 0, 0, 0],
        b"\x09ProcessId\x0277",
        &[0, 0, 0, 0],
    ];
    assert_eq!(Trace::new(&header).finish(), expected.concat());
}

#[test]
fn block_headers_have_a_size_of_24_bits() {
    let bytes = block(|trace| _ = trace.block(0x7f, &vec![0; 0x0001_0203]));
    assert_eq!(bytes[..4], [3, 2, 1, 0x7f]);
    assert_eq!(bytes.len(), 4 + 0x0001_0203);
    assert_eq!(
        block(|trace| _ = trace.block_of_claimed_size(kind::EVENT, 0xff_ffff, &[])),
        [0xff, 0xff, 0xff, 2]
    );
}

#[test]
fn thread_rows() {
    let entries = vec![
        ThreadEntry::Name("main".into()),
        ThreadEntry::ProcessId(300),
        ThreadEntry::ThreadId(5),
        ThreadEntry::KeyValue("k".into(), "v".into()),
    ];
    let rows = [
        ThreadRow { index: 200, entries },
        ThreadRow { index: 1, entries: vec![ThreadEntry::Raw(vec![99, 1])] },
    ];
    let expected = [
        &[25, 0, 0, 6, 18, 0, 200, 1][..],
        b"\x01\x04main",
        &[2, 0xac, 2, 3, 5],
        b"\x04\x01k\x01v",
        &[3, 0, 1, 99, 1],
    ];
    assert_eq!(block(|trace| _ = trace.thread_block(&rows)), expected.concat());
}

#[test]
fn removed_threads_and_sequence_points() {
    assert_eq!(
        block(|trace| _ = trace.remove_thread_block(&[(1, 300), (200, 2)])),
        [6, 0, 0, 7, 1, 0xac, 2, 200, 1, 2]
    );
    let expected = [21, 0, 0, 4, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0xac, 2, 2, 0];
    assert_eq!(block(|trace| _ = trace.sequence_point(9, 3, &[(1, 300), (2, 0)])), expected);
}

#[test]
fn label_lists_of_every_kind() {
    let lists = [
        vec![
            Label::Activity([1; 16]),
            Label::RelatedActivity([2; 16]),
            Label::TraceId([3; 16]),
            Label::SpanId(4),
            Label::Text("k".into(), "v".into()),
            Label::Number("n".into(), -1),
            Label::Opcode(7),
            Label::Keywords(8),
            Label::Level(9),
            Label::Version(10),
        ],
        vec![Label::Raw(0x11, vec![5])],
    ];
    let expected = [
        &[1, 0, 0, 0, 2, 0, 0, 0][..],
        &[1; 17],
        &[2; 17],
        &[3; 17],
        &[4, 4, 0, 0, 0, 0, 0, 0, 0],
        b"\x05\x01k\x01v",
        b"\x06\x01n\x01",
        &[7, 7],
        &[8, 8, 0, 0, 0, 0, 0, 0, 0],
        &[9, 9],
        &[0x8a, 10],
        &[0x91, 5],
    ]
    .concat();
    let bytes = block(|trace| _ = trace.label_list_block(1, &lists));
    assert_eq!(bytes[4..], expected);
    assert_eq!(bytes[..4], [u8::try_from(expected.len()).unwrap(), 0, 0, 8]);
}
