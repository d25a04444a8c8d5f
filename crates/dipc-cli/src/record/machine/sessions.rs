//! Sessions of processes beside the samples of many: a thread and an unnamed file for each.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dipc_client::{Keywords, Rundown, SessionConfig};
use dipc_collect::StopSignal;
use dipc_collect::names::UnloadableCode;
use dipc_collect::staged::StagedFile;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::processors::no_thread;
use crate::record::kernel_samples::unwritten;
use crate::record::recorder::{self, Consumer, Limits, StreamEnd};
use crate::record::session::{resume, start_unless_interrupted};
use crate::record::source::Source;
use crate::record::stream_stats::{StreamStats, warn_of_loss};
use crate::render::messages;
use crate::render::units::count;

/// Maximum number of processes with a session.
pub(crate) const MAX_SESSIONS: usize = 64;
/// Maximum wait between two looks at the end of the sessions.
const TICK: Duration = Duration::from_millis(20);

/// The session that each process is asked for.
#[derive(Debug, Clone)]
pub(crate) struct SessionRequest {
    pub(crate) collect: SessionConfig,
    /// The time limit for answers, and for the silence of a stopped session.
    pub(crate) timeout: Duration,
    /// True to resume runtimes that wait at their start.
    pub(crate) resume: bool,
}

/// The sessions that run.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<RunningSession>);

#[derive(Debug)]
struct RunningSession {
    pid: u32,
    process: String,
    code: Option<UnloadableCode>,
    stop: StopSignal,
    staged: StagedFile,
    thread: JoinHandle<(EventFile, Result<StreamEnd, Failure>)>,
}

/// The events of a process.
#[derive(Debug)]
pub(crate) struct ProcessEvents {
    /// The process in the namespace of `dipc`.
    pub(crate) pid: u32,
    /// The name of the process with its id.
    pub(crate) process: String,
    /// The code to take names from, of a runtime that was not asked for a list of its methods.
    pub(crate) code: Option<UnloadableCode>,
    /// True if the events end with a list of all methods.
    pub(crate) has_list: bool,
    file: EventFile,
    staged: StagedFile,
    end: Result<StreamEnd, Failure>,
}

impl Sessions {
    /// Starts a session of each process, with files in `folder`. If one cannot start, none runs.
    pub(crate) fn start(
        sources: &[Source],
        request: &SessionRequest,
        folder: &Path,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let mut sessions = Self::default();
        for (source, pid) in sources.iter().filter_map(|source| Some((source, source.pid?))) {
            match RunningSession::start(source, pid, request, folder, interrupts) {
                Ok(session) => sessions.0.push(session),
                Err(failure) => {
                    sessions.cancel();
                    return Err(failure);
                }
            }
        }
        Ok(sessions)
    }

    /// Ends the sessions without their events.
    pub(crate) fn cancel(self) {
        self.0.iter().for_each(|session| session.stop.cancel());
        self.0.into_iter().for_each(|session| drop(session.thread.join()));
    }

    /// Stops the sessions, and returns the events of each. Another interrupt leaves the rest of them.
    pub(crate) fn finish(self, interrupts: &Interrupts) -> Vec<ProcessEvents> {
        self.0.iter().for_each(|session| session.stop.stop());
        let before = interrupts.count();
        while self.0.iter().any(|session| !session.thread.is_finished()) {
            if interrupts.count() > before {
                self.0.iter().for_each(|session| session.stop.cancel());
            }
            thread::sleep(TICK);
        }
        self.0.into_iter().filter_map(RunningSession::finish).collect()
    }
}

