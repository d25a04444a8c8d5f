//! The methods that threads run at the moment of a core dump: it has no processor time.

use std::collections::BTreeMap;
use std::fmt;

use nettrace_export::units::counted;
use serde::Serialize;

use crate::diagnosis::Evidence;
use crate::of_memory::is_waiting;

/// Maximum number of methods that are kept.
const MAX_METHODS: usize = 16;
/// Maximum number of methods in a sentence.
const MAX_IN_WORDS: usize = 3;

/// A method of the user's code that threads run. Formatted, it is a part of a sentence; control characters of names are
/// escaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct RunningMethod {
    /// The number of threads.
    pub threads: u64,
    /// The method, without parameters.
    pub method: String,
    /// The framework's method that it called; `None` if the threads are in the method itself.
    pub called: Option<String>,
}

impl RunningMethod {
    /// The methods that a single moment in memory shows, those of the most threads first. Processor time says more.
    pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Self> {
        let ([memory], None) = (evidence.memory, evidence.recording) else { return Vec::new() };
        let mut methods: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
        for thread in memory.threads.iter().filter(|thread| !is_waiting(thread)) {
            if let Some(method) = &thread.method {
                let threads = methods.entry((method, thread.called.as_deref())).or_default();
                *threads = threads.saturating_add(1);
            }
        }
        let running = |((method, called), threads): ((&str, Option<&str>), u64)| Self {
            threads,
            method: method.to_owned(),
            called: called.map(str::to_owned),
        };
        let mut running: Vec<_> = methods.into_iter().map(running).collect();
        running.sort_by(|a, b| b.threads.cmp(&a.threads).then_with(|| a.cmp(b)));
        running.truncate(MAX_METHODS);
        running
    }

    /// The first methods in a sentence, with the number of others; `None` without any.
    pub(crate) fn in_words(methods: &[Self]) -> Option<String> {
        let shown = methods.iter().take(MAX_IN_WORDS).map(ToString::to_string);
        let left = methods.len().saturating_sub(MAX_IN_WORDS);
        let more = (left > 0).then(|| counted(left as u64, "more method", "more methods"));
        (!methods.is_empty()).then(|| shown.chain(more).collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for RunningMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", counted(self.threads, "thread", "threads"), self.method)?;
        match &self.called {
            Some(called) => write!(f, " ({called})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_facts::{MemoryFacts, ThreadFacts};
    use crate::{Diagnosis, ProcessIdentity};

    #[test]
    fn a_single_moment_has_the_methods_that_threads_run() {
        let thread = |tid, method: &str, called: Option<&str>| ThreadFacts {
            tid,
            method: Some(method.to_owned()),
            called: called.map(str::to_owned),
            ..ThreadFacts::default()
        };
        let memory = MemoryFacts {
            threads: vec![
                thread(1, "Program.Main", Some("Thread.Sleep")),
                thread(2, "Orders.Sell", None),
                thread(3, "Signup.IsValid", Some("Regex.IsMatch")),
                thread(4, "Signup.IsValid", Some("Regex.IsMatch")),
            ],
            ..MemoryFacts::default()
        };
        let rows = |memory: &[MemoryFacts]| {
            let evidence = Evidence::default().with_memory(memory);
            Diagnosis::new(ProcessIdentity::default(), &evidence).rows("shop", |_| None)
        };
        let running = "2 threads in Signup.IsValid (Regex.IsMatch), 1 thread in Orders.Sell";
        let moment = rows(std::slice::from_ref(&memory));
        assert_eq!(
            moment[1..3],
            [
                ("Running", running.to_owned()),
                ("Waiting", "1 thread in Program.Main (Thread.Sleep)".to_owned()),
            ]
        );
        // Two moments of a process come with its processor time.
        assert!(rows(&[memory.clone(), memory]).iter().all(|(label, _)| *label != "Running"));
    }
}
