//! A data set in a directory: which recordings are exported together, and files that appear whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::code_ids::{CodeIds, CodeTables};
use crate::error::Error;
use crate::event_rows::{Counts, EventKeys, FactTables, Options, RecordingFacts, RecordingRows};
use crate::id::Id;
use crate::input::Input;
use crate::schema::{self, TABLES, Table};
use crate::survey::Survey;
use crate::table_writer::TableWriter;

/// The most recordings of a shard, and the most bytes.
const MOST_RECORDINGS: usize = 256;
const MOST_BYTES: u64 = 1 << 30;

/// Files that an export left behind when it was killed are removed after this time.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// A data set in a directory: `TABLE/date=DATE/service=NAME/SHARD.parquet`.
#[derive(Debug, Clone)]
pub struct Dataset {
    root: PathBuf,
    options: Options,
}

/// Recordings that are exported together: of one date and service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// The name of its files: a hash of its recordings.
    pub name: String,
    /// The date of its recordings.
    pub date: String,
    /// The service of its recordings.
    pub service: String,
    /// Its recordings, by their hashes.
    pub inputs: Vec<Input>,
}

/// The work for a list of recordings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The shards that are to be written.
    pub shards: Vec<Shard>,
    /// Recordings that the data set has already.
    pub done: u64,
    /// Recordings that are on the list more than once.
    pub duplicates: u64,
}

/// An exported shard.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShardSummary {
    /// The numbers of each recording, in the order of [`Shard::inputs`].
    pub recordings: Vec<Counts>,
    /// Its files: table, rows and bytes.
    pub files: Vec<(&'static str, u64, u64)>,
}

impl Dataset {
    /// The data set in a directory, which is made when something is written.
    pub fn new(root: impl Into<PathBuf>, options: Options) -> Self {
        Self { root: root.into(), options }
    }

