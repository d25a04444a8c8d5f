//! Conditions over samples.

use crate::comparison::Comparison;
use crate::known;
use crate::sample::{Aspect, Sample};
use crate::selection::{Selection, Source, matches};
use crate::series::Series;

/// A condition over one number of any counter: `dotnet.gc.pause.time > 0.5`, `System.Runtime/cpu-usage >=
/// 80`, `http.server.request.duration:p95 > 0.25`.
///
/// A name may be preceded by its provider and a slash, and may have `*` for any text. After a colon comes the
/// number to compare: `value`, `rate` (per second), `count`, `sum`, or `p50` and similar; the default is the
/// number that is displayed first. A series with any tags may meet it. A provider may have the prefix
/// `EventCounters\` or `Meter\`, as in a [`Selection`], and .NET's own counters may be written in any case,
/// or by their display names.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The provider as written, without a prefix; `None` for any.
    provider: Option<String>,
    source: Source,
    name: String,
    aspect: Option<Aspect>,
    comparison: Comparison,
    bound: f64,
}

/// The error in a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// There is no comparison.
    #[error("{0:?} has no comparison: put one of > >= < <= == != between a counter and a number")]
    NoComparison(String),
    /// The counter's name is missing.
    #[error("{0:?} does not name a counter")]
    NoName(String),
    /// The text after the comparison is not a number.
    #[error("{0:?} is not a number")]
    NoNumber(String),
    /// The text after the colon does not name a number of a sample.
    #[error("{0:?} is not one of value, rate, count, sum, p50, p95, p99")]
    UnknownAspect(String),
}

impl Condition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let at = text.find(['>', '<', '=', '!']).ok_or_else(|| ConditionError::NoComparison(text.into()))?;
        let (counter, after) = text.split_at(at);
        let (comparison, length) =
            Comparison::at_start(after).ok_or_else(|| ConditionError::NoComparison(text.into()))?;
        let bound = after.get(length..).unwrap_or_default().trim();
        let bound = match bound.parse::<f64>() {
            Ok(number) if !number.is_nan() => number,
            _ => return Err(ConditionError::NoNumber(bound.into())),
        };
        let (counter, aspect) = match counter.trim().rsplit_once(':') {
            Some((counter, aspect)) => {
                let counter = counter.trim();
                let known = Aspect::parse(aspect.trim());
                (counter, Some(known.ok_or_else(|| ConditionError::UnknownAspect(aspect.trim().into()))?))
            }
            None => (counter.trim(), None),
        };
        let (source, provider, name) = match counter.rsplit_once('/') {
            Some((provider, name)) => {
                let (source, provider) = Source::split(provider);
                (source, Some(provider), name)
            }
            None => (Source::Any, None, counter),
        };
        if name.is_empty() {
            return Err(ConditionError::NoName(text.into()));
        }
        let name = known_counters(source, provider, name).next().map_or(name, |(_, _, known)| known);
        let provider = provider.map(str::to_owned);
        Ok(Self { provider, source, name: name.to_owned(), aspect, comparison, bound })
    }

    /// Returns the selection of its counter, which a session needs and by which [`Counters`](crate::Counters)
    /// finds it; `None` if the condition names no provider, and .NET itself has no such counter.
    ///
    /// It selects nothing else: a Meter of the same provider takes precedence only over EventCounters that it
    /// has under the same name. Counters that .NET has only as EventCounters, or only in a Meter, are
    /// requested only that way.
    pub fn selection(&self) -> Option<Selection> {
        let known = || known_counters(self.source, self.provider.as_deref(), &self.name);
        if known().next().is_some() {
            return Some(Selection::of_counters(known()));
        }
        let provider = self.provider.as_deref().filter(|provider| !provider.is_empty())?;
        Some(Selection::of_counters(std::iter::once((self.source, provider, &*self.name))))
    }

    /// Whether the condition is over a series.
    pub fn is_of(&self, series: &Series) -> bool {
        let is_provider = self
            .provider
            .as_ref()
            .is_none_or(|provider| matches(&provider.to_lowercase(), &series.provider.to_lowercase()));
        is_provider && (matches(&self.name, &series.name) || self.name == series.display_name)
    }

    /// Returns the number of the sample that meets the condition, with its aspect; `None` if none does.
    pub fn number_that_meets(&self, sample: &Sample<'_>) -> Option<(Aspect, f64)> {
        let series = sample.series;
        if !self.is_of(series) {
            return None;
        }
        let aspect = self.aspect.or_else(|| series.aspects().first().copied())?;
        let number = sample.number(aspect)?;
        let is_met = self.comparison.is_met(number.partial_cmp(&self.bound));
        is_met.then_some((aspect, number))
    }
}

