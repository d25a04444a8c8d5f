//! The methods that threads run at the moment of a core dump: it has no processor time.

use std::fmt;

use nettrace_export::units::counted;
use serde::Serialize;

use crate::diagnosis::Evidence;
use crate::of_memory::is_waiting;
use crate::places::{self, first_in_words};

/// Maximum number of methods that are kept.
const MAX_METHODS: usize = 16;

/// A method of the user's code that threads run. Formatted, it is a part of a sentence; control characters of
/// names are escaped.
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
    /// The methods that a single moment in memory shows, those of the most threads first. Processor time says
    /// more.
    pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Self> {
        let ([memory], None) = (evidence.memory, evidence.recording) else { return Vec::new() };
        let running = places::threads_by_method(memory.threads.iter().filter(|thread| !is_waiting(thread)));
        let running = running.map(|(threads, method, called)| Self { threads, method, called });
        let mut running: Vec<_> = running.collect();
        running.sort_by(|a, b| b.threads.cmp(&a.threads).then_with(|| a.cmp(b)));
        running.truncate(MAX_METHODS);
        running
    }

    /// The first methods in a sentence, with the number of others; `None` without any.
    pub(crate) fn in_words(methods: &[Self]) -> Option<String> {
        first_in_words(methods, ["more method", "more methods"])
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
