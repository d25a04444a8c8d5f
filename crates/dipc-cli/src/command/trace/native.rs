//! Programs without a runtime to connect to, which the kernel samples.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::Instant;

use dipc_client::ProcessView;
use jiff::Zoned;

use super::{Opened, RecordingSettings, TICK, file_name, with_pid};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::record::kernel_samples::{KernelSampler, SampleSettings};
use crate::record::source::{NoRuntime, PortWatcher, Source, Start};
use crate::render::messages;
use crate::render::staged_file::folder_of;

/// The report of a recording without the events of a runtime.
const OF_PROCESSOR_TIME: &str = " topN --by cpu";

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
        let spawn = |command| {
            let (child, sampler) = KernelSampler::spawn(command, wanted, folder)?;
            begin.set(sampler.as_ref().map(|sampler| (sampler.pid(), Instant::now())));
            *early = sampler;
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
        let Some(sampler) = early.take() else { return Err(end.into()) };
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
        let path = recording.save(&path, self.output.is_some())?;
        self.written.add(&path, OF_PROCESSOR_TIME);
        let Some((child, _watcher)) = running else { return Ok(Opened::Ended(code)) };
        Ok(Opened::Ended(Some(child.wait(&self.interrupts)?)))
    }

    /// Samples a process without a runtime to connect to.
    pub(super) fn sample_native(&self, process: &NativeProcess, beside_others: bool) -> Outcome {
        let NativeProcess { pid, name, samples, reason } = process;
        let path = match &self.output {
            Some(path) if beside_others => with_pid(path, *pid),
            Some(path) => path.clone(),
            None => file_name(name, Some(*pid), &Zoned::now()),
        };
        let sampler = KernelSampler::start(*pid, *samples, folder_of(&path))?;
        messages::warning(format_args!("{reason}; sampling it without the events of a runtime"));
        messages::note(format_args!("Samples        : {}", sampler.description()));
        messages::note(format_args!("Process        : {name} ({pid})"));
        let start = Instant::now();
        let is_over = || self.duration.is_some_and(|duration| start.elapsed() >= duration);
        while !sampler.is_over() && !is_over() && self.interrupts.count() == 0 {
            thread::sleep(TICK);
        }
        let is_chosen = self.output.is_some() && !beside_others;
        let samples = sampler.finish()?;
        let summary = samples.summary();
        let path = samples.save(&path, is_chosen)?;
        self.written.add(&path, OF_PROCESSOR_TIME);
        Ok(summary.exit(self.fail_on_loss))
    }
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