/// The counters of .NET with this name, in any case: source, provider and name.
fn known_counters<'a>(
    source: Source,
    provider: Option<&'a str>,
    counter: &'a str,
) -> impl Iterator<Item = (Source, &'static str, &'static str)> + use<'a> {
    known::PROVIDERS
        .iter()
        .map(|known| (if known.is_meter { Source::Meter } else { Source::EventCounters }, known))
        .filter(move |(of, known)| {
            (source == Source::Any || source == *of)
                && provider.is_none_or(|provider| known.name.eq_ignore_ascii_case(provider))
        })
        .filter_map(move |(of, known)| {
            let is_called = |name: &str| name.eq_ignore_ascii_case(counter);
            let counter =
                known.counters.iter().find(|it| is_called(it.name) || is_called(it.display_name))?;
            Some((of, known.name, counter.name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let condition = |provider: Option<&str>, name: &str, aspect, comparison, bound| Condition {
            provider: provider.map(str::to_owned),
            source: Source::Any,
            name: name.to_owned(),
            aspect,
            comparison,
            bound,
        };
        let rows = [
            (
                "dotnet.gc.pause.time > 0.5",
                condition(None, "dotnet.gc.pause.time", None, Comparison::Greater, 0.5),
            ),
            (
                "System.Runtime/cpu-usage>=80",
                condition(Some("System.Runtime"), "cpu-usage", None, Comparison::GreaterOrEqual, 80.0),
            ),
            ("x:p95 < 1e-3", condition(None, "x", Some(Aspect::Quantile(950)), Comparison::Less, 0.001)),
            ("x : rate != 0", condition(None, "x", Some(Aspect::Rate), Comparison::Unequal, 0.0)),
        ];
        for (text, expected) in rows {
            assert_eq!(Condition::parse(text), Ok(expected), "{text}");
        }
        let faults = [
            ("x", ConditionError::NoComparison("x".into())),
            ("x ! 3", ConditionError::NoComparison("x ! 3".into())),
            ("> 3", ConditionError::NoName("> 3".into())),
            ("x > y", ConditionError::NoNumber("y".into())),
            ("x > NaN", ConditionError::NoNumber("NaN".into())),
            ("x:p200 > 1", ConditionError::UnknownAspect("p200".into())),
        ];
        for (text, expected) in faults {
            assert_eq!(Condition::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_session_asks_for_the_counter_alone() {
        let has = |text: &str, provider: &str, counter: &str| {
            let selection = Condition::parse(text).unwrap().selection().unwrap();
            (selection.has_event_counter(provider, counter), selection.has_instrument(provider, counter))
        };
        for text in [
            "System.Runtime/cpu-usage > 20",
            "CPU-Usage > 20",
            "cpu usage > 20",
            r"EventCounters\System.Runtime/cpu-usage > 20",
        ] {
            assert_eq!(has(text, "System.Runtime", "cpu-usage"), (true, false), "{text}");
            assert_eq!(has(text, "System.Runtime", "dotnet.gc.pause.time"), (false, false), "{text}");
        }
        assert_eq!(has("dotnet.gc.pause.time > 1", "System.Runtime", "dotnet.gc.pause.time"), (false, true));
        assert_eq!(has("Mine/orders > 1", "Mine", "orders"), (true, true));
        assert_eq!(has(r"Meter\Mine/orders > 1", "Mine", "orders"), (false, true));
        // Two providers have one of this name.
        for provider in ["Microsoft.AspNetCore.Hosting", "System.Net.Http"] {
            assert_eq!(has("current-requests > 1", provider, "current-requests"), (true, false));
        }
        assert_eq!(Condition::parse("orders > 1").unwrap().selection(), None);
    }
}
