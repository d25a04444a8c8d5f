//! The record of a promised artifact: a file in the queue's directory, replaced as a whole.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::open_own;
use dipc_collect::Retention;
use dipc_collect::staged::{sync_folder, write_private};
use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, RecordingNote};
use super::delivery::{Places, Step};
use crate::artifact::StoredRequest;
use crate::configuration::DirectoryEgress;

/// Maximum size of a record to read, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of files of the directory to inspect.
const MAX_FILES: usize = 10_000;
/// The ending of the records' names.
const ENDING: &str = ".job.json";
/// The ending of the name of a record that is being written.
const NEW: &str = ".job.new";

/// A promised artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job {
    /// The id of its operation.
    pub(super) id: String,
    pub(super) state: JobState,
    /// The name of the egress provider.
    pub(super) provider: String,
    /// True if the provider is a store, to which the complete file is uploaded.
    #[serde(default)]
    pub(super) is_upload: bool,
    /// The directory of the file; for a store, that in which it waits.
    pub(super) directory: PathBuf,
    pub(super) intermediate: Option<PathBuf>,
    /// The name of the file.
    pub(super) name: String,
    /// The path of the delivered file.
    pub(super) delivered: Option<PathBuf>,
    pub(super) pid: u32,
    /// The cookie of the process's runtime.
    pub(super) uid: String,
    pub(super) process_name: String,
    pub(super) tags: BTreeSet<String>,
    /// The request, from which the artifact is collected again.
    pub(super) request: StoredRequest,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum JobState {
    /// The artifact is not complete: after a restart, it is collected again.
    Collecting,
    /// The artifact is complete, and may have its name.
    Complete,
    /// The artifact has its name: remaining files can be removed.
    Delivered,
}

impl Job {
    pub(super) fn places(&self) -> io::Result<Places> {
        let egress = DirectoryEgress {
            directory: self.directory.clone(),
            intermediate: self.intermediate.clone(),
            ..DirectoryEgress::default()
        };
        Places::new(&egress, &self.name, &self.id)
    }

    /// Adds the delivered file to the list of its directory, with the current limits of that.
    pub(super) fn list(&self, file: &Path, limits: &Retention) {
        if self.is_upload {
            return;
        }
        let note = RecordingNote {
            name: String::new(),
            kind: self.request.route.clone(),
            pid: self.pid,
            uid: self.uid.clone(),
            process_name: self.process_name.clone(),
            operation: Some(self.id.clone()),
            rule: None,
        };
        // The artifact is in its place, listed or not.
        let _ = Catalog::new(&self.directory).add(file, note, limits);
    }

    fn path(&self, queue: &Path) -> PathBuf {
        queue.join(format!("{}{ENDING}", self.id))
    }

    /// Writes the record, durably and as a whole.
    pub(super) fn store(&self, queue: &Path, step: Step<'_>) -> io::Result<()> {
        let path = self.path(queue);
        let new = queue.join(format!("{}{NEW}", self.id));
        // A file may have been left over.
        let _ = fs::remove_file(&new);
        write_private(&new, &serde_json::to_vec(self).map_err(io::Error::other)?)?;
        step()?;
        fs::rename(&new, &path)?;
        step()?;
        sync_folder(queue)
    }

    pub(super) fn remove(&self, queue: &Path) {
        // A record that stays is removed after the next start.
        let _ = fs::remove_file(self.path(queue));
    }

    /// Reads the records of a directory. Unreadable ones stay there.
    pub(super) fn read_all(queue: &Path) -> io::Result<Vec<Self>> {
        let mut jobs = Vec::new();
        for entry in fs::read_dir(queue)?.take(MAX_FILES).flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(NEW) {
                // The record was not stored: the job was never accepted.
                let _ = fs::remove_file(entry.path());
            }
            let is_job = name.ends_with(ENDING) && entry.metadata().is_ok_and(|it| it.len() <= MAX_BYTES);
            let job = is_job.then(|| read(&entry.path()).ok()).flatten();
            jobs.extend(job.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok()));
        }
        jobs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(jobs)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_own(path, OpenOptions::new().read(true))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
