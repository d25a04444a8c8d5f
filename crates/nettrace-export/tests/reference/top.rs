//! Shares of methods.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use nettrace_export::report::top;
use nettrace_export::{By, Options};

use crate::{bytes_of, comparable, profile_of, shared, testdata};

/// Inclusive and exclusive percent by name. The process is the only one whose name the other program does not know.
type Shares = BTreeMap<String, (f64, f64)>;

fn key(name: &str) -> String {
    if name.starts_with("Process64 ") { "(the process)".to_owned() } else { comparable(name) }
}

fn theirs(table: &str) -> Shares {
    let row = |line: &str| {
        let mut cells = line.splitn(3, '\t');
        let mut number = || cells.next().and_then(|cell| cell.parse().ok());
        let (inclusive, exclusive) = (number()?, number()?);
        Some((key(cells.next()?), (inclusive, exclusive)))
    };
    table.lines().map(|line| row(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[allow(clippy::cast_precision_loss, reason = "shares")]
fn ours(recording: &[u8]) -> Shares {
    let options = Options { tracks: false, kinds: false, ..Options::new(By::Wall) };
    let profile = profile_of(recording, options);
    let total = profile.total() as f64;
    let percent = |weight: u64| weight as f64 * 100.0 / total;
    let mut shares = Shares::new();
    for row in top(&profile) {
        let before = shares.insert(key(&row.frame), (percent(row.inclusive), percent(row.exclusive)));
        assert!(before.is_none(), "{} is there twice", row.frame);
    }
    shares
}

fn compare(name: &str, recording: &[u8], table: &str) {
    let (ours, theirs) = (ours(recording), theirs(table));
    assert!(theirs.len() > 50, "{name}: the other program's table is too short");
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
    let mut worst = 0f64;
    for (frame, (inclusive, exclusive)) in &theirs {
        let own = ours[frame];
        let difference = (own.0 - inclusive).abs().max((own.1 - exclusive).abs());
        assert!(difference < 0.01, "{name}: {frame}: {own:?} for {:?}", (inclusive, exclusive));
        worst = worst.max(difference);
    }
    println!("{name}: {} rows, largest difference {worst:.6} points", theirs.len());
}

#[test]
fn shares_of_methods_are_those_that_another_program_computes() {
    let recording = bytes_of(&testdata().join("traces/net10-sample.nettrace.xz"));
    let table = bytes_of(&testdata().join("reference/net10-sample.topn.tsv.xz"));
    compare("net10-sample", &recording, &String::from_utf8(table).unwrap());
}

fn computed(shared: &Path, name: &str) -> String {
    let reference = shared.join("traces/reference");
    let output = Command::new("python3")
        .arg(shared.join("tools/threadtime.py"))
        .arg(reference.join(format!("{name}.events.jsonl.xz")))
        .arg(reference.join(format!("{name}.stacks.jsonl.xz")))
        .arg("--plain")
        .output()
        .expect("python3, which the larger collection's programs need");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shares_of_methods_in_the_larger_collection() {
    let Some(shared) = shared() else { return };
    for name in ["net8-sample", "net8-all", "net10-sample", "net10-all"] {
        let recording = bytes_of(&shared.join(format!("traces/real/{name}.nettrace.xz")));
        compare(name, &recording, &computed(&shared, name));
    }
}
