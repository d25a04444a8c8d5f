//! Log records and spans of a simulated process, read by the official messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use clr_counters::otlp::Request;
use dipc_client::dipc_transport::Address;
use dipc_monitor::{
    LogLevel, LogSelection, Monitor, MonitorConfig, OtlpConfig, OtlpExport, OtlpSignal, OtlpSink,
    SamplingRatio, TracesConfig,
};
use dipc_sim::{Runtime, Speed, Version};
use nettrace_synth::clr::{self, diagnostic};
use nettrace_synth::{Field, Metadata, Type, Value};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;

use crate::await_that;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const LOGGING: &str = "Microsoft-Extensions-Logging";
const BRIDGE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const SERVED: &str = "Microsoft.AspNetCore.Hosting.HttpRequestIn";
const SENT: &str = "System.Net.Http.HttpRequestOut";
/// 2023-11-14 22:13:20 UTC in ticks of .NET.
const START: &str = "638355968000000000";

/// A sink that decodes its input.
#[derive(Default)]
struct Receiver {
    spans: Mutex<Vec<(String, Span)>>,
    records: Mutex<Vec<(String, LogRecord)>>,
    resource: Mutex<BTreeMap<String, String>>,
}

impl OtlpSink for Receiver {
    fn send(&self, signal: OtlpSignal, request: Request) {
        match signal {
            OtlpSignal::Metrics | OtlpSignal::Profiles => panic!("none were asked for"),
            OtlpSignal::Traces => {
                let decoded = ExportTraceServiceRequest::decode(&*request.bytes).unwrap();
                let spans = decoded.resource_spans.into_iter().flat_map(|it| it.scope_spans);
                let spans = spans.flat_map(|it| {
                    let name = it.scope.unwrap().name;
                    it.spans.into_iter().map(move |span| (name.clone(), span))
                });
                let spans: Vec<_> = spans.collect();
                assert_eq!(spans.len(), request.points);
                self.spans.lock().unwrap().extend(spans);
            }
            OtlpSignal::Logs => {
                let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
                let [of_resource] = &decoded.resource_logs[..] else { panic!("a resource") };
                *self.resource.lock().unwrap() = texts(&of_resource.resource.as_ref().unwrap().attributes);
                let mut count = 0;
                for scope in &of_resource.scope_logs {
                    let name = &scope.scope.as_ref().unwrap().name;
                    count += scope.log_records.len();
                    let records = scope.log_records.iter().map(|record| (name.clone(), record.clone()));
                    self.records.lock().unwrap().extend(records);
                }
                assert_eq!(count, request.points);
            }
        }
    }
}

