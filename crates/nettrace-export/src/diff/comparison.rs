//! The differences between two sides, distinguished from noise.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::diff::allowance::{Allowance, queued};
use crate::diff::estimate::{EstimateOptions, Interval, UnitSums, estimate};
use crate::diff::family::Family;
use crate::diff::run::Run;
use crate::diff::sides::{Noise, SideUnits};
use crate::diff::subject::{Basis, Kind, Statistic, Subject, unit_symbol};
use crate::diff::test::Test;
use crate::diff::verdict::Verdict;
use crate::profile::measure::Unit;

/// Settings of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ComparisonOptions {
    /// The unit that amounts refer to.
    pub basis: Basis,
    /// The relative change below which a difference is not a finding: 0.05 by default.
    pub least_change: f64,
    /// The chance of any false finding in a comparison: 0.01 by default.
    pub error_rate: f64,
    /// The relative difference between two runs of the same program that is taken for granted where a side
    /// has one run: 0.03 by default. More is where the runs differ in the time without a processor or in the
    /// kernel's part.
    pub allowance: f64,
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self { basis: Basis::Second, least_change: 0.05, error_rate: 0.01, allowance: 0.03 }
    }
}

impl ComparisonOptions {
    /// With this [`basis`](Self::basis).
    #[must_use]
    pub const fn with_basis(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }

    /// With this [`least_change`](Self::least_change).
    #[must_use]
    pub const fn with_least_change(self, least_change: f64) -> Self {
        Self { least_change, ..self }
    }
}

/// Minimum share of a kind's total for a method or type to be tested, and minimum difference in share for a
/// finding.
pub(super) const MIN_SHARE: f64 = 0.005;
/// Minimum difference of pauses, or of waits of all threads, as a share of time.
const MIN_TIME: f64 = 0.001;
/// The events or samples, of both sides, from which an amount or a number is tested.
pub(super) const MIN_EVENTS: f64 = 20.0;
/// The durations of each side from which the mean and the median are tested, and the 99th percentile.
const MIN_DURATIONS: f64 = 50.0;
const MIN_DURATIONS_P99: f64 = 500.0;

/// The probability outside the interval of a difference alone.
pub(super) const OUTSIDE_INTERVAL: f64 = 0.05;

/// A number of a subject on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Side {
    /// The value; `None` if it is undefined, such as the median of no durations.
    pub value: Option<f64>,
    /// The same amount for each second, whatever the basis; `None` for durations.
    pub per_second: Option<f64>,
    /// The share of the kind's total; `None` for durations, and where a share is meaningless.
    pub share: Option<f64>,
    /// The number of events or samples.
    pub count: f64,
}

/// A number of a subject on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The kind, and the whole name.
    #[serde(skip)]
    pub subject: Subject,
    /// The name in C#, if it differs.
    #[serde(skip)]
    pub csharp: Option<String>,
    /// The statistic.
    pub statistic: Statistic,
    /// The unit of values, before the basis.
    #[serde(serialize_with = "unit_symbol")]
    pub unit: Unit,
    /// The base.
    pub base: Side,
    /// The new one.
    pub new: Side,
    /// The interval of the difference of the values, with 95 % confidence for each difference alone; `None`
    /// if the noise is unknown.
    pub interval: Option<Interval>,
    /// The probability of such a difference by chance; `None` if the noise is unknown.
    pub probability: Option<f64>,
    /// The same, adjusted for the number of tested differences; `None` for differences that were not tested.
    pub adjusted_probability: Option<f64>,
    /// The interval of the difference that the judgement used: all of a comparison hold together with the
    /// confidence that the [error rate](ComparisonOptions::error_rate) leaves. `None` if it was not tested.
    pub judged_interval: Option<Interval>,
    /// The judgement.
    pub verdict: Verdict,
    #[serde(skip)]
    pub(super) test: Option<Test>,
    /// The level of the test within its comparison.
    #[serde(skip)]
    level: f64,
    /// Smaller differences are irrelevant.
    #[serde(skip)]
    limit: f64,
}

impl Change {
    /// The difference of the values.
    pub fn difference(&self) -> Option<f64> {
        Some(self.new.value? - self.base.value?)
    }

