//! Every recording at hand, by every weight, in every format.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nettrace::{RelativeTime, SliceReader};
use nettrace_export::{
    Format, Metric, Options, Order, Pattern, Profile, ProfileBuilder, Selection, StackFilter, ThreadIndex,
};

use crate::joined::BOTH;
use crate::timelines::{chromium, speedscope, written};
use crate::{bytes_of, profile_of, testdata};

const WEIGHTS: [Metric; 8] = [
    Metric::Wall,
    Metric::Cpu,
    Metric::Alloc,
    Metric::LiveAlloc,
    Metric::Contention,
    Metric::Exception,
    Metric::Wait,
    Metric::Gc,
];

pub(crate) fn recordings() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(testdata().join("traces")).expect("a directory");
    let is_recording = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".nettrace") || name.contains(".netperf")
    };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path()).filter(is_recording).collect();
    paths.sort();
    assert!(paths.len() > 10, "recordings are missing");
    paths
}

/// The sums of the lines of the folded format.
fn folded_sum(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).expect("text");
    text.lines()
        .map(|line| line.rsplit_once(' ').expect("a weight").1.parse::<u64>().expect("a number"))
        .sum()
}

/// The second column of the lines of the CSV format.
fn csv_sum(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).expect("text");
    text.lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).expect("a column").parse::<u64>().expect("a number"))
        .sum()
}

fn check(profile: &Profile) {
    let spans = |thread: &nettrace_export::Thread| {
        let track = thread.track.iter().flat_map(nettrace_export::Track::iter);
        track.filter(|span| profile.shown(span.total).is_some()).map(|span| span.weight).sum::<u64>()
    };
    assert_eq!(profile.threads.iter().map(spans).sum::<u64>(), profile.total());
    assert_eq!(profile.exclusive().iter().sum::<u64>(), profile.total());
    assert_eq!(folded_sum(&written(profile, Format::Folded)), profile.total());
    assert_eq!(csv_sum(&written(profile, Format::Csv)), profile.total());
    speedscope(&written(profile, Format::Speedscope));
    chromium(&written(profile, Format::Chromium));
    for format in [Format::Firefox, Format::Pprof, Format::Flamegraph, Format::Perfetto] {
        assert!(!written(profile, format).is_empty());
    }
}

#[test]
fn every_recording_by_every_weight_in_every_format() {
    let mut with_samples = 0;
    for path in recordings() {
        let recording = bytes_of(&path);
        for by in WEIGHTS {
            let profile = profile_of(&recording, Options::new(by));
            check(&profile);
            let joined = profile_of(&recording, Options::new(by).with_grouping(BOTH));
            check(&joined);
            assert_eq!(
                (joined.total(), joined.samples()),
                (profile.total(), profile.samples()),
                "{path:?} {by:?}"
            );
            with_samples += usize::from(profile.samples() > 0);
        }
    }
    assert!(with_samples >= 8, "{with_samples} profiles have samples");
}

#[test]
fn the_order_of_the_file_gives_the_same_where_it_is_enough() {
    let mut enough = 0;
    for path in recordings() {
        let recording = bytes_of(&path);
        for by in WEIGHTS {
            let mut builder = ProfileBuilder::new(Options::new(by).with_order(Order::File));
            let mut events = SliceReader::new(&recording).expect("a recording");
            events.for_each(|event| builder.add(&event)).expect("bytes in memory");
            let Ok((profile, _)) = builder.finish(events.info()) else { continue };
            let expected = profile_of(&recording, Options::new(by));
            enough += usize::from(profile.samples() > 0);
            assert_eq!(summed(&profile), summed(&expected), "{} {by:?}", path.display());
            let threads = |profile: &Profile| {
                profile.threads.iter().map(|thread| thread.frame.clone()).collect::<Vec<_>>()
            };
            assert_eq!(threads(&profile), threads(&expected), "{} {by:?}", path.display());
        }
    }
    assert!(enough >= 6, "{enough} profiles could be made in the order of the file");
}

/// Weight and samples of each thread's stacks.
fn summed(profile: &Profile) -> BTreeMap<(ThreadIndex, String), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for total in &profile.stack_totals {
        if let Some(stack) = total.stack {
            let sum: &mut (u64, u64) =
                sums.entry((total.thread, profile.names(stack).join(";"))).or_default();
            sum.0 += total.weight;
            sum.1 += total.samples;
        }
    }
    sums
}

#[test]
fn parts_of_a_recording_add_up() {
    let recording = bytes_of(&testdata().join("traces/net10-sample.nettrace.xz"));
    let all = profile_of(&recording, Options::new(Metric::Wall));
    let middle = RelativeTime::from_nanos(700_123_457);
    let before = profile_of(
        &recording,
        Options::new(Metric::Wall).with_selection(Selection::of_time(None, Some(middle))),
    );
    let after = profile_of(
        &recording,
        Options::new(Metric::Wall).with_selection(Selection::of_time(Some(middle), None)),
    );
    assert!(before.total() > 0 && after.total() > 0);
    assert_eq!(before.total() + after.total(), all.total());
    check(&before);
    check(&after);
    let threads = all.threads.iter().map(|thread| {
        let one = profile_of(
            &recording,
            Options::new(Metric::Wall).with_selection(Selection::default().with_threads(vec![thread.id])),
        );
        one.total()
    });
    assert_eq!(threads.sum::<u64>(), all.total());
}

#[test]
fn stacks_begin_where_they_should() {
    let recording = bytes_of(&testdata().join("traces/net10-sample.nettrace.xz"));
    let filter = StackFilter::default()
        .with_roots(vec![Pattern::new("Spin.Hot")])
        .with_hidden(vec![Pattern::new("PollGC")])
        .with_fold_recursion(true);
    let profile = profile_of(&recording, Options::new(Metric::Wall).with_filter(filter));
    check(&profile);
    let all = profile_of(&recording, Options::new(Metric::Wall));
    assert!(profile.total() > 0 && profile.total() < all.total());
    for total in profile.stack_totals.iter().filter_map(|total| total.stack) {
        let names = profile.names(total);
        assert_eq!(names[0], "workload!Spin.Hot(int32)");
        assert!(names.iter().all(|name| !name.contains("PollGC")), "{names:?}");
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
