//! `dipc merge`: several recordings combined into one.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use nettrace_writer::{ClockRelation, Merger, MergerOptions};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::merging::Merging;
use crate::inspect::names::Names;
use crate::inspect::rewrite::{create_output, warn_of_omissions};
use crate::inspect::thread_times;
use crate::render::output_file::NameOrigin;
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The recordings, of one machine or of many
    #[arg(required = true, num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Path of the new recording
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Treat recordings with the same clock and process id as the same process, not only parts of one
    /// recording
    #[arg(long)]
    same_process: bool,
    /// Format of the list of recordings
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The result of a merge.
#[derive(Debug, Serialize)]
struct Merge {
    events: u64,
    bytes: u64,
    inputs: Vec<MergedInput>,
}

/// A recording that was merged.
#[derive(Debug, Serialize)]
struct MergedInput {
    file: String,
    /// The events written, and the events already in an earlier part of the same recording.
    events: u64,
    repeated: u64,
    lost: u64,
    /// The index of the first recording that this is a part of, from 0.
    part_of: usize,
    clock: ClockName,
    /// The beginning of the recording on the clock of the new one, in seconds from its start.
    start_s: f64,
    processes: Vec<MergedProcess>,
}

/// The relation of clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ClockName {
    Same,
    ByStartTimes,
    Unknown,
}

/// A process: its id in the recording, and in the new one.
#[derive(Debug, Serialize)]
struct MergedProcess {
    from: u64,
    to: u64,
}

pub(crate) fn run(args: &MergeArgs) -> Outcome {
    if args.output.as_os_str() == "-" {
        return Err(Failure::usage("-o -: standard output has the list of recordings")
            .with_help("name a file with -o"));
    }
    for file in &args.files {
        Names::warn_if_left_behind(file);
        thread_times::warn_if_left_behind(file);
    }
    let options = MergerOptions::default().with_same_processes(args.same_process);
    let mut merging = Merging::open(&args.files, options)?;
    let mut out = create_output(&args.files, &args.output, NameOrigin::User)?;
    merging.write(&mut out)?;
    let Merging { merged, order, infos, origins } = &merging;
    let merger = merged.merger();
    warn_of_omissions(merger.omissions());
    let mut exit = Exit::Done;
    let mut inputs = Vec::new();
    for (index, (events, info)) in order.events().zip(infos).enumerate() {
        if origins[index].report_damage(events) != Exit::Done {
            exit = Exit::Incomplete;
        }
        let (written, repeated) = merger.events(index);
        let start = merger.info().relative_time(merger.time(index, info.start_ticks));
        inputs.push(MergedInput {
            file: args.files[index].display().to_string(),
            events: written,
            repeated,
            lost: events.loss().total(),
            part_of: merger.part_of(index),
            clock: ClockName::of(merger.clock(index)),
            start_s: start.since_start().as_secs_f64(),
            processes: processes(merger, index),
        });
    }
    out.close()?;
    let merge = Merge { events: inputs.iter().map(|it| it.events).sum(), bytes: merger.offset(), inputs };
    match args.format {
        Format::Json => output::print_json(&merge)?,
        Format::Table => output::print(merge.table())?,
    }
    Ok(exit)
}

fn processes(merger: &Merger, input: usize) -> Vec<MergedProcess> {
    merger.processes(input).map(|(from, to)| MergedProcess { from, to }).collect()
}

impl ClockName {
    const fn of(relation: Option<ClockRelation>) -> Self {
        match relation {
            Some(ClockRelation::Same) => Self::Same,
            Some(ClockRelation::ByStartTimes) => Self::ByStartTimes,
            _ => Self::Unknown,
        }
    }

    /// The relation in words, with the accuracy of times.
    const fn text(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::ByStartTimes => "by start times, 1 ms or worse",
            Self::Unknown => "unknown; taken to begin together",
        }
    }
}

/// The number of processes that the table lists individually.
const SHOWN: usize = 3;

impl Merge {
    fn table(&self) -> String {
        use Align::{Left, Right};
        let mut columns = Columns::new([
            ("FILE", Left),
            ("EVENTS", Right),
            ("REPEATED", Right),
            ("LOST", Right),
            ("START", Right),
            ("CLOCK", Left),
            ("PROCESS", Left),
        ]);
        for input in &self.inputs {
            columns.row([
                input.file.clone(),
                units::count(input.events),
                units::count(input.repeated),
                units::count(input.lost),
                format!("{:.3} s", input.start_s),
                input.clock.text().to_owned(),
                input.process_text(),
            ]);
        }
        columns.fitted(&["REPEATED", "LOST"])
    }
}

impl MergedInput {
    /// The processes, with new ids where assigned.
    fn process_text(&self) -> String {
        let shown = self.processes.iter().take(SHOWN).map(|process| match (process.from, process.to) {
            (from, to) if from == to => from.to_string(),
            (from, to) => format!("{from} is now {to}"),
        });
        let mut text = shown.collect::<Vec<_>>().join(", ");
        let more = self.processes.len().saturating_sub(SHOWN);
        if more > 0 {
            let _ = write!(text, " and {more} more");
        }
        text
    }
}