    /// The difference, relative to the base; `None` if the base is 0.
    pub fn relative_change(&self) -> Option<f64> {
        let base = self.base.value.filter(|base| *base > 0.0)?;
        Some(self.difference()? / base)
    }

    /// Judges the difference at the level that its test has among all.
    fn judge(&mut self, adjusted_probability: f64, level: f64) {
        let Some(test) = self.test else { return };
        self.adjusted_probability = Some(adjusted_probability);
        self.level = level;
        self.judged_interval = Some(test.interval(level));
        let is_load = self.subject.kind.is_spans() && self.statistic == Statistic::Count;
        self.verdict = match test.judge(level, self.limit) {
            Verdict::Worse | Verdict::Better if is_load => Verdict::Different,
            verdict => verdict,
        };
    }

    /// The name in C#, or the whole name.
    pub fn name(&self) -> &str {
        self.csharp.as_deref().unwrap_or(&self.subject.name)
    }

    /// Returns how many recordings of a side, or stretches of them, decide about a change of this size and
    /// with this noise in eight of ten comparisons; `None` if it is decided, if it was not tested, or if they
    /// are more than 1,000.
    pub fn deciding_units(&self) -> Option<usize> {
        self.test.filter(|_| self.verdict == Verdict::Undecided)?.deciding_units(self.level, self.limit)
    }

    /// Returns the smallest difference that would have been a finding; `None` if it was not tested.
    pub fn detectable(&self) -> Option<f64> {
        self.judged_interval.map(|interval| ((interval.high - interval.low) / 2.0).max(self.limit))
    }

    /// Returns true if the difference is large enough to be of interest, noise or not.
    pub fn is_of_interest(&self) -> bool {
        self.difference().is_some_and(|difference| difference != 0.0 && difference.abs() >= self.limit)
    }

    /// Returns true if it is a finding.
    pub const fn is_finding(&self) -> bool {
        matches!(self.verdict, Verdict::Worse | Verdict::Better | Verdict::Different)
    }
}

/// A kind with events on only one side: it may not have been recorded on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OneSided {
    /// The kind.
    pub kind: Kind,
    /// True if the new side has them.
    pub is_new: bool,
}

/// A comparison of two sides.
///
/// ```
/// # use nettrace_export::diff::Run;
/// # use nettrace_export::nettrace::RelativeTime;
/// # use nettrace_export::{Format, Measure, StackProfileBuilder, Unit, WriteOptions};
/// # let run = |weight: u64| -> Result<Run, Box<dyn std::error::Error>> {
/// #     let mut builder = StackProfileBuilder::new(Measure::new("cpu", "samples", Unit::Nanoseconds));
/// #     for sample in 0..1000 {
/// #         let time = RelativeTime::from_nanos(sample * 1_000_000);
/// #         builder.add_sample(42, 7, time, 1_000_000, ["Shop!Program.Main()", "Shop!Cart.Load()"]);
/// #         builder.add_sample(42, 7, time, weight, ["Shop!Program.Main()", "Shop!Tax.Rate()"]);
/// #     }
/// #     let mut pprof = Vec::new();
/// #     nettrace_export::write(&builder.finish(), Format::Pprof, WriteOptions::new("a", "b"), &mut pprof)?;
/// #     Ok(Run::of_pprof(&pprof)?)
/// # };
/// # let base = [run(1_000_000)?, run(1_010_000)?, run(990_000)?, run(1_000_000)?];
/// # let new = [run(3_000_000)?, run(3_010_000)?, run(2_990_000)?, run(3_000_000)?];
/// use nettrace_export::diff::{Comparison, ComparisonOptions, Verdict};
///
/// let comparison = Comparison::new(&base, &new, &ComparisonOptions::default());
/// let worse: Vec<_> = comparison.findings(Verdict::Worse).map(|change| change.name()).collect();
/// assert!(worse.iter().any(|name| name.ends_with("Tax.Rate()")), "{worse:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// The settings.
    pub options: ComparisonOptions,
    /// The source of the noise.
    pub noise: Noise,
    /// The units of each side: runs, or stretches of runs.
    pub units: [usize; 2],
    /// The part of the time in which threads could run that they spent without a processor, of each side;
    /// `None` if the kernel's account of a recording is unknown.
    pub queued: [Option<f64>; 2],
    /// The number of differences that were tested.
    pub tested: usize,
    /// By kind; all of the kind first, then findings, the largest first, then the rest.
    pub changes: Vec<Change>,
    /// Kinds that are not compared.
    pub one_sided: Vec<OneSided>,
}

