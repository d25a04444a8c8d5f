//! The number of active timers over time.

use clr_counters::{EventCounter, EventCounterValue};
use nettrace::{Event, Metadata, RelativeTime};

/// The provider and the name of the counter.
const PROVIDER: &str = "System.Runtime";
const COUNTER: &str = "active-timer-count";
/// Maximum number of values: then every second one is dropped.
const MAX_VALUES: usize = 128;

/// Gathers the numbers of timers that have not fired, or fire again, of one process: the runtime's EventCounter, at most
/// 128 values that are spread over the time.
#[derive(Debug, Clone, Default)]
pub struct ActiveTimers {
    values: Vec<(RelativeTime, f64)>,
    /// The number of values for each that is kept, and the number since the last.
    step: u32,
    skipped: u32,
    /// The process of the first value.
    process: Option<u64>,
}

impl ActiveTimers {
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
        if !counter.name.chars().eq(COUNTER.chars()) {
            return;
        }
        if self.values.is_empty() {
            self.process = event.process_id();
        } else if self.process != event.process_id() {
            return;
        }
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped < self.step {
            return;
        }
        self.skipped = 0;
        self.values.push((event.relative_time(), mean));
        if self.values.len() >= MAX_VALUES {
            let mut is_kept = false;
            self.values.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.step = self.step.max(1).saturating_mul(2);
        }
    }

    /// Returns the values in the order of time.
    pub fn finish(self) -> Vec<(RelativeTime, f64)> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use nettrace::Reader;

    use super::*;
    use crate::report::read_kinds;

    #[test]
    fn the_counter_of_the_runtime_becomes_values_over_time() {
        let bytes = testdata::bytes("traces/net8-counters.nettrace.xz");
        let mut timers = ActiveTimers::default();
        read_kinds(Reader::new(&bytes[..]).unwrap(), ActiveTimers::needs, |event| timers.add(event)).unwrap();
        let values = timers.finish();
        let numbers: Vec<_> = values.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [0.0; 3]);
        assert!(values.is_sorted_by(|one, other| one.0 < other.0), "{values:?}");
    }
}
