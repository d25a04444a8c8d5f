//! Spans of synthetic recordings: ends that no event reports, recordings that begin or end in the middle,
//! siblings, ids that are used again, and pairing by fields.

use std::time::Duration;

use nettrace::SliceReader;
use nettrace_export::clr_activity::{Span, Spans};
use nettrace_export::report::{Requests, RequestsOptions, RequestsReport, SpanEnd, SpanRole, SpanRow};
use nettrace_export::{NameForm, Pattern};
use nettrace_synth::clr::{self, EXTERNAL, Kind, Method, activity_id, diagnostic};
use nettrace_synth::{Field, Metadata, TraceHeader, Type, Value, payload};

const PROCESS: i32 = 4711;
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
const HTTP: &str = "System.Net.Http";
const LOGGING: &str = "Microsoft-Extensions-Logging";
const DIAGNOSTIC: &str = "Microsoft-Diagnostics-DiagnosticSource";
const SQL: &str = "Microsoft.Data.SqlClient.EventSource";
const TASKS: &str = "System.Threading.Tasks.TplEventSource";
const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A recording in the making, in microseconds.
struct Recording(clr::Recording);

impl Default for Recording {
    fn default() -> Self {
        let mut recording =
            clr::Recording::with_header(TraceHeader { process_id: PROCESS, ..TraceHeader::default() });
        recording.stacks(&[&[0x1008, 0x3008], &[0x2008, 0x3008], &[0x3008]]);
        Self(recording)
    }
}

/// The place and time of an event.
#[derive(Clone, Copy)]
struct At<'a> {
    /// Microseconds.
    time: u64,
    thread: u64,
    /// The path of the activity; empty for none.
    activity: &'a [u8],
}

const fn at(time: u64, thread: u64, activity: &[u8]) -> At<'_> {
    At { time, thread, activity }
}

impl Recording {
    fn at(&mut self, at: At<'_>) -> &mut clr::Recording {
        self.0.at(at.time * 1000).thread(at.thread)
    }

    /// An event of a provider: its number, name, opcode and fields.
    fn event(
        &mut self,
        at: At<'_>,
        (provider, event_id, name, opcode): (&str, u32, &str, Option<u8>),
        fields: &[(&str, Type, Value)],
    ) -> &mut Self {
        let metadata = Metadata {
            provider: provider.into(),
            event_id,
            name: name.into(),
            opcode,
            fields: fields.iter().map(|(name, ty, _)| Field::new(name, ty.clone())).collect(),
            ..Metadata::default()
        };
        let values: Vec<_> = fields.iter().map(|(.., value)| value.clone()).collect();
        self.at(at).described(metadata, &values);
        self.of_activity(at)
    }

    fn of_activity(&mut self, at: At<'_>) -> &mut Self {
        if !at.activity.is_empty() {
            self.0.activity(activity_id(PROCESS, at.activity));
        }
        self
    }

    /// Gives the last event a related activity.
    fn related(&mut self, path: &[u8]) -> &mut Self {
        self.0.last().related = activity_id(PROCESS, path);
        self
    }

    fn request_start(&mut self, at: At<'_>, path: &str) -> &mut Self {
        self.event(at, (HOSTING, 3, "RequestStart", Some(1)), &[text("method", "GET"), text("path", path)])
    }

    fn request_stop(&mut self, at: At<'_>) -> &mut Self {
        self.event(at, (HOSTING, 4, "RequestStop", Some(2)), &[])
    }

    fn call_start(&mut self, at: At<'_>, path: &str) -> &mut Self {
        let fields = [
            text("scheme", "https"),
            text("host", "example.org"),
            int("port", 443),
            text("pathAndQuery", path),
        ];
        self.event(at, (HTTP, 1, "RequestStart", Some(1)), &fields)
    }

    fn call_stop(&mut self, at: At<'_>, status: i32) -> &mut Self {
        self.event(at, (HTTP, 2, "RequestStop", Some(2)), &[int("statusCode", status)])
    }

    fn task_event(&mut self, at: At<'_>, event_id: u32, words: &[i32]) -> &mut Self {
        let values: Vec<_> = words.iter().map(|word| Value::Int32(*word)).collect();
        self.at(at).event(Kind { provider: TASKS, event_id, version: 0 }, &values);
        self.of_activity(at)
    }

