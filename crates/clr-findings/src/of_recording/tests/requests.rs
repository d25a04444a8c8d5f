//! Calls, requests and output.

use nettrace_synth::clr::activity_id;
use nettrace_synth::{Field, Metadata, Type, Value};

use super::*;
use crate::finding::Finding;

const PROCESS: i32 = 4711;
const HTTP: &str = "System.Net.Http";
const SOCKETS: &str = "System.Net.Sockets";
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const WORKER: &str = "System.Private.CoreLib!System.Threading.ThreadPoolWorkQueue.Dispatch()";
const BANK: &str = "http://bank/charge";

/// An event of a provider: its number, name, opcode and fields, all strings.
fn event<'r>(
    recording: &'r mut Recording,
    (provider, event_id, name, opcode): (&str, u32, &str, u8),
    fields: &[(&str, &str)],
) -> &'r mut Recording {
    let metadata = Metadata {
        provider: provider.into(),
        event_id,
        name: name.into(),
        opcode: Some(opcode),
        fields: fields.iter().map(|(name, _)| Field::new(name, Type::String16)).collect(),
        ..Metadata::default()
    };
    let values: Vec<_> = fields.iter().map(|(_, value)| Value::string16(value)).collect();
    recording.described(metadata, &values)
}

/// A call in the method of the user's, with its times in milliseconds: the start, and from there, the time
/// without a connection and the whole time.
fn call(recording: &mut Recording, path: &[u8], start: u64, without_connection: u64, whole: u64) {
    let activity = activity_id(PROCESS, path);
    let at = |milliseconds| milliseconds * MILLISECOND;
    recording.at(at(start));
    let address = [("scheme", "http"), ("host", "bank"), ("port", "80"), ("pathAndQuery", "/charge")];
    event(recording, (HTTP, 1, "RequestStart", 1), &address).on(1).activity(activity);
    if let [request @ .., _] = path
        && request.len() > 1
    {
        recording.last().related = activity_id(PROCESS, request);
    }
    if without_connection < whole {
        recording.at(at(start + without_connection));
        event(recording, (HTTP, 7, "RequestHeadersStart", 1), &[]).activity([9; 16]);
        recording.last().related = activity;
    }
    if start + whole <= SECONDS * 1000 {
        recording.at(at(start + whole));
        event(recording, (HTTP, 2, "RequestStop", 2), &[]).activity(activity);
    }
}

/// Calls one after the other, as long as the recording lasts.
fn calls(without_connection: u64, whole: u64) -> Recording {
    let mut recording = recording();
    for index in 0..SECONDS * 1000 / whole {
        let path = [u8::try_from(index % 10).unwrap() + 1, u8::try_from(index / 10 % 10).unwrap() + 1];
        call(&mut recording, &path, index * whole, without_connection, whole);
    }
    recording
}

