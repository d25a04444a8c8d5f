//! A control group between two readings.

use super::{Rates, difference, growth};
use crate::pressure::{Pressure, ResourcePressure};
use crate::usage::{GroupUsage, MemoryEvents, float};

/// A control group between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct GroupChange {
    /// The processor time of all its processes, in cores.
    pub cores: Option<f64>,
    /// The waits for its quota; `None` without a limit.
    pub throttling: Option<ThrottlingChange>,
    /// The growth of its memory in bytes.
    pub memory: Option<i64>,
    /// The times per second that its memory was about to exceed the limit.
    pub memory_limit_hits_per_second: Option<f64>,
    /// The times per second that its tasks were slowed down because of `memory.high`.
    pub memory_high_hits_per_second: Option<f64>,
    /// Its processes that the kernel has killed because memory ran out.
    pub oom_kills: Option<u64>,
    /// The pressure in the group.
    pub pressure: PressureChange,
}

/// Throttling between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ThrottlingChange {
    /// Periods in which a task of the group was runnable.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// The share of throttled periods, from 0 to 1; `None` without a period.
    pub share_of_periods: Option<f64>,
    /// The mean number of processors on which tasks waited for the next period.
    pub throttled_processors: f64,
}

/// The shares of time, from 0 to 1, in which tasks were stalled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct PressureChange {
    /// At least one had no processor.
    pub cpu_some: Option<f64>,
    /// All had no processor.
    pub cpu_full: Option<f64>,
    /// At least one waited for memory.
    pub memory_some: Option<f64>,
    /// All waited for memory.
    pub memory_full: Option<f64>,
    /// At least one waited for block devices.
    pub io_some: Option<f64>,
    /// All waited for block devices.
    pub io_full: Option<f64>,
}

impl GroupChange {
    pub(super) fn between(first: &GroupUsage, second: &GroupUsage, rates: Rates) -> Self {
        let used = |group: &GroupUsage| group.cpu.map(|cpu| cpu.used_ns);
        let memory = |group: &GroupUsage| group.memory.map(|memory| memory.used);
        let events = |of: fn(&MemoryEvents) -> Option<u64>| {
            (first.memory_events.as_ref().and_then(of), second.memory_events.as_ref().and_then(of))
        };
        let (limit_hits, high_hits) = (events(|events| events.max), events(|events| events.high));
        let (kills_before, kills) = events(|events| events.oom_kills);
        Self {
            cores: rates.share(used(first), used(second)),
            throttling: ThrottlingChange::between(first, second, rates),
            memory: growth(memory(first), memory(second)),
            memory_limit_hits_per_second: rates.per_second(limit_hits.0, limit_hits.1),
            memory_high_hits_per_second: rates.per_second(high_hits.0, high_hits.1),
            oom_kills: difference(kills_before, kills),
            pressure: PressureChange::between(&first.pressure, &second.pressure, rates),
        }
    }
}

impl ThrottlingChange {
    pub(super) fn between(first: &GroupUsage, second: &GroupUsage, rates: Rates) -> Option<Self> {
        let (first, second) = (first.throttling?, second.throttling?);
        let periods = second.periods.checked_sub(first.periods)?;
        let throttled_periods = second.throttled_periods.checked_sub(first.throttled_periods)?;
        Some(Self {
            periods,
            throttled_periods,
            share_of_periods: (periods > 0).then(|| (float(throttled_periods) / float(periods)).min(1.0)),
            throttled_processors: rates.share(Some(first.throttled_ns), Some(second.throttled_ns))?,
        })
    }
}

impl PressureChange {
    pub(super) fn between(first: &ResourcePressure, second: &ResourcePressure, rates: Rates) -> Self {
        let share = |first: Option<u64>, second: Option<u64>| Some(rates.share(first, second)?.min(1.0));
        let some = |first: Option<Pressure>, second: Option<Pressure>| {
            share(first.map(|pressure| pressure.some_ns), second.map(|pressure| pressure.some_ns))
        };
        let full = |first: Option<Pressure>, second: Option<Pressure>| {
            share(first.and_then(|pressure| pressure.full_ns), second.and_then(|pressure| pressure.full_ns))
        };
        Self {
            cpu_some: some(first.cpu, second.cpu),
            cpu_full: full(first.cpu, second.cpu),
            memory_some: some(first.memory, second.memory),
            memory_full: full(first.memory, second.memory),
            io_some: some(first.io, second.io),
            io_full: full(first.io, second.io),
        }
    }
}
