//! The IL of code: the owner of a map, and its content.

use clr_events::CodeMap;
use clr_events::code::Code;
use nettrace::{SliceReader, Ticks};
use nettrace_synth::Value;
use nettrace_synth::clr::Kind;

use crate::recording::{LOAD, RUNDOWN, Recording, UNLOAD};

const MAP: Kind = Kind::runtime(190, 1);
const MAP_AT_END: Kind = Kind::rundown(150, 1);

const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;

/// The map of a method of that name: IL offsets, and where the code of each begins.
fn told<'r>(recording: &'r mut Recording, kind: Kind, name: &str, map: &[(u32, u32)]) -> &'r mut Recording {
    let mut values = vec![
        Value::UInt64(name.len() as u64),
        Value::UInt64(0),
        Value::Raw(vec![0]),
        Value::UInt16(u16::try_from(map.len()).unwrap()),
    ];
    values.extend(map.iter().map(|(il, _)| Value::UInt32(*il)));
    values.extend(map.iter().map(|(_, native)| Value::UInt32(*native)));
    values.extend([Value::UInt16(0), Value::UInt64(0)]);
    recording.event(kind, 1, &values)
}

fn read(recording: &Recording, mut map: CodeMap) -> CodeMap {
    SliceReader::new(&recording.bytes()).unwrap().for_each(|event| map.add(&event)).unwrap();
    map
}

fn with_il(recording: &Recording) -> CodeMap {
    read(recording, CodeMap::default().with_il_offsets())
}

fn il(map: &mut CodeMap, address: u64, time: u64) -> Option<u32> {
    let Code::Method(method) = map.symbolizer().resolve(Some(4242), address, Ticks(time)) else {
        panic!("no method at {address:#x}")
    };
    method.il_offset(address)
}

#[test]
fn a_map_belongs_to_the_adjacent_method_event() {
    let mut recording = Recording::default();
    // Compiled twice: the method is one, its code is not.
    recording.method(LOAD, 10, 0x1000, 0x40, "Run");
    told(&mut recording, MAP, "Run", &[(0, 0), (5, 0x10)]).method(LOAD, 20, 0x2000, 0x40, "Run");
    told(&mut recording, MAP, "Run", &[(0, 0), (7, 8)]);
    // A map without its code, or next to the code of another method, is not used.
    told(&mut recording, MAP, "Other", &[(99, 0)]).method(LOAD, 30, 0x3000, 0x40, "Lone");
    // At the end the map precedes its code.
    told(&mut recording, MAP_AT_END, "End", &[(0, 0), (9, 4)]).method(RUNDOWN, 40, 0x4000, 0x40, "End");
    told(&mut recording, MAP_AT_END, "Gone", &[(3, 0)]).method(RUNDOWN, 41, 0x5000, 0x40, "Stays");
    // Told of before, with its map, and at the end without.
    recording.method(RUNDOWN, 42, 0x2000, 0x40, "Run");
    let mut map = with_il(&recording);
    for (address, expected) in [
        (0x1000, Some(0)),
        (0x1010, Some(5)),
        (0x2007, Some(0)),
        (0x2008, Some(7)),
        (0x203f, Some(7)),
        (0x3000, None),
        (0x4003, Some(0)),
        (0x4004, Some(9)),
        (0x5000, None),
    ] {
        assert_eq!(il(&mut map, address, 50), expected, "{address:#x}");
    }
    assert_eq!(map.methods(), 5);
    assert_eq!(il(&mut read(&recording, CodeMap::default()), 0x1010, 50), None);
}

#[test]
fn time_tells_maps_of_the_same_memory_apart() {
    let mut recording = Recording::default();
    recording.method(LOAD, 10, 0x1000, 0x40, "First");
    told(&mut recording, MAP, "First", &[(1, 0)]).method(UNLOAD, 20, 0x1000, 0x40, "First");
    recording.method(LOAD, 30, 0x1000, 0x40, "Second");
    told(&mut recording, MAP, "Second", &[(2, 0)]);
    let mut map = with_il(&recording);
    assert_eq!((il(&mut map, 0x1000, 15), il(&mut map, 0x1000, 35)), (Some(1), Some(2)));
}

#[test]
fn code_without_il_belongs_to_an_adjacent_statement() {
    let mut recording = Recording::default();
    recording.method(LOAD, 10, 0x1000, 0x100, "Run");
    // As runtimes write it: in the order of IL, then the rest; a handler with a prolog of its own at the end.
    let pairs = [
        (PROLOG, 0),
        (PROLOG, 0x67),
        (0, 0x2c),
        (1, 0x40),
        (12, 0x53),
        (12, 0x70),
        (26, 0x58),
        (27, 0x58),
        (EPILOG, 0x5c),
        (NO_MAPPING, 0x30),
    ];
    told(&mut recording, MAP, "Run", &pairs);
    let mut map = with_il(&recording);
    let mut at = |native: u64| il(&mut map, 0x1000 + native, 50).unwrap();
    assert_eq!([0, 0x2b, 0x2c, 0x30, 0x3f].map(&mut at), [0; 5]);
    assert_eq!([0x40, 0x52, 0x53, 0x57].map(&mut at), [1, 1, 12, 12]);
    // The first of two at one address is empty; the end belongs to the code before it.
    assert_eq!([0x58, 0x5c, 0x66].map(&mut at), [27; 3]);
    assert_eq!([0x67, 0x70, 0xff].map(&mut at), [12; 3]);
    // Before its beginning there is nothing: a frame that has not begun yet is at it.
    let symbolizer = map.symbolizer();
    let Code::Method(method) = symbolizer.resolve(Some(4242), 0x1000, Ticks(50)) else { panic!("no method") };
    assert_eq!(method.il_offset(0x0fff), Some(0));
}

#[test]
fn maps_count_toward_the_memory_limit() {
    let mut recording = Recording::default();
    let map: Vec<_> = (0..10_000).map(|number| (number, number)).collect();
    for number in 0..100u64 {
        let name = "N".repeat(usize::try_from(number).unwrap() + 1);
        told(recording.method(LOAD, number, number << 16, 0x8000, &name), MAP, &name, &map);
    }
    let mut whole = with_il(&recording);
    whole.symbolizer();
    assert_eq!((whole.methods(), whole.left_out()), (100, 0));
    assert!((8_000_000..20_000_000).contains(&whole.bytes()), "{}", whole.bytes());
    let limit = 4 << 20;
    let mut cut = read(&recording, CodeMap::with_limit(limit).with_il_offsets());
    assert!(cut.left_out() > 100 && cut.bytes() < 2 * limit, "{} {}", cut.left_out(), cut.bytes());
    assert_eq!(il(&mut cut, 0x0010, 50), Some(16));
}