/// A subject's sums on a side, over all of its time.
#[derive(Clone, Copy)]
struct Totals {
    amount: f64,
    count: f64,
    squares: f64,
    seconds: f64,
}

fn totals(runs: &[Run], subject: &Subject) -> Totals {
    let mut totals = Totals { amount: 0.0, count: 0.0, squares: 0.0, seconds: 0.0 };
    for run in runs {
        for cell in run.cells.get(subject).into_iter().flatten() {
            totals.amount += cell.amount;
            totals.count += cell.count;
            totals.squares += cell.squares;
        }
        totals.seconds += run.seconds.iter().sum::<f64>();
    }
    totals
}

impl Comparison {
    /// Compares two sides of one or more runs each.
    pub fn new(base: &[Run], new: &[Run], options: &ComparisonOptions) -> Self {
        let (sides, noise) = SideUnits::of(base, new);
        let allowance = Allowance::new(&sides, noise, options.basis, options.allowance);
        let units = [sides[0].stretches.len(), sides[1].stretches.len()];
        let has = |runs: &[Run], kind| runs.iter().any(|run| run.has(kind));
        let subjects: BTreeSet<_> = base.iter().chain(new).flat_map(|run| run.cells.keys()).collect();
        let mut one_sided = Vec::new();
        let mut changes = Vec::new();
        let mut family = Family::default();
        // The sum of all allocating methods equals the sum of all types.
        let is_twice = |subject: &&&Subject| subject.is_all() && subject.kind == Kind::AllocatingMethods;
        for subject in subjects.iter().filter(|subject| !is_twice(subject)) {
            match (has(base, subject.kind), has(new, subject.kind)) {
                (true, true) => {}
                (_, is_new) => {
                    let kind = OneSided { kind: subject.kind, is_new };
                    if !one_sided.contains(&kind) && !subject.kind.is_second_view() {
                        one_sided.push(kind);
                    }
                    continue;
                }
            }
            let is_share_of_all =
                options.basis == Basis::Share && subject.is_all() && !subject.kind.is_spans();
            for statistic in subject.kind.statistics() {
                if !is_share_of_all || statistic.is_duration() {
                    let (change, units) = change(&sides, subject, *statistic, &allowance, options);
                    if let Some(test) = change.test.filter(|_| has_enough(&change)) {
                        family.add(changes.len(), &change.subject, test.probability, &units);
                    }
                    changes.push(change);
                }
            }
        }
        let tested = family.tests();
        for (index, adjusted) in family.adjust(options.error_rate) {
            if let Some(change) = changes.get_mut(index) {
                change.judge(adjusted.probability, adjusted.level);
            }
        }
        sort(&mut changes);
        let queued = [queued(base), queued(new)];
        Self { options: *options, noise, units, queued, tested, changes, one_sided }
    }

    /// The findings of one verdict: the kinds in their order, the largest of each first.
    pub fn findings(&self, verdict: Verdict) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.verdict == verdict && change.is_finding())
    }
}

/// Sorts by kind, then all of the kind first, then findings, then by size.
fn sort(changes: &mut [Change]) {
    changes.sort_by(|a, b| {
        let key = |change: &Change| (change.subject.kind, !change.subject.is_all(), !change.is_finding());
        let size = |change: &Change| {
            // The numbers of a route stay together. For amounts, the change of the whole counts.
            if a.subject.kind.is_spans() { 0.0 } else { change.difference().unwrap_or(0.0).abs() }
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| (&a.subject.name, a.statistic).cmp(&(&b.subject.name, b.statistic)))
    });
}

