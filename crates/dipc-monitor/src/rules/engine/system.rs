//! Values of the system, which conditions compare.

use std::time::Duration;

use clr_conditions::{Condition, SystemUsage};
use nettrace::RelativeTime;

use super::RuleEngine;
use crate::rules::rule::Trigger;
use crate::rules::trigger::TriggerState;

impl RuleEngine {
    /// The conditions over values of the system, with the numbers of their rules.
    pub fn system_conditions(&self) -> impl Iterator<Item = (usize, &Condition)> {
        self.rules.iter().enumerate().filter_map(|(number, rule)| match &rule.rule.trigger {
            Trigger::Condition { condition, .. } if rule.finished.is_none() => {
                condition.system_values().next().map(|_| (number, condition))
            }
            _ => None,
        })
    }

    /// Adds values of the system.
    pub fn usage(&mut self, usage: &SystemUsage, now: Duration) {
        self.expire(now);
        let time = match self.newest {
            Some((time, arrival)) => time.since_start().saturating_add(now.saturating_sub(arrival)),
            None => now,
        };
        let time = RelativeTime::after_start(time);
        for number in 0..self.rules.len() {
            let Some(rule) = self.rules.get_mut(number) else { continue };
            let is_watching = rule.is_watching();
            let TriggerState::Condition(evaluator) = &mut rule.trigger else { continue };
            let mut found = None;
            evaluator.usage(usage, time, |met| found = Some(met));
            if let Some(met) = found.filter(|_| is_watching) {
                rule.evidence.add_met();
                self.fire(number, Some(met.time), met.what, now);
            }
        }
    }
}
