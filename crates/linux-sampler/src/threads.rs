//! Threads and processors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linux_proc_stat::{Stat, Status};

use crate::error::Error;

/// Returns the threads of a process.
///
/// ```
/// let pid = i32::try_from(std::process::id())?;
/// // The first thread has the number of the process.
/// assert!(linux_sampler::threads(pid)?.contains(&pid));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::NoProcess`] if the process does not exist.
pub fn threads(pid: i32) -> Result<Vec<i32>, Error> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoProcess { pid },
        _ => Error::Io { what: folder.clone(), error },
    })?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.collect())
}

/// Returns the number of a process or thread in its innermost pid namespace: a program inside a container
/// sees this number as its own.
pub fn innermost_id(pid: i32, tid: i32) -> Option<i32> {
    let status = linux_proc_stat::read(&folder(pid, tid).join("status")).ok()?;
    Status::new(&status).innermost_id()?.try_into().ok()
}

/// Returns the state of a thread from `/proc`, such as `R` for running; `None` if it is missing from the
/// kernel's line.
///
/// # Errors
/// If it cannot be read, as when the thread has ended.
pub(crate) fn state(pid: i32, tid: i32) -> io::Result<Option<char>> {
    let stat = linux_proc_stat::read(&folder(pid, tid).join("stat"))?;
    Ok(Stat::parse(&stat).and_then(|stat| stat.state()))
}

/// Returns the folder of a thread in `/proc`.
pub(crate) fn folder(pid: i32, tid: i32) -> PathBuf {
    linux_proc_stat::thread_folder(pid.unsigned_abs(), tid.unsigned_abs())
}

/// Returns the numbers of the online processors.
///
/// ```
/// assert!(!linux_sampler::processors()?.is_empty());
/// # Ok::<(), linux_sampler::Error>(())
/// ```
///
/// # Errors
/// If their list cannot be read.
pub fn processors() -> Result<Vec<i32>, Error> {
    let path = Path::new("/sys/devices/system/cpu/online");
    let text = fs::read_to_string(path).map_err(Error::io(path.display().to_string()))?;
    let processors = parse_list(text.trim());
    processors.ok_or(Error::Settings("the list of processors could not be read"))
}

/// Returns the number of processors that the machine can have, online or not.
pub(crate) fn possible_processors() -> Result<usize, Error> {
    let path = Path::new("/sys/devices/system/cpu/possible");
    let text = fs::read_to_string(path).map_err(Error::io(path.display().to_string()))?;
    let last = parse_list(text.trim()).and_then(|all| usize::try_from(*all.last()?).ok()?.checked_add(1));
    last.ok_or(Error::Settings("the list of processors could not be read"))
}

/// Reads `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        all.extend((first..=last).map(i32::from));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_have_ranges() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0-x"), None);
    }
}
