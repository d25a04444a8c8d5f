//! Conditions over samples.

use crate::comparison::Comparison;
use crate::sample::{Aspect, Sample};
use crate::selection::matches;
use crate::series::Series;

/// A condition over one number of any counter: `dotnet.gc.pause.time > 0.5`, `System.Runtime/cpu-usage >= 80`,
/// `http.server.request.duration:p95 > 0.25`.
///
/// A name may have its provider before it, with a slash, and `*` for any text. Behind a colon stands the number that is meant:
/// `value`, `rate` (a second), `count`, `sum`, or `p50` and the like; without it the one that people are shown first. A series
/// of any tags may meet it.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// In lower case; `None` for any.
    provider: Option<String>,
    name: String,
    aspect: Option<Aspect>,
    comparison: Comparison,
    bound: f64,
}

/// The fault of a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// There is no comparison.
    #[error("{0:?} has no comparison: one of > >= < <= == != stands between a counter and a number")]
    NoComparison(String),
    /// The counter's name is missing.
    #[error("{0:?} names no counter")]
    NoName(String),
    /// The text behind the comparison is no number.
    #[error("{0:?} is no number")]
    NoNumber(String),
    /// The text behind the colon is none of the numbers of a sample.
    #[error("{0:?} is none of value, rate, count, sum, p50, p95, p99")]
    UnknownAspect(String),
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let at = text.find(['>', '<', '=', '!']).ok_or_else(|| ConditionError::NoComparison(text.into()))?;
        let (counter, behind) = text.split_at(at);
        let (comparison, length) =
            Comparison::at_start(behind).ok_or_else(|| ConditionError::NoComparison(text.into()))?;
        let bound = behind.get(length..).unwrap_or_default().trim();
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
        let (provider, name) = match counter.rsplit_once('/') {
            Some((provider, name)) => (Some(provider.to_lowercase()), name),
            None => (None, counter),
        };
        if name.is_empty() {
            return Err(ConditionError::NoName(text.into()));
        }
        Ok(Self { provider, name: name.to_owned(), aspect, comparison, bound })
    }

    /// Whether the condition is over a series.
    pub fn is_of(&self, series: &Series) -> bool {
        let is_provider =
            self.provider.as_ref().is_none_or(|provider| matches(provider, &series.provider.to_lowercase()));
        is_provider && (matches(&self.name, &series.name) || self.name == series.display_name)
    }

    /// Returns the number of the sample that meets the condition, and which it is; `None` if none does.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let condition = |provider: Option<&str>, name: &str, aspect, comparison, bound| Condition {
            provider: provider.map(str::to_owned),
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
                condition(Some("system.runtime"), "cpu-usage", None, Comparison::GreaterOrEqual, 80.0),
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
}
