//! Stacks as the awaits have them, from the asynchronous profiler of .NET 11. Without such a runtime at hand,
//! the buffers are written in its published layout.

use std::collections::BTreeMap;

use nettrace::Reader;
use nettrace_export::{CausalGrouping, Metric, Options, Profile, ProfileReader};
use nettrace_synth::Bytes;
use nettrace_synth::clr::{Kind, MANAGED, Method, Recording};

const ASYNC_EVENTS: Kind =
    Kind { provider: "System.Runtime.CompilerServices.AsyncProfilerEventSource", event_id: 1, version: 1 };

/// The methods of the program and of the class library: module, type, name. Each has 256 bytes.
const METHODS: [(&str, &str); 8] = [
    ("Shop.Program+<Main>d__0", "MoveNext"),
    ("Shop.Orders+<Handle>d__1", "MoveNext"),
    ("Shop.Orders+<Read>d__2", "MoveNext"),
    ("Shop.Orders", "Parse"),
    ("Shop.Orders", "Fetch"),
    ("Shop.Orders", "Serve"),
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1", "MoveNext"),
    ("System.Runtime.CompilerServices.AsyncProfiler+ContinuationWrapper", "Continuation_Wrapper_3"),
];
const MAIN: u64 = 0;
const HANDLE: u64 = 1;
const READ: u64 = 2;
const PARSE: u64 = 3;
const FETCH: u64 = 4;
const SERVE: u64 = 5;
const BOX: u64 = 6;
const WRAPPER: u64 = 7;

/// An address in a method.
const fn code(method: u64) -> u64 {
    0x1_0000 + 0x100 * method + 0x10
}

/// The id of a method.
const fn id(method: u64) -> u64 {
    0x7F00_0000 + 8 * method
}

/// A recording that one thread wrote, with the names of all methods.
fn recording(stacks: &[&[u64]]) -> Recording {
    let mut recording = Recording::new();
    recording.stacks(stacks).written_by(1).at(4);
    recording.module(1, "/app/shop.dll").module(2, "/net/System.Private.CoreLib.dll");
    for (method, (of, name)) in (0..).zip(METHODS) {
        let module = if of.starts_with("System.") { 2 } else { 1 };
        let load = Method::new(code(method) - 0x10, of, name);
        recording.method(&Method { id: id(method), module, ..load });
    }
    recording
}

/// Samples: time, thread, stack.
fn sample(recording: &mut Recording, samples: &[(u64, u64, u32)]) {
    for (time, thread, stack) in samples {
        recording.at(*time).thread(*thread).sample(*stack, MANAGED);
    }
}

/// The events of a buffer, by id, time since the one before, and fields with their length.
fn async_event(id: u8, delta: u64, length: &[u8], fields: &[u8]) -> Vec<u8> {
    let mut event = Bytes::new();
    event.u8(id).var_u64(delta).raw(length).raw(fields);
    event.into_vec()
}

/// A stack of methods, the innermost first, by ids if `has_states`.
fn callstack(event: u8, delta: u64, methods: &[u64], has_states: bool) -> Vec<u8> {
    let mut fields = Bytes::new();
    fields.raw(&[0, 0, u8::try_from(methods.len()).unwrap()]).var_u64(9);
    for (index, method) in methods.iter().enumerate() {
        match index.checked_sub(1) {
            None => fields.var_u64(*method),
            Some(before) => {
                fields.var_i64(i64::try_from(*method).unwrap() - i64::try_from(methods[before]).unwrap())
            }
        };
        if has_states {
            fields.u8(0);
        }
    }
    async_event(event, delta, &u16::try_from(fields.len()).unwrap().to_le_bytes(), fields.as_slice())
}

/// Adds the event with a buffer of thread 7 from 900 on, which another thread writes at 9000: the clock, a
/// reset of the thread, and `events`.
fn buffer(recording: &mut Recording, events: &[Vec<u8>]) {
    let opening = [async_event(22, 0, &11u16.to_le_bytes(), METADATA), async_event(20, 0, &[], &[])];
    let events = [&opening, events].concat();
    let body = events.concat();
    let size = u32::try_from(37 + body.len()).unwrap();
    let header = [
        &[1][..],
        &size.to_le_bytes(),
        &1u32.to_le_bytes(),
        &7u64.to_le_bytes(),
        &u32::try_from(events.len()).unwrap().to_le_bytes(),
        &900u64.to_le_bytes(),
        &9000u64.to_le_bytes(),
    ];
    let payload = [&size.to_le_bytes()[..], &header.concat(), &body].concat();
    recording.at(9000).thread(99).event_of(ASYNC_EVENTS, payload);
}