    fn work(&mut self, at: At<'_>, event_id: u32, number: i64) -> &mut Self {
        self.at(at).event(Kind { provider: FRAMEWORK, event_id, version: 0 }, &[Value::Int64(number)]);
        self.of_activity(at)
    }

    /// An event of the runtime about a suspension: 9 asks for one, 8 has it, 7 and 3 end it.
    fn suspension(&mut self, at: At<'_>, event_id: u32) -> &mut Self {
        let fields = [Value::UInt32(1), Value::UInt32(1), Value::UInt16(9)];
        self.at(at).event(Kind::runtime(event_id, 1), if event_id == 9 { &fields } else { &fields[2..] });
        self
    }

    /// A wait for a lock that `owner` has.
    fn lock_wait(&mut self, start: At<'_>, stop: u64, owner: u64) -> &mut Self {
        let nanoseconds = f64::from(u32::try_from(stop - start.time).unwrap()) * 1000.0;
        self.at(start).contention_start(1, owner);
        self.of_activity(start).at(At { time: stop, ..start }).contention_stop(nanoseconds);
        self.of_activity(start)
    }

    /// A sample of a thread on a processor, of one millisecond. The kernel does not know the activity.
    fn cpu_sample(&mut self, time: u64, thread: u64) -> &mut Self {
        self.event(at(time, thread, &[]), ("Universal.Events", 1, "cpu", None), &[])
    }

    /// An interval of thread 1 off the processors, in nanoseconds, with the stack of this number.
    fn off_cpu(&mut self, end: u64, nanoseconds: u64, stack: u32) -> &mut Self {
        let fields = [("Value", nanoseconds), ("Preempted", 0)]
            .map(|(name, it)| (name, Type::UInt64, Value::UInt64(it)));
        self.event(at(end, 1, &[]), ("Universal.Events", 2, "cswitch", None), &fields);
        self.0.on(stack);
        self
    }

    /// A method at an address.
    fn method(&mut self, address: u64, namespace: &str, name: &str) -> &mut Self {
        self.at(at(1, 9, &[])).method(&Method::new(address, namespace, name));
        self
    }

    /// A sample of thread 1 with the stack of this number.
    fn thread_sample(&mut self, time: u64, stack: u32) -> &mut Self {
        self.at(at(time, 1, &[])).sample(stack, EXTERNAL);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }

    fn report(&self) -> RequestsReport {
        self.report_with(RequestsOptions::default()).unwrap()
    }

    fn report_with(&self, options: RequestsOptions) -> Option<RequestsReport> {
        let bytes = self.bytes();
        let mut requests = Requests::new(options);
        let mut events = SliceReader::new(&bytes).unwrap().in_time_order();
        events.for_each(|event| requests.add(&event)).unwrap();
        requests.finish()
    }

    /// Name, start and duration in microseconds, end.
    fn spans(&self) -> Vec<(String, i64, u128, SpanEnd)> {
        let bytes = self.bytes();
        let mut spans = Spans::default();
        let mut found = Vec::new();
        let mut events = SliceReader::new(&bytes).unwrap().in_time_order();
        let mut keep = |span: Span<'_>| {
            let (start, duration) = (span.start.as_nanos() / 1000, span.duration.as_micros());
            found.push((span.name.to_owned(), start, duration, span.end));
        };
        events.for_each(|event| spans.add(&event, &mut keep)).unwrap();
        spans.finish(&mut keep);
        found
    }
}

fn text<'a>(name: &'a str, value: &str) -> (&'a str, Type, Value) {
    (name, Type::String16, Value::string16(value))
}

fn int(name: &str, value: i32) -> (&str, Type, Value) {
    (name, Type::Int32, Value::Int32(value))
}

fn row<'r>(report: &'r RequestsReport, name: &str) -> &'r SpanRow {
    let found = report.rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:#?}", report.rows))
}

