//! The last values of a process's counters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use clr_counters::{Aspect, Kind, Sample, SeriesId};
use dipc_client::nettrace::TraceInfo;
use serde::Serialize;

use crate::counters::CounterConsumer;

/// Maximum number of series of a process.
const MAX_SERIES: usize = 500;
/// Maximum length of a name of a series, in bytes.
const MAX_NAME_LENGTH: usize = 400;

/// The last values.
#[derive(Debug, Default)]
pub(super) struct LastCounters {
    rows: BTreeMap<SeriesId, CounterRow>,
}

/// The last value of a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CounterRow {
    /// The provider and the name, with tags in braces.
    pub(super) counter: String,
    pub(super) unit: String,
    /// The value at the end of the interval; for sums and counters the growth per second, for histograms the
    /// number of measurements in the interval.
    pub(super) value: Option<f64>,
    /// True if the value is per second.
    pub(super) is_rate: bool,
}

impl LastCounters {
    /// Creates the consumer that updates the values.
    pub(super) fn consumer(counters: &Arc<Mutex<Self>>) -> Box<dyn CounterConsumer> {
        Box::new(Consumer(Arc::clone(counters)))
    }

    /// Returns the values by name.
    pub(super) fn rows(&self) -> Vec<CounterRow> {
        let mut rows: Vec<_> = self.rows.values().cloned().collect();
        rows.sort_by(|one, other| one.counter.cmp(&other.counter));
        rows
    }

    fn add(&mut self, sample: &Sample<'_>) {
        let series = sample.series;
        let aspect = match series.kind {
            Kind::Sum | Kind::Counter => Aspect::Rate,
            Kind::Histogram => Aspect::Count,
            _ => Aspect::Value,
        };
        let value = sample.number(aspect);
        if let Some(row) = self.rows.get_mut(&sample.id) {
            row.value = value;
        } else if self.rows.len() < MAX_SERIES {
            let tags = if series.tags.is_empty() { String::new() } else { format!("{{{}}}", series.tags) };
            let counter = format!("{}/{}{tags}", series.provider, series.name);
            let counter = counter.chars().take(MAX_NAME_LENGTH).collect();
            let unit = series.unit.chars().take(MAX_NAME_LENGTH).collect();
            self.rows.insert(sample.id, CounterRow { counter, unit, value, is_rate: aspect == Aspect::Rate });
        }
    }
}

struct Consumer(Arc<Mutex<LastCounters>>);

impl CounterConsumer for Consumer {
    fn begin(&mut self, _: &TraceInfo) {
        super::lock(&self.0).rows.clear();
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        super::lock(&self.0).add(sample);
    }
}
