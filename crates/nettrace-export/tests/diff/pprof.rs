//! Profiles of pprof as sides of comparisons, of this crate's writer and of bytes written by hand.

use nettrace_export::diff::{
    Basis, Comparison, ComparisonOptions, Kind, Noise, PprofError, Run, StackComparison, Statistic, is_pprof,
};
use nettrace_export::{Format, Measure, StackProfileBuilder, Unit, WriteOptions};

use crate::change;

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn packed(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in numbers {
        varint(&mut out, *number);
    }
    out
}

/// A profile as Go's runtime writes it: `samples/count` and `cpu/nanoseconds`; functions are numbered from 1.
/// Each sample is a stack, leaf first, with its number of samples and nanoseconds.
fn go_profile(functions: &[&str], samples: &[(&[u64], u64, u64)], nanoseconds: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut strings = vec!["", "samples", "count", "cpu", "nanoseconds"];
    for (kind, unit) in [(1, 2), (3, 4)] {
        let mut of = Vec::new();
        number(&mut of, 1, kind);
        number(&mut of, 2, unit);
        bytes(&mut out, 1, &of);
    }
    for (stack, count, time) in samples {
        let mut sample = Vec::new();
        bytes(&mut sample, 1, &packed(stack));
        bytes(&mut sample, 2, &packed(&[*count, *time]));
        bytes(&mut out, 2, &sample);
    }
    for (id, name) in (1..).zip(functions) {
        let (mut line, mut location, mut function) = (Vec::new(), Vec::new(), Vec::new());
        number(&mut line, 1, id);
        number(&mut location, 1, id);
        bytes(&mut location, 4, &line);
        bytes(&mut out, 4, &location);
        number(&mut function, 1, id);
        number(&mut function, 2, strings.len() as u64);
        bytes(&mut out, 5, &function);
        strings.push(name);
    }
    for text in strings {
        bytes(&mut out, 6, text.as_bytes());
    }
    number(&mut out, 10, nanoseconds);
    out
}

const SECOND: u64 = 1_000_000_000;
/// main calls load and itself, load calls parse.
const FUNCTIONS: [&str; 3] = ["main.main", "main.load", "main.parse"];

fn profile(parse: u64) -> Run {
    let samples: [(&[u64], u64, u64); 4] = [
        (&[3, 2, 1], parse, parse * 10_000_000),
        (&[2, 1], 20, 200_000_000),
        (&[1, 1], 5, 50_000_000),
        (&[1], 10, 100_000_000),
    ];
    Run::of_pprof(&go_profile(&FUNCTIONS, &samples, 2 * SECOND)).unwrap()
}

#[test]
fn amounts_match_the_samples() {
    let side = [profile(40)];
    let comparison = Comparison::new(&side, &side, &ComparisonOptions::default());
    assert_eq!(comparison.noise, Noise::Unknown);
    let of = |kind, name| change(&comparison, kind, name, Statistic::Amount).base;
    // Per second, of two seconds.
    for (kind, name, expected) in [
        (Kind::Cpu, "", 375e6),
        (Kind::Cpu, "main.main", 75e6),
        (Kind::Cpu, "main.load", 100e6),
        (Kind::Cpu, "main.parse", 200e6),
        // Recursion counts once.
        (Kind::CpuInclusive, "main.main", 375e6),
        (Kind::CpuInclusive, "main.load", 300e6),
        (Kind::CpuInclusive, "main.parse", 200e6),
    ] {
        assert!(
            (of(kind, name).value.unwrap() - expected).abs() < 1.0,
            "{kind:?} {name}: {:?}",
            of(kind, name)
        );
    }
    assert!((of(Kind::Cpu, "main.parse").count - 40.0).abs() < 1e-6);
}

#[test]
fn several_profiles_a_side_tell_noise_apart() {
    let sides = [[390, 400, 410, 400, 390], [590, 600, 610, 600, 610]].map(|side| side.map(profile));
    let comparison = Comparison::new(&sides[0], &sides[1], &ComparisonOptions::default());
    assert_eq!((comparison.noise, comparison.units), (Noise::Runs, [5, 5]));
    let found: Vec<_> = comparison
        .changes
        .iter()
        .filter(|it| it.is_finding())
        .map(|it| (it.subject.kind, it.name()))
        .collect();
    assert!(found.contains(&(Kind::Cpu, "main.parse")), "{found:?}");
    assert!(!found.contains(&(Kind::Cpu, "main.load")), "{found:?}");
    let stacks =
        StackComparison::new(&sides[0], &sides[1], &ComparisonOptions::default(), Some(Basis::Second));
    let names: Vec<_> = stacks.unwrap().nodes.iter().map(|node| node.name.clone()).collect();
    assert_eq!(names, ["", "main.main", "main.load", "main.parse", "main.main"]);
}

