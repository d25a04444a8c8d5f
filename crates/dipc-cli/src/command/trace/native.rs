//! Programs without a runtime to connect to, which the kernel samples.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process;
use std::thread;
use std::time::Instant;

use dipc_client::ProcessView;
use dipc_collect::staged::folder_of;
use jiff::Zoned;

use super::file_names::{file_name, with_pid};
use super::session::describe_samples;
use super::{Opened, RecordingEnd, RecordingSettings, TICK};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::record::kernel_samples::{KernelSampler, SampleSettings, loss_exit, save};
use crate::record::notes::Messages;
use crate::record::source::{NoRuntime, PortWatcher, Source, Start};
use crate::render::messages;

/// Returns the report of a recording without the events of a runtime.
const fn report_of(samples: SampleSettings) -> &'static str {
    match samples {
        SampleSettings { native_allocations: Some(_), .. } => " topN --by native-alloc",
        SampleSettings { frequency: 0, .. } => " topN --by off-cpu",
        _ => " topN --by cpu",
    }
}

/// A process without a runtime to connect to.
#[derive(Debug)]
pub(super) struct NativeProcess {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) samples: SampleSettings,
    /// The reason why it is recorded without a runtime.
    pub(super) reason: Failure,
}

impl RecordingSettings {
    /// Starts a program that the kernel samples from its first instruction. If no runtime of it connects
    /// until its end, or until the time of the recording is over, the samples are the recording.
    pub(super) fn start(
        &self,
        command: &[OsString],
        show_io: bool,
        wanted: SampleSettings,
        early: &mut Option<KernelSampler>,
    ) -> Result<Opened, Failure> {
        let folder = folder_of(self.output.as_deref().unwrap_or("trace.nettrace".as_ref()));
        let begin = Cell::new(None);
        let mut refusal = None;
        let spawn = |command| {
            let (child, sampler) = KernelSampler::spawn(command, wanted, folder, &mut Messages)?;
            match sampler {
                Ok(sampler) => {
                    begin.set(Some((sampler.pid(), Instant::now())));
                    *early = Some(sampler);
                }
                // Given if no runtime connects, which is asked for its samples otherwise.
                Err(error) => refusal = Some(error.into()),
            }
            Ok(child)
        };
        // With a runtime, the time begins with its session.
        let is_over = || match (begin.get(), self.duration) {
            (Some((pid, start)), Some(duration)) => start.elapsed() >= duration && !starts_runtime(pid),
            _ => false,
        };
        let name = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy();
        let end = match Source::start(command, show_io, self.timeout, &self.interrupts, spawn, is_over)? {
            Start::Connected(source) => return Ok(Opened::Runtime(source)),
            Start::NoRuntime(end) => end,
        };
        let Some(sampler) = early.take() else { return Err(nothing_recorded(end, refusal)) };
        let (pid, kind) = (sampler.pid(), sampler.description().to_owned());
        let recording = sampler.finish()?;
        let mut running = None;
        let (reason, code) = match end {
            NoRuntime::TimedOut { child, port } => {
                running = child.map(|child| (child, PortWatcher::resuming(port)));
                let time = self.duration.map(duration::display).unwrap_or_default();
                (format!("record {name}: no .NET runtime connected within {time}"), None)
            }
            NoRuntime::Ended { code, failure } => (failure.message, Some(code)),
            NoRuntime::Interrupted => ("interrupted before a runtime connected".to_owned(), None),
        };
        messages::warning(format_args!("{reason}; its samples are without the events of a runtime"));
        messages::note(format_args!("Samples        : {kind}"));
        let default = || file_name(&name, Some(pid), &Zoned::now());
        let path = self.output.clone().unwrap_or_else(default);
        let path = save(&recording, &path, self.output.is_some())?;
        self.written.add(&path, report_of(wanted), Vec::new(), end_of(code.is_some()));
        let exit = loss_exit(recording.summary(), self.fail_on_loss);
        let Some((child, _watcher)) = running else { return Ok(Opened::Ended(exit.or_program(code))) };
        Ok(Opened::Ended(exit.or_program(Some(child.wait(&self.interrupts)?))))
    }

    /// Samples a process without a runtime to connect to.
    pub(super) fn sample_native(&self, process: &NativeProcess, beside_others: bool) -> Outcome {
        let NativeProcess { pid, name, samples, reason } = process;
        let path = match &self.output {
            Some(path) if beside_others => with_pid(path, *pid),
            Some(path) => path.clone(),
            None => file_name(name, Some(*pid), &Zoned::now()),
        };
        let sampler = KernelSampler::start(*pid, *samples, None, folder_of(&path), &mut Messages)?;
        messages::warning(format_args!("{reason}; sampling it without the events of a runtime"));
        describe_samples(&sampler);
        messages::note(format_args!("Process        : {name} ({pid})"));
        let start = Instant::now();
        let is_over = || self.duration.is_some_and(|duration| start.elapsed() >= duration);
        while !sampler.is_over() && !is_over() && self.interrupts.count() == 0 {
            thread::sleep(TICK);
        }
        let has_ended = sampler.is_over();
        let is_chosen = self.output.is_some() && !beside_others;
        let recording = sampler.finish()?;
        let path = save(&recording, &path, is_chosen)?;
        self.written.add(&path, report_of(*samples), Vec::new(), end_of(has_ended));
        Ok(loss_exit(recording.summary(), self.fail_on_loss))
    }
}

fn end_of(has_ended: bool) -> RecordingEnd {
    RecordingEnd { has_ended, ..RecordingEnd::default() }
}

/// Returns the only process of a name, with or without .NET; `None` without such a process.
///
/// # Errors
/// If there are several.
pub(super) fn process_of_name(name: &str) -> Result<Option<(u32, String)>, Failure> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let is_it = |pid: &u32| {
        *pid != process::id() && dipc_transport::process_name(*pid).is_ok_and(|other| other == name)
    };
    let found: Vec<u32> = pids.filter(is_it).collect();
    match found[..] {
        [] => Ok(None),
        [pid] => Ok(Some((pid, name.to_owned()))),
        _ => {
            let pids: Vec<_> = found.iter().map(u32::to_string).collect();
            let message = format!("find: process '{name}': there are {}: {}", pids.len(), pids.join(", "));
            Err(Failure::usage(message).with_help("choose one with -p"))
        }
    }
}

/// Returns the failure of a recording without a runtime and without samples, for a reason. The exit code is
/// the program's, if it failed.
fn nothing_recorded(end: NoRuntime, refusal: Option<Failure>) -> Failure {
    let code = match &end {
        NoRuntime::Ended { code, .. } if *code != 0 => Some(*code),
        _ => None,
    };
    let mut failure = Failure::from(end);
    if let Some(Failure { message, help, .. }) = refusal {
        failure.message = format!("{}; {message}", failure.message);
        failure.help = help.or(failure.help);
    }
    Failure { exit: code.map_or(failure.exit, Exit::Program), ..failure }
}

/// Returns whether a process loads a .NET runtime, which connects soon: the libraries of its host are mapped
/// before the runtime is.
fn starts_runtime(pid: u32) -> bool {
    const LIBRARIES: [&str; 3] = ["libhostfxr.so", "libhostpolicy.so", "libcoreclr.so"];
    let mut found = false;
    let is_library = |path: &Path| LIBRARIES.iter().any(|name| path.file_name() == Some(name.as_ref()));
    let read = ProcessView::of(pid).for_each_mapped_file(|path| found |= is_library(path));
    read.is_ok() && found
}
