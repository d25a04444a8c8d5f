//! A data set in a directory: recordings that are exported together, and files that appear whole or not at
//! all.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::code_ids::{CodeIds, CodeTables};
use crate::error::Error;
use crate::event_rows::{Counts, EventKeys, FactTables, Options, RecordingFacts, RecordingRows};
use crate::id::Id;
use crate::input::Input;
use crate::promoted::{PROMOTED_FOLDER, PromotedColumn};
use crate::rewrite::PayloadRewriter;
use crate::schema::{self, TABLES, Table};
use crate::storage::{Directory, Storage, make_staging};
use crate::survey::Survey;
use crate::table_writer::TableWriter;

/// Maximum number of recordings of a shard, and of bytes.
const MAX_RECORDINGS: usize = 256;
const MAX_BYTES: u64 = 1 << 30;

/// A data set in a directory, or in another place: `TABLE/date=DATE/service=NAME/SHARD.parquet`.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter};
/// # let folder = tempfile::tempdir()?;
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # source.event(tick, Ticks(5), thread, None, &[], &[])?;
/// # source.finish()?;
/// # let recording = folder.path().join("app.nettrace");
/// # std::fs::write(&recording, source.bytes())?;
/// use nettrace_tables::{Dataset, Input, Labels, Options};
///
/// let dataset = Dataset::new(folder.path().join("data"), Options::default());
/// let plan = dataset.plan(vec![Input::open(&recording, Labels::default())?])?;
/// for shard in &plan.shards {
///     let summary = dataset.export(shard)?;
///     assert_eq!(summary.recordings[0].events, 1);
/// }
/// // Recordings in place are not exported again.
/// assert_eq!(dataset.plan(vec![Input::open(&recording, Labels::default())?])?.done, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dataset {
    storage: Arc<dyn Storage>,
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
    /// The recordings of the shard, by hash.
    pub inputs: Vec<Input>,
    /// The columns that follow the columns of `events`.
    pub promoted: Vec<PromotedColumn>,
}

/// The recordings of a shard: its file in `_shards`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Manifest {
    shard: String,
    service: String,
    recordings: BTreeSet<String>,
}

/// The work for a list of recordings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The shards to write.
    pub shards: Vec<Shard>,
    /// Recordings that are already in the data set.
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
    /// The files of the shard: table, rows and bytes.
    pub files: Vec<(&'static str, u64, u64)>,
}

impl Dataset {
    /// Creates a data set in a directory, which is made at the first write.
    pub fn new(root: impl Into<PathBuf>, options: Options) -> Self {
        Self::stored(Arc::new(Directory::new(root)), options)
    }

    /// Creates a data set in a storage.
    pub fn stored(storage: Arc<dyn Storage>, options: Options) -> Self {
        Self { storage, options }
    }

