//! The few counters of a process that a table of processes shows.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_counters::{Aspect, Sample, SeriesId};
use dipc_client::nettrace::RelativeTime;
use serde::Serialize;

/// Maximum number of series of a process: instruments have one for each set of tags.
const MAX_SERIES: usize = 2000;
/// The number of intervals after which a series without a value counts no more.
const MAX_INTERVALS: u32 = 3;

/// The last values of a process's counters; `None` for counters that were not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CounterSummary {
    /// The time on processors, in percent of all processors that the process may use.
    pub cpu_percent: Option<f64>,
    /// The resident memory of the process.
    pub memory_bytes: Option<f64>,
    /// The threads of the thread pool.
    pub pool_threads: Option<f64>,
    /// The work items that wait for a thread of the pool.
    pub pool_queue: Option<f64>,
    /// Exceptions thrown.
    pub exceptions_per_second: Option<f64>,
    /// Requests that ASP.NET Core served.
    pub requests_per_second: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// Processor seconds per second.
    CpuTime,
    CpuCount,
    CpuPercent,
    Memory,
    PoolThreads,
    PoolQueue,
    Exceptions,
    Requests,
}

/// The provider, the name, the counted quantity and its aspect, and the factor to its unit.
type Known = (&'static str, &'static str, Quantity, Aspect, f64);

const RUNTIME: &str = "System.Runtime";
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";

const METERS: &[Known] = &[
    (RUNTIME, "dotnet.process.cpu.time", Quantity::CpuTime, Aspect::Rate, 1.0),
    (RUNTIME, "dotnet.process.cpu.count", Quantity::CpuCount, Aspect::Value, 1.0),
    (RUNTIME, "dotnet.process.memory.working_set", Quantity::Memory, Aspect::Value, 1.0),
    (RUNTIME, "dotnet.thread_pool.thread.count", Quantity::PoolThreads, Aspect::Value, 1.0),
    (RUNTIME, "dotnet.thread_pool.queue.length", Quantity::PoolQueue, Aspect::Value, 1.0),
    (RUNTIME, "dotnet.exceptions", Quantity::Exceptions, Aspect::Rate, 1.0),
    (HOSTING, "http.server.request.duration", Quantity::Requests, Aspect::Count, 1.0),
];

const EVENT_COUNTERS: &[Known] = &[
    (RUNTIME, "cpu-usage", Quantity::CpuPercent, Aspect::Value, 1.0),
    (RUNTIME, "working-set", Quantity::Memory, Aspect::Value, 1e6),
    (RUNTIME, "threadpool-thread-count", Quantity::PoolThreads, Aspect::Value, 1.0),
    (RUNTIME, "threadpool-queue-length", Quantity::PoolQueue, Aspect::Value, 1.0),
    (RUNTIME, "exception-count", Quantity::Exceptions, Aspect::Rate, 1.0),
    (HOSTING, "requests-per-second", Quantity::Requests, Aspect::Rate, 1.0),
];

/// The last values of the series that a summary is made of.
#[derive(Debug, Default)]
pub(super) struct Summary {
    series: BTreeMap<SeriesId, Last>,
    newest: Option<RelativeTime>,
}

#[derive(Debug)]
struct Last {
    quantity: Quantity,
    is_meter: bool,
    value: f64,
    time: RelativeTime,
    interval: Duration,
}

