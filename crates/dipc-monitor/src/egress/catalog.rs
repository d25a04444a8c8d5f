//! The list of the artifacts in a directory, to which others may write.
//!
//! `.dipc-recordings` in an egress directory has a line of JSON for each artifact that a monitor has put
//! there. Nothing else in the directory is listed, served, counted or removed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dipc_client::dipc_transport::{FolderBelow, open_own};
use dipc_collect::staged::{free_bytes, write_private};
use dipc_collect::{Kept, Retention};
use serde::{Deserialize, Serialize};

use crate::retention::age;

/// The name of the list.
const LIST: &str = ".dipc-recordings";
/// The name of a list that is being written.
const NEW: &str = ".dipc-recordings.new";
/// Maximum size of a list to read, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// A list of at least this many bytes is rewritten without the files that are gone.
const LARGE_LIST: u64 = 1 << 20;
/// Maximum number of recordings of a directory: the newest ones.
const MAX_RECORDINGS: usize = 10_000;
/// Maximum length of a name of an artifact in bytes, with room for a number.
const MAX_NAME_LENGTH: usize = 200;

/// The locks of directories, which are few. A directory that does not answer does not hold up others.
static LOCKS: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// A line of the list: what is known of an artifact when it is written.
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

/// The list of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Catalog<'d>(&'d Path);

impl<'d> Catalog<'d> {
    pub(crate) const fn new(directory: &'d Path) -> Self {
        Self(directory)
    }

    /// Adds an artifact, and removes the oldest ones beyond the limits. The newest stays. Returns the removed
    /// ones.
    ///
    /// # Errors
    /// If the list cannot be read or written: then nothing is removed. The artifact is in its place.
    pub(crate) fn add(
        &self,
        artifact: &Path,
        note: RecordingNote,
        limits: &Retention,
    ) -> io::Result<Vec<PathBuf>> {
        let Ok(below) = artifact.strip_prefix(self.0) else { return Ok(Vec::new()) };
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let Some(parts) = parts else { return Ok(Vec::new()) };
        let note = RecordingNote { name: parts.join("/"), ..note };
        let lock = {
            let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(self.0.to_owned()).or_default())
        };
        // All steps are in the same directory, whatever has its name meanwhile.
        let folder = self.open()?;
        let directory = folder.join("");
        let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = Catalog(&directory).add_note(note, limits)?;
        Ok(removed.into_iter().map(|name| self.0.join(name)).collect())
    }

    fn open(&self) -> io::Result<FolderBelow> {
        FolderBelow::open(self.0, Path::new(""))
    }

    /// Adds a note. Returns the names of the removed artifacts.
    fn add_note(&self, note: RecordingNote, limits: &Retention) -> io::Result<Vec<String>> {
        if limits.is_none() && self.len() < LARGE_LIST {
            return self.append(&line(&note)?).map(|()| Vec::new());
        }
        let mut notes = self.read()?;
        notes.retain(|other| other.name != note.name);
        notes.push(note);
        let kept = notes.iter().filter_map(|note| self.kept(&note.name)).collect();
        let removed = limits.apply(kept, || free_bytes(self.0), |name| self.remove(name));
        // Artifacts removed by others are forgotten, too.
        notes.retain(|note| ListedFile::find(self.0, &note.name).is_some());
        // Limits count all artifacts.
        let left_out = if limits.is_none() { notes.len().saturating_sub(MAX_RECORDINGS) } else { 0 };
        let mut content = Vec::new();
        for note in notes.iter().skip(left_out) {
            content.extend(line(note)?);
        }
        self.replace(&content)?;
        Ok(removed)
    }

    /// Returns the newest of the artifacts that exist, oldest first. An unreadable list counts as empty.
    pub(crate) fn notes(&self) -> Vec<RecordingNote> {
        let read = || {
            let folder = self.open()?;
            Catalog(&folder.join("")).read()
        };
        let mut notes = read().unwrap_or_default();
        notes.drain(..notes.len().saturating_sub(MAX_RECORDINGS));
        notes
    }

    /// Reads the notes of existing files, each once, oldest first. Lines that are cut are left out.
    fn read(&self) -> io::Result<Vec<RecordingNote>> {
        let bytes = self.read_bytes()?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let notes = lines.filter_map(|line| serde_json::from_slice::<RecordingNote>(line).ok());
        // A later file may have the name of a removed one.
        let mut last = BTreeMap::new();
        for (number, note) in notes.enumerate() {
            if ListedFile::find(self.0, &note.name).is_some() {
                last.insert(note.name.clone(), (number, note));
            }
        }
        let mut notes: Vec<_> = last.into_values().collect();
        notes.sort_by_key(|(number, _)| *number);
        Ok(notes.into_iter().map(|(_, note)| note).collect())
    }

    /// Returns an artifact; `None` if its name leads out of the directory, or it is not a file.
    fn kept(&self, name: &str) -> Option<Kept<String>> {
        let metadata = ListedFile::find(self.0, name)?.metadata;
        Some(Kept { entry: name.to_owned(), bytes: metadata.len(), age: age(metadata.modified().ok()?) })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match ListedFile::find(self.0, name) {
            Some(file) => fs::remove_file(file.folder.join(&file.file_name)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn path(&self) -> PathBuf {
        self.0.join(LIST)
    }

    /// The bytes of the list; 0 if it is missing.
    fn len(&self) -> u64 {
        fs::symlink_metadata(self.path()).map_or(0, |list| list.len())
    }

    /// Reads the list. Empty if the list is missing, or if something else has its name.
    fn read_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open_own(&self.path(), OpenOptions::new().read(true)) {
            Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes)?,
            Err(error) if is_replaced(&error) || error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(bytes)
    }

    /// Appends a line in one write: a line that is cut by a full disk is left out by readers, and ended by
    /// the next one. Something else that has the list's name is replaced.
    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match open_own(&self.path(), &mut options) {
            Ok(mut file) => {
                let end: &[u8] = if is_cut(&mut file)? { b"\n" } else { b"" };
                file.write_all(&[end, line].concat())
            }
            Err(error) if is_replaced(&error) => self.replace(line),
            Err(error) => Err(error),
        }
    }

    /// Rewrites the whole list.
    fn replace(&self, content: &[u8]) -> io::Result<()> {
        let new = self.0.join(NEW);
        // A file may have been left over.
        let _ = fs::remove_file(&new);
        write_private(&new, content)?;
        fs::rename(new, self.path())
    }
}

