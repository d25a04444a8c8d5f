//! Requests and calls of a real web server and its client, compared with another program's result from
//! another reader's events.
//!
//! `testdata/reference/requests.py` read TraceEvent's dump of `net9-web.nettrace` and printed
//! `net9-web.requests.tsv`; it shares nothing with this crate. `testdata/workload/web/Web.cs` is the server.

use std::collections::BTreeMap;
use std::time::Duration;

use nettrace::SliceReader;
use nettrace_export::report::{Requests, RequestsOptions, RequestsReport, SpanRole, SpanRow};

use nettrace_export::{CausalGrouping, Metric, Options};

use crate::{bytes_of, profile_of, testdata};

fn report(slowest: usize) -> RequestsReport {
    let recording = bytes_of(&testdata().join("reference/net9-web.nettrace.xz"));
    let mut requests = Requests::new(RequestsOptions::default().with_slowest(slowest));
    let mut events = SliceReader::new(&recording).expect("a recording").in_time_order();
    events.for_each(|event| requests.add(&event)).expect("bytes in memory");
    requests.finish().expect("requests")
}

fn row<'r>(report: &'r RequestsReport, name: &str) -> &'r SpanRow {
    report.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}"))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("hours")
}

#[test]
fn requests_match_another_program() {
    let report = report(0);
    let lines = bytes_of(&testdata().join("reference/net9-web.requests.tsv"));
    let lines = String::from_utf8(lines).unwrap();
    let mut numbered: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.lines() {
        // Calls are summed up by the template of their path, which that program does not do: these end with a
        // number.
        let path = line.split('\t').next().and_then(|name| name.rsplit_once('/'));
        if let Some((path, number)) = path.filter(|_| line.starts_with("http://"))
            && number.parse::<u32>().is_ok()
        {
            numbered.entry(path).or_default().push(line);
            continue;
        }
        let mut cells = line.split('\t');
        let row = row(&report, cells.next().unwrap());
        let mut number = || cells.next().map(|cell| cell.parse::<u64>().unwrap_or_else(|_| panic!("{line}")));
        assert_eq!([number(), number()], [Some(row.count), Some(row.errors)], "{line}");
        let mut statuses: Vec<_> = row
            .statuses
            .iter()
            .map(|row| format!("{}:{}", row.status.as_deref().unwrap_or("-"), row.count))
            .collect();
        statuses.sort();
        assert_eq!(cells.next().unwrap(), statuses.join(","), "{line}");
        let mut number = || cells.next().map(|cell| cell.parse::<u64>().unwrap_or_else(|_| panic!("{line}")));
        let latencies = row.latencies;
        assert_eq!(
            [number(), number()],
            [latencies.total, latencies.max].map(|time| Some(nanoseconds(time))),
            "{line}"
        );
        for ours in [latencies.p50, latencies.p90, latencies.p99] {
            let (ours, exact) = (nanoseconds(ours), number().unwrap());
            assert!(ours >= exact && ours - exact <= exact / 100, "{ours} for {exact}: {line}");
        }
        let parts = row.parts.map(|parts| {
            [parts.on_thread, parts.gc_pause, parts.outgoing, parts.queued, parts.waiting]
                .map(|part| part.map(nanoseconds))
        });
        let theirs = [number(), number(), number(), number(), number()];
        assert_eq!(parts.unwrap_or_default(), theirs, "{line}");
    }
    let left: usize = numbered.values().map(Vec::len).sum();
    assert_eq!((numbered.len(), left), (3, 7));
    assert_eq!(report.rows.len(), lines.lines().count() - left + numbered.len());
    for (path, lines) in numbered {
        let row = row(&report, &format!("{path}/{{n}}"));
        // Each has two calls: the sum and the longest one say both durations.
        let mut durations = Vec::new();
        for line in &lines {
            let cells: Vec<_> = line.split('\t').collect();
            assert_eq!((cells[1], cells[2], cells[3]), ("2", "0", "200:2"), "{line}");
            let [sum, longest] = [cells[4], cells[5]].map(|cell| cell.parse::<u64>().unwrap());
            durations.extend([sum - longest, longest]);
        }
        durations.sort_unstable();
        let count = durations.len();
        assert_eq!((row.count, row.errors), (count as u64, 0), "{path}");
        assert_eq!(nanoseconds(row.latencies.total), durations.iter().sum::<u64>(), "{path}");
        assert_eq!(nanoseconds(row.latencies.max), durations[count - 1], "{path}");
        let median = durations[count.div_ceil(2) - 1];
        let ours = nanoseconds(row.latencies.p50);
        assert!(ours >= median && ours - median <= median / 100, "{path}: {ours} for {median}");
        let first = row.example.as_deref().unwrap();
        assert!(lines.iter().any(|line| line.starts_with(&format!("{first}\t"))), "{first}");
    }
}

