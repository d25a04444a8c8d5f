//! A recording with values that no workload sends.

use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace, payload};

/// Returns a recording of a second: an exponential histogram of .NET 10, and a gauge whose texts are hostile.
pub(super) fn hostile() -> Vec<u8> {
    let size = [
        ("sessionId", text("SHARED")),
        ("meterName", text("App")),
        ("meterVersion", text("")),
        ("instrumentName", text("size")),
        ("instrumentId", Value::Int32(1)),
        ("unit", text("kg")),
        ("tags", text("")),
        // 0, 1, 3, 3 and 4.
        ("scale", Value::Int32(2)),
        ("sum", Value::Double(11.0)),
        ("count", Value::Int64(5)),
        ("zeroCount", Value::Int64(1)),
        ("minimum", Value::Double(0.0)),
        ("maximum", Value::Double(4.0)),
        ("buckets", text("1, 0, 0, 0, 0, 0, 0, 2, 1")),
    ];
    let gauge = [
        ("sessionId", text("SHARED")),
        ("meterName", text("A\"pp\n# EOF\u{1b}")),
        ("meterVersion", text("\\")),
        ("instrumentName", text("x\n# TYPE y")),
        ("unit", text("\"}")),
        ("tags", text("=,__name__=z,a-b=2,a.b=1,process_pid=7\"\n\u{1b}[31m\\")),
        ("lastValue", text("NaN")),
    ];
    // A name of which nothing is left but the unit, and counts that do not fit together.
    let mut broken = size.clone();
    broken[3].1 = text("\u{2026}");
    broken[4].1 = Value::Int32(2);
    broken[5].1 = text("s");
    broken[9].1 = Value::Int64(-99);
    broken[13].1 = text("1, -7, 9223372036854775807");
    let mut metadata = Vec::new();
    let mut events = EventBlock::v4();
    let header = TraceHeader::default();
    let kinds = [
        (19, "Base2ExponentialHistogramValuePublished", &size[..]),
        (5, "GaugeValuePublished", &gauge),
        (19, "Base2ExponentialHistogramValuePublished", &broken),
    ];
    for (id, (event_id, name, fields)) in (1..).zip(kinds) {
        metadata.push(Metadata {
            id,
            provider: "System.Diagnostics.Metrics".into(),
            event_id,
            name: name.into(),
            fields: fields.iter().map(|(name, value)| Field::new(name, type_of(value))).collect(),
            ..Metadata::default()
        });
    }
    for (sequence, millis) in (1..).zip([100i64, 200, 300, 600, 700, 800, 999]) {
        let id = (sequence - 1) % 3 + 1;
        let fields = [&size[..], &gauge, &broken][usize::try_from(id - 1).unwrap()];
        let values: Vec<Value> = fields.iter().map(|(_, value)| value.clone()).collect();
        events.event(&Event {
            metadata_id: id,
            sequence,
            timestamp: u64::try_from(header.sync_ticks + millis * header.frequency / 1000).unwrap(),
            payload: payload(&values),
            ..Event::default()
        });
    }
    let mut trace = nettrace::Trace::new(&header);
    trace.metadata_block(&metadata);
    trace.event_block(&events);
    trace.finish()
}

fn text(text: &str) -> Value {
    Value::String16(text.encode_utf16().collect())
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::String16(_) => Type::String16,
        Value::Int32(_) => Type::Int32,
        Value::Int64(_) => Type::Int64,
        Value::Double(_) => Type::Double,
        other => panic!("{other:?}"),
    }
}
