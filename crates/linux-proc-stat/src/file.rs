//! Files and folders.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Returns the folder of a process.
///
/// ```
/// use linux_proc_stat::{process_folder, thread_folder};
///
/// assert_eq!(process_folder(4711).to_str(), Some("/proc/4711"));
/// assert_eq!(thread_folder(4711, 4712).join("stat").to_str(), Some("/proc/4711/task/4712/stat"));
/// ```
pub fn process_folder(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Returns the folder of a thread, by ids in the reader's pid namespace.
pub fn thread_folder(pid: u32, tid: u32) -> PathBuf {
    process_folder(pid).join("task").join(tid.to_string())
}

/// Returns the visible processes, in rising order.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # {
/// assert!(linux_proc_stat::process_ids()?.contains(&std::process::id()));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If `/proc` cannot be read: not Linux, or not mounted.
pub fn process_ids() -> io::Result<Vec<u32>> {
    ids(Path::new("/proc"))
}

/// Returns the folder's entries that are numbers, in rising order: processes, or the threads of a process.
pub(crate) fn ids(folder: &Path) -> io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder)? {
        // An unreadable entry is a process that has just ended.
        ids.extend(entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<u32>().ok()));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Reads a file of `/proc`. Its size is not known in advance. The buffer holds most of them, so that two
/// reads suffice.
///
/// ```
/// use linux_proc_stat::{Status, process_folder, read};
///
/// # #[cfg(target_os = "linux")]
/// # {
/// let status = read(&process_folder(std::process::id()).join("status"))?;
/// assert!(Status::new(&status).resident_bytes().is_some_and(|bytes| bytes > 0));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`File::open`] and reading return them. A process that ends meanwhile is `ENOENT` or `ESRCH`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    const MAX_SIZE: usize = 16 << 10;
    let mut bytes = Vec::with_capacity(MAX_SIZE);
    // The limit keeps the standard library from asking for a size, which is 0 here.
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
