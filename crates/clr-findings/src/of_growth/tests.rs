use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clr_dump::HandleKind;
use linux_proc_stat::ProcessUsage;

use crate::memory_counts::{CollectionCount, MemoryCounts};
use crate::{Evidence, Finding, FindingKind, diagnose};

const MB: u64 = 1_000_000;

/// Counts at the beginning, in the middle and at the end of four seconds.
fn counts(of: impl Fn(MemoryCounts, u64) -> MemoryCounts) -> Vec<MemoryCounts> {
    let start = Instant::now();
    let at = |index| MemoryCounts::at(start + Duration::from_secs(2 * index));
    (0..3).map(|index| of(at(index), index)).collect()
}

fn with_collection(numbers: [u64; 3]) -> Vec<MemoryCounts> {
    counts(|counts, index| MemoryCounts {
        collections: vec![CollectionCount {
            holder: "Sessions.all".to_owned(),
            type_name: "Dictionary<string, Session>".to_owned(),
            count: numbers[usize::try_from(index).unwrap()],
        }],
        ..counts
    })
}

/// The kernel's account with these bytes outside of files.
fn usage(anonymous: [u64; 3]) -> Vec<ProcessUsage> {
    let now = ProcessUsage::read(std::process::id()).unwrap();
    let reading = |(index, bytes)| {
        let mut usage = now.clone();
        usage.at += Duration::from_secs(2 * index);
        usage.memory.as_mut().unwrap().anonymous = Some(bytes);
        usage
    };
    (0_u64..).zip(anonymous).map(reading).collect()
}

fn only(findings: Vec<Finding>) -> Finding {
    let [finding] = <[Finding; 1]>::try_from(findings).unwrap();
    finding
}

fn of_counts(counts: &[MemoryCounts]) -> Vec<Finding> {
    diagnose(&Evidence::default().with_counts(counts))
}

#[test]
fn a_collection_that_grows_all_the_time_is_found() {
    let finding = only(of_counts(&with_collection([8_000, 9_600, 11_200])));
    assert_eq!(finding.kind, FindingKind::CollectionGrowth);
    let cause = "Dictionary<string, Session> in Sessions.all grows: 3,200 more in 4.0 s, now 11,200";
    assert_eq!(finding.cause, cause);
}

#[test]
fn collections_that_are_filled_or_emptied_are_healthy() {
    for healthy in [
        [20, 20, 20],
        // A cache that is full, a queue, a list of configuration, and a year of customers.
        [8_000, 9_600, 9_600],
        [8_000, 9_600, 8_100],
        [0, 9_000, 9_010],
        [100_000_000, 100_000_030, 100_000_060],
    ] {
        assert_eq!(of_counts(&with_collection(healthy)), [], "{healthy:?}");
    }
}

#[test]
fn pinned_handles_that_grow_have_the_type_of_their_objects() {
    let readings = |of: fn(u64) -> u64| {
        counts(|counts, index| MemoryCounts {
            handles: BTreeMap::from([
                (HandleKind::PINNED, 40 + of(index)),
                (HandleKind::WEAK_SHORT, 900 * index),
            ]),
            pinned_types: BTreeMap::from([("object[]".to_owned(), 40), ("byte[]".to_owned(), of(index))]),
            ..counts
        })
    };
    let finding = only(of_counts(&readings(|index| 800 * index)));
    assert_eq!(finding.kind, FindingKind::HandleGrowth);
    let cause = "The number of pinned handles grows: 1,600 more in 4.0 s, now 1,640, most of them of byte[]";
    assert_eq!(finding.cause, cause);
    assert_eq!(of_counts(&readings(|index| 10 * (index % 2))), []);
}

#[test]
fn load_contexts_that_stay_are_found_with_the_list_that_holds_them() {
    let readings = |of: fn(u64) -> u64| {
        let mut readings = with_collection([100, 180, 260]);
        for (index, reading) in (0..).zip(&mut readings) {
            reading.load_contexts = Some(of(index));
        }
        readings
    };
    let finding = only(of_counts(&readings(|index| 1 + 80 * index)));
    assert_eq!(finding.kind, FindingKind::ContextGrowth);
    assert!(finding.evidence[0].contains(" in Sessions.all grows: "), "{:?}", finding.evidence);
    let unloaded = only(of_counts(&readings(|_| 1)));
    assert_eq!(unloaded.kind, FindingKind::CollectionGrowth);
}

#[test]
fn native_memory_grows_beside_the_managed_heap() {
    let heap = |growth: u64| {
        counts(|counts, index| MemoryCounts { heap_committed: Some(50 * MB + growth * index), ..counts })
    };
    let judge_counts = |anonymous, counts: Vec<MemoryCounts>| {
        let usage = usage(anonymous);
        let findings = diagnose(&Evidence::default().with_usage(&usage).with_counts(&counts));
        let grows =
            |finding: &Finding| matches!(finding.kind, FindingKind::NativeGrowth | FindingKind::MemoryGrowth);
        findings.into_iter().filter(grows).map(|finding| (finding.kind, finding.cause)).collect::<Vec<_>>()
    };
    let judge = |anonymous, growth| judge_counts(anonymous, heap(growth));
    let cause = "Native memory grows by 20.0 MB per second, the managed heap by 0 B; 180 MB in all; by whom is not known";
    assert_eq!(judge([100 * MB, 140 * MB, 180 * MB], 0), [(FindingKind::NativeGrowth, cause.to_owned())]);
    // A session's own memory, memory that is given back, a program at its start.
    assert_eq!(judge([100 * MB, 105 * MB, 110 * MB], 0), []);
    assert_eq!(judge([100 * MB, 180 * MB, 140 * MB], 0), []);
    assert_eq!(judge([10 * MB, 110 * MB, 112 * MB], 0), []);
    // Before a collection, objects that are no longer used are in the heap.
    assert_eq!(judge([100 * MB, 140 * MB, 180 * MB], 40 * MB), []);
    // A program at its start uses memory that the collector committed before.
    let mut counts = heap(0);
    for (index, counts) in (0..).zip(&mut counts) {
        counts.heap_resident = Some(10 * MB + 15 * MB * index);
    }
    assert_eq!(judge_counts([10 * MB, 27 * MB, 44 * MB], counts), []);
}

#[test]
fn descriptors_that_a_session_opens_are_no_growth() {
    let now = ProcessUsage::read(std::process::id()).unwrap();
    let judge_counts = |counts: [u64; 3]| {
        let readings: Vec<_> = (0..)
            .zip(counts)
            .map(|(index, count)| {
                let mut usage = now.clone();
                usage.at += Duration::from_secs(2 * index);
                usage.descriptors.as_mut().unwrap().count = count;
                usage
            })
            .collect();
        let findings = diagnose(&Evidence::default().with_usage(&readings));
        findings.iter().any(|finding| finding.kind == FindingKind::DescriptorGrowth)
    };
    let judge = |per_reading: u64| judge_counts([25, 25 + per_reading, 25 + 2 * per_reading]);
    assert!(!judge(7));
    assert!(judge(8));
    // A program that starts.
    assert!(!judge_counts([85, 260, 281]));
}
