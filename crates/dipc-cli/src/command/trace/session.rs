//! The session of a recording: its events, and what is read of the process beside them.

use std::path::Path;
use std::time::Duration;

use dipc_client::{Session, Startup};
use dipc_collect::names::UnloadableCode;
use dipc_collect::readings::BackgroundReader;
use dipc_collect::staged::folder_of;
use jiff::Zoned;

use super::file_names::{file_name, with_pid};
use super::request::Elsewhere;
use super::{News, ReadingsUse, RecordingEnd, RecordingSettings};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::export::Export;
use crate::process::peer::local_process;
use crate::record::additions::Additions;
use crate::record::exceptions::ExceptionsRecorder;
use crate::record::flight::CrashSources;
use crate::record::kernel_samples::{KernelSampler, RUNTIME_SAMPLER, RuntimeEvents};
use crate::record::names::{record_names, report_names};
use crate::record::notes::Messages;
use crate::record::recorder::{self, RecordingResult};
use crate::record::requested_events::{in_words, requested_groups};
use crate::record::session::{is_native_aot, resume, start_unless_interrupted, warn_without_sampler};
use crate::record::sink::Sink;
use crate::record::source::{EndStatus, Source};
use crate::record::thread_times::AccountStart;
use crate::render::messages;

/// Maximum wait for the exit of a program after the end of its runtime.
const EXIT: Duration = Duration::from_secs(2);

/// The readers of a process beside its session.
struct BesideSession {
    account: Option<AccountStart>,
    sampler: Option<KernelSampler>,
    exceptions: Option<ExceptionsRecorder>,
    /// The code to take names from, in place of the runtime's list.
    code: Option<UnloadableCode>,
    reader: Option<BackgroundReader>,
}

impl RecordingSettings {
    /// Records a runtime; `not_begun` is called if the session fails to start. A program that was started has
    /// an `early` sampler.
    pub(super) fn run(
        &self,
        source: &Source,
        early: Option<KernelSampler>,
        beside_others: bool,
        not_begun: impl FnOnce(),
    ) -> Outcome {
        if self.flight.is_some() || self.rotation.is_some() {
            self.announce_selection(beside_others);
            warn_without_sampler(&source.target, &self.selection);
            let session = start_unless_interrupted(&source.target, &self.collect, &self.interrupts);
            return match session {
                Ok(session) => self.watch(source, session, beside_others),
                Err(failure) => {
                    not_begun();
                    Err(failure)
                }
            };
        }
        let has_sampler = self.selection.samples_threads() && !is_native_aot(&source.target).unwrap_or(false);
        // Without any sampler, the account is all that is left.
        let is_wanted = self.keeps_thread_times && (has_sampler || self.kernel_samples.is_some());
        let account = AccountStart::read(source.pid.filter(|_| is_wanted));
        self.written.tell(News::Starting { pid: source.pid });
        let code = self.unloadable_code(source);
        // Memory is read of a runtime that does not answer, too.
        let reader = self.start_reader(source);
        match self.begin(source, early, beside_others, (has_sampler, code.is_none())) {
            Ok((session, sink, sampler)) => {
                let account = account.filter(|_| has_sampler || sampler.is_none());
                let exceptions = self.start_exceptions(source);
                let beside = BesideSession { account, sampler, exceptions, code, reader };
                self.record(source, session, sink, beside, beside_others)
            }
            Err(failure) => {
                not_begun();
                if let Some(reader) = reader.filter(|_| self.written.are_followed()) {
                    self.written.tell_readings(&reader.finish());
                }
                Err(failure)
            }
        }
    }

    /// Starts the kernel's sampling of a process. If sampling is not available, a warning gives the reason
    /// and names the replacement.
    ///
    /// # Errors
    /// If native allocations or events of the kernel were requested and are not available: nothing replaces
    /// them.
    fn sample(
        &self,
        source: &Source,
        sink: &Sink,
        has_sampler: bool,
    ) -> Result<Option<KernelSampler>, Failure> {
        let (Some(settings), Some(folder)) = (self.kernel_samples, sink.path().map(folder_of)) else {
            return Ok(None);
        };
        let started = local_process(source.pid, &source.target).and_then(|pid| {
            let events = self.start_user_events(source)?;
            Ok(KernelSampler::start(pid, settings, events, folder, &mut Messages)?)
        });
        let failure = match started {
            Ok(sampler) => {
                describe_samples(&sampler);
                return Ok(Some(sampler));
            }
            Err(failure) => failure,
        };
        if settings.native_allocations.is_some() || self.user_events {
            return Err(failure);
        }
        messages::warning(failure);
        if has_sampler {
            messages::effect(format_args!("recording with the runtime's own sampler: {RUNTIME_SAMPLER}"));
            messages::note("Samples        : by the runtime");
        } else if self.keeps_thread_times {
            messages::warning(
                "this program has no sampler of its own: recording the processor time of each thread once a second, from /proc, without stacks",
            );
            messages::note("Samples        : none; times of threads");
        } else {
            messages::note("Samples        : none");
        }
        Ok(None)
    }

