//! The last events of all rules.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::RuleMessage;
use crate::filter::cut_at;

/// Maximum number of events to keep.
const MAX_EVENTS: usize = 200;
/// Maximum length of an event's text, in bytes: causes include strings from processes.
const MAX_TEXT_LENGTH: usize = 1000;

/// An event of a rule, with its time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuleRecord {
    /// The time.
    pub time: SystemTime,
    /// The rule.
    pub rule: String,
    /// The pid of the process.
    pub pid: u32,
    /// The name of the process. It is untrusted.
    pub process_name: String,
    /// The event in words. It includes untrusted strings from the process.
    pub text: String,
}

/// The last events, oldest first.
#[derive(Debug, Default)]
pub(super) struct RuleHistory(Mutex<VecDeque<RuleRecord>>);

impl RuleHistory {
    pub(super) fn add(&self, message: &RuleMessage) {
        let mut text = message.event.to_string();
        if cut_at(&mut text, MAX_TEXT_LENGTH) {
            text.push('…');
        }
        let RuleMessage { rule, pid, process_name, .. } = message.clone();
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= MAX_EVENTS {
            records.pop_front();
        }
        records.push_back(RuleRecord { time: SystemTime::now(), rule, pid, process_name, text });
    }

    pub(super) fn records(&self) -> Vec<RuleRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::RuleEvent;
    use super::*;

    #[test]
    fn keeps_the_last_events_and_cuts_long_strings() {
        let history = RuleHistory::default();
        for number in 1..=300 {
            let cause = "é".repeat(5000);
            history.add(&RuleMessage {
                rule: "slow".to_owned(),
                pid: 7,
                process_name: "shop".to_owned(),
                event: RuleEvent::Fired { number, cause },
            });
        }
        let records = history.records();
        assert_eq!(records.len(), 200);
        assert!(records[0].text.starts_with("fired for the 101st time: é"), "{}", records[0].text);
        assert!(records.iter().all(|record| record.text.len() <= 1003 && record.text.ends_with('…')));
        assert!(records.is_sorted_by_key(|record| record.time));
    }
}
