use std::collections::BTreeMap;

use clr_dump::{Address, Generation, HandleKind, NativeArena, NativeHeap, NativeHeapError, WaitedFor};
use linux_proc_stat::ThreadUsage;

use super::*;
use crate::memory_counts::{CollectionCount, FragmentedGeneration};
use crate::memory_facts::{SemaphoreFacts, ThreadFacts, WaitFacts};
use crate::{Evidence, diagnose};

const SECOND: Duration = Duration::from_secs(1);

/// Threads that wait for a semaphore in all readings, and growth.
fn readings() -> Readings {
    let wait = WaitFacts {
        kind: WaitedFor::Semaphore,
        object: Address::new(0x7f00_1000),
        type_name: Some("SemaphoreSlim".to_owned()),
        owners: vec![1],
        is_any: false,
        semaphore: Some(SemaphoreFacts { count: 0, maximum: Some(2), is_guard: true }),
        is_promise: false,
    };
    let thread = |tid, name: &str| ThreadFacts {
        tid,
        name: Some(name.to_owned()),
        is_waiting: true,
        method: Some("Printer.Print".to_owned()),
        methods: vec!["Printer.Print".to_owned(), "Office.Work".to_owned()],
        called: Some("SemaphoreSlim.Wait".to_owned()),
        wait: Some(wait.clone()),
        exception: Some(("OrderException".to_owned(), Some("no \"paper\"\n\u{1f5a8}".to_owned()))),
        ..ThreadFacts::default()
    };
    let memory = MemoryFacts {
        threads: vec![thread(7, "Ärger 🖨"), thread(8, "b")],
        deadlocks: vec![vec![0, 1]],
        finalizable: Some(3),
        ..MemoryFacts::default()
    };
    let begin = Instant::now();
    let counts = |number: u32| {
        let mut counts = MemoryCounts::at(begin + SECOND * number);
        let mut generation = Generation::default();
        (generation.number, generation.bytes, generation.free) = (3, 1 << 30, Some(1 << 29));
        counts.handles = BTreeMap::from([(HandleKind::PINNED, u64::from(number) * 1000)]);
        counts.collections = vec![CollectionCount {
            holder: "Shop.all".to_owned(),
            type_name: "List<Order>".to_owned(),
            count: u64::from(number) * 100,
        }];
        counts.fragmented =
            vec![FragmentedGeneration { generation, pinned: Some(4), type_name: Some("byte[]".to_owned()) }];
        let mut arena = NativeArena::default();
        (arena.system, arena.free) = (1 << 30, 1 << 29);
        let mut heap = NativeHeap::default();
        heap.arenas.push(arena);
        counts.with_native_heap(if number == 1 { Err(NativeHeapError::NotGlibc) } else { Ok(heap) })
    };
    let usage = |number: u32| {
        let mut usage = ProcessUsage::read(std::process::id()).unwrap();
        usage.at = begin + SECOND * number;
        let mut thread = ThreadUsage::default();
        (thread.tid, thread.state) = (7, Some('S'));
        usage.threads.push(thread);
        usage
    };
    Readings {
        usage: [0, 2, 4].map(usage).into(),
        memory: vec![memory.clone(), memory],
        counts: [0, 2, 4].map(counts).into(),
        memory_missing: None,
        exit_code: Some(3),
    }
}

fn recorded(parts: &[String]) -> RecordedReadings {
    let mut recorded = RecordedReadings::default();
    for (number, part) in parts.iter().enumerate() {
        recorded.add_part(number, parts.len(), part.clone());
    }
    recorded
}

