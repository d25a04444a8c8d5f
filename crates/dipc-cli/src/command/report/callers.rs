//! The user's methods that led to allocations, exceptions, collections and waits for locks.

use std::collections::HashMap;

use clr_events::CodeMap;
use nettrace::{Event, Metadata};
use nettrace_export::method_name::csharp_without_parameters;
use nettrace_export::report::{UserCallerName, callers_options, user_callers};
use nettrace_export::{Metric, Pattern, ProfileBuilder, Selection};

use crate::render::escape::escape_controls;
use crate::render::frame_name::fit_csharp;

/// Finds the user's methods that led to the subjects of a metric, such as allocated types, in the reading of
/// a report. Takes all events, in the order of time.
pub(super) struct CallersBuilder(ProfileBuilder);

impl CallersBuilder {
    pub(super) fn new(metric: Metric, selection: Selection, user_code: Vec<Pattern>) -> Self {
        Self(ProfileBuilder::new(callers_options(metric, selection, user_code)))
    }

    /// The code that is known so far.
    pub(super) fn code_mut(&mut self) -> &mut CodeMap {
        self.0.code_mut()
    }

    /// Returns true if events of a kind are needed for a metric.
    pub(super) fn needs(metric: Metric, kind: &Metadata) -> bool {
        ProfileBuilder::needs(&callers_options(metric, Selection::default(), Vec::new()), kind)
    }

    pub(super) fn add(&mut self, event: &Event<'_>) {
        self.0.add(event);
    }

    /// Returns the heaviest user methods, keyed by the full name of the method that each led to. Neither
    /// times nor process names matter, so the recording's header is not needed.
    pub(super) fn finish(self) -> Callers {
        let (profile, _) = self.0.finish(None).expect("events come in time order");
        Callers(user_callers(&profile))
    }
}

/// The heaviest user method that led to each subject of a metric, by the full name of the subject.
#[derive(Debug, Default)]
pub(super) struct Callers(HashMap<String, UserCallerName>);

impl Callers {
    /// Returns the user method that led to a subject.
    pub(super) fn of_subject(&self, name: &str) -> Option<UserCallerName> {
        self.0.get(name).cloned()
    }

    /// Returns the user method that waited longest for a lock.
    pub(super) fn of_lock(&self, lock: u64) -> Option<UserCallerName> {
        self.of_subject(&format!("lock {lock:#x}"))
    }

    pub(super) fn into_subjects(self) -> HashMap<String, UserCallerName> {
        self.0
    }
}

/// Returns the name of a user's method in tables and sentences.
pub(super) fn caller_name(caller: &UserCallerName) -> String {
    escape_controls(csharp_without_parameters(&caller.short)).into_owned()
}

/// Returns the cell of a user's method; a dash if unknown.
pub(super) fn caller_cell(caller: Option<&UserCallerName>) -> String {
    caller.map_or_else(|| "-".to_owned(), |caller| fit_csharp(&caller_name(caller), CALLER_WIDTH))
}

/// The width of the name of a user's method in a table.
const CALLER_WIDTH: usize = 40;
