//! Any bytes as a recording, and as the texts of events of counters: samples of them, at their interval and at a longer one.

#![no_main]

use std::time::Duration;

use clr_counters::dotnet_counters::{rows, write_csv_row, write_json_row};
use clr_counters::{Condition, Counters, Measurement, MeterMeasurement, Sample, Selection, Thinning};
use libfuzzer_sys::fuzz_target;
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace, payload};

const METRICS: &str = "System.Diagnostics.Metrics";

/// The largest number of series.
const MOST: usize = 50;

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    dipc_fuzz::bounded(bytes.len(), || check(bytes));
    let made = made(bytes);
    dipc_fuzz::bounded(made.len(), || check(&made));
    for text in String::from_utf8_lossy(bytes).split('\0').take(8) {
        // Patterns are compared with texts of any length.
        let _ = (Selection::parse(text).map(|it| it.has_instrument(text, text)), Condition::parse(text));
    }
});

/// Checks that samples are of series that are known, of which there are no more than may be, that each can be written, and that at a
/// longer interval what grew is the same.
fn check(bytes: &[u8]) {
    let Ok(reader) = nettrace_reader(bytes) else { return };
    let mut counters = Counters::new(Selection::everything()).with_max_series(MOST);
    let mut thinning = Thinning::new(Duration::from_secs(3));
    let (mut grown, mut grown_later) = (Growth::default(), Growth::default());
    let mut events = reader.in_time_order();
    let mut add = |sample: &Sample<'_>, thinning: &mut Thinning| {
        write(sample);
        grown.add(sample);
        thinning.add(sample, |sample| grown_later.add(&sample));
    };
    let _ = events.for_each(|event| counters.add(&event, |sample| add(&sample, &mut thinning)));
    counters.finish(|sample| add(&sample, &mut thinning));
    thinning.finish(counters.series(), |sample| grown_later.add(&sample));
    assert!(counters.series().len() <= MOST);
    assert!(grown.is_large || grown.count == grown_later.count, "{} {}", grown.count, grown_later.count);
    assert_eq!(grown.measurements.min(1), grown_later.measurements.min(1));
    assert!(grown_later.measurements <= grown.measurements);
}

fn nettrace_reader(bytes: &[u8]) -> Result<::nettrace::Reader<&[u8]>, ::nettrace::Error> {
    ::nettrace::Reader::new(bytes)
}

/// The numbers of a stream of samples that do not depend on their interval.
#[derive(Default)]
struct Growth {
    measurements: u64,
    /// The measurements of histograms.
    count: i64,
    /// Whether there are so many that sums may saturate.
    is_large: bool,
}

impl Growth {
    fn add(&mut self, sample: &Sample<'_>) {
        self.measurements += 1;
        if let Measurement::Meter(MeterMeasurement::Histogram { count: Some(count), .. }) = sample.measurement
        {
            self.is_large |= count.unsigned_abs() > 1 << 16;
            self.count += i64::from(*count);
        }
    }
}

fn write(sample: &Sample<'_>) {
    let mut written = Vec::new();
    for row in rows(sample, Duration::from_secs(1)) {
        write_csv_row(&mut written, "", &row).expect("a Vec takes all");
        write_json_row(&mut written, false, "", &row).expect("a Vec takes all");
    }
    for aspect in sample.series.aspects() {
        let _ = (sample.number(*aspect), sample.series.label(*aspect), sample.series.unit_of(*aspect));
    }
    assert!(sample.series.tag_pairs().len() <= sample.series.tags.len());
}

/// Makes a recording of events of counters, whose texts and numbers are those of the input.
fn made(bytes: &[u8]) -> Vec<u8> {
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
