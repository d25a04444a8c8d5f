//! The numbers of a sample.

/// A number of a sample, for display and for conditions.
///
/// ```
/// use clr_counters::Aspect;
///
/// assert_eq!(Aspect::parse("rate"), Some(Aspect::Rate));
/// assert_eq!(Aspect::parse("p99"), Some(Aspect::Quantile(990)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aspect {
    /// The value at the interval's end: the mean for means, the value for gauges and up-down counters, the
    /// total for counters.
    Value,
    /// The growth per second, over the actual time.
    Rate,
    /// The number of measurements in the interval.
    Count,
    /// The sum of the measurements in the interval.
    Sum,
    /// A quantile, in thousandths.
    Quantile(u16),
}

impl Aspect {
    /// Parses the name of an aspect: `value`, `rate`, `count`, `sum`, `p50`, `p99.9`; `None` if it is not
    /// one.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "value" | "total" => Some(Self::Value),
            "rate" => Some(Self::Rate),
            "count" => Some(Self::Count),
            "sum" => Some(Self::Sum),
            name => {
                let (percent, tenth) = match name.strip_prefix('p')?.split_once('.') {
                    Some((percent, tenth)) if tenth.len() == 1 => (percent, tenth.parse::<u16>().ok()?),
                    Some(_) => return None,
                    None => (name.strip_prefix('p')?, 0),
                };
                let thousandths = percent.parse::<u16>().ok()?.checked_mul(10)?.checked_add(tenth)?;
                (thousandths <= 1000).then_some(Self::Quantile(thousandths))
            }
        }
    }
}
