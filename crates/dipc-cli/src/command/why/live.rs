//! The evidence of a running process: a recording of a few seconds, and two readings of its memory meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use clr_dump::Runtime;
use clr_findings::{Activity, Evidence, MemoryCounts, MemoryFacts, diagnose};

use linux_proc_stat::ProcessUsage;

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
    let readings = pid.map(|pid| read_meanwhile(pid, args.duration)).transpose()?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::new(Exit::Failed, format_args!("why: {error}")))?;
    let output = args.output.clone().unwrap_or_else(|| folder.path().join("why.nettrace"));
    let recorded = record(args, output, &interrupts);
    let without =
        |reason: &str| Readings { usage: Vec::new(), counts: Vec::new(), memory: Err(reason.to_owned()) };
    let Readings { usage, counts, memory } = match readings {
        Some(readings) => readings.recv().unwrap_or_else(|_| without("its reader has ended early")),
        None => without("the process has no id here"),
    };
    let (memory, memory_failure) = match memory {
        Ok(memory) => (memory, None),
        Err(reason) => (Vec::new(), Some(format!("locks and tasks in memory: {reason}"))),
    };
    let evidence = Evidence::default().with_memory(&memory).with_usage(&usage).with_counts(&counts);
    let mut looked_at = Vec::new();
    if let Some(last) = memory.last() {
        looked_at.push(format!("{} threads in memory, twice", last.threads.len()));
    }
    if !usage.is_empty() {
        looked_at.push("the kernel's account".to_owned());
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

/// What is read of a process besides its recording.
struct Readings {
    /// The kernel's account, at the beginning, in the middle and at the end.
    usage: Vec<ProcessUsage>,
    /// Counts of what memory holds, at the same times.
    counts: Vec<MemoryCounts>,
    /// The threads in memory at the beginning and at the end; the reason why they are missing.
    memory: Result<Vec<MemoryFacts>, String>,
}

/// Reads the memory of a process and the kernel's account of it while it is recorded.
fn read_meanwhile(pid: u32, duration: Duration) -> Result<Receiver<Readings>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        // The receiver is gone if the command has failed.
        let _ = sender.send(read(pid, duration));
    };
    let reader = thread::Builder::new().name("memory".to_owned()).spawn(read);
    reader.map_err(|error| no_thread(&error))?;
    Ok(receiver)
}

fn read(pid: u32, duration: Duration) -> Readings {
    let margin = duration / MARGIN;
    let begin = Instant::now();
    let until = |part: Duration| thread::sleep(part.saturating_sub(begin.elapsed()));
    until(margin);
    let mut memory = Memory::attach(pid).map_err(|failure| failure.to_string());
    let mut usage = Vec::new();
    for (part, reads_threads) in
        [(margin, true), (duration / 2, false), (duration.saturating_sub(margin), true)]
    {
        until(part);
        usage.extend(ProcessUsage::read(pid));
        if let Ok(open) = &mut memory
            && let Err(failure) = open.read(reads_threads)
        {
            memory = Err(failure.to_string());
        }
    }
    match memory {
        Ok(memory) => Readings { usage, counts: memory.counts, memory: Ok(memory.readings) },
        Err(reason) => Readings { usage, counts: Vec::new(), memory: Err(reason) },
    }
}

/// The memory of a process.
struct Memory {
    source: Source,
    runtime: Runtime,
    readings: Vec<MemoryFacts>,
    counts: Vec<MemoryCounts>,
}

impl Memory {
    fn attach(pid: u32) -> Result<Self, Failure> {
        let source = Source::attach(pid)?;
        Ok(Self { runtime: source.runtime()?, source, readings: Vec::new(), counts: Vec::new() })
    }

    fn read(&mut self, reads_threads: bool) -> Result<(), Failure> {
        let dump = self.source.dump(&self.runtime);
        if reads_threads {
            let threads = stacks(&self.source, &dump)?;
            self.readings.push(MemoryFacts::of_process(&dump, threads));
        }
        let counts = MemoryCounts::read(&dump, self.counts.last());
        self.counts.push(counts);
        Ok(())
    }
}