fn statuses(row: &SpanRow) -> Vec<(Option<&str>, u64)> {
    row.statuses.iter().map(|row| (row.status.as_deref(), row.count)).collect()
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// On a thread, in pauses, in calls, queued, waiting, in microseconds.
fn parts(row: &SpanRow) -> [Option<u128>; 5] {
    let parts = row.parts.unwrap();
    [parts.on_thread, parts.gc_pause, parts.outgoing, parts.queued, parts.waiting]
        .map(|part| part.map(|part| part.as_micros()))
}

#[test]
fn requests_are_paired_by_their_activity() {
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, &[1, 1]), "/a")
        .request_start(at(150, 2, &[1, 2]), "/b")
        .request_stop(at(300, 3, &[1, 1]))
        .request_start(at(400, 1, &[1, 3]), "/a")
        .request_stop(at(500, 1, &[1, 3]))
        .request_stop(at(950, 1, &[1, 2]));
    let report = recording.report();
    assert_eq!(report.duration, micros(950));
    let (a, b) = (row(&report, "GET /a"), row(&report, "GET /b"));
    assert_eq!((a.count, a.errors, a.role), (2, 0, SpanRole::Server));
    assert_eq!((a.latencies.total, a.latencies.max), (micros(300), micros(200)));
    assert_eq!((b.count, b.latencies.p50, b.latencies.max), (1, micros(800), micros(800)));
    // The route with the longest total time is first.
    assert_eq!(report.rows[0].name, "GET /b");
    assert!((a.per_second - 2.0 / 0.000_95).abs() < 0.01, "{}", a.per_second);
    assert_eq!((a.implied, a.cut_by_end, report.left_out), (0, 0, 0));
    let source = &report.sources[0];
    assert_eq!((source.starts, source.stops, source.paired, source.unpaired), (3, 3, 3, 0));
}

#[test]
fn the_time_on_threads_is_divided_into_processor_and_lock_waits() {
    let mut recording = Recording::default();
    recording
        .request_start(at(1000, 1, &[1, 1]), "/stock")
        .cpu_sample(2000, 1)
        .cpu_sample(3000, 1)
        .lock_wait(at(4000, 1, &[1, 1]), 8000, 77)
        .cpu_sample(9000, 1)
        .cpu_sample(9000, 2)
        .request_stop(at(11_000, 1, &[1, 1]))
        .cpu_sample(12_000, 1);
    let report = recording.report_with(RequestsOptions::default().with_slowest(1)).unwrap();
    let parts = row(&report, "GET /stock").thread_parts.unwrap();
    assert_eq!((parts.cpu, parts.lock_wait), (Some(micros(3000)), Some(micros(4000))));
    assert_eq!((parts.lock_waits, parts.lock_owner_tid), (1, Some(77)));
    assert_eq!(parts.other_wait, None, "when threads worked for it is not known");
    assert_eq!(report.slowest[0].thread_parts, Some(parts));
}

#[test]
fn the_time_on_threads_is_divided_into_sleep_and_io() {
    let mut recording = Recording::default();
    recording
        .method(0x1000, "System.Threading.Thread", "Sleep")
        .method(0x2000, "System.Net.Sockets.SocketPal", "SysReceive")
        .method(0x3000, "Shop.Stock", "Reserve")
        .request_start(at(1000, 1, &[1, 1]), "/stock")
        .thread_sample(2000, 1)
        .thread_sample(4000, 2)
        .thread_sample(5000, 3)
        .request_stop(at(9000, 1, &[1, 1]))
        .thread_sample(9500, 1);
    let report = recording.report_with(RequestsOptions::default().with_waits(true).with_slowest(1)).unwrap();
    let parts = row(&report, "GET /stock").thread_parts.unwrap();
    assert_eq!((parts.sleep, parts.io), (Some(micros(2000)), Some(micros(1000))), "{report:#?}");
    assert_eq!((parts.cpu, parts.lock_wait, parts.other_wait), (None, None, None));
    assert_eq!(report.slowest[0].thread_parts, Some(parts));
    let without = recording.report();
    assert_eq!(row(&without, "GET /stock").thread_parts, None, "it was not asked for");
}

#[test]
fn the_kernels_samples_divide_waits_and_not_work() {
    let mut recording = Recording::default();
    recording
        .method(0x1000, "System.Threading.Thread", "Sleep")
        .method(0x2000, "System.Net.Sockets.SocketPal", "SysReceive")
        .method(0x3000, "Shop.Stock", "Reserve")
        .request_start(at(1000, 1, &[1, 1]), "/stock")
        .off_cpu(4000, 2_000_000, 1)
        .off_cpu(5000, 500_000, 2)
        .cpu_sample(6000, 1);
    recording.0.on(2);
    recording.request_stop(at(9000, 1, &[1, 1]));
    let report = recording.report_with(RequestsOptions::default().with_waits(true)).unwrap();
    let parts = row(&report, "GET /stock").thread_parts.unwrap();
    let split = [parts.cpu, parts.sleep, parts.io];
    assert_eq!(split, [1000, 2000, 500].map(|time| Some(micros(time))), "{report:#?}");
}

