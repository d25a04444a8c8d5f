//! Shares of methods.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use nettrace_export::report::top;
use nettrace_export::{Metric, Options};

use crate::{bytes_of, comparable, profile_of, shared, testdata};

/// Inclusive and exclusive percent by name. The other program does not know the name of the process.
type Shares = BTreeMap<String, (f64, f64)>;

fn key(name: &str) -> String {
    if name.starts_with("Process64 ") { "(the process)".to_owned() } else { comparable(name) }
}

fn theirs(table: &str) -> Shares {
    let row = |line: &str| {
        let mut cells = line.splitn(3, '\t');
        let mut number = || cells.next().and_then(|cell| cell.parse().ok());
        let (inclusive, exclusive) = (number()?, number()?);
        Some((key(cells.next()?), (inclusive, exclusive)))
    };
    table.lines().map(|line| row(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[allow(clippy::cast_precision_loss, reason = "shares")]
fn ours(recording: &[u8]) -> Shares {
    let options = Options::new(Metric::Wall).with_tracks(false).with_kinds(false);
    let profile = profile_of(recording, options);
    let total = profile.total() as f64;
    let percent = |weight: u64| weight as f64 * 100.0 / total;
    let mut shares = Shares::new();
    for row in top(&profile) {
        let before = shares.insert(key(&row.frame), (percent(row.inclusive), percent(row.exclusive)));
        assert!(before.is_none(), "{} is there twice", row.frame);
    }
    shares
}

fn compare(name: &str, recording: &[u8], table: &str) {
    let (ours, theirs) = (ours(recording), theirs(table));
    assert!(theirs.len() > 50, "{name}: the other program's table is too short");
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
    let mut worst = 0f64;
    for (frame, (inclusive, exclusive)) in &theirs {
        let own = ours[frame];
        let difference = (own.0 - inclusive).abs().max((own.1 - exclusive).abs());
        assert!(difference < 0.01, "{name}: {frame}: {own:?} for {:?}", (inclusive, exclusive));
        worst = worst.max(difference);
    }
    println!("{name}: {} rows, largest difference {worst:.6} points", theirs.len());
}

#[test]
fn shares_of_methods_match_another_program() {
    let recording = bytes_of(&testdata().join("traces/net10-sample.nettrace.xz"));
    let table = bytes_of(&testdata().join("reference/net10-sample.topn.tsv.xz"));
    compare("net10-sample", &recording, &String::from_utf8(table).unwrap());
}

fn computed(shared: &Path, name: &str) -> String {
    let reference = shared.join("traces/reference");
    let output = Command::new("python3")
        .arg(shared.join("tools/threadtime.py"))
        .arg(reference.join(format!("{name}.events.jsonl.xz")))
        .arg(reference.join(format!("{name}.stacks.jsonl.xz")))
        .arg("--plain")
        .output()
        .expect("python3, which the larger collection's programs need");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shares_of_methods_in_the_larger_collection() {
    let Some(shared) = shared() else { return };
    for name in ["net8-sample", "net8-all", "net10-sample", "net10-all"] {
        let recording = bytes_of(&shared.join(format!("traces/real/{name}.nettrace.xz")));
        compare(name, &recording, &computed(&shared, name));
    }
}

/// A name as dotnet-trace cuts it: the last part of the namespace, the method and its parameters.
fn cut(name: &str) -> String {
    let Some(open) = name.rfind('(').filter(|open| name[*open..].contains(')')) else {
        return name.to_owned();
    };
    let (path, arguments) = name.split_at(open);
    let Some(method) = path.rfind('.') else { return name.to_owned() };
    let start = path[..method].rfind('.').map_or(0, |dot| dot + 1);
    let end = arguments.rfind(')').map_or(arguments.len(), |close| close + 1);
    format!("{}{}", &path[start..], &arguments[..end])
}

/// The rows of a table of dotnet-trace: names are broken into lines of 70, with inclusive and exclusive
/// percent after the first.
fn rows_of(table: &str) -> Vec<(String, f64, f64)> {
    const NAME: usize = 70;
    let mut lines = table.lines();
    let head = lines.next().expect("a head");
    let digits = head.split(' ').nth(1).expect("how many").len();
    let mut rows: Vec<(String, f64, f64)> = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let (number, rest) = line.split_at(digits + 2);
        let (name, percents) = rest.split_at(rest.len().min(NAME));
        if number.trim().is_empty() {
            let whole = &mut rows.last_mut().expect("a row").0;
            let _ = write!(whole, "{name:NAME$}");
        } else {
            let mut percents =
                percents.split_whitespace().map(|text| text.trim_end_matches('%').parse().unwrap());
            rows.push((name.to_owned(), percents.next().unwrap(), percents.next().unwrap()));
        }
    }
    rows.into_iter().map(|(name, one, two)| (name.trim_end().to_owned(), one, two)).collect()
}

/// The duration that dotnet-trace assumes for the last sample of a thread, in milliseconds, and the names of
/// its frames.
///
/// At a recording's end the runtime describes its process, on the thread that began it; dotnet-trace takes
/// that for a sample.
fn false_interval(recording: &[u8], stacks: &str) -> (f64, Vec<String>) {
    let (mut samples, mut end) = (Vec::new(), None);
    let mut events = nettrace::SliceReader::new(recording).expect("a recording").in_time_order();
    events
        .for_each(|event| match event.provider() {
            "Microsoft-DotNETCore-SampleProfiler" => {
                samples.push((event.thread_id(), event.relative_time().as_nanos()));
            }
            "Microsoft-DotNETCore-EventPipe" => {
                end = Some((event.thread_id(), event.relative_time().as_nanos()));
            }
            _ => {}
        })
        .expect("bytes in memory");
    let (thread, end) = end.expect("ProcessInfo");
    let (_, start) = samples.iter().rfind(|(own, at)| *own == thread && *at < end).expect("a sample of it");
    let last = stacks
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .rfind(|line| {
            line["tid"] == thread.0
                && line["name"].as_str().unwrap().starts_with("Microsoft-DotNETCore-SampleProfiler")
        })
        .expect("its stack");
    let name = |frame: &serde_json::Value| {
        let text = frame.as_str().unwrap();
        cut(text.rsplit_once('@').expect("an address").0)
    };
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of a short recording")]
    let milliseconds = (end - start) as f64 / 1e6;
    (milliseconds, last["frames"].as_array().unwrap().iter().map(name).collect())
}

/// The existing tool's own tables: every row is ours, once one interval is added that nobody sampled.
#[test]
#[allow(clippy::cast_precision_loss, reason = "shares")]
fn rows_of_dotnet_trace_are_ours_and_one_false_interval() {
    let Some(shared) = shared() else { return };
    let reference = shared.join("traces/reference");
    let text = |name: String| String::from_utf8(bytes_of(&reference.join(name))).unwrap();
    for name in ["net8-sample", "net10-sample"] {
        let recording = bytes_of(&shared.join(format!("traces/real/{name}.nettrace.xz")));
        let (added, frames) = false_interval(&recording, &text(format!("{name}.stacks.jsonl.xz")));
        let options = Options::new(Metric::Wall).with_tracks(false).with_kinds(false);
        let profile = profile_of(&recording, options);
        let total = profile.total() as f64 / 1e6 + added;
        let mut rows: BTreeMap<String, (f64, f64)> = top(&profile)
            .iter()
            .map(|row| (cut(&row.frame), (row.inclusive as f64 / 1e6, row.exclusive as f64 / 1e6)))
            .collect();
        for (depth, frame) in frames.iter().enumerate() {
            let row = rows.entry(frame.clone()).or_default();
            row.0 += added;
            row.1 += if depth == 0 { added } else { 0.0 };
        }
        for frame in ["Threads", "(Non-Activities)"] {
            rows.get_mut(frame).expect("a frame of every stack").0 += added;
        }
        let mut worst = 0f64;
        for table in ["exclusive", "inclusive"] {
            let theirs = rows_of(&text(format!("{name}.top-{table}.txt")));
            assert!(theirs.len() >= 30, "{name}");
            for (frame, inclusive, exclusive) in theirs {
                let ours = rows.get(&frame).unwrap_or_else(|| panic!("{name}: {frame}"));
                let difference = (ours.0 * 100.0 / total - inclusive)
                    .abs()
                    .max((ours.1 * 100.0 / total - exclusive).abs());
                // The reference shows two digits.
                assert!(difference < 0.0055, "{name}: {frame}: {difference}");
                worst = worst.max(difference);
            }
        }
        let share = added * 100.0 / total;
        println!(
            "{name}: {share:.2} % of theirs was never sampled; without it the rows differ by {worst:.4} points"
        );
        assert!((9.0..11.0).contains(&share), "{name}: {share}");
    }
}
