use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::process::{descriptor_path, proc_path};
use super::walk::open_below;

/// The open file of a socket: its properties stay the same if its path changes.
#[derive(Debug)]
pub(crate) struct SocketFile {
    descriptor: OwnedFd,
    status: Stat,
}

impl SocketFile {
    /// Opens the file without following a link in the last part of the path: a runtime does not make links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let descriptor = open_as_its_process(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let status = rustix::fs::fstat(&descriptor)?;
        Ok(Self { descriptor, status })
    }

    pub(crate) fn owner(&self) -> u32 {
        self.status.st_uid
    }

    pub(crate) fn is_socket(&self) -> bool {
        FileType::from_raw_mode(self.status.st_mode).is_socket()
    }

    /// Returns a short path to this file, valid while the descriptor is open.
    pub(in crate::sys::unix) fn into_path(self) -> Option<(PathBuf, OwnedFd)> {
        Some((descriptor_path(&self.descriptor), self.descriptor))
    }
}

/// Opens a path below `/proc/PID/root` as the process itself would: links are resolved in its root, and never
/// lead out of it. Other paths are opened as they are.
pub(super) fn open_as_its_process(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let Some((root, inside)) = split_root(path) else {
        return Ok(rustix::fs::open(path, flags, Mode::empty())?);
    };
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::fs::openat2(&root, inside, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Before Linux 5.6, and in sandboxes that forbid unknown system calls. A plain `openat` would follow
        // the links of that process to files of this one. The kernel gives up a path with `..` if anything on
        // the system is renamed meanwhile.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk_as_its_process(root, inside, flags),
        other => Ok(other?),
    }
}

fn walk_as_its_process(root: OwnedFd, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let file = open_below(root, inside, !flags.contains(OFlags::NOFOLLOW), |_| Ok(()))?;
    let is_directory = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_dir();
    if flags.contains(OFlags::DIRECTORY) && !is_directory {
        return Err(Errno::NOTDIR.into());
    }
    Ok(file)
}

/// Splits `/proc/PID/root/REST`.
fn split_root(path: &Path) -> Option<(PathBuf, &Path)> {
    let inside = path.strip_prefix("/proc").ok()?;
    let mut parts = inside.components();
    let pid: u32 = parts.next()?.as_os_str().to_str()?.parse().ok()?;
    (parts.next()?.as_os_str() == "root").then(|| (proc_path(pid, "root"), parts.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_roots_of_other_processes_are_split() {
        let split = |path| split_root(Path::new(path)).map(|(root, inside)| (root, inside.to_path_buf()));
        assert_eq!(split("/proc/17/root/tmp/x"), Some(("/proc/17/root".into(), "tmp/x".into())));
        for path in
            ["/proc/self/root/tmp", "/proc/17/cwd/tmp", "/tmp/proc/17/root/x", "/proc/17", "proc/17/root/x"]
        {
            assert_eq!(split(path), None, "{path}");
        }
    }

    #[test]
    fn links_below_the_root_of_a_process_do_not_lead_out_of_it() {
        // The root is the same here: this tests that links are followed, except for the last one.
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(folder.path().join("real/file"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("real/last")).unwrap();
        let below = |rest: &str| {
            let inside = folder.path().join(rest);
            proc_path(std::process::id(), "root").join(inside.strip_prefix("/").unwrap())
        };
        let file = SocketFile::open(&below("link/file")).unwrap();
        assert!(!file.is_socket());
        let last = SocketFile::open(&below("link/last")).unwrap();
        assert!(FileType::from_raw_mode(last.status.st_mode).is_symlink());
        let missing = SocketFile::open(&below("link/none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn without_openat2_the_same_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(folder.path().join("real/file"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/real", folder.path().join("inner")).unwrap();
        let identity = |file: &OwnedFd| {
            let status = rustix::fs::fstat(file).unwrap();
            (status.st_dev, status.st_ino)
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = || rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        for (inside, extra) in [
            ("real/file", OFlags::NOFOLLOW),
            ("inner/file", OFlags::NOFOLLOW),
            ("inner", OFlags::NOFOLLOW),
            ("inner", OFlags::DIRECTORY),
            ("link/file", OFlags::NOFOLLOW),
            ("real/file", OFlags::DIRECTORY),
            ("../real", OFlags::DIRECTORY),
        ] {
            let (inside, flags) = (Path::new(inside), flags | extra);
            let one = loop {
                // Renames of other tests make the kernel give up.
                match rustix::fs::openat2(root(), inside, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
                    Err(Errno::AGAIN) => {}
                    one => break one,
                }
            };
            let other = walk_as_its_process(root(), inside, flags);
            match (&one, &other) {
                (Ok(one), Ok(other)) => assert_eq!(identity(one), identity(other), "{inside:?} {extra:?}"),
                (Err(one), Err(other)) => {
                    assert_eq!(Some(one.raw_os_error()), other.raw_os_error(), "{inside:?}");
                }
                _ => panic!("{inside:?} {extra:?}: {one:?} {other:?}"),
            }
        }
    }
}
