//! The monitor's own state at `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clr_counters::otlp::Request;
use clr_counters::prometheus::NameStyle;
use dipc_monitor::{
    MetricsConfig, OtlpConfig, OtlpExport, OtlpSignal, OtlpSink, OtlpTotals, RulesConfig, Tokens,
};
use dipc_sim::Runtime;
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};

use crate::{Fixture, await_that, http};

/// A stream of two events between which the runtime lost four.
fn lossy() -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata {
        id: 1,
        provider: "A".into(),
        event_id: 1,
        name: "B".into(),
        ..Metadata::default()
    }]);
    let mut block = EventBlock::v4();
    for sequence in [1, 6] {
        let timestamp = u64::from(sequence) * 1_000_000;
        let event =
            Event { metadata_id: 1, sequence, thread: 7, capture_thread: 7, timestamp, ..Event::default() };
        block.event(&event);
    }
    trace.event_block(&block);
    trace.finish()
}

/// A destination with numbers of its own.
struct Sink;

impl OtlpSink for Sink {
    fn send(&self, _: OtlpSignal, _: Request) {}

    fn totals(&self, signal: OtlpSignal) -> Option<OtlpTotals> {
        (signal == OtlpSignal::Logs).then_some(OtlpTotals {
            queued_bytes: 7,
            sent_items: 8,
            dropped_items: 9,
        })
    }
}

fn own(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| line.starts_with("dipc_monitor_"));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

#[test]
fn metrics_have_the_state_of_the_monitor_itself() {
    let config = MetricsConfig::new(NameStyle::OpenTelemetry).with_interval(Duration::from_secs(1));
    let export = OtlpExport::start(OtlpConfig::default(), Arc::new(Sink)).unwrap();
    let fixture = Fixture::observed(
        // The process of these runtimes does not end, but is not visible over TCP.
        "127.0.0.1:0".parse().unwrap(),
        Tokens::default(),
        Some(config),
        RulesConfig::default(),
        Vec::new(),
        |config| config.with_export(Some(Arc::new(export))),
    );
    let text = || fixture.get("/metrics").text().to_owned();
    let idle = text();
    let idle = own(&idle);
    assert_eq!((idle["dipc_monitor_processes"], idle["dipc_monitor_counter_sessions"]), (0.0, 0.0));
    // A server without black boxes and queue has no metrics of them.
    assert!(!idle.keys().any(|name| name.contains("black_box") || name.contains("queued_artifacts")));
    let otlp = ["queued_bytes", "sent_items_total", "dropped_items_total"];
    let otlp = otlp.map(|it| idle[&*format!("dipc_monitor_otlp_{it}{{signal=\"logs\"}}")]);
    assert_eq!(format!("{otlp:?}"), "[7.0, 8.0, 9.0]");
    assert!(!idle.contains_key("dipc_monitor_otlp_queued_bytes{signal=\"traces\"}"));
    let runtime = fixture.add(Runtime::builder().replay(lossy()));
    let lost = "dipc_monitor_lost_events_total{session=\"counters\"}";
    await_that("the losses are counted", || own(&text())[lost] > 0.0);
    assert_eq!(fixture.get("/trace?durationSeconds=1").status, 200);
    let busy = text();
    let busy = own(&busy);
    assert_eq!((busy[lost], busy["dipc_monitor_lost_events_total{session=\"rules\"}"]), (4.0, 0.0));
    assert_eq!((busy["dipc_monitor_processes"], busy["dipc_monitor_counter_consumers"]), (1.0, 1.0));
    let results = ["succeeded", "failed", "cancelled"];
    let ended = results.map(|it| busy[&*format!("dipc_monitor_operations_ended_total{{result=\"{it}\"}}")]);
    assert_eq!((ended, busy["dipc_monitor_operations_running"]), ([1.0, 0.0, 0.0], 0.0));
    if cfg!(target_os = "linux") {
        assert!(busy["dipc_monitor_resident_memory_bytes"] > f64::from(1 << 20));
        assert!(busy["dipc_monitor_cpu_seconds_total"] >= idle["dipc_monitor_cpu_seconds_total"]);
    }
    // The losses of a process that has ended stay.
    drop(runtime);
    await_that("the process has left", || own(&text())["dipc_monitor_processes"] == 0.0);
    assert_eq!(own(&text()).get(lost), Some(&4.0));
    let health = fixture.get("/health").json();
    assert_eq!(health["lostEvents"], serde_json::json!({"counters": 4, "export": 0, "rules": 0}));
    let otlp = serde_json::json!({"logs": {"queuedBytes": 7, "sentItems": 8, "droppedItems": 9}});
    assert_eq!(health["otlp"], otlp);
    // Each family once, in OpenMetrics too.
    let accept = "Accept: application/openmetrics-text; version=1.0.0\r\n";
    let open = http::receive(http::send(fixture.address(), "GET", "/metrics", accept, ""));
    let mut families: Vec<_> = open.text().lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert!(families.contains(&"# TYPE dipc_monitor_lost_events counter"), "{families:?}");
    let count = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), count);
}
