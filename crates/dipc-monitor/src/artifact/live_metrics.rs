//! The values of counters as JSON sequences.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clr_counters::{EventCounterValue, Measurement, MeterMeasurement, Sample, Selection, Series};
use dipc_client::nettrace::{RelativeTime, TraceInfo};
use dipc_collect::StopSignal;
use jiff::Timestamp;
use serde::Serialize;

use super::{ArtifactError, ArtifactSink, begin, is_over, write};
use crate::counters::{CounterConsumer, CounterRequest};
use crate::process::Watched;

/// Maximum number of records that wait for their reader; later ones are dropped.
const MAX_WAITING: usize = 1000;
/// Maximum wait between checks for the reasons to end.
const TICK: Duration = Duration::from_millis(100);

/// The counters to collect.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct LiveMetricsRequest {
    /// The counters.
    pub selection: Selection,
    /// The interval between values.
    pub interval: Duration,
    /// The time after which it ends; `None` is without a limit.
    pub duration: Option<Duration>,
}

/// A record, with the names of dotnet-monitor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'s> {
    timestamp: String,
    provider: &'s str,
    name: &'s str,
    display_name: &'s str,
    unit: &'s str,
    counter_type: &'static str,
    tags: String,
    value: f64,
    meter_tags: &'s str,
    instrument_tags: &'s str,
}

/// The records on their way to the reader.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    records: VecDeque<Vec<u8>>,
    /// The beginning of the session's stream in Unix nanoseconds.
    start: Option<i128>,
    failure: Option<String>,
    has_begun: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A consumer of samples that queues their records.
struct Records(Arc<Queue>);

impl CounterConsumer for Records {
    fn begin(&mut self, info: &TraceInfo) {
        let mut state = self.0.state();
        state.start = info.start.unix_milliseconds().map(|start| i128::from(start) * 1_000_000);
        state.has_begun = true;
        self.0.changed.notify_all();
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let mut state = self.0.state();
        let timestamp = timestamp(state.start, sample.time);
        for_each_record(sample, &timestamp, |record| {
            // A record of strings and numbers can be written.
            let Ok(json) = serde_json::to_vec(record) else { return };
            if state.records.len() < MAX_WAITING {
                state.records.push_back([b"\x1e", &*json, b"\n"].concat());
            }
        });
        self.0.changed.notify_all();
    }

    fn failed(&mut self, error: &dipc_client::Error) {
        self.0.state().failure = Some(error.to_string());
        self.0.changed.notify_all();
    }
}

/// Returns the time of a sample as .NET writes it: `2024-01-31T12:00:00.1234567+00:00`.
fn timestamp(start: Option<i128>, time: RelativeTime) -> String {
    let time = start.and_then(|start| Timestamp::from_nanosecond(start + i128::from(time.as_nanos())).ok());
    time.unwrap_or_else(Timestamp::now).strftime("%Y-%m-%dT%H:%M:%S.%7f+00:00").to_string()
}

/// Makes the records of a sample: one, or for a histogram one for each percentile.
fn for_each_record<'s>(sample: &Sample<'s>, timestamp: &str, mut each: impl FnMut(&Record<'s>)) {
    let series: &'s Series = sample.series;
    let mut record = |counter_type, value: f64, percentile: Option<f64>| {
        let mut tags = series.tags.clone();
        if let Some(percentile) = percentile {
            let comma = if tags.is_empty() { "" } else { "," };
            tags = format!("{tags}{comma}Percentile={}", (percentile * 100.0).round());
        }
        let has_display_name = !series.display_name.is_empty();
        each(&Record {
            timestamp: timestamp.to_owned(),
            provider: &series.provider,
            name: &series.name,
            display_name: if has_display_name { &series.display_name } else { &series.name },
            unit: &series.unit,
            counter_type,
            tags,
            // JSON has neither NaN nor infinity.
            value: if value.is_finite() { value } else { 0.0 },
            meter_tags: &series.meter_tags,
            instrument_tags: &series.instrument_tags,
        });
    };
    match sample.measurement {
        Measurement::EventCounter(EventCounterValue::Mean { mean, .. }) => record("Metric", *mean, None),
        Measurement::EventCounter(EventCounterValue::Sum { increment }) => record("Rate", *increment, None),
        Measurement::Meter(MeterMeasurement::Counter { increment, .. }) => {
            record("Rate", increment.unwrap_or_default(), None);
        }
        Measurement::Meter(
            MeterMeasurement::Gauge { value } | MeterMeasurement::UpDownCounter { value, .. },
        ) => record("Metric", value.unwrap_or_default(), None),
        Measurement::Meter(MeterMeasurement::Histogram { quantiles, .. }) => {
            for (quantile, value) in quantiles {
                record("Metric", *value, Some(*quantile));
            }
        }
        // Not requested.
        _ => {}
    }
}

pub(super) fn collect(
    request: &LiveMetricsRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let queue = Arc::new(Queue::default());
    let wanted = CounterRequest::new(request.selection.clone(), request.interval);
    let subscription = process.counters.subscribe(wanted, Box::new(Records(Arc::clone(&queue))));
    let start = Instant::now();
    let mut has_begun = false;
    while !stop.is_stopped() && !is_over(start, request.duration) && !process.has_ended() {
        let (records, begins) = {
            let state = queue.state();
            let state = queue.changed.wait_timeout_while(state, TICK, |state| {
                state.records.is_empty() && state.has_begun == has_begun && state.failure.is_none()
            });
            let mut state = state.unwrap_or_else(PoisonError::into_inner).0;
            if !has_begun && let Some(failure) = state.failure.take() {
                return Err(ArtifactError::Failed(failure));
            }
            // Later failures are repeated until the process answers again.
            state.failure = None;
            (std::mem::take(&mut state.records), state.has_begun && !has_begun)
        };
        if begins {
            has_begun = true;
            begin(sink)?;
        }
        for record in records {
            write(sink, &record)?;
        }
    }
    drop(subscription);
    if stop.is_cancelled() {
        return Err(ArtifactError::Cancelled);
    }
    if !has_begun {
        begin(sink)?;
    }
    let rest = std::mem::take(&mut queue.state().records);
    rest.iter().try_for_each(|record| write(sink, record))
}
