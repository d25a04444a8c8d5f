//! Exceptions in a session of their own beside a recording. It ends once they are many.
//!
//! Each exception takes some 2 µs of the program, and 9 µs with the events of its handlers, which no finding
//! needs: a program that throws all the time did a third of its work less while all of them were recorded.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dipc_client::{
    Keywords, Level, ProviderConfig, RUNTIME_PROVIDER, Rundown, Session, SessionConfig, Target,
};
use dipc_collect::StopSignal;
use dipc_collect::stream::{self, Consumer, Limits};

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::processors::no_thread;
use crate::record::session::{start_unless, start_unless_interrupted};
use crate::record::stream_stats::StreamStats;

/// The number of exceptions after which the session ends: they take 11 ms of a processor.
const ENOUGH: u64 = 5_000;
/// Megabytes of the buffer in the process.
const BUFFER_MB: u32 = 64;

/// A recorder with a thread of its own.
#[derive(Debug)]
pub(crate) struct ExceptionsRecorder {
    stop: StopSignal,
    thread: JoinHandle<Result<RecordedExceptions, Failure>>,
}

/// The exceptions of a process: a recording without names of methods.
#[derive(Debug)]
pub(crate) struct RecordedExceptions {
    pub(crate) file: File,
    /// True if the session ended before the others because there were enough.
    pub(crate) are_partial: bool,
}

impl ExceptionsRecorder {
    /// Starts the session.
    pub(crate) fn start(
        target: &Target,
        pid: Option<u32>,
        silence: Duration,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let file = tempfile::tempfile().map_err(|error| failed(&error))?;
        let session =
            start_unless_interrupted(target, &config(Keywords::EXCEPTION, Level::ERROR), interrupts)?;
        let stop = StopSignal::new();
        let limits = Limits::new(stop.clone()).with_pid(pid).with_silence(silence);
        let (target, stopped) = (target.clone(), stop.clone());
        let record = move || {
            let recorded = record(session, file, &limits)?;
            if recorded.are_partial {
                end_keyword(&target, &stopped);
            }
            Ok(recorded)
        };
        let thread = thread::Builder::new().name("exceptions".to_owned()).spawn(record);
        Ok(Self { stop, thread: thread.map_err(|error| no_thread(&error))? })
    }

    /// Ends the session, and returns its exceptions.
    pub(crate) fn finish(self) -> Result<RecordedExceptions, Failure> {
        self.stop.stop();
        let ended = |_| Failure::new(Exit::Failed, "exceptions: the thread of their session has ended early");
        self.thread.join().map_err(ended)?
    }
}

/// The configuration of a session of the runtime's own events.
fn config(keywords: Keywords, level: Level) -> SessionConfig {
    let name = RUNTIME_PROVIDER.to_owned();
    let provider = ProviderConfig { name, keywords, level, arguments: String::new() };
    SessionConfig::new([provider]).with_buffer_mb(BUFFER_MB).with_rundown(Rundown::Off)
}

/// Has the runtime take back the keyword of exceptions. It computes the keywords of all sessions while one
/// ends with that one's still among them, and goes on to gather the type and the message of each exception
/// (1.7 µs on .NET 9) until another session begins or ends.
fn end_keyword(target: &Target, stop: &StopSignal) {
    // Without it, the program only runs a little slower until the recording ends.
    drop(start_unless(target, &config(Keywords::GC, Level::CRITICAL), || stop.is_stopped()));
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("exceptions: temporary file: {error}"))
}

fn record(session: Session, file: File, limits: &Limits) -> Result<RecordedExceptions, Failure> {
    let mut recording = Recording { file, stats: StreamStats::default() };
    stream::run(session, &mut recording, limits, &mut ())?;
    let are_partial = recording.is_satisfied();
    let mut file = recording.file;
    file.rewind().map_err(|error| failed(&error))?;
    Ok(RecordedExceptions { file, are_partial })
}

struct Recording {
    file: File,
    stats: StreamStats,
}

impl Consumer for Recording {
    type Error = Failure;

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| failed(&error))?;
        self.stats.feed(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stats.end();
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.stats.events() >= ENOUGH
    }

    fn is_whole(&self) -> bool {
        self.stats.is_whole()
    }
}
