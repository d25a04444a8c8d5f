//! Comparison of two recordings, event by event.

use nettrace::{Event, Metadata, Record, SliceReader, Thread};

/// The differences that the versions of the two recordings make.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    /// One format cannot express some properties of the kinds of events.
    pub(crate) other_kinds: bool,
    /// The first recording is netperf, without sequence numbers; the second has its events in time order.
    pub(crate) from_netperf: bool,
    /// The first recording is V6 and the second V4, which has one process.
    pub(crate) to_v4: bool,
    /// The first recording is damaged or cut: losses and field lists may differ.
    pub(crate) is_damaged: bool,
    /// Several threads of the first one have the same id, for which V4 has one sequence of numbers.
    pub(crate) shared_ids: bool,
    /// Labels that an event of V4 cannot have.
    pub(crate) other_labels: bool,
}

/// Returns true if several threads of those counted have the same id, as in recordings that were merged.
pub(crate) fn has_shared_ids(bytes: &[u8], is_counted: impl Fn(&Thread) -> bool) -> bool {
    let mut events = SliceReader::new(bytes).expect("a recording");
    events.for_each(|_| {}).expect("a recording");
    let mut seen = std::collections::BTreeSet::new();
    !events.threads().iter().filter(|thread| is_counted(thread)).all(|thread| seen.insert(thread.id()))
}

/// Compares two recordings. Panics at the first difference.
pub(crate) fn assert_equal(name: &str, one: &[u8], other: &[u8], expected: Expected) {
    let mut left = SliceReader::new(one).expect("the first recording");
    let mut right = SliceReader::new(other).expect("the second recording");
    let (a, b) = (left.info().unwrap().clone(), right.info().unwrap().clone());
    assert_eq!(
        (a.start, a.start_ticks, a.frequency, a.pointer_size),
        (b.start, b.start_ticks, b.frequency, b.pointer_size)
    );
    assert_eq!(a.process_id.unwrap_or(0), b.process_id.unwrap_or(0), "{name}: process");
    assert_eq!(a.processors.unwrap_or(0), b.processors.unwrap_or(0), "{name}: processors");
    assert_eq!(a.sampling_rate.unwrap_or(0), b.sampling_rate.unwrap_or(0), "{name}: sampling rate");
    let mut count = 0u64;
    if expected.from_netperf {
        let mut left = left.in_time_order();
        let mut right = right.in_time_order();
        while let Some(a) = left.next().expect("an event of the first") {
            let b = right
                .next()
                .expect("an event of the second")
                .unwrap_or_else(|| panic!("{name}: ends after {count}"));
            assert_same(name, count, &a, &b, expected);
            count += 1;
        }
        assert!(right.next().unwrap().is_none(), "{name}: has more than {count} events");
        return;
    }
    loop {
        // Numbers that a recording assigns twice are distinguished in the new one.
        let a = loop {
            match left.next_record().unwrap() {
                Some(Record::IdsEnd) => {}
                // A point that is damaged says nothing about time.
                Some(Record::SequencePoint(point)) if point.time().is_none() => {}
                other => break other,
            }
        };
        match (a, right.next_record().unwrap()) {
            (Some(Record::Event(a)), Some(Record::Event(b))) => assert_same(name, count, &a, &b, expected),
            (Some(Record::SequencePoint(a)), Some(Record::SequencePoint(b))) => {
                assert_eq!(a.time(), b.time(), "{name}: point after {count} events");
                let threads = |point: &nettrace::PassedPoint<'_>| {
                    point.threads().map(|(_, thread, number)| (thread.id(), number)).collect::<Vec<_>>()
                };
                let (a, mut b) = (threads(&a), threads(&b));
                let ids = |numbers: &[(nettrace::ThreadId, u32)]| {
                    numbers.iter().map(|(id, _)| *id).collect::<std::collections::BTreeSet<_>>()
                };
                // A point that is damaged can name one thread several times.
                let shared_ids = expected.shared_ids || expected.is_damaged && ids(&a).len() < a.len();
                if expected.to_v4 && shared_ids {
                    let is_same = ids(&a) == ids(&b);
                    // Of the threads with the same id, all but one may have ended.
                    assert!(
                        is_same || expected.is_damaged && ids(&a).is_subset(&ids(&b)),
                        "{name}: threads of the point after {count} events: {a:?}, {b:?}"
                    );
                    assert_eq!(
                        b.len(),
                        ids(&b).len(),
                        "{name}: a thread twice in the point after {count} events"
                    );
                    b.clone_from(&a);
                }
                if expected.to_v4 {
                    // They are followed by the last numbers of threads that have ended, which are blocks of
                    // their own in V6.
                    b.truncate(a.len());
                }
                assert_eq!(a, b, "{name}: threads of the point after {count} events");
            }
            // A recording that was cut gets a last point.
            (None, Some(Record::SequencePoint(_)) | None) => break,
            (_, Some(Record::IdsEnd)) => {
                panic!("{name}: numbers end after {count} records")
            }
            (a, _) => panic!(
                "{name}: after {count} records: only in the {}",
                if a.is_some() { "first" } else { "second" }
            ),
        }
        count += 1;
    }
    assert!(right.next_record().unwrap().is_none(), "{name}: something follows the last point");
    assert_eq!(right.damage(), [], "{name}");
    assert_eq!(right.truncated_at(), None, "{name}");
    if expected.is_damaged {
        // Events that the reader could not read are gaps in the new recording, and numbers that are damaged
        // are gaps or none.
        return;
    }
    assert_eq!(left.loss().total(), right.loss().total(), "{name}: loss");
    if expected.to_v4 {
        return;
    }
    // The end of a thread is said with the next sequence point.
    let gaps = |loss: &nettrace::Loss| {
        let mut gaps: Vec<_> = loss.gaps().iter().map(|gap| format!("{gap:?}")).collect();
        gaps.sort();
        gaps
    };
    assert_eq!(gaps(left.loss()), gaps(right.loss()), "{name}: gaps");
}

