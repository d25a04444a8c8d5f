//! The folders whose files an agent may use.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Folders, without symbolic links in their paths.
#[derive(Debug)]
pub(super) struct Folders(Vec<PathBuf>);

impl Folders {
    /// Finds the folders.
    ///
    /// # Errors
    ///
    /// The path that is no folder, and the reason.
    pub(super) fn new(paths: &[PathBuf]) -> Result<Self, String> {
        let find = |path: &PathBuf| {
            let found = path.canonicalize().and_then(|found| {
                if found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotADirectory.into()) }
            });
            found.map_err(|error| format!("{}: {error}", path.display()))
        };
        paths.iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if no file may be used.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path of a file that exists, given as a path or as one within a folder.
    ///
    /// # Errors
    ///
    /// A sentence for the agent: there is no such file, or it is outside of the folders.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.joined(name, Path::exists);
        let path = path.canonicalize().map_err(|error| self.refusal(name, error))?;
        self.check(name, &path)?;
        // A pipe without a writer would keep the tool waiting.
        if path.is_file() { Ok(path) } else { Err(self.refusal(name, "not a file")) }
    }

    /// Returns the path of a file that is to be made.
    ///
    /// # Errors
    ///
    /// A sentence for the agent: the file exists, or its folder is outside or missing.
    pub(super) fn new_file(&self, name: &str) -> Result<PathBuf, String> {
        let in_folder = |path: &Path| path.parent().is_some_and(Path::is_dir);
        let path = self.joined(name, in_folder);
        let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
            return Err(self.refusal(name, "not the name of a file"));
        };
        let path = parent.canonicalize().map_err(|error| self.refusal(name, error))?.join(file);
        self.check(name, &path)?;
        if path.symlink_metadata().is_ok() {
            return Err(self.refusal(name, "exists already; choose another name"));
        }
        Ok(path)
    }

    /// Returns a path in the first folder where it is `right`, or in the first one.
    fn joined(&self, name: &str, right: impl Fn(&Path) -> bool) -> PathBuf {
        let mut paths = self.0.iter().map(|folder| folder.join(name));
        let first = paths.clone().next();
        paths.find(|path| right(path)).or(first).unwrap_or_else(|| name.into())
    }

    fn check(&self, name: &str, path: &Path) -> Result<(), String> {
        let is_inside = self.0.iter().any(|folder| path.starts_with(folder));
        if is_inside { Ok(()) } else { Err(self.refusal(name, "outside of the folders")) }
    }

    fn refusal(&self, name: &str, why: impl Display) -> String {
        let folders: Vec<_> = self.0.iter().map(|folder| folder.display().to_string()).collect();
        if folders.is_empty() {
            return format!("{name}: no files: this server was started without --folder");
        }
        format!("{name}: {why}; the folders are {}", folders.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Folders;

    #[test]
    fn only_files_below_the_folders_are_used() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let inside = root.join("in");
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(inside.join("deep/a.nettrace"), "").unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        let folders = Folders::new(std::slice::from_ref(&inside)).unwrap();
        assert_eq!(folders.file("deep/a.nettrace"), Ok(inside.join("deep/a.nettrace")));
        let absolute = inside.join("deep/a.nettrace");
        assert_eq!(folders.file(absolute.to_str().unwrap()), Ok(absolute));
        for name in ["../secret", root.join("secret").to_str().unwrap(), "deep/../../secret"] {
            assert!(folders.file(name).unwrap_err().contains("outside of the folders"), "{name}");
        }
        assert!(folders.file("deep").unwrap_err().contains("not a file"));
        assert!(folders.file("missing").unwrap_err().contains("the folders are"));
        assert_eq!(folders.new_file("deep/b.nettrace"), Ok(inside.join("deep/b.nettrace")));
        assert!(folders.new_file("deep/a.nettrace").unwrap_err().contains("exists already"));
        for name in ["../b", "..", "/", "", "none/b", root.join("b").to_str().unwrap()] {
            assert!(folders.new_file(name).is_err(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_do_not_lead_out() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(root.path().join("secret"), "").unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(root.path(), inside.join("folder")).unwrap();
        std::os::unix::fs::symlink(root.path().join("none"), inside.join("dangling")).unwrap();
        let folders = Folders::new(&[inside]).unwrap();
        assert!(folders.file("link").unwrap_err().contains("outside of the folders"));
        assert!(folders.new_file("folder/b").unwrap_err().contains("outside of the folders"));
        assert!(folders.new_file("dangling").unwrap_err().contains("exists already"));
    }
}
