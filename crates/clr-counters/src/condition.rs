//! Conditions over samples.

use clr_events::Glob;

use crate::aspect::Aspect;
use crate::comparison::Comparison;
use crate::known;
use crate::sample::Sample;
use crate::selection::{Selection, Source};
use crate::series::Series;

/// A condition over one number of any counter: that it compares in some way with a bound.
///
/// `clr_conditions::Condition` parses such conditions, and combines them with others.
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
    /// The counter's name is missing.
    #[error("{0:?} does not name a counter")]
    NoName(String),
    /// The text after the colon does not name a number of a sample.
    #[error("{0:?} is not one of value, rate, count, sum, p50, p95, p99")]
    UnknownAspect(String),
}

impl Condition {
    /// Creates the condition that a number of a counter compares so with `bound`. A `bound` that is not a
    /// number meets only [`Comparison::Unequal`].
    ///
    /// `counter` is `dotnet.gc.pause.time`, `System.Runtime/cpu-usage` or `http.server.request.duration:p95`:
    /// a name may follow its provider and a slash, and may have `*` for any characters. A colon introduces
    /// the number to compare: `value`, `rate` (per second), `count`, `sum`, or `p50` and similar; the default
    /// is the number that is displayed first. A series with any tags may meet the condition. A provider may
    /// have the prefix `EventCounters\` or `Meter\`, as in a [`Selection`], and .NET's own counters may be
    /// written in any case, or by their display names.
    ///
    /// ```
    /// use clr_counters::{Comparison, Condition};
    ///
    /// let condition = Condition::new("System.Runtime/cpu-usage", Comparison::Greater, 80.0)?;
    /// // The counters that a session has to have for it.
    /// assert!(condition.selection().is_some_and(|it| it.has_event_counter("System.Runtime", "cpu-usage")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(counter: &str, comparison: Comparison, bound: f64) -> Result<Self, ConditionError> {
        let (full_name, aspect) = match counter.rsplit_once(':') {
            Some((full_name, aspect)) => {
                let aspect = aspect.trim();
                let known = Aspect::parse(aspect);
                (full_name, Some(known.ok_or_else(|| ConditionError::UnknownAspect(aspect.into()))?))
            }
            None => (counter, None),
        };
        let (source, provider, name) = match full_name.trim().rsplit_once('/') {
            Some((provider, name)) => {
                let (source, provider) = Source::split(provider);
                (source, Some(provider), name)
            }
            None => (Source::Any, None, full_name.trim()),
        };
        if name.is_empty() {
            return Err(ConditionError::NoName(counter.into()));
        }
        let name = known_counters(source, provider, name).next().map_or(name, |(_, _, known)| known);
        let provider = provider.map(str::to_owned);
        Ok(Self { provider, source, name: name.to_owned(), aspect, comparison, bound })
    }

    /// Returns the selection of the condition's counter, which a session needs and
    /// [`Counters`](crate::Counters) uses to find it; `None` if the condition names no provider, and .NET
    /// itself has no such counter.
    ///
    /// The selection contains nothing else: a Meter of the same provider takes precedence only over
    /// EventCounters that it has under the same name. Counters that .NET has only as EventCounters, or only
    /// in a Meter, are requested only that way.
    pub fn selection(&self) -> Option<Selection> {
        let known = || known_counters(self.source, self.provider.as_deref(), &self.name);
        if known().next().is_some() {
            return Some(Selection::of_counters(known()));
        }
        let provider = self.provider.as_deref().filter(|provider| !provider.is_empty())?;
        Some(Selection::of_counters(std::iter::once((self.source, provider, &*self.name))))
    }

    /// Returns true if the condition is over a series.
    pub fn is_of(&self, series: &Series) -> bool {
        let is_provider = self
            .provider
            .as_ref()
            .is_none_or(|provider| Glob::is_match(&provider.to_lowercase(), &series.provider.to_lowercase()));
        is_provider && (Glob::is_match(&self.name, &series.name) || self.name == series.display_name)
    }

    /// Returns the number of the sample that meets the condition, with its aspect; `None` if none does.
    ///
    /// ```
    /// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
    /// # use std::time::Duration;
    /// # let series = Series::new("MyApp", "orders", Kind::Counter);
    /// # let counter = MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) };
    /// # let orders = Measurement::Meter(counter);
    /// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
    /// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
    /// use clr_counters::{Aspect, Comparison, Condition};
    ///
    /// let condition = Condition::new("MyApp/orders:rate", Comparison::Greater, 1.5)?;
    /// assert_eq!(condition.number_that_meets(&sample), Some((Aspect::Rate, 2.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

