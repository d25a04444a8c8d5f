//! Names of methods for a recording that may end before the runtime lists them.
//!
//! Runtimes list their methods at the end of a session alone, so that a process that is killed takes the names with it. A short session
//! beside the recording has them listed once, into a file that stays only where the recording ends without such a list. Another one,
//! whose stream is thrown away, makes the runtime tell of each method that it compiles from then on: it does so only while some session
//! asks for the verbose level, and then tells every session that asked for the keyword, at any level. The recording is asked for what the
//! user asked for, and is what the runtime sent.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::{
    Deadline, Error, OptionalFeature, RUNTIME_PROVIDER, Rundown, Session, SessionConfig, Target,
};
use dipc_wire::ProviderConfig;
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure};
use crate::process::info::timeouts;
use crate::record::selection::{INFORMATIONAL, METHOD_KEYWORDS, Selection};
use crate::render::messages;
use crate::render::output_file::OutputFile;

const VERBOSE: u32 = 5;
const CRITICAL: u32 = 1;
/// The time limit for each answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// The time limit for the list of methods.
pub(super) const LIST: Duration = Duration::from_secs(30);
/// The time from the start of a program to its list: most of what it needs was loaded by then.
const AFTER_START: Duration = Duration::from_secs(3);
/// The longest wait between checks whether the recording is over.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The longest wait for the sessions to end once the recording has.
const PATIENCE: Duration = Duration::from_secs(2);

/// The outcome of the list.
#[derive(Debug)]
enum List {
    /// It is in the file.
    Done,
    /// The process has no methods to list.
    Nothing,
    /// The recording was over before.
    Late,
    Failed(Error),
}

/// The sessions beside a recording.
#[derive(Debug)]
pub(crate) struct NamesRecorder {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: JoinHandle<List>,
}

impl NamesRecorder {
    /// Starts the sessions for the recording whose names shall be at `path`. Of a program that `is_starting` nothing can be listed yet: the
    /// list is taken later, and the session that tells of methods runs when this returns.
    pub(crate) fn start(target: &Target, selection: &Selection, path: PathBuf, is_starting: bool) -> Self {
        // A verbose recording needs no help, and one without the keyword gets no such events whatever others ask for.
        let needs_help = selection.level_of_methods() == Some(INFORMATIONAL);
        let target = target.clone().with_timeouts(timeouts(ANSWER));
        let over = Arc::new(AtomicBool::new(false));
        let early = is_starting.then(|| compiled_methods(&target, needs_help));
        let thread = thread::spawn({
            let (path, over) = (path.clone(), Arc::clone(&over));
            move || {
                if early.is_none() && target.is_native_aot().unwrap_or(false) {
                    return List::Nothing;
                }
                let compiled = early.unwrap_or_else(|| compiled_methods(&target, needs_help));
                let delay = if is_starting { AFTER_START } else { Duration::ZERO };
                beside(&target, &path, &over, compiled, delay)
            }
        });
        Self { path, over, thread }
    }

    /// Ends the sessions. The file stays if the recording has no list of its own.
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
                // One that is not there is no harm.
                let _ = fs::remove_file(&self.path);
            }
            _ if !is_needed => {}
            Some(List::Done) => messages::note(format_args!(
                "Names          : {} has those of methods that were there when the recording began; commands that read the recording find it",
                self.path.display()
            )),
            Some(List::Nothing) => {}
            other => {
                if let Some(List::Failed(error)) = other {
                    messages::detail(error);
                }
                messages::warning(
                    "the recording ended before the runtime had listed its methods: those that were there when it began have no names",
                );
            }
        }
    }
}

/// Starts the session that makes the runtime tell of each method that it compiles.
pub(super) fn compiled_methods(target: &Target, is_wanted: bool) -> Option<Session> {
    if !is_wanted {
        return None;
    }
    let config = SessionConfig::new([provider(METHOD_KEYWORDS, VERBOSE)])
        .with_rundown(Rundown::Off)
        .with_stackwalk(false)
        .with_optional(vec![OptionalFeature::NoStacks]);
    target.start_session(&config).map_err(messages::detail).ok()
}

