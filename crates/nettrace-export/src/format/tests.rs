//! A small profile in every format.

mod lines;

use std::io::Read as _;

use clr_events::{StackId, StackTree, ThreadState};
use prost::Message as _;

use crate::Metric;
use crate::format::protobuf::{perfetto, pprof};
use crate::format::{Format, write};
use crate::page::tests::page_data;
use crate::profile::frame::Frames;
use crate::profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
use crate::profile::measure::{Measure, Unit};
use crate::profile::pseudo_frames;
use crate::profile::track::{Span, Track};
use crate::profile::{Process, Profile, StackTotal, Thread};
use crate::write_options::WriteOptions;

pub(crate) const EVERY: [Format; 9] = [
    Format::Speedscope,
    Format::Chromium,
    Format::Firefox,
    Format::Pprof,
    Format::Folded,
    Format::Flamegraph,
    Format::Svg,
    Format::Perfetto,
    Format::Csv,
];

/// Two threads: one calls `Work` twice, recursively, with an unknown time in between; the other waits in
/// `Sle;ep`.
fn profile(metric: Metric) -> Profile {
    let mut frames = Frames::default();
    let mut stacks = StackTree::default();
    let [main, work, sleep, managed, waiting] = [
        "App!Main(string[])",
        "App!Work<T>()",
        "Lib!Sle;ep(\"x\")",
        pseudo_frames::MANAGED,
        pseudo_frames::UNMANAGED,
    ]
    .map(|name| frames.intern(name));
    let stack = [
        stacks.add([main, work, work, managed]),
        stacks.add([main, managed]),
        stacks.add([main, sleep, waiting]),
        StackId::EMPTY,
    ];
    let spans = [
        vec![(1_000_000, 2_000_000, 0), (3_000_000, 500_000, 1), (9_000_000, 1_500_001, 0)],
        vec![(0, 7_000_000, 2), (7_000_000, 1, 3)],
    ];
    let mut stack_totals: Vec<StackTotal> = Vec::new();
    let threads = (0..).zip(&spans).map(|(number, spans): (u32, _)| {
        let mut track = Track::new(metric.measure().unit.is_time());
        for (start, weight, place) in spans {
            let total = TotalIndex::of(stack_totals.len());
            stack_totals.push(StackTotal {
                state: ThreadState::Working,
                thread: ThreadIndex(number),
                stack: Some(stack[*place]),
                weight: *weight,
                samples: 1,
            });
            track.push(Span {
                start: nettrace::RelativeTime::from_nanos(*start),
                weight: *weight,
                samples: 1,
                total,
            });
        }
        let id = 100 + u64::from(number);
        Thread {
            process: ProcessIndex(0),
            id,
            name: None,
            role: None,
            frame: format!("Thread ({id})"),
            track: Some(track),
        }
    });
    let threads = threads.collect();
    Profile {
        metric,
        measure: metric.measure(),
        start_unix_ms: Some(1_000),
        duration: std::time::Duration::from_millis(9),
        frames,
        stacks,
        processes: vec![Process {
            id: 42,
            name: Some("App".to_owned()),
            frame: "Process64 App (42) Args: ".to_owned(),
            ..Process::default()
        }],
        threads,
        stack_totals,
        recorded_bytes: 0,
    }
}

fn written(profile: &Profile, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    let options = WriteOptions { title: "a </script>", exporter: "tests", ..WriteOptions::default() };
    write(profile, format, options, &mut out).unwrap();
    out
}

fn text(profile: &Profile, format: Format) -> String {
    String::from_utf8(written(profile, format)).unwrap()
}

const TOTAL: i64 = 2_000_000 + 500_000 + 1_500_001 + 7_000_000 + 1;

