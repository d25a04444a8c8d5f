//! The effects of a group's limits: throttling, the events of its memory, and pressure.

use super::{ControlGroup, field, number, text};
use crate::file::read;
use crate::pressure::ResourcePressure;

/// The account of the smallest limit of processor time, since its group was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Throttling {
    /// Periods in which a task of the group was runnable.
    pub periods: u64,
    /// Periods in which the group used up its quota, and had to wait for the next one.
    pub throttled_periods: u64,
    /// Nanoseconds of such waits, summed over processors.
    pub throttled_ns: u64,
}

/// The events of the memory of a control group since it was created. Version 1 counts fewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MemoryEvents {
    /// The times that the group was above `memory.high`, and its tasks were slowed down to free memory.
    pub high: Option<u64>,
    /// The times that its memory was about to exceed the limit, and had to be freed first; version 1:
    /// `memory.failcnt`.
    pub max: Option<u64>,
    /// The times that an allocation was about to fail at the limit.
    pub oom: Option<u64>,
    /// Its processes that the kernel has killed because memory ran out.
    pub oom_kills: Option<u64>,
}

impl ControlGroup {
    /// Reads the account of the group with the smallest limit, which is the one of [`cpu`](Self::cpu); `None`
    /// without a limit.
    pub fn throttling(&self) -> Option<Throttling> {
        let group = self.cpu_limit.as_ref()?;
        let text = text(group.cpu_limit()?.folder, "cpu.stat")?;
        let throttled_ns = if group.is_version_2 {
            field(&text, "throttled_usec")?.saturating_mul(1000)
        } else {
            field(&text, "throttled_time")?
        };
        let (periods, throttled_periods) = (field(&text, "nr_periods")?, field(&text, "nr_throttled")?);
        Some(Throttling { periods, throttled_periods, throttled_ns })
    }

    /// Reads the events of its memory. Those of a limit are of the group that has it, which is the one of
    /// [`memory`](Self::memory).
    pub fn memory_events(&self) -> Option<MemoryEvents> {
        let group = self.memory.as_ref()?;
        let limit = group.memory_limit();
        let folder = limit.map_or(&*group.folder, |limit| limit.folder);
        let oom_kills = self.oom_kills();
        if !group.is_version_2 {
            let max = number(folder, "memory.failcnt");
            return Some(MemoryEvents { max, oom_kills, ..MemoryEvents::default() });
        }
        let text = text(folder, "memory.events")?;
        let count = |name| field(&text, name);
        Some(MemoryEvents { high: count("high"), max: count("max"), oom: count("oom"), oom_kills })
    }

    /// Reads all memory of the group, in bytes, with the pages of files that can be taken back at once.
    pub fn memory_usage(&self) -> Option<u64> {
        let group = self.memory.as_ref()?;
        let file = if group.is_version_2 { "memory.current" } else { "memory.usage_in_bytes" };
        number(&group.folder, file)
    }

    /// Reads the memory of the group that is swapped out, in bytes; `None` if the kernel does not count it.
    pub fn swap(&self) -> Option<u64> {
        let group = self.memory.as_ref()?;
        if group.is_version_2 {
            number(&group.folder, "memory.swap.current")
        } else {
            field(&text(&group.folder, "memory.stat")?, "total_swap")
        }
    }

    /// Reads the pressure on its resources, which groups of version 2 have.
    pub fn pressure(&self) -> ResourcePressure {
        ResourcePressure::read(|resource| {
            read(&self.unified.as_ref()?.folder.join(format!("{resource}.pressure"))).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::TestTree;

    #[test]
    fn version_2_counts_at_the_group_that_has_the_limit() {
        let tree = TestTree::new(
            "events-v2",
            &[
                ("pod/cpu.max", "50000 100000\n"),
                ("pod/cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 2500\n"),
                ("pod/memory.current", "900\n"),
                ("pod/memory.max", "1000\n"),
                ("pod/memory.stat", "anon 5\n"),
                ("pod/memory.events", "low 0\nhigh 4\nmax 7\noom 2\noom_kill 3\n"),
                ("pod/app/cpu.max", "max 100000\n"),
                ("pod/app/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
                ("pod/app/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"),
                ("pod/app/memory.swap.current", "4096\n"),
                ("pod/app/memory.current", "600\n"),
                ("pod/app/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
                ("pod/app/io.pressure", "broken"),
            ],
        );
        let group = tree.group("0::/pod/app\n", &[("/", "", "cgroup2", "rw")]);
        let throttling = Throttling { periods: 40, throttled_periods: 30, throttled_ns: 2_500_000 };
        assert_eq!(group.throttling(), Some(throttling));
        let events = MemoryEvents { high: Some(4), max: Some(7), oom: Some(2), oom_kills: Some(1) };
        assert_eq!((group.memory_events(), group.swap()), (Some(events), Some(4096)));
        assert_eq!(group.memory_usage(), Some(600));
        let pressure = group.pressure();
        assert_eq!(pressure.cpu.map(|cpu| (cpu.some_ns, cpu.full_ns)), Some((5000, None)));
        assert_eq!((pressure.memory, pressure.io), (None, None));
        // A group without a limit is not throttled.
        let other = tree.group("0::/pod/app/x\n", &[("/pod/app", "pod/app", "cgroup2", "rw")]);
        assert_eq!((other.throttling(), other.memory_events(), other.swap()), (None, None, None));
    }

    #[test]
    fn version_1_counts_failures_and_nanoseconds() {
        let tree = TestTree::new(
            "events-v1",
            &[
                ("cpu/app/cpu.cfs_quota_us", "50000\n"),
                ("cpu/app/cpu.cfs_period_us", "100000\n"),
                ("cpu/app/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 2500\n"),
                ("memory/app/memory.failcnt", "11\n"),
                ("memory/app/memory.usage_in_bytes", "700\n"),
                ("memory/app/memory.oom_control", "under_oom 0\noom_kill 2\n"),
                ("memory/app/memory.stat", "swap 1\ntotal_swap 8192\n"),
                ("unified/app/memory.pressure", "some total=1\nfull total=1\n"),
            ],
        );
        let mounts = [
            ("/", "cpu", "cgroup", "rw,cpu"),
            ("/", "memory", "cgroup", "rw,memory"),
            ("/", "unified", "cgroup2", "rw"),
        ];
        let group = tree.group("4:memory:/app\n1:cpu:/app\n0::/app\n", &mounts);
        let throttling = Throttling { periods: 4, throttled_periods: 3, throttled_ns: 2500 };
        assert_eq!(group.throttling(), Some(throttling));
        let events = MemoryEvents { max: Some(11), oom_kills: Some(2), ..MemoryEvents::default() };
        assert_eq!((group.memory_events(), group.swap()), (Some(events), Some(8192)));
        assert_eq!(group.memory_usage(), Some(700));
        assert_eq!(group.pressure().memory.and_then(|memory| memory.full_ns), Some(1000));
    }

    #[test]
    fn broken_counts_are_missing() {
        for stat in
            ["", "nr_periods 4\n", "nr_periods x\nnr_throttled 3\nthrottled_usec 1\n", "nr_periods -1"]
        {
            let tree = TestTree::new("events-broken", &[("a/cpu.max", "1 2\n"), ("a/cpu.stat", stat)]);
            assert_eq!(tree.group("0::/a\n", &[("/", "", "cgroup2", "rw")]).throttling(), None, "{stat}");
        }
    }
}
