//! Fewer stacks of switches where threads leave processors thousands of times a second.
//!
//! All switches keep their times. The stacks of a second are limited for the whole sampler: threads with few
//! switches have a stack for each, and busier threads have a stack for every n-th switch, with n chosen so
//! that they share the rest of the limit. Such a stack has the weight n (`Sample::period`), so that the sum
//! of the weights of a thread's stacks is the number of its switches, and the sum of weight times time off
//! the processors is an unbiased estimate of that time.
//!
//! Stacks are dropped when they are read. The kernel copies the stacks of all switches: a software event with
//! sample periods has a sample for each occurrence, whatever the period is. If these overflow their buffer,
//! stacks are lost; since weights count the switches themselves, the next stack represents the lost ones as
//! well.
//!
//! # Source
//! Linux `kernel/events/core.c` (`perf_swevent_event`).

use std::collections::HashMap;

/// Minimum time over which rates are measured.
const WINDOW_NS: u64 = 200_000_000;

/// Maximum number of threads with a known rate; others keep all stacks.
const MAX_THREADS: usize = 1 << 16;

/// The thinning of the stacks of switches, by thread.
#[derive(Debug)]
pub(crate) struct Thinning {
    /// Stacks per second of all threads; 0 for no limit.
    limit: u32,
    /// Minimum number of switches from one stack to the next.
    least: u64,
    since_ns: u64,
    threads: HashMap<i32, Thread>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    /// Switches in this window.
    switches: u64,
    /// The switches from one stack to the next.
    every: u64,
    /// Switches since the switch of the last stack that was kept.
    since_kept: u64,
    /// True if the switch of the last stack is still expected.
    is_leaving: bool,
}

impl Thinning {
    pub(crate) fn new(limit: u32, least: u32, now_ns: u64) -> Self {
        Self { limit, least: u64::from(least.max(1)), since_ns: now_ns, threads: HashMap::new() }
    }

    /// Counts a switch.
    pub(crate) fn switch(&mut self, tid: i32) {
        if !self.follows(tid) {
            return;
        }
        let thread = self.threads.entry(tid).or_default();
        thread.switches = thread.switches.saturating_add(1);
        if !std::mem::take(&mut thread.is_leaving) {
            thread.since_kept = thread.since_kept.saturating_add(1);
        }
    }

    /// Returns the number of switches that a stack represents, that of the switch which follows it included;
    /// `None` if it is dropped.
    pub(crate) fn stack(&mut self, tid: i32) -> Option<u64> {
        if !self.follows(tid) {
            return Some(1);
        }
        let thread = self.threads.entry(tid).or_default();
        let switches = thread.since_kept.saturating_add(1);
        if switches < thread.every.max(self.least) {
            return None;
        }
        (thread.since_kept, thread.is_leaving) = (0, true);
        Some(switches)
    }

    fn follows(&self, tid: i32) -> bool {
        self.threads.len() < MAX_THREADS || self.threads.contains_key(&tid)
    }

    /// Removes a thread that has ended.
    pub(crate) fn ended(&mut self, tid: i32) {
        self.threads.remove(&tid);
    }

    /// Updates the rates if a window has passed.
    pub(crate) fn adjust(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.since_ns);
        if self.limit == 0 || passed < WINDOW_NS {
            return;
        }
        self.since_ns = now_ns;
        let per_second = |switches: u64| {
            let rate = u128::from(switches).saturating_mul(1_000_000_000) / u128::from(passed.max(1));
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let rates = self.threads.values().map(|thread| per_second(thread.switches)).collect();
        let level = level(rates, u64::from(self.limit));
        for thread in self.threads.values_mut() {
            thread.every = per_second(std::mem::take(&mut thread.switches)).div_ceil(level);
        }
        self.threads.retain(|_, thread| thread.every > 1 || thread.since_kept > 0 || thread.is_leaving);
    }
}

/// The rate at which each thread is cut so that all rates together are at most `limit`; at least 1.
fn level(mut rates: Vec<u64>, limit: u64) -> u64 {
    rates.sort_unstable();
    let mut left = limit;
    let mut threads = rates.len() as u64;
    for rate in rates {
        let share = left.checked_div(threads).unwrap_or(left);
        if rate > share {
            return share.max(1);
        }
        left = left.saturating_sub(rate);
        threads = threads.saturating_sub(1);
    }
    limit.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A thread leaves a processor: its stack precedes its switch.
    fn leave(thinning: &mut Thinning, tid: i32) -> Option<u64> {
        let weight = thinning.stack(tid);
        thinning.switch(tid);
        weight
    }

    #[test]
    fn threads_with_few_switches_keep_all_stacks_and_the_others_share_the_rest() {
        assert_eq!(level(vec![10, 20], 2000), 2000, "nothing is cut");
        assert_eq!(level(vec![10, 60_000, 30_000], 2000), 995);
        assert_eq!(level(vec![9_000; 1000], 500), 1);
        let mut thinning = Thinning::new(2000, 1, 0);
        let threads = [(1, 10), (2, 60_000), (3, 30_000)];
        let mut second = |time| {
            let mut kept =
                |(tid, switches)| (0..switches).filter(|_| leave(&mut thinning, tid).is_some()).count();
            let kept = threads.map(&mut kept);
            thinning.adjust(time * SECOND);
            kept
        };
        assert_eq!(second(1), [10, 60_000, 30_000]);
        assert_eq!(second(2), [10, 60_000 / 61, 30_000 / 31]);
        // After a second without switches all have a stack again.
        thinning.adjust(3 * SECOND);
        assert_eq!((leave(&mut thinning, 3).is_some(), leave(&mut thinning, 1)), (true, Some(1)));
    }

    #[test]
    fn every_nth_switch_has_a_stack() {
        let mut thinning = Thinning::new(0, 3, 0);
        let kept: Vec<_> = (0..7).map(|_| leave(&mut thinning, 1)).collect();
        assert_eq!(kept, [None, None, Some(3), None, None, Some(3), None]);
    }

    #[test]
    fn the_weights_of_kept_stacks_are_the_number_of_switches() {
        let mut thinning = Thinning::new(100, 1, 0);
        let mut kept = Vec::new();
        for second in 1..=10 {
            for _ in 0..5_000 {
                kept.extend(leave(&mut thinning, 7));
            }
            thinning.adjust(second * SECOND);
        }
        let after_the_first_second = kept.len() - 5_000;
        assert!((890..=910).contains(&after_the_first_second), "{after_the_first_second}");
        let weight: u64 = kept.iter().sum();
        assert!((49_950..=50_000).contains(&weight), "{weight}");
    }

    #[test]
    fn without_a_limit_all_stacks_are_kept() {
        let mut thinning = Thinning::new(0, 1, 0);
        assert!((0..10_000).all(|_| leave(&mut thinning, 1) == Some(1)));
    }

    #[test]
    fn a_stack_represents_switches_with_lost_stacks() {
        let mut thinning = Thinning::new(0, 1, 0);
        assert_eq!(leave(&mut thinning, 1), Some(1));
        (0..9).for_each(|_| thinning.switch(1));
        assert_eq!((leave(&mut thinning, 1), leave(&mut thinning, 1)), (Some(10), Some(1)));
    }
}
