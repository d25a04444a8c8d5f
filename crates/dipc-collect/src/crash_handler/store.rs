//! The core dumps in the folder of a handler.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::HandlerSettings;
use crate::retention::{Kept, Retention};
use crate::staged::free_bytes;

/// The beginning of the names of core dumps.
const BEGINNING: &str = "core.";
/// The endings of the files of a core dump: itself, the facts, and the overview.
const ENDINGS: [&str; 4] = [".gz", ".stripped", ".json", ".txt"];

/// The names of the files of one core dump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the files that a handler writes")]
pub struct CoreNames {
    /// The path without an ending.
    pub stem: PathBuf,
    /// The core dump.
    pub core: PathBuf,
    /// The facts, as JSON.
    pub facts: PathBuf,
    /// The overview.
    pub overview: PathBuf,
}

impl CoreNames {
    /// Returns the names for a process in `folder`. Characters that names of files should not have are '_'.
    pub fn new(folder: &Path, name: &str, pid: u32, time: u64, is_stripped: bool) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let name: String = name.chars().take(32).map(plain).collect();
        let stem = folder.join(format!("{BEGINNING}{name}.{pid}.{time}"));
        let with = |ending: &str| {
            let mut path = stem.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let core = with(if is_stripped { ".stripped" } else { ".gz" });
        Self { core, facts: with(".json"), overview: with(".txt"), stem }
    }
}

/// A core dump that a handler has written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "facts of a name")]
pub struct KeptCore {
    /// The time of the crash, in seconds since 1970.
    pub time: u64,
    /// The name of the process.
    pub name: String,
    /// The process.
    pub pid: u32,
    /// The core dump, and the files that belong to it.
    pub files: Vec<PathBuf>,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// Lists the core dumps in a folder, the oldest first. Files with other names are not a handler's.
///
/// # Errors
/// If the folder cannot be read.
pub fn kept_cores(folder: &Path) -> io::Result<Vec<KeptCore>> {
    let mut found: Vec<KeptCore> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some((name, pid, time)) = entry.file_name().to_str().and_then(parse) else { continue };
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        match found.iter_mut().find(|core| (core.time, core.pid, &core.name) == (time, pid, &name)) {
            Some(core) => {
                core.files.push(entry.path());
                core.bytes = core.bytes.saturating_add(bytes);
            }
            None => found.push(KeptCore { time, name, pid, files: vec![entry.path()], bytes }),
        }
    }
    found.sort();
    Ok(found)
}

/// The name, pid and time in the name of a file.
fn parse(file: &str) -> Option<(String, u32, u64)> {
    let stem = ENDINGS.iter().find_map(|ending| file.strip_suffix(ending))?;
    let mut parts = stem.strip_prefix(BEGINNING)?.split('.');
    let (name, pid, time) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = parts.next().is_none();
    is_whole.then_some(())?;
    Some((name.to_owned(), pid.parse().ok()?, time.parse().ok()?))
}

/// Removes the oldest core dumps beyond the limits on their number and on the free space. Returns the free
/// bytes beyond the limit; `None` if the system does not say.
///
/// # Errors
/// If the folder cannot be read.
pub fn make_room(settings: &HandlerSettings) -> io::Result<Option<u64>> {
    let folder = &settings.folder;
    let limits =
        Retention::default().with_files(Some(settings.keep)).with_free(Some(settings.min_free_bytes));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let list = kept_cores(folder)?.into_iter().map(|core| Kept {
        age: now.saturating_sub(std::time::Duration::from_secs(core.time)),
        bytes: core.bytes,
        entry: core,
    });
    // Another handler may remove the same.
    limits.apply(
        list.collect(),
        || free_bytes(folder),
        |core| {
            core.files.iter().try_for_each(|file| match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            })
        },
    );
    Ok(free_bytes(folder).map(|free| free.saturating_sub(settings.min_free_bytes)))
}
