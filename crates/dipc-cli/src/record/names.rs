//! Names of methods for a recording that may end before the runtime lists them.
//!
//! Runtimes list their methods only at the end of a session, so a process that is killed takes the names with
//! it. A short session alongside the recording makes the runtime list them once, into a file that is kept
//! only if the recording ends without such a list. Another session, with a stream that is discarded, makes
//! the runtime report each method that it compiles from then on: the runtime does so only while some session
//! requests the verbose level, and then reports to every session that requested the keyword, at any level.
//! The recording itself requests only what the user asked for, and contains exactly what the runtime sent.

use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::{Deadline, Error, LiveNames, LiveNamesOptions, Session, Target};
use dipc_wire::Level;
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure};
use crate::inspect::names::{are_of_another, names_path};
use crate::process::info::timeouts;
use crate::record::selection::Selection;
use crate::render::messages;
use crate::render::output_file::OutputFile;

/// The time limit for each answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// The time limit for the list of methods.
const LIST: Duration = Duration::from_secs(30);
/// Time from the start of a program to its list: by then, most of the code that it needs has been loaded.
const AFTER_START: Duration = Duration::from_secs(3);
/// Maximum wait between checks for the end of the recording.
const TICK: Duration = Duration::from_millis(100);
/// Maximum wait for the sessions to end after the recording has ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Passes the methods that the runtime lists to `add`, until `is_over` says so. Damage in the list loses
/// names, which are counted where they are missing.
pub(crate) fn for_each_method(
    target: &Target,
    is_over: impl Fn() -> bool,
    mut add: impl FnMut(&nettrace::Event<'_>),
) -> Result<(), Error> {
    let mut decoder = nettrace::Decoder::new();
    let mut drain = |decoder: &mut nettrace::Decoder| {
        while let Ok(Some(event)) = decoder.next() {
            add(&event);
        }
    };
    target.list_methods()?.read(Deadline::after(LIST), is_over, |piece| {
        decoder.feed(piece);
        drain(&mut decoder);
        ControlFlow::Continue(())
    })?;
    decoder.end_of_input();
    drain(&mut decoder);
    Ok(())
}

/// The outcome of the list.
#[derive(Debug)]
enum List {
    /// The file has the list.
    Done,
    /// The process lacks methods to list.
    Nothing,
    /// The recording ended before the list was complete.
    Late,
    Failed(Error),
}

/// The sessions that run alongside a recording.
#[derive(Debug)]
pub(crate) struct NamesRecorder {
    files: NamesFiles,
    over: Arc<AtomicBool>,
    thread: JoinHandle<List>,
}

/// A recording, and the path of its names.
#[derive(Debug, Clone)]
struct NamesFiles {
    recording: PathBuf,
    names: PathBuf,
}

impl NamesFiles {
    /// Removes the file at the path: the names of an earlier recording with that name, or a link that
    /// somebody has put in the way.
    fn remove(&self) -> io::Result<()> {
        if are_of_another(&self.names, &self.recording) {
            return Err(io::Error::other("it belongs to another recording"));
        }
        match fs::remove_file(&self.names) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl NamesRecorder {
    /// Starts the sessions for a recording with names to be kept next to it. A program that `is_starting` has
    /// nothing to list yet: the list is taken later, but the session that reports methods runs when this
    /// returns.
    pub(crate) fn start(target: &Target, selection: &Selection, recording: &Path, is_starting: bool) -> Self {
        let files = NamesFiles { recording: recording.to_owned(), names: names_path(recording) };
        // A verbose recording needs no help, and one without the keyword gets no such events, whatever other
        // sessions request.
        let needs_help = selection.level_of_methods() == Some(Level::INFORMATIONAL);
        let target = target.clone().with_timeouts(timeouts(ANSWER));
        let over = Arc::new(AtomicBool::new(false));
        let early = is_starting.then(|| compiled_methods(&target, needs_help));
        let thread = thread::spawn({
            let (files, over) = (files.clone(), Arc::clone(&over));
            move || {
                if early.is_none() && target.is_native_aot().unwrap_or(false) {
                    return List::Nothing;
                }
                let compiled = early.unwrap_or_else(|| compiled_methods(&target, needs_help));
                let delay = if is_starting { AFTER_START } else { Duration::ZERO };
                beside(&target, &files, &over, compiled, delay)
            }
        });
        Self { files, over, thread }
    }

    /// Ends the sessions. The file stays if the recording lacks its own list.
    pub(crate) fn finish(self, is_needed: bool) {
        self.over.store(true, Ordering::Release);
        let deadline = Instant::now() + PATIENCE;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(TICK / 10);
        }
        // A panic of that thread was printed where it happened.
        let list = if self.thread.is_finished() { self.thread.join().ok() } else { None };
        match list {
            Some(List::Done) | None if !is_needed => {
                // A leftover file does no harm.
                let _ = self.files.remove();
            }
            _ if !is_needed => {}
            Some(List::Done) => messages::note(format_args!(
                "Names          : {} has the names of the methods present when the recording began; commands that read the recording find it",
                self.files.names.display()
            )),
            Some(List::Nothing) => {}
            other => {
                if let Some(List::Failed(error)) = other {
                    messages::detail(error);
                }
                messages::warning(
                    "the recording ended before the runtime had listed its methods: the methods present when it began have no names",
                );
            }
        }
    }
}

/// Starts the sessions for names of a stream that is read while it arrives.
pub(crate) fn live_names(target: &Target, needs_help: bool, is_starting: bool) -> LiveNames {
    let target = target.clone().with_timeouts(timeouts(ANSWER));
    let options =
        LiveNamesOptions::default().with_compiled_methods(needs_help).with_starting_program(is_starting);
    LiveNames::start(&target, options, messages::detail)
}

/// Starts the session that makes the runtime report each method that it compiles.
fn compiled_methods(target: &Target, is_wanted: bool) -> Option<Session> {
    is_wanted.then(|| target.report_compiled_methods().map_err(messages::detail).ok())?
}

/// Takes the list after `delay`, and reads the other session until the recording is over.
fn beside(
    target: &Target,
    files: &NamesFiles,
    over: &AtomicBool,
    mut compiled: Option<Session>,
    delay: Duration,
) -> List {
    let start = Instant::now();
    let mut list = None;
    let mut buffer = vec![0; 64 << 10];
    while !over.load(Ordering::Acquire) {
        if list.is_none() && start.elapsed() >= delay {
            list = Some(list_methods(target, files, over).unwrap_or_else(List::Failed));
        }
        match compiled.as_mut().map(|session| session.poll_read(&mut buffer, Deadline::after(TICK))) {
            Some(Ok(None | Some(1..))) => {}
            Some(Ok(Some(0)) | Err(_)) => compiled = None,
            None => thread::sleep(TICK),
        }
    }
    drop(compiled);
    list.unwrap_or(List::Late)
}

/// Makes a process list its methods into a temporary file, which is a recording.
pub(crate) fn record_list(target: &Target) -> Result<NamedTempFile, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failed, format_args!("list of methods: temporary file: {error}"))
    };
    let mut file = NamedTempFile::new().map_err(failed)?;
    let mut written = Ok(());
    target.list_methods()?.read(
        Deadline::after(LIST),
        || false,
        |piece| {
            written = file.write_all(piece);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    )?;
    written.and_then(|()| file.flush()).map_err(failed)?;
    Ok(file)
}