const METADATA: &[u8] = &[0x80, 0x94, 0xEB, 0xDC, 0x03, 1, 2, 0x80, 0x20, 32, 0];

/// Nanoseconds by stack, root first, without modules and parameters.
fn stacks(profile: &Profile) -> BTreeMap<Vec<String>, u64> {
    let mut stacks = BTreeMap::new();
    for total in &profile.stack_totals {
        let names = profile.names(total.stack.expect("all stacks are shown"));
        let short = |name: &str| {
            name.rsplit(['!', '.', '+']).next().unwrap_or_default().trim_end_matches("()").to_owned()
        };
        let method = |name: &str| match name {
            name if name.contains("<Main>") => "Main".to_owned(),
            name if name.contains("<Handle>") => "Handle".to_owned(),
            name if name.contains("<Read>") => "Read".to_owned(),
            name => short(name),
        };
        let names: Vec<_> =
            names.into_iter().filter(|name| !name.starts_with("Thread")).map(method).collect();
        *stacks.entry(names).or_default() += total.weight;
    }
    stacks.retain(|_, weight| *weight > 0);
    stacks
}

fn read(recording: &[u8], awaits: bool) -> (BTreeMap<Vec<String>, u64>, u64) {
    let grouping = CausalGrouping::default().with_awaits(awaits);
    let options = Options::new(Metric::Wall).with_kinds(false).with_grouping(grouping);
    let read = ProfileReader::new(options).read_file(|| Reader::new(recording), |_| {}).unwrap();
    assert_eq!(read.omissions.grouping, CausalGrouping::default(), "there are events of awaits");
    (stacks(&read.profile), read.omissions.causes)
}

fn expected(rows: &[(&[&str], u64)]) -> BTreeMap<Vec<String>, u64> {
    rows.iter()
        .map(|(names, weight)| (names.iter().map(|name| (*name).to_owned()).collect(), *weight))
        .collect()
}

/// `Read` continues after an `await`, and calls `Parse`; `Handle` awaits `Read`, and `Main` awaits `Handle`.
/// The buffer is written long after the samples, by another thread.
#[test]
fn state_machines_are_below_their_awaiters() {
    let awaiting = [id(READ), id(HANDLE), id(MAIN)];
    let mut recording = recording(&[&[code(PARSE), code(READ), code(BOX)], &[code(READ), code(BOX)]]);
    sample(&mut recording, &[(1000, 7, 1), (1100, 7, 1), (1200, 7, 2), (1300, 7, 1), (1350, 7, 2)]);
    let events = [
        callstack(16, 50, &awaiting, true),
        // Until 1250, and again from 1290 on, then without anyone who awaits it.
        async_event(13, 300, &[], &[]),
        callstack(16, 40, &[id(READ)], true),
    ];
    buffer(&mut recording, &events);
    let recording = recording.bytes();
    let (seen, left_out) = read(&recording, true);
    let whole = ["Main", "Handle", "Read", "Parse"];
    assert_eq!(seen, expected(&[(&whole, 200), (&whole[..3], 100), (&whole[2..], 50)]));
    assert_eq!(left_out, 0);
    // Without awaits the stacks are the thread's own, which are read once.
    let (plain, _) = read(&recording, false);
    assert_eq!(plain, expected(&[(&["MoveNext", "Read", "Parse"], 250), (&["MoveNext", "Read"], 100)]));
}

/// Methods that the runtime suspends lack a state machine: its wrapper runs them.
#[test]
fn resumed_methods_are_below_their_awaiters() {
    let mut recording = recording(&[
        &[code(PARSE), code(FETCH), 0xDEAD_0000, code(WRAPPER), code(BOX)],
        &[code(PARSE), code(FETCH)],
    ]);
    // Thread 8 is not in an operation.
    sample(&mut recording, &[(1000, 7, 1), (1100, 7, 1), (1000, 8, 2), (1100, 8, 2)]);
    buffer(&mut recording, &[callstack(7, 0, &[code(FETCH), code(SERVE)], false)]);
    let (seen, _) = read(&recording.bytes(), true);
    assert_eq!(seen, expected(&[(&["Serve", "Fetch", "Parse"], 100), (&["Fetch", "Parse"], 100)]));
}

#[test]
fn buffers_that_cannot_be_read_are_counted() {
    let broken = [callstack(16, 50, &[id(READ), id(MAIN)], true), async_event(99, 0, &[], &[])];
    let mut recording = recording(&[&[code(READ), code(BOX)]]);
    sample(&mut recording, &[(1000, 7, 1), (1100, 7, 1)]);
    buffer(&mut recording, &broken);
    let (seen, left_out) = read(&recording.bytes(), true);
    assert_eq!((seen, left_out), (expected(&[(&["Main", "Read"], 100)]), 1));
}
