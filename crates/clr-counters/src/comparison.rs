//! Comparisons.

use std::cmp::Ordering;
use std::fmt;

/// A comparison of a value with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the six comparisons of numbers")]
pub enum Comparison {
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=` or `==`
    Equal,
    /// `!=`
    Unequal,
}

/// Longer signs first, since shorter ones are their prefixes.
const SIGNS: [(&str, Comparison); 7] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl Comparison {
    /// The comparison at the start of a string, and its length in bytes.
    ///
    /// ```
    /// use clr_counters::Comparison;
    ///
    /// assert_eq!(Comparison::at_start(">= 80"), Some((Comparison::GreaterOrEqual, 2)));
    /// assert_eq!(Comparison::at_start("80"), None);
    /// ```
    pub fn at_start(text: &str) -> Option<(Self, usize)> {
        SIGNS.iter().find(|(sign, _)| text.starts_with(sign)).map(|(sign, it)| (*it, sign.len()))
    }

    /// Returns true if a value with this order relative to the bound meets it. `None` is a value that cannot
    /// be compared.
    pub fn is_met(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
        }
    }

    /// Returns true if it tests more than equality.
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Self::Equal | Self::Unequal)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "=",
            Self::Unequal => "!=",
        })
    }
}
