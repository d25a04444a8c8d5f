//! The judgement of a difference.

use serde::Serialize;

/// The judgement of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// More time, bytes, exceptions or pauses, beyond noise.
    Worse,
    /// Less of them.
    Better,
    /// More or fewer requests, calls or operations, beyond noise: neither is known to be worse.
    Different,
    /// No difference that is of interest lies within the interval.
    Same,
    /// Noise may explain the difference, and may hide a relevant one.
    Undecided,
    /// Not judged: there are too few events, or the noise is unknown.
    Unknown,
}
