//! The export itself: inputs, shards on several threads, and the summary.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nettrace::Event;
use nettrace_edit::{Redacted, RedactionLetters, Redactor};
use nettrace_tables::{
    Dataset, Error, Input, Labels, Options, PayloadRewriter, Rewritten, Shard, ShardSummary,
};
use serde::Serialize;

use super::ExportArgs;
use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::redact;
use crate::processors;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output};

/// The summary of an export.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// Recordings exported by this run.
    recordings: u64,
    /// Recordings that the data set already had.
    already: u64,
    /// Recordings that were listed more than once.
    duplicates: u64,
    /// Recordings exported by this run that are cut or damaged.
    incomplete: u64,
    bytes: u64,
    events: u64,
    samples: u64,
    left_out: u64,
    lost: u64,
    damages: u64,
    tables: Vec<TableSummary>,
    shards: Vec<ShardRow>,
    failed: Vec<FailedFile>,
}

#[derive(Debug, Default, Serialize)]
struct TableSummary {
    table: &'static str,
    files: u64,
    rows: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct ShardRow {
    shard: String,
    date: String,
    service: String,
    recordings: usize,
}

#[derive(Debug, Serialize)]
struct FailedFile {
    file: String,
    error: String,
}

/// Maximum size of a file with labels, in bytes.
const MAX_LABELS_SIZE: u64 = 1 << 20;

pub(super) fn run(args: &ExportArgs) -> Outcome {
    let mut files = args.file.clone();
    if files.iter().any(|file| file.as_os_str() == "-") {
        return Err(Failure::usage("FILE: a recording is read twice, which standard input cannot be")
            .with_help("--files-from - reads the names of recordings from there"));
    }
    if let Some(list) = &args.files_from {
        files.extend(listed(list)?);
    }
    let threads = args.threads.map_or_else(processors::count, usize::from);
    let mut summary = Summary::default();
    let mut exit = Exit::Done;

    let mut labels = Labels::default();
    for (name, value) in &args.label {
        labels.insert(name, value);
    }
    let mut inputs = Vec::new();
    for (file, opened) in files.iter().zip(in_parallel(&files, threads, |file| open(file, &labels))) {
        match opened {
            Ok(input) => inputs.push(input),
            Err(error) => {
                exit = exit.join(exit_of(&error));
                summary.fail(&file.display().to_string(), &error);
            }
        }
    }

    let options = Options::default().with_rundown(args.rundown).with_drop_fields(args.drop_fields);
    let dataset = dataset(&args.to, options)?;
    dataset.promote(&args.promote).map_err(|error| promotion_failed(&error))?;
    let plan = dataset.plan(inputs).map_err(|error| Failure::new(Exit::Failed, error))?;
    (summary.already, summary.duplicates) = (plan.done, plan.duplicates);
    let redacted = Mutex::new(Redactor::new(Vec::new(), RedactionLetters::Same));
    let exported = in_parallel(&plan.shards, threads, |shard| {
        if args.redact.is_empty() {
            return dataset.export(shard);
        }
        let mut rewriter = Redacting(Redactor::new(args.redact.clone(), RedactionLetters::Same));
        let exported = dataset.export_rewritten(shard, Some(&mut rewriter));
        redacted.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add_counts(rewriter.0);
        exported
    });
    for (shard, exported) in plan.shards.iter().zip(exported) {
        match exported {
            Ok(shard_summary) => exit = exit.join(summary.add(shard, &shard_summary)),
            Err(error) => {
                exit = Exit::Failed;
                summary.fail(&format!("shard {} of {} recordings", shard.name, shard.inputs.len()), &error);
            }
        }
    }
    if !args.redact.is_empty() && !plan.shards.is_empty() {
        let redacted = redacted.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        redact::report(&redacted, "rows have no fields of these");
    }
    match args.format {
        Format::Table => output::print(summary.table())?,
        Format::Json => output::print_json(&summary)?,
    }
    Ok(exit)
}

/// Replaces strings in the payloads of exported events.
struct Redacting(Redactor);

impl PayloadRewriter for Redacting {
    fn rewrite(&mut self, event: &Event<'_>, payload: &mut Vec<u8>) -> Rewritten {
        match self.0.redact(event) {
            Redacted::InPart(_) => Rewritten::Unreadable,
            Redacted::Kept => Rewritten::Kept,
            Redacted::Replaced(redacted) => {
                payload.extend_from_slice(redacted);
                Rewritten::Replaced
            }
        }
    }
}

/// The data set in a directory, or in a store.
fn dataset(to: &Path, options: Options) -> Result<Dataset, Failure> {
    let Some(address) = to.to_str().filter(|to| to.contains("://")) else {
        return Ok(Dataset::new(to, options));
    };
    #[cfg(feature = "cloud")]
    return Ok(Dataset::stored(std::sync::Arc::new(super::store::Bucket::open(address)?), options));
    #[cfg(not(feature = "cloud"))]
    Err(Failure::new(Exit::Failed, format_args!("--to: {address}: this program was built without object stores"))
        .with_help("the program of a release has them, or cargo install dipc-cli --features cloud; --to DIR writes into a directory"))
}

fn promotion_failed(error: &Error) -> Failure {
    let failure = Failure::new(Exit::Failed, format_args!("--promote: {error}"));
    match error {
        Error::Promoted { .. } => failure.with_help(
            "a column keeps its field and its type: promote it as it is there, or export to another data set",
        ),
        _ => failure,
    }
}

/// Returns the lines of a list, each the name of a file.
fn listed(list: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot_read = |error: io::Error| {
        Failure::new(Exit::Failed, format_args!("--files-from: {}: {error}", list.display()))
    };
    let source: Box<dyn BufRead> = if list.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(list).map_err(cannot_read)?))
    };
    let lines = source.lines().map(|line| line.map(|line| PathBuf::from(line.trim_end())));
    let files: Vec<_> = lines.collect::<io::Result<_>>().map_err(cannot_read)?;
    Ok(files.into_iter().filter(|file| !file.as_os_str().is_empty()).collect())
}

