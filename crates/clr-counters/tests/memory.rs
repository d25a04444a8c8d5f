//! The memory of exporters with many series, over many intervals. Alone in its program, since it measures the
//! program's memory.

#![cfg(all(target_os = "linux", feature = "otlp", feature = "protobuf"))]

use std::time::Duration;

use clr_counters::prometheus::{Format, NameStyle};
use clr_counters::{
    Kind, Measurement, MeterMeasurement, ProcessKey, Sample, Series, SeriesId, otlp, prometheus,
};
use nettrace::RelativeTime;

const SERIES: u32 = 10_000;

/// A number in this process's status, in KiB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

fn series(number: u32) -> Series {
    let mut series = Series::new("Shop.Orders", format!("shop.orders.{}", number % 50), Kind::Counter);
    series.meter_version = "1.0".into();
    series.unit = "{order}".into();
    series.description = "Orders that customers gave.".into();
    series.tags = format!("city=Oslo,customer={number}");
    series.instrument_id = Some(i32::try_from(number % 50).unwrap());
    series.instrument_type = "Counter`1".into();
    series
}

/// Three minutes of 10,000 series at a second, scraped and pushed every ten seconds: their memory is bounded
/// and stays the same. Then a hundred thousand further series arrive, and are counted.
#[test]
fn ten_thousand_series_at_a_second_take_the_same_memory_after_three_minutes() {
    let samples: Vec<Series> = (0..SERIES).map(series).collect();
    let before = status("VmRSS");
    let most = usize::try_from(SERIES).unwrap();
    let mut scraped = prometheus::Exporter::new(NameStyle::OpenTelemetry, most);
    let mut pushed = otlp::Exporter::new(otlp::Temporality::Delta, most);
    let process = ProcessKey(0);
    scraped.begin_process(process, Some("shop"), Some(1));
    pushed.begin_process(process, otlp::Process::default());
    let mut add = |id: u32, of: &Series, seconds: u64, is_encoded: bool| {
        let now = Duration::from_secs(seconds);
        let (increment, total) = (Some(1.0), None);
        let measurement = Measurement::Meter(MeterMeasurement::Counter { increment, total });
        let sample = Sample::new(RelativeTime::START, SeriesId(id), of, &measurement)
            .with_interval(Duration::from_secs(1));
        scraped.add(process, &sample, now);
        pushed.add(process, &sample, now);
        let mut sizes = (0, 0);
        if is_encoded {
            for format in [Format::Text, Format::OpenMetrics, Format::Protobuf] {
                sizes.0 = scraped.encode(format, now).len();
            }
            sizes.1 = pushed.encode(now, seconds).iter().map(|request| request.points).sum();
        }
        (sizes, scraped.left_out(), pushed.left_out())
    };
    let mut of_parts = Vec::new();
    for second in 0..180 {
        for (id, of) in (0..).zip(&samples) {
            let is_encoded = id == SERIES - 1 && second % 10 == 9;
            let ((bytes, points), ..) = add(id, of, second, is_encoded);
            if is_encoded {
                assert!(bytes > 1_000_000 && points == most, "{bytes} bytes, {points} points");
            }
        }
        if second % 20 == 19 {
            of_parts.push(status("VmRSS") - before);
        }
    }
    println!("KiB after each third of a minute: {of_parts:?}; peak {}", status("VmHWM") - before);
    assert!(of_parts[8] <= of_parts[1] + 2048, "{of_parts:?}");
    assert!(status("VmHWM") - before < 48 << 10, "{} KiB", status("VmHWM") - before);
    let mut further = series(0);
    for id in SERIES..SERIES + 100_000 {
        further.tags = format!("customer={id}");
        let (_, scraped, pushed) = add(id, &further, 180, false);
        let left_out = u64::from(id - SERIES) + 1;
        assert_eq!((scraped, pushed), (left_out, left_out));
    }
    assert!(status("VmRSS") - before <= of_parts[1] + 2048, "{} KiB", status("VmRSS") - before);
}
