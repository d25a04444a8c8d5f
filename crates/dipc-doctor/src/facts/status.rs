//! `/proc/PID/status`.

use std::fs;
use std::io;

/// The name, the ids and the state of a process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcStatus {
    pub(crate) name: String,
    /// The process that this thread belongs to; its own id for the first thread.
    pub(crate) process: u32,
    /// The effective user, if it is known.
    pub(crate) uid: Option<u32>,
    /// The pid in the innermost namespace; in a container it differs from the pid here.
    pub(crate) inner_pid: u32,
    /// Kernel threads and zombies have no memory.
    pub(crate) has_memory: bool,
    pub(crate) is_zombie: bool,
}

impl ProcStatus {
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        Self::read_file(&format!("/proc/{pid}/status"))
    }

    /// Returns the few known facts about a process on a system without `/proc`.
    pub(crate) fn without_proc(pid: u32) -> Option<Self> {
        let name = dipc_transport::process_name(pid).ok()?;
        Some(Self { name, process: pid, uid: None, inner_pid: pid, has_memory: true, is_zombie: false })
    }

    pub(crate) fn read_own() -> Option<Self> {
        Self::read_file("/proc/self/status").ok()
    }

    fn read_file(path: &str) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Self::parse(&String::from_utf8_lossy(&bytes))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not as the kernel writes it"))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let numbers = |name: &str| field(name).map(|it| it.split_ascii_whitespace().map(str::parse::<u32>));
        let process = numbers("Tgid")?.next()?.ok()?;
        Some(Self {
            name: field("Name")?.to_owned(),
            process,
            // Real, effective, saved, file system.
            uid: numbers("Uid").and_then(|mut uids| uids.nth(1)?.ok()),
            // From the outermost visible namespace to the innermost.
            inner_pid: numbers("NSpid").and_then(Iterator::last).and_then(Result::ok).unwrap_or(process),
            has_memory: field("VmSize").is_some(),
            is_zombie: field("State").is_some_and(|state| state.starts_with(['Z', 'X'])),
        })
    }
}

/// Returns all visible pids, in rising order.
pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<_> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// Returns the processes that have this pid in their own namespace, and another one here.
pub(crate) fn with_inner_pid(pid: u32) -> Vec<u32> {
    let is_it = |status: ProcStatus| status.inner_pid == pid && status.process != pid;
    pids().into_iter().filter(|&outer| ProcStatus::read(outer).is_ok_and(is_it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Name:\tdotnet\nState:\tS (sleeping)\nTgid:\t4711\nUid:\t1\t2\t3\t4\nNSpid:\t4711\t17\t1\n";

    #[test]
    fn the_effective_user_and_the_innermost_pid_count() {
        let status = ProcStatus::parse(TEXT).unwrap();
        assert_eq!((status.process, status.uid, status.inner_pid), (4711, Some(2), 1));
        assert!(!status.has_memory && !status.is_zombie);
        let old_kernel = TEXT.replace("NSpid", "Other") + "VmSize:\t12 kB\n";
        let status = ProcStatus::parse(&old_kernel).unwrap();
        assert_eq!((status.inner_pid, status.has_memory), (4711, true));
        assert!(ProcStatus::parse(&TEXT.replace("S (", "Z (")).unwrap().is_zombie);
        assert_eq!(ProcStatus::parse("Name:\tx\n"), None);
    }

    #[test]
    fn without_proc_the_name_is_known() {
        let ourselves = std::process::id();
        let status = ProcStatus::without_proc(ourselves).unwrap();
        assert_eq!((status.process, status.inner_pid, status.uid), (ourselves, ourselves, None));
    }
}
