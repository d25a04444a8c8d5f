//! The list of the artifacts in a directory, so that limits do not remove other files.
//!
//! `.dipc-artifacts` in the directory has the names of the artifacts that were put there, a line each, as
//! JSON strings: names can have any character.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use dipc_collect::{Kept, Retention};

use crate::directory_list::{DirectoryList, ListedFile};
use crate::retention::{age, free_bytes};

/// The name of the list.
const LIST: &str = ".dipc-artifacts";

/// Adds an artifact to the list of its directory, and removes the oldest ones beyond the limits. The newest
/// stays. A list is only kept with limits.
///
/// # Errors
/// If the list cannot be read or written: then nothing is removed.
pub(super) fn add(directory: &Path, artifact: &Path, retention: &Retention) -> io::Result<Vec<PathBuf>> {
    if retention.is_none() {
        return Ok(Vec::new());
    }
    let Ok(name) = artifact.strip_prefix(directory) else { return Ok(Vec::new()) };
    let Some(name) = name.to_str() else { return Ok(Vec::new()) };
    DirectoryList::new(directory, LIST).change(|list| {
        let mut names = read(list)?;
        names.insert(name.to_owned());
        let kept = names.iter().filter_map(|name| kept(directory, name)).collect();
        let free = || free_bytes(directory);
        let removed = retention.apply(kept, free, |path| remove(directory, path));
        // Artifacts removed by others are forgotten, too.
        names.retain(|name| ListedFile::find(directory, name).is_some());
        write(list, &names)?;
        Ok(removed)
    })
}

/// Returns the names of a list.
fn read(list: &DirectoryList<'_>) -> io::Result<BTreeSet<String>> {
    let bytes = list.read()?;
    // A line that is cut is not a name.
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn write(list: &DirectoryList<'_>, names: &BTreeSet<String>) -> io::Result<()> {
    let mut text = String::new();
    for name in names {
        text.push_str(&serde_json::to_string(name).map_err(io::Error::other)?);
        text.push('\n');
    }
    list.replace(text.as_bytes())
}

/// Removes an artifact by the path that [`kept`] returned.
fn remove(directory: &Path, path: &Path) -> io::Result<()> {
    let name = path.strip_prefix(directory).ok().and_then(Path::to_str);
    match name.and_then(|name| ListedFile::find(directory, name)) {
        Some(file) => file.remove(),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Returns an artifact; `None` if its name leads out of the directory, or it is not a file.
fn kept(directory: &Path, name: &str) -> Option<Kept<PathBuf>> {
    let metadata = ListedFile::find(directory, name)?.metadata;
    Some(Kept { entry: directory.join(name), bytes: metadata.len(), age: age(metadata.modified().ok()?) })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn put(directory: &Path, name: &str, age: u64) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "0123456789").unwrap();
        let modified = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        path
    }

    #[test]
    fn removes_only_the_oldest_artifacts() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let files = Retention { files: Some(2), ..Retention::default() };
        let foreign = put(directory, "foreign.nettrace", 1000);
        let mut gone = Vec::new();
        for (name, age) in [("a", 400), ("sub/b", 300), ("c\nd", 200), ("e", 100)] {
            let path = put(directory, name, age);
            gone.extend(add(directory, &path, &files).unwrap());
        }
        assert_eq!(gone, [directory.join("a"), directory.join("sub/b")]);
        assert!(foreign.exists() && directory.join("c\nd").exists() && directory.join("e").exists());
        let list = fs::read_to_string(directory.join(LIST)).unwrap();
        assert_eq!(list, "\"c\\nd\"\n\"e\"\n");
        // 20 bytes and 10: the older ones go; the newest stays whatever the limit.
        let path = put(directory, "f", 0);
        let bytes = Retention { bytes: Some(5), ..Retention::default() };
        assert_eq!(add(directory, &path, &bytes).unwrap(), [directory.join("c\nd"), directory.join("e")]);
        assert!(path.exists());
        // By age.
        let path = put(directory, "g", 0);
        File::options()
            .write(true)
            .open(directory.join("f"))
            .unwrap()
            .set_modified(SystemTime::now() - Duration::from_secs(7200))
            .unwrap();
        let age = Retention { age: Some(Duration::from_secs(3600)), ..Retention::default() };
        assert_eq!(add(directory, &path, &age).unwrap(), [directory.join("f")]);
        // No file system has as much free.
        #[cfg(target_os = "linux")]
        {
            let path = put(directory, "h", 0);
            let free = Retention { free: Some(u64::MAX), ..Retention::default() };
            assert_eq!(add(directory, &path, &free).unwrap(), [directory.join("g")]);
        }
        assert!(foreign.exists());
    }

    #[test]
    fn a_list_names_no_file_outside() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("artifacts");
        let outside = put(folder.path(), "outside", 1000);
        let path = put(&directory, "a", 0);
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), directory.join("link")).unwrap();
        fs::write(
            directory.join(LIST),
            "\"link/outside\"\n\"../outside\"\n\"/etc/passwd\"\nnothing\n\"sub\"\n\"b",
        )
        .unwrap();
        fs::create_dir(directory.join("sub")).unwrap();
        let retention = Retention { files: Some(0), ..Retention::default() };
        assert_eq!(add(&directory, &path, &retention).unwrap(), Vec::<PathBuf>::new());
        assert!(outside.exists() && path.exists() && directory.join("sub").is_dir());
        assert_eq!(fs::read_to_string(directory.join(LIST)).unwrap(), "\"a\"\n");
        // A list is only kept with limits.
        fs::remove_file(directory.join(LIST)).unwrap();
        assert_eq!(add(&directory, &path, &Retention::default()).unwrap(), Vec::<PathBuf>::new());
        assert!(!directory.join(LIST).exists());
    }
}
