//! `/proc/PID/status`.

/// Lines of `Name:\tvalue` about a process or thread.
///
/// The kernel escapes line feeds and backslashes in the name, so that a name cannot have lines of its own.
///
/// ```
/// use linux_proc_stat::Status;
///
/// let text = b"Name:\tshop\nState:\tS (sleeping)\nNSpid:\t4711\t1\nVmRSS:\t  2048 kB\n";
/// let status = Status::new(text);
/// assert_eq!((status.state(), status.resident_bytes()), (Some('S'), Some(2 << 20)));
/// // Its own number in a container.
/// assert_eq!(status.innermost_id(), Some(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'t> {
    bytes: &'t [u8],
}

impl<'t> Status<'t> {
    /// Wraps the content of the file. Fields are searched when they are asked for.
    pub const fn new(bytes: &'t [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the value of a field without the white space around it; `None` if the kernel does not write
    /// it, or if it is not UTF-8.
    pub fn field(&self, name: &str) -> Option<&'t str> {
        std::str::from_utf8(self.bytes_of(name)?).ok().map(str::trim)
    }

    /// Returns the name, as the kernel escapes it and perhaps truncated inside a character.
    pub fn name(&self) -> Option<&'t [u8]> {
        self.bytes_of("Name")
    }

    /// Returns the kernel's letter for the state, as in [`Stat::state`](crate::Stat::state); `t` is stopped
    /// by a tracer, `T` by a signal.
    pub fn state(&self) -> Option<char> {
        self.field("State")?.chars().next()
    }

    /// Returns the process that a thread belongs to; its own id for the first thread.
    pub fn process(&self) -> Option<u32> {
        self.field("Tgid")?.parse().ok()
    }

    /// Returns the ids in the pid namespaces, from the outermost that this `/proc` shows to the innermost.
    /// Kernels without namespaces have only one id.
    pub fn namespace_ids(&self) -> impl Iterator<Item = u32> + use<'t> {
        let ids = self.field("NSpid").or_else(|| self.field("Pid")).unwrap_or_default();
        ids.split_ascii_whitespace().map_while(|id| id.parse().ok())
    }

    /// Returns the id in the innermost pid namespace: a program in a container sees this id as its own.
    pub fn innermost_id(&self) -> Option<u32> {
        self.namespace_ids().last()
    }

    /// Returns the effective user.
    pub fn effective_user(&self) -> Option<u32> {
        // Real, effective, saved, file system.
        self.field("Uid")?.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Returns the thread that traces it, if one does.
    pub fn tracer(&self) -> Option<u32> {
        self.field("TracerPid")?.parse().ok().filter(|&tid| tid != 0)
    }

    /// Returns true if it has memory of its own: kernel threads and zombies do not.
    pub fn has_memory(&self) -> bool {
        self.bytes_of("VmSize").is_some()
    }

    /// Returns the bytes of its memory that are resident; `None` without memory of its own.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.size("VmRSS")
    }

    /// Returns a size in bytes, such as `VmSwap`, of a line that has it in kB.
    pub fn size(&self, name: &str) -> Option<u64> {
        parse_size(self.field(name)?)
    }

    /// Returns the number of threads of the process.
    pub fn thread_count(&self) -> Option<u64> {
        self.field("Threads")?.parse().ok()
    }

    /// Returns the number of processors that the thread may run on, by its affinity and its cpuset.
    ///
    /// ```
    /// use linux_proc_stat::Status;
    ///
    /// let status = Status::new(b"Cpus_allowed_list:\t0-3,8\n");
    /// assert_eq!(status.allowed_processors(), Some(5));
    /// ```
    pub fn allowed_processors(&self) -> Option<u32> {
        self.field("Cpus_allowed_list")?.split(',').try_fold(0_u32, |sum, range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
        })
    }

    /// Returns true if it has ended, and its parent has not yet taken its exit code.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state(), Some('Z' | 'X'))
    }

    /// Returns a set of signals (`SigIgn`, `SigCgt`, bit 0 for signal 1) or of capabilities (`CapEff`).
    ///
    /// ```
    /// use linux_proc_stat::Status;
    ///
    /// let status = Status::new(b"SigIgn:\t0000000000001000\n");
    /// // Bit 12 is signal 13, SIGPIPE.
    /// assert_eq!(status.mask("SigIgn"), Some(1 << 12));
    /// assert_eq!(status.field("CapEff"), None);
    /// ```
    pub fn mask(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    /// Returns how often it has left a processor, to wait or because another was to run. While it waits, the
    /// number stays the same. The status of a process counts its first thread.
    ///
    /// ```
    /// use linux_proc_stat::Status;
    ///
    /// let status = Status::new(b"voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n");
    /// assert_eq!(status.context_switches(), Some(157));
    /// ```
    pub fn context_switches(&self) -> Option<u64> {
        self.voluntary_switches()?.checked_add(self.involuntary_switches()?)
    }

    /// Returns how often it has left a processor to wait.
    pub fn voluntary_switches(&self) -> Option<u64> {
        self.field("voluntary_ctxt_switches")?.parse().ok()
    }

    /// Returns how often it has left a processor because another was to run.
    pub fn involuntary_switches(&self) -> Option<u64> {
        self.field("nonvoluntary_ctxt_switches")?.parse().ok()
    }

    fn bytes_of(&self, name: &str) -> Option<&'t [u8]> {
        let mut lines = self.bytes.split(|&byte| byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":\t"))
    }
}

