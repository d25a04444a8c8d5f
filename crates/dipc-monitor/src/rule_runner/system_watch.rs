//! The values of the system that conditions of a process's rules compare.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clr_conditions::SystemValue;

use super::RuleEvent;
use super::process_rules::ProcessRules;
use crate::owner_memory::{OwnerMemory, OwnerSizes};
use crate::process::Watched;
use crate::system_usage::UsageReader;

/// Minimum time between two readings.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// Readings at the interval of counters, while there are conditions that compare them.
pub(super) struct SystemWatch {
    pid: Option<u32>,
    memory: Arc<OwnerMemory>,
    reader: Option<UsageReader>,
    last: Option<Instant>,
    /// The number of readings.
    readings: u64,
    /// The rules with an unknown value that was already reported.
    reported: BTreeSet<String>,
}

impl SystemWatch {
    pub(super) fn new(process: &Watched) -> Self {
        Self {
            pid: process.system_pid(),
            memory: Arc::clone(&process.owner_memory),
            reader: None,
            last: None,
            readings: 0,
            reported: BTreeSet::new(),
        }
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
        let mut usage = self.reader.get_or_insert_with(|| UsageReader::new(self.pid)).read();
        let is_native = |value| value == SystemValue::NativeMemory;
        if conditions.iter().any(|(_, condition)| condition.system_values().any(is_native)) {
            self.memory.want();
            usage.native_memory_bytes = self.memory.sizes().as_ref().map(OwnerSizes::native);
        }
        rules.add_usage(&usage);
        self.readings = self.readings.saturating_add(1);
        // The first reading is without processor time.
        if self.readings < 2 {
            return;
        }
        for (rule, condition) in conditions {
            // Memory is read at an interval of its own.
            let is_read = |value| value != SystemValue::NativeMemory || self.memory.is_attempted();
            let is_unknown = |value: &SystemValue| usage.value(*value).is_none() && is_read(*value);
            let unknown = condition.system_values().find(is_unknown);
            if let Some(value) = unknown
                && !rules.process_has_ended()
                && self.reported.insert(rule.clone())
            {
                rules.report(&rule, RuleEvent::ValueUnknown(value));
            }
        }
    }
}