/// This crate reads its own output: names with modules, weights, bytes by type.
#[test]
fn written_profiles_are_read() {
    let written = |name, unit, stacks: &[(&[&str], u64)]| {
        let mut builder = StackProfileBuilder::new(Measure::new(name, "samples", unit));
        for (stack, weight) in stacks {
            builder.add_sample(1, 1, nettrace::RelativeTime::START, *weight, *stack);
        }
        let mut out = Vec::new();
        let options = WriteOptions::new("t", "tests");
        nettrace_export::write(&builder.finish(), Format::Pprof, options, &mut out).unwrap();
        assert!(is_pprof(&out));
        [Run::of_pprof(&out).unwrap()]
    };
    let time = written(
        "thread time",
        Unit::Nanoseconds,
        &[(&["App!Main()", "App!Hot()"], 300), (&["App!Main()"], 100)],
    );
    let comparison = Comparison::new(&time, &time, &ComparisonOptions::default());
    let hot = change(&comparison, Kind::Cpu, "App!Hot()", Statistic::Amount);
    assert!((hot.base.share.unwrap() - 0.75).abs() < 1e-9, "{hot:?}");
    let bytes = written("allocated bytes", Unit::Bytes, &[(&["App!Main()", "System.String"], 4096)]);
    let comparison = Comparison::new(&bytes, &bytes, &ComparisonOptions::default());
    let string = change(&comparison, Kind::Allocations, "System.String", Statistic::Amount);
    assert!((string.base.value.unwrap() - 4096.0).abs() < 1e-9, "{string:?}");
}

#[test]
fn rejects_files_other_than_profiles() {
    assert_eq!(Run::of_pprof(b"").unwrap_err(), PprofError::NoValues);
    assert_eq!(Run::of_pprof(b"\x1f\x8bnothing").unwrap_err(), PprofError::Gzip);
    assert_eq!(Run::of_pprof(b"\x0a\xff").unwrap_err(), PprofError::Malformed { offset: 0 });
    let whole = go_profile(&FUNCTIONS, &[(&[3, 2, 1], 1, 1), (&[9, 0, u64::MAX], 1, 1)], SECOND);
    // Numbers of missing locations are not frames.
    assert!(Run::of_pprof(&whole).is_ok());
    // Each part of it is read or refused.
    let read = (0..whole.len()).filter(|end| Run::of_pprof(&whole[..*end]).is_ok()).count();
    assert!(read > 0 && read < whole.len());
    assert!(!is_pprof(b"Nettrace") && !is_pprof(b""));
}

#[test]
fn deep_wide_and_large_profiles_are_bounded() {
    let deep = vec![1u64; 100_000];
    let wide: Vec<Vec<u64>> = (1..=3000u64).map(|id| vec![id]).collect();
    let names: Vec<String> = (0..3000).map(|number| format!("f{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut samples: Vec<(&[u64], u64, u64)> = wide.iter().map(|stack| (stack.as_slice(), 1, 1)).collect();
    samples.push((&deep, 1, 10_000));
    let run = [Run::of_pprof(&go_profile(&names, &samples, SECOND)).unwrap()];
    let stacks = StackComparison::new(&run, &run, &ComparisonOptions::default(), None).unwrap();
    assert_eq!(stacks.nodes.len(), 1 + 3000 + 511);
    assert!((stacks.nodes[0].amounts[0] - 13_000.0).abs() < 1e-6);
}

/// Empty messages, each of which would be an entry of a table.
#[test]
fn profiles_of_too_many_entries_are_refused() {
    for field in [0x0a, 0x22, 0x2a, 0x32] {
        let many = [field, 0x00].repeat((1 << 21) + 1);
        // Locations of one id are one.
        let expected = if field == 0x22 { PprofError::NoValues } else { PprofError::TooLarge };
        assert_eq!(Run::of_pprof(&many).unwrap_err(), expected, "{field}");
    }
}
