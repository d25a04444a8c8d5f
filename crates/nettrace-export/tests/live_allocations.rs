//! Allocations that are still in use, in recordings of known collections.

use std::io::Cursor;

use nettrace_export::nettrace::RelativeTime;
use nettrace_export::{Liveness, Metric, Options, Profile, Selection};
use nettrace_synth::Value;
use nettrace_synth::clr::{Kind, Method, Recording};

const GENERATION_RANGE: Kind = Kind::runtime(23, 0);
const SURVIVING: Kind = Kind::runtime(21, 0);
const MOVED: Kind = Kind::runtime(22, 0);
const ALLOCATION_TICK: Kind = Kind::runtime(10, 3);
const ALLOCATION_SAMPLED: Kind = Kind::runtime(303, 0);

/// A thread of the program, and one of the collector.
const PROGRAM: u64 = 7;
const COLLECTOR: u64 = 8;

/// Adds a tick as .NET Core 3.1 sends it.
fn tick(recording: &mut Recording, stack: u32, bytes: u64, address: u64) {
    let [amount, kind, heap] = [u32::try_from(bytes).unwrap(), 0, 0].map(Value::UInt32);
    let [bytes, type_id, address] = [bytes, 0, address].map(Value::UInt64);
    let name = Value::string16("Shop.Order");
    let values = [amount, kind, Value::UInt16(0), bytes, type_id, name, heap, address];
    recording.thread(PROGRAM).event(ALLOCATION_TICK, &values).on(stack);
}

fn sampled(recording: &mut Recording, stack: u32, size: u64, address: u64) {
    let [type_id, address, size, offset] = [0, address, size, 0].map(Value::UInt64);
    let name = Value::string16("Shop.Line");
    let values = [Value::UInt32(0), Value::UInt16(0), type_id, name, address, size, offset];
    recording.thread(PROGRAM).event(ALLOCATION_SAMPLED, &values).on(stack);
}

/// Adds the beginning of a collection, with the ranges of generations 2, 1 and 0.
fn begin(recording: &mut Recording, count: u32, generation: u32) {
    recording.thread(COLLECTOR).gc_start(count, generation, 0);
    for generation in [2, 1, 0] {
        let start = 0x10_0000 * (3 - u64::from(generation));
        let numbers = [start, 0x10_0000, 0x10_0000].map(Value::UInt64);
        let values = [&[Value::Byte(generation)][..], &numbers, &[Value::UInt16(0)]].concat();
        recording.event(GENERATION_RANGE, &values);
    }
}

fn ranges(recording: &mut Recording, kind: Kind, rows: &[&[u64]]) {
    let count = Value::UInt32(u32::try_from(rows.len()).unwrap());
    let rows = rows.iter().flat_map(|row| row.iter().copied().map(Value::UInt64));
    let values: Vec<_> = [Value::UInt32(0), count, Value::UInt16(0)].into_iter().chain(rows).collect();
    recording.event(kind, &values);
}

fn new_recording() -> Recording {
    let mut recording = Recording::new();
    recording.module(1, "/app/Shop.dll");
    recording.method(&Method::new(0x1000, "Shop.Cart", "Keep")).method(&Method::new(
        0x2000,
        "Shop.Cart",
        "Drop",
    ));
    recording.stacks(&[&[0x1010], &[0x2010]]);
    recording
}

/// Three objects of two methods: one of the first method moves and lives, one of each dies.
fn recorded(add: fn(&mut Recording, u32, u64, u64)) -> Recording {
    let mut recording = new_recording();
    recording.at(1_000);
    add(&mut recording, 1, 110_000, 0x30_0000);
    add(&mut recording, 2, 120_000, 0x30_1000);
    add(&mut recording, 1, 130_000, 0x30_2000);
    recording.at(2_000);
    begin(&mut recording, 1, 0);
    ranges(&mut recording, MOVED, &[&[0x30_2000, 0x20_0000, 0x18]]);
    recording.gc_end(1, 0);
    recording
}

fn read(recording: &Recording, options: Options) -> (Profile, Liveness) {
    let (profile, omissions) = nettrace_export::profile(Cursor::new(recording.bytes()), options).unwrap();
    (profile, omissions.live.unwrap())
}

