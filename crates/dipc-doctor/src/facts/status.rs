//! `/proc/PID/status`.

use std::io;
use std::path::Path;

use linux_proc_stat::Status;

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
    /// False for kernel threads and zombies.
    pub(crate) has_memory: bool,
    pub(crate) is_zombie: bool,
}

impl ProcStatus {
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        Self::read_file(&linux_proc_stat::process_folder(pid).join("status"))
    }

    /// Returns the few known facts about a process on a system without `/proc`.
    pub(crate) fn without_proc(pid: u32) -> Option<Self> {
        let name = dipc_transport::process_name(pid).ok()?;
        Some(Self { name, process: pid, uid: None, inner_pid: pid, has_memory: true, is_zombie: false })
    }

    pub(crate) fn read_own() -> Option<Self> {
        Self::read_file(Path::new("/proc/self/status")).ok()
    }

    fn read_file(path: &Path) -> io::Result<Self> {
        Self::parse(&linux_proc_stat::read(path)?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not as the kernel writes it"))
    }

    pub(crate) fn parse(status: &[u8]) -> Option<Self> {
        let status = Status::new(status);
        let process = status.process()?;
        Some(Self {
            name: String::from_utf8_lossy(status.name()?).into_owned(),
            process,
            uid: status.effective_user(),
            inner_pid: status.innermost_id().unwrap_or(process),
            has_memory: status.has_memory(),
            is_zombie: status.is_zombie(),
        })
    }
}

/// Returns all visible pids, in rising order; none if `/proc` cannot be read.
pub(crate) fn pids() -> Vec<u32> {
    linux_proc_stat::process_ids().unwrap_or_default()
}

/// Returns the processes that have this pid in their own namespace, and another one here.
pub(crate) fn with_inner_pid(pid: u32) -> Vec<u32> {
    let is_it = |status: ProcStatus| status.inner_pid == pid && status.process != pid;
    pids().into_iter().filter(|&outer| ProcStatus::read(outer).is_ok_and(is_it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_an_old_kernel_has_one_pid() {
        let status = ProcStatus::parse(b"Name:\tdotnet\nTgid:\t4711\nUid:\t1\t2\t3\t4\n").unwrap();
        assert_eq!((status.process, status.uid, status.inner_pid), (4711, Some(2), 4711));
        assert!(!status.has_memory && !status.is_zombie);
        assert_eq!(ProcStatus::parse(b"Name:\tx\n"), None);
    }

    #[test]
    fn without_proc_the_name_is_known() {
        let ourselves = std::process::id();
        let status = ProcStatus::without_proc(ourselves).unwrap();
        assert_eq!((status.process, status.inner_pid, status.uid), (ourselves, ourselves, None));
    }
}
