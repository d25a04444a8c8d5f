//! Events that the captured sessions do not have: limits, refusals, cultures, exponential histograms, names
//! that are both.

#[allow(dead_code, reason = "another test uses the rest")]
mod recording;

use std::time::Duration;

use clr_counters::{
    Aspect, Counters, EventCounterValue, Measurement, MeterMeasurement, Notice, Sample, Selection,
    SharedSettings, Thinning,
};
use nettrace_synth::Value;
use recording::{METRICS, Recording, instrument, text};

fn everything() -> Counters {
    Counters::new(Selection::everything())
}

fn names(seen: &[(String, String, Measurement)]) -> Vec<&str> {
    seen.iter().map(|(name, ..)| &**name).collect()
}

#[test]
fn a_meter_wins_over_event_counters_of_its_name_once_it_reports() {
    let recording = Recording::new()
        .counter(10, "Both", "old", 1.0)
        .counter(20, "Alone", "kept", 2.0)
        .total(400, "Both", "new", "", "1")
        .counter(500, "Both", "old", 3.0)
        .counter(1500, "Alone", "kept", 4.0);
    let (counters, seen) = recording.read(everything());
    assert_eq!(names(&seen), ["new", "kept", "kept"]);
    assert_eq!(counters.left_out(), 0);
    assert_eq!(seen[1].2, Measurement::EventCounter(EventCounterValue::Sum { increment: 2.0 }));
}

/// Unselected instruments of a Meter do not hide selected EventCounters: `System.Runtime[cpu-usage]` works on
/// .NET 9.
#[test]
fn an_instrument_that_is_not_chosen_hides_no_event_counter() {
    let selection = Selection::parse("Both[old]").unwrap();
    let recording = Recording::new().total(1, "Both", "new", "", "1").counter(10, "Both", "old", 1.0);
    let (counters, seen) = recording.read(Counters::new(selection));
    assert_eq!(names(&seen), ["old"]);
    let unselected: Vec<_> = counters.unselected().iter().collect();
    assert_eq!(unselected, [(&"Both".to_owned(), &["new".to_owned()].into())]);
}

#[test]
fn rates_are_over_the_time_that_really_passed() {
    let recording = Recording::new().counter(10, "Alone", "kept", 100.0);
    let mut rate = None;
    let mut counters = everything();
    let bytes = recording.bytes();
    let mut events = nettrace::Reader::new(&*bytes).unwrap();
    while let Some(event) = events.next().unwrap() {
        counters.add(&event, |_| panic!("it waits for a Meter"));
    }
    counters.finish(|sample| rate = sample.number(Aspect::Rate));
    assert_eq!(rate, Some(200.0));
}

#[test]
fn series_beyond_the_limit_are_counted_and_not_kept() {
    let mut recording = Recording::new();
    for tag in 0..50 {
        recording = recording.total(tag, "M", "n", &format!("k={tag}"), "1");
    }
    recording = recording.total(60, "M", "n", "k=3", "1");
    let (counters, seen) = recording.read(everything().with_max_series(10));
    assert_eq!((counters.series().len(), counters.left_out(), seen.len()), (10, 40, 11));
}

/// A program that invents tags: a thousand times the number that dotnet-counters requests.
#[test]
fn all_tag_sets_are_counted_and_as_many_as_the_limit_are_kept() {
    let mut counters = everything();
    let mut seen = 0u64;
    for thousand in 0..150 {
        let mut recording = Recording::new();
        for tag in 0..1000 {
            recording = recording.total(tag, "M", "n", &format!("k\u{1b}[2J={thousand}-{tag}"), "NaN");
        }
        let (after, samples) = recording.read(counters);
        counters = after;
        seen += samples.len() as u64;
    }
    assert_eq!((counters.series().len(), counters.left_out(), seen), (100_000, 50_000, 100_000));
    let keeps = |text: &str| text.len() < 100;
    assert!(counters.series().iter().all(|series| keeps(&series.tags) && series.name == "n"));
}

#[test]
fn numbers_in_the_culture_of_a_process_are_read() {
    let mut fields = instrument("M", "h", "");
    fields.push(("quantiles", text("0,5=25,5;0,95=47;0,99=1E+20")));
    let recording = Recording::new()
        .event(1, METRICS, 6, "HistogramValuePublished", &fields)
        .total(2, "M", "n", "", "1,5");
    let (_, seen) = recording.read(everything());
    let expected = MeterMeasurement::Histogram {
        quantiles: vec![(0.5, 25.5), (0.95, 47.0), (0.99, 1e20)],
        count: None,
        sum: None,
    };
    assert_eq!(seen[0].2, Measurement::Meter(expected));
    let counter = MeterMeasurement::Counter { increment: Some(1.5), total: Some(10.0) };
    assert_eq!(seen[1].2, Measurement::Meter(counter));
}

