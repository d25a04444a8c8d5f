//! Conditions on a comparison: `GET /orders p99 > +20%`.

use std::fmt;

use crate::diff::comparison::{Change, Comparison};
use crate::diff::sides::Noise;
use crate::diff::subject::{Kind, Statistic};
use crate::profile::pattern::Pattern;

/// A condition: a subject, a number of it, and a limit.
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
/// use nettrace_export::diff::{Comparison, ComparisonOptions, Rule};
///
/// let comparison = Comparison::new(&base, &new, &ComparisonOptions::default());
/// let rule: Rule = "Tax.Rate cpu > +20%".parse()?;
/// let outcome = rule.apply(&comparison, 1);
/// assert_eq!((outcome.matched.len(), outcome.met.len()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    text: String,
    /// The name, or a part of it; empty for all of the kind.
    subject: String,
    kinds: &'static [Kind],
    statistic: Statistic,
    is_greater: bool,
    limit: Limit,
}

/// A limit of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// A change relative to the base.
    Relative(f64),
    /// A difference, in the unit of the number.
    Difference(f64),
    /// The new value itself.
    Value(f64),
}

/// The error in a rule's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// The result of a rule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RuleOutcome<'c> {
    /// The changes that the rule is about. If empty, neither recording has the rule's subject.
    pub matched: Vec<&'c Change>,
    /// Changes that meet the rule.
    pub met: Vec<&'c Change>,
    /// Changes that may meet the rule: noise may explain the change, or may hide one beyond the limit.
    pub undecided: Vec<&'c Change>,
}

const SPANS: &[Kind] = &[Kind::Requests, Kind::Calls, Kind::Operations];
const WITH_DURATIONS: &[Kind] =
    &[Kind::Requests, Kind::Calls, Kind::Operations, Kind::GcPauses, Kind::LockWaits];

/// The words of numbers.
const WORDS: [(&str, &[Kind], Statistic); 12] = [
    ("p50", WITH_DURATIONS, Statistic::P50),
    ("p99", WITH_DURATIONS, Statistic::P99),
    ("mean", SPANS, Statistic::Mean),
    ("count", SPANS, Statistic::Count),
    ("cpu", &[Kind::Cpu], Statistic::Amount),
    ("cpu-inclusive", &[Kind::CpuInclusive], Statistic::Amount),
    ("blocked", &[Kind::Blocked], Statistic::Amount),
    ("alloc", &[Kind::Allocations, Kind::AllocatingMethods], Statistic::Amount),
    ("exceptions", &[Kind::Exceptions], Statistic::Count),
    ("gc-pauses", &[Kind::GcPauses], Statistic::Amount),
    ("gc-count", &[Kind::GcPauses], Statistic::Count),
    ("lock-waits", &[Kind::LockWaits], Statistic::Amount),
];

impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let at = text.rfind(['<', '>']).ok_or_else(|| {
            RuleError(format!("'{text}' has no '>' or '<': an example is 'GET /orders p99 > +20%'"))
        })?;
        let (before, rest) = text.split_at(at);
        let is_greater = rest.starts_with('>');
        let before = before.trim();
        let (subject, word) = before
            .rsplit_once(char::is_whitespace)
            .map_or(("", before), |(subject, word)| (subject.trim(), word));
        let Some((_, kinds, statistic)) = WORDS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word))
        else {
            let names: Vec<_> = WORDS.iter().map(|(name, ..)| *name).collect();
            return Err(RuleError(format!(
                "'{word}' is not a number of a comparison; these are {}",
                names.join(", ")
            )));
        };
        // Pauses and waits are unnamed; 'gc p99' says which of them.
        let (kinds, subject): (&'static [Kind], _) = match subject.to_ascii_lowercase().as_str() {
            "gc" | "gc-pauses" if statistic.is_duration() => (&[Kind::GcPauses], ""),
            "lock-waits" if statistic.is_duration() => (&[Kind::LockWaits], ""),
            "" if statistic.is_duration() => (&[Kind::Requests], ""),
            _ => (*kinds, subject),
        };
        let limit = limit(rest.get(1..).unwrap_or_default().trim(), *statistic)?;
        let (subject, text) = (subject.to_owned(), text.trim().to_owned());
        Ok(Self { text, subject, kinds, statistic: *statistic, is_greater, limit })
    }
}

