//! The places in which a program waits: a program without a cause spends its time there.

use std::fmt;

use nettrace_export::report::{Overview, WaitingMethod, blocked_methods};
use nettrace_export::units::{count, counted};
use serde::Serialize;

use crate::diagnosis::Evidence;
use crate::memory_facts::{AwaitFacts, AwaitedFor, MemoryFacts, ThreadFacts};
use crate::of_memory::is_waiting;
use crate::of_recording::name;
use crate::places::{self, first_in_words};
use crate::thresholds;

/// Maximum number of places that are kept.
const MAX_PLACES: usize = 16;

/// A place of the user's code in which threads, or calls of an `async` method, wait all the time: for work,
/// or for each other. Formatted, it is a part of a sentence; control characters of names are escaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct WaitingPlace {
    /// The number of threads; zero for calls.
    pub threads: u64,
    /// The number of calls of an `async` method; zero for threads.
    pub calls: u64,
    /// The method, without parameters.
    pub method: String,
    /// The framework's method that threads called to wait, or the type in C# that calls await; `None` if
    /// unknown.
    pub waits_in: Option<String>,
}

impl WaitingPlace {
    /// The places that the evidence shows, those of the most threads and calls first. Memory has also `async`
    /// methods.
    pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Self> {
        let mut places = match (evidence.memory.split_last(), evidence.recording) {
            (Some((last, earlier)), _) => Self::of_memory(last, earlier),
            (None, Some(recording)) => Self::of_recording(recording),
            (None, None) => Vec::new(),
        };
        places.sort_by(|a, b| b.number().cmp(&a.number()).then_with(|| a.cmp(b)));
        places.truncate(MAX_PLACES);
        places
    }

    fn number(&self) -> u64 {
        self.threads.max(self.calls)
    }

    /// The first places in a sentence, with the number of others; `None` without places.
    pub(crate) fn in_words(places: &[Self]) -> Option<String> {
        first_in_words(places, ["more place", "more places"])
    }

    fn of_memory(last: &MemoryFacts, earlier: &[MemoryFacts]) -> Vec<Self> {
        let waits_always = |thread: &&ThreadFacts| {
            let waits = |before: &ThreadFacts| is_waiting(before) && before.method == thread.method;
            is_waiting(thread) && earlier.iter().all(|earlier| earlier.same_thread(thread).is_some_and(waits))
        };
        let threads = places::threads_by_method(last.threads.iter().filter(waits_always));
        let threads = threads.map(|(threads, method, waits_in)| Self { threads, calls: 0, method, waits_in });
        let of_framework = last.framework_awaits.iter().map(|awaits| Self {
            threads: 0,
            calls: awaits.calls,
            method: awaits.method.clone(),
            waits_in: Some(awaits.awaited.clone()),
        });
        threads.chain(last.awaits.iter().map(Self::of_calls)).chain(of_framework).collect()
    }

    fn of_calls(facts: &AwaitFacts) -> Self {
        let awaited = match facts.awaited {
            AwaitedFor::Promise => {
                let result = facts.type_name.split_once('<').map(|(_, result)| format!("<{result}"));
                format!("TaskCompletionSource{}", result.unwrap_or_default())
            }
            AwaitedFor::Semaphore => "SemaphoreSlim".to_owned(),
            AwaitedFor::Other => facts.type_name.clone(),
        };
        Self {
            threads: 0,
            calls: facts.calls.len() as u64,
            method: facts.method.clone(),
            waits_in: Some(crate::names::short_names(&awaited)),
        }
    }

    fn of_recording(overview: &Overview) -> Vec<Self> {
        let frames = &overview.profile.frames;
        let seconds = overview.duration.as_secs_f64();
        let is_most_of_the_time = |wait: &WaitingMethod| {
            wait.weight as f64 / 1e7 >= thresholds::MOST_OF_THE_TIME * seconds * wait.threads as f64
        };
        let waits = blocked_methods(&overview.profile).into_iter();
        let waits = waits.filter(|wait| frames.is_user_code(wait.method) && is_most_of_the_time(wait));
        let place = |wait: WaitingMethod| Self {
            threads: wait.threads,
            calls: 0,
            method: name(overview, wait.method),
            waits_in: wait.called.map(|called| name(overview, called)),
        };
        waits.map(place).collect()
    }
}

impl fmt::Display for WaitingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = &self.method;
        match self.calls {
            0 => write!(f, "{} in {method}", counted(self.threads, "thread", "threads"))?,
            1 => write!(f, "1 call of {method}")?,
            calls => write!(f, "{} calls of {method}", count(calls))?,
        }
        match &self.waits_in {
            Some(waits_in) => write!(f, " ({waits_in})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_facts::FrameworkAwaits;

    fn thread(tid: u64, method: &str, called: &str) -> ThreadFacts {
        ThreadFacts {
            tid,
            method: Some(method.to_owned()),
            called: Some(called.to_owned()),
            ..ThreadFacts::default()
        }
    }

    #[test]
    fn places_have_the_threads_that_wait_in_all_readings() {
        let waits = |tid| thread(tid, "Printer.Print", "SemaphoreSlim.Wait");
        let calls = AwaitFacts {
            method: "Bank.ConfirmAsync".to_owned(),
            state: Some(0),
            awaited: AwaitedFor::Promise,
            type_name: "System.Threading.Tasks.Task<System.Boolean>".to_owned(),
            semaphore: None,
            calls: vec![clr_dump::Address::new(1), clr_dump::Address::new(2), clr_dump::Address::new(3)],
            callers: Vec::new(),
        };
        let last = MemoryFacts {
            threads: vec![
                waits(1),
                waits(2),
                waits(3),
                thread(4, "Program.Main", "Thread.Sleep"),
                thread(5, "Orders.Sell", "List<int>.Sort"),
            ],
            awaits: vec![calls],
            framework_awaits: vec![FrameworkAwaits {
                method: "Billing.ChargeAsync".to_owned(),
                awaited: "HttpClient.GetStringAsyncCore".to_owned(),
                calls: 20,
            }],
            ..MemoryFacts::default()
        };
        let before = MemoryFacts {
            threads: vec![
                waits(1),
                waits(2),
                thread(3, "Orders.Sell", "Thread.Sleep"),
                last.threads[3].clone(),
            ],
            ..MemoryFacts::default()
        };
        let in_words = |memory: &[MemoryFacts]| {
            WaitingPlace::in_words(&WaitingPlace::all(&Evidence::default().with_memory(memory)))
        };
        assert_eq!(
            in_words(&[before, last]).unwrap(),
            "20 calls of Billing.ChargeAsync (HttpClient.GetStringAsyncCore), 3 calls of Bank.ConfirmAsync \
             (TaskCompletionSource<Boolean>), 2 threads in Printer.Print (SemaphoreSlim.Wait), 1 more place"
        );
        assert_eq!(in_words(&[]), None);
        let methods = ["A.A", "B.B", "C.C", "D.D", "E.E"];
        let threads = methods.iter().zip(1..).map(|(method, tid)| thread(tid, method, "Thread.Sleep"));
        let many = MemoryFacts { threads: threads.collect(), ..MemoryFacts::default() };
        assert!(in_words(&[many]).unwrap().ends_with("1 thread in C.C (Thread.Sleep), 2 more places"));
    }
}
