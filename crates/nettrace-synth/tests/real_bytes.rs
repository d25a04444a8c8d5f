//! The output of real programs, written again from a description, byte for byte.

use nettrace_synth::v6::{Label, ThreadEntry, ThreadRow};
use nettrace_synth::{
    Event, EventBlock, Field, Headers, Metadata, SystemTime, TraceHeader, Type, Value, netperf, nettrace,
    payload, v6,
};

fn fields(fields: &[(&str, Type)]) -> Vec<Field> {
    fields.iter().map(|(name, ty)| Field::new(name, ty.clone())).collect()
}

fn assert_bytes(ours: &[u8], real: &[u8]) {
    assert!(!real.is_empty());
    if let Some(at) = (0..real.len()).find(|&at| ours.get(at) != Some(&real[at])) {
        panic!("differs from {at:#x} on: ours {:x?}, real {:x?}", ours.get(at..), &real[at..]);
    }
    assert_eq!(ours.len(), real.len());
}

#[test]
fn v3_of_net10() {
    let header = TraceHeader {
        start: SystemTime {
            year: 2026,
            month: 11,
            day_of_week: 6,
            day: 21,
            hour: 9,
            minute: 2,
            second: 46,
            millisecond: 164,
        },
        sync_ticks: 0xe8_036d_125b,
        process_id: 11_198,
        ..TraceHeader::default()
    };
    let metadata = |id, event_id, version, keywords, level| Metadata {
        id,
        provider: "Microsoft-Windows-DotNETRuntime".into(),
        event_id,
        version,
        keywords,
        level,
        ..Metadata::default()
    };
    let created = |thread: u32, address: u64, flags: u32| {
        let values = [
            Value::UInt64(address),
            Value::UInt64(0x55d6_733f_66c0),
            Value::UInt32(0),
            Value::UInt32(flags),
            Value::UInt32(thread),
            Value::UInt16(0),
        ];
        payload(&values)
    };
    let event = |metadata_id, thread, timestamp, payload| {
        netperf::event(&Event { metadata_id, thread, timestamp, payload, ..Event::default() }, true)
    };
    let events = [
        netperf::metadata_event(&metadata(1, 85, 0, 0x1_0800, 4), 11_207, 996_490_113_762),
        event(1, 11_200, 996_490_113_762, created(11_200, 0x7f1b_7404_f070, 5)),
        event(1, 11_206, 996_490_130_338, created(11_206, 0x7f1b_7404_d5b0, 4)),
        netperf::metadata_event(&metadata(2, 9, 1, 1, 4), 11_207, 996_490_132_591),
        event(
            2,
            11_206,
            996_490_132_591,
            payload(&[Value::UInt32(0), Value::UInt32(u32::MAX), Value::UInt16(0)]),
        ),
    ];
    let mut trace = netperf::Trace::new(&header);
    trace.block_of_claimed_size("EventBlock", 0xeed8, &events.concat());
    let ours = trace.unfinished();
    assert_bytes(&ours[..ours.len() - 1], include_bytes!("real/v3-head.bin"));
}

fn typed_metadata() -> Vec<(u64, Metadata)> {
    let typed = |id, event_id, name: &str, opcode, list: &[(&str, Type)]| Metadata {
        id,
        provider: "Workload-Typed".into(),
        event_id,
        name: name.into(),
        keywords: 0xf000_0000_0000,
        level: 4,
        opcode,
        fields: fields(list),
        ..Metadata::default()
    };
    let ints = [
        ("b", Type::Byte),
        ("sb", Type::SByte),
        ("s", Type::Int16),
        ("us", Type::UInt16),
        ("i", Type::Int32),
        ("ui", Type::UInt32),
        ("l", Type::Int64),
        ("ul", Type::UInt64),
    ];
    let floats =
        [("f", Type::Single), ("d", Type::Double), ("t", Type::Boolean32), ("c", Type::Utf16CodeUnit)];
    let process = [
        ("CommandLine", Type::String16),
        ("OSInformation", Type::String16),
        ("ArchInformation", Type::String16),
    ];
    vec![
        (990_202_528_323, Metadata { keywords: 0xf000_0000_0010, ..typed(1, 1, "Ints", None, &ints) }),
        (990_202_646_709, typed(2, 2, "Floats", None, &floats)),
        (
            990_202_715_542,
            typed(3, 3, "Strings", None, &[("a", Type::String16), ("b", Type::String16), ("g", Type::Guid)]),
        ),
        (990_202_815_771, typed(4, 4, "Bytes", None, &[])),
        (
            990_202_942_791,
            typed(5, 5, "RequestStart", Some(1), &[("id", Type::Int32), ("url", Type::String16)]),
        ),
        (
            990_202_973_657,
            typed(6, 6, "RequestStop", Some(2), &[("id", Type::Int32), ("status", Type::Int32)]),
        ),
        (
            990_204_801_403,
            Metadata {
                keywords: u64::MAX,
                level: 0,
                version: 0,
                ..typed(7, 0, "EventSourceMessage", None, &[("message", Type::String16)])
            },
        ),
        (
            990_204_904_957,
            Metadata {
                keywords: 0xf000_0000_0000,
                level: 5,
                version: 3,
                ..typed(
                    8,
                    7,
                    "Enumy",
                    None,
                    &[("c", Type::Int32), ("when", Type::DateTime), ("p", Type::Int64)],
                )
            },
        ),
        (990_204_963_575, typed(9, 8, "Nothing", None, &[])),
        (
            990_206_761_737,
            Metadata {
                provider: "Workload-Nested".into(),
                keywords: 0,
                level: 5,
                ..typed(10, 11, "Nested", None, &[])
            },
        ),
        (
            990_212_796_376,
            Metadata {
                provider: "Microsoft-DotNETCore-EventPipe".into(),
                keywords: 0,
                level: 0,
                version: 1,
                ..typed(11, 1, "ProcessInfo", None, &process)
            },
        ),
    ]
}