    /// Appends columns to `events`, for this data set and all later exports into it. Columns that are already
    /// there stay as they are.
    ///
    /// ```
    /// use nettrace_tables::{Dataset, Options};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let dataset = Dataset::new(folder.path(), Options::default());
    /// dataset.promote(&["Shop/Order.Total:double".parse()?])?;
    /// assert_eq!(dataset.promoted()?[0].name(), "p_shop_order_total");
    /// // A name never changes its type.
    /// assert!(dataset.promote(&["Shop/Order.Total:text".parse()?]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the data set has another field or type under a column's name, or cannot be written.
    pub fn promote(&self, columns: &[PromotedColumn]) -> Result<(), Error> {
        for column in columns {
            let name = format!("{PROMOTED_FOLDER}/{}.json", column.name());
            let text = json!({"field": column.to_string()}).to_string();
            if !self.storage.create(&name, text.as_bytes())? {
                let known = self.promoted_column(&name)?;
                if !known.as_ref().is_some_and(|known| known.is_same(column)) {
                    return Err(Error::Promoted {
                        name: column.name().to_owned(),
                        known: known.map_or_else(|| format!("what {name} has"), |known| known.to_string()),
                        wanted: column.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the appended columns, by name.
    ///
    /// # Errors
    /// If the data set cannot be read, or a file in its folder `_promoted` is not a promoted column.
    pub fn promoted(&self) -> Result<Vec<PromotedColumn>, Error> {
        let mut columns = Vec::new();
        for file in self.storage.list(PROMOTED_FOLDER)? {
            let name = format!("{PROMOTED_FOLDER}/{file}");
            if file.strip_suffix(".json").is_some() {
                let damaged = || Error::Store {
                    place: name.clone(),
                    message: "this is not a promoted column; remove the file, and promote it again"
                        .to_owned(),
                };
                columns.push(self.promoted_column(&name)?.ok_or_else(damaged)?);
            }
        }
        columns.sort();
        columns.dedup_by(|a, b| a.name() == b.name());
        Ok(columns)
    }

    fn promoted_column(&self, name: &str) -> Result<Option<PromotedColumn>, Error> {
        let value: Value = serde_json::from_slice(&self.storage.read(name)?).unwrap_or_default();
        Ok(value.get("field").and_then(Value::as_str).and_then(|field| field.parse().ok()))
    }

    /// Divides recordings into shards, without recordings that are already in the data set.
    ///
    /// The same recordings give the same shards in any order of the list. If all recordings of a shard that
    /// an earlier export has begun to put in place are listed, it is exported again as it was; if only some
    /// are, its files in place are removed.
    ///
    /// # Errors
    /// If the data set's directory cannot be read.
    pub fn plan(&self, mut inputs: Vec<Input>) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        inputs.sort_by(|a, b| (&a.recording, &a.uri).cmp(&(&b.recording, &b.uri)));
        let count = inputs.len();
        inputs.dedup_by(|a, b| a.recording == b.recording);
        plan.duplicates = (count - inputs.len()) as u64;
        let mut dates: BTreeMap<String, BTreeMap<String, Input>> = BTreeMap::new();
        for input in inputs {
            dates.entry(input.date.clone()).or_default().insert(input.recording.clone(), input);
        }
        let promoted = self.promoted()?;
        for (date, mut inputs) in dates {
            let (whole, begun) = self.manifests(&date)?;
            for recording in whole.iter().flat_map(|manifest| &manifest.recordings) {
                plan.done += u64::from(inputs.remove(recording).is_some());
            }
            for Manifest { shard, service, recordings } in begun {
                let is_listed =
                    |recording| inputs.get(recording).is_some_and(|input| input.labels.service() == service);
                if recordings.iter().all(is_listed) {
                    let inputs = recordings.iter().filter_map(|recording| inputs.remove(recording)).collect();
                    plan.shards.push(Shard::new(&date, &service, inputs, &promoted));
                } else if recordings.iter().any(|recording| inputs.contains_key(recording)) {
                    // The listed recordings will be in another shard: this shard's existing files would be
                    // duplicates.
                    self.remove_begun(&date, &service, &shard)?;
                }
            }
            let mut services: BTreeMap<String, Vec<Input>> = BTreeMap::new();
            for input in inputs.into_values() {
                services.entry(input.labels.service().to_owned()).or_default().push(input);
            }
            for (service, inputs) in services {
                let shards = divide(inputs).into_iter();
                plan.shards.extend(shards.map(|inputs| Shard::new(&date, &service, inputs, &promoted)));
            }
        }
        self.storage.clean();
        Ok(plan)
    }

    /// Writes the files of a shard, and puts them in place once all are complete.
    ///
    /// # Errors
    /// If a recording cannot be read, or a file cannot be written. Then no file is in place.
    pub fn export(&self, shard: &Shard) -> Result<ShardSummary, Error> {
        self.export_rewritten(shard, None)
    }

    /// Writes a shard like [`export`](Self::export), with payloads that are changed before they become rows.
    /// Rows are then written without `payload`: bytes without a field name cannot be changed.
    ///
    /// ```
    /// # use nettrace::{Ticks, TraceInfo};
    /// # use nettrace_writer::{EventKind, EventWriter};
    /// # let folder = tempfile::tempdir()?;
    /// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
    /// # let mut source = EventWriter::new(&info)?;
    /// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
    /// # let thread = source.thread(7, 8, Some("main"))?;
    /// # source.event(tick, Ticks(5), thread, None, &[], &[])?;
    /// # source.finish()?;
    /// # let recording = folder.path().join("app.nettrace");
    /// # std::fs::write(&recording, source.bytes())?;
    /// use nettrace::Event;
    /// use nettrace_tables::{Dataset, Input, Labels, Options, PayloadRewriter, Rewritten};
    ///
    /// /// Leaves out all payloads.
    /// struct Nothing;
    ///
    /// impl PayloadRewriter for Nothing {
    ///     fn rewrite(&mut self, _: &Event<'_>, _: &mut Vec<u8>) -> Rewritten {
    ///         Rewritten::Replaced
    ///     }
    /// }
    ///
    /// let dataset = Dataset::new(folder.path().join("data"), Options::default());
    /// let plan = dataset.plan(vec![Input::open(&recording, Labels::default())?])?;
    /// let summary = dataset.export_rewritten(&plan.shards[0], Some(&mut Nothing))?;
    /// assert!(summary.files.iter().any(|(table, rows, _)| (*table, *rows) == ("events", 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a recording cannot be read, or a file cannot be written. Then no file is in place.
    pub fn export_rewritten(
        &self,
        shard: &Shard,
        rewriter: Option<&mut (dyn PayloadRewriter + 'static)>,
    ) -> Result<ShardSummary, Error> {
        let folder = self.storage.staging();
        let staging = make_staging(&folder)?;
        let outcome = self.write(shard, staging.path(), rewriter);
        drop(staging);
        // This fails if other exports use it.
        let _ = fs::remove_dir(folder);
        outcome
    }

    fn write(
        &self,
        shard: &Shard,
        staging: &Path,
        mut rewriter: Option<&mut (dyn PayloadRewriter + 'static)>,
    ) -> Result<ShardSummary, Error> {
        let create_with = |table: &'static Table, promoted: &[PromotedColumn]| {
            TableWriter::create(staging.join(table.name).with_extension("parquet"), table, promoted)
        };
        let create = |table| create_with(table, &[]);
        let mut events = create_with(&schema::EVENTS, &shard.promoted)?;
        let mut samples = create(&schema::SAMPLES)?;
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
            let rows = RecordingRows::new(input, self.options, facts, code, ids, &mut keys)
                .with_promoted(&shard.promoted)
                .with_rewriter(rewriter.as_deref_mut());
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
            self.storage.put(&path, &file(table, &shard.date, &shard.service, &shard.name))?;
        }
        Ok(summary)
    }

    /// Writes the list of a shard's recordings, before its files are put in place.
    fn write_manifest(&self, shard: &Shard, staging: &Path) -> Result<(), Error> {
        let recordings: Vec<_> = shard.inputs.iter().map(|input| &input.recording).collect();
        let text = json!({"service": shard.service, "recordings": recordings}).to_string();
        let path = staging.join("manifest.json");
        let mut file = fs::File::create(&path).map_err(Error::file(&path))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(Error::file(&path))?;
        self.storage.put(&path, &manifest(&shard.date, &shard.name))
    }

    /// Returns the complete and the begun shards of a date, for all services, since the labels of a recording
    /// may have changed.
    fn manifests(&self, date: &str) -> Result<(Vec<Manifest>, Vec<Manifest>), Error> {
        let folder = format!("_shards/date={date}");
        let mut manifests = Vec::new();
        for file in self.storage.list(&folder)? {
            let Some(shard) = file.strip_suffix(".json") else { continue };
            let text = self.storage.read(&format!("{folder}/{file}"))?;
            let manifest: Value = serde_json::from_slice(&text).unwrap_or_default();
            let recordings = manifest.get("recordings").and_then(Value::as_array);
            let recordings: BTreeSet<_> = recordings
                .into_iter()
                .flatten()
                .filter_map(|recording| recording.as_str().map(str::to_owned))
                .collect();
            let service = manifest.get("service").and_then(Value::as_str);
            if let (Some(service), false) = (service, recordings.is_empty()) {
                manifests.push(Manifest { shard: shard.to_owned(), service: service.to_owned(), recordings });
            }
        }
        manifests.sort();
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let (mut whole, mut begun) = (Vec::new(), Vec::new());
        for manifest in manifests {
            let files = match files.entry(manifest.service.clone()) {
                Entry::Occupied(files) => files.into_mut(),
                Entry::Vacant(place) => {
                    let folder =
                        format!("{}/{}", schema::RECORDINGS.name, partition(date, &manifest.service));
                    place.insert(self.storage.list(&folder)?)
                }
            };
            let is_whole = files.contains(&format!("{}.parquet", manifest.shard));
            if is_whole { &mut whole } else { &mut begun }.push(manifest);
        }
        Ok((whole, begun))
    }

    /// Removes the files of a shard that an export has begun to put in place, and its list of recordings.
    fn remove_begun(&self, date: &str, service: &str, shard: &str) -> Result<(), Error> {
        for table in TABLES {
            self.storage.remove(&file(table.name, date, service, shard))?;
        }
        self.storage.remove(&manifest(date, shard))
    }
}

/// The name of a shard's file.
fn file(table: &str, date: &str, service: &str, shard: &str) -> String {
    format!("{table}/{}/{shard}.parquet", partition(date, service))
}

/// The name of the file that lists a shard's recordings.
fn manifest(date: &str, shard: &str) -> String {
    format!("_shards/date={date}/{shard}.json")
}

/// Divides recordings of a date and service, in their order.
fn divide(inputs: Vec<Input>) -> Vec<Vec<Input>> {
    let mut shards: Vec<Vec<Input>> = Vec::new();
    let mut bytes = 0u64;
    for input in inputs {
        bytes = bytes.saturating_add(input.bytes);
        match shards.last_mut() {
            Some(shard) if shard.len() < MAX_RECORDINGS && bytes <= MAX_BYTES => shard.push(input),
            _ => {
                bytes = input.bytes;
                shards.push(vec![input]);
            }
        }
    }
    shards
}

impl Shard {
    fn new(date: &str, service: &str, inputs: Vec<Input>, promoted: &[PromotedColumn]) -> Self {
        let mut hash = Sha256::new();
        for input in &inputs {
            hash.update(input.recording.as_bytes());
        }
        let name = Id::first(&hash.finalize()).to_hex();
        let (date, service) = (date.to_owned(), service.to_owned());
        Self { name, date, service, inputs, promoted: promoted.to_vec() }
    }
}

/// The directory of a date and service.
fn partition(date: &str, service: &str) -> String {
    let mut name = format!("date={date}/service=");
    for byte in service.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
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
            assert_eq!(partition("D", service), directory);
        }
    }
}