    /// Has the runtime write its events to the kernel, if it is wanted.
    fn start_user_events(&self, source: &Source) -> Result<Option<RuntimeEvents>, Failure> {
        if !self.user_events {
            return Ok(None);
        }
        let selection = self.without_sampler.as_ref().unwrap_or(&self.selection);
        Ok(Some(RuntimeEvents::prepare(&source.target, selection.configs())?))
    }

    /// Starts the session, and opens its file.
    fn begin(
        &self,
        source: &Source,
        early: Option<KernelSampler>,
        beside_others: bool,
        (has_sampler, lists_methods): (bool, bool),
    ) -> Result<(Session, Sink, Option<KernelSampler>), Failure> {
        let mut sink = self.open_sink(source, beside_others)?;
        // The runtime may belong to another process, which the program has started.
        let sampler = match early {
            Some(sampler) if Some(sampler.pid()) == source.pid => {
                messages::note(format_args!("Samples        : {}", sampler.description()));
                Some(sampler)
            }
            early => {
                drop(early.map(KernelSampler::finish));
                match self.sample(source, &sink, has_sampler) {
                    Ok(sampler) => sampler,
                    Err(failure) => {
                        sink.discard();
                        return Err(failure);
                    }
                }
            }
        };
        let without_sampler = self.without_sampler.as_ref().filter(|_| sampler.is_some());
        let selection = without_sampler.unwrap_or(&self.selection);
        if !self.is_announced && !beside_others {
            selection.announce();
        }
        warn_without_sampler(&source.target, selection);
        let elsewhere = Elsewhere {
            without_sampler,
            all: self.user_events,
            exceptions: self.some_exceptions,
            names: !lists_methods,
        };
        let collect = elsewhere.taken_from(&self.collect);
        match start_unless_interrupted(&source.target, &collect, &self.interrupts) {
            Ok(session) => {
                sink.begin()?;
                Ok((session, sink, sampler))
            }
            Err(failure) => {
                // This also removes the sampler's file.
                drop(sampler.map(KernelSampler::finish));
                sink.discard();
                Err(failure)
            }
        }
    }

    /// Records a running session.
    fn record(
        &self,
        source: &Source,
        session: Session,
        mut sink: Sink,
        BesideSession { account, sampler, exceptions, code, reader }: BesideSession,
        beside_others: bool,
    ) -> Outcome {
        let limits = self.limits(source);
        let account = account.and_then(|start| {
            if let Some(path) = sink.path().filter(|path| path.is_file()) {
                start.record(path)
            } else {
                messages::note(
                    "Thread times   : none: the kernel's accounting of threads is kept next to a file",
                );
                None
            }
        });
        let names = self.needs_names(&sink).filter(|_| code.is_none()).map(|path| {
            let is_starting = source.target.startup().is_ok_and(|startup| startup == Startup::Suspended);
            record_names(&source.target, &self.selection, path, is_starting)
        });
        // A followed runtime is not the program that dipc started.
        let child = self.child.clone().filter(|_| !beside_others);
        let crash = (child.is_some() || self.written.are_followed())
            .then(|| CrashSources::new(&source.target, child, None));
        if self.resume {
            resume(&source.target);
        }
        announce(source, &sink, &session);
        let recorded = recorder::record(session, &mut sink, &limits, self.stopping_event.clone());
        if let Some(account) = account {
            account.finish();
        }
        let samples = sampler.map(KernelSampler::finish);
        let mut readings = reader.map(BackgroundReader::finish);
        if let Some(readings) = &mut readings {
            let has_ended = recorded.as_ref().is_ok_and(RecordingResult::has_ended);
            readings.exit_code = self.exit_code(has_ended && !beside_others);
            self.written.tell_readings(readings);
        }
        let readings = readings.filter(|_| self.readings == Some(ReadingsUse::Recording));
        let exceptions = exceptions.and_then(|exceptions| or_warn(exceptions.finish()));
        let some_exceptions = exceptions.as_ref().is_some_and(|exceptions| exceptions.are_partial);
        let crash =
            crash.filter(|_| recorded.as_ref().is_ok_and(|recorded| recorded.has_crashed(&source.target)));
        let is_whole = recorded.as_ref().is_ok_and(RecordingResult::is_whole);
        let output = sink.to_string();
        let path = sink.path().map(Path::to_owned);
        // The recording with all events replaces this one, so it must be closed first.
        drop(sink);
        let exceptions = exceptions.map(|exceptions| exceptions.file);
        let user_events = samples.as_ref().and_then(|samples| samples.as_ref().ok());
        let user_events = user_events.map_or(0, |samples| samples.summary().events);
        let additions = Additions { samples, exceptions, code, readings };
        let merged = path.as_ref().filter(|_| !additions.is_empty()).map(|path| {
            let requested = requested_groups(&self.selection.configs());
            additions.merge_into(path, &requested, self.fail_on_loss)
        });
        if let Ok(recorded) = &recorded {
            let bytes = merged.as_ref().and(path.as_ref()).and_then(|path| path.metadata().ok());
            messages::note(recorded.summary(&output, user_events, bytes.map(|file| file.len())));
        }
        let absent = match &recorded {
            Ok(recorded) if !self.user_events => recorded.absent_events(&self.selection.configs()),
            _ => Vec::new(),
        };
        if let Some(absent) = in_words(&absent).filter(|_| !self.written.are_presented()) {
            messages::note(format_args!("None happened  : {absent}"));
        }
        if let Some(names) = names {
            report_names(names.finish(!is_whole));
        }
        let merged_exit = merged.transpose()?.unwrap_or(Exit::Done);
        let recorded = recorded?;
        let has_ended = recorded.has_ended();
        let exit = match (crash, &path) {
            (Some(mut crash), Some(path)) => {
                describe_crash(&mut crash, path);
                // The program's code says the rest.
                recorded.report_inside(self.fail_on_loss)
            }
            _ => recorded.report(self.fail_on_loss)?,
        };
        let exit = exit.join(merged_exit);
        let converted = match (self.format, path) {
            (Some(format), Some(path)) => {
                let export = || Export::beside(&path, format, self.names).write();
                // Other recordings may still be written, so that only the third request ends the program.
                if self.follows { export()? } else { self.interrupts.while_computing(export)? }
            }
            (None, Some(path)) => {
                self.written.add(&path, "", absent, RecordingEnd { has_ended, some_exceptions });
                Exit::Done
            }
            (_, None) => Exit::Done,
        };
        Ok(exit.join(converted))
    }

