//! `dipc repair`: the intact parts of a recording, as a recording that other programs read.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use clr_events::Provider;
use nettrace::Event;
use nettrace_edit::KeepAll;
use nettrace_writer::Version;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::names::Names;
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::{AddedRecording, Rewrite, Rewritten};
use crate::inspect::thread_times;
use crate::process::target::{FoundTarget, TargetSelector};
use crate::record::names::{ANSWER, record_list};
use crate::render::output;
use crate::render::output_file::NameOrigin;

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Path of the new recording
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Add the methods, modules and threads listed by another recording of the same process, or by the
    /// process itself while it runs
    ///
    /// Takes a file, or else a process id. The process is made to list its methods, as at the end of a
    /// recording. By default the names that dipc trace left next to the recording are added
    /// (RECORDING.names.nettrace), if any.
    #[arg(long, value_name = "FILE|PID", value_hint = ValueHint::FilePath)]
    names_from: Option<PathBuf>,
    /// Format of the list of damage
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The number of damaged parts that the table lists individually.
const SHOWN: usize = 5;

/// The result of a repair.
#[derive(Debug, Serialize)]
struct Repair {
    version: u32,
    events: u64,
    /// Events that the runtime lost, and those in damaged parts.
    lost: u64,
    names_added: u64,
    bytes: u64,
    truncated_at: Option<u64>,
    /// The first of the damaged parts.
    damage: Vec<DamagedPart>,
    damage_count: u64,
}

/// A damaged part of a recording: offset and size in bytes.
#[derive(Debug, Serialize)]
struct DamagedPart {
    offset: u64,
    skipped: u64,
    what: String,
}

pub(crate) fn run(args: &RepairArgs) -> Outcome {
    if args.output.as_os_str() == "-" {
        return Err(
            Failure::usage("-o -: standard output has the list of damage").with_help("name a file with -o")
        );
    }
    // Unreadable inputs are reported before the output is emptied.
    let beside = if args.names_from.is_none() { Names::find(&args.file) } else { None };
    let names_from = args.names_from.as_deref().or(beside.as_ref().map(Names::path));
    let source = names_from.map(NameSource::find).transpose()?;
    let names_path = source.as_ref().map(NameSource::path);
    let names = names_path.map(Recording::open).transpose()?;
    let name = source.as_ref().map(NameSource::name);
    let added = match (names_path, &name, &names) {
        (Some(path), Some(name), Some(recording)) => Some(AddedRecording { path, name, recording }),
        _ => None,
    };
    let mut rewrite = Rewrite::open(&args.file, added.as_ref(), (&args.output, NameOrigin::User), None)?
        .copy(&mut KeepAll)?;
    let names_added = match names {
        Some(names) => rewrite.append(names, is_name)?,
        None => 0,
    };
    if let (Some(source), Some(_), 0) = (&source, &args.names_from, names_added) {
        return Err(source.without_names());
    }
    let rewritten = rewrite.finish()?;
    let version = if rewritten.version == Version::V6 { 6 } else { 4 };
    thread_times::carry_over(&args.file, &args.output);
    let repair = Repair::new(&rewritten, version, names_added);
    match args.format {
        Format::Json => output::print_json(&repair)?,
        Format::Table => output::print(repair.table())?,
    }
    let is_whole = repair.truncated_at.is_none() && repair.damage_count == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Incomplete })
}

/// The source of the names.
enum NameSource<'a> {
    File(&'a Path),
    /// A running process, which has listed its methods into a temporary file.
    Process(u32, NamedTempFile),
}

impl<'a> NameSource<'a> {
    /// Returns the recording, or makes the process with that id list its methods.
    fn find(from: &'a Path) -> Result<Self, Failure> {
        let pid = from.to_str().and_then(|text| text.parse().ok()).filter(|pid| *pid > 0);
        match pid {
            Some(pid) if !from.exists() => {
                let target = FoundTarget::find(&TargetSelector::Pid(pid), ANSWER)?.target;
                Ok(Self::Process(pid, record_list(&target)?))
            }
            _ => Ok(Self::File(from)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Process(_, file) => file.path(),
        }
    }

    /// The name for messages.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Process(pid, _) => format!("process {pid}"),
        }
    }

    fn without_names(&self) -> Failure {
        let help = match self {
            Self::File(_) => {
                "record the process again: dipc trace -p PID --duration 1s lists them at its end"
            }
            Self::Process(..) => {
                "a program that was compiled ahead of time (NativeAOT) has no methods to list"
            }
        };
        Failure::new(Exit::Failed, format_args!("{}: it lists no methods", self.name())).with_help(help)
    }
}

/// Returns true if the event belongs to a rundown at the start or end of the recording.
fn is_name(event: &Event<'_>) -> bool {
    Provider::of(event.metadata()) == Some(Provider::Rundown)
}

impl Repair {
    fn new(rewritten: &Rewritten, version: u32, names_added: u64) -> Self {
        let Rewritten { copied, events, .. } = rewritten;
        let damage = events.damage().iter().map(|damage| DamagedPart {
            offset: damage.offset,
            skipped: damage.skipped,
            what: damage.what.to_string(),
        });
        Self {
            version,
            events: copied.kept,
            lost: events.loss().total(),
            names_added,
            bytes: copied.bytes,
            truncated_at: events.truncated_at(),
            damage: damage.collect(),
            damage_count: events.damage_count(),
        }
    }

    fn table(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("Events   {}\nLost     {}\n", self.events, self.lost);
        if self.names_added > 0 {
            let _ = writeln!(text, "Names    {}", self.names_added);
        }
        match self.truncated_at {
            Some(offset) => _ = writeln!(text, "Cut at   offset {offset}"),
            None if self.damage_count == 0 => text.push_str("Damage   none\n"),
            None => {}
        }
        for part in self.damage.iter().take(SHOWN) {
            let _ = writeln!(
                text,
                "Damage   offset {}: {} ({} bytes skipped)",
                part.offset, part.what, part.skipped
            );
        }
        let more = self.damage_count - self.damage.len().min(SHOWN) as u64;
        if more > 0 {
            let _ = writeln!(text, "Damage   in {more} more places");
        }
        text
    }
}
