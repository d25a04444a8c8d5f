//! Timers that are late: no thread of the pool runs them.

use nettrace_export::units::{counted, time};

use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_counts::{LateTimerCount, MemoryCounts};
use crate::memory_facts::{ElapsedDelays, MemoryFacts};
use crate::of_memory::most_frequent;

/// Timers that are late in all readings that know the time, as evidence of a starved thread pool: it is a
/// finding of its own if nothing else shows that. A single reading can be of a moment in which the machine
/// was busy.
pub(crate) fn starvation(counts: &[MemoryCounts]) -> Option<Finding> {
    let late: Vec<_> = counts.iter().filter_map(|counts| counts.late_timers.as_ref()).collect();
    let [_, .., last] = *late else { return None };
    if late.iter().any(|late| late.count == 0) {
        return None;
    }
    let LateTimerCount { count, most, methods } = last;
    let method = most_frequent(methods).map(|(method, _)| method.to_owned());
    let calls = method.as_deref().map_or_else(String::new, |method| format!("; most of them call {method}"));
    let cause = format!(
        "{} late, by {} at most: no thread of the pool runs them{calls}",
        counted(*count, "timer is", "timers are"),
        time(*most),
    );
    Some(
        Finding::new(FindingKind::Starvation, 1.0, cause, Details::Stacks)
            .with_method(method)
            .with_confidence(Confidence::Likely)
            .with_numbers([
                Number::new("late_timers", *count as f64),
                Number::new("late_ms", most.as_secs_f64() * 1e3),
            ]),
    )
}

/// Returns the evidence of a starved pool that calls await delays which have elapsed, in all readings.
pub(crate) fn elapsed_delays(memory: &[MemoryFacts]) -> Option<String> {
    let ElapsedDelays { calls, method } = &memory.last()?.elapsed_delays;
    if memory.iter().any(|memory| memory.elapsed_delays.calls == 0) {
        return None;
    }
    let calls = counted(*calls, "call awaits a delay that has", "calls await delays that have");
    Some(format!("{calls} elapsed, as in {}", method.as_deref()?))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::memory_facts::ThreadFacts;
    use crate::{Evidence, diagnose};

    fn reading(count: u64, seconds: u64) -> MemoryCounts {
        let methods = vec!["Clock.Tick".to_owned()];
        let late = LateTimerCount { count, most: Duration::from_secs(seconds), methods };
        MemoryCounts { late_timers: Some(late), ..MemoryCounts::at(Instant::now()) }
    }

    #[test]
    fn timers_that_stay_late_are_starvation() {
        let counts = [reading(3, 1), reading(8, 4), reading(20, 7)];
        let findings = diagnose(&Evidence::default().with_counts(&counts));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((finding.kind, finding.method.as_deref()), (FindingKind::Starvation, Some("Clock.Tick")));
        let cause = "20 timers are late, by 7.00 s at most: no thread of the pool runs them; most of them call Clock.Tick";
        assert_eq!(finding.cause, cause);
        // They have fired meanwhile, and one moment says nothing.
        for healthy in [&[reading(3, 1), reading(0, 0), reading(2, 1)][..], &[reading(3, 1)]] {
            assert_eq!(diagnose(&Evidence::default().with_counts(healthy)), []);
        }
    }

    #[test]
    fn late_timers_are_evidence_of_a_starved_pool() {
        let worker = |tid| ThreadFacts {
            tid,
            is_pool_worker: true,
            method: Some("Shop.Load".to_owned()),
            methods: vec!["Shop.Load".to_owned()],
            called: Some("Task.Wait".to_owned()),
            ..ThreadFacts::default()
        };
        let elapsed_delays = ElapsedDelays { calls: 12, method: Some("Shop.LoadAsync".to_owned()) };
        let memory =
            MemoryFacts { threads: vec![worker(2), worker(3)], elapsed_delays, ..MemoryFacts::default() };
        let memory = [memory.clone(), memory];
        let counts = [reading(3, 1), reading(8, 4)];
        let findings = diagnose(&Evidence::default().with_memory(&memory).with_counts(&counts));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(finding.method.as_deref(), Some("Shop.Load"));
        let evidence = [
            "8 timers are late, by 4.00 s at most: no thread of the pool runs them; most of them call Clock.Tick",
            "12 calls await delays that have elapsed, as in Shop.LoadAsync",
        ];
        assert_eq!(finding.evidence, evidence);
    }
}