impl Summary {
    /// Forgets the series of an earlier session.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        let series = sample.series;
        let is_meter = series.kind.is_meter();
        let known = if is_meter { METERS } else { EVENT_COUNTERS };
        let found =
            known.iter().find(|(provider, name, ..)| series.name == *name && series.provider == *provider);
        let Some((_, _, quantity, aspect, factor)) = found else { return };
        let interval = sample.interval.unwrap_or_default();
        let mut value = sample.number(*aspect).map(|value| value * factor);
        if *aspect == Aspect::Count {
            let seconds = interval.as_secs_f64();
            value = value.filter(|_| seconds > 0.0).map(|count| count / seconds);
        }
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        self.newest = self.newest.max(Some(sample.time));
        let last = Last { quantity: *quantity, is_meter, value, time: sample.time, interval };
        if self.series.contains_key(&sample.id) || self.series.len() < MAX_SERIES {
            self.series.insert(sample.id, last);
        }
    }

    /// Returns the sums over all tags. Meters take precedence over EventCounters if a process sends both.
    pub(super) fn values(&self) -> CounterSummary {
        let cpu_time = self.sum(Quantity::CpuTime);
        let of_meters = cpu_time.zip(self.sum(Quantity::CpuCount).filter(|count| *count > 0.0));
        CounterSummary {
            cpu_percent: of_meters
                .map(|(seconds, count)| 100.0 * seconds / count)
                .or_else(|| self.sum(Quantity::CpuPercent)),
            memory_bytes: self.sum(Quantity::Memory),
            pool_threads: self.sum(Quantity::PoolThreads),
            pool_queue: self.sum(Quantity::PoolQueue),
            exceptions_per_second: self.sum(Quantity::Exceptions),
            requests_per_second: self.sum(Quantity::Requests),
        }
    }

    fn sum(&self, quantity: Quantity) -> Option<f64> {
        let of = |is_meter| {
            let values = self.series.values().filter(|last| {
                last.quantity == quantity && last.is_meter == is_meter && self.is_recent(last)
            });
            values.map(|last| last.value).reduce(|sum, value| sum + value)
        };
        of(true).or_else(|| of(false))
    }

    fn is_recent(&self, last: &Last) -> bool {
        let age = self.newest.map_or(0, |newest| newest.as_nanos().saturating_sub(last.time.as_nanos()));
        let most = last.interval.saturating_mul(MAX_INTERVALS).as_nanos();
        most == 0 || i128::from(age) <= i128::try_from(most).unwrap_or(i128::MAX)
    }
}

#[cfg(test)]
mod tests {
    use clr_counters::{Counters, Selection};
    use dipc_client::LiveReader;

    use super::*;

    /// Values by dotnet-counters of the same recording: `counters/net10-csv.csv`, its last second.
    #[test]
    fn a_summary_matches_dotnet_counters() {
        let mut counters = Counters::new(Selection::parse("System.Runtime").unwrap());
        let mut summary = Summary::default();
        let mut reader = LiveReader::new(Duration::from_secs(1));
        reader.feed(&testdata::bytes("counters/net10-csv.nettrace.xz"));
        reader.end_of_input();
        reader.for_each(|event| counters.add(event, |sample| summary.add(&sample)));
        counters.finish(|sample| summary.add(&sample));
        let values = summary.values();
        let csv = String::from_utf8(testdata::bytes("counters/net10-csv.csv")).unwrap();
        let last = |counter: &str| -> f64 {
            let mut lines = csv.lines().filter(|line| line.contains(counter));
            lines.next_back().unwrap().rsplit(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(values.memory_bytes, Some(last(",dotnet.process.memory.working_set (By),")));
        let cpu_time = last("[cpu.mode=user],") + last("[cpu.mode=system],");
        let cpu_percent = 100.0 * cpu_time / last(",dotnet.process.cpu.count ({cpu}),");
        let shown = values.cpu_percent.unwrap();
        // dotnet-counters takes the interval for exactly a second.
        assert!((shown / cpu_percent - 1.0).abs() < 0.02, "{shown} for {cpu_percent}");
        assert_eq!((values.pool_threads, values.pool_queue), (Some(2.0), Some(0.0)));
        // The process neither threw exceptions nor served requests, so these series are missing.
        assert!(!csv.contains("dotnet.exceptions") && !csv.contains("http.server"));
        assert_eq!((values.exceptions_per_second, values.requests_per_second), (None, None));
    }
}
