//! Any bytes as a recording, and as the texts of events of counters, and conditions that wait for each thing
//! that they may have: what met one is said in a bounded text, alike in both orders where those are the same.

#![no_main]

use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use libfuzzer_sys::fuzz_target;
use nettrace::{RelativeTime, SliceReader};

/// A condition of each kind, and all at once.
const CONDITIONS: [&str; 9] = [
    "exception or event *",
    "exception *Invalid*,System.TimeoutException and gc pause > 1ms within 1s",
    "event Microsoft-Windows-DotNETRuntime/GC* or event */* where Name:*",
    "event *DotNETRuntime/* where Count > 1, Reason != 0",
    "gc pause >= 0ms",
    "request > 0ms or request status >= 400 path *",
    "request duration < 1h status != 200 and (exception or disconnect)",
    "counter Any/* > 0 or counter Any/*:count >= 0 or cpu-usage < 80",
    "exit or crash or (gc > 1us and exception) or event A/B where x = \"y\"",
];

/// Bytes of what met a part: its words, and texts of the process, each cut at 120 characters. An event has
/// its names, and some fields.
const MAX_LENGTH: usize = (2 + 2 * 16) * 500;

fuzz_target!(|input: &[u8]| {
    let Some((&[choice, end, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let text = CONDITIONS[usize::from(choice) % CONDITIONS.len()];
    let own = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let made = dipc_fuzz::counters::recording(bytes);
    let known = Condition::parse(text).expect("a condition");
    for condition in [Some(known), Condition::parse(&own).ok()].iter().flatten() {
        for bytes in [bytes, &made] {
            dipc_fuzz::bounded(bytes.len(), || check(bytes, condition, end));
        }
    }
});

fn check(bytes: &[u8], condition: &Condition, end: u8) {
    let end =
        [StreamEnd::Exit, StreamEnd::Crash, StreamEnd::Disconnect, StreamEnd::Unknown][usize::from(end % 4)];
    let Ok(mut events) = SliceReader::new(bytes) else { return };
    let (mut evaluator, mut last) = (Evaluator::new(condition.clone()), RelativeTime::START);
    let _ = events.for_each(|event| {
        last = event.relative_time();
        evaluator.event(&event, |met| check_match(&met, last));
    });
    evaluator.finish(|met| check_match(&met, met.time));
    if let Some(met) = evaluator.end(end, last) {
        check_match(&met, last);
    }
    let Ok(events) = SliceReader::new(bytes) else { return };
    let mut evaluator = Evaluator::new(condition.clone());
    let _ = events.in_time_order().for_each(|event| {
        evaluator.event(&event, |met| check_match(&met, event.relative_time()));
    });
}

fn check_match(met: &Match, now: RelativeTime) {
    // A value of a counter may be judged later.
    assert!(met.time == now || met.what.contains("counter "));
    assert!(!met.what.is_empty());
    let parts = met.what.split(" and ").count();
    assert!(met.what.len() <= MAX_LENGTH * parts, "{} bytes", met.what.len());
}