fn line(note: &RecordingNote) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(note).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns true if the last line of a file has no end.
fn is_cut(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Returns true for a link or a pipe, which the monitor has not written.
fn is_replaced(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Returns the path of an artifact below a directory; `None` if its name leads out of it.
pub(crate) fn path_of(directory: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    let length = name.file_name()?.len();
    (is_inside && length <= MAX_NAME_LENGTH).then(|| directory.join(name))
}

/// A regular file that a list names, below its directory.
#[derive(Debug)]
pub(crate) struct ListedFile {
    folder: FolderBelow,
    file_name: String,
    pub(crate) metadata: fs::Metadata,
}

impl ListedFile {
    /// Finds a file by name; `None` if the name leads out of the directory, also by a link, or is not a file.
    pub(crate) fn find(directory: &Path, name: &str) -> Option<Self> {
        path_of(directory, name)?;
        let name = Path::new(name);
        let file_name = name.file_name()?.to_str()?.to_owned();
        let folder = FolderBelow::open(directory, name.parent()?).ok()?;
        let metadata = fs::symlink_metadata(folder.join(&file_name)).ok()?;
        metadata.is_file().then_some(Self { folder, file_name, metadata })
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        open_own(&self.folder.join(&self.file_name), OpenOptions::new().read(true))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn note(name: &str) -> RecordingNote {
        RecordingNote {
            name: name.to_owned(),
            kind: "trace".to_owned(),
            pid: 7,
            uid: "u".to_owned(),
            process_name: "shop".to_owned(),
            operation: None,
            rule: None,
        }
    }

    fn add(directory: &Path, artifact: &Path, limits: &Retention) -> io::Result<Vec<PathBuf>> {
        Catalog::new(directory).add(artifact, note(""), limits)
    }

    fn names(directory: &Path) -> Vec<String> {
        Catalog::new(directory).notes().into_iter().map(|note| note.name).collect()
    }

    fn put(directory: &Path, name: &str, age: u64) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "0123456789").unwrap();
        let modified = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        path
    }

    #[test]
    fn the_oldest_artifacts_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let files = Retention::default().with_files(Some(2));
        let foreign = put(directory, "foreign.nettrace", 1000);
        let mut gone = Vec::new();
        for (name, age) in [("a", 400), ("sub/b", 300), ("c\nd", 200), ("e", 100)] {
            let path = put(directory, name, age);
            gone.extend(add(directory, &path, &files).unwrap());
        }
        assert_eq!(gone, [directory.join("a"), directory.join("sub/b")]);
        assert!(foreign.exists() && directory.join("c\nd").exists() && directory.join("e").exists());
        assert_eq!(names(directory), ["c\nd", "e"]);
        // 20 bytes and 10: the older ones go; the newest stays whatever the limit.
        let path = put(directory, "f", 0);
        let bytes = Retention::default().with_bytes(Some(5));
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
        let age = Retention::default().with_age(Some(Duration::from_secs(3600)));
        assert_eq!(add(directory, &path, &age).unwrap(), [directory.join("f")]);
        // No file system has as much free.
        #[cfg(target_os = "linux")]
        {
            let path = put(directory, "h", 0);
            let free = Retention::default().with_free(Some(u64::MAX));
            assert_eq!(add(directory, &path, &free).unwrap(), [directory.join("g")]);
        }
        assert!(foreign.exists());
    }

    #[test]
    fn a_list_names_no_file_outside() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        let secret = put(folder.path(), "secret", 1000);
        let artifact = put(&files, "a", 0);
        fs::create_dir(files.join("folder")).unwrap();
        add(&files, &artifact, &Retention::default()).unwrap();
        let mut lines = fs::read_to_string(files.join(LIST)).unwrap();
        for name in ["../secret", "/etc/passwd", "", ".", "a/../../secret", "link", "sub/secret", "folder"] {
            lines.push_str(&serde_json::to_string(&note(name)).unwrap());
            lines.push('\n');
        }
        lines.push_str("{\"name\": \"a\"\nnothing\n{}");
        fs::write(files.join(LIST), lines).unwrap();
        #[cfg(unix)]
        for (link, to) in [("link", secret.clone()), ("sub", folder.path().to_owned())] {
            std::os::unix::fs::symlink(to, files.join(link)).unwrap();
        }
        assert_eq!(names(&files), ["a"]);
        // None of them is removed, either.
        let limits = Retention::default().with_files(Some(0));
        assert_eq!(add(&files, &artifact, &limits).unwrap(), Vec::<PathBuf>::new());
        assert!(secret.exists() && artifact.exists() && files.join("folder").is_dir());
        assert_eq!(fs::read_to_string(files.join(LIST)).unwrap().lines().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn planted_lists_are_neither_followed_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (files, canary) = (folder.path().join("files"), put(folder.path(), "canary", 0));
        let artifact = put(&files, "a", 0);
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
            add(&files, &artifact, &Retention::default()).unwrap();
            assert!(fs::symlink_metadata(&list_file).unwrap().is_file());
            assert_eq!(names(&files), ["a"]);
        }
        assert_eq!(fs::read_to_string(&canary).unwrap(), "0123456789");
    }

    /// A full disk cuts the last line anywhere.
    #[test]
    fn a_cut_line_does_not_take_the_next_one_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (files, none) = (folder.path(), Retention::default());
        add(files, &put(files, "a", 0), &none).unwrap();
        let whole = fs::read(files.join(LIST)).unwrap();
        let artifact = put(files, "b", 0);
        for length in 0..=whole.len() {
            fs::write(files.join(LIST), &whole[..length]).unwrap();
            add(files, &artifact, &none).unwrap();
            let is_whole = length >= whole.len() - 1;
            assert_eq!(names(files), if is_whole { &["a", "b"][..] } else { &["b"] }, "{length}");
        }
    }

    #[test]
    fn a_large_list_drops_deleted_files() {
        let folder = tempfile::tempdir().unwrap();
        let (files, none) = (folder.path(), Retention::default());
        add(files, &put(files, "a", 0), &none).unwrap();
        let long = note(&"x".repeat(100_000));
        let mut file = OpenOptions::new().append(true).open(files.join(LIST)).unwrap();
        for _ in 0..11 {
            writeln!(file, "{}", serde_json::to_string(&long).unwrap()).unwrap();
        }
        add(files, &put(files, "b", 0), &none).unwrap();
        assert!(fs::metadata(files.join(LIST)).unwrap().len() < 1000);
        assert_eq!(names(files), ["a", "b"]);
    }
}
