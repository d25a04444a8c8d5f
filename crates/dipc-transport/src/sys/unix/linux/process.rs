use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use linux_proc_stat::{Stat, Status, process_folder};
use rustix::io::Errno;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) namespace_pid: u32,
    pub(crate) uid: u32,
    /// The name in the kernel, perhaps truncated inside a character.
    comm: Vec<u8>,
}

impl Process {
    /// Reads a process; `None` for a process without memory of its own: ended, a thread, a zombie or a kernel
    /// thread.
    pub(crate) fn read(pid: u32) -> io::Result<Option<Self>> {
        match linux_proc_stat::read(&proc_path(pid, "status")) {
            Ok(status) => Ok(Self::from_status(pid, &status)),
            Err(error) if has_ended(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the process is a thread of the kernel.
    pub(crate) fn is_kernel_thread(pid: u32) -> bool {
        let status = linux_proc_stat::read(&proc_path(pid, "status"));
        status.is_ok_and(|status| is_of_kernel(pid, &status))
    }

    fn from_status(pid: u32, status: &[u8]) -> Option<Self> {
        let status = Status::new(status);
        if status.process() != Some(pid) || !status.has_memory() {
            return None;
        }
        let namespace_pid = status.innermost_id().unwrap_or(pid);
        Some(Self { pid, namespace_pid, uid: status.effective_user()?, comm: status.name()?.to_vec() })
    }

    /// Returns the start time in clock ticks since boot.
    pub(crate) fn start_key(&self) -> io::Result<u64> {
        let stat = linux_proc_stat::read(&proc_path(self.pid, "stat"))?;
        Stat::parse(&stat)
            .and_then(|stat| stat.start_ticks())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time in /proc/PID/stat"))
    }

    /// Returns the name. The kernel keeps 15 bytes of it; the rest is taken from the command line if that
    /// begins with them.
    pub(crate) fn name(&self) -> String {
        const COMM_LIMIT: usize = 15;
        if self.comm.len() < COMM_LIMIT {
            return String::from_utf8_lossy(&self.comm).into_owned();
        }
        let arguments = self.command_line().unwrap_or_default();
        let whole = arguments.iter().take(2).find_map(|argument| {
            let name = Path::new(argument).file_name()?;
            name.as_bytes().starts_with(&self.comm).then(|| name.to_string_lossy().into_owned())
        });
        whole.unwrap_or_else(|| String::from_utf8_lossy(without_cut_character(&self.comm)).into_owned())
    }

    pub(crate) fn command_line(&self) -> io::Result<Vec<OsString>> {
        let mut bytes = linux_proc_stat::read(&proc_path(self.pid, "cmdline"))?;
        // Each argument ends in NUL, the last one too unless the process has rewritten its title.
        bytes.pop_if(|last| *last == 0);
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(bytes.split(|&byte| byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect())
    }
}

/// Returns true if the status of a process belongs to a kernel thread.
fn is_of_kernel(pid: u32, status: &[u8]) -> bool {
    let status = Status::new(status);
    status.process() == Some(pid) && !status.has_memory() && status.state().is_some() && !status.is_zombie()
}

/// Returns the name without an incomplete character at its end.
fn without_cut_character(name: &[u8]) -> &[u8] {
    match std::str::from_utf8(name) {
        Err(error) if error.error_len().is_none() => name.get(..error.valid_up_to()).unwrap_or(name),
        _ => name,
    }
}

pub(super) fn proc_path(pid: u32, name: &str) -> PathBuf {
    process_folder(pid).join(name)
}

/// Returns a path to an open file, valid while the descriptor is open.
pub(super) fn descriptor_path(descriptor: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(descriptor.as_raw_fd().to_string())
}

pub(super) fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tw) (x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\n\
        Uid:\t1000\t1001\t1002\t1003\nNSpid:\t4711\t17\t1\nVmSize:\t  2460 kB\n";

    #[test]
    fn a_process_has_the_pid_of_its_innermost_namespace_and_its_effective_user() {
        let process = Process::from_status(4711, STATUS.as_bytes()).unwrap();
        assert_eq!(process, Process { pid: 4711, namespace_pid: 1, uid: 1001, comm: b"w) (x".to_vec() });
    }

    #[test]
    fn threads_and_kernel_threads_are_not_processes() {
        assert_eq!(Process::from_status(4712, STATUS.as_bytes()), None);
        assert_eq!(Process::from_status(4711, STATUS.replace("VmSize", "Other").as_bytes()), None);
        assert_eq!(Process::from_status(4711, b""), None);
        assert_eq!(Process::read(2).unwrap(), None);
        let of_kernel = |pid, text: &str| is_of_kernel(pid, text.as_bytes());
        assert!(of_kernel(4711, &STATUS.replace("VmSize", "Other")));
        let zombie = STATUS.replace("S (sleeping)", "Z (zombie)").replace("VmSize", "Other");
        assert!(!of_kernel(4711, &zombie) && !of_kernel(4711, STATUS) && !of_kernel(4712, STATUS));
        assert!(!of_kernel(4711, ""));
    }

    #[test]
    fn a_name_loses_an_incomplete_character() {
        for (name, shown) in [
            (&b"abcdefghijklmn\xc3"[..], &b"abcdefghijklmn"[..]),
            (b"\xe6\x97\xa5\xe6\x97", b"\xe6\x97\xa5"),
            ("日本語日本".as_bytes(), "日本語日本".as_bytes()),
            // A name that is not UTF-8 is not changed.
            (b"a\xffb", b"a\xffb"),
            (b"", b""),
        ] {
            assert_eq!(without_cut_character(name), shown);
        }
    }
}