/// The measurements 0, 0, 0, 1, 2, 3, 4 and 5 at scale 0, with the buckets of a test in dotnet/runtime: 1, 1,
/// 2, 1.
#[test]
fn an_exponential_histogram_has_its_bounds_and_quantiles() {
    let mut fields = instrument("M", "h", "");
    fields.extend([
        ("scale", Value::Int32(0)),
        ("sum", Value::Double(15.0)),
        ("count", Value::Int64(8)),
        ("zeroCount", Value::Int64(3)),
        ("minimum", Value::Double(0.0)),
        ("maximum", Value::Double(5.0)),
        ("buckets", text("1, 1, 2, 1")),
    ]);
    let name = "Base2ExponentialHistogramValuePublished";
    let (_, seen) = Recording::new().event(1, METRICS, 19, name, &fields).read(everything());
    let Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram)) = &seen[0].2 else {
        panic!("{seen:?}")
    };
    assert_eq!((histogram.count, histogram.zero_count, histogram.sum), (8, 3, 15.0));
    // (1/2, 1], (1, 2], (2, 4], (4, 8].
    assert_eq!((histogram.offset(), &*histogram.buckets), (Some(-1), &[1, 1, 2, 1][..]));
    let quantiles = [0.25, 0.5, 0.625, 0.75, 1.0].map(|quantile| histogram.quantile(quantile).unwrap());
    assert_eq!(quantiles.map(|bound| bound.to_string()), ["0", "1", "2", "4", "5"]);
}

#[test]
fn refusals_name_the_holder_of_the_session_and_its_settings() {
    let mut recording = Recording::new()
        .event(1, METRICS, 15, "MultipleSessionsNotSupportedError", &[("runningSessionId", text("abc"))])
        .event(
            2,
            METRICS,
            17,
            "MultipleSessionsConfiguredIncorrectlyError",
            &[
                ("clientId", text("me")),
                ("expectedMaxHistograms", text("10")),
                ("actualMaxHistograms", text("20")),
                ("expectedMaxTimeSeries", text("1000")),
                ("actualMaxTimeSeries", text("1")),
                ("expectedRefreshInterval", text("1")),
                ("actualRefreshInterval", text("0.5")),
            ],
        );
    for millis in 0..200 {
        recording =
            recording.event(3 + millis, METRICS, 12, "TimeSeriesLimitReached", &[("sessionId", text(""))]);
    }
    let (counters, seen) = recording.read(everything());
    assert!(seen.is_empty());
    assert_eq!((counters.notices().len(), counters.notice_count()), (100, 202));
    let mut expected = SharedSettings::default();
    (expected.max_histograms, expected.max_time_series) = (Some(10), Some(1000));
    expected.refresh_interval = Some(1.0);
    assert_eq!(
        counters.notices()[..3],
        [
            Notice::OtherSession("abc".into()),
            Notice::OtherSettings { client: "me".into(), expected },
            Notice::TimeSeriesLimit
        ]
    );
}

/// Nothing is escaped in tags: a part without `=` belongs to the previous value.
#[test]
fn tags_with_commas_keep_them() {
    let recording = Recording::new().total(1, "M", "n", "city=Oslo, Norway,tier=2,flag", "1");
    let (counters, _) = recording.read(everything());
    assert_eq!(counters.series()[0].tag_pairs(), [("city", "Oslo, Norway"), ("tier", "2,flag")]);
    // Runtimes sort tags by key, so `blue&sort` cannot be a key after `url`.
    let tags = "plain=a,plain=b,url=/items?filter=red,blue&sort=name,z=1";
    let (counters, _) = Recording::new().total(1, "M", "n", tags, "1").read(everything());
    let expected = [("plain", "a"), ("plain", "b"), ("url", "/items?filter=red,blue&sort=name"), ("z", "1")];
    assert_eq!(counters.series()[0].tag_pairs(), expected);
}

