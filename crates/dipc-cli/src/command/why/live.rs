//! The evidence of a running process: a recording of a few seconds, with readings of its memory meanwhile.

use std::path::PathBuf;

use clr_findings::{Evidence, ProcessIdentity};
use dipc_collect::readings::{BackgroundReader, Readings};

use super::print::{Answer, Subject};
use super::{WhyArgs, missing_end};
use crate::command::profile;
use crate::command::report::OverviewData;
use crate::command::trace::{self, TraceArgs, WrittenFiles};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::process::candidates::{application_name, command_line};
use crate::process::target::FoundTarget;
use crate::processors::no_thread;
use crate::record::source::SourceSelector;
use crate::render::messages::KeptWarnings;

/// Watches a process, and judges it.
pub(super) fn diagnose_process(args: &WhyArgs) -> Result<(Answer, Exit), Failure> {
    if args.source.process.process_ids.len() > 1 {
        return Err(Failure::usage("why: name one process with -p"));
    }
    let interrupts = Interrupts::watch()?;
    let pid = match args.source.selector(false)? {
        SourceSelector::Process(selector) => FoundTarget::find(&selector, args.timeout)?.target.pid(),
        _ => None,
    };
    let process = pid.map(identity).unwrap_or_default();
    let reader = pid.map(|pid| BackgroundReader::start(pid, args.duration)).transpose();
    let reader = reader.map_err(|error| no_thread(&error))?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::new(Exit::Failed, format_args!("why: {error}")))?;
    let output = args.output.clone().unwrap_or_else(|| folder.path().join("why.nettrace"));
    let warnings = KeptWarnings::default();
    let keeping = warnings.keep();
    let recorded = record(args, output, &interrupts);
    drop(keeping);
    let no_process = || Readings::missing("the process has no id here");
    let readings = reader.map_or_else(no_process, BackgroundReader::finish);
    let memory_missing =
        readings.memory_missing.iter().map(|why| format!("locks and tasks in memory: {why}"));
    let mut missing: Vec<_> = memory_missing.chain(warnings.take()).collect();
    let evidence = Evidence::default().with_memory(&readings.memory).with_usage(&readings.usage);
    let subject = Subject::Process { pid, recording: args.output.clone() };
    match recorded.and_then(|path| OverviewData::read(&path, &args.user_code.patterns())) {
        Ok((data, exit)) => {
            missing.extend(missing_end(&data));
            let end = data.end();
            let evidence =
                evidence.with_recording(&data.reports).with_end(end.as_ref()).with_missing(&missing);
            Ok((Answer::new(process.or(data.process()), &evidence, subject), exit))
        }
        // A runtime that does not answer is known by its memory.
        Err(failure) if !readings.memory.is_empty() => {
            missing.push(format!("events and processor time: {failure}"));
            Ok((Answer::new(process, &evidence.with_missing(&missing), subject), Exit::Done))
        }
        Err(failure) => Err(failure),
    }
}

/// The process as the system describes it.
fn identity(pid: u32) -> ProcessIdentity {
    let name = dipc_transport::process_name(pid).ok().map(|name| application_name(pid, &name));
    ProcessIdentity::default()
        .with_process_id(Some(u64::from(pid)))
        .with_name(name)
        .with_command_line(Some(command_line(pid)).filter(|line| !line.is_empty()))
        .with_runtime(dipc_doctor::runtime_version(pid))
}

/// Records what `dipc profile` records.
fn record(args: &WhyArgs, output: PathBuf, interrupts: &Interrupts) -> Result<PathBuf, Failure> {
    let written = WrittenFiles::presented();
    let trace = TraceArgs {
        duration: Some(args.duration),
        timeout: args.timeout,
        output: Some(output),
        ..profile::everything(args.source.clone())
    };
    trace::record(&trace, interrupts, &written)?;
    let file = written.take().into_iter().next();
    file.map(|file| file.path).ok_or_else(|| Failure::new(Exit::Failed, "why: nothing was recorded"))
}