#[test]
fn percentiles_are_of_all_requests() {
    let mut recording = Recording::default();
    for number in 1..=200 {
        recording.request_start(at(number * 1000, 1, &[1, 1]), "/");
        recording.request_stop(at(number * 1000 + number, 1, &[1, 1]));
    }
    let latencies = recording.report().rows[0].latencies;
    for (ours, exact) in [(latencies.p50, 100), (latencies.p90, 180), (latencies.p99, 198)] {
        let exact = micros(exact);
        assert!(ours >= exact && ours <= exact.mul_f64(1.01), "{ours:?} for {exact:?}");
    }
    assert_eq!((latencies.max, latencies.total), (micros(200), micros(20_100)));
}

#[test]
fn spans_that_the_recording_cuts_are_counted_apart() {
    let mut recording = Recording::default();
    recording
        .request_stop(at(50, 1, &[1, 9]))
        .request_start(at(100, 1, &[1, 1]), "/a")
        .request_start(at(200, 1, &[1, 2]), "/a")
        .request_stop(at(300, 1, &[1, 1]));
    let report = recording.report_with(RequestsOptions::default().with_slowest(5)).unwrap();
    let a = row(&report, "GET /a");
    assert_eq!((a.count, a.cut_by_end, a.latencies.max), (1, 1, micros(200)));
    assert_eq!((report.sources[0].cut_by_start, report.sources[0].cut_by_end), (1, 1));
    let slowest: Vec<_> = report.slowest.iter().map(|span| (span.duration, span.end)).collect();
    assert_eq!(slowest, [(micros(200), SpanEnd::Stopped), (micros(100), SpanEnd::RecordingEnd)]);
    assert_eq!(report.slowest[0].activity.as_deref(), Some("/#4711/1/1/"));
}

#[test]
fn a_start_ends_one_of_its_name_that_it_does_not_lie_within() {
    let mut recording = Recording::default();
    let kind = ("Mine", 1, "JobStart", Some(1));
    recording
        .event(at(100, 1, &[1, 1]), kind, &[text("name", "first")])
        .event(at(200, 1, &[1, 2]), kind, &[text("name", "second")])
        .related(&[1, 1])
        .event(at(300, 1, &[1, 2, 1]), kind, &[text("name", "recursive")])
        .related(&[1, 2])
        .event(at(400, 1, &[1, 2, 1]), ("Mine", 2, "JobStop", Some(2)), &[])
        .event(at(450, 1, &[1, 2]), ("Mine", 2, "JobStop", Some(2)), &[]);
    assert_eq!(
        recording.spans(),
        [
            ("name=first".into(), 100, 100, SpanEnd::Implied),
            ("name=recursive".into(), 300, 100, SpanEnd::Stopped),
            ("name=second".into(), 200, 250, SpanEnd::Stopped)
        ]
    );
    let report = recording.report();
    assert_eq!((row(&report, "name=first").count, row(&report, "name=first").implied), (0, 1));
    assert_eq!((report.sources[0].implied, report.sources[0].paired), (1, 2));
}

#[test]
fn a_stop_ends_the_spans_of_its_thread_but_not_parallel_ones() {
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, &[1, 1]), "/")
        // The call goes on on another thread, and ends after the request.
        .call_start(at(150, 1, &[1, 1, 1]), "/beside")
        .related(&[1, 1])
        .request_start(at(160, 2, &[1, 2]), "/other")
        // The call's Stop is missing.
        .call_start(at(200, 1, &[1, 1, 2]), "/within")
        .related(&[1, 1])
        .request_stop(at(300, 1, &[1, 1]))
        .call_stop(at(500, 3, &[1, 1, 1]), 200)
        .request_stop(at(600, 2, &[1, 2]));
    assert_eq!(
        recording.spans(),
        [
            ("GET /".into(), 100, 200, SpanEnd::Stopped),
            ("https://example.org/beside".into(), 150, 350, SpanEnd::Stopped),
            ("GET /other".into(), 160, 440, SpanEnd::Stopped),
            ("https://example.org/within".into(), 200, 100, SpanEnd::Implied)
        ]
    );
}

