//! Time below the requests and the creators of tasks that it was spent for.

use std::collections::BTreeMap;
use std::process::Command;

use nettrace_export::{CausalGrouping, Metric, Options};

use crate::{bytes_of, comparable, profile_of, shared, testdata};

/// Nanoseconds by stack, root first.
type Stacks = BTreeMap<Vec<String>, u64>;

fn theirs(lines: &str) -> Stacks {
    let row = |line: &str| {
        let (weight, stack) = line.split_once('\t')?;
        Some((stack.split(';').map(comparable).collect(), weight.parse().ok()?))
    };
    lines.lines().map(|line| row(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn ours(recording: &[u8], grouping: CausalGrouping) -> Stacks {
    let profile =
        profile_of(recording, Options::new(Metric::Wall).with_tracks(false).with_grouping(grouping));
    let mut stacks = Stacks::new();
    for total in &profile.stack_totals {
        let names = profile.names(total.stack.expect("all stacks are shown"));
        *stacks.entry(names.into_iter().map(comparable).collect()).or_default() += total.weight;
    }
    stacks.retain(|_, weight| *weight > 0);
    stacks
}

pub(crate) const BOTH: CausalGrouping = CausalGrouping::NONE.with_tasks(true).with_requests(true);

fn compare(name: &str, recording: &[u8], lines: &str) {
    let (ours, theirs) = (ours(recording, BOTH), theirs(lines));
    assert!(theirs.keys().any(|stack| stack.iter().any(|frame| frame == "STARTING TASK")), "{name}");
    for (stack, weight) in &theirs {
        assert_eq!(ours.get(stack), Some(weight), "{name}: {stack:#?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    println!("{name}: {} stacks", theirs.len());
}

fn recording() -> Vec<u8> {
    bytes_of(&testdata().join("traces/net9-joined.nettrace.xz"))
}

#[test]
fn joined_stacks_match_another_program() {
    let lines = bytes_of(&testdata().join("reference/net9-joined.stacks.tsv.xz"));
    compare("net9-joined", &recording(), &String::from_utf8(lines).unwrap());
}

#[test]
fn joined_stacks_of_the_larger_collection_match_another_program() {
    let Some(shared) = shared() else { return };
    for name in ["net8-all", "net10-all"] {
        let reference = shared.join("traces/reference");
        let output = Command::new("python3")
            .arg(testdata().join("reference/joined.py"))
            .arg(reference.join(format!("{name}.events.jsonl.xz")))
            .arg(reference.join(format!("{name}.stacks.jsonl.xz")))
            .arg("Workload-Typed")
            .output()
            .expect("python3, which the larger collection's programs need");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let recording = bytes_of(&shared.join(format!("traces/real/{name}.nettrace.xz")));
        compare(name, &recording, &String::from_utf8(output.stdout).unwrap());
    }
}

/// The known work of the program: `testdata/workload/joined/Joined.cs`.
#[test]
fn time_is_where_the_program_spent_it() {
    let total = |stacks: &Stacks, frames: &[&str]| -> u64 {
        let has = |stack: &Vec<String>, frame: &&str| stack.iter().any(|name| name.contains(*frame));
        let of =
            |(stack, weight): (&Vec<String>, &u64)| frames.iter().all(|f| has(stack, f)).then_some(*weight);
        stacks.iter().filter_map(of).sum()
    };
    let stacks = ours(&recording(), BOTH);
    // The program burns three times as long for the one as for the other, in each of four methods.
    for method in ["BurnBefore", "BurnQuery", "BurnInTask", "BurnAfter"] {
        let (slow, fast) = (total(&stacks, &["url=/slow", method]), total(&stacks, &["url=/fast", method]));
        assert!(slow > 2 * fast && fast > 20_000_000, "{method}: {slow} and {fast}");
        assert_eq!(total(&stacks, &["(no request)", method]), 0, "{method}");
    }
    assert_eq!(total(&stacks, &["BurnQuery"]), total(&stacks, &["Request", "Query", "table=", "BurnQuery"]));
    for method in ["BurnInLoop", "BurnForNobody"] {
        assert!(total(&stacks, &["(no request)", method]) > 50_000_000, "{method}");
        assert_eq!(total(&stacks, &["url=", method]), 0, "{method}");
    }
    // The work of a task is below the method that requested it, and that below its own creator.
    let in_task = stacks.keys().filter(|stack| stack.iter().any(|name| name.contains("BurnInTask")));
    for stack in in_task {
        let at = |text: &str| {
            stack.iter().position(|name| name.contains(text)).unwrap_or_else(|| panic!("{text}: {stack:#?}"))
        };
        let places =
            ["Program.Main", "Program.Round", "STARTING TASK", "Program.Handle", "BurnInTask"].map(at);
        assert!(places.is_sorted(), "{stack:#?}");
    }
    // A loop of two hundred continuations is a few frames.
    let deepest = stacks.keys().map(Vec::len).max();
    assert!(deepest.is_some_and(|frames| frames < 60), "{deepest:?}");
    // Neither changes the time, nor its thread.
    let plain = ours(&recording(), CausalGrouping::default());
    assert_eq!(plain.values().sum::<u64>(), stacks.values().sum::<u64>());
}

/// The calls that the program's source has, whichever thread ran them: `testdata/workload/joined/Joined.cs`.
#[test]
fn awaits_match_the_source() {
    let request =
        ["joined!Program.Main()", "joined!Program.Round(int32)", "STARTING TASK", "AnonStorey", "<Handle>"];
    let below = |frames: &[&'static str]| [&request[..], frames].concat();
    let expected = [
        ("BurnBefore", below(&[])),
        ("BurnQuery", below(&["<Query>"])),
        ("BurnInTask", below(&["STARTING TASK", "AnonStorey"])),
        ("BurnAfter", below(&[])),
        ("BurnInLoop", vec![request[0], request[1], "<Loop>"]),
    ];
    let stacks = ours(&recording(), CausalGrouping::default().with_awaits(true));
    let mut left_over = Vec::new();
    for (method, callers) in &expected {
        let (mut whole, mut all) = (0, 0);
        for (stack, weight) in &stacks {
            let Some(at) = stack.iter().position(|name| name.contains(&format!("{method}("))) else {
                continue;
            };
            let is_same = |(name, part): (&String, &&str)| name.contains(*part);
            let is_whole = at == callers.len() && stack.iter().zip(callers).all(is_same);
            all += weight;
            if is_whole {
                whole += weight;
            } else {
                left_over.push((weight, stack));
            }
        }
        println!("{method}: {whole} of {all} ns");
        assert!(whole > 20_000_000, "{method}: {stacks:#?}");
    }
    assert!(left_over.is_empty(), "{left_over:#?}");
    let plain = ours(&recording(), CausalGrouping::default());
    assert_eq!(plain.values().sum::<u64>(), stacks.values().sum::<u64>());
    // No method gains or loses time of its own. The last frame is the kind of time.
    let own = |stacks: &Stacks| {
        let mut own = BTreeMap::<_, u64>::new();
        for (stack, weight) in stacks {
            *own.entry(stack.iter().nth_back(1).cloned()).or_default() += weight;
        }
        own
    };
    assert!(own(&plain) == own(&stacks));
}
