//! `dipc report FILE requests`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use nettrace::{Interest, Metadata};
use nettrace_export::report::{
    Requests, RequestsOptions, RequestsReport, SlowSpan, SpanEnd, SpanRole, SpanRow, ThreadParts, TimeParts,
    call_tree, sort_top, top,
};
use nettrace_export::{NameForm, Pattern, Profile};

use crate::args::format::Format;
use crate::args::names::NameArgs;
use crate::command::report::reading::{ReadPart, ReadingArgs};
use crate::duration;
use crate::exit::Outcome;
use crate::inspect::names::{Names, add_code};
use crate::inspect::needs::Needs;
use crate::inspect::recording::Recording;
use crate::inspect::spans::may_have_spans;
use crate::render::escape::escape_controls;
use crate::render::frame_name::FrameName;
use crate::render::table::{self, Align, Columns};
use crate::render::units;

#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// List the N slowest requests individually, with the stacks of their threads
    #[arg(long, value_name = "N", default_value_t = 0)]
    slowest: usize,
    /// Only requests and calls that took at least this long, and the methods in which the threads of these
    /// requests spent their time
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    slower_than: Option<Duration>,
    /// Only spans with this text in their route, path, address or kind; '*' matches any text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    names: NameArgs,
}

pub(super) const NEEDS: Needs = Needs {
    what: "requests or other activities with a start and a stop",
    command: "dipc trace -p PID --profile aspnet",
};

pub(super) fn run(file: &Path, args: &RequestsArgs) -> Outcome {
    let name = args.name.as_deref().map(Pattern::new);
    let names = if args.reading.format == Format::Json { NameForm::CSharp } else { args.names.form() };
    let options = RequestsOptions::default()
        .with_waits(true)
        .with_slowest(args.slowest)
        .with_slower_than(args.slower_than)
        .with_name(name)
        .with_names(names);
    let options = options.with_start(args.reading.start(file)?);
    let mut requests = Requests::new(options.clone());
    if let Some(names) = Names::find(file) {
        names.add_to(requests.code_mut())?;
    }
    if args.reading.is_of_part(file) && file.is_file() {
        // The events that name methods lie before the part and after it.
        add_code(file, requests.code_mut())?;
    }
    // Anything but a regular file can be read only once.
    let has_spans = !file.is_file() || may_have_spans(&Recording::open(file)?);
    let interest = move |kind: &Metadata| {
        if has_spans { Requests::interest(&options, kind) } else { Interest::None }
    };
    let part = args.reading.read_by(file, interest, |event| requests.add(event))?;
    let ReadPart { exit, start, end, is_whole } = part;
    let mut requests = requests.with_range(start, end);
    if is_whole {
        requests.extend_to(end);
    }
    let mut report = requests.finish();
    if args.name.is_some() || args.slower_than.is_some() {
        report = report.filter(|report| !report.rows.is_empty());
    }
    args.reading.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.rows.truncate(rows),
        |report| text(report, args.reading.rows()),
    )
}

