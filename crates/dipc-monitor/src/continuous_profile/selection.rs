//! The processes that are sampled: those that match the filters of the monitor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dipc_client::dipc_transport;
use dipc_collect::kernel_samples::ProcessSelector;

use crate::filter::{Filter, ProcessFacts};
use crate::process::Watched;

/// The processes that the monitor watches, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchedProcesses(Arc<Mutex<BTreeMap<u32, Arc<Watched>>>>);

impl WatchedProcesses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Watched>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, process: &Arc<Watched>) {
        self.lock().insert(process.number, Arc::clone(process));
    }

    pub(super) fn remove(&self, process: &Arc<Watched>) {
        self.lock().remove(&process.number);
    }

    /// The watched process with this pid.
    pub(super) fn with_pid(&self, pid: u32) -> Option<Arc<Watched>> {
        self.lock().values().find(|process| process.facts.pid == pid && process.system().is_some()).cloned()
    }

    /// Returns the choice of the processes that match the filters: those that the monitor watches, and others
    /// by the system's facts.
    pub(super) fn selector(&self, filters: Vec<Filter>) -> ProcessSelector {
        let watched = self.clone();
        Box::new(move |pid| {
            // Only the runtime knows its entry assembly. Its samples can have filters of their own.
            if let Some(process) = watched.with_pid(pid) {
                return Some(filters.iter().all(|filter| filter.matches(&process.facts)));
            }
            if !filters.iter().all(|filter| filter.may_match(pid)) {
                return Some(false);
            }
            let facts = ProcessFacts::of_system(pid, dipc_transport::process_name(pid).ok()?);
            Some(filters.iter().all(|filter| filter.matches(&facts)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{FilterKey, MatchType};

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_are_chosen_by_the_systems_facts() {
        let own = std::process::id();
        let filter =
            |key, value: &str| Filter { key, value: value.to_owned(), match_type: MatchType::Contains };
        let name = dipc_transport::process_name(own).unwrap();
        let mut choose = WatchedProcesses::default().selector(vec![
            filter(FilterKey::ProcessName, &name),
            filter(FilterKey::CommandLine, "dipc_monitor"),
        ]);
        assert_eq!(choose(own), Some(true));
        // It has never been a process.
        assert_eq!(choose(5_000_000), None);
        let mut choose = WatchedProcesses::default().selector(vec![filter(FilterKey::ProcessId, "1")]);
        assert_eq!((choose(own), choose(5_000_000)), (Some(false), Some(false)));
    }
}
