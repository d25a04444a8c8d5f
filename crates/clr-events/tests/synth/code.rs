//! Names for addresses, in any order of the events.

use clr_events::code::{Code, CodeKind, Tier, UnresolvedReason};
use clr_events::{CodeFrames, CodeMap};
use nettrace::{SliceReader, Ticks};

use crate::recording::{LOAD, NAMELESS_LOAD, RUNDOWN, Recording, UNLOAD};

const PID: Option<u64> = Some(4242);

fn map(recording: &Recording) -> CodeMap {
    map_within(recording, CodeMap::LIMIT)
}

fn map_within(recording: &Recording, limit: usize) -> CodeMap {
    let mut map = CodeMap::with_limit(limit);
    SliceReader::new(&recording.bytes()).unwrap().for_each(|event| map.add(&event)).unwrap();
    map
}

fn name(map: &mut CodeMap, address: u64, time: u64) -> String {
    map.symbolizer().resolve(PID, address, Ticks(time)).to_string()
}

fn why(map: &mut CodeMap, address: u64) -> UnresolvedReason {
    match map.symbolizer().resolve(PID, address, Ticks(0)) {
        Code::Unresolved(nameless) => nameless.reason,
        code => panic!("{code} has a name"),
    }
}

#[test]
fn repeated_loads_of_a_method_are_one_method() {
    // A module that is reported after its methods, and a method that is reported three times.
    let mut recording = Recording::default();
    recording
        .method(UNLOAD, 90, 0x1000, 0x20, "Run")
        .method(RUNDOWN, 95, 0x1000, 0x20, "Run")
        .method(LOAD, 10, 0x1000, 0x20, "Run")
        .module(99, 1, "/app/App.dll");
    let mut map = map(&recording);
    let symbolizer = map.symbolizer();
    let Code::Method(method) = symbolizer.resolve(PID, 0x101f, Ticks(50)) else { panic!("no method") };
    assert_eq!(method.to_string(), "App!App.Type.Run(int32)");
    assert_eq!((method.loaded(), method.unloaded()), (Some(Ticks(10)), Some(Ticks(90))));
    assert_eq!((method.flags().tier(), method.kind()), (Tier::QUICK_JITTED, CodeKind::Jitted));
    assert_eq!(method.flags().tier().name(), Some("QuickJitted"));
    assert_eq!((method.start(), method.size(), method.token()), (0x1000, 0x20, 0x0600_0001));
    assert_eq!(method.module().unwrap().path(), "/app/App.dll");
    assert_eq!(map.methods(), 1);
    assert_eq!(name(&mut map, 0x0fff, 50), "0xfff");
    assert_eq!(why(&mut map, 0x1020), UnresolvedReason::NoMethod);
}

#[test]
fn time_separates_methods_that_shared_an_address() {
    let mut recording = Recording::default();
    recording
        .method(UNLOAD, 20, 0x1000, 0x100, "First")
        .method(LOAD, 30, 0x1080, 0x100, "Second")
        .method(UNLOAD, 40, 0x1080, 0x100, "Second")
        .method(LOAD, 50, 0x1000, 0x100, "Third")
        .module(60, 1, r"C:\app\App.exe");
    let mut map = map(&recording);
    for (time, expected) in
        [(5, "First"), (20, "First"), (30, "Second"), (39, "Second"), (50, "Third"), (99, "Third")]
    {
        assert_eq!(name(&mut map, 0x1090, time), format!("App!App.Type.{expected}(int32)"), "at {time}");
    }
    // A frame is the code at its time, and one frame serves all addresses of a method.
    let mut frames = CodeFrames::new(map.symbolizer());
    let mut frame = |address, time| frames.resolve(PID, address, Ticks(time));
    let first = frame(0x1090, 5);
    assert_ne!(frame(0x1090, 35), first);
    assert_eq!(frame(0x1000, 15), first);
    assert_eq!(frame(0x1090, 19), first);
}

