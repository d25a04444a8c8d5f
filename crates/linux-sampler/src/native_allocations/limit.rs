//! The limit on the cost of probes.

use super::AllocationCounts;

/// The time between two looks at the cost.
const INTERVAL_NS: u64 = 1_000_000_000;
/// The number of intervals in a row that may cost more than the limit: programs allocate in bursts.
const MOST_IN_A_ROW: u32 = 2;
/// The part of one processor that probes may always take, in percent: a process that hardly runs is not held
/// up.
const ALWAYS_PERCENT: u64 = 1;

/// The comparison of the cost with its limit, an interval after the other.
#[derive(Debug)]
pub(super) struct CostLimit {
    percent: u64,
    checked_ns: Option<u64>,
    /// The counts of the last look.
    last: AllocationCounts,
    in_a_row: u32,
}

impl CostLimit {
    pub(super) fn new(percent: u32) -> Self {
        Self { percent: percent.into(), checked_ns: None, last: AllocationCounts::default(), in_a_row: 0 }
    }

    /// Returns true once an interval has passed.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let last = *self.checked_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(last) >= INTERVAL_NS
    }

    /// Returns true if the intervals up to now have cost more than the limit.
    pub(super) fn is_exceeded(&mut self, now_ns: u64, counts: &AllocationCounts) -> bool {
        self.checked_ns = Some(now_ns);
        let passed = counts.duration_ns.saturating_sub(self.last.duration_ns);
        let cost = counts.cost_ns.saturating_sub(self.last.cost_ns);
        let cpu = counts.cpu_ns.saturating_sub(self.last.cpu_ns);
        self.last = *counts;
        let is_more = |cost: u64, of: u64, percent| cost.saturating_mul(100) > of.saturating_mul(percent);
        if is_more(cost, cpu, self.percent) && is_more(cost, passed, ALWAYS_PERCENT) {
            self.in_a_row = self.in_a_row.saturating_add(1);
        } else {
            self.in_a_row = 0;
        }
        self.in_a_row >= MOST_IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the second in which the limit of 20 % is exceeded, by the costs and processor times of
    /// seconds, in milliseconds.
    fn exceeded(seconds: &[(u64, u64)]) -> Option<u64> {
        let mut limit = CostLimit::new(20);
        let mut counts = AllocationCounts::default();
        assert!(!limit.is_due(0), "the first interval begins");
        for (second, (cost, cpu)) in (1..).zip(seconds) {
            assert!(!limit.is_due(second * SECOND - 1), "not before its end");
            assert!(limit.is_due(second * SECOND));
            counts.duration_ns += SECOND;
            counts.cost_ns += cost * 1_000_000;
            counts.cpu_ns += cpu * 1_000_000;
            if limit.is_exceeded(second * SECOND, &counts) {
                return Some(second);
            }
        }
        None
    }

    #[test]
    fn two_seconds_in_a_row_are_too_many() {
        assert_eq!(exceeded(&[(190, 1000), (200, 1000), (150, 1000)]), None);
        assert_eq!(exceeded(&[(210, 1000), (100, 1000), (300, 1000), (10, 1000)]), None, "bursts");
        assert_eq!(exceeded(&[(0, 1000), (210, 1000), (210, 1000)]), Some(3));
    }

    #[test]
    fn a_process_that_hardly_runs_may_pay_a_hundredth_of_a_processor() {
        assert_eq!(exceeded(&[(10, 10); 5]), None);
        assert_eq!(exceeded(&[(11, 11); 5]), Some(2));
    }
}