/// Takes the list after `delay`, and reads the other session until the recording is over.
fn beside(
    target: &Target,
    path: &Path,
    over: &AtomicBool,
    mut compiled: Option<Session>,
    delay: Duration,
) -> List {
    let start = Instant::now();
    let mut list = None;
    let mut buffer = vec![0; 64 << 10];
    while !over.load(Ordering::Acquire) {
        if list.is_none() && start.elapsed() >= delay {
            list = Some(list_methods(target, path, over).unwrap_or_else(List::Failed));
        }
        match compiled.as_mut().map(|session| session.read(&mut buffer, Deadline::after(TICK))) {
            Some(Ok(1..)) => {}
            Some(Err(error)) if error.is_deadline() => {}
            Some(Ok(0) | Err(_)) => compiled = None,
            None => thread::sleep(TICK),
        }
    }
    drop(compiled);
    list.unwrap_or(List::Late)
}

/// Starts a session whose stream is the list of all methods, and nothing else.
pub(super) fn start_list(target: &Target) -> Result<Session, Error> {
    let config = SessionConfig::new([provider(0, CRITICAL)])
        .with_stackwalk(false)
        .with_optional(vec![OptionalFeature::NoStacks]);
    let mut session = target.start_session(&config)?;
    session.request_stop()?;
    Ok(session)
}

/// Has the methods of a process listed, into a temporary file, which is a recording.
pub(crate) fn record_list(target: &Target) -> Result<NamedTempFile, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failed, format_args!("list of methods: temporary file: {error}"))
    };
    let mut file = NamedTempFile::new().map_err(failed)?;
    let mut session = start_list(target)?;
    let deadline = Deadline::after(LIST);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match session.read(&mut buffer, deadline)? {
            0 => break,
            count => file.write_all(&buffer[..count]).map_err(failed)?,
        }
    }
    file.flush().map_err(failed)?;
    Ok(file)
}

/// Has the methods listed, into a file that stays only if the list is whole.
fn list_methods(target: &Target, path: &Path, over: &AtomicBool) -> Result<List, Error> {
    let mut session = start_list(target)?;
    if over.load(Ordering::Acquire) {
        return Ok(List::Late);
    }
    let mut file = match new_file(path) {
        Ok(file) => file,
        Err(failure) => {
            messages::warning(format_args!("names: {failure}"));
            return Ok(List::Late);
        }
    };
    let outcome = copy(&mut session, &mut file, over);
    let is_whole = matches!(outcome, Ok(true)) && file.close().is_ok();
    if !is_whole {
        file.close().map_err(messages::detail).ok();
        let _ = fs::remove_file(path);
    }
    outcome.map(|_| if is_whole { List::Done } else { List::Late })
}

/// Copies the stream. Whether it came to its end in time.
fn copy(session: &mut Session, file: &mut OutputFile, over: &AtomicBool) -> Result<bool, Error> {
    let deadline = Instant::now() + LIST;
    let mut buffer = vec![0; 256 << 10];
    while Instant::now() < deadline {
        match session.read(&mut buffer, Deadline::after(TICK)) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                if let Err(error) = file.write_all(&buffer[..count]) {
                    messages::warning(format_args!("names: {}", file.failed("write", &error)));
                    return Ok(false);
                }
            }
            Err(error) if error.is_deadline() && !over.load(Ordering::Acquire) => {}
            Err(error) if error.is_deadline() => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Makes the file anew: what is there is of an earlier recording of that name, or a link that somebody has put in the way.
fn new_file(path: &Path) -> Result<OutputFile, Failure> {
    let in_the_way =
        |error| Failure::new(Exit::Failed, format_args!("open output: {}: {error}", path.display()));
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_the_way(error)),
        Ok(()) | Err(_) => {}
    }
    let file = OutputFile::create_new(path)?;
    if file.path() != path {
        file.discard();
        return Err(in_the_way(io::ErrorKind::AlreadyExists.into()));
    }
    Ok(file)
}

fn provider(keywords: u64, level: u32) -> ProviderConfig {
    ProviderConfig { keywords, level, name: RUNTIME_PROVIDER.to_owned(), arguments: String::new() }
}