/// Parses a size as the kernel writes it, `1234 kB`. Returns bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"Name:\tw) (x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4712\n\
        TracerPid:\t99\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4712\t17\t1\nVmSize:\t  2460 kB\nSigIgn:\t0000000000001000\n";

    #[test]
    fn the_effective_user_and_the_innermost_id_count() {
        let status = Status::new(TEXT);
        assert_eq!((status.name(), status.state()), (Some(&b"w) (x"[..]), Some('S')));
        assert_eq!((status.process(), status.effective_user()), (Some(4711), Some(1001)));
        assert_eq!(status.namespace_ids().collect::<Vec<_>>(), [4712, 17, 1]);
        assert_eq!((status.innermost_id(), status.mask("SigIgn")), (Some(1), Some(0x1000)));
        assert_eq!((status.field("VmSize"), status.field("Vm")), (Some("2460 kB"), None));
        assert_eq!((status.tracer(), Status::new(b"TracerPid:\t0\n").tracer()), (Some(99), None));
        assert!(status.has_memory() && !status.is_zombie());
    }

    #[test]
    fn resident_memory_is_in_bytes() {
        let resident = |text: &[u8]| Status::new(text).resident_bytes();
        assert_eq!(resident(b"VmSize:\t  20 kB\nVmRSS:\t  11792 kB\n"), Some(11792 * 1024));
        assert_eq!((resident(b"Name:\tkthreadd\n"), resident(b"VmRSS:\t12 pages\n")), (None, None));
        assert_eq!(resident(b"VmRSS:\t18446744073709551615 kB\n"), None);
    }

    #[test]
    fn context_switches_need_both_counts() {
        let switches = |text: &[u8]| Status::new(text).context_switches();
        assert_eq!(switches(b"voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t3\n"), Some(3));
        assert_eq!(switches(b"voluntary_ctxt_switches:\t2\n"), None);
        let most = u64::MAX;
        let text = format!("voluntary_ctxt_switches:\t{most}\nnonvoluntary_ctxt_switches:\t1\n");
        assert_eq!(switches(text.as_bytes()), None);
    }

    #[test]
    fn counts_the_processors_of_an_affinity() {
        let allowed =
            |list: &str| Status::new(format!("Cpus_allowed_list:\t{list}\n").as_bytes()).allowed_processors();
        assert_eq!((allowed("0"), allowed("0-1,4,8-15")), (Some(1), Some(11)));
        for list in ["", "x", "1-", "3-1", "0-4294967295", "0-4294967294,7", "0,,1"] {
            assert_eq!(allowed(list), None, "{list}");
        }
    }

    #[test]
    fn kernels_without_namespaces_have_one_id() {
        let status = Status::new(b"Name:\ta\nState:\tZ (zombie)\nTgid:\t4711\nPid:\t4712\n");
        assert_eq!(status.innermost_id(), Some(4712));
        assert!(status.is_zombie() && !status.has_memory());
    }

    #[test]
    fn no_name_hides_or_forges_a_field() {
        for name in [&b"\xff\xfe"[..], b"a:b", b"Tgid:\t1", b"\\nTgid:\t1", b"State:\tZ", b""] {
            let text = [b"Name:\t", name, b"\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\n"].concat();
            let status = Status::new(&text);
            assert_eq!(
                (status.name(), status.process(), status.state()),
                (Some(name), Some(4711), Some('S'))
            );
        }
        assert_eq!(Status::new(b"Name:\t\xff\nState:\tS\n").field("Name"), None);
        assert_eq!(Status::new(b"").name(), None);
    }

    /// The kernel's own files, of this thread under a hostile name.
    #[test]
    #[cfg(target_os = "linux")]
    fn parses_the_status_of_the_kernel() {
        use crate::{SchedStat, Stat, process_ids, read, thread_folder};

        // Linux keeps 15 bytes of it.
        let name = "a) R 1 (:\t\u{fc}\nTgid:\t1";
        let thread = std::thread::Builder::new().name(name.into()).spawn(|| {
            let own = std::fs::canonicalize("/proc/thread-self").unwrap();
            let tid: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let folder = thread_folder(std::process::id(), tid);
            let file = |name: &str| read(&folder.join(name)).unwrap();
            (tid, file("comm"), file("stat"), file("status"), file("schedstat"))
        });
        let (tid, comm, stat, status, schedstat) = thread.unwrap().join().unwrap();
        let (stat, status) = (Stat::parse(&stat).unwrap(), Status::new(&status));
        assert_eq!(comm, [name.as_bytes().get(..15).unwrap(), b"\n"].concat());
        assert_eq!((stat.name(), stat.state()), (comm.strip_suffix(b"\n").unwrap(), Some('R')));
        assert_eq!((status.process(), status.state()), (Some(std::process::id()), Some('R')));
        assert_eq!(status.namespace_ids().next(), Some(tid));
        assert!(stat.start_ticks() > Some(0) && stat.caught_signals().is_some());
        assert!(status.context_switches().is_some());
        assert!(SchedStat::parse(&schedstat).is_some() || schedstat == b"0 0 0\n");
        assert!(process_ids().unwrap().contains(&std::process::id()));
    }
}