#[test]
fn v4_of_net10() {
    let header = TraceHeader {
        start: SystemTime {
            year: 2026,
            month: 11,
            day_of_week: 6,
            day: 21,
            hour: 9,
            minute: 2,
            second: 39,
            millisecond: 860,
        },
        sync_ticks: 0xe6_8ba7_37cb,
        process_id: 10_980,
        ..TraceHeader::default()
    };
    let mut block = EventBlock::v4();
    for (timestamp, metadata) in typed_metadata() {
        let payload = metadata.payload_v5();
        let processor = u32::MAX;
        block.event(&Event {
            sorted: true,
            thread: 10_982,
            processor,
            timestamp,
            payload,
            ..Event::default()
        });
    }
    block.newest = 0xe6_8d48_2fd8;
    let mut trace = nettrace::Trace::new(&header);
    trace.block("MetadataBlock", &block.content());
    assert_bytes(&trace.unfinished(), include_bytes!("real/v4-head.bin"));
}

#[test]
fn v4_event_rows_of_net10() {
    let guid = [0, 0, 0, 0, 2, 0, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11];
    let zero = Value::Int32(0);
    let rows = [
        (
            990_202_528_323,
            payload(&[
                Value::Byte(1),
                Value::SByte(-2),
                Value::Int16(-3),
                Value::UInt16(4),
                zero.clone(),
                Value::UInt32(0),
                Value::Int64(0),
                Value::UInt64(0),
            ]),
        ),
        (
            990_202_646_709,
            payload(&[
                Value::Single(0.0),
                Value::Double(0.0),
                Value::Boolean32(true),
                Value::Utf16CodeUnit(0xe9),
            ]),
        ),
        (990_202_715_542, payload(&[Value::string16("plain"), Value::string16(""), Value::Guid(guid)])),
        (990_202_815_771, payload(&[Value::string16("raw"), Value::UInt32(3), Value::Raw(vec![1, 2, 255])])),
        (990_202_942_791, payload(&[zero.clone(), Value::string16("/x/0")])),
        (990_202_973_657, payload(&[zero, Value::Int32(200)])),
    ];
    let mut block = EventBlock::v4();
    for (number, (timestamp, payload)) in (1..).zip(rows) {
        block.event(&Event {
            metadata_id: number,
            sorted: number == 1,
            sequence: number,
            thread: 10_980,
            capture_thread: 10_980,
            processor: u32::MAX,
            stack_id: number,
            timestamp,
            payload,
            ..Event::default()
        });
    }
    assert_bytes(&block.content()[20..], include_bytes!("real/v4-event-rows.bin"));
}