#[test]
fn speedscope_closes_open_frames_at_gaps() {
    let json: serde_json::Value =
        serde_json::from_str(&text(&profile(Metric::Wall), Format::Speedscope)).unwrap();
    let names: Vec<_> =
        json["shared"]["frames"].as_array().unwrap().iter().map(|frame| &frame["name"]).collect();
    let shown = |event: &serde_json::Value| {
        let frame = names[usize::try_from(event["frame"].as_u64().unwrap()).unwrap()].as_str().unwrap();
        format!("{}{} {}", event["type"].as_str().unwrap(), &frame[..frame.len().min(8)], event["at"])
    };
    let events: Vec<_> = json["profiles"][0]["events"].as_array().unwrap().iter().map(shown).collect();
    let opened = ["OProcess6 1", "O(Non-Act 1", "OThreads 1", "OThread ( 1", "OApp!Main 1"];
    assert_eq!(events[..5], opened);
    let between = [
        "OApp!Work 1",
        "OApp!Work 1",
        "OCPU_TIME 1",
        "CCPU_TIME 3",
        "CApp!Work 3",
        "CApp!Work 3",
        "OCPU_TIME 3",
        "CCPU_TIME 3.5",
        "CApp!Main 3.5",
        "CThread ( 3.5",
        "CThreads 3.5",
        "C(Non-Act 3.5",
        "CProcess6 3.5",
        "OProcess6 9",
    ];
    assert_eq!(events[5..19], between);
    assert_eq!(events.last().unwrap(), "CProcess6 10.500001");
    assert_eq!(json["profiles"][1]["endValue"], 7.000_001);
}

#[test]
fn chromium_has_begins_and_ends_or_points() {
    let json: serde_json::Value =
        serde_json::from_str(&text(&profile(Metric::Wall), Format::Chromium)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((count("M"), count("B"), count("E"), count("i")), (3, 12, 12, 0));
    assert!(events.iter().all(|event| event["pid"] == 42));
    let json: serde_json::Value =
        serde_json::from_str(&text(&profile(Metric::Alloc), Format::Chromium)).unwrap();
    let points: Vec<_> =
        json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "i").collect();
    assert_eq!(points.len(), 5);
    assert_eq!((&points[2]["args"]["bytes"], &points[2]["ts"]), (&1_500_001.into(), &9000.into()));
}

#[test]
fn lines_of_text() {
    assert_eq!(
        text(&profile(Metric::Wall), Format::Folded),
        "(no frames) 1\n\
         App!Main(string[]);App!Work<T>();App!Work<T>();CPU_TIME 3500001\n\
         App!Main(string[]);CPU_TIME 500000\n\
         App!Main(string[]);Lib!Sle:ep(\"x\");UNMANAGED_CODE_TIME 7000000\n"
    );
    let csv = text(&profile(Metric::Wall), Format::Csv);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "time_ns,duration_ns,samples,pid,tid,stack");
    assert_eq!(
        lines[4],
        "0,7000000,1,42,101,\"App!Main(string[]);Lib!Sle:ep(\"\"x\"\");UNMANAGED_CODE_TIME\""
    );
    assert_eq!(lines.len(), 6);
}

/// Names that would rename the window, clear the screen and reverse the following text, in every place for a
/// name.
#[test]
fn no_text_steers_a_terminal() {
    const NAME: &str = "a\u{1b}]0;x\u{7}\u{9b}2J\u{7f}\u{202e}b\u{2028}c\nd";
    let mut profile = profile(Metric::Wall);
    let name = profile.frames.intern(NAME);
    let stack = profile.stacks.add([name]);
    for total in &mut profile.stack_totals {
        total.stack = Some(stack);
    }
    NAME.clone_into(&mut profile.threads[0].frame);
    profile.processes[0].name = Some(NAME.to_owned());
    let options = WriteOptions { title: NAME, exporter: NAME, by_thread: true, ..WriteOptions::default() };
    let is_text = |format: &Format| !matches!(format, Format::Pprof | Format::Perfetto);
    for format in EVERY.into_iter().filter(is_text) {
        let mut out = Vec::new();
        write(&profile, format, options, &mut out).unwrap();
        let mut text = String::from_utf8(out).unwrap();
        let bad = text.chars().find(|c| *c != '\n' && clr_events::is_control(*c));
        assert_eq!(bad, None, "{format:?}");
        if format == Format::Flamegraph {
            // On a page they are shown as text.
            text = page_data(&text).replace("\\\\u", "\\u");
            assert!(!text.contains(clr_events::is_control));
        }
        assert!(text.contains(r"\u0007\u009b2J\u007f\u202eb\u2028c"), "{format:?}: {text}");
        if matches!(format, Format::Speedscope | Format::Chromium | Format::Firefox) {
            // Escaped, and still the same.
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(has_string(&json, NAME), "{format:?}: {text}");
        }
    }
}