/// Returns a change that is not yet judged, with the units of both sides.
fn change(
    sides: &[SideUnits<'_>; 2],
    subject: &Subject,
    statistic: Statistic,
    allowance: &Allowance,
    options: &ComparisonOptions,
) -> (Change, [Vec<UnitSums>; 2]) {
    let kind = subject.kind;
    let all = Subject::all(if kind == Kind::CpuInclusive { Kind::Cpu } else { kind });
    let of = [totals(sides[0].runs, subject), totals(sides[1].runs, subject)];
    let of_all = [totals(sides[0].runs, &all), totals(sides[1].runs, &all)];
    let count = of[0].count + of[1].count;
    let typical_square = if count > 0.0 { (of[0].squares + of[1].squares) / count } else { 0.0 };
    let units = [0, 1].map(|side: usize| sides[side].units(subject, statistic, options.basis));
    let estimates = [0, 1].map(|side: usize| {
        estimate(
            &units[side],
            &sides[side].draws,
            EstimateOptions {
                statistic,
                is_sampled: kind.is_sampled(),
                typical_square,
                are_stretches: allowance.is_of_stretches(),
            },
        )
    });
    let side = |index: usize| {
        let number =
            |totals: Totals| if statistic == Statistic::Count { totals.count } else { totals.amount };
        let (amount, all) = (number(of[index]), number(of_all[index]));
        let divided = |by: f64| (!statistic.is_duration() && by > 0.0).then(|| amount / by);
        Side {
            value: estimates[index].map(|estimate| estimate.value),
            per_second: divided(of[index].seconds),
            share: divided(all).filter(|_| !subject.is_all()),
            count: of[index].count,
        }
    };
    let (base, new) = (side(0), side(1));
    let test = allowance.test(kind, statistic, estimates, &units);
    let mut change = Change {
        subject: subject.clone(),
        csharp: sides
            .iter()
            .flat_map(|side| side.runs)
            .find_map(|run| run.csharp(&subject.name))
            .map(str::to_owned),
        statistic,
        unit: match statistic {
            Statistic::Count => Unit::Count,
            _ => sides[0].runs.first().map_or(Unit::Nanoseconds, |run| run.unit(kind)),
        },
        base,
        new,
        interval: test.map(|test| test.interval(OUTSIDE_INTERVAL)),
        probability: test.map(|test| test.probability),
        adjusted_probability: None,
        judged_interval: None,
        verdict: Verdict::Unknown,
        test,
        level: 0.0,
        limit: 0.0,
    };
    change.limit = limit(&change, options);
    (change, units)
}

/// Returns true if there are enough events for a judgement. A method or type counts that is large on either
/// side.
fn has_enough(change: &Change) -> bool {
    let (base, new) = (change.base, change.new);
    let both = |least: f64| base.count >= least && new.count >= least;
    match change.statistic {
        Statistic::Mean | Statistic::P50 => both(MIN_DURATIONS),
        Statistic::P99 => both(MIN_DURATIONS_P99),
        Statistic::Amount | Statistic::Count => {
            let share = base.share.unwrap_or(0.0).max(new.share.unwrap_or(0.0));
            let is_part = change.subject.kind.is_sampled() && !change.subject.is_all();
            base.count + new.count >= MIN_EVENTS && (!is_part || share >= MIN_SHARE)
        }
    }
}

/// Returns the smallest relevant difference of the values.
fn limit(change: &Change, options: &ComparisonOptions) -> f64 {
    let relative = options.least_change * change.base.value.unwrap_or(0.0);
    let per_second = |side: Side| side.per_second.unwrap_or(0.0);
    // The whole of that side on which there is more of it.
    let whole = |side: Side| match side.share {
        Some(share) if share > 0.0 => per_second(side) / share,
        _ => 0.0,
    };
    let felt = match (change.subject.kind, change.statistic) {
        _ if options.basis != Basis::Second => 0.0,
        (kind, Statistic::Amount) if kind.is_sampled() && !change.subject.is_all() => {
            MIN_SHARE * whole(change.base).max(whole(change.new))
        }
        (Kind::GcPauses | Kind::LockWaits, Statistic::Amount) => MIN_TIME * 1e9,
        _ => 0.0,
    };
    relative.max(felt)
}