/// The metadata of record-trace. Its code 23 is not the document's UTF-8 code unit: its payloads hold a u16
/// length and that many bytes of UTF-8 there.
fn record_trace_metadata() -> Vec<Metadata> {
    let text = Type::Utf8CodeUnit;
    let row = |id, event_id, name: &str, list: &[(&str, Type)]| Metadata {
        id,
        provider: if id <= 2 { "Universal.Events" } else { "Universal.System" }.into(),
        event_id,
        name: name.into(),
        fields: fields(list),
        ..Metadata::default()
    };
    let range = [("StartAddress", Type::VarUInt), ("EndAddress", Type::VarUInt)];
    let process = [("NamespaceId", Type::VarUInt), ("Name", text.clone()), ("NamespaceName", text.clone())];
    let mapping = [
        &[("Id", Type::VarUInt)][..],
        &range,
        &[("FileOffset", Type::VarUInt), ("FileName", text.clone()), ("MetadataId", Type::VarUInt)],
    ]
    .concat();
    let symbol =
        [&[("Id", Type::VarUInt), ("MappingId", Type::VarUInt)][..], &range, &[("Name", text.clone())]]
            .concat();
    let described = [("Id", Type::VarUInt), ("SymbolMetadata", text.clone()), ("VersionMetadata", text)];
    vec![
        row(1, 1, "cpu", &[("Value", Type::VarUInt)]),
        row(2, 2, "", &[("Value", Type::VarUInt)]),
        row(3, 0, "ExistingProcess", &process),
        row(4, 1, "ProcessCreate", &process),
        row(5, 2, "ProcessExit", &[]),
        row(6, 3, "ProcessMapping", &mapping),
        row(7, 4, "ProcessSymbol", &symbol),
        row(8, 5, "ProcessMappingMetadata", &described),
    ]
}

#[test]
fn v6_of_record_trace() {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let header = TraceHeader {
        start: SystemTime {
            year: 2026,
            month: 11,
            day_of_week: 4,
            day: 20,
            hour: 14,
            minute: 25,
            second: 41,
            millisecond: 381,
        },
        sync_ticks: 0xb3_4d71_6191,
        key_values: vec![pair("HardwareThreadCount", "2"), pair("ExpectedCPUSamplingRate", "1000000")],
        ..TraceHeader::default()
    };
    let mut trace = v6::Trace::new(&header);
    trace.metadata_block(&record_trace_metadata());
    trace.sequence_point(0xb3_4d71_6191, 1, &[]);
    assert_bytes(&trace.unfinished(), include_bytes!("real/v6-head.bin"));
}

/// The content of the one block that `write` writes.
fn content(write: impl FnOnce(&mut v6::Trace)) -> Vec<u8> {
    let mut trace = v6::Trace::without_header(6, 0);
    write(&mut trace);
    trace.unfinished()[24..].to_vec()
}

#[test]
fn v6_thread_rows_of_record_trace() {
    let row = |index, process, thread| ThreadRow {
        index,
        entries: vec![ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(thread)],
    };
    let rows = [
        row(129, 15_740, 0),
        row(133, 15_851, 0),
        row(13, 3_423, 0),
        row(298, 15_906, 15_908),
        row(126, 15_735, 0),
        row(314, 15_925, 15_928),
    ];
    assert_bytes(&content(|trace| _ = trace.thread_block(&rows)), include_bytes!("real/v6-thread-rows.bin"));
}

#[test]
fn v6_event_rows_of_record_trace() {
    // u16 length and UTF-8, where the metadata says code 23.
    let text = |text: &str| Value::Array(text.bytes().map(Value::Utf8CodeUnit).collect());
    let var = Value::VarUInt;
    // Four bytes follow that no field accounts for.
    let unexplained = Value::Raw(vec![0; 4]);
    let mapping =
        [var(744), var(0xffff_8000_0000_0000), var(u64::MAX), var(0), text("vmlinux"), var(0), unexplained];
    let symbol = [
        var(0),
        var(744),
        var(0xffff_ffff_8100_00ba),
        var(0xffff_ffff_8100_0137),
        text("entry_SYSCALL_64_after_hwframe"),
    ];
    let mut block = EventBlock::v6().with_headers(Headers::CompressedInFull);
    for (sequence, metadata_id, payload) in [(1, 6, payload(&mapping)), (2, 7, payload(&symbol))] {
        let event = Event {
            metadata_id,
            sorted: true,
            sequence,
            thread: 1,
            timestamp: 770_098_422_161,
            payload,
            ..Event::default()
        };
        block.compressed(0xdf, &event);
    }
    assert_bytes(&block.content()[20..], include_bytes!("real/v6-event-rows.bin"));
}

#[test]
fn v6_label_list_of_record_trace() {
    let lists = [vec![Label::Text("Error".into(), "Expected actual values".into())]];
    let mut trace = v6::Trace::without_header(6, 0);
    trace.label_list_block(1, &lists);
    assert_bytes(&trace.unfinished()[20..], include_bytes!("real/v6-label-list-block.bin"));
}
