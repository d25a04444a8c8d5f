//! The births and ends of the processes of a recording: a number of a process can be another's before its
//! profile is made.

use std::collections::{HashMap, HashSet};

use dipc_client::dipc_transport::start_key;
use dipc_collect::kernel_samples::pid_of_id;
use linux_proc_stat::TICK_NS;
use nettrace::{Event, Interest, Metadata};

/// The provider of births and ends.
const PROVIDER: &str = "Universal.System";
const CREATE: &str = "ProcessCreate";
const EXIT: &str = "ProcessExit";

/// The births and ends in a recording, by the ids of the processes in it. Times are of the kernel's monotonic
/// clock, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct ProcessLives {
    /// The start of the recording.
    pub(super) start_ns: u64,
    births: HashMap<u64, u64>,
    ended: HashSet<u64>,
}

impl ProcessLives {
    /// The interest in the events of births and ends.
    pub(super) fn interest(kind: &Metadata) -> Interest {
        Interest::all_if(kind.provider() == PROVIDER && matches!(kind.name(), CREATE | EXIT))
    }

    /// Adds an event of the recording.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let Some(id) = event.process_id().filter(|_| event.provider() == PROVIDER) else { return };
        match event.name() {
            // A process that becomes another program has a second one.
            CREATE => _ = self.births.entry(id).or_insert(event.time().0),
            EXIT => _ = self.ended.insert(id),
            _ => {}
        }
    }

    #[cfg(test)]
    pub(super) fn since(start_ns: u64) -> Self {
        Self { start_ns, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn with_end(mut self, id: u64) -> Self {
        self.ended.insert(id);
        self
    }

    /// Returns true if the process was started in the recording.
    pub(super) fn was_born(&self, id: u64) -> bool {
        self.births.contains_key(&id)
    }

    /// Returns true if the process that has its number now is this one.
    pub(super) fn is_running(&self, id: u64) -> bool {
        let latest_ns = self.births.get(&id).copied().unwrap_or(self.start_ns);
        !self.ended.contains(&id) && start_ns(pid_of_id(id)).is_some_and(|start| start <= latest_ns)
    }

    /// The numbers of processes that were started in the recording, or have ended.
    pub(super) fn changed(&self) -> HashSet<u32> {
        self.births.keys().chain(&self.ended).map(|id| pid_of_id(*id)).collect()
    }
}

/// Returns the start of a process, rounded down to 10 ms, or earlier by the time that the machine has slept
/// since.
fn start_ns(pid: u32) -> Option<u64> {
    let since_boot = start_key(pid).ok()?.checked_mul(TICK_NS)?;
    Some(since_boot.saturating_sub(slept_ns()))
}

/// The time that the machine has slept, which the clock of processes' starts counts.
#[cfg(target_os = "linux")]
fn slept_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};

    let ns = |clock| {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
        seconds.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
    };
    // In this order the difference is not too small.
    let awake = ns(ClockId::Monotonic);
    ns(ClockId::Boottime).saturating_sub(awake)
}

#[cfg(not(target_os = "linux"))]
const fn slept_ns() -> u64 {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The id of the second process with a number.
    const SECOND: u64 = 10_000_000;
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_number_belongs_to_the_process_that_was_there_when_the_recording_began() {
        let own = u64::from(std::process::id());
        // Two readings of the clocks take time.
        let start = start_ns(std::process::id()).unwrap();
        let (before, after) = (start.saturating_sub(SECOND_NS), start + SECOND_NS);
        let since = ProcessLives::since;
        assert!(since(after).is_running(own) && since(u64::MAX).is_running(own));
        // It was started later: that one has ended.
        assert!(!since(before).is_running(own));
        assert!(!since(u64::MAX).is_running(5_000_000));
        let mut lives = since(before);
        lives.births.insert(own + SECOND, after);
        lives.ended.insert(own);
        assert!(!lives.is_running(own) && lives.is_running(own + SECOND));
        assert!(!lives.was_born(own) && lives.was_born(own + SECOND));
        assert_eq!(lives.changed(), HashSet::from([std::process::id()]));
        lives.births.insert(own + SECOND, before);
        assert!(!lives.is_running(own + SECOND));
    }
}
