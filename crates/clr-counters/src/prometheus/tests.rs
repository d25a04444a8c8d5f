use std::time::Duration;

use super::*;
use crate::event_counter::EventCounterValue;
use crate::meter::{ExponentialHistogram, MeterMeasurement};
use crate::point::tests::{
    counter, event_counter, event_sum, exponential, gauge, histogram, instrument, sample,
};
use crate::sample::Measurement;
use crate::series::Kind;

const NOW: Duration = Duration::from_secs(5);

/// The text of samples of one process.
fn text(style: NameStyle, format: Format, samples: &[(Series, Measurement)]) -> String {
    let mut exporter = Exporter::new(style, 100).with_own_metrics();
    exporter.begin_process(ProcessKey(1), Some("my app"), Some(42));
    for (id, (series, measurement)) in (0..).zip(samples) {
        exporter.add(ProcessKey(1), &sample(id, series, measurement), NOW);
    }
    String::from_utf8(exporter.encode(format, NOW)).unwrap()
}

/// The lines that are not metrics of the exporter itself.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("dipc_") && *line != "# EOF").collect()
}

#[test]
fn each_kind_has_the_type_and_the_names_that_prometheus_expects() {
    let samples = [
        (instrument("gc.pause.time", Kind::Counter, "s", "gen=2"), counter(Some(1.0), Some(7.5))),
        (instrument("temperature", Kind::Gauge, "Cel", ""), gauge(Some(-21.5))),
        (
            instrument("order.size", Kind::Histogram, "kg", ""),
            histogram(&[(0.5, 3.0), (0.95, 1e20)], 4, 12.0),
        ),
        (event_counter("cpu-usage", Kind::Mean, "%"), mean(25.0)),
        (event_counter("alloc-rate", Kind::Sum, "MB"), event_sum(3.0)),
    ];
    let process = r#"process_name="my app",process_pid="42""#;
    let scope = format!(r#"{process},otel_scope_name="App",otel_scope_version="1.2""#);
    let expected = [
        "# HELP gc_pause_time_seconds gc.pause.time of App".to_owned(),
        "# TYPE gc_pause_time_seconds counter".to_owned(),
        "# UNIT gc_pause_time_seconds seconds".to_owned(),
        format!(r#"gc_pause_time_seconds_total{{{scope},gen="2"}} 7.5"#),
        "# HELP order_size_kg order.size of App".to_owned(),
        "# TYPE order_size_kg summary".to_owned(),
        "# UNIT order_size_kg kg".to_owned(),
        format!(r#"order_size_kg{{{scope},quantile="0.5"}} 3.0"#),
        format!(r#"order_size_kg{{{scope},quantile="0.95"}} 1e20"#),
        format!("order_size_kg_count{{{scope}}} 4"),
        format!("order_size_kg_sum{{{scope}}} 12.0"),
        "# HELP temperature_celsius temperature of App".to_owned(),
        "# TYPE temperature_celsius gauge".to_owned(),
        "# UNIT temperature_celsius celsius".to_owned(),
        format!("temperature_celsius{{{scope}}} -21.5"),
        "# HELP web_server_alloc_rate_bytes alloc-rate of Web-Server".to_owned(),
        "# TYPE web_server_alloc_rate_bytes counter".to_owned(),
        "# UNIT web_server_alloc_rate_bytes bytes".to_owned(),
        format!("web_server_alloc_rate_bytes_total{{{process}}} 3000000.0"),
        "# HELP web_server_cpu_usage_ratio cpu-usage of Web-Server".to_owned(),
        "# TYPE web_server_cpu_usage_ratio gauge".to_owned(),
        "# UNIT web_server_cpu_usage_ratio ratio".to_owned(),
        format!("web_server_cpu_usage_ratio{{{process}}} 0.25"),
    ];
    let open_metrics = text(NameStyle::OpenTelemetry, Format::OpenMetrics, &samples);
    assert_eq!(lines(&open_metrics), expected);
    assert!(open_metrics.ends_with("dipc_series 5\n# HELP dipc_values_left_out Values that are left out, of more series than are kept or impossible in the format.\n# TYPE dipc_values_left_out counter\ndipc_values_left_out_total 0\n# EOF\n"));
    let older = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    assert!(older.contains("# TYPE gc_pause_time_seconds_total counter\n") && !older.contains("# UNIT"));
    assert!(older.ends_with("dipc_values_left_out_total 0\n"));
}

fn mean(mean: f64) -> Measurement {
    let value = EventCounterValue::Mean { mean, standard_deviation: 0.0, count: 1, min: mean, max: mean };
    Measurement::EventCounter(value)
}

#[test]
fn dotnet_monitors_names_are_that_tools() {
    let system = |series: Series| Series { provider: "System.Runtime".to_owned(), ..series };
    let samples = [
        (system(event_counter("cpu-usage", Kind::Mean, "%")), mean(25.0)),
        (system(event_counter("alloc-rate", Kind::Sum, "B")), event_sum(3.0)),
        (system(event_counter("gc-heap-size", Kind::Mean, "MB")), mean(2.0)),
        (system(instrument("orders", Kind::Counter, "{order}", "city=Oslo")), counter(Some(2.0), Some(7.0))),
    ];
    let text = text(NameStyle::DotnetMonitor, Format::Text, &samples);
    let lines: Vec<_> = lines(&text).into_iter().filter(|line| !line.starts_with("# HELP")).collect();
    let process = r#"process_name="my app",process_pid="42""#;
    let expected = [
        "# TYPE systemruntime_alloc_rate_bytes gauge".to_owned(),
        format!("systemruntime_alloc_rate_bytes{{{process}}} 3.0"),
        "# TYPE systemruntime_cpu_usage_ratio gauge".to_owned(),
        format!("systemruntime_cpu_usage_ratio{{{process}}} 25.0"),
        "# TYPE systemruntime_gc_heap_size_bytes gauge".to_owned(),
        format!("systemruntime_gc_heap_size_bytes{{{process}}} 2000000.0"),
        "# TYPE systemruntime_orders__order_ gauge".to_owned(),
        format!(r#"systemruntime_orders__order_{{{process},city="Oslo"}} 2.0"#),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_exporter_writes_nothing_of_its_own_unasked() {
    let exporter = Exporter::new(NameStyle::OpenTelemetry, 100);
    assert_eq!(exporter.encode(Format::Text, NOW), b"");
    assert_eq!(exporter.encode(Format::OpenMetrics, NOW), b"# EOF\n");
    #[cfg(feature = "protobuf")]
    assert_eq!(exporter.encode(Format::Protobuf, NOW), b"");
}

#[test]
fn metrics_of_the_program_follow_the_series() {
    let mut exporter = Exporter::new(NameStyle::DotnetMonitor, 100);
    exporter.begin_process(ProcessKey(1), None, None);
    // The observed program cannot use the metric names that are reserved for the exporting program.
    let (series, value) = (instrument("cpu", Kind::Gauge, "", ""), gauge(Some(1.0)));
    let series = Series { provider: "dipc_monitor".to_owned(), ..series };
    exporter.add(ProcessKey(1), &sample(0, &series, &value), NOW);
    assert_eq!(exporter.left_out(), 1);
    let lost =
        |session, count| OwnMetric::counter("dipc_monitor_lost", "L.", count).with_label("session", session);
    let own = [
        OwnMetric::gauge("dipc_monitor_cpu", "A\nB.", 0.25),
        lost("a", 3.0),
        lost("b", 1e15),
        OwnMetric::gauge("dipc_monitor_x", "X.", f64::INFINITY),
    ];
    let text = String::from_utf8(exporter.encode_with(Format::OpenMetrics, NOW, &own)).unwrap();
    let expected = "# HELP dipc_monitor_cpu A\\nB.\n# TYPE dipc_monitor_cpu gauge\ndipc_monitor_cpu 0.25\n\
        # HELP dipc_monitor_lost L.\n# TYPE dipc_monitor_lost counter\n\
        dipc_monitor_lost_total{session=\"a\"} 3\ndipc_monitor_lost_total{session=\"b\"} 1000000000000000\n\
        # HELP dipc_monitor_x X.\n# TYPE dipc_monitor_x gauge\ndipc_monitor_x +Inf\n# EOF\n";
    assert_eq!(text, expected);
    let text = String::from_utf8(exporter.encode_with(Format::Text, NOW, &own[1..2])).unwrap();
    let expected = "# HELP dipc_monitor_lost_total L.\n# TYPE dipc_monitor_lost_total counter\n\
        dipc_monitor_lost_total{session=\"a\"} 3\n";
    assert_eq!(text, expected);
    #[cfg(feature = "protobuf")]
    {
        let bytes = exporter.encode_with(Format::Protobuf, NOW, &[lost("a", 3.0)]);
        // By hand from metrics.proto: name (1), help (2), type (3) COUNTER = 0 is the default; a metric (4)
        // with a label (1: name 1, value 2) and a counter (3) whose value (1) is the double 3.
        let expected = [
            &[56, 0x0a, 23][..],
            b"dipc_monitor_lost_total",
            &[0x12, 2],
            b"L.",
            &[0x22, 25, 0x0a, 12, 0x0a, 7],
            b"session",
            &[0x12, 1, b'a', 0x1a, 9, 0x09, 0, 0, 0, 0, 0, 0, 0x08, 0x40],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }
}

/// Prometheus refuses all metrics if a name is invalid, or a family occurs twice.
#[test]
fn hostile_names_do_not_make_prometheus_reject_the_scrape() {
    let of = |provider: &str, name: &str, unit: &str| {
        let series = instrument(name, Kind::Gauge, unit, "");
        (Series { provider: provider.to_owned(), meter_version: String::new(), ..series }, gauge(Some(1.0)))
    };
    let names = |style, sample| {
        let text = text(style, Format::Text, &[sample]);
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned);
        names.collect::<Vec<_>>()
    };
    let own = ["dipc_series gauge", "dipc_values_left_out_total counter"];
    for (style, sample, expected) in [
        (NameStyle::DotnetMonitor, of("3D.Maps", "tiles", ""), "_3dmaps_tiles gauge"),
        (NameStyle::DotnetMonitor, of("…", "9", ""), "_9 gauge"),
        (NameStyle::OpenTelemetry, of("App", "…", "9kg"), "_9kg gauge"),
        (NameStyle::OpenTelemetry, of("App", "dipc.series", ""), "App_dipc_series gauge"),
        (NameStyle::DotnetMonitor, of("dipc", "series", ""), "dipc_dipc_series gauge"),
        (
            NameStyle::OpenTelemetry,
            of("App", "dipc.values.left.out.total", ""),
            "App_dipc_values_left_out_total gauge",
        ),
    ] {
        assert_eq!(names(style, sample), [&[expected], &own[..]].concat());
    }
}

#[test]
fn hostile_texts_end_no_line_and_no_value() {
    let series = Series {
        description: "a\nb\\c\"d\u{1b}[31m".to_owned(),
        meter_version: String::new(),
        ..instrument(
            "x\n# TYPE y",
            Kind::Gauge,
            "\"}",
            "\u{1b}=\0,__name__=n,a-b=2,a.b=1,k\"=v\"\n\\,process_pid=7",
        )
    };
    let text = text(NameStyle::OpenTelemetry, Format::OpenMetrics, &[(series, gauge(Some(f64::NAN)))]);
    let expected = [
        r#"# HELP x_TYPE_y a\nb\\c\"d\\u{1b}[31m"#,
        "# TYPE x_TYPE_y gauge",
        r#"x_TYPE_y{process_name="my app",process_pid="42",otel_scope_name="App",_="\\u{0}",_name__="n",a_b="2;1",k_="v\"\n\\",tag_process_pid="7"} NaN"#,
    ];
    assert_eq!(lines(&text), expected);
}

#[test]
fn numbers_that_counters_cannot_have_are_left_out() {
    let samples = [
        (instrument("down", Kind::Counter, "", ""), counter(Some(-1.0), Some(-5.0))),
        (instrument("up", Kind::Gauge, "", ""), gauge(Some(f64::INFINITY))),
    ];
    let text = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    assert!(!text.contains("down"), "{text}");
    assert!(text.contains("} +Inf\n"), "{text}");
    assert!(text.ends_with("dipc_values_left_out_total 1\n"), "{text}");
}

#[test]
fn open_metrics_has_no_negative_quantiles_and_sums() {
    let series = Series { meter_version: String::new(), ..instrument("change", Kind::Histogram, "", "") };
    let samples = [(series, histogram(&[(0.5, -5.0), (0.95, 2.0)], 3, -8.0))];
    let labels = r#"process_name="my app",process_pid="42",otel_scope_name="App""#;
    let open_metrics = text(NameStyle::OpenTelemetry, Format::OpenMetrics, &samples);
    let expected =
        [format!(r#"change{{{labels},quantile="0.95"}} 2.0"#), format!("change_count{{{labels}}} 3")];
    assert_eq!(lines(&open_metrics)[2..], expected);
    assert!(open_metrics.ends_with("dipc_values_left_out_total 2\n# EOF\n"), "{open_metrics}");
    let older = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    assert!(older.contains("} -5.0\n") && older.ends_with("dipc_values_left_out_total 0\n"), "{older}");
}

#[test]
fn event_counters_with_colliding_names_stay_separate() {
    let of = |provider: &str, name: &str, value| {
        let series = Series { provider: provider.to_owned(), ..event_counter(name, Kind::Mean, "") };
        (series, mean(value))
    };
    let samples = [
        of("Col.Lide", "a-b", 1.0),
        of("Col.Lide", "a.b", 2.0),
        of("Col.Lide", "A-B", 3.0),
        of("col-lide", "a-b", 4.0),
    ];
    let text = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    let labels = r#"process_name="my app",process_pid="42""#;
    let expected = [
        format!("col_lide_a_b{{{labels}}} 1.0"),
        format!(r#"col_lide_a_b{{{labels},event_counter="Col.Lide/a.b"}} 2.0"#),
        format!(r#"col_lide_a_b{{{labels},event_counter="Col.Lide/A-B"}} 3.0"#),
        format!(r#"col_lide_a_b{{{labels},event_counter="col-lide/a-b"}} 4.0"#),
    ];
    assert_eq!(lines(&text)[2..], expected);
}

#[test]
fn event_counters_without_a_measurement_have_no_sample() {
    let nothing =
        EventCounterValue::Mean { mean: 0.0, standard_deviation: 0.0, count: 0, min: 0.0, max: 0.0 };
    let series = event_counter("latency", Kind::Mean, "ms");
    let mut exporter = Exporter::new(NameStyle::OpenTelemetry, 100);
    exporter.begin_process(ProcessKey(1), None, None);
    let mut add = |measurement: Measurement| {
        exporter.add(ProcessKey(1), &sample(0, &series, &measurement), NOW);
        String::from_utf8(exporter.encode(Format::Text, NOW)).unwrap()
    };
    assert_eq!(add(Measurement::EventCounter(nothing)), "");
    assert!(add(mean(0.0)).ends_with("web_server_latency_seconds 0.0\n"));
    assert_eq!(add(Measurement::EventCounter(nothing)), "");
}

/// Every value of any series is written once, or counted.
#[test]
fn every_value_is_in_the_output_or_counted_as_left_out() {
    let mut state = 7u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for round in 0..200 {
        let samples: Vec<_> = (0..30).map(|_| any_sample(&mut below)).collect();
        for (style, format) in [
            (NameStyle::OpenTelemetry, Format::OpenMetrics),
            (NameStyle::OpenTelemetry, Format::Text),
            (NameStyle::DotnetMonitor, Format::Text),
        ] {
            let mut exporter = Exporter::new(style, 100);
            let mut values = 0;
            for (id, (series, measurement)) in (0..).zip(&samples) {
                let before = exporter.left_out();
                exporter.add(ProcessKey(1), &sample(id, series, measurement), NOW);
                // A series without a name counts as one value; a summary has four.
                let is_summary = series.kind == Kind::Histogram && exporter.left_out() == before;
                values += if is_summary { 4 } else { 1 };
            }
            let text = String::from_utf8(exporter.encode(format, NOW)).unwrap();
            let mut written: Vec<_> = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.rsplit_once(' ').unwrap().0)
                .collect();
            assert_eq!(written.len() as u64 + exporter.left_out(), values, "{round} {style:?}: {text}");
            written.sort_unstable();
            assert!(written.windows(2).all(|pair| pair[0] != pair[1]), "{round} {style:?}: {text}");
        }
    }
}

/// A sample with names, tags and number chosen from few, so that they collide.
fn any_sample(below: &mut impl FnMut(usize) -> usize) -> (Series, Measurement) {
    const NAMES: [&str; 8] = ["a-b", "a.b", "a b", "A-B", "1st", "", "le", "a_b_total"];
    const TAGS: [&str; 6] = ["", "a.b=1", "a_b=1", "le=1,quantile=2", "process_pid=1", "a.b=1,a_b=1"];
    const NUMBERS: [f64; 7] = [0.0, 1.5, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300];
    let (name, tags, number) = (NAMES[below(8)], TAGS[below(6)], NUMBERS[below(7)]);
    let finite = if number.is_finite() { number } else { 3.0 };
    let instrument = |kind| instrument(name, kind, "s", tags);
    let (series, measurement) = match below(5) {
        0 => (event_counter(name, Kind::Mean, "s"), mean(number)),
        1 => (event_counter(name, Kind::Sum, ""), event_sum(finite)),
        2 => (instrument(Kind::Gauge), gauge(Some(number))),
        3 => (instrument(Kind::Counter), counter(Some(finite), Some(finite))),
        _ => (instrument(Kind::Histogram), histogram(&[(0.5, number), (0.9, 1.0)], 2, finite)),
    };
    (Series { provider: ["App", "app", "a"][below(3)].to_owned(), ..series }, measurement)
}

#[test]
fn a_name_that_is_taken_gets_a_longer_one() {
    let other = |series: Series| Series { provider: "Other.Meter".to_owned(), ..series };
    let samples = [
        (instrument("jobs", Kind::Histogram, "", ""), histogram(&[], 1, 1.0)),
        (other(instrument("jobs", Kind::Gauge, "", "")), gauge(Some(1.0))),
        (other(instrument("jobs", Kind::Counter, "", "")), counter(Some(1.0), Some(1.0))),
        (other(instrument("jobs.count", Kind::Gauge, "", "")), gauge(Some(1.0))),
        // The same name of the same kind is the same family.
        (other(instrument("jobs", Kind::Histogram, "", "")), histogram(&[], 1, 1.0)),
    ];
    let text = text(NameStyle::OpenTelemetry, Format::OpenMetrics, &samples);
    let types: Vec<_> = lines(&text).into_iter().filter(|line| line.starts_with("# TYPE")).collect();
    let expected = [
        "# TYPE Other_Meter_jobs gauge",
        "# TYPE Other_Meter_jobs_count gauge",
        "# TYPE Other_Meter_jobs_counter counter",
        "# TYPE jobs summary",
    ];
    assert_eq!(types, expected);
    assert_eq!(text.matches("\njobs_count{").count(), 2);
}

#[test]
fn series_of_the_same_names_differ_by_their_instruments_numbers() {
    let second = Series { instrument_id: Some(2), ..instrument("jobs", Kind::Gauge, "", "") };
    let samples = [(instrument("jobs", Kind::Gauge, "", ""), gauge(Some(1.0))), (second, gauge(Some(2.0)))];
    let text = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    let labels = r#"process_name="my app",process_pid="42",otel_scope_name="App",otel_scope_version="1.2""#;
    let expected = [format!("jobs{{{labels}}} 1.0"), format!(r#"jobs{{{labels},instrument_id="2"}} 2.0"#)];
    assert_eq!(lines(&text)[2..], expected);
}

#[test]
fn exponential_histograms_have_a_bucket_a_power_of_two_as_text() {
    let measurement = Measurement::Meter(MeterMeasurement::ExponentialHistogram(exponential()));
    let samples = [(
        Series { meter_version: String::new(), ..instrument("size", Kind::Histogram, "", "") },
        measurement,
    )];
    let text = text(NameStyle::OpenTelemetry, Format::Text, &samples);
    let labels = r#"process_name="my app",process_pid="42",otel_scope_name="App""#;
    let mut expected: Vec<String> = [("0.0", 1), ("1.0", 2), ("2.0", 2), ("4.0", 5), ("+Inf", 5)]
        .map(|(le, count)| format!(r#"size_bucket{{{labels},le="{le}"}} {count}"#))
        .into();
    expected.extend([format!("size_count{{{labels}}} 5"), format!("size_sum{{{labels}}} 11.0")]);
    assert_eq!(lines(&text)[1], "# TYPE size histogram");
    assert_eq!(lines(&text)[2..], expected);
}

#[test]
fn the_series_of_a_process_that_has_ended_end() {
    let mut exporter = Exporter::new(NameStyle::OpenTelemetry, 100);
    let (series, value) = (instrument("up", Kind::Gauge, "", ""), gauge(Some(1.0)));
    for process in [1, 2] {
        exporter.begin_process(ProcessKey(process), None, Some(process));
        exporter.add(ProcessKey(process), &sample(0, &series, &value), NOW);
    }
    let text = |exporter: &Exporter| String::from_utf8(exporter.encode(Format::Text, NOW)).unwrap();
    assert!(text(&exporter).contains(r#"process_pid="1""#) && text(&exporter).contains(r#"process_pid="2""#));
    exporter.end_process(ProcessKey(1));
    assert!(
        !text(&exporter).contains(r#"process_pid="1""#) && text(&exporter).contains(r#"process_pid="2""#)
    );
}

#[test]
fn a_name_of_which_only_the_unit_is_left_has_no_unit() {
    let samples = [(instrument("\u{2026}", Kind::Gauge, "s", ""), gauge(Some(1.0)))];
    let text = text(NameStyle::OpenTelemetry, Format::OpenMetrics, &samples);
    assert_eq!(lines(&text)[..2], ["# HELP seconds \u{2026} of App", "# TYPE seconds gauge"]);
    assert!(!text.contains("# UNIT"), "{text}");
}

#[cfg(feature = "protobuf")]
#[test]
fn native_histograms_have_the_counts_of_their_buckets() {
    let histogram = ExponentialHistogram { count: 77, ..exponential() };
    let measurement = Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram));
    let mut exporter = Exporter::new(NameStyle::OpenTelemetry, 100);
    exporter.begin_process(ProcessKey(1), None, None);
    let series = Series { meter_version: String::new(), ..instrument("size", Kind::Histogram, "", "") };
    exporter.add(ProcessKey(1), &sample(0, &series, &measurement), NOW);
    let bytes = exporter.encode(Format::Protobuf, NOW);
    // By hand from metrics.proto: of `Histogram` (7) sample_count (1) 5, sample_sum (2) 11, schema (5) 2,
    // zero_count (7) 1, one span (12) at 0 of length 9, and the differences (13) 1 -1 0 0 0 0 0 2 -1, as
    // sint.
    let expected = [
        &[0x08, 5, 0x11, 0, 0, 0, 0, 0, 0, 0x26, 0x40, 0x28, 4, 0x38, 1][..],
        &[0x62, 2, 0x10, 9, 0x6a, 9, 2, 1, 0, 0, 0, 0, 0, 4, 1],
    ]
    .concat();
    assert!(bytes.windows(expected.len()).any(|window| window == expected), "{bytes:02x?}");
}

#[test]
fn processes_with_equal_name_and_pid_stay_separate() {
    let mut exporter = Exporter::new(NameStyle::OpenTelemetry, 100);
    let series = event_counter("cpu-usage", Kind::Mean, "");
    for (number, pod) in [(0, "a"), (1, "b\"c")] {
        let attributes = [
            ("service.name", "shop"),
            ("service.instance.id", &*format!("id-{number}")),
            ("process.pid", "7"),
            ("k8s.pod.uid", pod),
        ];
        let attributes = attributes.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let target = TargetInfo { name: "shop".to_owned(), pid: 1, attributes };
        exporter.begin_target(ProcessKey(number), &target);
        exporter.add(ProcessKey(number), &sample(0, &series, &mean(f64::from(number))), NOW);
    }
    let lines = |format| String::from_utf8(exporter.encode(format, NOW)).unwrap();
    let process =
        |number| format!(r#"process_name="shop",process_pid="1",service_instance_id="id-{number}""#);
    let expected = |head: &str| {
        format!(
            r#"{head}
target_info{{{},service_name="shop",k8s_pod_uid="a"}} 1.0
target_info{{{},service_name="shop",k8s_pod_uid="b\"c"}} 1.0
# HELP web_server_cpu_usage cpu-usage of Web-Server
# TYPE web_server_cpu_usage gauge
web_server_cpu_usage{{{}}} 0.0
web_server_cpu_usage{{{}}} 1.0
"#,
            process(0),
            process(1),
            process(0),
            process(1)
        )
    };
    let help = "The attributes of a process, as a resource of OpenTelemetry.";
    let old = expected(&format!("# HELP target_info {help}\n# TYPE target_info gauge"));
    assert_eq!(lines(Format::Text), old);
    let open = expected(&format!("# HELP target {help}\n# TYPE target info"));
    assert_eq!(lines(Format::OpenMetrics), format!("{open}# EOF\n"));
    exporter.end_process(ProcessKey(0));
    let text = String::from_utf8(exporter.encode(Format::Text, NOW)).unwrap();
    assert!(!text.contains("id-0") && text.contains("id-1"), "{text}");
}
