//! The bundle of a crash: a directory that appears with its name when it is complete.

use std::fs::{self, DirBuilder};
use std::io::{self, BufWriter, Read as _};
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::{FolderBelow, open_regular};
use dipc_client::{CrashFiles, PathPattern, Uuid};
use dipc_collect::Retention;
use dipc_collect::staged::{
    create_private, folder_of, free_bytes, numbered, publish_first, publish_new, sync_folder, write_private,
};
use jiff::Timestamp;
use nettrace_edit::Snapshot;

use super::last_counters::CounterRow;
use super::overview::{CoreFile, EVENTS, Overview, REPORT};
use crate::process::Watched;
use crate::retention::directories;

/// The ending of the names of bundles.
const ENDING: &str = ".crash";
/// Maximum length of a process's name within a bundle's name, in characters.
const MAX_NAME_LENGTH: usize = 60;
/// Maximum number of bundles of a name.
const MAX_PER_NAME: u32 = 1000;
/// Maximum size of a crash report to copy, in bytes.
const MAX_REPORT_SIZE: u64 = 64 << 20;
const COUNTERS: &str = "counters.json";
const OVERVIEW: &str = "overview.txt";

/// The content of a bundle.
pub(super) struct Bundle<'b> {
    pub(super) process: &'b Watched,
    pub(super) reason: &'static str,
    pub(super) files: &'b CrashFiles,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) lost: u64,
    pub(super) counters: Vec<CounterRow>,
}

impl Bundle<'_> {
    /// Writes it into a directory, and removes old ones. Returns its path.
    pub(super) fn write(&self, directory: &Path, retention: &Retention) -> io::Result<PathBuf> {
        let at = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"))
        };
        fs::create_dir_all(directory).map_err(at(directory))?;
        // Room for this one first: the older ones would go after it anyway.
        prune(directory, retention);
        let name = format!(".{}.part", Uuid::new_v4().simple());
        let part = directory.join(&name);
        create_directory(&part).map_err(at(&part))?;
        let now = Timestamp::now();
        // Others may rename it, and put a link in its place.
        let opened = FolderBelow::open(directory, Path::new(&name));
        let written = opened.and_then(|folder| self.fill(&folder.join("."), now)).map_err(at(&part));
        let placed =
            written.and_then(|()| place(&part, &directory.join(self.name(now))).map_err(at(directory)));
        if placed.is_err() {
            // The incomplete bundle is useless.
            let _ = fs::remove_dir_all(&part);
        }
        prune(directory, retention);
        placed
    }

    /// The name of the bundle: the time, the pid, and the letters and digits of the process's name.
    fn name(&self, now: Timestamp) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let title = self.process.title().chars().take(MAX_NAME_LENGTH);
        let title: String = title.map(|c| if is_plain(c) { c } else { '_' }).collect();
        format!("{}_{}_{title}{ENDING}", now.strftime("%Y%m%d_%H%M%S_%3f"), self.process.facts.pid)
    }

    fn fill(&self, part: &Path, now: Timestamp) -> io::Result<()> {
        let written = match &self.snapshot {
            None => None,
            Some(snapshot) => {
                let mut file = BufWriter::new(create_private(&part.join(EVENTS))?);
                let written = snapshot.write(None, &mut file).map_err(io::Error::other)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
                Some(written)
            }
        };
        if !self.counters.is_empty() {
            let json = serde_json::to_vec_pretty(&self.counters).map_err(io::Error::other)?;
            write_private(&part.join(COUNTERS), &json)?;
        }
        let runtime = self.files.runtime.as_ref();
        let report = runtime.and_then(|files| files.report.as_ref());
        let report = report.filter(|_| !self.files.has_own_root).and_then(PathPattern::find);
        let has_report = report.is_some_and(|path| copy_report(&path, self.files.uid, part).is_ok());
        let core = runtime.and_then(|files| files.core.as_ref()).map(|pattern| {
            let found = pattern.find().filter(|_| !self.files.has_own_root);
            let bytes = found.as_ref().and_then(|path| Some(fs::symlink_metadata(path).ok()?.len()));
            CoreFile { path: found.unwrap_or_else(|| pattern.display()), bytes }
        });
        let overview = Overview {
            process: self.process,
            reason: self.reason,
            files: self.files,
            now,
            written,
            is_cut_short: self.snapshot.as_ref().is_some_and(Snapshot::is_cut_short),
            lost: self.lost,
            counters: &self.counters,
            has_report,
            core,
        };
        write_private(&part.join(OVERVIEW), overview.text(part).as_bytes())?;
        sync_folder(part)
    }
}

/// Removes the oldest bundles beyond the limits.
fn prune(directory: &Path, retention: &Retention) {
    let list = directories(directory, ENDING);
    retention.apply(list, || free_bytes(directory), |path| fs::remove_dir_all(path));
}

/// Copies the report that the runtime wrote. The process chose its name: it must be a file of its user.
fn copy_report(path: &Path, uid: Option<u32>, part: &Path) -> io::Result<()> {
    let file = open_regular(path)?;
    #[cfg(unix)]
    if uid != Some(std::os::unix::fs::MetadataExt::uid(&file.metadata()?)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    #[cfg(not(unix))]
    let _ = uid;
    let mut bytes = Vec::new();
    file.take(MAX_REPORT_SIZE).read_to_end(&mut bytes)?;
    write_private(&part.join(REPORT), &bytes)
}

/// Creates a directory that only its owner can read: it has the memory of processes in a sense.
fn create_directory(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "has no mode"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Gives the directory a name that nothing has.
fn place(part: &Path, target: &Path) -> io::Result<PathBuf> {
    let names = (1..=MAX_PER_NAME).map(|number| numbered(target, "-", number));
    let placed = publish_first(names, |name| publish_new(part, name))?;
    sync_folder(folder_of(target))?;
    Ok(placed)
}
