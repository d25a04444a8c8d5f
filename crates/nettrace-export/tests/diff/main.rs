//! Comparisons of recordings of a simulated service: exactly the planted changes are found.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "simulated times and amounts are small"
)]

mod pprof;
mod recording;
mod stacks;

use std::collections::BTreeSet;

use nettrace_export::diff::{
    Basis, Change, Comparison, ComparisonOptions, Kind, Noise, Rule, Run, RunBuilder, RunOptions, Statistic,
    Verdict,
};
use recording::Program;

fn findings(comparison: &Comparison) -> BTreeSet<(Kind, String, Statistic, Verdict)> {
    let found = comparison.changes.iter().filter(|change| change.is_finding());
    found
        .map(|change| (change.subject.kind, change.name().to_owned(), change.statistic, change.verdict))
        .collect()
}

fn runs(seeds: std::ops::Range<u64>, program: impl Fn(Program) -> Program) -> Vec<Run> {
    seeds.map(|seed| program(Program::new(seed, 20).of_run()).run()).collect()
}

fn change<'c>(comparison: &'c Comparison, kind: Kind, name: &str, statistic: Statistic) -> &'c Change {
    let is_it = |change: &&Change| {
        change.subject.kind == kind && change.name().contains(name) && change.statistic == statistic
    };
    comparison.changes.iter().find(is_it).unwrap()
}

/// The subjects of the planted slow-down. Whatever calls the slower method takes longer as well.
fn is_planted(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Cpu => name.contains("Price") || name.is_empty(),
        Kind::CpuInclusive => ["Price", "Handle", "WorkerThreadStart"].iter().any(|it| name.contains(it)),
        Kind::Requests => name == "GET /price" || name.is_empty(),
        _ => false,
    }
}

#[test]
fn a_tenth_more_is_found_between_runs_and_nothing_else() {
    let comparison = Comparison::new(
        &runs(1..9, |it| it),
        &runs(101..109, Program::slower),
        &ComparisonOptions::default(),
    );
    assert_eq!((comparison.noise, comparison.units), (Noise::Runs, [8, 8]));
    let found = findings(&comparison);
    for (kind, name, statistic) in
        [(Kind::Requests, "GET /price", Statistic::P50), (Kind::Requests, "GET /price", Statistic::Mean)]
    {
        assert!(found.contains(&(kind, name.to_owned(), statistic, Verdict::Worse)), "{name}: {found:#?}");
    }
    assert!(
        found.iter().all(|(kind, name, _, verdict)| is_planted(*kind, name) && *verdict == Verdict::Worse),
        "{found:#?}"
    );
    let mean = change(&comparison, Kind::Requests, "GET /price", Statistic::Mean);
    let relative = mean.relative_change().unwrap();
    assert!((0.07..0.13).contains(&relative), "{relative}");
    let interval = mean.interval.unwrap();
    let planted = mean.base.value.unwrap() * 0.1;
    assert!(interval.low < planted && planted < interval.high, "{interval:?} {planted}");
}

/// The simulated jobs arrive at random, so the time of a method varies by some percent from one recording
/// of 20 s to the next. 60 s at a sample each millisecond have enough of them.
#[test]
fn a_slower_method_is_found_between_runs_of_a_minute() {
    let long = |seeds: std::ops::Range<u64>, price: f64| -> Vec<Run> {
        let run = |seed| Program { price, ..Program::new(seed, 60) }.of_run().run();
        seeds.map(run).collect()
    };
    let comparison = Comparison::new(&long(1..9, 1.0), &long(101..109, 1.4), &ComparisonOptions::default());
    let found = findings(&comparison);
    let price = change(&comparison, Kind::Cpu, "Price", Statistic::Amount);
    assert_eq!(price.verdict, Verdict::Worse, "{price:?}");
    assert!(
        found.iter().all(|(kind, name, _, verdict)| is_planted(*kind, name) && *verdict == Verdict::Worse),
        "{found:#?}"
    );
}

#[test]
fn a_change_is_found_within_one_recording_a_side() {
    let base = [Program::new(1, 60).run()];
    let new = [Program { price_requests: 1.2, orders_allocated: 2.0, ..Program::new(2, 60) }.run()];
    let comparison = Comparison::new(&base, &new, &ComparisonOptions::default());
    assert_eq!((comparison.noise, comparison.units), (Noise::Stretches, [20, 20]));
    let found = findings(&comparison);
    let order = (Kind::Allocations, "Shop.Order".to_owned(), Statistic::Amount, Verdict::Worse);
    let price = (Kind::Requests, "GET /price".to_owned(), Statistic::P50, Verdict::Worse);
    assert!(found.contains(&order) && found.contains(&price), "{found:#?}");
    let allocating = change(&comparison, Kind::AllocatingMethods, "Load", Statistic::Amount);
    assert_eq!(allocating.verdict, Verdict::Worse, "{allocating:?}");
    let is_planted = |kind, name: &str| match kind {
        Kind::Allocations => name == "Shop.Order" || name.is_empty(),
        Kind::AllocatingMethods => name.contains("Load"),
        _ => is_planted(kind, name),
    };
    assert!(
        found.iter().all(|(kind, name, _, verdict)| is_planted(*kind, name) && *verdict == Verdict::Worse),
        "{found:#?}"
    );
}

