//! Counters of the runtime that are numbers of the moment, over time.

use std::sync::OnceLock;

use clr_counters::{EventCounter, EventCounterValue};
use nettrace::{Event, Metadata, RelativeTime};

/// The provider of the counters.
const PROVIDER: &str = "System.Runtime";
/// Maximum number of values: then every second one is dropped.
const MAX_VALUES: usize = 128;

/// The values of a counter, in the order of time.
pub type GaugeValues = Vec<(RelativeTime, f64)>;

/// The values of the runtime's EventCounters.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RuntimeGaugeValues {
    /// The number of timers that have not fired, or fire again.
    pub active_timers: GaugeValues,
    /// Memory of the process in RAM, in megabytes.
    pub working_set: GaugeValues,
    /// Memory that the managed heap has from the system, in megabytes; since .NET 6.
    pub heap_committed: GaugeValues,
    /// Objects of the managed heap, in megabytes.
    pub heap_size: GaugeValues,
}

/// Gathers counters of the runtime of one process: at most 128 values of each, which are spread over the
/// time.
#[derive(Debug, Clone)]
pub struct RuntimeGauges {
    gauges: [Gauge; 4],
    /// The process of the first value.
    process: OnceLock<Option<u64>>,
}

/// A counter.
#[derive(Debug, Clone)]
struct Gauge {
    name: &'static str,
    values: GaugeValues,
    /// The number of values for each that is kept, and the number since the last.
    step: u32,
    skipped: u32,
}

impl Default for RuntimeGauges {
    fn default() -> Self {
        let names = ["active-timer-count", "working-set", "gc-committed", "gc-heap-size"];
        let gauge = |name| Gauge { name, values: Vec::new(), step: 0, skipped: 0 };
        Self { gauges: names.map(gauge), process: OnceLock::new() }
    }
}

impl RuntimeGauges {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        kind.provider() == PROVIDER && kind.name() == "EventCounters"
    }

    /// Adds an event. Values of other processes than the first are ignored.
    pub fn add(&mut self, event: &Event<'_>) {
        if !Self::needs(event.metadata()) {
            return;
        }
        let Some(counter) = EventCounter::of(event) else { return };
        let EventCounterValue::Mean { mean, .. } = counter.value else { return };
        let mut gauges = self.gauges.iter_mut();
        let Some(gauge) = gauges.find(|gauge| counter.name.chars().eq(gauge.name.chars())) else { return };
        if *self.process.get_or_init(|| event.process_id()) == event.process_id() {
            gauge.add(event.relative_time(), mean);
        }
    }

    /// Returns the values.
    pub fn finish(self) -> RuntimeGaugeValues {
        let [active_timers, working_set, heap_committed, heap_size] = self.gauges.map(|gauge| gauge.values);
        RuntimeGaugeValues { active_timers, working_set, heap_committed, heap_size }
    }
}

impl Gauge {
    fn add(&mut self, time: RelativeTime, value: f64) {
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped < self.step {
            return;
        }
        self.skipped = 0;
        self.values.push((time, value));
        if self.values.len() >= MAX_VALUES {
            let mut is_kept = false;
            self.values.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.step = self.step.max(1).saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use nettrace::Reader;

    use super::*;
    use crate::report::read_kinds;

    #[test]
    fn counters_of_the_runtime_become_values_over_time() {
        let bytes = testdata::bytes("traces/net8-counters.nettrace.xz");
        let mut gauges = RuntimeGauges::default();
        read_kinds(Reader::new(&bytes[..]).unwrap(), RuntimeGauges::needs, |event| gauges.add(event))
            .unwrap();
        let RuntimeGaugeValues { active_timers, working_set, heap_committed, heap_size } = gauges.finish();
        let numbers: Vec<_> = active_timers.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [0.0; 3]);
        assert!(active_timers.is_sorted_by(|one, other| one.0 < other.0), "{active_timers:?}");
        for values in [&heap_size, &heap_committed, &working_set] {
            assert_eq!(values.len(), 3, "{values:?}");
        }
        let ordered = |number: usize| {
            let [size, committed, resident] =
                [&heap_size, &heap_committed, &working_set].map(|values| values[number].1);
            // The runtime knows what is committed after its first collection.
            0.0 < size && committed == 0.0 && size < resident
        };
        assert!((0..3).all(ordered), "{heap_size:?} {heap_committed:?} {working_set:?}");
    }
}