#[test]
fn an_id_that_is_used_again_is_another_span() {
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, &[1, 1]), "/first")
        .request_start(at(300, 2, &[1, 1]), "/second")
        .request_stop(at(400, 2, &[1, 1]))
        .request_stop(at(500, 2, &[1, 1]));
    assert_eq!(
        recording.spans(),
        [
            ("GET /first".into(), 100, 200, SpanEnd::Implied),
            ("GET /second".into(), 300, 100, SpanEnd::Stopped)
        ]
    );
    assert_eq!(recording.report().sources[0].cut_by_start, 1);
}

#[test]
fn without_activities_spans_are_paired_by_their_fields() {
    let mut recording = Recording::default();
    let none = &[];
    let kestrel = |id: &str| {
        [text("connectionId", "C"), text("requestId", id), text("path", "/k"), text("method", "GET")]
    };
    recording
        .event(at(100, 1, none), (KESTREL, 3, "RequestStart", Some(1)), &kestrel("C:1"))
        .event(at(110, 1, none), (KESTREL, 3, "RequestStart", Some(1)), &kestrel("C:2"))
        .event(at(200, 1, none), (KESTREL, 4, "RequestStop", Some(2)), &kestrel("C:1"))
        .event(at(410, 1, none), (KESTREL, 4, "RequestStop", Some(2)), &kestrel("C:2"))
        .event(at(500, 1, none), ("Mine", 1, "JobStart", Some(1)), &[int("id", 7), text("name", "x")])
        .event(at(510, 1, none), ("Mine", 1, "JobStart", Some(1)), &[int("id", 8), text("name", "y")])
        .event(at(520, 1, none), ("Mine", 2, "JobStop", Some(2)), &[int("id", 7)])
        // By what, is not known.
        .request_start(at(600, 1, none), "/")
        .request_stop(at(700, 1, none));
    let report = recording.report();
    assert_eq!((row(&report, "GET /k").count, row(&report, "GET /k").latencies.total), (2, micros(400)));
    assert_eq!((row(&report, "name=x").latencies.total, row(&report, "name=y").cut_by_end), (micros(20), 1));
    // Threads cannot be followed.
    assert!(report.rows.iter().all(|row| row.parts.is_none()));
    let hosting = report.sources.iter().find(|source| source.provider == HOSTING).unwrap();
    assert_eq!((hosting.unpaired, hosting.paired), (2, 0));
}

#[test]
fn commands_are_paired_by_their_number_because_their_ids_leak() {
    let mut recording = Recording::default();
    let begin = |id: i32| {
        [
            int("objectId", id),
            text("dataSource", "db1"),
            text("database", "shop"),
            text("commandText", "secret"),
        ]
    };
    let end = |id: i32, state: i32, number: i32| {
        [int("objectId", id), int("compositeState", state), int("sqlExceptionNumber", number)]
    };
    recording
        .request_start(at(100, 1, &[1, 1]), "/")
        .event(at(200, 1, &[1, 1, 1]), (SQL, 1, "BeginExecute", Some(1)), &begin(5))
        // The end has the id of something else.
        .event(at(300, 1, &[1, 1]), (SQL, 2, "EndExecute", Some(2)), &end(5, 5, 0))
        .event(at(400, 1, &[1, 1, 2]), (SQL, 1, "BeginExecute", Some(1)), &begin(6))
        .event(at(450, 1, &[1, 1, 2]), (SQL, 2, "EndExecute", Some(2)), &end(6, 6, 208))
        .request_stop(at(500, 1, &[1, 1]));
    let report = recording.report();
    let commands = row(&report, "shop on db1");
    assert_eq!((commands.count, commands.errors, commands.latencies.total), (2, 1, micros(150)));
    assert_eq!(statuses(commands), [(None, 1), (Some("208"), 1)]);
    assert!(!format!("{report:?}").contains("secret"));
}