/// 100 pairs of the same program, half of them pairs of single recordings and half of them three runs a side,
/// each run with a speed of its own.
#[test]
fn pairs_of_the_same_program_differ_by_noise() {
    let mut alarms = Vec::new();
    let mut tested = 0;
    for pair in 0..100u64 {
        let runs = if pair % 2 == 0 { 1 } else { 3 };
        let seconds = if runs == 1 { 30 } else { 10 };
        let side = |side: u64| -> Vec<Run> {
            let seed = |run| 1_000_000 + pair * 100 + side * 10 + run;
            (0..runs).map(|run| Program::new(seed(run), seconds).of_run().run()).collect()
        };
        let comparison = Comparison::new(&side(0), &side(1), &ComparisonOptions::default());
        tested += comparison.tested;
        alarms.extend(findings(&comparison).into_iter().map(|finding| (pair, finding)));
    }
    // There was something to be found.
    assert!(tested > 100 * 15, "{tested}");
    assert!(alarms.len() <= 5, "{} of {tested}: {alarms:#?}", alarms.len());
}

#[test]
fn recordings_that_are_too_short_are_not_judged() {
    let [base, new] = [1, 2].map(|seed| [Program { price: 3.0, ..Program::new(seed, 3) }.run()]);
    let comparison = Comparison::new(&base, &new, &ComparisonOptions::default());
    assert_eq!((comparison.noise, comparison.tested), (Noise::Unknown, 0));
    assert!(comparison.changes.iter().all(|change| change.verdict == Verdict::Unknown));
    assert!(change(&comparison, Kind::Cpu, "Price", Statistic::Amount).relative_change().is_some());
}

/// The sums of a run equal the sums of the events, whatever the slices.
#[test]
fn amounts_match_the_recording() {
    let run = [Program::new(5, 20).run()];
    let comparison = Comparison::new(&run, &run, &ComparisonOptions::default());
    let requests = change(&comparison, Kind::Requests, "/orders", Statistic::Count);
    // 40 a second.
    assert!((requests.base.count - 800.0).abs() < 1e-9);
    assert!((requests.base.value.unwrap() - 40.0).abs() < 0.1, "{requests:?}");
    let all = change(&comparison, Kind::Cpu, "", Statistic::Amount).base.value.unwrap();
    let handle = change(&comparison, Kind::CpuInclusive, "Handle", Statistic::Amount).base;
    // A job each 28 ms, of 14.6 ms in the mean.
    assert!((0.44e9..0.6e9).contains(&all), "{all}");
    assert!((handle.value.unwrap() / all - 1.0).abs() < 1e-9 && handle.share.unwrap() > 0.999);
    let methods = comparison.changes.iter().filter(|it| it.subject.kind == Kind::Cpu && !it.subject.is_all());
    let sum: f64 = methods.map(|change| change.base.value.unwrap()).sum();
    assert!((sum / all - 1.0).abs() < 1e-9, "{sum} {all}");
    // Nothing differs from itself.
    assert!(comparison.changes.iter().all(|change| change.difference() == Some(0.0)));
    assert_eq!(findings(&comparison), BTreeSet::new());
}

#[test]
fn amounts_refer_to_the_basis() {
    let run = [Program::new(5, 20).run()];
    let of = |basis| {
        let comparison = Comparison::new(&run, &run, &ComparisonOptions::default().with_basis(basis));
        change(&comparison, Kind::Cpu, "Price", Statistic::Amount).base.value.unwrap()
    };
    let second = of(Basis::Second);
    assert!((of(Basis::Request) / (second / 80.0) - 1.0).abs() < 0.01);
    assert!((of(Basis::Run) / (second * 20.0) - 1.0).abs() < 0.01);
    assert!((0.2..0.6).contains(&of(Basis::Share)));
}

