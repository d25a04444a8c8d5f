//! The artifacts and the bundles of crashes that the monitor keeps in directories.
//!
//! `.dipc-recordings` in an egress directory has a line of JSON for each artifact that a monitor has put
//! there: nothing else in the directory is listed or served. Of a bundle, the files that a monitor writes are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::directory_list::{DirectoryList, ListedFile};

/// The name of the list.
const LIST: &str = ".dipc-recordings";
/// A list of at least this many bytes is rewritten without the files that are gone.
const LARGE_LIST: u64 = 1 << 20;
/// Maximum number of recordings of a directory: the newest ones.
const MAX_RECORDINGS: usize = 10_000;
/// Maximum number of entries of the directory of bundles to inspect.
const MAX_ENTRIES: usize = 100_000;
/// The ending of the names of bundles.
const BUNDLE: &str = ".crash";
/// The files of a bundle.
const BUNDLE_FILES: [&str; 4] = ["overview.txt", "events.nettrace", "counters.json", "crashreport.json"];

/// The known facts about an artifact when it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordingNote {
    /// The name below the directory, with `/`.
    #[serde(default)]
    pub(crate) name: String,
    /// The kind of the artifact.
    pub(crate) kind: String,
    pub(crate) pid: u32,
    /// The cookie of the process's runtime.
    pub(crate) uid: String,
    pub(crate) process_name: String,
    /// The operation that collected it.
    pub(crate) operation: Option<String>,
    /// The rule for which it was collected.
    pub(crate) rule: Option<String>,
}

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

impl RecordingNote {
    /// Adds an artifact to the list of its directory.
    ///
    /// # Errors
    /// If the file system fails. The artifact is in its place, but not listed.
    pub(crate) fn add(mut self, directory: &Path, artifact: &Path) -> io::Result<()> {
        let Ok(below) = artifact.strip_prefix(directory) else { return Ok(()) };
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let Some(parts) = parts else { return Ok(()) };
        self.name = parts.join("/");
        let mut line = serde_json::to_vec(&self).map_err(io::Error::other)?;
        line.push(b'\n');
        DirectoryList::new(directory, LIST).change(|list| {
            if list.len() >= LARGE_LIST {
                write_anew(directory, list)?;
            }
            list.append(&line)
        })
    }
}

/// Writes the list again, with the newest of the files that are still there.
fn write_anew(directory: &Path, list: &DirectoryList<'_>) -> io::Result<()> {
    let mut text = Vec::new();
    for note in read(directory) {
        text.extend(serde_json::to_vec(&note).map_err(io::Error::other)?);
        text.push(b'\n');
    }
    list.replace(&text)
}

/// Reads the notes of existing files, each once, oldest first.
fn read(directory: &Path) -> Vec<RecordingNote> {
    // An unreadable list counts as empty.
    let bytes = DirectoryList::new(directory, LIST).read().unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let notes = lines.filter_map(|line| serde_json::from_slice::<RecordingNote>(line).ok());
    // A later file may have the name of a removed one.
    let mut last = BTreeMap::new();
    for (number, note) in notes.enumerate() {
        if ListedFile::find(directory, &note.name).is_some() {
            last.insert(note.name.clone(), (number, note));
        }
    }
    let mut notes: Vec<_> = last.into_values().collect();
    notes.sort_by_key(|(number, _)| *number);
    let left_out = notes.len().saturating_sub(MAX_RECORDINGS);
    notes.into_iter().skip(left_out).map(|(_, note)| note).collect()
}

/// Lists the files in the directories of egress providers and of bundles, newest first.
pub(crate) fn list(directories: &BTreeMap<String, PathBuf>, bundles: Option<&Path>) -> Vec<Recording> {
    let mut list: Vec<Recording> = Vec::new();
    for (provider, directory) in directories {
        let notes = read(directory).into_iter();
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
    let files = names.take(MAX_RECORDINGS).flat_map(|bundle| {
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
    use std::fs::OpenOptions;
    use std::io::{Read as _, Write as _};

    use super::*;

    fn note(kind: &str) -> RecordingNote {
        RecordingNote {
            name: String::new(),
            kind: kind.to_owned(),
            pid: 7,
            uid: "u".to_owned(),
            process_name: "shop".to_owned(),
            operation: None,
            rule: Some("R".to_owned()),
        }
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
        note("trace").add(&files, &files.join("a.nettrace")).unwrap();
        note("dump").add(&files, &files.join("sub/b.dmp")).unwrap();
        note("gcdump").add(&files, &files.join("gone.gcdump")).unwrap();
        note("trace").add(&files, Path::new("/elsewhere/x")).unwrap();
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

    #[test]
    fn a_list_names_no_file_outside() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        put(&folder.path().join("secret"));
        put(&files.join("a"));
        note("trace").add(&files, &files.join("a")).unwrap();
        let mut lines = fs::read_to_string(files.join(LIST)).unwrap();
        for name in ["../secret", "/etc/passwd", "", ".", "a/../../secret", "link", "sub/secret"] {
            lines.push_str(
                &serde_json::to_string(&RecordingNote { name: name.to_owned(), ..note("x") }).unwrap(),
            );
            lines.push('\n');
        }
        lines.push_str("{\"name\": \"a\"\nnothing\n{}");
        fs::write(files.join(LIST), lines).unwrap();
        #[cfg(unix)]
        for (link, to) in [("link", folder.path().join("secret")), ("sub", folder.path().to_owned())] {
            std::os::unix::fs::symlink(to, files.join(link)).unwrap();
        }
        let listed = list(&BTreeMap::from([("f".to_owned(), files)]), None);
        assert_eq!(names(&listed), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn planted_lists_are_neither_followed_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (files, canary) = (folder.path().join("files"), folder.path().join("canary"));
        put(&files.join("a"));
        put(&canary);
        let made = |program: &str, arguments: &[&Path]| {
            assert!(std::process::Command::new(program).args(arguments).status().unwrap().success());
        };
        let list_file = files.join(LIST);
        for plant in [
            &|| std::os::unix::fs::symlink(&canary, &list_file).unwrap(),
            &|| fs::hard_link(&canary, &list_file).unwrap(),
            &|| made("mkfifo", &[&list_file]),
        ] as [&dyn Fn(); 3]
        {
            let _ = fs::remove_file(&list_file);
            plant();
            note("trace").add(&files, &files.join("a")).unwrap();
            assert!(fs::symlink_metadata(&list_file).unwrap().is_file());
            let listed = list(&BTreeMap::from([("f".to_owned(), files.clone())]), None);
            assert_eq!(names(&listed), ["a"]);
        }
        assert_eq!(fs::read_to_string(&canary).unwrap(), "12345");
    }

    #[test]
    fn a_large_list_drops_deleted_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path();
        put(&files.join("a"));
        put(&files.join("b"));
        note("trace").add(files, &files.join("a")).unwrap();
        let long = RecordingNote { name: "x".repeat(100_000), ..note("trace") };
        let mut file = OpenOptions::new().append(true).open(files.join(LIST)).unwrap();
        for _ in 0..11 {
            writeln!(file, "{}", serde_json::to_string(&long).unwrap()).unwrap();
        }
        note("trace").add(files, &files.join("b")).unwrap();
        assert!(fs::metadata(files.join(LIST)).unwrap().len() < 1000);
        let listed = list(&BTreeMap::from([("f".to_owned(), files.to_owned())]), None);
        assert_eq!(names(&listed), ["a", "b"]);
    }
}