fn findings(recording: &mut Recording, rows: &[Row<'_>]) -> Vec<Finding> {
    recording.sort();
    diagnose(&Evidence::default().with_recording(&overview(recording, rows)))
}

/// The sentences of the causes.
fn sentences(recording: &mut Recording) -> Vec<String> {
    findings(recording, &[]).into_iter().map(|finding| finding.cause).collect()
}

#[test]
fn calls_are_slow_if_callers_always_wait_for_long_ones() {
    let slow = "Calls to http://bank/charge take 1.00 s in Orders.Sell, 95% of it waiting for the answer: \
                1.0 callers wait on average";
    assert_eq!(sentences(&mut calls(50, 1_000)), [slow]);
    assert_eq!(sentences(&mut calls(0, 100)), [""; 0]);
    // Long calls, once in a while.
    let mut rare = recording();
    for start in [0, 3_000, 6_000] {
        call(&mut rare, &[1, 1], start, 0, 1_000);
    }
    assert_eq!(sentences(&mut rare), [""; 0]);
}

#[test]
fn calls_without_a_connection_wait_for_the_pool_or_for_its_attempts_to_connect() {
    let in_phase = |phase| {
        format!("Calls to {BANK} take 1.00 s in Orders.Sell, 90% of it {phase}: 1.0 callers wait on average")
    };
    let mut recording = calls(900, 1_000);
    assert_eq!(sentences(&mut recording), [in_phase("waiting for a free connection of the pool")]);
    recording.at(0);
    event(&mut recording, (SOCKETS, 1, "ConnectStart", 1), &[("address", "bank")]);
    assert_eq!(sentences(&mut recording), [in_phase("connecting")]);
}

#[test]
fn calls_that_do_not_end_are_slow_if_they_have_no_connection() {
    let waiting = |without_connection| {
        let mut recording = recording();
        for index in 1..=10 {
            call(&mut recording, &[index, 1], 1_000, without_connection, 30_000);
        }
        sentences(&mut recording)
    };
    let sentence = "Calls to http://bank/charge take more than 9.00 s in Orders.Sell, 100% of it waiting for a \
                    connection: 9.0 callers wait on average";
    assert_eq!(waiting(30_000), [sentence]);
    // Answers to long polls are due when there is news.
    assert_eq!(waiting(10), [""; 0]);
}

#[test]
fn slow_requests_are_evidence_of_the_calls_that_they_wait_for() {
    let serve = |recording: &mut Recording, index: u8, is_calling: bool| {
        let path = [index, 1];
        let (start, end) = (u64::from(index) * 900, u64::from(index) * 900 + 800);
        recording.at(start * MILLISECOND);
        let fields = [("method", "GET"), ("path", "/pay")];
        event(recording, (HOSTING, 3, "RequestStart", 1), &fields).activity(activity_id(PROCESS, &path));
        if is_calling {
            call(recording, &[index, 1, 1], start + 10, 0, 780);
        }
        recording.at(end * MILLISECOND);
        event(recording, (HOSTING, 4, "RequestStop", 2), &[]).activity(activity_id(PROCESS, &path));
    };
    let served = |is_calling: bool, rows: &[Row<'_>]| {
        let mut recording = recording();
        (1..=10).for_each(|index| serve(&mut recording, index, is_calling));
        findings(&mut recording, rows)
    };
    let calling = served(true, &[]);
    let kinds: Vec<_> = calling.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::SlowCalls], "{calling:?}");
    let effect = "Requests GET /pay take 800 ms, most of it in calls: ";
    assert!(calling[0].evidence.iter().any(|sentence| sentence.starts_with(effect)), "{calling:?}");
    let cause = |rows: &[Row<'_>]| {
        let alone = served(false, rows);
        assert_eq!(alone.len(), 1, "{alone:?}");
        alone[0].cause.clone()
    };
    assert_eq!(cause(&[]), "Requests GET /pay take 800 ms: 0.8 of them are served on average");
    let stack: &[&str] = &[WORKER, SELL, SLEEP];
    let waits = |milliseconds| [(1, ThreadState::Blocked, milliseconds, stack)];
    assert!(cause(&waits(6_000)).contains(", as threads wait in Orders.Sell: "));
    assert!(!cause(&waits(3_000)).contains("Orders.Sell"));
}

#[test]
fn a_slow_reader_of_output_is_the_cause_of_the_lock_that_its_writers_want() {
    const WRITE: &str = "System.Console!System.ConsolePal.Write(SafeFileHandle, ReadOnlySpan<byte>)";
    let mut recording = recording();
    for thread in 2..6 {
        recording.at(0).thread(thread).contention_start(0x5000, 1).on(1);
        recording.at(SECONDS * SECOND).thread(thread).contention_stop(1e10).on(1);
    }
    let writes = |milliseconds| {
        let stack: &[&str] = &[MAIN, SELL, WRITE, "vmlinux!anon_pipe_write"];
        [(1, ThreadState::Blocked, milliseconds, stack)]
    };
    let slow = findings(&mut recording.clone(), &writes(9_000));
    let causes: Vec<_> = slow.iter().map(|finding| finding.cause.as_str()).collect();
    assert_eq!(
        causes,
        ["The reader of standard output is slow: a thread waits for it 90% of the time in Orders.Sell"]
    );
    assert!(slow[0].evidence.iter().any(|effect| effect.contains("wait for one lock")), "{slow:?}");
    let fast = findings(&mut recording, &writes(1_000));
    assert_eq!(fast.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::LockConvoy]);
}
