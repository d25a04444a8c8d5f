//! Memory and processor time of a process and its container, as the kernel counts them.

use clr_conditions::SystemUsage;

/// A reader of the values of a process: of one place in time, and of the time since the last reading.
#[derive(Debug)]
pub(crate) struct UsageReader {
    #[cfg(target_os = "linux")]
    linux: Option<linux::Reader>,
}

impl UsageReader {
    /// Creates the reader. `pid` is the pid in this system; without it nothing is known.
    pub(crate) fn new(pid: Option<u32>) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
        Self {
            #[cfg(target_os = "linux")]
            linux: pid.map(linux::Reader::new),
        }
    }

    /// Reads the values. The first reading is without processor time.
    pub(crate) fn read(&mut self) -> SystemUsage {
        #[cfg(target_os = "linux")]
        if let Some(linux) = &mut self.linux {
            return linux.read();
        }
        SystemUsage::default()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::{Duration, Instant};

    use clr_conditions::SystemUsage;
    use linux_proc_stat::{ControlGroup, Stat, Status, process_folder};

    #[derive(Debug)]
    pub(super) struct Reader {
        pid: u32,
        group: ControlGroup,
        last: Option<Used>,
    }

    /// Processor time that was used by a moment, in nanoseconds.
    #[derive(Debug, Clone, Copy)]
    struct Used {
        at: Instant,
        process: Option<u64>,
        container: Option<u64>,
    }

    impl Reader {
        pub(super) fn new(pid: u32) -> Self {
            Self { pid, group: ControlGroup::of_process(pid).unwrap_or_default(), last: None }
        }

        pub(super) fn read(&mut self) -> SystemUsage {
            let file =
                |name: &str| linux_proc_stat::read(&process_folder(self.pid).join(name)).unwrap_or_default();
            let (stat, status) = (file("stat"), file("status"));
            let memory = self.group.memory();
            let cpu = self.group.cpu();
            let now = Used {
                at: Instant::now(),
                process: Stat::parse(&stat).and_then(|stat| stat.cpu_ns()),
                container: cpu.map(|cpu| cpu.used_ns),
            };
            let last = self.last.replace(now);
            let passed = last.map(|last| now.at.saturating_duration_since(last.at));
            let cores = |used: fn(&Used) -> Option<u64>| {
                let used = used(&now)?.checked_sub(used(&last?)?)?;
                let passed = passed.filter(|passed| !passed.is_zero())?;
                Some(Duration::from_nanos(used).as_secs_f64() / passed.as_secs_f64())
            };
            #[allow(clippy::cast_precision_loss, reason = "a percentage")]
            let share = |(part, whole): (u64, u64)| part as f64 / whole as f64;
            let limit = cpu.and_then(|cpu| cpu.limit).map(share);
            SystemUsage {
                process_cpu_percent: cores(|used| used.process).map(|cores| cores * 100.0),
                process_memory_bytes: Status::new(&status).resident_bytes(),
                container_cpu_percent: cores(|used| used.container)
                    .zip(limit)
                    .map(|(cores, limit)| cores / limit * 100.0),
                container_memory_bytes: memory.map(|memory| memory.used),
                container_memory_percent: memory
                    .and_then(|memory| memory.limited)
                    .map(|limited| share(limited) * 100.0),
                // Read at an interval of its own.
                native_memory_bytes: None,
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn counts_the_processor_time_of_this_process() {
            let mut reader = Reader::new(std::process::id());
            let first = reader.read();
            assert_eq!(first.process_cpu_percent, None);
            assert!(first.process_memory_bytes > Some(100_000), "{first:?}");
            // A hundred ticks of the kernel's account.
            let used = || {
                let stat = linux_proc_stat::read(&process_folder(std::process::id()).join("stat")).unwrap();
                Stat::parse(&stat).unwrap().cpu_ns().unwrap()
            };
            let end = used() + 300_000_000;
            while used() < end {}
            let second = reader.read();
            assert!(second.process_cpu_percent > Some(0.0), "{second:?}");
        }

        #[test]
        fn a_process_that_has_ended_has_no_values() {
            let mut reader = Reader::new(u32::MAX);
            reader.read();
            assert_eq!(reader.read(), SystemUsage::default());
        }
    }
}