#[test]
fn rules_are_met_by_changes_that_are_not_noise() {
    let comparison = Comparison::new(
        &runs(1..9, |it| it),
        &runs(101..109, Program::slower),
        &ComparisonOptions::default(),
    );
    let met = |rule: &str| {
        let outcome = rule.parse::<Rule>().unwrap().apply(&comparison, 1);
        assert!(!outcome.matched.is_empty(), "{rule}");
        outcome.met.iter().map(|change| change.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(met("GET /price mean > +5%"), ["GET /price"]);
    assert_eq!(met("GET /price mean > +15%"), [""; 0]);
    assert_eq!(met("GET /orders mean > +0%"), [""; 0]);
    assert_eq!(met("/ p50 > +5%"), ["GET /price"]);
    assert_eq!(met("GET /orders p50 > 1ms"), ["GET /orders"]);
    let none = "GET /nothing p50 > 1%".parse::<Rule>().unwrap().apply(&comparison, 1);
    assert!(none.matched.is_empty() && none.met.is_empty());
}

/// Two recordings a side cannot tell half as much again from noise. It is not "the same": the range says what
/// may be, and the condition of a pipeline is open.
#[test]
fn large_changes_that_noise_may_explain_are_undecided() {
    let slower = |it: Program| Program { price: 1.5, ..it };
    let comparison =
        Comparison::new(&runs(1..3, |it| it), &runs(101..103, slower), &ComparisonOptions::default());
    let price = change(&comparison, Kind::Cpu, "Price", Statistic::Amount);
    assert_eq!(price.verdict, Verdict::Undecided, "{price:?}");
    let (range, base) = (price.judged_interval.unwrap(), price.base.value.unwrap());
    assert!(range.low < 0.0 && range.high > base * 0.5, "{price:?}");
    assert!(price.is_of_interest() && price.detectable().unwrap() > price.difference().unwrap());
    let needed = price.deciding_units().expect("some recordings decide");
    assert!((3..100).contains(&needed), "{needed}");
    let outcome = "Price cpu > +10%".parse::<Rule>().unwrap().apply(&comparison, 1);
    assert_eq!((outcome.met.len(), outcome.undecided.len()), (0, 1));
    assert_eq!(outcome.undecided[0].name(), price.name());
    let excluded = "Price cpu > +100000%".parse::<Rule>().unwrap().apply(&comparison, 1);
    assert!(excluded.met.is_empty() && excluded.undecided.is_empty());
}

#[test]
fn verdicts_and_ranges_agree() {
    for (count, price) in [(2, 1.0), (4, 1.3), (8, 1.1)] {
        let new = |it: Program| Program { price, price_requests: price, ..it };
        let sides = [runs(1..1 + count, |it| it), runs(101..101 + count, new)];
        let comparison = Comparison::new(&sides[0], &sides[1], &ComparisonOptions::default());
        for change in &comparison.changes {
            let Some(range) = change.judged_interval else {
                assert_eq!(change.verdict, Verdict::Unknown);
                continue;
            };
            let excludes_zero = range.low > 0.0 || range.high < 0.0;
            assert_eq!(change.is_finding(), excludes_zero && change.is_of_interest(), "{change:?}");
            let limit = 0.05 * change.base.value.unwrap();
            if range.low < -limit || range.high > limit {
                let is_small = change.subject.kind.name() != "requests" && !change.subject.is_all();
                assert!(change.verdict != Verdict::Same || is_small, "{change:?}");
            }
        }
    }
}

/// A job calls nothing, all jobs are below `Handle`, and that is all that the worker does: of 15 differences
/// of CPU time 8 have the numbers of another one, and cost no part of the error rate.
#[test]
fn the_same_numbers_are_one_test() {
    let sides = [runs(1..9, |it| it), runs(101..109, |it| it)];
    let comparison = Comparison::new(&sides[0], &sides[1], &ComparisonOptions::default());
    let judged = comparison.changes.iter().filter(|change| change.adjusted_probability.is_some());
    let (of_cpu, others): (Vec<_>, Vec<_>) =
        judged.partition(|change| matches!(change.subject.kind, Kind::Cpu | Kind::CpuInclusive));
    assert_eq!((of_cpu.len(), comparison.tested), (15, 7 + others.len()));
}

/// A kind that only one side has may not have been recorded on the other.
#[test]
fn kinds_of_one_side_are_named_and_not_compared() {
    let base = [Program { orders_allocated: 1.0, ..Program::new(1, 6) }.run()];
    let empty = [{
        let bytes = nettrace_synth::nettrace::Trace::new(&nettrace_synth::TraceHeader::default()).finish();
        let recording = nettrace::SliceReader::new(&bytes).unwrap();
        RunBuilder::new(RunOptions::default(), recording.info()).finish(recording.info())
    }];
    let comparison = Comparison::new(&base, &empty, &ComparisonOptions::default());
    assert!(comparison.changes.is_empty());
    let kinds: Vec<_> = comparison.one_sided.iter().map(|it| (it.kind, it.is_new)).collect();
    assert_eq!(kinds, [Kind::Requests, Kind::Cpu, Kind::Allocations].map(|kind| (kind, false)));
}