fn has_string(json: &serde_json::Value, text: &str) -> bool {
    match json {
        serde_json::Value::String(string) => string == text,
        serde_json::Value::Array(items) => items.iter().any(|item| has_string(item, text)),
        serde_json::Value::Object(members) => members.values().any(|item| has_string(item, text)),
        _ => false,
    }
}

#[test]
fn csv_for_spreadsheets_has_no_formulas() {
    for first in ['=', '+', '-', '@'] {
        let mut profile = profile(Metric::Wall);
        let frame = profile.frames.intern(&format!("{first}HYPERLINK(\"http://x\")"));
        let stack = profile.stacks.add([frame]);
        for total in &mut profile.stack_totals {
            total.stack = Some(stack);
        }
        let csv = |for_spreadsheets| {
            let mut out = Vec::new();
            let options = WriteOptions { for_spreadsheets, ..WriteOptions::default() };
            write(&profile, Format::Csv, options, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let cell = format!("{first}HYPERLINK(\"\"http://x\"\")\"");
        assert!(csv(false).lines().nth(1).unwrap().ends_with(&format!(",\"{cell}")), "{}", csv(false));
        assert!(csv(true).lines().nth(1).unwrap().ends_with(&format!(",\"'{cell}")), "{}", csv(true));
        assert!(!csv(true).contains(&format!("\"{first}")));
    }
}

#[test]
fn pprof_reads_back() {
    let mut bytes = Vec::new();
    let packed = written(&profile(Metric::Wall), Format::Pprof);
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let out = pprof::Profile::decode(&bytes[..]).unwrap();
    assert_eq!(out.string_table[0], "");
    assert_eq!(out.sample.iter().map(|sample| sample.value[1]).sum::<i64>(), TOTAL);
    // That of the recording: no thread was at work for all of it.
    assert_eq!(out.duration_nanos, 9_000_000);
    assert_eq!(out.time_nanos, 1_000_000_000);
    let text = |number: i64| &*out.string_table[usize::try_from(number).unwrap()];
    let first = &out.sample[0];
    let names: Vec<_> = first
        .location_id
        .iter()
        .map(|id| text(out.function[usize::try_from(*id).unwrap() - 1].name))
        .collect();
    assert_eq!(names, ["Work<T>()", "Work<T>()", "Main(string[])"], "leaf first, and no pseudo-frame");
    let labels: Vec<_> =
        first.label.iter().map(|label| (text(label.key), text(label.text), label.number)).collect();
    let expected = [
        ("thread", "Thread (100)", 0),
        ("kind", "CPU_TIME", 0),
        ("thread_id", "", 100),
        ("process_id", "", 42),
    ];
    assert_eq!(labels, expected);
    assert!(
        out.sample
            .iter()
            .all(|sample| sample.location_id.iter().all(|id| out.location.iter().any(|l| l.id == *id)))
    );
}

/// Tools choose their views by these names.
#[test]
fn values_of_processor_time_have_the_names_that_pprof_has_for_them() {
    let mut profile = profile(Metric::Cpu);
    profile.measure = Measure::CPU_TIME;
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&written(&profile, Format::Pprof)[..]).read_to_end(&mut bytes).unwrap();
    let out = pprof::Profile::decode(&bytes[..]).unwrap();
    let text = |number: i64| &*out.string_table[usize::try_from(number).unwrap()];
    let types: Vec<_> = out.sample_type.iter().map(|it| (text(it.kind), text(it.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!(text(out.default_sample_type), "cpu");
}

#[test]
fn perfetto_reads_back() {
    let trace = perfetto::Trace::decode(&written(&profile(Metric::Wall), Format::Perfetto)[..]).unwrap();
    let names = &trace.packet[0].interned.as_ref().unwrap().names;
    assert_eq!(names.len(), 5);
    let mut open = 0;
    let mut last = 0;
    for packet in trace.packet.iter().filter(|packet| packet.track_event.is_some()) {
        let event = packet.track_event.as_ref().unwrap();
        let time = packet.timestamp.unwrap();
        if event.kind == Some(1) {
            assert!(names.iter().any(|name| name.iid == event.name_iid));
            open += 1;
        } else {
            open -= 1;
        }
        assert!(open >= 0 && (time >= last || open == 1));
        last = time;
    }
    assert_eq!(open, 0);
    let tracks: Vec<_> = trace.packet.iter().filter_map(|packet| packet.track.as_ref()).collect();
    assert_eq!(tracks[1].thread.as_ref().unwrap().tid, Some(100));
    assert_eq!(tracks[0].process.as_ref().unwrap().pid, Some(42));
}

#[test]
fn firefox_has_every_sample() {
    let json: serde_json::Value =
        serde_json::from_str(&text(&profile(Metric::Wall), Format::Firefox)).unwrap();
    let threads = json["threads"].as_array().unwrap();
    let samples: Vec<_> =
        threads.iter().map(|thread| thread["samples"]["length"].as_u64().unwrap()).collect();
    assert_eq!(samples, [3, 2]);
    assert_eq!(json["meta"]["symbolicated"], true);
}

#[test]
fn a_flame_graph_is_one_file_that_loads_nothing() {
    let mut profile = profile(Metric::Wall);
    profile.threads.iter_mut().for_each(|thread| thread.track = None);
    let page = text(&profile, Format::Flamegraph);
    assert_eq!(page.matches("</script>").count(), 2);
    for loading in ["src=", "href=", "https://", "import ", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loading), "{loading}");
    }
    let data: serde_json::Value = serde_json::from_str(&page_data(&page)).unwrap();
    assert_eq!(data["title"], "a </script>");
    assert!(data["frames"].as_array().unwrap().contains(&"App!Work<T>()".into()));
    assert_eq!(
        (&data["bins"], &data["binNs"]),
        (&1.into(), &0.into()),
        "samples of a flame graph have no time"
    );
    // Each of its threads has one bin: 0, the number of pairs, and pairs of a stack and a weight.
    let weights = data["threads"].as_array().unwrap().iter().flat_map(|thread| {
        let samples = thread["samples"].as_array().unwrap();
        samples.iter().skip(3).step_by(2).map(|weight| weight.as_i64().unwrap())
    });
    assert_eq!(weights.sum::<i64>(), TOTAL / 1000, "microseconds");
}

#[test]
fn empty_profiles_are_written_too() {
    for by in [Metric::Wall, Metric::Alloc, Metric::Exception] {
        let mut empty = profile(by);
        empty.stack_totals.iter_mut().for_each(|total| total.stack = None);
        for format in [Format::Speedscope, Format::Chromium, Format::Firefox] {
            let _: serde_json::Value = serde_json::from_str(&text(&empty, format)).unwrap();
        }
        assert_eq!(text(&empty, Format::Folded), "");
        assert_eq!(empty.measure.unit == Unit::Bytes, by == Metric::Alloc);
    }
}
