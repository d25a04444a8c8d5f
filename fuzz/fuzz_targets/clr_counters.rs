//! Any bytes as a recording, and as the texts of events of counters: samples of them, at their interval and
//! at a longer one.

#![no_main]

use std::time::Duration;

use clr_counters::dotnet_counters::{rows, write_csv_row, write_json_row};
use clr_counters::{
    Comparison, Condition, Counters, Measurement, MeterMeasurement, Sample, Selection, Thinning,
};
use libfuzzer_sys::fuzz_target;
use nettrace::Reader;

/// Maximum number of series.
const MAX_SERIES: usize = 50;

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    dipc_fuzz::bounded(bytes.len(), || check(bytes));
    let made = dipc_fuzz::counters::recording(bytes);
    dipc_fuzz::bounded(made.len(), || check(&made));
    for text in String::from_utf8_lossy(bytes).split('\0').take(8) {
        // Patterns are compared with texts of any length.
        let condition = Condition::new(text, Comparison::Greater, 1.0);
        let _ = (Selection::parse(text).map(|it| it.has_instrument(text, text)), condition);
    }
});

/// Checks that samples are of series that are known, of which there are no more than may be, that each can be
/// written, and that at a longer interval what grew is the same.
fn check(bytes: &[u8]) {
    let Ok(reader) = Reader::new(bytes) else { return };
    let mut counters = Counters::new(Selection::everything()).with_max_series(MAX_SERIES);
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
    assert!(counters.series().len() <= MAX_SERIES);
    assert!(grown.is_large || grown.count == grown_later.count, "{} {}", grown.count, grown_later.count);
    assert_eq!(grown.measurements.min(1), grown_later.measurements.min(1));
    assert!(grown_later.measurements <= grown.measurements);
}

/// The numbers of a stream of samples that do not depend on their interval.
#[derive(Default)]
struct Growth {
    measurements: u64,
    /// The measurements of histograms.
    count: i64,
    /// True if there are so many that sums may saturate.
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
