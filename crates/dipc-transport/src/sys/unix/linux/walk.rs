//! Resolution of untrusted paths, part by part.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::process::descriptor_path;
use crate::checked_folder::unless_it_exists;
use crate::refusal::refused;

/// The number of links that Linux follows.
const MAX_LINKS: usize = 40;
/// Maximum depth of folders: each level is an open descriptor.
const MAX_DEPTH: usize = 256;

/// The types of file systems that are not entered, as `statfs` returns them.
const AUTOFS: i64 = 0x0187;
const PROC: i64 = 0x9fa0;
const SYSFS: i64 = 0x6265_6572;

/// Opens `path` below `root` as a process with that root would: absolute links start at `root` again, and
/// `..` does not leave it. Each part is opened with `O_PATH` and then checked, so that a file that replaces
/// it is not followed. `check` is called with every file on the way that is not a link, including the last
/// one; a link at the end is followed only if `follows_last`.
///
/// `openat2` with `RESOLVE_IN_ROOT` does the same in one step, on kernels that have it.
pub(super) fn open_below(
    root: OwnedFd,
    path: &Path,
    follows_last: bool,
    check: impl Fn(&OwnedFd) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let mut above: Vec<OwnedFd> = Vec::new();
    let mut here = root;
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if part == "/" {
            if let Some(root) = above.drain(..).next() {
                here = root;
            }
            continue;
        }
        if part == ".." {
            here = above.pop().unwrap_or(here);
            continue;
        }
        let next = rustix::fs::openat(&here, &part, flags, Mode::empty())?;
        let is_link = FileType::from_raw_mode(rustix::fs::fstat(&next)?.st_mode).is_symlink();
        if is_link && (follows_last || !ahead.is_empty()) {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
            let target = OsString::from_vec(target.into_bytes());
            for part in parts(Path::new(&target)).rev() {
                ahead.push_front(part);
            }
            continue;
        }
        check(&next)?;
        if above.len() >= MAX_DEPTH {
            return Err(Errno::NAMETOOLONG.into());
        }
        above.push(std::mem::replace(&mut here, next));
    }
    Ok(here)
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned())
}

/// Opens a file with `O_PATH`, checks it, and reopens the same file for reading.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    reopen(&rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens a file without entering automount points: `O_PATH` does not trigger one, but resolving a name in it
/// does.
pub(crate) fn open_untrusted(path: &Path) -> io::Result<File> {
    // The kernel refuses longer paths; here each part would be a step.
    if path.as_os_str().len() >= 4096 || path.as_os_str().as_bytes().contains(&0) {
        return Err(Errno::NAMETOOLONG.into());
    }
    let root = rustix::fs::open(OsStr::new("/"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    reopen(&open_below(root, path, true, refuse_kernel_file)?)
}

fn refuse_kernel_file(file: &OwnedFd) -> io::Result<()> {
    #[allow(clippy::unnecessary_cast, reason = "its type differs by architecture")]
    match rustix::fs::fstatfs(file)?.f_type as i64 {
        AUTOFS => Err(refused("it lies below an automount point, which only the user may enter")),
        PROC | SYSFS => Err(refused("it is a file of the kernel")),
        _ => Ok(()),
    }
}

fn reopen(file: &OwnedFd) -> io::Result<File> {
    if !FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode).is_file() {
        return Err(refused("not a regular file"));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(descriptor_path(file), flags, Mode::empty())?))
}

/// An open folder. Names in it are resolved relative to its descriptor.
#[derive(Debug)]
pub(crate) struct FolderBelow {
    _folder: OwnedFd,
    path: PathBuf,
}

impl FolderBelow {
    /// Opens a folder part by part, without links below `folder`. If it `creates`, missing parts are created.
    pub(crate) fn open(folder: &Path, below: &Path, creates: bool) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = rustix::fs::open(folder, flags, Mode::empty())?;
        for part in below {
            if creates {
                let made = rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(0o777));
                unless_it_exists(made.map_err(io::Error::from))?;
            }
            here = rustix::fs::openat(&here, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(Self { path: descriptor_path(&here), _folder: here })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn neither_links_nor_parents_lead_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        fs::write(root.join("secret"), "inside").unwrap();
        symlink("/secret", root.join("a/absolute")).unwrap();
        symlink("../../../../secret", root.join("a/relative")).unwrap();
        symlink(folder.path().join("secret"), root.join("a/real")).unwrap();
        symlink("/a", root.join("link")).unwrap();
        symlink("turn", root.join("turn")).unwrap();
        let open = |path: &str, follows_last| {
            let root = rustix::fs::open(&root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            open_below(root, Path::new(path), follows_last, |_| Ok(()))
        };
        for path in
            ["secret", "../secret", "a/../../../secret", "a/absolute", "a/relative", "link/b/../relative"]
        {
            let file = open(path, true).unwrap();
            assert_eq!(fs::read_to_string(descriptor_path(&file)).unwrap(), "inside", "{path}");
        }
        assert_eq!(open("a/real", true).unwrap_err().kind(), io::ErrorKind::NotFound);
        let link = open("a/absolute", false).unwrap();
        assert!(FileType::from_raw_mode(rustix::fs::fstat(&link).unwrap().st_mode).is_symlink());
        assert_eq!(open("turn", true).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(open("secret/x", true).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn refused_folders_are_not_entered() {
        let root = rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap();
        let refuse = |_: &OwnedFd| Err(refused("no"));
        assert_eq!(open_below(root, Path::new("proc/none"), true, refuse).unwrap_err().to_string(), "no");
    }
}
