//! The evidence of a running process: a recording of a few seconds, and two readings of its memory meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use clr_findings::{Activity, Evidence, MemoryFacts, diagnose};

use super::WhyArgs;
use super::print::{Diagnosis, Subject};
use crate::command::profile;
use crate::command::report::OverviewData;
use crate::command::trace::{self, TraceArgs, WrittenFiles};
use crate::exit::{Exit, Failure};
use crate::inspect::core_dump::stacks;
use crate::inspect::core_source::Source;
use crate::interrupt::Interrupts;
use crate::process::target::FoundTarget;
use crate::processors::no_thread;
use crate::record::source::SourceSelector;
use crate::render::messages::{self, Verbosity};

/// The part of the watched time before the first reading of memory, and after the last.
const MARGIN: u32 = 10;

/// Watches a process, and judges it.
pub(super) fn diagnose_process(args: &WhyArgs) -> Result<(Diagnosis, Exit), Failure> {
    if args.source.process.process_ids.len() > 1 {
        return Err(Failure::usage("why: name one process with -p"));
    }
    let interrupts = Interrupts::watch()?;
    let pid = match args.source.selector(false)? {
        SourceSelector::Process(selector) => FoundTarget::find(&selector, args.timeout)?.target.pid(),
        _ => None,
    };
    let readings = pid.map(|pid| read_memory(pid, args.duration)).transpose()?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::new(Exit::Failed, format_args!("why: {error}")))?;
    let output = args.output.clone().unwrap_or_else(|| folder.path().join("why.nettrace"));
    let recorded = record(args, output, &interrupts);
    let memory = readings
        .map(|readings| readings.recv().unwrap_or_else(|_| Err("its reader has ended early".to_owned())));
    let (memory, memory_failure) = match memory {
        Some(Ok(memory)) => (memory, None),
        Some(Err(reason)) => (Vec::new(), Some(format!("locks and tasks in memory: {reason}"))),
        None => (Vec::new(), Some("locks and tasks in memory: the process has no id here".to_owned())),
    };
    let evidence = Evidence::default().with_memory(&memory);
    let mut looked_at = Vec::new();
    if let Some(last) = memory.last() {
        looked_at.push(format!("{} threads in memory, twice", last.threads.len()));
    }
    let of_process = |overview: Option<&OverviewData>| match (overview, pid) {
        (Some(data), _) => data.process(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "the process".to_owned(),
    };
    let subject = Subject::Process { pid, recording: args.output.clone() };
    match recorded.and_then(|path| OverviewData::read(&path, &args.user_code.patterns())) {
        Ok((data, exit)) => {
            looked_at.extend(data.looked_at());
            let diagnosis = Diagnosis {
                process: of_process(Some(&data)),
                crash: data.crash.as_ref().map(|note| (note.summary(), note.core.clone())),
                findings: diagnose(&evidence.with_recording(&data.reports)),
                activity: Some(Activity::of(&data.reports)),
                looked_at,
                missing: memory_failure.into_iter().chain(data.missing_evidence()).collect(),
                subject,
            };
            Ok((diagnosis, exit))
        }
        // A runtime that does not answer is known by its memory.
        Err(failure) if !memory.is_empty() => {
            let diagnosis = Diagnosis {
                process: of_process(None),
                crash: None,
                findings: diagnose(&evidence),
                activity: None,
                looked_at,
                missing: vec![format!("events and processor time: {failure}")],
                subject,
            };
            Ok((diagnosis, Exit::Done))
        }
        Err(failure) => Err(failure),
    }
}

/// Records what `dipc profile` records, without its messages.
fn record(args: &WhyArgs, output: PathBuf, interrupts: &Interrupts) -> Result<PathBuf, Failure> {
    let was_verbose = messages::is_verbose();
    if !was_verbose {
        messages::set_verbosity(Verbosity::Quiet);
    }
    let written = WrittenFiles::presented();
    let trace = TraceArgs {
        duration: Some(args.duration),
        timeout: args.timeout,
        output: Some(output),
        ..profile::everything(args.source.clone())
    };
    let recorded = trace::record(&trace, interrupts, &written);
    if !was_verbose {
        messages::set_verbosity(Verbosity::Usual);
    }
    recorded?;
    let file = written.take().into_iter().next();
    file.map(|file| file.path).ok_or_else(|| Failure::new(Exit::Failed, "why: nothing was recorded"))
}

/// Reads the memory of a process twice, near the beginning and near the end of a time.
fn read_memory(pid: u32, duration: Duration) -> Result<Receiver<Result<Vec<MemoryFacts>, String>>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        thread::sleep(duration / MARGIN);
        let readings = read_twice(pid, duration - 2 * (duration / MARGIN));
        // The receiver is gone if the command has failed.
        let _ = sender.send(readings.map_err(|failure| failure.to_string()));
    };
    let reader = thread::Builder::new().name("memory".to_owned()).spawn(read);
    reader.map_err(|error| no_thread(&error))?;
    Ok(receiver)
}

fn read_twice(pid: u32, between: Duration) -> Result<Vec<MemoryFacts>, Failure> {
    let source = Source::attach(pid)?;
    let runtime = source.runtime()?;
    let read = || {
        let dump = source.dump(&runtime);
        let threads = stacks(&source, &dump)?;
        Ok::<_, Failure>(MemoryFacts::of_process(&dump, threads))
    };
    let first = read()?;
    thread::sleep(between);
    Ok(vec![first, read()?])
}
