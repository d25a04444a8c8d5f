//! Subjects of comparisons, and the numbers that are compared.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::profile::measure::Unit;

/// The kind of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Requests that the program served, by route.
    Requests,
    /// Calls to something outside the program, by address or path.
    Calls,
    /// Other operations that an EventSource started and stopped.
    Operations,
    /// Time of working threads, by the method that ran.
    Cpu,
    /// The same by each method on the stack.
    CpuInclusive,
    /// Time of threads that were blocked in the midst of work, by the program's method that waited.
    Blocked,
    /// Allocated bytes, by type.
    Allocations,
    /// Allocated bytes, by the program's method next to the allocation.
    AllocatingMethods,
    /// Exceptions thrown, by type.
    Exceptions,
    /// Pauses of the garbage collector.
    GcPauses,
    /// Waits for locks.
    LockWaits,
}

impl Kind {
    /// Returns its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Calls => "calls",
            Self::Operations => "operations",
            Self::Cpu => "cpu",
            Self::CpuInclusive => "cpu_inclusive",
            Self::Blocked => "blocked",
            Self::Allocations => "allocations",
            Self::AllocatingMethods => "allocating_methods",
            Self::Exceptions => "exceptions",
            Self::GcPauses => "gc_pauses",
            Self::LockWaits => "lock_waits",
        }
    }

    /// Returns the statistics that are compared.
    pub const fn statistics(self) -> &'static [Statistic] {
        match self {
            Self::Requests | Self::Calls | Self::Operations => {
                &[Statistic::Count, Statistic::Mean, Statistic::P50, Statistic::P99]
            }
            Self::Cpu | Self::CpuInclusive | Self::Blocked | Self::Allocations | Self::AllocatingMethods => {
                &[Statistic::Amount]
            }
            Self::Exceptions => &[Statistic::Count],
            Self::GcPauses | Self::LockWaits => &[Statistic::Amount, Statistic::Count, Statistic::P99],
        }
    }

    /// Returns true if its events are samples, each representing many events.
    pub(super) const fn is_sampled(self) -> bool {
        matches!(
            self,
            Self::Cpu | Self::CpuInclusive | Self::Blocked | Self::Allocations | Self::AllocatingMethods
        )
    }

    /// Returns true if the amounts repeat another kind's amounts, divided in another way.
    pub(super) const fn is_second_view(self) -> bool {
        matches!(self, Self::CpuInclusive | Self::AllocatingMethods)
    }

    /// Returns true if the subjects are spans: their number depends on the load.
    pub const fn is_spans(self) -> bool {
        matches!(self, Self::Requests | Self::Calls | Self::Operations)
    }
}

/// A method, a type or a route; or all of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Subject {
    /// The kind.
    pub kind: Kind,
    /// The whole name; empty for all of the kind.
    pub name: Cow<'static, str>,
}

impl Subject {
    /// A subject.
    pub const fn new(kind: Kind, name: Cow<'static, str>) -> Self {
        Self { kind, name }
    }

    /// All of a kind.
    pub const fn all(kind: Kind) -> Self {
        Self::new(kind, Cow::Borrowed(""))
    }

    /// Returns true if it is all of a kind.
    pub fn is_all(&self) -> bool {
        self.name.is_empty()
    }
}

/// A number of a subject that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Statistic {
    /// The time, bytes or samples, for each unit of the [`Basis`].
    Amount,
    /// The number, for each unit of the basis; of requests, calls and operations always for each second.
    Count,
    /// The mean duration.
    Mean,
    /// The median duration.
    P50,
    /// The 99th percentile: one duration in a hundred exceeds it.
    P99,
}

impl Statistic {
    /// Returns its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Count => "count",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    /// Returns true if it is a duration rather than an amount for each unit of the basis.
    pub const fn is_duration(self) -> bool {
        matches!(self, Self::Mean | Self::P50 | Self::P99)
    }
}

/// The unit that amounts and counts refer to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Basis {
    /// A second of the recording: for a service under the same load on both sides.
    #[default]
    Second,
    /// A request that was served: for a service under a load that differs.
    Request,
    /// A recording: for programs that do the same work in each.
    Run,
    /// The sum of the kind: the share of a method or type of all.
    Share,
}

impl Basis {
    /// Returns its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Request => "request",
            Self::Run => "run",
            Self::Share => "share",
        }
    }
}

/// Serializes a unit as its symbol.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn unit_symbol<S: Serializer>(unit: &Unit, serializer: S) -> Result<S::Ok, S::Error> {
    unit.symbol().serialize(serializer)
}
