//! The artifacts and the bundles of crashes that the monitor keeps in directories. Of an egress directory,
//! its [list](Catalog) is served; of a bundle, the files that a monitor writes are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::egress::{Catalog, ListedFile, RecordingNote};

/// Maximum number of bundles to list.
const MAX_BUNDLES: usize = 10_000;
/// Maximum number of entries of the directory of bundles to inspect.
const MAX_ENTRIES: usize = 100_000;
/// The ending of the names of bundles.
const BUNDLE: &str = ".crash";
/// The files of a bundle.
const BUNDLE_FILES: [&str; 4] = ["overview.txt", "events.nettrace", "counters.json", "crashreport.json"];

/// A file that the monitor has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recording {
    /// The id of the recording, which stays the same.
    pub(crate) id: String,
    pub(crate) note: RecordingNote,
    /// The name of the egress provider; `None` for a bundle.
    pub(crate) provider: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    directory: PathBuf,
}

/// Lists the files in the directories of egress providers and of bundles, newest first.
pub(crate) fn list(directories: &BTreeMap<String, PathBuf>, bundles: Option<&Path>) -> Vec<Recording> {
    let mut list: Vec<Recording> = Vec::new();
    for (provider, directory) in directories {
        let notes = Catalog::new(directory).notes().into_iter();
        list.extend(notes.filter_map(|note| Recording::of(Some(provider), directory, note)));
    }
    if let Some(directory) = bundles {
        list.extend(bundle_files(directory));
    }
    list.sort_by(|one, other| (other.modified, &other.id).cmp(&(one.modified, &one.id)));
    list
}

/// The files of the bundles in a directory.
fn bundle_files(directory: &Path) -> Vec<Recording> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.take(MAX_ENTRIES).flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_bundle = name.ends_with(BUNDLE) && entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_bundle.then_some(name)
    });
    let files = names.take(MAX_BUNDLES).flat_map(|bundle| {
        // `TIME_PID_NAME.crash`; the time has three parts.
        let mut parts = bundle.strip_suffix(BUNDLE).unwrap_or(&bundle).splitn(5, '_').skip(3);
        let pid = parts.next().and_then(|pid| pid.parse().ok()).unwrap_or_default();
        let process_name = parts.next().unwrap_or_default().to_owned();
        BUNDLE_FILES.map(|file| RecordingNote {
            name: format!("{bundle}/{file}"),
            kind: "crash".to_owned(),
            pid,
            uid: String::new(),
            process_name: process_name.clone(),
            operation: None,
            rule: None,
        })
    });
    files.filter_map(|note| Recording::of(None, directory, note)).collect()
}

impl Recording {
    fn of(provider: Option<&String>, directory: &Path, note: RecordingNote) -> Option<Self> {
        let ListedFile { metadata, .. } = ListedFile::find(directory, &note.name)?;
        let key = format!("{}\0{}", provider.map_or("", |name| name), note.name);
        let hash = Sha256::digest(key.as_bytes());
        let id = hash.first_chunk().map(|bytes| u128::from_be_bytes(*bytes)).unwrap_or_default();
        Some(Self {
            id: format!("{id:032x}"),
            note,
            provider: provider.cloned(),
            bytes: metadata.len(),
            modified: metadata.modified().ok()?,
            directory: directory.to_owned(),
        })
    }

    /// Opens the file.
    ///
    /// # Errors
    /// If the file system fails, or it is not a regular file any more.
    pub(crate) fn open(&self) -> io::Result<File> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it no longer exists");
        ListedFile::find(&self.directory, &self.note.name).ok_or_else(gone)?.open()
    }

    /// The name of the file, with the name of its bundle, without directories.
    pub(crate) fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        self.note.name.chars().map(plain).collect()
    }

    /// Returns true if it is a recording of events, which has a page.
    pub(crate) fn is_nettrace(&self) -> bool {
        Path::new(&self.note.name).extension().is_some_and(|extension| extension == "nettrace")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use dipc_collect::Retention;

    use super::*;

    fn add(directory: &Path, artifact: &Path) {
        let note = RecordingNote {
            name: String::new(),
            kind: "trace".to_owned(),
            pid: 7,
            uid: "u".to_owned(),
            process_name: "shop".to_owned(),
            operation: None,
            rule: Some("R".to_owned()),
        };
        Catalog::new(directory).add(artifact, note, &Retention::default()).unwrap();
    }

    fn put(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "12345").unwrap();
    }

    fn names(list: &[Recording]) -> Vec<&str> {
        let mut names: Vec<_> = list.iter().map(|recording| &*recording.note.name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn lists_only_files_of_the_monitor() {
        let folder = tempfile::tempdir().unwrap();
        let (files, bundles) = (folder.path().join("files"), folder.path().join("bundles"));
        for name in ["a.nettrace", "sub/b.dmp", "foreign.nettrace"] {
            put(&files.join(name));
        }
        add(&files, &files.join("a.nettrace"));
        add(&files, &files.join("sub/b.dmp"));
        add(&files, &files.join("gone.gcdump"));
        add(&files, Path::new("/elsewhere/x"));
        let bundle = "20261127_010203_004_77_my_shop.crash";
        for name in ["overview.txt", "events.nettrace", "core"] {
            put(&bundles.join(bundle).join(name));
        }
        put(&bundles.join("plain.crash"));
        let directories = BTreeMap::from([("files".to_owned(), files.clone())]);
        let listed = list(&directories, Some(&bundles));
        assert_eq!(
            names(&listed),
            [
                "20261127_010203_004_77_my_shop.crash/events.nettrace",
                "20261127_010203_004_77_my_shop.crash/overview.txt",
                "a.nettrace",
                "sub/b.dmp",
            ]
        );
        let of = |name: &str| listed.iter().find(|it| it.note.name.ends_with(name)).unwrap();
        assert_eq!((of("overview.txt").note.pid, &*of("overview.txt").note.process_name), (77, "my_shop"));
        assert_eq!((of("b.dmp").bytes, &*of("b.dmp").file_name()), (5, "sub_b.dmp"));
        assert!(of("a.nettrace").is_nettrace() && !of("b.dmp").is_nettrace());
        let mut text = String::new();
        of("b.dmp").open().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "12345");
        // Ids are made from the provider and the name.
        let again = list(&directories, None);
        assert!(again.iter().any(|it| it.id == of("a.nettrace").id));
    }
}