fn by_method(profile: &Profile) -> Vec<(String, u64)> {
    let rows = nettrace_export::report::top(profile).into_iter();
    let mut rows: Vec<_> =
        rows.filter(|row| row.frame.contains("Cart")).map(|row| (row.frame, row.inclusive)).collect();
    rows.sort();
    rows
}

const KEEP: &str = "Shop!Shop.Cart.Keep()";
const DROP: &str = "Shop!Shop.Cart.Drop()";

#[test]
fn what_a_collection_found_alive_has_the_weight_and_the_stack_of_its_allocation() {
    let mut recording = recorded(tick);
    // Not collected: unknown.
    recording.at(3_000);
    tick(&mut recording, 2, 500, 0x30_0000);
    let (profile, liveness) = read(&recording, Options::new(Metric::LiveAlloc));
    assert_eq!((profile.total(), profile.samples()), (130_000, 1));
    assert_eq!(by_method(&profile), [(KEEP.to_owned(), 130_000)]);
    assert_eq!((liveness.counts.collections, liveness.counts.dead, liveness.not_collected), (1, 2, 500));
    assert_eq!(liveness.doubt(0), None);
    let all = read_alloc(&recording);
    assert_eq!(by_method(&all), [(DROP.to_owned(), 120_500), (KEEP.to_owned(), 240_000)]);
}

fn read_alloc(recording: &Recording) -> Profile {
    nettrace_export::profile(Cursor::new(recording.bytes()), Options::new(Metric::Alloc)).unwrap().0
}

/// An object drawn at random stands for the mean distance of draws; ticks beside it count the same bytes.
#[test]
fn sampled_objects_take_the_place_of_ticks() {
    let mut recording = new_recording();
    recording.at(500);
    tick(&mut recording, 2, 100_000, 0x30_8000);
    recording.at(1_000);
    sampled(&mut recording, 1, 24, 0x30_0000);
    tick(&mut recording, 2, 100_000, 0x30_4000);
    recording.at(2_000);
    begin(&mut recording, 1, 2);
    ranges(&mut recording, SURVIVING, &[&[0x30_0000, 0x10_000]]);
    recording.gc_end(1, 2);
    let (profile, liveness) = read(&recording, Options::new(Metric::LiveAlloc));
    assert_eq!(by_method(&profile), [(KEEP.to_owned(), 102_412)]);
    assert_eq!((profile.samples(), liveness.counts.full_collections), (1, 1));
}

/// Blocks are not in order of time: the events of a collection stand before the allocations.
#[test]
fn events_are_read_in_order_of_time() {
    let mut recording = new_recording();
    recording.at(2_000);
    begin(&mut recording, 1, 0);
    ranges(&mut recording, SURVIVING, &[&[0x30_0000, 0x18]]);
    recording.gc_end(1, 0);
    recording.block().at(1_000);
    tick(&mut recording, 1, 110_000, 0x30_0000);
    let (profile, _) = read(&recording, Options::new(Metric::LiveAlloc));
    assert_eq!(profile.total(), 110_000);
}

/// The collector's threads are not in the selection, and count.
#[test]
fn a_selection_chooses_allocations() {
    let recording = recorded(tick);
    let of =
        |selection| read(&recording, Options::new(Metric::LiveAlloc).with_selection(selection)).0.total();
    assert_eq!(of(Selection::default().with_threads(vec![PROGRAM])), 130_000);
    assert_eq!(of(Selection::default().with_threads(vec![COLLECTOR])), 0);
    let at = |nanoseconds| Some(RelativeTime::from_nanos(nanoseconds));
    assert_eq!(of(Selection::of_time(None, at(1_500))), 130_000);
    assert_eq!(of(Selection::of_time(at(1_500), None)), 0);
}

#[test]
fn recordings_without_reports_of_survivors_are_doubtful() {
    let mut recording = new_recording();
    recording.at(1_000);
    tick(&mut recording, 1, 110_000, 0x30_0000);
    recording.at(2_000).thread(COLLECTOR).gc_start(3, 2, 0).gc_end(3, 2);
    let (profile, liveness) = read(&recording, Options::new(Metric::LiveAlloc));
    assert_eq!((profile.total(), liveness.not_collected), (0, 110_000));
    let doubt = "the objects in use are uncertain: 1 collection is without a report of what survived";
    assert_eq!(liveness.doubt(0).as_deref(), Some(doubt));
    assert_eq!(
        liveness.basis(),
        "no collection with a report of what survived ended while this was recorded"
    );
}