    /// Divides recordings into shards, without those that the data set has already.
    ///
    /// The same recordings give the same shards, in whatever order they are listed. A shard that an earlier export has begun to put in place is
    /// done again as it was, if all its recordings are listed; if only some are, what is in place of it is removed.
    ///
    /// # Errors
    /// If the data set's directory cannot be read.
    pub fn plan(&self, mut inputs: Vec<Input>) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        inputs.sort_by(|a, b| (&a.recording, &a.uri).cmp(&(&b.recording, &b.uri)));
        let count = inputs.len();
        inputs.dedup_by(|a, b| a.recording == b.recording);
        plan.duplicates = (count - inputs.len()) as u64;
        let mut groups: BTreeMap<(String, String), BTreeMap<String, Input>> = BTreeMap::new();
        for input in inputs {
            let group = (input.date.clone(), input.labels.service().to_owned());
            groups.entry(group).or_default().insert(input.recording.clone(), input);
        }
        for ((date, service), mut inputs) in groups {
            let mut begun = Vec::new();
            for (name, recordings) in self.manifests(&date, &service)? {
                if self.file(schema::RECORDINGS.name, &date, &service, &name).exists() {
                    for recording in &recordings {
                        plan.done += u64::from(inputs.remove(recording).is_some());
                    }
                } else {
                    begun.push((name, recordings));
                }
            }
            for (name, recordings) in begun {
                if recordings.iter().all(|recording| inputs.contains_key(recording)) {
                    let inputs = recordings.iter().filter_map(|recording| inputs.remove(recording)).collect();
                    plan.shards.push(Shard::new(&date, &service, inputs));
                } else if recordings.iter().any(|recording| inputs.contains_key(recording)) {
                    // Those that are listed will be in another shard: what is in place of this one would be there twice.
                    self.remove_begun(&date, &service, &name)?;
                }
            }
            let mut shard = Vec::new();
            let mut bytes = 0u64;
            for input in inputs.into_values() {
                if shard.len() >= MOST_RECORDINGS
                    || !shard.is_empty() && bytes.saturating_add(input.bytes) > MOST_BYTES
                {
                    plan.shards.push(Shard::new(&date, &service, std::mem::take(&mut shard)));
                    bytes = 0;
                }
                bytes = bytes.saturating_add(input.bytes);
                shard.push(input);
            }
            if !shard.is_empty() {
                plan.shards.push(Shard::new(&date, &service, shard));
            }
        }
        self.remove_stale();
        Ok(plan)
    }

    /// Writes the files of a shard, and puts them in place once all are whole.
    ///
    /// # Errors
    /// If a recording cannot be read, or a file cannot be written. Then no file is in place.
    pub fn export(&self, shard: &Shard) -> Result<ShardSummary, Error> {
        let staging = self.root.join("_tmp").join(format!("{}-{}", shard.name, std::process::id()));
        let _ = fs::remove_dir_all(&staging);
        fs::create_dir_all(&staging).map_err(Error::file(&staging))?;
        let outcome = self.write(shard, &staging);
        let _ = fs::remove_dir_all(&staging);
        // Not if other exports use it.
        let _ = fs::remove_dir(self.root.join("_tmp"));
        outcome
    }

    fn write(&self, shard: &Shard, staging: &Path) -> Result<ShardSummary, Error> {
        let create = |table: &'static Table| {
            TableWriter::create(staging.join(table.name).with_extension("parquet"), table)
        };
        let [mut events, mut samples] = [create(&schema::EVENTS)?, create(&schema::SAMPLES)?];
        let [mut stacks, mut frames] = [create(&schema::STACKS)?, create(&schema::FRAMES)?];
        let [mut losses, mut damages] = [create(&schema::LOSSES)?, create(&schema::DAMAGES)?];
        let mut recordings = create(&schema::RECORDINGS)?;
        let mut keys = EventKeys::new();
        let mut summary = ShardSummary::default();
        for input in &shard.inputs {
            let mut survey = Survey::read(input.reader()?)
                .map_err(|error| Error::Recording { path: input.path.clone(), error })?;
            let about = RecordingFacts::new(&mut survey);
            let facts = FactTables {
                events: &mut events,
                samples: &mut samples,
                losses: &mut losses,
                damages: &mut damages,
                recordings: &mut recordings,
            };
            let code = CodeTables { stacks: &mut stacks, frames: &mut frames };
            let ids = CodeIds::new(survey.code.symbolizer());
            let rows = RecordingRows::new(input, self.options, facts, code, ids, &mut keys);
            summary.recordings.push(rows.read(input.reader()?, &about)?);
        }
        let writers = [events, samples, stacks, frames, losses, damages, recordings];
        let mut written = Vec::new();
        for (table, writer) in TABLES.iter().zip(writers) {
            let path = writer.path().to_owned();
            let rows = writer.finish()?;
            let bytes = fs::metadata(&path).map_err(Error::file(&path))?.len();
            summary.files.push((table.name, rows, bytes));
            written.push((table.name, path));
        }
        self.write_manifest(shard, staging)?;
        // `recordings` is the last one: with it the shard counts as done.
        for (table, path) in written {
            place(&path, &self.file(table, &shard.date, &shard.service, &shard.name))?;
        }
        Ok(summary)
    }

    /// The path of a shard's file.
    fn file(&self, table: &str, date: &str, service: &str, shard: &str) -> PathBuf {
        self.root.join(table).join(partition(date, service)).join(shard).with_extension("parquet")
    }

    fn manifest_folder(&self, date: &str, service: &str) -> PathBuf {
        self.root.join("_shards").join(partition(date, service))
    }

    /// Writes which recordings a shard has, before its files are put in place.
    fn write_manifest(&self, shard: &Shard, staging: &Path) -> Result<(), Error> {
        let recordings: Vec<_> = shard.inputs.iter().map(|input| &input.recording).collect();
        let text = json!({"recordings": recordings}).to_string();
        let path = staging.join("manifest.json");
        let mut file = fs::File::create(&path).map_err(Error::file(&path))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(Error::file(&path))?;
        let folder = self.manifest_folder(&shard.date, &shard.service);
        place(&path, &folder.join(&shard.name).with_extension("json"))
    }

    /// Returns the shards of a date and service, whole or begun, with their recordings.
    fn manifests(&self, date: &str, service: &str) -> Result<Vec<(String, BTreeSet<String>)>, Error> {
        let folder = self.manifest_folder(date, service);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::file(&folder)(error)),
        };
        let mut manifests = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::file(&folder))?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let recordings = manifest.get("recordings").and_then(serde_json::Value::as_array);
            let recordings: BTreeSet<_> = recordings
                .into_iter()
                .flatten()
                .filter_map(|recording| recording.as_str().map(str::to_owned))
                .collect();
            if !recordings.is_empty() {
                manifests.push((name.to_owned(), recordings));
            }
        }
        manifests.sort();
        Ok(manifests)
    }

    /// Removes the files of a shard that an export has begun to put in place, and its list of recordings.
    fn remove_begun(&self, date: &str, service: &str, shard: &str) -> Result<(), Error> {
        let manifest = self.manifest_folder(date, service).join(shard).with_extension("json");
        let tables = TABLES.iter().map(|table| self.file(table.name, date, service, shard));
        for path in tables.chain([manifest]) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::file(&path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes what killed exports left behind.
    fn remove_stale(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("_tmp")) else { return };
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Shard {
    fn new(date: &str, service: &str, inputs: Vec<Input>) -> Self {
        let mut hash = Sha256::new();
        for input in &inputs {
            hash.update(input.recording.as_bytes());
        }
        let name = Id::first(&hash.finalize()).to_hex();
        Self { name, date: date.to_owned(), service: service.to_owned(), inputs }
    }
}

/// The directory of a date and service.
fn partition(date: &str, service: &str) -> PathBuf {
    let mut name = String::from("service=");
    for byte in service.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    Path::new(&format!("date={date}")).join(name)
}

/// Moves a file to where it belongs, on the same file system: it appears whole.
fn place(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
    }
    fs::rename(from, to).map_err(Error::file(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_one_directory() {
        for (service, directory) in [
            ("shop", "date=D/service=shop"),
            ("a/../b c", "date=D/service=a%2F..%2Fb%20c"),
            ("..", "date=D/service=.."),
            ("ü=%", "date=D/service=%C3%BC%3D%25"),
        ] {
            assert_eq!(partition("D", service), Path::new(directory));
        }
    }
}
