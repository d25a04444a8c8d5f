//! Objects through collections of each kind, as runtimes report them.

use clr_events::enums::GcAllocationKind;
use clr_events::{ClrEvent, Provider};
use nettrace_synth::{Value, payload};

use super::{LiveObjectCounts, LiveObjects};

const BLOCKING: u32 = 0;
const BACKGROUND: u32 = 1;
const FOREGROUND: u32 = 2;

const SMALL: GcAllocationKind = GcAllocationKind::SMALL;
const LARGE: GcAllocationKind = GcAllocationKind::LARGE;

/// Objects named by letters.
struct Heap(LiveObjects<char>);

impl Heap {
    fn new() -> Self {
        Self(LiveObjects::new(100))
    }

    fn allocate(&mut self, kind: GcAllocationKind, objects: &[(u64, char)]) {
        for (address, name) in objects {
            self.0.allocate(*address, Some(24), kind, *name);
        }
    }

    fn event(&mut self, id: u32, version: u32, values: &[Value]) {
        let payload = payload(values);
        let view = ClrEvent::decode(Provider::Runtime, id, version, &payload, 8).unwrap().unwrap();
        assert!(self.0.add(&view), "{view:?}");
    }

    fn begin(&mut self, count: u32, depth: u32, kind: u32) {
        let numbers = [count, depth, 0, kind].map(Value::UInt32);
        self.event(1, 2, &[&numbers[..], &[Value::UInt16(0), Value::UInt64(0)]].concat());
    }

    fn end(&mut self, count: u32, depth: u32) {
        self.event(2, 1, &[Value::UInt32(count), Value::UInt32(depth), Value::UInt16(0)]);
    }

    /// Reports the ranges of generations: generation, start and length.
    fn generations(&mut self, ranges: &[(u8, u64, u64)]) {
        for (generation, start, length) in ranges {
            let [start, used, reserved] = [*start, *length, *length].map(Value::UInt64);
            self.event(23, 0, &[Value::Byte(*generation), start, used, reserved, Value::UInt16(0)]);
        }
    }

    fn survive(&mut self, ranges: &[(u64, u64)]) {
        let rows = ranges.iter().map(|(start, length)| [*start, *length].map(Value::UInt64).to_vec());
        self.bulk(21, &rows.collect::<Vec<_>>());
    }

    fn move_to(&mut self, ranges: &[(u64, u64, u64)]) {
        let rows = ranges.iter().map(|(from, to, length)| [*from, *to, *length].map(Value::UInt64).to_vec());
        self.bulk(22, &rows.collect::<Vec<_>>());
    }

    fn bulk(&mut self, id: u32, rows: &[Vec<Value>]) {
        let count = Value::UInt32(u32::try_from(rows.len()).unwrap());
        let values = [vec![Value::UInt32(0), count, Value::UInt16(0)], rows.concat()].concat();
        self.event(id, 0, &values);
    }

    /// Returns the survivors, and the objects that no collection has reached.
    fn alive(&self) -> (String, String) {
        let sorted = |names: &mut dyn Iterator<Item = &char>| {
            let mut names: Vec<_> = names.copied().collect();
            names.sort_unstable();
            names.into_iter().collect()
        };
        (sorted(&mut self.0.survivors()), sorted(&mut self.0.not_collected()))
    }

    #[track_caller]
    fn assert_alive(&self, survivors: &str, not_collected: &str) {
        assert_eq!(self.alive(), (survivors.to_owned(), not_collected.to_owned()));
        assert_eq!(self.0.len(), survivors.len() + not_collected.len());
    }
}

const GENERATIONS: [(u8, u64, u64); 4] =
    [(3, 0x9000, 0x1000), (2, 0x1000, 0x1000), (1, 0x2000, 0x1000), (0, 0x3000, 0x1000)];

#[test]
fn collections_keep_what_they_report_and_what_they_do_not_collect() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a'), (0x3100, 'b'), (0x3200, 'c')]);
    heap.assert_alive("", "abc");
    // Moves two of three into generation 1.
    heap.begin(1, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3000, 0x2000, 0x100), (0x3200, 0x2100, 0x18)]);
    heap.end(1, 0);
    heap.assert_alive("ac", "");
    // The generation that they are in is not collected, and they are not reported.
    heap.allocate(SMALL, &[(0x3000, 'd'), (0x3100, 'e')]);
    heap.allocate(LARGE, &[(0x9000, 'L')]);
    heap.begin(2, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.survive(&[(0x3100, 0x40)]);
    heap.end(2, 0);
    heap.assert_alive("ace", "L");
    // Generation 1 is collected, and stays in place.
    heap.begin(3, 1, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.survive(&[(0x2100, 0x40), (0x3100, 0x40)]);
    heap.end(3, 1);
    heap.assert_alive("ce", "L");
    // All generations, and large objects with them.
    heap.begin(4, 2, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x2100, 0x1000, 0x18)]);
    heap.survive(&[(0x9000, 0x20000)]);
    heap.end(4, 2);
    heap.assert_alive("Lc", "");
    let counts =
        LiveObjectCounts { collections: 4, full_collections: 1, dead: 4, ..LiveObjectCounts::default() };
    assert_eq!(heap.0.counts(), counts);
}