impl RunningSession {
    fn start(
        source: &Source,
        pid: u32,
        request: &SessionRequest,
        folder: &Path,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let process = format!("{} ({pid})", source.name.as_deref().unwrap_or("process"));
        let unwritten = |error| unwritten(folder, &error);
        let (file, staged) = StagedFile::create(folder).map_err(unwritten)?;
        let mut collect = request.collect.clone();
        // Such a runtime could end while it lists its methods.
        let code = if lists_methods(collect.rundown) { UnloadableCode::find(pid) } else { None };
        if code.is_some() {
            collect = collect.with_rundown(Rundown::Off);
        }
        let lists_methods = lists_methods(collect.rundown);
        let session = start_unless_interrupted(&source.target, &collect, interrupts)
            .map_err(|failure| Failure { message: format!("{process}: {}", failure.message), ..failure })?;
        let stop = StopSignal::new();
        let limits = Limits::until(&stop, &source.target, pid, request.timeout);
        let mut events = EventFile { file, stats: StreamStats::default(), lists_methods };
        let record = move || {
            let end = recorder::run(session, &mut events, &limits);
            (events, end)
        };
        let thread = thread::Builder::new().name("session".to_owned()).spawn(record);
        let thread = thread.map_err(|error| no_thread(&error))?;
        if request.resume {
            resume(&source.target);
        }
        messages::note(format_args!("Process        : {process}"));
        Ok(Self { pid, process, code, stop, staged, thread })
    }

    fn finish(self) -> Option<ProcessEvents> {
        let Self { pid, process, code, staged, thread, .. } = self;
        let Ok((file, end)) = thread.join() else {
            messages::warning(format_args!("{process}: the thread of its session has ended early"));
            return None;
        };
        let has_list = file.lists_methods && end.as_ref().is_ok_and(StreamEnd::is_whole);
        Some(ProcessEvents { pid, process, code, has_list, file, staged, end })
    }
}

fn lists_methods(rundown: Rundown) -> bool {
    match rundown {
        Rundown::Default => true,
        Rundown::Keyword(keywords) => keywords.intersects(Keywords::METHODS),
        _ => false,
    }
}

impl ProcessEvents {
    /// The events as they were received, from the start.
    pub(crate) fn file(&self) -> Result<File, Failure> {
        let opened = self.file.file.try_clone().and_then(|mut file| {
            file.rewind()?;
            Ok(file)
        });
        opened.map_err(|error| unwritten(Path::new("events"), &error))
    }

    /// Keeps the events in a file of their own, next to the recording that they should have become part of.
    pub(crate) fn keep(&mut self, recording: &Path) {
        let path = kept_path(recording, self.pid);
        match self.staged.name_new(&path) {
            Ok(()) => {
                messages::effect(format_args!("the events of {} are in {}", self.process, path.display()));
            }
            Err(error) => messages::warning(unwritten(&path, &error)),
        }
    }

    /// Prints the number of events and why they ended early, if they did. Returns the exit code.
    pub(crate) fn report(self, fail_on_loss: bool) -> Exit {
        let Self { process, file: EventFile { stats, .. }, end, .. } = self;
        let events = count(stats.events());
        messages::note(format_args!(
            "Events         : {events} of {process}, {} lost",
            stats.lost_in_words()
        ));
        let inside = stats.report_damage();
        let ended = end.and_then(|end| end.report(&format!("{process}: {events} events were kept"), "kept"));
        let exit = ended.unwrap_or_else(|failure| {
            let exit = failure.exit;
            messages::warning(failure);
            exit
        });
        let exit = exit.join(inside);
        if exit == Exit::Done && fail_on_loss && stats.lost() > 0 {
            warn_of_loss(&stats.lost_in_words());
            return Exit::EventsLost;
        }
        exit
    }
}

/// The path of the events of a process next to a recording.
fn kept_path(recording: &Path, pid: u32) -> PathBuf {
    recording.with_extension(format!("{pid}.nettrace"))
}

/// A stream that is written to a file as it arrives.
#[derive(Debug)]
struct EventFile {
    file: File,
    stats: StreamStats,
    lists_methods: bool,
}

impl Consumer for EventFile {
    type Error = Failure;

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| unwritten(Path::new("events"), &error))?;
        self.stats.feed(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stats.end();
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        false
    }

    fn is_whole(&self) -> bool {
        self.stats.is_whole()
    }
}
