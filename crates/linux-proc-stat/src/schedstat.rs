//! `/proc/PID/schedstat`.

/// The time that a thread has run and waited to run since it began.
///
/// ```
/// use linux_proc_stat::SchedStat;
///
/// let times = SchedStat::parse(b"1500000 200000 7\n").ok_or("no times")?;
/// assert_eq!((times.cpu_ns, times.queue_ns, times.slices), (1_500_000, 200_000, 7));
/// // A kernel that does not count writes zeros.
/// assert_eq!(SchedStat::parse(b"0 0 0\n"), None);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedStat {
    /// Nanoseconds on a processor.
    pub cpu_ns: u64,
    /// Nanoseconds in a run queue: runnable, and not running.
    pub queue_ns: u64,
    /// The number of times that it was given a processor.
    pub slices: u64,
}

impl SchedStat {
    /// Parses the file; `None` if the kernel does not count, and writes zeros, or if the thread has not yet
    /// run.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(bytes).ok()?.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        let times = Self { cpu_ns: next()?, queue_ns: next()?, slices: next()? };
        (times.slices > 0).then_some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_do_not_count_have_no_times() {
        let times = SchedStat::parse(b"500 60 7\n").unwrap();
        assert_eq!((times.cpu_ns, times.queue_ns, times.slices), (500, 60, 7));
        for text in ["0 0 0\n", "", "500 60", "500 60 x", "-1 60 7", "500 99999999999999999999 7"] {
            assert_eq!(SchedStat::parse(text.as_bytes()), None, "{text}");
        }
    }
}