/// The causes that readings show, but for the time between them: the clock has more digits.
fn causes(readings: &Readings) -> Vec<String> {
    let findings = diagnose(&Evidence::default().with_readings(readings));
    findings.into_iter().map(|finding| finding.cause).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn recorded_readings_show_the_same_causes() {
    let readings = readings();
    let shown = causes(&readings);
    assert!(shown.len() > 2, "{shown:?}");
    for units in [16, 100, usize::MAX] {
        let parts = readings.clone().into_parts(units).unwrap();
        assert!(parts.iter().all(|part| part.encode_utf16().count() <= units), "{units}");
        let read = recorded(&parts).finish().unwrap();
        assert_eq!((&read.memory, read.end().unwrap().exit_code), (&readings.memory, Some(3)));
        assert_eq!(read.counts[2].at - read.counts[0].at, 4 * SECOND);
        assert_eq!(read.usage[1].at - read.usage[0].at, 2 * SECOND);
        assert_eq!(read.usage[2].threads, readings.usage[2].threads);
        assert_eq!(causes(&read), shown);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn other_processes_are_the_busiest() {
    let mut readings = readings();
    let others = |usage: &mut ProcessUsage, cpu_ns: fn(u32) -> u64| {
        let other = |pid| {
            let mut other = OtherProcess::default();
            (other.pid, other.cpu_ns) = (pid, cpu_ns(pid));
            other
        };
        usage.machine.other_processes = (1..=100).map(other).collect();
    };
    others(&mut readings.usage[0], |_| 1_000_000);
    others(&mut readings.usage[2], |pid| 1_000_000 + u64::from(pid));
    let read = recorded(&readings.into_parts(usize::MAX).unwrap()).finish().unwrap();
    let pids = |usage: &ProcessUsage| -> Vec<_> {
        usage.machine.other_processes.iter().map(|process| process.pid).collect()
    };
    assert_eq!(pids(&read.usage[2]), (93..=100).collect::<Vec<_>>());
    assert_eq!(pids(&read.usage[0]), pids(&read.usage[2]));
}

#[test]
fn readings_that_cannot_be_used_have_the_reason() {
    let reason = |recorded: RecordedReadings| recorded.finish().unwrap().memory_missing.unwrap();
    let parts = Readings::missing("not permitted").into_parts(20).unwrap();
    assert_eq!(reason(recorded(&parts)), "not permitted");
    let mut twice = recorded(&parts);
    twice.add_part(0, parts.len(), parts[0].clone());
    assert_eq!(reason(twice), "the recording is of several processes");
    let mut of_others = RecordedReadings::default();
    of_others.add_part(0, 2, String::new());
    of_others.add_part(1, 3, String::new());
    assert_eq!(reason(of_others), "the recording is of several processes");
    let mut cut = RecordedReadings::default();
    cut.add_part(1, parts.len(), parts[1].clone());
    assert_eq!(reason(cut), "a part of it is not in the recording");
    for (number, count) in [(2, 2), (0, 0), (0, MAX_TEXT), (usize::MAX, usize::MAX)] {
        let mut hostile = RecordedReadings::default();
        hostile.add_part(number, count, "{}".to_owned());
        assert_eq!(reason(hostile), "it is damaged in the recording", "{number} of {count}");
    }
    let mut large = RecordedReadings::default();
    (0..40).for_each(|number| large.add_part(number, 40, "x".repeat(1 << 20)));
    assert_eq!(reason(large), "it takes too much of the recording");
    let mut redacted = RecordedReadings::default();
    redacted.add_part(0, 1, "xxxxxxxx".to_owned());
    let damaged = "it is redacted or damaged in the recording, or of another version of dipc";
    assert_eq!(reason(redacted), damaged);
}

/// Numbers of a recording are anybody's.
#[cfg(target_os = "linux")]
#[test]
fn hostile_readings_are_judged() {
    let text = readings().into_parts(usize::MAX).unwrap().concat();
    let numbers: Vec<_> = text
        .char_indices()
        .filter(|(at, char)| {
            char.is_ascii_digit() && !text[..*at].ends_with(|before: char| before.is_ascii_alphanumeric())
        })
        .map(|(at, _)| at)
        .collect();
    let mut judged = 0;
    for at in numbers {
        let end = at + text[at..].find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len() - at);
        for number in ["0", "1", "4294967295", "9223372036854775807", "18446744073709551615"] {
            let hostile = format!("{}{number}{}", &text[..at], &text[end..]);
            if let Some(readings) = Readings::from_text(&hostile) {
                causes(&readings);
                judged += 1;
            }
        }
    }
    assert!(judged > 1000, "{judged}");
}

/// The largest readings that are taken: all threads wait for each other, or for one lock.
#[cfg(target_os = "linux")]
#[test]
fn the_largest_readings_are_judged() {
    let mut readings = readings();
    for is_ring in [false, true] {
        for memory in &mut readings.memory {
            let thread = memory.threads[0].clone();
            memory.threads = (0..MAX_THREADS)
                .map(|index| {
                    let mut thread = ThreadFacts { tid: index as u64, ..thread.clone() };
                    let wait = thread.wait.as_mut().unwrap();
                    let owner = if is_ring { (index + 1) % MAX_THREADS } else { 0 };
                    (wait.kind, wait.owners) = (WaitedFor::Monitor, vec![owner]);
                    thread
                })
                .collect();
            memory.deadlocks = if is_ring { vec![(0..MAX_THREADS).collect()] } else { Vec::new() };
        }
        causes(&readings);
    }
    readings.memory[0].threads.push(ThreadFacts::default());
    let threads = |readings: &Readings| {
        let text = ReadingsText::<ProcessUsage, _, MemoryCounts> {
            usage: Vec::new(),
            memory: readings.memory.iter().collect(),
            counts: Vec::new(),
            memory_missing: None,
            exit_code: None,
        };
        Readings::from_text(&serde_json::to_string(&text).unwrap())
            .map(|readings| readings.memory[0].threads.len())
    };
    assert_eq!(threads(&readings), None);
    readings.memory[0].threads.truncate(MAX_THREADS);
    assert_eq!(threads(&readings), Some(MAX_THREADS));
}