/// Half seconds combined into seconds: growth adds up, and gauges and quantiles are the last ones.
#[test]
fn values_of_shorter_intervals_add_up_to_the_longer_one() {
    let histogram = |count: i32, sum: f64, quantiles: &str| {
        let mut fields = instrument("M", "h", "");
        fields.extend([
            ("quantiles", text(quantiles)),
            ("count", Value::Int32(count)),
            ("sum", Value::Double(sum)),
        ]);
        fields
    };
    let gauge = |value: &str| [instrument("M", "g", ""), vec![("lastValue", text(value))]].concat();
    let interval = |recording: Recording, millis: i64| {
        let time = |millis: i64| Value::Int64(133_000_000_000_000_000 + millis * 10_000);
        let fields = [
            ("sessionId", text("SHARED")),
            ("intervalStartTime", time(millis)),
            ("intervalEndTime", time(millis + 500)),
        ];
        recording.timed(millis, 2, "CollectionStart", &fields)
    };
    let mut recording = Recording::new();
    for half in 0..5 {
        let millis = half * 500;
        recording = interval(recording, millis)
            .counter(millis, "Alone", "grown", 1.0)
            .event(millis, METRICS, 5, "GaugeValuePublished", &gauge(&half.to_string()))
            .total(millis, "M", "n", "", "2")
            .event(millis, METRICS, 6, "HistogramValuePublished", &histogram(3, 1.5, &format!("0.5={half}")));
    }
    let bytes = recording.bytes();
    let (mut counters, mut thinning) = (everything(), Thinning::new(Duration::from_secs(1)));
    let mut seen = Vec::new();
    let mut emit = |sample: Sample<'_>| {
        seen.push((
            sample.series.name.clone(),
            sample.interval.unwrap().as_millis(),
            sample.measurement.clone(),
        ));
    };
    let mut events = nettrace::Reader::new(&*bytes).unwrap().in_time_order();
    while let Some(event) = events.next().unwrap() {
        counters.add(&event, |sample| thinning.add(&sample, &mut emit));
    }
    counters.finish(|sample| thinning.add(&sample, &mut emit));
    thinning.finish(counters.series(), &mut emit);
    let of = |name: &str| {
        let of_name = seen.iter().filter(|(it, ..)| it == name);
        of_name.map(|(_, millis, measurement)| (*millis, measurement.clone())).collect::<Vec<_>>()
    };
    let grown = |increment| Measurement::EventCounter(EventCounterValue::Sum { increment });
    // The last half second is not a whole interval: it is passed at the end.
    assert_eq!(of("grown"), [(1000, grown(2.0)), (1000, grown(2.0)), (500, grown(1.0))]);
    let meter = |it: &[MeterMeasurement; 3]| {
        let expected = [1000, 1000, 500].into_iter().zip(it.clone().map(Measurement::Meter));
        expected.collect::<Vec<_>>()
    };
    let counter = |increment| MeterMeasurement::Counter { increment: Some(increment), total: Some(10.0) };
    assert_eq!(of("n"), meter(&[4.0, 4.0, 2.0].map(counter)));
    let gauge = |value| MeterMeasurement::Gauge { value: Some(value) };
    assert_eq!(of("g"), meter(&[1.0, 3.0, 4.0].map(gauge)));
    let histogram = |(count, sum, last)| MeterMeasurement::Histogram {
        quantiles: vec![(0.5, last)],
        count: Some(count),
        sum: Some(sum),
    };
    assert_eq!(of("h"), meter(&[(6, 3.0, 1.0), (6, 3.0, 3.0), (3, 1.5, 4.0)].map(histogram)));
}

/// Means are weighted by count; polled values have a count of 1, and only the last value counts.
#[test]
fn means_are_weighted_by_the_number_of_measurements() {
    let mean = |mean: f64, standard_deviation: f64, count: i32, min: f64, max: f64| EventCounterValue::Mean {
        mean,
        standard_deviation,
        count,
        min,
        max,
    };
    // 1 and 3; nothing; 5: the mean of the three is 3, and their variance 8/3.
    let all = [mean(2.0, 1.0, 2, 1.0, 3.0), mean(f64::NAN, 0.0, 0, 0.0, 0.0), mean(5.0, 0.0, 1, 5.0, 5.0)];
    let together = all.into_iter().reduce(EventCounterValue::and).unwrap();
    let EventCounterValue::Mean { mean: of_all, standard_deviation, count, min, max } = together else {
        panic!("{together:?}")
    };
    assert_eq!((of_all, count, min, max), (3.0, 3, 1.0, 5.0));
    assert!((standard_deviation - (8.0f64 / 3.0).sqrt()).abs() < 1e-12, "{standard_deviation}");
    let polled = mean(7.0, 0.0, 1, 7.0, 7.0).and(mean(9.0, 0.0, 1, 9.0, 9.0));
    assert_eq!(polled, mean(9.0, 0.0, 1, 9.0, 9.0));
}