/// Returns true if .NET itself has a counter of this name or display name, in any case. Its provider may
/// precede it, and a number of it may follow, as in [`Condition::new`].
pub fn is_counter_of_dotnet(counter: &str) -> bool {
    Condition::new(counter, Comparison::Greater, 0.0).is_ok_and(|condition| {
        known_counters(condition.source, condition.provider.as_deref(), &condition.name).next().is_some()
    })
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
    fn a_counter_may_have_a_provider_and_a_number() {
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
                ("dotnet.gc.pause.time", Comparison::Greater, 0.5),
                condition(None, "dotnet.gc.pause.time", None, Comparison::Greater, 0.5),
            ),
            (
                ("System.Runtime/cpu-usage", Comparison::GreaterOrEqual, 80.0),
                condition(Some("System.Runtime"), "cpu-usage", None, Comparison::GreaterOrEqual, 80.0),
            ),
            (
                ("x:p95", Comparison::Less, 0.001),
                condition(None, "x", Some(Aspect::Quantile(950)), Comparison::Less, 0.001),
            ),
            (
                ("x : rate", Comparison::Unequal, 0.0),
                condition(None, "x", Some(Aspect::Rate), Comparison::Unequal, 0.0),
            ),
        ];
        for ((counter, comparison, bound), expected) in rows {
            assert_eq!(Condition::new(counter, comparison, bound), Ok(expected), "{counter}");
        }
        let faults = [
            ("", ConditionError::NoName(String::new())),
            ("P/", ConditionError::NoName("P/".into())),
            ("x:p200", ConditionError::UnknownAspect("p200".into())),
        ];
        for (counter, expected) in faults {
            assert_eq!(Condition::new(counter, Comparison::Greater, 3.0), Err(expected), "{counter}");
        }
    }

    #[test]
    fn a_session_asks_for_the_counter_alone() {
        let condition = |name: &str| Condition::new(name, Comparison::Greater, 1.0).unwrap();
        let has = |name: &str, provider: &str, counter: &str| {
            let selection = condition(name).selection().unwrap();
            (selection.has_event_counter(provider, counter), selection.has_instrument(provider, counter))
        };
        for name in
            ["System.Runtime/cpu-usage", "CPU-Usage", "cpu usage", r"EventCounters\System.Runtime/cpu-usage"]
        {
            assert_eq!(has(name, "System.Runtime", "cpu-usage"), (true, false), "{name}");
            assert_eq!(has(name, "System.Runtime", "dotnet.gc.pause.time"), (false, false), "{name}");
        }
        assert_eq!(has("dotnet.gc.pause.time", "System.Runtime", "dotnet.gc.pause.time"), (false, true));
        assert_eq!(has("Mine/orders", "Mine", "orders"), (true, true));
        assert_eq!(has(r"Meter\Mine/orders", "Mine", "orders"), (false, true));
        // Two providers have a counter of this name.
        for provider in ["Microsoft.AspNetCore.Hosting", "System.Net.Http"] {
            assert_eq!(has("current-requests", provider, "current-requests"), (true, false));
        }
        assert_eq!(condition("orders").selection(), None);
    }
}
