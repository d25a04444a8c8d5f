//! The values of the system that conditions of a process's rules compare.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RuleEvent;
use super::process_rules::ProcessRules;
use crate::process::Watched;
use crate::system_usage::UsageReader;

/// Minimum time between two readings.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// Readings at the interval of counters, while there are conditions that compare them.
pub(super) struct SystemWatch {
    pid: Option<u32>,
    reader: Option<UsageReader>,
    last: Option<Instant>,
    /// The number of readings.
    readings: u64,
    /// The rules with an unknown value that was already reported.
    reported: BTreeSet<String>,
}

impl SystemWatch {
    pub(super) fn new(process: &Watched) -> Self {
        Self { pid: process.system_pid(), reader: None, last: None, readings: 0, reported: BTreeSet::new() }
    }

    /// Reads the values when it is time.
    pub(super) fn tick(&mut self, rules: &Arc<ProcessRules>) {
        if self.last.is_some_and(|last| last.elapsed() < MIN_PERIOD) {
            return;
        }
        let (interval, conditions) = rules.system_conditions();
        if conditions.is_empty() || rules.process_has_ended() {
            self.reader = None;
            self.readings = 0;
            self.last = Some(Instant::now());
            return;
        }
        if self.reader.is_some() && self.last.is_some_and(|last| last.elapsed() < interval) {
            return;
        }
        self.last = Some(Instant::now());
        let usage = self.reader.get_or_insert_with(|| UsageReader::new(self.pid)).read();
        rules.add_usage(&usage);
        self.readings = self.readings.saturating_add(1);
        // The first reading is without processor time.
        if self.readings < 2 {
            return;
        }
        for (rule, condition) in conditions {
            let unknown = condition.system_values().find(|value| usage.value(*value).is_none());
            if let Some(value) = unknown
                && !rules.process_has_ended()
                && self.reported.insert(rule.clone())
            {
                rules.report(&rule, RuleEvent::ValueUnknown(value));
            }
        }
    }
}