/// Ranges at the end of a collection are those of its survivors, which are not collected again.
#[test]
fn generations_at_the_end_of_a_collection_condemn_nothing() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a')]);
    heap.begin(1, 1, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3000, 0x2000, 0x18)]);
    heap.generations(&GENERATIONS);
    heap.end(1, 1);
    heap.assert_alive("a", "");
}

/// Dead objects of younger generations are free afterwards, and others are allocated or move there.
#[test]
fn background_collections_collect_all_objects_that_there_are_as_they_begin() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a'), (0x3100, 'b'), (0x3200, 'c'), (0x3300, 'd')]);
    heap.begin(1, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3000, 0x2000, 0x400)]);
    heap.end(1, 0);
    heap.allocate(LARGE, &[(0x9000, 'L'), (0x9800, 'M')]);
    heap.allocate(SMALL, &[(0x3000, 'e'), (0x3100, 'f'), (0x3200, 'g')]);
    heap.begin(2, 2, BACKGROUND);
    heap.generations(&GENERATIONS);
    heap.allocate(SMALL, &[(0x3400, 'h')]);
    heap.assert_alive("abcd", "LMefgh");
    // The youngest generation is collected meanwhile.
    heap.begin(3, 0, FOREGROUND);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3100, 0x2500, 0x18)]);
    heap.generations(&GENERATIONS);
    heap.end(3, 0);
    heap.assert_alive("abcdf", "LM");
    // What is allocated after the beginning is not collected.
    heap.allocate(LARGE, &[(0x9400, 'N')]);
    heap.allocate(SMALL, &[(0x3000, 'i')]);
    heap.survive(&[(0x2100, 0x18), (0x2200, 0x18), (0x2500, 0x18), (0x9000, 0x500)]);
    heap.generations(&GENERATIONS);
    heap.end(2, 2);
    heap.assert_alive("Lbcf", "Ni");
}

#[test]
fn objects_in_memory_that_others_move_to_are_dead() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a')]);
    heap.begin(1, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3000, 0x2000, 0x18)]);
    heap.end(1, 0);
    heap.allocate(SMALL, &[(0x3000, 'b')]);
    heap.begin(2, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.move_to(&[(0x3000, 0x1ff0, 0x18)]);
    heap.end(2, 0);
    heap.assert_alive("b", "");
}

#[test]
fn collections_without_ranges_or_events_are_counted_and_kill_nothing() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a')]);
    // No range of a generation: the keyword is not enabled, or the events were lost.
    heap.begin(7, 2, BLOCKING);
    heap.end(7, 2);
    heap.assert_alive("", "a");
    // No end.
    heap.begin(8, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    // A background collection whose report is missing.
    heap.begin(9, 2, BACKGROUND);
    heap.generations(&GENERATIONS);
    heap.end(9, 2);
    // Without events: 10 and 11.
    heap.begin(12, 0, BLOCKING);
    assert_eq!(heap.0.counts().missing_collections, 5);
    assert_eq!(heap.0.counts().dead, 0);
    heap.end(13, 0);
    heap.assert_alive("", "a");
}

#[test]
fn nothing_may_survive_a_young_collection_once_survivors_were_reported() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0x3000, 'a')]);
    // As NativeAOT does, which reports no survivors.
    heap.begin(1, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.end(1, 0);
    heap.assert_alive("", "a");
    assert_eq!(heap.0.counts().missing_collections, 1);
    heap.allocate(SMALL, &[(0x3100, 'b')]);
    heap.begin(2, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.survive(&[(0x3100, 0x18)]);
    heap.end(2, 0);
    heap.assert_alive("b", "");
    heap.begin(3, 0, BLOCKING);
    heap.generations(&GENERATIONS);
    heap.end(3, 0);
    heap.assert_alive("", "");
    assert_eq!(heap.0.counts().missing_collections, 1);
}

#[test]
fn objects_in_the_place_of_others_replace_them() {
    let mut heap = Heap::new();
    heap.allocate(LARGE, &[(0x9000, 'L'), (0x9010, 'M'), (0x9018, 'N')]);
    heap.0.allocate(0x9000, Some(0x18), LARGE, 'O');
    heap.assert_alive("", "NO");
    // Without a size.
    heap.0.allocate(0x9018, None, LARGE, 'P');
    heap.assert_alive("", "OP");
}

#[test]
fn followed_objects_are_bounded() {
    let mut heap = Heap(LiveObjects::new(2));
    heap.allocate(SMALL, &[(0x3000, 'a'), (0x3100, 'b'), (0x3200, 'c')]);
    heap.assert_alive("", "ab");
    assert_eq!(heap.0.counts().left_out, 1);
    heap.0.forget();
    assert!(heap.0.is_empty());
}

#[test]
fn accepts_impossible_ranges() {
    let mut heap = Heap::new();
    heap.allocate(SMALL, &[(0, 'a'), (u64::MAX, 'b'), (0x3000, 'c')]);
    heap.begin(u32::MAX, u32::MAX, 99);
    heap.generations(&[(255, u64::MAX, u64::MAX), (0, 0, 0), (0, 0, u64::MAX)]);
    heap.move_to(&[(0, u64::MAX, 1), (0x3000, u64::MAX - 1, u64::MAX), (0x3000, 0, 0)]);
    heap.end(u32::MAX, 0);
    heap.begin(0, 0, BLOCKING);
    assert_eq!(heap.0.len(), 2);
    assert_eq!(heap.0.counts().missing_collections, u64::from(u32::MAX) - 1);
}