fn texts(list: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match &pair.value.as_ref().unwrap().value {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    list.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

/// A recording that is written event by event, a millisecond apart.
#[derive(Default)]
struct Recording {
    events: clr::Recording,
    count: u32,
}

impl Recording {
    fn add(
        &mut self,
        (provider, name, opcode): (&str, &str, Option<u8>),
        fields: Vec<Field>,
        values: &[Value],
    ) {
        self.count += 1;
        let metadata = Metadata {
            provider: provider.into(),
            // A running number, as those of sources that describe themselves are.
            event_id: 150 + self.count,
            name: name.into(),
            opcode,
            fields,
            ..Metadata::default()
        };
        self.events.thread(7).at(u64::from(self.count) * 1_000_000).described(metadata, values);
    }

    /// An event of the bridge.
    fn bridge(&mut self, name: &str, source: &str, event: &str, arguments: &[(&str, &str)]) {
        let values = diagnostic(source, event, arguments);
        let opcode = if name.ends_with("Start") { 1 } else { 2 };
        self.add((BRIDGE, name, Some(opcode)), Vec::new(), &values);
    }

    /// A record: the formatted message and its arguments.
    fn record(
        &mut self,
        level: i32,
        category: &str,
        event_name: &str,
        message: &str,
        json: [&str; 2],
        span: &str,
    ) {
        let int = |name: &str, value| (Field::new(name, Type::Int32), Value::Int32(value));
        let text = |name: &str, value: &str| (Field::new(name, Type::String16), Value::string16(value));
        let head = || {
            vec![
                int("Level", level),
                text("LoggerName", category),
                int("EventId", 5),
                text("EventName", event_name),
            ]
        };
        let ids = || {
            [
                text("ActivityTraceId", if span.is_empty() { "" } else { TRACE }),
                text("ActivitySpanId", span),
                text("ActivityTraceFlags", "01"),
            ]
        };
        let mut first = head();
        first.push(text("FormattedMessage", message));
        first.extend(ids());
        let mut second = head();
        second.extend([text("ExceptionJson", json[0]), text("ArgumentsJson", json[1])]);
        second.extend(ids());
        for (name, fields) in [("FormattedMessage", first), ("MessageJson", second)] {
            let (fields, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            self.add((LOGGING, name, None), fields, &values);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.events.bytes()
    }
}

/// A request that ASP.NET Core serves, with a call by HttpClient and a job of its own.
pub(crate) fn recording() -> Vec<u8> {
    let id = |span: &str| format!("00-{TRACE}-{span}-01");
    let (remote, served, sent, job) =
        (id("00000000000000aa"), id("00000000000000bb"), id("00000000000000cc"), id("00000000000000dd"));
    let mut recording = Recording::default();
    let source = |recording: &mut Recording,
                  name: &str,
                  source: &str,
                  event: &str,
                  id: &str,
                  parent: &str,
                  more: &[(&str, &str)]| {
        let mut arguments = vec![("Id", id), ("ParentId", parent), ("DisplayName", event), ("Start", START)];
        arguments.extend(more);
        recording.bridge(name, source, event, &arguments);
    };
    let aspnet = "Microsoft.AspNetCore";
    source(
        &mut recording,
        "ActivityStart",
        aspnet,
        SERVED,
        &served,
        &remote,
        &[("Kind", "Server"), ("Took", "0")],
    );
    let properties = [
        ("Scheme", "https"),
        ("Host", "shop.example:8443"),
        ("PathBase", "/base"),
        ("Path", "/carts/7"),
        ("QueryString", "?token=secret"),
        ("Method", "GET"),
        ("ActivityId", &served),
        ("ActivityParentId", &remote),
    ];
    recording.bridge("Activity1Start", aspnet, &format!("{SERVED}.Start"), &properties);
    let endpoint = r#"{"EndpointName":"HTTP: GET /carts/{id}","{OriginalFormat}":"x"}"#;
    recording.record(
        2,
        "Microsoft.AspNetCore.Routing.EndpointMiddleware",
        "ExecutingEndpoint",
        "x",
        ["{}", endpoint],
        "00000000000000bb",
    );
    // HttpClient before 9.0: its source has no tags.
    source(&mut recording, "ActivityStart", "System.Net.Http", SENT, &sent, &served, &[("Kind", "Client")]);
    let properties =
        [("RequestUri", "https://bank.example/pay?card=1234"), ("Method", "POST"), ("ActivityId", &*sent)];
    recording.bridge(
        "Activity2Start",
        "HttpHandlerDiagnosticListener",
        &format!("{SENT}.Start"),
        &properties,
    );
    let stop = [("StatusCode", "PaymentRequired"), ("ActivityDuration", "10000"), ("ActivityId", &*sent)];
    recording.bridge("Activity2Stop", "HttpHandlerDiagnosticListener", &format!("{SENT}.Stop"), &stop);
    source(
        &mut recording,
        "ActivityStop",
        "System.Net.Http",
        SENT,
        &sent,
        &served,
        &[("Kind", "Client"), ("Took", "10000")],
    );
    // It began before the session.
    let tags = [
        ("Kind", "Internal"),
        ("Took", "5"),
        ("Status", "Error"),
        ("StatusDescription", "bad"),
        ("Tags", "[color, red],[size, 3]"),
    ];
    source(&mut recording, "ActivityStop", "Shop", "Job", &job, &served, &tags);
    let exception =
        r#"{"TypeName":"System.Exception","Message":"no","VerboseMessage":"System.Exception: no\n at X"}"#;
    let arguments = r#"{"user":"ann","count":3,"{OriginalFormat}":"hello {user}"}"#;
    recording.record(4, "Shop", "Greeted", "hello ann", [exception, arguments], "00000000000000dd");
    recording.record(2, "Shop", "", "plain", ["{}", "{}"], "");
    let stop = [("StatusCode", "500"), ("ActivityDuration", "20000"), ("ActivityId", &*served)];
    recording.bridge("Activity1Stop", aspnet, &format!("{SERVED}.Stop"), &stop);
    source(
        &mut recording,
        "ActivityStop",
        aspnet,
        SERVED,
        &served,
        &remote,
        &[("Kind", "Server"), ("Took", "20000")],
    );
    recording.bytes()
}

/// Exports the recording, and returns the received data.
fn export(ratio: f64) -> Arc<Receiver> {
    let folder = tempfile::tempdir().unwrap();
    let port = Address::from(folder.path().join("port").as_path());
    let config = MonitorConfig::default().with_port(Some(port)).with_only_port(true);
    let receiver = Arc::new(Receiver::default());
    let mut logs = LogSelection::new(LogLevel::Information);
    logs.filters.insert("Microsoft".to_owned(), LogLevel::Warning);
    let traces = TracesConfig { sources: vec!["*".to_owned()], ratio: SamplingRatio::new(ratio).unwrap() };
    let otlp = OtlpConfig::default()
        .with_logs(Some(logs))
        .with_traces(Some(traces))
        .with_attributes(vec![("deployment.environment.name".to_owned(), "test".to_owned())]);
    let export = OtlpExport::start(otlp, Arc::clone(&receiver) as Arc<dyn OtlpSink>).unwrap();
    let export = Arc::new(export);
    let monitor = Monitor::start(config, vec![Arc::clone(&export) as _]).unwrap();
    let port = monitor.port_address().unwrap().to_string().parse().unwrap();
    let builder = Runtime::builder().version(Version::NET9).replay(recording()).speed(Speed::Max);
    let runtime = builder.connect(&port).unwrap();
    await_that("the records have come", || receiver.records.lock().unwrap().len() >= 2);
    let requests: Vec<_> = runtime.requests().iter().map(|request| format!("{request:?}")).collect();
    let session = requests.iter().find(|request| request.contains("CollectTracing")).unwrap();
    for part in ["*:Information;Microsoft:Warning;", "[AS]*/-Record:-Id;ParentId"] {
        assert!(session.contains(part), "{part}: {session}");
    }
    export.stop();
    receiver
}

#[test]
fn spans_and_records_have_the_ids_of_the_application() {
    let receiver = export(1.0);
    let spans = receiver.spans.lock().unwrap();
    let span = |name: &str| {
        let found: Vec<_> = spans.iter().filter(|(_, span)| span.name == name).collect();
        (found[0].0.as_str(), found[0].1.clone(), texts(&found[0].1.attributes))
    };
    let names: std::collections::BTreeSet<_> = spans.iter().map(|(_, span)| span.name.as_str()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["GET /carts/{id}", "Job", "POST"]);
    let trace: [u8; 16] = u128::from_str_radix(TRACE, 16).unwrap().to_be_bytes();
    assert!(spans.iter().all(|(_, span)| span.trace_id == trace && span.flags == 1));
    let ids = |span: &Span| (span.span_id[7], span.parent_span_id[7]);

    let (scope, served, attributes) = span("GET /carts/{id}");
    assert_eq!(
        (scope, ids(&served), served.kind()),
        ("Microsoft.AspNetCore", (0xbb, 0xaa), SpanKind::Server)
    );
    assert_eq!(served.start_time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!(served.end_time_unix_nano - served.start_time_unix_nano, 2_000_000);
    assert_eq!(served.status.unwrap().code(), StatusCode::Error);
    let expected = [
        ("error.type", "500"),
        ("http.request.method", "GET"),
        ("http.response.status_code", "500"),
        ("http.route", "/carts/{id}"),
        ("server.address", "shop.example"),
        ("server.port", "8443"),
        ("url.path", "/base/carts/7"),
        ("url.query", "token=Redacted"),
        ("url.scheme", "https"),
    ];
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(attributes, expected);

    let (scope, sent, attributes) = span("POST");
    assert_eq!((scope, ids(&sent), sent.kind()), ("System.Net.Http", (0xcc, 0xbb), SpanKind::Client));
    assert_eq!(attributes["url.full"], "https://bank.example/pay?card=Redacted");
    assert_eq!((&*attributes["http.response.status_code"], &*attributes["server.port"]), ("402", "443"));
    assert_eq!(sent.status.unwrap().code(), StatusCode::Error);

    let (scope, job, attributes) = span("Job");
    assert_eq!((scope, ids(&job), job.kind()), ("Shop", (0xdd, 0xbb), SpanKind::Internal));
    assert_eq!((&*attributes["color"], &*attributes["size"]), ("red", "3"));
    let status = job.status.unwrap();
    assert_eq!((status.code(), &*status.message), (StatusCode::Error, "bad"));

    let records = receiver.records.lock().unwrap();
    assert!(records.iter().all(|(scope, _)| scope == "Shop"), "no record of an endpoint: {records:?}");
    let record = |name: &str| records.iter().find(|(_, record)| record.event_name == name).unwrap().1.clone();
    let greeted = record("Greeted");
    assert_eq!((greeted.severity_number(), &*greeted.severity_text), (SeverityNumber::Error, "Error"));
    assert_eq!((greeted.trace_id, greeted.span_id[7], greeted.flags), (trace.to_vec(), 0xdd, 1));
    assert_eq!(greeted.body.unwrap().value, Some(any_value::Value::StringValue("hello ann".into())));
    let attributes = texts(&greeted.attributes);
    let expected = [
        ("count", "3"),
        ("exception.message", "no"),
        ("exception.stacktrace", "System.Exception: no\n at X"),
        ("exception.type", "System.Exception"),
        ("logrecord.event.id", "5"),
        ("user", "ann"),
        ("{OriginalFormat}", "hello {user}"),
    ];
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(attributes, expected);
    let plain = record("");
    assert!(plain.trace_id.is_empty() && plain.severity_number() == SeverityNumber::Info, "{plain:?}");
    let resource = receiver.resource.lock().unwrap();
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!((&*resource["process.runtime.name"], resource.contains_key("service.name")), (".NET", true));
}

#[test]
fn traces_that_are_not_sampled_are_left_out() {
    let receiver = export(0.0);
    assert!(receiver.spans.lock().unwrap().is_empty());
    assert!(receiver.records.lock().unwrap().len() >= 2);
}
