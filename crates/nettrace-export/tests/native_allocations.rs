//! Native memory that is in use, in recordings of known allocations.

use std::io::Cursor;

use nettrace_export::nettrace::RelativeTime;
use nettrace_export::report::{NativeFacts, TopOptions, TopReport};
use nettrace_export::{Metric, NativeLiveness, Options, Profile, Selection};
use nettrace_synth::clr::{Method, Recording};
use nettrace_synth::{Field, Metadata, Type, Value};

/// A thread that allocates, and one that frees.
const PROGRAM: u64 = 7;
const OTHER: u64 = 8;

/// Adds an event of linux-sampler with numbers.
fn event<'r>(
    recording: &'r mut Recording,
    id: u32,
    name: &str,
    numbers: &[(&str, u64)],
) -> &'r mut Recording {
    let fields = numbers.iter().map(|(name, _)| Field::new(name, Type::UInt64)).collect();
    let metadata = Metadata {
        provider: "Universal.Events".into(),
        event_id: id,
        version: 1,
        name: name.into(),
        fields,
        ..Metadata::default()
    };
    let values: Vec<_> = numbers.iter().map(|(_, number)| Value::UInt64(*number)).collect();
    recording.described(metadata, &values)
}

fn allocated(recording: &mut Recording, stack: u32, address: u64, size: u64, value: u64) {
    recording.thread(PROGRAM);
    let numbers = [("Value", value), ("Size", size), ("Address", address)];
    event(recording, 3, "native_alloc", &numbers).on(stack);
}

fn freed(recording: &mut Recording, address: u64) {
    recording.thread(OTHER);
    event(recording, 4, "native_free", &[("Address", address)]);
}

fn unmapped(recording: &mut Recording, address: u64, size: u64) {
    recording.thread(OTHER);
    event(recording, 4, "native_free", &[("Address", address), ("Size", size)]);
}

/// Adds the end of the probes with lost records of freed memory, and whether the limit removed them.
fn end(recording: &mut Recording, lost_frees: u64, is_beyond_limit: bool) {
    let numbers = [
        ("Interval", 1000),
        ("Hits", 70),
        ("CostNs", 140_000),
        ("CpuNs", 2_000_000),
        ("DurationNs", 3_000_000_000),
        ("LostAllocations", 0),
        ("LostFrees", lost_frees),
        ("LeftOut", 0),
        ("IsBeyondLimit", is_beyond_limit.into()),
    ];
    recording.thread(OTHER);
    event(recording, 5, "native_alloc_end", &numbers);
}

fn new_recording() -> Recording {
    let mut recording = Recording::new();
    recording.module(1, "/app/Shop.dll");
    for (start, name) in [(0x1000, "Keep"), (0x2000, "Drop")] {
        recording.method(&Method::new(start, "Shop.Cart", name));
    }
    recording.stacks(&[&[0x1010], &[0x2010]]);
    recording
}

/// Two blocks that are kept, one of them for ten of its size, and one that another thread frees.
fn recorded() -> Recording {
    let mut recording = new_recording();
    recording.at(1_000);
    allocated(&mut recording, 1, 0xa000, 5_000, 5_000);
    allocated(&mut recording, 1, 0xb000, 100, 1_000);
    allocated(&mut recording, 2, 0xc000, 7_000, 7_000);
    recording.at(2_000);
    freed(&mut recording, 0xc000);
    // Of memory from before.
    freed(&mut recording, 0xd000);
    recording.at(3_000);
    recording
}

fn read(recording: &Recording, options: Options) -> (Profile, NativeLiveness) {
    let (profile, omissions) = nettrace_export::profile(Cursor::new(recording.bytes()), options).unwrap();
    (profile, omissions.native.unwrap())
}

#[test]
fn what_is_not_freed_has_the_weight_and_the_stack_of_its_allocation() {
    let mut recording = recorded();
    end(&mut recording, 0, false);
    let (profile, liveness) = read(&recording, Options::new(Metric::NativeAlloc));
    // The one of 100 bytes represents ten like it.
    assert_eq!((profile.total(), profile.samples()), (6_000, 11));
    assert_eq!((liveness.allocations, liveness.freed, liveness.doubt(0)), (3, 1, None));
    let report = TopReport::new(&profile, TopOptions::default());
    let rows: Vec<_> = report.rows.iter().map(|row| (row.frame.as_str(), row.exclusive)).collect();
    assert_eq!(rows, [("Shop!Shop.Cart.Keep()", 6_000)]);
    let basis = liveness.basis();
    assert!(basis.starts_with("of 3 allocations that were followed, 1 were freed; "), "{basis}");
    assert!(basis.contains("70 calls of probed functions cost 140 µs"), "{basis}");
    let facts = NativeFacts::new(&liveness, 0);
    assert_eq!((facts.calls, facts.interval_bytes, facts.stopped_by_limit), (70, 1000, false));
}

