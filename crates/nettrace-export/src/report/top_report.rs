//! Methods with their weights, in the form of the JSON output.

use serde::Serialize;

use super::top::{TopRow, top};
use super::user_caller::UserCallerName;
use crate::profile::Profile;
use crate::profile::liveness::{Liveness, NativeLiveness};
use crate::units::share;

/// The methods of a profile by weight, in the form that JSON has.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::report::{TopOptions, TopReport};
///
/// let options = TopOptions::default().with_inclusive(true).with_number(10);
/// let report = TopReport::new(&profile, options);
/// assert_eq!(report.rows[0].frame, "Shop!Program.Main()");
/// assert_eq!(report.rows[0].inclusive_percent, 100.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TopReport {
    /// The [metric](crate::Metric::name).
    pub metric: &'static str,
    /// The unit of `total`, `idle` and the weights of rows: `ns`, `bytes` or `count`.
    pub unit: &'static str,
    /// The weight of everything shown.
    pub total: u64,
    /// The number of samples.
    pub samples: u64,
    /// The weight of threads that waited for work, which is left out.
    pub idle: u64,
    /// The part of `total` in which threads waited in the middle of work; only for thread time without idle
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<u64>,
    /// The part of `total` in which the recording does not tell whether threads ran or waited.
    #[serde(skip_serializing_if = "is_zero")]
    pub unverified: u64,
    /// The facts about a profile of [live bytes](crate::Metric::LiveAlloc).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFacts>,
    /// The facts about a profile of [native bytes in use](crate::Metric::NativeAlloc).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeFacts>,
    /// The methods, in the order of the rows that this was made of.
    pub rows: Vec<TopMethod>,
}

/// The facts about a profile of live bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LiveFacts {
    /// Collections that objects were followed through.
    pub collections: u64,
    /// The collections among them that collected all generations.
    pub full_collections: u64,
    /// Sampled objects that died in them.
    pub dead_objects: u64,
    /// Allocated bytes that no collection of their generation has reached, which are left out.
    pub not_collected_bytes: u64,
    /// The reasons for which the objects in use are uncertain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl LiveFacts {
    /// Returns the facts of a recording that has lost this many events.
    pub fn new(liveness: &Liveness, lost: u64) -> Self {
        let Liveness { counts, not_collected } = *liveness;
        Self {
            collections: counts.collections,
            full_collections: counts.full_collections,
            dead_objects: counts.dead,
            not_collected_bytes: not_collected,
            doubt: liveness.doubt(lost),
        }
    }
}

/// The facts about a profile of native bytes in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NativeFacts {
    /// Allocations that were followed.
    pub allocations: u64,
    /// The allocations among them that were freed.
    pub freed: u64,
    /// The least bytes that an allocation represents: 1 if all were followed.
    pub interval_bytes: u64,
    /// Calls of the probed functions.
    pub calls: u64,
    /// The time that these calls took longer.
    pub cost_ns: u64,
    /// The processor time of the process meanwhile.
    pub cpu_ns: u64,
    /// Records of allocations that were lost: they are in no row.
    pub lost_allocations: u64,
    /// Records of freed memory that were lost: it looks like memory in use.
    pub lost_frees: u64,
    /// True if the probes were removed early because of their cost.
    pub stopped_by_limit: bool,
    /// The reasons for which the bytes in use are uncertain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl NativeFacts {
    /// Returns the facts of a recording that has lost this many events.
    pub fn new(liveness: &NativeLiveness, lost: u64) -> Self {
        let end = liveness.end.unwrap_or_default();
        Self {
            allocations: liveness.allocations,
            freed: liveness.freed,
            interval_bytes: end.interval,
            calls: end.hits,
            cost_ns: end.cost_ns,
            cpu_ns: end.cpu_ns,
            lost_allocations: end.lost_allocations,
            lost_frees: end.lost_frees,
            stopped_by_limit: end.is_beyond_limit,
            doubt: liveness.doubt(lost),
        }
    }
}

