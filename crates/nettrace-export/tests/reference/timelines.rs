//! Frames that open and close over time, as dotnet-trace writes them and as we do.

use std::collections::BTreeMap;

use nettrace_export::{Format, Metric, Options, Profile, WriteOptions};
use serde_json::Value;

use crate::{bytes_of, comparable, profile_of, shared, testdata};

/// Milliseconds by thread and frame, each time that the frame is on the stack.
pub(crate) type Totals = BTreeMap<(String, String), f64>;

pub(crate) const WRITE_OPTIONS: WriteOptions<'_> = WriteOptions::new("a \"title\"", "tests");

pub(crate) fn written(profile: &Profile, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    nettrace_export::write(profile, format, WRITE_OPTIONS, &mut out).expect("memory");
    out
}

/// One thread's frames: adds up how long each was open, and insists that everything that opens closes, in
/// order.
#[derive(Default)]
struct Open {
    stack: Vec<(String, f64)>,
    last: f64,
}

impl Open {
    fn step(&mut self, thread: &str, is_open: bool, frame: Option<String>, at: f64, totals: &mut Totals) {
        assert!(at >= self.last, "{thread}: time goes back from {} to {at}", self.last);
        self.last = at;
        if is_open {
            self.stack.push((frame.expect("an opening frame has a name"), at));
        } else {
            let (open, since) =
                self.stack.pop().unwrap_or_else(|| panic!("{thread}: {frame:?} closes, but is not open"));
            assert!(
                frame.is_none_or(|frame| frame == open),
                "{thread}: a frame closes that is not the innermost"
            );
            *totals.entry((thread.to_owned(), open)).or_default() += at - since;
        }
    }
}

pub(crate) fn speedscope(json: &[u8]) -> Totals {
    let file: Value = serde_json::from_slice(json).expect("JSON");
    let frames: Vec<_> = file["shared"]["frames"]
        .as_array()
        .expect("frames")
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    let mut totals = Totals::new();
    for profile in file["profiles"].as_array().expect("profiles") {
        assert_eq!(profile["type"], "evented");
        let thread = profile["name"].as_str().unwrap();
        let mut open = Open::default();
        let events = profile["events"].as_array().unwrap();
        for event in events {
            let frame = frames[usize::try_from(event["frame"].as_u64().unwrap()).unwrap()];
            let at = event["at"].as_f64().unwrap();
            open.step(thread, event["type"] == "O", Some(comparable(frame)), at, &mut totals);
        }
        assert!(open.stack.is_empty(), "{thread}: {} frames stay open", open.stack.len());
        assert_eq!(profile["startValue"], events[0]["at"]);
        assert_eq!(profile["endValue"], events[events.len() - 1]["at"]);
    }
    totals
}

/// Names without modules; threads by number.
pub(crate) fn chromium(json: &[u8]) -> Totals {
    let file: Value = serde_json::from_slice(json).expect("JSON");
    let mut totals = Totals::new();
    let mut threads: BTreeMap<u64, Open> = BTreeMap::new();
    for event in file["traceEvents"].as_array().expect("events") {
        let phase = event["ph"].as_str().unwrap();
        if !matches!(phase, "B" | "E") {
            continue;
        }
        let tid = event["tid"].as_u64().unwrap();
        let name = event["name"].as_str().unwrap();
        if phase == "B" {
            let frame = &file["stackFrames"][event["sf"].as_u64().unwrap().to_string()];
            assert_eq!(frame["name"], event["name"]);
        }
        let at = event["ts"].as_f64().unwrap() / 1000.0;
        let open = threads.entry(tid).or_default();
        open.step(&tid.to_string(), phase == "B", Some(name.to_owned()), at, &mut totals);
    }
    assert!(threads.values().all(|open| open.stack.is_empty()), "frames stay open");
    totals
}

/// Theirs are sums of 32-bit numbers, and frames of theirs bridge gaps of a thousandth of their age.
const TOLERANCE_MS: f64 = 0.05;

fn compare(name: &str, ours: &Totals, theirs: &Totals) {
    assert!(theirs.len() > 100, "{name}: {} totals", theirs.len());
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
    let mut worst = 0f64;
    for (key, theirs) in theirs {
        let difference = (ours[key] - theirs).abs();
        assert!(difference <= TOLERANCE_MS, "{name}: {key:?}: {} for {theirs}", ours[key]);
        worst = worst.max(difference);
    }
    println!("{name}: {} totals, largest difference {worst:.6} ms", theirs.len());
}

/// The frames for everything are drawn in one of our formats and both of theirs.
fn is_code(frame: &str) -> bool {
    !(frame.starts_with("Process64 ")
        || frame.starts_with("Thread (")
        || matches!(frame, "(Non-Activities)" | "Threads"))
}

#[test]
fn totals_per_thread_and_frame_are_dotnet_traces() {
    let Some(shared) = shared() else { return };
    for name in ["net8-sample", "net10-sample"] {
        let recording = bytes_of(&shared.join(format!("traces/real/{name}.nettrace.xz")));
        let profile = profile_of(&recording, Options::new(Metric::Wall));
        let reference =
            |ending: &str| bytes_of(&shared.join(format!("traces/reference/{name}.{ending}.json.xz")));
        compare(
            &format!("{name} speedscope"),
            &speedscope(&written(&profile, Format::Speedscope)),
            &speedscope(&reference("speedscope")),
        );
        let mut theirs = chromium(&reference("chromium"));
        theirs.retain(|(_, frame), _| is_code(frame));
        compare(&format!("{name} chromium"), &chromium(&written(&profile, Format::Chromium)), &theirs);
    }
}

#[test]
fn both_formats_of_a_recording_have_the_same_totals() {
    let recording = bytes_of(&testdata().join("traces/net10-sample.nettrace.xz"));
    let profile = profile_of(&recording, Options::new(Metric::Wall));
    // One has names with their modules, the other without.
    let by_frame = |totals: Totals, name: fn(&str) -> &str| {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for ((_, frame), time) in totals.into_iter().filter(|((_, frame), _)| is_code(frame)) {
            *sums.entry(name(&frame).to_owned()).or_default() += time;
        }
        sums
    };
    let without_module: fn(&str) -> &str = |name| name.split_once('!').map_or(name, |(_, name)| name);
    let one = by_frame(speedscope(&written(&profile, Format::Speedscope)), without_module);
    let other = by_frame(chromium(&written(&profile, Format::Chromium)), |name| name);
    assert!(one.len() > 50);
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (frame, time) in &one {
        assert!((other[frame] - time).abs() < 1e-6, "{frame}: {} for {time}", other[frame]);
    }
}