fn text(report: &RequestsReport, rows: usize) -> String {
    let mut text = String::new();
    let of = |role: SpanRole| report.rows.iter().filter(move |row| row.role == role).collect::<Vec<_>>();
    for (role, title) in
        [(SpanRole::Server, "REQUEST"), (SpanRole::Outgoing, "CALL"), (SpanRole::Other, "ACTIVITY")]
    {
        let of_role = of(role);
        if !of_role.is_empty() {
            text.push_str(&latencies(title, &of_role, rows));
            text.push('\n');
        }
    }
    text.push_str(&time_parts(report, rows));
    text.push_str(&report.slower.as_ref().map(|slower| methods(slower, rows)).unwrap_or_default());
    let mut trees =
        report.profile.as_ref().map(|profile| stacks(profile, report.slowest.len())).unwrap_or_default();
    trees.resize(report.slowest.len(), String::new());
    for ((number, span), tree) in (1..).zip(&report.slowest).zip(&trees) {
        text.push_str(&slow(number, span, tree));
    }
    text.push_str(&notes(report));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The methods in which threads spent their time for the requests that are slow enough.
fn methods(profile: &Profile, rows: usize) -> String {
    let total = profile.total();
    let mut of_stacks: Vec<_> = top(profile).into_iter().filter(|row| !row.is_root).collect();
    sort_top(&mut of_stacks, false);
    if of_stacks.is_empty() {
        return "No stack of a thread was sampled during these requests.\n\n".to_owned();
    }
    let mut columns = Columns::new([
        ("TIME", Align::Right),
        ("%", Align::Right),
        ("WITH CALLEES %", Align::Right),
        ("METHOD", Align::Left),
        ("CALLED FROM", Align::Left),
    ]);
    for row in of_stacks.iter().take(rows) {
        let name = |frame| FrameName::new(&profile.frames, Some(frame), profile.frames.name(frame));
        let caller = row.user_caller(false).map(|caller| name(caller.frame).without_parameters().to_owned());
        columns.row([
            units::time(Duration::from_nanos(row.exclusive)),
            units::short_percent(units::share(row.exclusive, total)),
            units::short_percent(units::share(row.inclusive, total)),
            FrameName::new(&profile.frames, row.frame_id, &row.frame).fit(METHOD_NAME),
            caller.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    let title = table::heading("Methods of these requests, by the samples of their threads");
    format!("{title}{}\n", columns.fitted(&[]))
}

/// The width of the name of a method.
const METHOD_NAME: usize = 60;

/// The name with an example of the part that is a placeholder: only the path, which contains it.
fn name_with_example(row: &SpanRow) -> String {
    let name = name(row);
    let Some(example) = &row.example else { return name };
    let host = example.find("://").map_or(0, |scheme| scheme + 3);
    let path = example.get(host..).and_then(|rest| rest.get(rest.find('/')?..));
    format!("{name}, such as {}", path.unwrap_or(example))
}

fn name(row: &SpanRow) -> String {
    match (row.role, &*row.name) {
        (SpanRole::Other, "") => format!("{}/{}", row.provider, row.task),
        (SpanRole::Other, name) => format!("{}/{} {name}", row.provider, row.task),
        (SpanRole::Outgoing, name) => format!("{} {name}", kind_of_call(row)),
        (_, "") => row.task.clone(),
        (_, name) => name.to_owned(),
    }
}

/// The word for a kind of call.
fn kind_of_call(row: &SpanRow) -> &str {
    match &*row.provider {
        "System.Net.Http" | "HttpHandlerDiagnosticListener" => "HTTP",
        "System.Net.NameResolution" => "DNS",
        "System.Net.Sockets" => "connect",
        "System.Net.Security" => "TLS",
        "Grpc.Net.Client" => "gRPC",
        "Microsoft.Data.SqlClient.EventSource" | "SqlClientDiagnosticListener" => "SQL",
        "Microsoft.EntityFrameworkCore" => "EF",
        _ => &row.task,
    }
}

fn latencies(title: &'static str, of_role: &[&SpanRow], rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("COUNT", Right),
        ("PER s", Right),
        ("ERRORS", Right),
        ("P50", Right),
        ("P90", Right),
        ("P99", Right),
        ("MAX", Right),
        ("TOTAL", Right),
        ("STATUS", Left),
        (title, Left),
    ]);
    for row in of_role.iter().take(rows) {
        let latencies = &row.latencies;
        let measured = |text: String| if row.count > 0 { text } else { "-".to_owned() };
        columns.row([
            units::count(row.count),
            format!("{:.2}", row.per_second),
            units::count(row.errors),
            measured(units::time(latencies.p50)),
            measured(units::time(latencies.p90)),
            measured(units::time(latencies.p99)),
            measured(units::time(latencies.max)),
            measured(units::time(latencies.total)),
            statuses(row),
            name_with_example(row),
        ]);
    }
    let mut text = columns.fitted(&["STATUS", "PER s", "TOTAL", "P90"]);
    let left = of_role.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

/// Statuses, most frequent first: `200 404×3`.
fn statuses(row: &SpanRow) -> String {
    let shown = row.statuses.iter().take(4).map(|status| {
        let name = status.status.as_deref().unwrap_or("-");
        if row.statuses.len() == 1 { name.to_owned() } else { format!("{name}×{}", status.count) }
    });
    let mut shown: Vec<_> = shown.collect();
    if row.statuses.len() > shown.len() {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}

/// A column of a table of parts.
type PartColumn<P> = (&'static str, fn(&P, Duration) -> String);

/// Shares of the time of requests, and of the time that threads worked for them, by activity.
fn time_parts(report: &RequestsReport, rows: usize) -> String {
    let parts: [PartColumn<TimeParts>; 5] = [
        ("ON THREAD", |parts, total| share(parts.on_thread, total)),
        ("GC PAUSE", |parts, total| share(parts.gc_pause, total)),
        ("IN CALLS", |parts, total| share(parts.outgoing, total)),
        ("QUEUED", |parts, total| share(parts.queued, total)),
        ("WAITING", |parts, total| share(parts.waiting, total)),
    ];
    let thread_parts: [PartColumn<ThreadParts>; 6] = [
        ("ON CPU", |parts, total| share(parts.cpu, total)),
        ("IN LOCK WAITS", |parts, total| share(parts.lock_wait, total)),
        ("LOCK WAITS", |parts, _| {
            parts.lock_wait.map_or_else(|| "-".to_owned(), |_| units::count(parts.lock_waits))
        }),
        ("ASLEEP", |parts, total| share(parts.sleep, total)),
        ("IN I/O", |parts, total| share(parts.io, total)),
        ("OTHER WAITS", |parts, total| share(parts.other_wait, total)),
    ];
    let all = report.rows.iter();
    let with_parts: Vec<_> = all.clone().filter_map(|row| Some((row, row.parts?))).take(rows).collect();
    let with_thread_parts: Vec<_> = all.filter_map(|row| Some((row, row.thread_parts?))).take(rows).collect();
    parts_table("WHERE THE TIME WENT", &parts, &with_parts)
        + &parts_table("WHAT ITS THREADS DID", &thread_parts, &with_thread_parts)
}

/// Formats the parts of the time of rows; nothing without rows.
fn parts_table<P>(title: &'static str, parts: &[PartColumn<P>], rows: &[(&SpanRow, P)]) -> String {
    use Align::{Left, Right};
    if rows.is_empty() {
        return String::new();
    }
    let names = parts.iter().map(|(name, _)| (*name, Right));
    let columns: Vec<_> = [("TOTAL", Right)].into_iter().chain(names).chain([(title, Left)]).collect();
    let mut columns = Columns::new(columns);
    for (row, of_row) in rows {
        let total = row.latencies.total;
        let cells = parts.iter().map(|(_, cell)| cell(of_row, total));
        columns.row([units::time(total)].into_iter().chain(cells).chain([name(row)]));
    }
    columns.fitted(&["TOTAL", "LOCK WAITS"]) + "\n"
}

/// A part of a time in percent; `-` if unknown.
fn share(part: Option<Duration>, total: Duration) -> String {
    part.map_or_else(
        || "-".to_owned(),
        |part| units::percent(units::share(units::nanoseconds(part), units::nanoseconds(total))),
    )
}

/// Returns the parts of a request's time on threads, as text.
fn thread_parts(span: &SlowSpan) -> Option<String> {
    let parts = span.thread_parts.as_ref()?;
    let mut words = Vec::new();
    words.extend(
        parts.cpu.filter(|cpu| !cpu.is_zero()).map(|cpu| format!("on a processor {}", units::time(cpu))),
    );
    if let Some(waited) = parts.lock_wait.filter(|_| parts.lock_waits > 0) {
        let waits = units::counted(parts.lock_waits, "lock wait", "lock waits");
        let owner = parts.lock_owner_tid.map_or_else(String::new, |owner| format!(" for thread {owner}"));
        words.push(format!("in {waits}{owner} {}", units::time(waited)));
    }
    for (part, what) in [(parts.sleep, "asleep"), (parts.io, "in I/O"), (parts.other_wait, "in other waits")]
    {
        words.extend(part.filter(|part| !part.is_zero()).map(|part| format!("{what} {}", units::time(part))));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn slow(number: usize, span: &SlowSpan, tree: &str) -> String {
    let name =
        if span.name.is_empty() { format!("{}/{}", span.provider, span.task) } else { span.name.clone() };
    let mut text =
        table::heading(&format!("{number}. {}  {}", units::time(span.duration), escape_controls(&name)));
    let end = match span.end {
        SpanEnd::RecordingEnd => "; it was still running at the end of the recording",
        SpanEnd::Implied => "; it ended without a Stop event",
        _ => "",
    };
    let status = span.status.as_deref().map_or_else(String::new, |status| format!(", status {status}"));
    let failed = if span.is_error { ", failed" } else { "" };
    let _ = writeln!(text, "   began at {}{status}{failed}{end}", units::moment(span.start.since_start()));
    if let Some(error) = &span.error {
        let _ = writeln!(text, "   {}", escape_controls(error));
    }
    if let Some(activity) = &span.activity {
        let _ = writeln!(text, "   activity {activity}");
    }
    if let Some(parts) = &span.parts {
        let shown = [
            ("on a thread", parts.on_thread),
            ("in GC pauses", parts.gc_pause),
            ("in calls", parts.outgoing),
            ("queued", parts.queued),
            ("waiting", parts.waiting),
        ];
        let shown = shown.iter().filter_map(|(what, part)| Some(format!("{what} {}", units::time((*part)?))));
        let _ = writeln!(text, "   {}", shown.collect::<Vec<_>>().join(", "));
    }
    if let Some(parts) = thread_parts(span) {
        let _ = writeln!(text, "   threads: {parts}");
    }
    if span.samples > 0 {
        let _ = writeln!(text, "   {} samples of its threads", units::count(span.samples));
        text.push_str(tree);
    }
    text.push('\n');
    text
}

/// Maximum number of frames to show of a request, and minimum share of its time for each, in percent.
const MAX_FRAMES: usize = 20;
const MIN_SHARE: u64 = 3;

/// A frame of a call tree.
struct Frame {
    depth: usize,
    name: String,
    inclusive: u64,
    exclusive: u64,
}

/// The call trees of the first `count` threads of a profile, as text.
fn stacks(profile: &Profile, count: usize) -> Vec<String> {
    let tree = call_tree(profile, true);
    let mut frames: Vec<Vec<Frame>> = Vec::new();
    frames.resize_with(count, Vec::new);
    let mut thread = None;
    tree.walk(usize::MAX, 1, |depth, node| {
        if depth == 0 {
            thread = profile.threads.iter().position(|thread| thread.frame == node.name);
        } else if let Some(frames) = thread.and_then(|thread| frames.get_mut(thread)) {
            frames.push(Frame {
                depth: depth - 1,
                name: FrameName::new(&profile.frames, node.frame, node.name).fit(usize::MAX),
                inclusive: node.inclusive,
                exclusive: node.exclusive,
            });
        }
    });
    frames.iter().map(|frames| draw(frames)).collect()
}

/// Draws a call tree, omitting frames that only call one other frame.
fn draw(frames: &[Frame]) -> String {
    let total: u64 = frames.iter().filter(|frame| frame.depth == 0).map(|frame| frame.inclusive).sum();
    let least = (total / 100).saturating_mul(MIN_SHARE);
    let mut text = String::new();
    let mut above: Vec<usize> = Vec::new();
    let mut shown = 0;
    for (index, frame) in frames.iter().enumerate() {
        let callee = frames.get(index + 1).filter(|next| next.depth == frame.depth + 1);
        let only_calls = callee.is_some_and(|callee| callee.inclusive == frame.inclusive);
        if only_calls || frame.inclusive < least || shown == MAX_FRAMES {
            continue;
        }
        shown += 1;
        above.retain(|depth| *depth < frame.depth);
        let indent = " ".repeat(above.len());
        above.push(frame.depth);
        let own = if frame.exclusive == 0 {
            String::new()
        } else {
            units::time(Duration::from_nanos(frame.exclusive))
        };
        let name = &frame.name;
        let _ = writeln!(
            text,
            "   {:>9} {own:>9}  {indent}{name}",
            units::time(Duration::from_nanos(frame.inclusive)),
        );
    }
    text
}

/// Notes on the facts that the recording lacks, and on spans that were left out.
fn notes(report: &RequestsReport) -> String {
    let mut text = String::new();
    let sum = |of: fn(&SpanRow) -> u64| report.rows.iter().map(of).fold(0, u64::saturating_add);
    let cut = sum(|row| row.cut_by_end);
    if cut > 0 {
        let _ = writeln!(text, "Not in these numbers: {cut} still running at the end of the recording.");
    }
    let implied = sum(|row| row.implied);
    if implied > 0 {
        let _ = writeln!(text, "Not in these numbers: {implied} that ended without a Stop event.");
    }
    let began_before = report.sources.iter().map(|source| source.cut_by_start).fold(0, u64::saturating_add);
    if began_before > 0 {
        let _ = writeln!(text, "{began_before} began before the recording; only their end is in it.");
    }
    let unpaired: Vec<_> = report.sources.iter().filter(|source| source.unpaired > 0).collect();
    if !unpaired.is_empty() {
        let names: Vec<_> =
            unpaired.iter().map(|source| format!("{}/{}", source.provider, source.task)).collect();
        let count = unpaired.iter().map(|source| source.unpaired).fold(0, u64::saturating_add);
        let _ = writeln!(
            text,
            "{count} events of {} have no activity and could not be paired: record TplEventSource too, with keyword 80 (--profile aspnet).",
            names.join(", ")
        );
    }
    let parts: Vec<_> = report.rows.iter().filter_map(|row| row.parts).collect();
    let lacks = |of: fn(&TimeParts) -> Option<Duration>| {
        !parts.is_empty() && parts.iter().all(|part| of(part).is_none())
    };
    for (is_lacking, what) in [
        (
            lacks(|parts| parts.on_thread),
            "When requests were on a thread is not known: the recording has no events of asynchronous work (TplEventSource, keywords E8).",
        ),
        (
            lacks(|parts| parts.gc_pause),
            "Pauses of the garbage collector are not known: the recording has no events of them (--clrevents gc).",
        ),
        (lacks(|parts| parts.outgoing), "The recording has no outgoing calls."),
        (
            lacks(|parts| parts.queued),
            "Time in the queue of the thread pool is not known: the recording has no events of it (FrameworkEventSource, keyword 2, level 5).",
        ),
    ] {
        if is_lacking {
            let _ = writeln!(text, "{what}");
        }
    }
    let requests = report.rows.iter().filter(|row| row.role == SpanRole::Server);
    let mut requests = requests.peekable();
    if requests.peek().is_some()
        && requests.all(|row| row.statuses.iter().all(|status| status.status.is_none()))
    {
        let _ = writeln!(
            text,
            "Statuses and routes of requests are not known: the recording has no log messages of ASP.NET, which have them (--profile aspnet asks for them, and the program's logging can leave them out)."
        );
    }
    if report.left_out > 0 {
        let _ = writeln!(text, "{} spans or threads were left out: there were too many.", report.left_out);
    }
    text
}
