//! Recordings of events of counters.

use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace, payload};

const METRICS: &str = "System.Diagnostics.Metrics";

/// Makes a recording of events of counters, whose texts and numbers are those of the input.
pub fn recording(bytes: &[u8]) -> Vec<u8> {
    let (mut metadata, mut events) = (Vec::new(), EventBlock::v4());
    for (number, chunk) in (1u32..).zip(bytes.chunks(200)).take(16) {
        let kind = chunk.first().copied().unwrap_or_default();
        let texts = String::from_utf8_lossy(chunk.get(1..).unwrap_or_default()).into_owned();
        let mut texts = texts.split('\n');
        let mut text = |name: &str| {
            let text: Vec<u16> =
                texts.next().unwrap_or_default().encode_utf16().filter(|unit| *unit != 0).collect();
            (name.to_owned(), Type::String16, Value::String16(text))
        };
        let number_of = |name: &str, at: usize| {
            let bits = chunk.iter().skip(at).take(8).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            (name.to_owned(), Type::Double, Value::Double(f64::from_bits(bits)))
        };
        let count = (String::from("count"), Type::Int32, Value::Int32(i32::from(kind)));
        let seconds = ("IntervalSec".to_owned(), Type::Single, Value::Single(f32::from(kind % 8) / 2.0));
        let is_meter = kind % 2 == 0;
        let fields = if is_meter {
            let names = [
                "sessionId",
                "meterName",
                "instrumentName",
                "tags",
                "rate",
                "value",
                "lastValue",
                "quantiles",
            ];
            let texts: Vec<_> = names.iter().chain(&["buckets", "unit"]).map(|name| text(name)).collect();
            [texts, vec![count, number_of("sum", 1), number_of("maximum", 9)]].concat()
        } else {
            let texts: Vec<_> =
                ["Name", "DisplayName", "Metadata", "Series"].iter().map(|name| text(name)).collect();
            let measured = if kind % 4 == 1 { "Mean" } else { "Increment" };
            let count = ("Count".to_owned(), Type::Int32, Value::Int32(i32::from(kind)));
            [texts, vec![number_of(measured, 1), number_of("StandardDeviation", 9), count, seconds]].concat()
        };
        let list: Vec<Field> = fields.iter().map(|(name, of, _)| Field::new(name, of.clone())).collect();
        let values: Vec<Value> = fields.into_iter().map(|(.., value)| value).collect();
        let (provider, name, list) = if is_meter {
            (METRICS, "", list)
        } else {
            (
                "Any",
                "EventCounters",
                vec![Field::new("", Type::Object(vec![Field::new("Payload", Type::Object(list))]))],
            )
        };
        metadata.push(Metadata {
            id: number,
            provider: provider.into(),
            event_id: u32::from(kind / 2 % 20),
            name: name.into(),
            fields: list,
            ..Metadata::default()
        });
        events.event(&Event {
            metadata_id: number,
            sequence: number,
            timestamp: u64::from(number) * 1_000_000,
            payload: payload(&values),
            ..Event::default()
        });
    }
    let mut trace = nettrace::Trace::new(&TraceHeader::default());
    trace.metadata_block(&metadata);
    trace.event_block(&events);
    trace.finish()
}