/// Makes the runtime list its methods into a file that is kept only if the list is whole.
fn list_methods(target: &Target, files: &NamesFiles, over: &AtomicBool) -> Result<List, Error> {
    let list = target.list_methods()?;
    if over.load(Ordering::Acquire) {
        return Ok(List::Late);
    }
    let mut file = match new_file(files) {
        Ok(file) => file,
        Err(failure) => {
            messages::warning(format_args!("names: {failure}"));
            return Ok(List::Late);
        }
    };
    let outcome = list.read(
        Deadline::after(LIST),
        || over.load(Ordering::Acquire),
        |piece| match file.write_all(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                messages::warning(format_args!("names: {}", file.failed("write", &error)));
                ControlFlow::Break(())
            }
        },
    );
    let is_whole = matches!(outcome, Ok(true)) && file.close().is_ok();
    if !is_whole {
        file.close().map_err(messages::detail).ok();
        let _ = fs::remove_file(&files.names);
    }
    match outcome {
        Err(error) if !error.is_deadline() => Err(error),
        _ => Ok(if is_whole { List::Done } else { List::Late }),
    }
}

/// Creates the file anew.
fn new_file(files: &NamesFiles) -> Result<OutputFile, Failure> {
    let path = &*files.names;
    let in_the_way =
        |error| Failure::new(Exit::Failed, format_args!("open output: {}: {error}", path.display()));
    files.remove().map_err(in_the_way)?;
    let file = OutputFile::create_new(path)?;
    if file.path() != path {
        file.discard();
        return Err(in_the_way(io::ErrorKind::AlreadyExists.into()));
    }
    Ok(file)
}