const TIME_UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZE_UNITS: [(&str, f64); 4] = [("", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];

fn limit(text: &str, statistic: Statistic) -> Result<Limit, RuleError> {
    let wrong = |why: &str| RuleError(format!("'{text}' is not a limit: {why}"));
    let digits = text.trim_start_matches(['+', '-']);
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let number: f64 = number.parse().map_err(|_| wrong("use +20%, -5%, +3ms or 50ms"))?;
    let signed = if text.starts_with('-') { -number } else { number };
    let unit = unit.trim();
    if unit == "%" {
        return Ok(Limit::Relative(signed / 100.0));
    }
    let has_name = |(name, _): &&(&str, f64)| *name == unit;
    let factor = match TIME_UNITS.iter().find(has_name) {
        Some((_, factor)) => *factor,
        None if statistic.is_duration() => return Err(wrong("units are %, ns, us, ms and s")),
        None => {
            let found = SIZE_UNITS.iter().find(has_name);
            found.ok_or_else(|| wrong("units are %, ns, us, ms, s, KB, MB and GB"))?.1
        }
    };
    Ok(if text.starts_with(['+', '-']) {
        Limit::Difference(signed * factor)
    } else {
        Limit::Value(signed * factor)
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Applies the rule to a comparison.
    ///
    /// A change beyond the limit meets it only if it is not noise: its probability, times the number of
    /// changes that the rule is about and of `rules` applied together, is at most the [error
    /// rate](super::ComparisonOptions::error_rate). If the noise is unknown, the change alone decides. A
    /// limit of the new value is a limit whatever the noise.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    pub fn apply<'c>(&self, comparison: &'c Comparison, rules: usize) -> RuleOutcome<'c> {
        let is_of_kind = |change: &&Change| {
            self.kinds.contains(&change.subject.kind) && change.statistic == self.statistic
        };
        let of_kind: Vec<_> = comparison.changes.iter().filter(is_of_kind).collect();
        let has_name = |change: &&&Change| {
            [&*change.subject.name, change.name()].iter().any(|name| name.eq_ignore_ascii_case(&self.subject))
        };
        // The exact name, or else the names that contain it.
        let mut matched: Vec<_> = of_kind.iter().filter(has_name).copied().collect();
        if matched.is_empty() && !self.subject.is_empty() {
            let pattern = Pattern::new(&self.subject);
            let has_part = |change: &&&Change| {
                !change.subject.is_all()
                    && (pattern.matches(&change.subject.name) || pattern.matches(change.name()))
            };
            matched = of_kind.iter().filter(has_part).copied().collect();
        }
        let level = comparison.options.error_rate / (matched.len() * rules.max(1)) as f64;
        let is_noise = |change: &Change| match change.probability {
            Some(probability) => probability > level,
            None => comparison.noise != Noise::Unknown,
        };
        let is_met = |change: &&&Change| {
            self.is_beyond(change) && (matches!(self.limit, Limit::Value(_)) || !is_noise(change))
        };
        let met: Vec<_> = matched.iter().filter(is_met).copied().collect();
        let is_undecided = |change: &&&Change| !is_met(change) && self.may_be_beyond(change, level);
        let undecided = matched.iter().filter(is_undecided).copied().collect();
        RuleOutcome { matched, met, undecided }
    }

    /// Returns true if a change may be beyond the limit: if its noise is unknown, the change alone decides.
    fn may_be_beyond(&self, change: &Change, level: f64) -> bool {
        if matches!(self.limit, Limit::Value(_)) {
            return false;
        }
        let Some(test) = change.test else { return self.is_beyond(change) };
        let interval = test.interval(level);
        let end = if self.is_greater { interval.high } else { interval.low };
        self.exceeds(change, Some(end))
    }

    fn is_beyond(&self, change: &Change) -> bool {
        self.exceeds(change, change.difference())
    }

    /// Returns true if a change would be beyond the limit with this difference.
    fn exceeds(&self, change: &Change, difference: Option<f64>) -> bool {
        let (value, limit) = match self.limit {
            Limit::Relative(limit) => {
                // New ones are infinitely many more.
                let relative = |difference: f64| match change.base.value {
                    Some(base) if base > 0.0 => Some(difference / base),
                    _ => (difference > 0.0).then_some(f64::INFINITY),
                };
                (difference.and_then(relative), limit)
            }
            Limit::Difference(limit) => (difference, limit),
            Limit::Value(limit) => (change.new.value, limit),
        };
        value.is_some_and(|value| if self.is_greater { value > limit } else { value < limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    #[test]
    fn rules_are_read_from_their_end() {
        let orders = rule("GET /orders p99 > +20%");
        assert_eq!(
            (&*orders.subject, orders.kinds, orders.statistic),
            ("GET /orders", WITH_DURATIONS, Statistic::P99)
        );
        assert_eq!((orders.is_greater, orders.limit), (true, Limit::Relative(0.2)));
        assert_eq!(rule("List<int>.Add cpu>5%").limit, Limit::Relative(0.05));
        assert_eq!(rule("List<int>.Add cpu>5%").subject, "List<int>.Add");
        assert_eq!(rule("p50 > 3ms").limit, Limit::Value(3e6));
        assert_eq!(rule("alloc > +2 MB").limit, Limit::Difference(2e6));
        let gc = rule("gc p99 < -1.5us");
        assert_eq!(
            (gc.kinds, gc.limit, gc.is_greater),
            (&[Kind::GcPauses][..], Limit::Difference(-1500.0), false)
        );
    }

    #[test]
    fn errors_name_the_part_that_is_wrong() {
        for (text, part) in [
            ("GET /orders p99", "has no '>' or '<'"),
            ("GET /orders p98 > 2%", "'p98' is not a number of a comparison; these are p50, p99, mean"),
            ("GET /orders p99 > 2", "'2' is not a limit: units are"),
            ("GET /orders p99 > fast", "'fast' is not a limit: use"),
            ("GET /orders p99 > +2hours", "units are %"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