#[test]
fn failures_come_before_the_stop() {
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, &[1, 1]), "/")
        .call_start(at(110, 1, &[1, 1, 1]), "/x")
        .event(
            at(150, 1, &[1, 1, 1]),
            (HTTP, 3, "RequestFailed", None),
            &[text("exceptionMessage", "Connection refused")],
        )
        .call_stop(at(160, 1, &[1, 1, 1]), -1)
        // Within a scope of the logging library, which is not a span.
        .event(at(170, 1, &[1, 1, 2]), (HOSTING, 5, "UnhandledException", None), &[])
        .request_stop(at(200, 1, &[1, 1]));
    let report = recording.report_with(RequestsOptions::default().with_slowest(1)).unwrap();
    assert_eq!((row(&report, "GET /").errors, row(&report, "https://example.org/x").errors), (1, 1));
    assert_eq!(statuses(row(&report, "https://example.org/x")), [(None, 1)]);
    assert!(report.slowest[0].is_error);
}

#[test]
fn routes_and_statuses_match_log_messages() {
    let mut recording = Recording::default();
    let message = |logger: &str, id: i32, name: &str, arguments: &str| {
        [
            text("LoggerName", logger),
            int("EventId", id),
            text("EventName", name),
            text("ArgumentsJson", arguments),
        ]
    };
    let kind = (LOGGING, 159, "MessageJson", None);
    for (number, path, status) in [(1, "/hello/1", "200"), (2, "/hello/2", "503")] {
        let endpoint = r#"{"EndpointName":"HTTP: GET /hello/{n}","{OriginalFormat}":"x"}"#;
        let finished = format!(r#"{{"ElapsedMilliseconds":"1.5","StatusCode":"{status}"}}"#);
        let start = u64::from(number) * 1000;
        recording
            .request_start(at(start, 1, &[1, number]), path)
            .event(
                at(start + 10, 1, &[1, number, 1]),
                kind,
                &message("Microsoft.AspNetCore.Routing.EndpointMiddleware", 0, "ExecutingEndpoint", endpoint),
            )
            .event(
                at(start + 20, 1, &[1, number, 1]),
                kind,
                &message("Microsoft.AspNetCore.Hosting.Diagnostics", 2, "", &finished),
            )
            .request_stop(at(start + 100, 1, &[1, number]));
    }
    let report = recording.report();
    let hello = row(&report, "GET /hello/{n}");
    assert_eq!((hello.count, hello.errors, report.rows.len()), (2, 1, 1));
    assert_eq!(statuses(hello), [(Some("200"), 1), (Some("503"), 1)]);
}

#[test]
fn a_request_that_has_several_names_counts_once() {
    let mut recording = Recording::default();
    let kestrel =
        [text("connectionId", "C"), text("requestId", "C:1"), text("path", "/"), text("method", "GET")];
    recording
        .request_start(at(100, 1, &[1, 1, 1]), "/")
        .event(at(110, 1, &[1, 1, 1, 1]), (KESTREL, 3, "RequestStart", Some(1)), &kestrel)
        .event(at(190, 1, &[1, 1, 1, 1]), (KESTREL, 4, "RequestStop", Some(2)), &kestrel)
        .request_stop(at(200, 1, &[1, 1, 1]));
    let report = recording.report();
    assert_eq!((report.rows.len(), report.rows[0].count, &*report.rows[0].provider), (1, 1, HOSTING));
}

#[test]
fn events_of_diagnostic_sources_are_known_by_their_names() {
    let mut recording = Recording::default();
    let mut add = |at: At<'_>, kind: (u32, &str, Option<u8>), values: Vec<Value>| {
        recording.event(at, (DIAGNOSTIC, kind.0, kind.1, kind.2), &[]);
        recording.0.last().payload = payload(&values);
    };
    let (start, stop, event) =
        ((20, "Activity1Start", Some(1)), (21, "Activity1Stop", Some(2)), (24, "Event", None));
    let request = "Microsoft.AspNetCore.Hosting.HttpRequestIn";
    let aspnet = "Microsoft.AspNetCore";
    let command = |end: &str| format!("Microsoft.Data.SqlClient.WriteCommand{end}");
    let sql = "SqlClientDiagnosticListener";
    add(
        at(100, 1, &[1, 1]),
        start,
        diagnostic(
            aspnet,
            &format!("{request}.Start"),
            &[("Method", "GET"), ("Path", "/users/7"), ("SpanId", "s1")],
        ),
    );
    add(
        at(200, 1, &[1, 1]),
        event,
        diagnostic(sql, &command("Before"), &[("OperationId", "o1"), ("Database", "shop")]),
    );
    add(
        at(230, 1, &[1, 1]),
        event,
        diagnostic(sql, &command("Before"), &[("OperationId", "o2"), ("Database", "shop")]),
    );
    add(at(250, 2, &[1, 1]), event, diagnostic(sql, &command("After"), &[("OperationId", "o1")]));
    add(
        at(260, 2, &[1, 1]),
        event,
        diagnostic(sql, &command("Error"), &[("OperationId", "o2"), ("Message", "Deadlock")]),
    );
    add(
        at(400, 2, &[1, 1]),
        stop,
        diagnostic(
            aspnet,
            &format!("{request}.Stop"),
            &[("StatusCode", "500"), ("SpanId", "s1"), ("Tags", "[http.route, /users/{id}],[x, y]")],
        ),
    );
    // The base name, which must be on, says nothing.
    add(at(500, 1, &[]), event, diagnostic(aspnet, request, &[]));
    // An activity that is reported at its end.
    add(
        at(900, 1, &[]),
        (25, "ActivityStop", Some(2)),
        diagnostic("Mine", "Job", &[("SpanId", "s9"), ("Took", "3000"), ("DisplayName", "nightly")]),
    );
    let report = recording.report();
    let users = row(&report, "GET /users/{id}");
    assert_eq!((users.count, users.errors, users.role), (1, 1, SpanRole::Server));
    assert_eq!((statuses(users), users.latencies.total), (vec![(Some("500"), 1)], micros(300)));
    let commands = row(&report, "shop");
    assert_eq!((commands.count, commands.errors, commands.latencies.total), (2, 1, micros(80)));
    assert_eq!(commands.role, SpanRole::Outgoing);
    let nightly = row(&report, "nightly");
    assert_eq!((nightly.count, nightly.latencies.total, &*nightly.task), (1, micros(300), "Job"));
    assert_eq!(report.rows.len(), 3);
}