/// Opens a recording, with the labels of its companion file. Labels of the command line take precedence.
fn open(file: &Path, labels: &Labels) -> Result<Input, Error> {
    let mut labels = labels.clone();
    let mut beside = file.as_os_str().to_owned();
    beside.push(".json");
    let beside = PathBuf::from(beside);
    match read_labels(&beside) {
        Ok(text) => match Labels::from_json(&text) {
            Ok(read) => labels.add_missing(&read),
            Err(message) => {
                return Err(Error::File {
                    path: beside,
                    error: io::Error::new(io::ErrorKind::InvalidData, message),
                });
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::File { path: beside, error }),
    }
    Input::open(file, labels)
}

/// Reads the file with labels. It is as untrusted as the recording: pipes are not waited for, and the size is
/// limited.
fn read_labels(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let count = dipc_transport::open_regular(path)?.take(MAX_LABELS_SIZE + 1).read_to_string(&mut text)?;
    if count as u64 > MAX_LABELS_SIZE {
        let message = format!("labels have at most {MAX_LABELS_SIZE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

/// Returns the results of `work` for all items, in their order, computed by `threads` threads.
fn in_parallel<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|index| Some((index, items.get(index)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_values().collect()
}

const fn exit_of(error: &Error) -> Exit {
    match error {
        Error::CutHeader { .. } => Exit::Incomplete,
        _ => Exit::Failed,
    }
}

impl Summary {
    fn fail(&mut self, file: &str, error: &Error) {
        messages::warning(format_args!("not exported: {error}"));
        self.failed.push(FailedFile { file: file.to_owned(), error: error.to_string() });
    }

    fn add(&mut self, shard: &Shard, exported: &ShardSummary) -> Exit {
        let mut exit = Exit::Done;
        for (input, counts) in shard.inputs.iter().zip(&exported.recordings) {
            self.recordings += 1;
            self.bytes = self.bytes.saturating_add(input.bytes);
            self.events = self.events.saturating_add(counts.events);
            self.samples = self.samples.saturating_add(counts.samples);
            self.left_out = self.left_out.saturating_add(counts.left_out);
            self.lost = self.lost.saturating_add(counts.lost);
            self.damages = self.damages.saturating_add(counts.damages);
            let name = input.path.display();
            if counts.is_truncated {
                messages::warning(format_args!("{name}: cut; the intact part was exported"));
            }
            if counts.damages > 0 {
                messages::warning(format_args!("{name}: damaged in {} places", counts.damages));
            }
            if counts.unnamed_methods > 0 {
                messages::warning(format_args!(
                    "{name}: {} methods have no name: it describes more code than is kept",
                    counts.unnamed_methods
                ));
            }
            if counts.is_truncated || counts.damages > 0 {
                self.incomplete += 1;
                exit = Exit::Incomplete;
            }
        }
        for (table, rows, bytes) in &exported.files {
            let known = self.tables.iter().position(|row| row.table == *table);
            let index = known.unwrap_or_else(|| {
                self.tables.push(TableSummary { table, ..TableSummary::default() });
                self.tables.len() - 1
            });
            if let Some(row) = self.tables.get_mut(index) {
                row.files += 1;
                row.rows = row.rows.saturating_add(*rows);
                row.bytes = row.bytes.saturating_add(*bytes);
            }
        }
        self.shards.push(ShardRow {
            shard: shard.name.clone(),
            date: shard.date.clone(),
            service: shard.service.clone(),
            recordings: shard.inputs.len(),
        });
        exit
    }

    fn table(&self) -> String {
        let mut text = format!(
            "Recordings: {} exported, {} already there, {} listed twice, {} failed\nEvents    : {} events, {} samples, {} left out, {} lost\n",
            self.recordings,
            self.already,
            self.duplicates,
            self.failed.len(),
            self.events,
            self.samples,
            self.left_out,
            self.lost
        );
        if !self.tables.is_empty() {
            let mut columns = Columns::new([
                ("TABLE", Align::Left),
                ("FILES", Align::Right),
                ("ROWS", Align::Right),
                ("BYTES", Align::Right),
            ]);
            for row in &self.tables {
                columns.row([
                    row.table.to_owned(),
                    row.files.to_string(),
                    row.rows.to_string(),
                    row.bytes.to_string(),
                ]);
            }
            text.push('\n');
            text.push_str(&columns.fitted(&[]));
        }
        text
    }
}
