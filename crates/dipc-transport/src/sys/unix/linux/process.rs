use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Returns the visible pids, in rising order.
pub(crate) fn process_ids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // An unreadable entry is a process that has just ended.
        pids.extend(entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<u32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) namespace_pid: u32,
    pub(crate) uid: u32,
    /// The name in the kernel, perhaps truncated inside a character.
    comm: Vec<u8>,
}

impl Process {
    /// Reads a process; `None` for one without memory of its own: ended, a thread, a zombie or a kernel
    /// thread.
    pub(crate) fn read(pid: u32) -> io::Result<Option<Self>> {
        match read(&proc_path(pid, "status")) {
            Ok(status) => Ok(Self::from_status(pid, &status)),
            Err(error) if has_ended(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn from_status(pid: u32, status: &[u8]) -> Option<Self> {
        let mut lines = status.split(|&byte| byte == b'\n');
        let comm = lines.find_map(|line| line.strip_prefix(b"Name:\t"))?.to_vec();
        let status = String::from_utf8_lossy(status);
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let number = |text: &str| text.parse::<u32>().ok();
        if field("Tgid").and_then(number) != Some(pid) || field("VmSize").is_none() {
            return None;
        }
        // Real, effective, saved, file system.
        let uid = field("Uid")?.split_ascii_whitespace().nth(1).and_then(number)?;
        // Kernels without this field have no namespaces.
        let namespace_pid = namespace_pids(&status).last().unwrap_or(pid);
        Some(Self { pid, namespace_pid, uid, comm })
    }

    /// Returns the start time in clock ticks since boot.
    pub(crate) fn start_key(&self) -> io::Result<u64> {
        let stat = read(&proc_path(self.pid, "stat"))?;
        start_time(&stat)
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
        let mut bytes = read(&proc_path(self.pid, "cmdline"))?;
        // Each argument ends in NUL, the last one too unless the process has rewritten its title.
        bytes.pop_if(|last| *last == 0);
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(bytes.split(|&byte| byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect())
    }
}

/// Returns the pids of a process, from the outermost namespace that this `/proc` shows to its own.
pub(super) fn namespace_pids(status: &str) -> impl Iterator<Item = u32> {
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.into_iter().flat_map(str::split_ascii_whitespace).filter_map(|pid| pid.parse().ok())
}

/// Returns the name without an incomplete character at its end.
fn without_cut_character(name: &[u8]) -> &[u8] {
    match std::str::from_utf8(name) {
        Err(error) if error.error_len().is_none() => name.get(..error.valid_up_to()).unwrap_or(name),
        _ => name,
    }
}

/// Reads a file of `/proc`, whose size is not known in advance. The buffer holds most of them, so that two
/// system calls suffice.
pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    const MOST: usize = 16 << 10;
    let file = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(MOST);
    loop {
        match rustix::io::read(&file, spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            Ok(_) => bytes.reserve(MOST),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn proc_path(pid: u32, name: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(name)
}

/// Returns a path to an open file, valid while the descriptor is open.
pub(super) fn descriptor_path(descriptor: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(descriptor.as_raw_fd().to_string())
}

pub(super) fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Returns field 22. The second field is the name of the process in parentheses, and may contain spaces and
/// parentheses itself: the third field follows the last parenthesis.
fn start_time(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
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
    fn kernels_without_namespaces_have_one_pid() {
        let status = STATUS.replace("NSpid", "Other");
        assert_eq!(Process::from_status(4711, status.as_bytes()).unwrap().namespace_pid, 4711);
    }

    #[test]
    fn threads_and_kernel_threads_are_no_processes() {
        assert_eq!(Process::from_status(4712, STATUS.as_bytes()), None);
        assert_eq!(Process::from_status(4711, STATUS.replace("VmSize", "Other").as_bytes()), None);
        assert_eq!(Process::from_status(4711, b""), None);
        assert_eq!(Process::read(2).unwrap(), None);
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

    #[test]
    fn the_start_time_is_field_22_whatever_the_name_is() {
        let fields = "S 1 4711 4711 0 -1 4194560 92 0 0 0 1 2 3 4 20 0 1 0 987654321 2519040 378";
        for name in ["sleep", "a) R 1 2 3", "((", "", "\u{fc}) (", "a\nb"] {
            assert_eq!(start_time(format!("4711 ({name}) {fields}").as_bytes()), Some(987_654_321), "{name}");
        }
        for cut in ["", "4711 (sleep", "4711 (sleep)", "4711 (sleep) S 1 4711"] {
            assert_eq!(start_time(cut.as_bytes()), None, "{cut}");
        }
    }
}
