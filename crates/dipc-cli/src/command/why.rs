//! `dipc why`: the cause of what is wrong with a process, from a recording, from memory, or from both.

mod all;
mod live;
mod print;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueHint};
use clr_findings::{Evidence, FindingKind, MemoryCounts, MemoryFacts, ProcessEnd, ProcessIdentity, Readings};

pub(crate) use self::print::report_of;
use self::print::{Answer, Subject};
use crate::args::format::Format;
use crate::args::source::{ManyProcesses, SOURCES, SourceArgs};
use crate::args::user_code::UserCodeArgs;
use crate::command::report::OverviewData;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_dump::stacks;
use crate::inspect::core_source::{Source, is_core};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["file", "all"]).args(SOURCES))]
pub(crate) struct WhyArgs {
    /// A recording, of dipc profile for all causes, or a core dump
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs<ManyProcesses>,
    /// All .NET processes at once, eight at a time: the first cause of each in a line, the worst first
    #[arg(long)]
    all: bool,
    /// The time for which the process is watched
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    duration: Duration,
    /// Keep the recording that the causes are judged by: dipc report and dipc view read it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["file", "all"])]
    output: Option<PathBuf>,
    /// Exit with 8 if a cause of this kind is found; any for all kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = fail_on_parser())]
    fail_on: Vec<FailOn>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    user_code: UserCodeArgs,
    /// Time limit for each of the runtime's answers
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    timeout: Duration,
}

/// The kinds of causes to fail on: one, or `None` for any.
type FailOn = Option<FindingKind>;

/// The name for any kind.
const ANY: &str = "any";

fn fail_on_parser() -> impl TypedValueParser<Value = FailOn> {
    let names = [ANY].into_iter().chain(FindingKind::ALL.iter().map(|kind| kind.id()));
    PossibleValuesParser::new(names)
        .map(|name| FindingKind::ALL.iter().copied().find(|kind| kind.id() == name))
}

impl WhyArgs {
    /// Prints an answer, and returns the exit code. `exit` is that of the evidence.
    fn present(&self, answer: &Answer, exit: Exit) -> Outcome {
        answer.print(self.format)?;
        Ok(exit.join(self.exit_of(answer)))
    }

    /// The exit code for the causes.
    fn exit_of(&self, answer: &Answer) -> Exit {
        let fails = |kind: FindingKind| self.fail_on.iter().any(|on| on.is_none_or(|on| on == kind));
        if answer.kinds().any(fails) { Exit::ConditionMet } else { Exit::Done }
    }
}

pub(crate) fn run(args: &WhyArgs) -> Outcome {
    let (answer, exit) = match &args.file {
        Some(path) if is_core(path) => of_core(path)?,
        Some(path) => of_recording(path, args)?,
        None if args.all => return all::run(args),
        None => return live::run(args),
    };
    args.present(&answer, exit)
}

fn of_recording(path: &Path, args: &WhyArgs) -> Result<(Answer, Exit), Failure> {
    let (data, exit) = OverviewData::read(path, &args.user_code.patterns())?;
    let end = data.end();
    let missing: Vec<_> = missing_memory(&data.readings, end.as_ref()).chain(missing_end(&data)).collect();
    let evidence = Evidence::default()
        .with_recording(&data.reports)
        .with_requested(&data.requested)
        .with_readings(&data.readings)
        .with_end(end.as_ref())
        .with_missing(&missing);
    Ok((Answer::new(data.process(), &evidence, Subject::Recording(path.to_owned())), exit))
}

/// Memory that could not be read, as missing evidence. The end of the process says why.
fn missing_memory(readings: &Readings, end: Option<&ProcessEnd>) -> impl Iterator<Item = String> {
    let reason = readings.memory_missing.as_ref().filter(|_| end.is_none());
    reason.map(|reason| format!("locks and tasks in memory: {reason}")).into_iter()
}

/// The end of a recording, if it is missing, as missing evidence.
fn missing_end(data: &OverviewData) -> Option<String> {
    data.is_truncated().then(|| "the end of the recording: it is cut".to_owned())
}

fn of_core(path: &Path) -> Result<(Answer, Exit), Failure> {
    let source = Source::open(path)?;
    let runtime = source.runtime()?;
    let core = source.core().ok_or_else(|| Failure::new(Exit::Failed, "why: not a core dump"))?;
    let dump = source.dump(&runtime);
    let stacks = stacks(&source, &dump)?;
    let memory = [MemoryFacts::of_core(core, &dump, stacks.clone())];
    // The methods on stacks lead to the modules of the user's code.
    let counts = [MemoryCounts::of_core(core, &dump, &stacks)];
    let missing = ["processor time and events: a core dump has a single moment".to_owned()];
    let process = ProcessIdentity::default().with_runtime(Some(runtime.version().to_owned()));
    let process = match core.process() {
        Some(note) => process
            .with_process_id(Some(u64::from(note.pid)))
            .with_name(Some(note.name.clone()))
            .with_command_line(Some(note.arguments.clone()).filter(|line| !line.is_empty())),
        None => process,
    };
    let evidence = Evidence::default().with_memory(&memory).with_counts(&counts).with_missing(&missing);
    Ok((Answer::new(process, &evidence, Subject::Core(path.to_owned())), source.exit()))
}
