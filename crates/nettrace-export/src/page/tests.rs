//! Pages within a budget.

use std::io::Read as _;

use clr_events::{StackId, StackTree, ThreadState};
use nettrace::RelativeTime;
use serde_json::Value;

use super::Page;
use crate::bounds::TooLarge;
use crate::profile::frame::Frames;
use crate::profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
use crate::profile::metric::Metric;
use crate::profile::track::{Span, Track};
use crate::profile::{Process, Profile, StackTotal, Thread};
use crate::write_options::WriteOptions;

/// The data of a page.
pub(crate) fn page_data(page: &str) -> String {
    let (_, rest) = page.split_once("id=\"data\">").expect("a page");
    let bits = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = rest.split_once("</script>").expect("a page").0.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::new();
    for four in text.chunks(4) {
        let word = four.iter().fold(0u32, |word, c| word << 6 | u32::from(bits(*c)));
        let word = word << (6 * (4 - four.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    let mut json = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut json).expect("a page");
    json
}

/// An hour of threads with stacks that change at a fixed interval, out of a thousand stacks of 24 frames.
fn busy_hour(thread_count: u32, milliseconds: u64) -> Profile {
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) % below
    };
    let mut frames = Frames::default();
    let mut stacks = StackTree::default();
    let ids: Vec<_> = (0..3000)
        .map(|number| {
            frames.intern(&format!(
                "App.Part{}!App.Namespace.Type{}.Method{number}(int)",
                number % 7,
                number % 90
            ))
        })
        .collect();
    let leaves: Vec<_> = (0..1000)
        .map(|_| {
            let mut stack = StackId::EMPTY;
            let mut frame = random(20);
            for _ in 0..24 {
                frame = (frame * 7 + random(3)) % 3000;
                stack = stacks.push(stack, ids[usize::try_from(frame).unwrap()]);
            }
            stack
        })
        .collect();
    let mut stack_totals = Vec::new();
    let threads = (0..thread_count).map(|number| {
        let first = stack_totals.len();
        stack_totals.extend(leaves.iter().map(|stack| StackTotal {
            thread: ThreadIndex(number),
            stack: Some(*stack),
            state: ThreadState::Working,
            weight: 0,
            samples: 0,
        }));
        let mut track = Track::new(true);
        for index in 0..3_600_000 / milliseconds {
            // Some stacks are met a hundred times as often as others.
            let place = usize::try_from(random(1000) * random(1000) * random(1000) / 1_000_000).unwrap();
            let weight = milliseconds * 1_000_000 - random(200_000);
            let start = RelativeTime::from_nanos(i64::try_from(index * milliseconds * 1_000_000).unwrap());
            let total = first + place;
            stack_totals[total].weight += weight;
            stack_totals[total].samples += 1;
            track.push(Span { start, weight, samples: 1, total: TotalIndex::of(total) });
        }
        let id = u64::from(number) + 100;
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
        metric: Metric::Wall,
        measure: Metric::Wall.measure(),
        start_unix_ms: None,
        duration: std::time::Duration::ZERO,
        frames,
        stacks,
        processes: vec![Process::default()],
        threads,
        stack_totals,
        recorded_bytes: 1 << 28,
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// The weight of a thread's samples.
fn weight(thread: &Value) -> u64 {
    let samples = numbers(&thread["samples"]);
    let mut at = 0;
    let mut sum = 0;
    while at < samples.len() {
        let end = at + 2 + 2 * usize::try_from(samples[at + 1]).unwrap();
        sum += samples[at + 3..end].iter().step_by(2).sum::<u64>();
        at = end;
    }
    sum
}

#[test]
fn a_page_is_coarsened_until_it_fits_and_no_time_is_lost() {
    let profile = busy_hour(4, 100);
    let mut before = (0, 0, 0);
    let mut scales = Vec::new();
    for budget in [5_000_000, 500_000, 250_000, 175_000] {
        let mut out = Vec::new();
        Page::new(&profile, WriteOptions::new("hour", "tests")).with_budget(budget).write(&mut out).unwrap();
        assert!(out.len() as u64 <= budget, "{} bytes", out.len());
        let data: Value = serde_json::from_str(&page_data(&String::from_utf8(out).unwrap())).unwrap();
        let [width, scale, below] =
            ["binNs", "scale", "leftOutBelow"].map(|name| data[name].as_u64().unwrap());
        println!(
            "{budget} bytes: bins of {} ms, units of {scale} ns, stacks from {below} ns on",
            width / 1_000_000
        );
        assert!((below, scale, width) >= before, "{budget}: {width} {scale} {below} after {before:?}");
        assert_eq!(data["bins"].as_u64().unwrap(), 3_600_000_000_000u64.div_ceil(width));
        before = (below, scale, width);
        scales.push(scale);
        for (thread, number) in data["threads"].as_array().unwrap().iter().zip((0..).map(ThreadIndex)) {
            let totals = profile.stack_totals.iter().filter(|total| total.thread == number);
            let exact = totals.map(|total| total.weight).sum::<u64>();
            let shown = weight(thread) * scale;
            assert!(shown <= exact && exact - shown <= 1000 * scale, "{shown} of {exact}");
        }
    }
    assert!(scales[0] == 1000 && before.0 > 0, "microseconds and all stacks at first: {scales:?} {before:?}");
    let mut out = Vec::new();
    let error = Page::new(&profile, WriteOptions::default()).with_budget(100).write(&mut out).unwrap_err();
    assert!(error.get_ref().unwrap().is::<TooLarge>() && out.is_empty(), "{error}");
}