    /// Starts the session of exceptions, if they have one. A failure is a warning.
    fn start_exceptions(&self, source: &Source) -> Option<ExceptionsRecorder> {
        let start = || ExceptionsRecorder::start(&source.target, source.pid, self.timeout, &self.interrupts);
        self.some_exceptions.then(start).and_then(or_warn)
    }

    /// The exit code of the program that was started, if its recording has ended with it.
    fn exit_code(&self, has_ended: bool) -> Option<i32> {
        match self.child.as_ref().filter(|_| has_ended)?.wait(EXIT)? {
            EndStatus::Code(code) => Some(code),
            EndStatus::Signal(_) | EndStatus::Unknown => None,
        }
    }

    /// Starts to read the process, if it is wanted. Without a thread, nothing is read.
    fn start_reader(&self, source: &Source) -> Option<BackgroundReader> {
        BackgroundReader::start(source.pid.filter(|_| self.readings.is_some())?, self.duration).ok()
    }

    /// The code of a process whose runtime is not asked to list its methods, because it could end meanwhile.
    fn unloadable_code(&self, source: &Source) -> Option<UnloadableCode> {
        let code = source.pid.filter(|_| self.spares_unloading && self.lists_methods())?;
        let code = UnloadableCode::find(code)?;
        messages::note(
            "Names          : from memory: the program has load contexts, and its runtime could end while it lists methods",
        );
        Some(code)
    }

    /// Returns the path of a recording that needs a companion file with names: a file that should end with
    /// the list of all methods.
    fn needs_names<'s>(&self, sink: &'s Sink) -> Option<&'s Path> {
        let is_wanted = self.keeps_names && self.lists_methods();
        sink.path().filter(|path| is_wanted && path.is_file())
    }

    /// Opens the file of a runtime: the user's file, or a new file named after the process. If several
    /// runtimes are recorded, the name of the user's file gets the pid.
    fn open_sink(&self, source: &Source, beside_others: bool) -> Result<Sink, Failure> {
        match (&self.output, source.pid.filter(|_| beside_others)) {
            (Some(path), Some(pid)) => Sink::create_new(&with_pid(path, pid)),
            (Some(path), None) => Sink::open(path),
            (None, _) => {
                let name = source.name.as_deref().unwrap_or("trace");
                Sink::create_new(&file_name(name, source.pid, &Zoned::now()))
            }
        }
    }
}

/// Prints the kind of samples, and the cost of probes.
pub(super) fn describe_samples(sampler: &KernelSampler) {
    messages::note(format_args!("Samples        : {}", sampler.description()));
    if let Some(probes) = sampler.probes() {
        messages::note(format_args!("Probes         : {probes}"));
    }
}

/// The value of a step that the recording does without; its failure is a warning.
fn or_warn<T>(result: Result<T, Failure>) -> Option<T> {
    result.map_err(messages::warning).ok()
}

/// Prints how the started program ended, and writes it to a file next to its recording.
fn describe_crash(crash: &mut CrashSources, recording: &Path) {
    let end = crash.await_end();
    match crash.describe(recording, &end, None) {
        Ok(description) => description.print(),
        Err(failure) => messages::warning(failure),
    }
}

fn announce(source: &Source, sink: &Sink, session: &Session) {
    source.announce();
    messages::note(format_args!("Output File    : {sink}"));
    messages::detail(format_args!(
        "Session        : {} by {} at {}",
        session.id(),
        session.command(),
        source.target.address()
    ));
}