#[test]
fn the_time_of_a_request_is_where_it_went() {
    let (request, call) = (&[1u8, 1][..], &[1u8, 1, 1][..]);
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, request), "/")
        // An operation begins, and the thread leaves the request.
        .task_event(at(150, 1, request), 14, &[42])
        .call_start(at(160, 1, call), "/x")
        .task_event(at(200, 1, &[]), 10, &[0, 0, 43, 2])
        // A pause within the call.
        .suspension(at(300, 9, &[]), 9)
        .suspension(at(305, 9, &[]), 8)
        .suspension(at(318, 9, &[]), 7)
        .suspension(at(320, 9, &[]), 3)
        .call_stop(at(400, 2, call), 200)
        // The work after that is queued, and another thread takes it.
        .work(at(410, 2, request), 30, 99)
        .event(at(420, 2, &[]), ("Mine", 9, "Nothing", None), &[])
        .work(at(500, 3, &[]), 31, 99)
        .task_event(at(505, 3, &[]), 17, &[42, 2])
        .task_event(at(600, 3, &[]), 18, &[2])
        // The thread of the pool has nothing more to do.
        .event(at(600, 3, &[]), (RUNTIME, 57, "", None), &[])
        // Without the request, which has finished its work: it waits.
        .request_stop(at(800, 4, request));
    let report = recording.report();
    // On a thread: 100 to 200, 400 to 420, 500 to 600 from queued and continued work; in the call 200 to 400
    // without the pause; in the queue from 420, because the thread that queued it worked until then; waiting
    // from 600.
    assert_eq!(parts(row(&report, "GET /")), [Some(220), Some(20), Some(180), Some(80), Some(200)]);
    assert_eq!(row(&report, "https://example.org/x").parts, None);
}

#[test]
fn missing_measurements_are_not_zero() {
    let mut recording = Recording::default();
    recording.request_start(at(100, 1, &[1, 1]), "/").request_stop(at(200, 1, &[1, 1]));
    assert_eq!(parts(&recording.report().rows[0]), [None; 5]);
    // Pauses alone.
    recording.suspension(at(300, 9, &[]), 9).suspension(at(310, 9, &[]), 3);
    assert_eq!(parts(&recording.report().rows[0]), [None, Some(0), None, None, None]);
}