/// A method of a [`TopReport`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TopMethod {
    /// The name as TraceEvent writes it.
    pub frame: String,
    /// The name in C# form; the same as `frame` if that is not a method.
    pub csharp: String,
    /// The kind of the frame: `managed`, `gc`, `jit`, `runtime`, `native`, `kernel`, `unknown` or `pseudo`.
    pub kind: &'static str,
    /// The source file, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The weight of samples with the method at the leaf.
    pub exclusive: u64,
    /// The weight of samples with the frame in their stack.
    pub inclusive: u64,
    /// The blocked part of `inclusive`; present if `total` has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<u64>,
    /// `exclusive` in percent of the total.
    pub exclusive_percent: f64,
    /// `inclusive` in percent of the total.
    pub inclusive_percent: f64,
    /// `blocked` in percent of the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_percent: Option<f64>,
    /// The user's method that leads to most of `exclusive`, if this method is not the user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusive_from: Option<UserCallerName>,
    /// The same of `inclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inclusive_from: Option<UserCallerName>,
}

/// Settings of a [`TopReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopOptions {
    is_inclusive: bool,
    number: usize,
    has_blocked: bool,
}

impl Default for TopOptions {
    /// All methods, by their own weight, of a metric that does not distinguish blocked time.
    fn default() -> Self {
        Self { is_inclusive: false, number: usize::MAX, has_blocked: false }
    }
}

impl TopOptions {
    /// With the order by weight with callees, or without.
    #[must_use]
    pub const fn with_inclusive(self, is_inclusive: bool) -> Self {
        Self { is_inclusive, ..self }
    }

    /// With this many methods at most.
    #[must_use]
    pub const fn with_number(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// With or without blocked time, which the profile's metric must distinguish.
    #[must_use]
    pub const fn with_blocked(self, has_blocked: bool) -> Self {
        Self { has_blocked, ..self }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Sorts rows by weight, alone or with callees, the highest first; rows of the same weight by name.
pub fn sort_top(rows: &mut [TopRow], is_inclusive: bool) {
    let key = |row: &TopRow| if is_inclusive { row.inclusive } else { row.exclusive };
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.frame.cmp(&b.frame)));
}

impl TopReport {
    /// Returns the first methods of a profile with names in [C# form](crate::NameForm::CSharp).
    pub fn new(profile: &Profile, options: TopOptions) -> Self {
        let TopOptions { is_inclusive, number, has_blocked } = options;
        let mut rows = top(profile);
        rows.retain(|row| !row.is_root);
        sort_top(&mut rows, is_inclusive);
        rows.truncate(number);
        Self::of_rows(profile, rows, profile.total(), has_blocked.then(|| profile.blocked()))
    }

    /// Returns the report of chosen rows. Percentages are of `total`.
    pub fn of_rows(profile: &Profile, rows: Vec<TopRow>, total: u64, blocked: Option<u64>) -> Self {
        let frames = &profile.frames;
        let rows = rows.into_iter().map(|row| {
            let (file, line) = row.line.unzip();
            TopMethod {
                exclusive_percent: share(row.exclusive, total),
                inclusive_percent: share(row.inclusive, total),
                blocked_percent: blocked.map(|_| share(row.blocked, total)),
                exclusive: row.exclusive,
                inclusive: row.inclusive,
                blocked: blocked.map(|_| row.blocked),
                frame: row.frame_id.map_or_else(|| row.frame.clone(), |id| frames.full_name(id).to_owned()),
                csharp: row.frame,
                kind: row.kind.name(),
                file,
                line,
                exclusive_from: row.exclusive_from.map(|caller| UserCallerName::new(profile, caller)),
                inclusive_from: row.inclusive_from.map(|caller| UserCallerName::new(profile, caller)),
            }
        });
        Self {
            metric: profile.metric.name(),
            unit: profile.measure.unit.symbol(),
            total,
            samples: profile.samples(),
            idle: profile.idle(),
            blocked,
            unverified: 0,
            live: None,
            native: None,
            rows: rows.collect(),
        }
    }
}
