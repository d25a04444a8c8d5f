//! `dipc why`: the cause of what is wrong with a process, from a recording, from memory, or from both.

mod live;
mod print;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use clr_findings::{Activity, Evidence, MemoryFacts, diagnose};

use self::print::Diagnosis;
use crate::args::format::Format;
use crate::args::source::{ManyProcesses, SOURCES, SourceArgs};
use crate::args::user_code::UserCodeArgs;
use crate::command::report::OverviewData;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_dump::stacks;
use crate::inspect::core_source::{Source, is_core};
use crate::render::shell;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).arg("file").args(SOURCES))]
pub(crate) struct WhyArgs {
    /// A recording, of dipc profile for all causes, or a core dump
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs<ManyProcesses>,
    /// The time for which the process is watched
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    duration: Duration,
    /// Keep the recording that the causes are judged by: dipc report and dipc view read it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "file")]
    output: Option<PathBuf>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    user_code: UserCodeArgs,
    /// Time limit for each of the runtime's answers
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    timeout: Duration,
}

pub(crate) fn run(args: &WhyArgs) -> Outcome {
    let (diagnosis, exit) = match &args.file {
        Some(path) if is_core(path) => of_core(path)?,
        Some(path) => of_recording(path, args)?,
        None => live::diagnose_process(args)?,
    };
    print::print(&diagnosis, args.format)?;
    Ok(exit)
}

fn of_recording(path: &Path, args: &WhyArgs) -> Result<(Diagnosis, Exit), Failure> {
    let (data, exit) = OverviewData::read(path, &args.user_code.patterns())?;
    let findings = diagnose(&Evidence::default().with_recording(&data.reports));
    let diagnosis = Diagnosis {
        process: data.process(),
        crash: data.crash.as_ref().map(|note| (note.summary(), note.core.clone())),
        findings,
        activity: Some(Activity::of(&data.reports)),
        looked_at: data.looked_at(),
        missing: data.missing_evidence(),
        subject: print::Subject::Recording(path.to_owned()),
    };
    Ok((diagnosis, exit))
}

fn of_core(path: &Path) -> Result<(Diagnosis, Exit), Failure> {
    let source = Source::open(path)?;
    let runtime = source.runtime()?;
    let dump = source.dump(&runtime);
    let threads = stacks(&source, &dump)?;
    let memory = match source.core() {
        Some(core) => MemoryFacts::of_core(core, &dump, threads),
        None => MemoryFacts::of_process(&dump, threads),
    };
    let memory = [memory];
    let threads = memory[0].threads.len();
    let diagnosis = Diagnosis {
        process: format!("core dump {}", shell::path(path)),
        crash: None,
        findings: diagnose(&Evidence::default().with_memory(&memory)),
        activity: None,
        looked_at: vec![format!("{threads} threads with their locks, tasks and exceptions")],
        missing: vec!["processor time and events: a core dump has a single moment".to_owned()],
        subject: print::Subject::Core(path.to_owned()),
    };
    Ok((diagnosis, source.exit()))
}
