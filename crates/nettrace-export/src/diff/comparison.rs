//! The differences between two sides, and what is noise.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::diff::allowance::{Allowance, queued};
use crate::diff::estimate::{EstimateOptions, Interval, estimate};
use crate::diff::holm;
use crate::diff::run::Run;
use crate::diff::sides::{Noise, SideUnits};
use crate::diff::subject::{Basis, Kind, Statistic, Subject, unit_symbol};
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

/// The share of all of a kind from which a method or type is tested, and the share by which it must differ to
/// be a finding.
pub(super) const LEAST_SHARE: f64 = 0.005;
/// The share of time by which pauses, or waits of all threads, must differ.
const LEAST_TIME: f64 = 0.001;
/// The events or samples, of both sides, from which an amount or a number is tested.
pub(super) const LEAST_EVENTS: f64 = 20.0;
/// The durations of each side from which the mean and the median are tested, and the 99th percentile.
const LEAST_DURATIONS: f64 = 50.0;
const LEAST_DURATIONS_P99: f64 = 500.0;

/// The judgement of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// More time, bytes, exceptions or pauses, beyond noise.
    Worse,
    /// Less of them.
    Better,
    /// More or fewer requests, calls or operations, beyond noise: which of these is worse is not known.
    Different,
    /// The difference is smaller than is of interest, or may be noise.
    Same,
    /// Not judged: there are too few events, or the noise is not known.
    Unknown,
}

/// A number of a subject on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Side {
    /// The value; `None` if there is none, such as the median of no durations.
    pub value: Option<f64>,
    /// The same amount for each second, whatever the basis; `None` for durations.
    pub per_second: Option<f64>,
    /// The share of all of the kind; `None` for durations, and where it has no meaning.
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
    /// if the noise is not known.
    pub interval: Option<Interval>,
    /// The probability of such a difference by chance; `None` if the noise is not known.
    pub probability: Option<f64>,
    /// The same, adjusted for the number of differences that were tested; `None` for those that were not.
    pub adjusted_probability: Option<f64>,
    /// The judgement.
    pub verdict: Verdict,
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

    /// The name in C#, or the whole name.
    pub fn name(&self) -> &str {
        self.csharp.as_deref().unwrap_or(&self.subject.name)
    }

    /// Whether it is a finding.
    pub const fn is_finding(&self) -> bool {
        matches!(self.verdict, Verdict::Worse | Verdict::Better | Verdict::Different)
    }
}

/// A kind of which only one side has events: it may not have been recorded on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OneSided {
    /// The kind.
    pub kind: Kind,
    /// Whether the new side has them.
    pub is_new: bool,
}

/// A comparison of two sides.
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
    /// `None` if the kernel's account of a recording is not known.
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
        for subject in subjects {
            match (has(base, subject.kind), has(new, subject.kind)) {
                (true, true) => {}
                (_, is_new) => {
                    let kind = OneSided { kind: subject.kind, is_new };
                    if !one_sided.contains(&kind) && kind.kind != Kind::CpuInclusive {
                        one_sided.push(kind);
                    }
                    continue;
                }
            }
            let is_share_of_all =
                options.basis == Basis::Share && subject.is_all() && !subject.kind.is_spans();
            for statistic in subject.kind.statistics() {
                if !is_share_of_all || statistic.is_duration() {
                    changes.push(change(&sides, subject, *statistic, &allowance, options));
                }
            }
        }
        let mut tested: Vec<_> =
            changes.iter_mut().filter(|change| change.verdict != Verdict::Unknown).collect();
        let mut probabilities: Vec<f64> =
            tested.iter().map(|change| change.probability.unwrap_or(1.0)).collect();
        holm::adjust(&mut probabilities);
        for (change, probability) in tested.iter_mut().zip(&probabilities) {
            change.adjusted_probability = Some(*probability);
            change.verdict = if *probability <= options.error_rate { change.verdict } else { Verdict::Same };
        }
        let tested = tested.len();
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
            // The numbers of a route stay together. Of amounts, the change of the whole counts.
            if a.subject.kind.is_spans() { 0.0 } else { change.difference().unwrap_or(0.0).abs() }
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| (&a.subject.name, a.statistic).cmp(&(&b.subject.name, b.statistic)))
    });
}

/// Returns a change, judged by itself: [`Verdict::Unknown`] if it is not tested.
fn change(
    sides: &[SideUnits<'_>; 2],
    subject: &Subject,
    statistic: Statistic,
    allowance: &Allowance,
    options: &ComparisonOptions,
) -> Change {
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
        interval: test.map(|test| test.interval),
        probability: test.map(|test| test.probability),
        adjusted_probability: None,
        verdict: Verdict::Unknown,
    };
    if test.is_some() && has_enough(&change) {
        change.verdict = direction(&change, options);
    }
    change
}

/// Whether there are enough events for a judgement. A method or type counts that is large on either side.
fn has_enough(change: &Change) -> bool {
    let (base, new) = (change.base, change.new);
    let both = |least: f64| base.count >= least && new.count >= least;
    match change.statistic {
        Statistic::Mean | Statistic::P50 => both(LEAST_DURATIONS),
        Statistic::P99 => both(LEAST_DURATIONS_P99),
        Statistic::Amount | Statistic::Count => {
            let share = base.share.unwrap_or(0.0).max(new.share.unwrap_or(0.0));
            let is_part = change.subject.kind.is_sampled() && !change.subject.is_all();
            base.count + new.count >= LEAST_EVENTS && (!is_part || share >= LEAST_SHARE)
        }
    }
}

/// The judgement of a difference that is not noise.
fn direction(change: &Change, options: &ComparisonOptions) -> Verdict {
    let Some(difference) = change.difference().filter(|difference| *difference != 0.0) else {
        return Verdict::Same;
    };
    let is_large = change.relative_change().is_none_or(|change| change.abs() >= options.least_change);
    let per_second = |side: Side| side.per_second.unwrap_or(0.0);
    let change_of_time = (per_second(change.new) - per_second(change.base)).abs();
    // The difference as a share of the whole: of that side on which there is more of it.
    let whole = |side: Side| match side.share {
        Some(share) if share > 0.0 => per_second(side) / share,
        _ => 0.0,
    };
    let is_felt = match (change.subject.kind, change.statistic) {
        (kind, Statistic::Amount) if kind.is_sampled() && !change.subject.is_all() => {
            let share = |side: Side| side.share.unwrap_or(0.0);
            let of_whole = change_of_time / whole(change.base).max(whole(change.new)).max(f64::MIN_POSITIVE);
            match options.basis {
                Basis::Second => of_whole >= LEAST_SHARE,
                _ => share(change.base).max(share(change.new)) >= LEAST_SHARE,
            }
        }
        (Kind::GcPauses | Kind::LockWaits, Statistic::Amount) => {
            options.basis != Basis::Second || change_of_time >= LEAST_TIME * 1e9
        }
        _ => true,
    };
    match (is_large && is_felt, difference > 0.0) {
        (false, _) => Verdict::Same,
        _ if change.subject.kind.is_spans() && change.statistic == Statistic::Count => Verdict::Different,
        (true, true) => Verdict::Worse,
        (true, false) => Verdict::Better,
    }
}
