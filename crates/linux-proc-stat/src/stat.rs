//! `/proc/PID/stat`.

/// Nanoseconds in a clock tick of [`Stat`]: programs see 100 ticks a second at any rate of the kernel.
pub const TICK_NS: u64 = 10_000_000;

/// The line of a process or thread.
///
/// The second field is the name, in parentheses. It may have any bytes, so the third field follows the last
/// closing parenthesis, and the name follows the first opening one.
///
/// ```
/// use linux_proc_stat::Stat;
///
/// let line = b"4711 (shop) S 1 4711 4711 0 -1 0 0 0 0 0 25 5 0 0 20 0 9 0 98765";
/// let stat = Stat::parse(line).ok_or("not a line of stat")?;
/// // 25 ticks in user mode and 5 in the kernel, of 10 ms.
/// assert_eq!((stat.cpu_ns(), stat.start_ticks()), (Some(300_000_000), Some(98765)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat<'t> {
    name: &'t [u8],
    /// From the third field on.
    fields: &'t str,
}

impl<'t> Stat<'t> {
    /// Finds the name and the other fields; `None` if the name does not end, or if the fields after it are
    /// not ASCII.
    pub fn parse(bytes: &'t [u8]) -> Option<Self> {
        let start = bytes.iter().position(|&byte| byte == b'(')?.checked_add(1)?;
        let end = bytes.iter().rposition(|&byte| byte == b')')?;
        let fields = std::str::from_utf8(bytes.get(end..)?.strip_prefix(b")")?).ok()?;
        Some(Self { name: bytes.get(start..end)?, fields })
    }

    /// Returns the name, of at most 15 bytes for a thread of a program.
    pub const fn name(&self) -> &'t [u8] {
        self.name
    }

    /// Returns the kernel's letter for the state: `R` for running or runnable, `S` for sleeping, `Z` and `X`
    /// for ended.
    pub fn state(&self) -> Option<char> {
        self.field(3)?.chars().next()
    }

    /// Returns the processor time in user and kernel mode, in nanoseconds, to 10 ms.
    pub fn cpu_ns(&self) -> Option<u64> {
        Some(self.user_ns()?.saturating_add(self.system_ns()?))
    }

    /// Returns the processor time in user mode, in nanoseconds, to 10 ms.
    pub fn user_ns(&self) -> Option<u64> {
        Some(self.number(14)?.saturating_mul(TICK_NS))
    }

    /// Returns the processor time in kernel mode, in nanoseconds, to 10 ms.
    pub fn system_ns(&self) -> Option<u64> {
        Some(self.number(15)?.saturating_mul(TICK_NS))
    }

    /// Returns the page faults that the kernel answered from memory.
    pub fn minor_faults(&self) -> Option<u64> {
        self.number(10)
    }

    /// Returns the page faults that had to wait for a disk.
    pub fn major_faults(&self) -> Option<u64> {
        self.number(12)
    }

    /// Returns the number of threads of the process.
    pub fn thread_count(&self) -> Option<u64> {
        self.number(20)
    }

    /// Returns the time waited for block devices and for pages to be swapped in, in nanoseconds, to 10 ms.
    /// The line of a process has the time of its first thread only. It is 0 where the kernel does not count
    /// it (`kernel.task_delayacct`).
    pub fn io_delay_ns(&self) -> Option<u64> {
        Some(self.number(42)?.saturating_mul(TICK_NS))
    }

    /// Returns the start time in clock ticks since the system's start.
    pub fn start_ticks(&self) -> Option<u64> {
        self.number(22)
    }

    /// Returns the signals with a handler, bit 0 for signal 1. Real-time signals are not among them.
    pub fn caught_signals(&self) -> Option<u64> {
        self.number(34)
    }

    /// Returns the status with which a process has ended, as `waitpid` has it; 0 of one that runs, and where
    /// the reader may not trace it.
    pub fn exit_status(&self) -> Option<i32> {
        self.field(52)?.parse().ok()
    }

    fn number(&self, number: usize) -> Option<u64> {
        self.field(number)?.parse().ok()
    }

    /// Returns the field of this number in `proc_pid_stat(5)`, from 3 on.
    fn field(&self, number: usize) -> Option<&'t str> {
        self.fields.split_ascii_whitespace().nth(number.checked_sub(3)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "S 1 4711 4711 0 -1 4194560 92 0 0 0 30 12 3 4 20 0 1 0 987654321 2519040 378 1 \
        2 3 4 5 6 7 8 9 17656";

    /// Names that a process can give itself by `prctl(PR_SET_NAME)`.
    const HOSTILE: [&[u8]; 9] =
        [b"sleep", b"a) R 1 2 3", b"((", b"))", b"", b"\xfc) (", b"a\nb", b") Z (", b"\xff\xfe)"];

    #[test]
    fn no_name_moves_another_field() {
        for name in HOSTILE {
            let line = [b"4711 (", name, b") ", FIELDS.as_bytes(), b"\n"].concat();
            let stat = Stat::parse(&line).unwrap();
            assert_eq!((stat.name(), stat.state()), (name, Some('S')));
            assert_eq!((stat.cpu_ns(), stat.start_ticks()), (Some(420_000_000), Some(987_654_321)));
            assert_eq!(stat.caught_signals(), Some(17_656));
        }
    }

    #[test]
    fn counts_are_the_fields_of_the_manual_page() {
        let numbers: Vec<_> = (4..=52).map(|number| number.to_string()).collect();
        let line = format!("3 (a) S {}\n", numbers.join(" "));
        let stat = Stat::parse(line.as_bytes()).unwrap();
        assert_eq!(
            (stat.minor_faults(), stat.major_faults(), stat.thread_count()),
            (Some(10), Some(12), Some(20))
        );
        assert_eq!((stat.user_ns(), stat.system_ns()), (Some(140_000_000), Some(150_000_000)));
        assert_eq!(stat.io_delay_ns(), Some(420_000_000));
    }

    #[test]
    fn the_exit_status_is_the_52nd_field() {
        let line = |end: &str| format!("4711 (a) b) Z {}{end}", "1 ".repeat(48));
        let status = |line: String| Stat::parse(line.as_bytes()).unwrap().exit_status();
        assert_eq!(status(line("139\n")), Some(139));
        // The field is missing.
        assert_eq!(status(line("")), None);
    }

    #[test]
    fn cut_lines_have_the_fields_before_the_cut() {
        for cut in ["", "4711", "4711 (sleep", "4711 sleep)", ")(", "4711 (a) \u{fc}x"] {
            let stat = Stat::parse(cut.as_bytes());
            assert_eq!(stat.and_then(|stat| stat.start_ticks()), None, "{cut}");
        }
        let cut = Stat::parse(b"4711 (sleep) S 1 4711").unwrap();
        assert_eq!((cut.state(), cut.cpu_ns(), cut.start_ticks()), (Some('S'), None, None));
        assert_eq!(Stat::parse(b"4711 (sleep)").unwrap().state(), None);
    }

    #[test]
    fn times_beyond_the_largest_number_are_that_number() {
        let line = format!("1 (a) S 1 2 3 4 5 6 7 8 9 10 {0} {0} 0", u64::MAX);
        assert_eq!(Stat::parse(line.as_bytes()).unwrap().cpu_ns(), Some(u64::MAX));
    }
}