/// Memory at the same address is other memory, and blocks of events need not be in order of time.
#[test]
fn an_address_is_used_again() {
    let mut recording = new_recording();
    recording.at(3_000);
    allocated(&mut recording, 1, 0xa000, 4_000, 4_000);
    recording.block().at(1_000);
    allocated(&mut recording, 2, 0xa000, 3_000, 3_000);
    recording.at(2_000);
    freed(&mut recording, 0xa000);
    let (profile, _) = read(&recording, Options::new(Metric::NativeAlloc));
    assert_eq!(profile.total(), 4_000);
}

/// `munmap` frees any range: the end, the beginning and the middle of mappings, and several of them.
#[test]
fn parts_of_mappings_are_freed() {
    let in_use = |ranges: &[(u64, u64)]| {
        let mut recording = new_recording();
        recording.at(1_000);
        allocated(&mut recording, 1, 0x1_0000, 0x4000, 0x4000);
        allocated(&mut recording, 1, 0x2_0000, 0x4000, 0x4000);
        // One of four like it.
        allocated(&mut recording, 1, 0x3_0000, 0x1000, 0x4000);
        recording.at(2_000);
        for (address, size) in ranges {
            unmapped(&mut recording, *address, *size);
        }
        let (profile, liveness) = read(&recording, Options::new(Metric::NativeAlloc));
        (profile.total(), liveness.freed)
    };
    assert_eq!(in_use(&[]), (0xc000, 0));
    assert_eq!(in_use(&[(0x1_0000, 0x1000)]), (0xb000, 0), "the beginning");
    assert_eq!(in_use(&[(0x1_3000, 0x9000)]), (0xb000, 0), "the end, and nothing after it");
    assert_eq!(in_use(&[(0x1_1000, 0x1000)]), (0xb000, 0), "the middle");
    assert_eq!(in_use(&[(0x1_1000, 0x1000), (0x1_2000, 0x2000)]), (0x9000, 1), "the rest of the end");
    assert_eq!(in_use(&[(0x1_1000, 0x1000), (0x1_0000, 0x4000)]), (0x8000, 2), "both parts");
    assert_eq!(in_use(&[(0x3_0800, 0x800)]), (0xa000, 0), "half of what it represents");
    assert_eq!(in_use(&[(0x1_2000, 0xf000)]), (0x9000, 0), "parts of two");
    assert_eq!(in_use(&[(0, u64::MAX)]), (0, 3), "all");
    assert_eq!(in_use(&[(0x1_4000, 0xc000), (0xf000, 0x1000)]), (0xc000, 0), "beside them");
    assert_eq!(in_use(&[(u64::MAX, u64::MAX)]), (0xc000, 0));
}

/// The thread that frees is not in the selection, and counts.
#[test]
fn a_selection_chooses_allocations() {
    let recording = recorded();
    let of =
        |selection| read(&recording, Options::new(Metric::NativeAlloc).with_selection(selection)).0.total();
    assert_eq!(of(Selection::default().with_threads(vec![PROGRAM])), 6_000);
    assert_eq!(of(Selection::default().with_threads(vec![OTHER])), 0);
    let at = |nanoseconds| Some(RelativeTime::from_nanos(nanoseconds));
    assert_eq!(of(Selection::of_time(None, at(1_500))), 6_000);
    assert_eq!(of(Selection::of_time(at(1_500), None)), 0);
}

#[test]
fn what_is_uncertain_is_said() {
    let mut recording = recorded();
    let doubt = |recording: &Recording, lost| {
        read(recording, Options::new(Metric::NativeAlloc)).1.doubt(lost).unwrap_or_default()
    };
    assert!(doubt(&recording, 0).ends_with("the recording ends before its probes"));
    end(&mut recording, 2, true);
    let text = doubt(&recording, 3);
    for part in [
        "1 event was lost",
        "2 records of freed memory were lost, which looks as if it were in use",
        "the probes were removed after 3.00 s because of their cost",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