/// Compares two events.
pub(crate) fn assert_same(name: &str, index: u64, a: &Event<'_>, b: &Event<'_>, expected: Expected) {
    let place = || format!("{name}: event {index}: at {}", a.offset());
    assert_kinds(name, a.metadata(), b.metadata(), expected);
    assert_eq!(a.time(), b.time(), "{}", place());
    assert_eq!(a.payload(), b.payload(), "{}", place());
    assert_eq!(a.stack().as_bytes(), b.stack().as_bytes(), "{}", place());
    assert_eq!((a.thread_id(), a.capture_thread_id()), (b.thread_id(), b.capture_thread_id()), "{}", place());
    assert_eq!((a.activity(), a.related_activity()), (b.activity(), b.related_activity()), "{}", place());
    assert_eq!((a.keywords(), a.opcode()), (b.keywords(), b.opcode()), "{}", place());
    for (a, b) in [(a.version(), b.version()), (a.level(), b.level())] {
        // V6 has 8 bits for them.
        assert!(a == b || expected.other_kinds && a > 255, "{}", place());
    }
    assert!(a.is_sorted() == b.is_sorted() || expected.from_netperf, "{}", place());
    if !expected.to_v4 {
        // Netperf V1 and V2 have no process, and V4 has 0 for that.
        assert_eq!(a.process_id().unwrap_or(0), b.process_id().unwrap_or(0), "{}", place());
    }
    assert_eq!(a.capture_processor(), b.capture_processor(), "{}", place());
    if !expected.from_netperf && !expected.shared_ids {
        assert_eq!(a.sequence(), b.sequence(), "{}", place());
    }
    if !expected.other_labels {
        assert!(a.labels().eq(b.labels()), "{}", place());
    }
    if !expected.other_kinds && !expected.is_damaged {
        assert_eq!(format!("{:?}", a.fields()), format!("{:?}", b.fields()), "{}", place());
    }
}

fn assert_kinds(name: &str, a: &Metadata, b: &Metadata, expected: Expected) {
    assert_eq!(a.event_id(), b.event_id(), "{name}");
    for (a, b) in [(a.provider(), b.provider()), (a.name(), b.name())] {
        // A NUL ends a string of V4.
        assert!(a == b || expected.to_v4 && a.split('\0').next() == Some(b), "{name}: {a:?} {b:?}");
    }
    if !expected.other_kinds && !expected.is_damaged {
        assert_eq!(a.fields(), b.fields(), "{name}: {}", a.name());
        assert_eq!(
            (a.message_template(), a.description(), a.key_values()),
            (b.message_template(), b.description(), b.key_values()),
            "{name}: {}",
            a.name()
        );
    }
}