/// The known work of the program.
#[test]
fn the_time_of_requests_is_where_the_program_spent_it() {
    let report = report(100);
    // The time of calls is in them, that of delays is waiting, that of loops is on a thread.
    let share = |name: &str, part: fn(&SpanRow) -> Option<Duration>| {
        let row = row(&report, name);
        part(row).unwrap().as_secs_f64() / row.latencies.total.as_secs_f64()
    };
    assert!(share("GET /wait/{ms}", |row| row.parts?.waiting) > 0.5);
    assert!(share("GET /fan", |row| row.parts?.outgoing) > 0.5);
    assert!(share("GET /burn/{ms}", |row| row.parts?.on_thread) > 0.9);
    assert!(share("GET /collect", |row| row.parts?.gc_pause) > 0.5);
    for row in report.rows.iter().filter(|row| row.role == SpanRole::Server) {
        let parts = row.parts.unwrap();
        let sum: Duration = [parts.on_thread, parts.gc_pause, parts.outgoing, parts.queued, parts.waiting]
            .into_iter()
            .flatten()
            .sum();
        assert_eq!(sum, row.latencies.total, "{}", row.name);
    }
    // Busy work counts in its request and in no other one.
    for span in &report.slowest {
        let burns =
            span.stacks.iter().any(|stack| stack.frames.iter().any(|frame| frame.contains("BurnHere")));
        let may_burn =
            ["/burn/{ms}", "/wait/{ms}", "/fan", "/queue"].iter().any(|path| span.name.ends_with(path));
        assert!(!burns || may_burn, "{}", span.name);
    }
    let burnt = report.slowest.iter().filter(|span| span.name == "GET /burn/{ms}");
    let samples: u64 = burnt.flat_map(|span| &span.stacks).map(|stack| stack.samples).sum();
    assert!(samples > 0);
    assert!(report.slowest.is_sorted_by(|one, other| one.duration >= other.duration));
    assert_eq!(report.slowest.len(), 26);
}

#[test]
fn profiles_are_below_requests_and_not_below_enclosing_spans() {
    let recording = bytes_of(&testdata().join("reference/net9-web.nettrace.xz"));
    let options = Options::new(Metric::Wall).with_grouping(CausalGrouping::NONE.with_requests(true));
    let profile = profile_of(&recording, options);
    let stacks: Vec<_> =
        profile.stack_totals.iter().map(|total| profile.names(total.stack.expect("all are shown"))).collect();
    let burns: Vec<_> =
        stacks.iter().filter(|stack| stack.iter().any(|name| name.contains("BurnHere"))).collect();
    // Some are known by an activity of the log inside the request's, which is not a request itself.
    assert!(burns.iter().all(|stack| stack[0] == "Microsoft.AspNetCore.Hosting/Request"), "{burns:#?}");
    assert!(burns.iter().any(|stack| stack[1] == "method=GET path=/burn/5"), "{burns:#?}");
    for surrounding in ["Connection", "ActivityJson", "Accept"] {
        let stands_below =
            |stack: &&Vec<&str>| stack.iter().any(|name| name.ends_with(&format!("/{surrounding}")));
        assert_eq!(stacks.iter().find(stands_below), None, "{surrounding}");
    }
}
