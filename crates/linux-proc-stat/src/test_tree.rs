//! A folder of files for tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ControlGroup;

/// A tree of files, removed when it is dropped.
pub(crate) struct TestTree(PathBuf);

impl TestTree {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let tree = Self(std::env::temp_dir().join(format!("linux-proc-{}-{name}", std::process::id())));
        for (path, content) in files {
            tree.write(path, content.as_bytes());
        }
        tree
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the `mountinfo` of hierarchies (root, folder in this tree, kind, options).
    pub(crate) fn mounts(&self, mounts: &[(&str, &str, &str, &str)]) -> String {
        let line = |(root, folder, kind, options): &(&str, &str, &str, &str)| {
            let folder = self.0.join(folder);
            format!("32 31 0:29 {root} {} rw shared:9 - {kind} {kind} {options}\n", folder.display())
        };
        mounts.iter().map(line).collect()
    }

    /// Finds a group below this tree, which is mounted with a root.
    pub(crate) fn group(&self, groups: &str, mounts: &[(&str, &str, &str, &str)]) -> ControlGroup {
        ControlGroup::resolve(groups, &self.mounts(mounts))
    }
}

impl Drop for TestTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
