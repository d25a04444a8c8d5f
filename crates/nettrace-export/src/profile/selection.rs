//! Selection of a recording's events.

use nettrace::{Event, RelativeTime};

/// The part of a recording that is looked at: by default all of it.
///
/// ```
/// use std::time::Duration;
/// use nettrace_export::{Metric, Options, Selection, nettrace::RelativeTime};
///
/// // One thread, from the tenth second on.
/// let from = RelativeTime::after_start(Duration::from_secs(10));
/// let selection = Selection::of_time(Some(from), None).with_threads(vec![4711]);
/// assert!(!selection.is_all());
/// let options = Options::new(Metric::Wall).with_selection(selection);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// Only events at or after this time.
    pub from: Option<RelativeTime>,
    /// Only events before this time.
    pub to: Option<RelativeTime>,
    /// Only these threads, or all if empty.
    pub threads: Vec<u64>,
    /// Only these processes, or all if empty.
    pub processes: Vec<u64>,
}

impl Selection {
    /// All threads and processes, from a time on and until before another.
    pub fn of_time(from: Option<RelativeTime>, to: Option<RelativeTime>) -> Self {
        Self { from, to, ..Self::default() }
    }

    /// With only these [`threads`](Self::threads).
    #[must_use]
    pub fn with_threads(self, threads: Vec<u64>) -> Self {
        Self { threads, ..self }
    }

    /// With only these [`processes`](Self::processes).
    #[must_use]
    pub fn with_processes(self, processes: Vec<u64>) -> Self {
        Self { processes, ..self }
    }

    /// Returns true if an event is of the selection.
    pub fn contains(&self, event: &Event<'_>) -> bool {
        self.from.is_none_or(|from| event.relative_time() >= from)
            && self.to.is_none_or(|to| event.relative_time() < to)
            && self.contains_thread(event)
    }

    /// Returns true if anything is left out.
    pub const fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.threads.is_empty() && self.processes.is_empty()
    }

    /// Returns true if an event is of a thread and process of the selection, whenever it happened.
    pub(crate) fn contains_thread(&self, event: &Event<'_>) -> bool {
        (self.threads.is_empty() || self.threads.contains(&event.thread_id().0))
            && (self.processes.is_empty()
                || event.process_id().is_some_and(|process| self.processes.contains(&process)))
    }
}