#[test]
fn names_select_spans() {
    let mut recording = Recording::default();
    recording
        .request_start(at(100, 1, &[1, 1]), "/a")
        .request_stop(at(200, 1, &[1, 1]))
        .request_start(at(300, 1, &[1, 2]), "/b")
        .request_stop(at(400, 1, &[1, 2]));
    let of = |pattern: &str| {
        let options = RequestsOptions::default().with_name(Some(Pattern::new(pattern))).with_slowest(9);
        let report = recording.report_with(options).unwrap();
        let names: Vec<_> = report.rows.iter().map(|row| row.name.clone()).collect();
        (names, report.slowest.len())
    };
    assert_eq!(of("/a"), (vec!["GET /a".into()], 1));
    assert_eq!(of("get *b$"), (vec!["GET /b".into()], 1));
    assert_eq!(of("hosting/request").0.len(), 2);
    assert_eq!(of("nosuch"), (vec![], 0));
}

#[test]
fn slow_requests_have_a_profile_of_their_own() {
    let mut recording = Recording::default();
    recording
        .method(0x1000, "Shop.Stock", "Reserve")
        .method(0x2000, "Shop.Cart", "Total")
        .method(0x3000, "Shop.Stock", "Count")
        .request_start(at(1000, 1, &[1, 1]), "/quick")
        .thread_sample(2000, 2)
        .request_stop(at(3000, 1, &[1, 1]))
        .request_start(at(10_000, 1, &[1, 2]), "/slow")
        .thread_sample(11_000, 1)
        .thread_sample(15_000, 3)
        .request_stop(at(20_000, 1, &[1, 2]))
        .request_start(at(30_000, 1, &[1, 3]), "/slow")
        .thread_sample(31_000, 1)
        .request_stop(at(39_000, 1, &[1, 3]))
        .thread_sample(40_000, 2);
    let of = |least| recording.report_with(RequestsOptions::default().with_slower_than(least)).unwrap();
    let report = of(Some(micros(9000)));
    let rows: Vec<_> = report.rows.iter().map(|row| (&*row.name, row.count)).collect();
    assert_eq!(rows, [("GET /slow", 2)]);
    let csharp = RequestsOptions::default().with_slower_than(Some(micros(9000))).with_names(NameForm::CSharp);
    let json = serde_json::to_value(recording.report_with(csharp).unwrap()).unwrap();
    let methods = json["slower"]["rows"].as_array().unwrap();
    let methods: Vec<_> = methods.iter().map(|row| (&row["csharp"], &row["exclusive"])).collect();
    assert_eq!(
        methods,
        [
            (&"?!Shop.Stock.Reserve()".into(), &12_000_000.into()),
            (&"?!Shop.Stock.Count()".into(), &5_000_000.into())
        ]
    );
    let profile = report.slower.unwrap();
    let mut times = std::collections::BTreeMap::new();
    for row in nettrace_export::report::top(&profile).iter().filter(|row| !row.is_root) {
        times.insert(row.frame.rsplit('.').next().unwrap().to_owned(), row.exclusive);
    }
    // Four and eight milliseconds, and five.
    let expected = [("Count()", 5_000_000), ("Reserve()", 12_000_000)];
    assert_eq!(times, expected.map(|(name, time)| (name.to_owned(), time)).into());
    assert!(of(Some(micros(10_001))).rows.is_empty() && of(Some(micros(10_001))).slower.is_none());
    assert!(of(None).slower.is_none());
}

#[test]
fn names_without_end_share_a_row() {
    let mut recording = Recording::default();
    // Numbers in a path are summed up under a template, words are not.
    let word = |number: u64| {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'g')).collect::<String>()
    };
    for number in 0..3000u64 {
        recording.request_start(at(number * 10, 1, &[1, 1]), &format!("/{}", word(number)));
        recording.request_stop(at(number * 10 + 5, 1, &[1, 1]));
    }
    let report = recording.report();
    assert_eq!(report.rows.len(), 2049);
    assert_eq!((row(&report, "(others)").count, row(&report, "GET /g").count), (952, 1));
}

#[test]
fn a_recording_without_spans_has_no_report() {
    let mut recording = Recording::default();
    recording.event(at(100, 1, &[]), ("Mine", 1, "Nothing", None), &[]);
    assert!(recording.report_with(RequestsOptions::default()).is_none());
}