#[test]
fn each_of_many_methods_at_one_address_keeps_its_name() {
    let mut recording = Recording::default();
    let times = |number: u64| (number * 30 + 10, number * 30 + 20);
    for number in 0..200 {
        let (load, unload) = times(number);
        // Memory of code is used again by code of any size.
        let size = 0x20 + u32::try_from(number % 7).unwrap();
        let name = format!("Method{number}");
        recording.method(LOAD, load, 0x1000, size, &name).method(UNLOAD, unload, 0x1000, size, &name);
    }
    recording.module(0, 1, "/app/App.dll");
    let mut map = map(&recording);
    let symbolizer = map.symbolizer();
    let mut frames = CodeFrames::new(symbolizer);
    for number in 0..200 {
        let (load, unload) = times(number);
        for time in [load, load + 5, unload] {
            let expected = format!("App!App.Type.Method{number}(int32)");
            assert_eq!(symbolizer.resolve(PID, 0x1010, Ticks(time)).to_string(), expected, "at {time}");
            let frame = frames.resolve(PID, 0x1010, Ticks(time));
            assert_eq!(frames.get(frame).unwrap().to_string(), expected, "at {time}");
        }
    }
}

#[test]
fn unresolved_addresses_have_a_reason() {
    let mut recording = Recording::default();
    assert_eq!(why(&mut map(&recording), 0x1000), UnresolvedReason::NoCode);
    recording.method(LOAD, 1, 0x1000, 0x20, "Run");
    let mut told = map(&recording);
    assert_eq!(why(&mut told, 0x2000), UnresolvedReason::NoRundown);
    assert_eq!(name(&mut told, 0x1000, 0), "?!App.Type.Run(int32)");
    recording.method(NAMELESS_LOAD, 2, 0x3000, 0x20, "").method(NAMELESS_LOAD, 2, 0x1000, 0x20, "");
    let mut told = map(&recording);
    assert_eq!(why(&mut told, 0x3000), UnresolvedReason::Unnamed);
    assert_eq!(name(&mut told, 0x1000, 0), "?!App.Type.Run(int32)");
    recording.method(RUNDOWN, 3, 0x4000, 0x20, "Precompiled");
    assert_eq!(why(&mut map(&recording), 0x2000), UnresolvedReason::NoMethod);
}

#[test]
fn more_than_the_limit_is_left_out_and_counted() {
    let mut recording = Recording::default();
    for number in 0..40_000u64 {
        recording.method(LOAD, number, number * 0x100, 0x80, &format!("Method{number}"));
    }
    let mut whole = map(&recording);
    assert_eq!((whole.methods(), whole.left_out()), (40_000, 0));
    assert_eq!(name(&mut whole, 39_999 * 0x100, 0), "?!App.Type.Method39999(int32)");
    let mut cut = map_within(&recording, 2 << 20);
    assert_eq!(cut.methods() as u64 + cut.left_out(), 40_000);
    assert!(cut.left_out() > 0);
    assert_eq!(why(&mut cut, 39_999 * 0x100), UnresolvedReason::LeftOut);
    assert_eq!(name(&mut cut, 0x100, 0), "?!App.Type.Method1(int32)");
}

#[test]
fn events_can_be_added_after_a_lookup() {
    let mut recording = Recording::default();
    recording.method(LOAD, 1, 0x1000, 0x20, "One").method(LOAD, 2, 0x2000, 0x20, "Two");
    let bytes = recording.bytes();
    let mut events = SliceReader::new(&bytes).unwrap();
    let mut map = CodeMap::default();
    map.add(&events.next().unwrap().unwrap());
    assert_eq!(name(&mut map, 0x2000, 0), "0x2000");
    map.add(&events.next().unwrap().unwrap());
    assert_eq!(name(&mut map, 0x2000, 0), "?!App.Type.Two(int32)");
    assert_eq!(name(&mut map, 0x1000, 0), "?!App.Type.One(int32)");
}
