//! Paths as resolved by another process.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links to follow, as in Linux.
const LINKS: usize = 40;

/// Returns the path from here to the file that a process with the folders `root` and `cwd` reaches by `path`.
///
/// The kernel would resolve an absolute link below `root` to a file of our own; here it starts at `root`
/// again. Nor would the kernel stop at the root of a process that was changed with `chroot`: here `..` does
/// not lead above it.
pub(super) fn resolve(root: &Path, cwd: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut found = cwd.to_path_buf();
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if part == "/" {
            root.clone_into(&mut found);
            continue;
        }
        if part == ".." {
            if !is_same(&found, root) {
                found.push(&part);
            }
            continue;
        }
        found.push(&part);
        if !found.symlink_metadata()?.is_symlink() {
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(io::Error::other(format!("{}: more than {LINKS} links", path.display())));
        }
        let target = found.read_link()?;
        found.pop();
        for part in parts(&target).rev() {
            ahead.push_front(part);
        }
    }
    Ok(found)
}

/// Returns true if both are the same folder, by any path. An unreadable folder counts as the root: nothing is
/// above it.
#[cfg(unix)]
fn is_same(folder: &Path, root: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let identity = |path: &Path| path.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
    match (identity(folder), identity(root)) {
        (Ok(folder), Ok(root)) => folder == root,
        _ => true,
    }
}

/// Such folders do not exist.
#[cfg(not(unix))]
fn is_same(_: &Path, _: &Path) -> bool {
    false
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn absolute_links_stay_below_the_root_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cwd) = (folder.path().join("root"), folder.path().join("root/srv"));
        fs::create_dir_all(root.join("opt/app")).unwrap();
        fs::create_dir(&cwd).unwrap();
        fs::write(root.join("opt/app/hook.dll"), "hook").unwrap();
        symlink("/opt/app", root.join("app")).unwrap();
        symlink("../app/./hook.dll", cwd.join("relative.dll")).unwrap();
        symlink("/turn", root.join("turn")).unwrap();
        // Above the root, which no path of the process reaches.
        fs::write(folder.path().join("secret"), "outside").unwrap();
        fs::write(root.join("secret"), "inside").unwrap();
        symlink("../../../secret", root.join("opt/link")).unwrap();

        let read = |path: &str| resolve(&root, &cwd, Path::new(path)).and_then(fs::read_to_string);
        for path in
            ["/opt/app/hook.dll", "/app/hook.dll", "relative.dll", "./../app/hook.dll", "/srv/relative.dll"]
        {
            assert_eq!(read(path).unwrap(), "hook", "{path}");
        }
        for path in
            ["/../secret", "../../../secret", "/opt/../../secret", "/opt/link", "/app/../../../secret"]
        {
            assert_eq!(read(path).unwrap(), "inside", "{path}");
        }
        assert_eq!(read("/app/none.dll").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read("/turn").unwrap_err().to_string(), "/turn: more than 40 links");
    }
}
