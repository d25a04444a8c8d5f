//! Links at the names of output files, and where they lead.

use std::path::{Path, PathBuf};

use dipc_collect::staged::folder_of;

use crate::exit::{Exit, Failure};
use crate::render::messages;

/// Maximum number of links to follow in a path, as on Linux.
const MAX_LINKS: usize = 40;

/// Prints a note if the user has named a link. Fails for a link that another user may have planted: the
/// kernel does not follow these either, unless `fs.protected_symlinks` is off.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    if let Some(link) = links(path).find(|link| is_planted(link)) {
        let folder = folder_of(&link).display().to_string();
        return Err(Failure::new(
            Exit::Failed,
            format_args!("open output: {}: it is a link of another user in {folder}", link.display()),
        )
        .with_help("anyone may create links there: name the intended file, or another folder"));
    }
    // Links to devices and to standard output are as good as the targets' own names.
    if let Some(to) = follow(path).filter(|to| to != path) {
        messages::note(format_args!("Link           : {} leads to {}", path.display(), to.display()));
    }
    Ok(())
}

/// Returns the path of the regular file that `path` leads to, following links in its last part; the file need
/// not exist. `None` if the path leads elsewhere: to a device, a pipe, a folder, or through `/proc` to an
/// open file.
pub(super) fn follow(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = folder_of(&path);
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return None;
        }
        path = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => folder.join(path.read_link().ok()?),
            Ok(metadata) if !metadata.is_file() => return None,
            _ => return Some(path),
        };
    }
    None
}

/// The links at a path, each the destination of the one before.
fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |path: &PathBuf| {
        let to = path.read_link().ok()?;
        Some(folder_of(path).join(to))
    };
    std::iter::successors(Some(path.to_owned()), next)
        .take(MAX_LINKS)
        .filter(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()))
}

/// Returns true if a link lies in a folder in which everyone may create files (with the sticky bit), and is
/// neither this user's nor that of the folder's owner.
#[cfg(unix)]
fn is_planted(link: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(own), Ok(folder)) = (link.symlink_metadata(), folder_of(link).metadata()) else { return false };
    is_refused(folder.mode(), folder.uid(), own.uid(), rustix::process::geteuid().as_raw())
}

/// The rule of `fs.protected_symlinks`, proc(5).
#[cfg(unix)]
const fn is_refused(folder_mode: u32, folder_owner: u32, link_owner: u32, user: u32) -> bool {
    const STICKY_FOR_ALL: u32 = 0o1002;
    folder_mode & STICKY_FOR_ALL == STICKY_FOR_ALL && link_owner != user && link_owner != folder_owner
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_others_in_shared_folders_are_refused() {
        assert!(is_refused(0o1777, 0, 7, 8) && is_refused(0o1777, 0, 7, 0));
        for (mode, folder, link, user) in
            [(0o1777, 0, 8, 8), (0o1777, 7, 7, 8), (0o777, 0, 7, 8), (0o1775, 0, 7, 8)]
        {
            assert!(!is_refused(mode, folder, link, user), "{mode:o} {folder} {link} {user}");
        }
    }

    #[test]
    fn each_link_of_a_chain_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("b", at("a")).unwrap();
        symlink(at("c"), at("b")).unwrap();
        assert_eq!(links(&at("a")).collect::<Vec<_>>(), [at("a"), at("b")]);
        symlink("loop", at("loop")).unwrap();
        assert!(links(&at("loop")).count() <= MAX_LINKS);
        assert_eq!(links(&at("none")).count(), 0);
        check(&at("a")).unwrap();
    }

    /// Only root can give a link to another user.
    #[test]
    fn a_planted_link_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, lchown};
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let link = folder.path().join("out");
        symlink("/nowhere/target", &link).unwrap();
        if lchown(&link, Some(4321), None).is_err() {
            return;
        }
        let failure = check(&link).unwrap_err();
        assert!(failure.message.contains("it is a link of another user in "), "{failure}");
    }

    #[test]
    fn links_of_the_user_lead_to_files_and_not_into_proc() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| symlink(to, at(name)).unwrap();
        std::fs::write(at("file"), "").unwrap();
        link("file", "one");
        link("one", "two");
        link("missing", "nowhere");
        link("round", "round");
        link("/dev/stdout", "output");
        for (name, expected) in [("file", "file"), ("two", "file"), ("nowhere", "missing"), ("new", "new")] {
            assert_eq!(follow(&at(name)), Some(at(expected)), "{name}");
        }
        for path in [at("round"), at("output"), at(""), "/dev/null".into(), "/dev/fd/0".into()] {
            assert_eq!(follow(&path), None, "{}", path.display());
        }
    }
}
