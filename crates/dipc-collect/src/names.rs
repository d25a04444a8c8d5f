//! Names of methods for a recording that may end before the runtime lists them.
//!
//! Runtimes list their methods only at the end of a session, so a process that is killed takes the names with
//! it. A short session alongside the recording makes the runtime list them once, into a file that is kept
//! only if the recording ends without such a list. Another session, with a stream that is discarded, makes
//! the runtime report each method that it compiles from then on: the runtime does so only while some session
//! requests the verbose level, and then reports to every session that requested the keyword, at any level.
//! The recording itself requests only what its user asked for, and contains exactly what the runtime sent.

mod companion;
mod unloadable_code;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::{Deadline, Error, Session, Target};
use nettrace::Decoder;

use crate::staged::{StagedFile, folder_of};
use companion::are_of_another;

pub use companion::{are_of_recording, companion_path, names_path};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use unloadable_code::SampledNames;
pub use unloadable_code::{StackAddresses, UnloadableCode};

/// The time limit for the list of methods.
const LIST: Duration = Duration::from_secs(30);
/// Time from the start of a program to its list: by then, most of the code that it needs has been loaded.
const AFTER_START: Duration = Duration::from_secs(3);
/// Maximum wait between checks for the end of the recording.
const TICK: Duration = Duration::from_millis(100);
/// Maximum wait for the sessions to end after the recording has ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Passes the methods that the runtime lists to `add`, until `is_over` returns true. Damage in the list loses
/// names, which are counted where they are missing.
///
/// # Errors
/// If the runtime cannot be reached, or refuses the session. A list that takes longer than 30 s is an error,
/// too.
pub fn for_each_method(
    target: &Target,
    is_over: impl Fn() -> bool,
    mut add: impl FnMut(&nettrace::Event<'_>),
) -> Result<(), Error> {
    let mut decoder = Decoder::new();
    let mut drain = |decoder: &mut Decoder| {
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

/// The recording that needs names, and the state of its program.
#[derive(Debug, Clone)]
pub struct NamesRequest {
    files: NamesFiles,
    reports_compiled: bool,
    is_starting: bool,
}

impl NamesRequest {
    /// Requests the names for a recording, which are kept at its [`names_path`].
    pub fn new(recording: &Path) -> Self {
        let files = NamesFiles { recording: recording.to_owned(), names: names_path(recording) };
        Self { files, reports_compiled: false, is_starting: false }
    }

    /// With true, the runtime is also made to report each method that it compiles. A recording that requests
    /// the verbose level itself does not need it, and one without the keyword gets no such events.
    #[must_use]
    pub fn with_compiled_methods(self, reports_compiled: bool) -> Self {
        Self { reports_compiled, ..self }
    }

    /// With true for a program that is starting and cannot list its methods yet: the list is requested 3 s
    /// later, but the session that reports methods runs when [`NamesRecorder::start`] returns.
    #[must_use]
    pub fn with_starting_program(self, is_starting: bool) -> Self {
        Self { is_starting, ..self }
    }
}

/// A reason for which names may be missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamesError {
    /// The session that makes the runtime report compiled methods did not begin.
    #[error(transparent)]
    Session(#[from] Error),
    /// The file cannot be written.
    #[error("{step}: {}: {error}", path.display())]
    File {
        /// The step that failed, such as `write`.
        step: &'static str,
        /// The path of the names.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// The names that a recording has next to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeptNames {
    /// The recording needs no other file, and there is none.
    Unneeded,
    /// The file has the methods that were present when the recording began.
    File(PathBuf),
    /// The runtime has no methods to list: it is a NativeAOT program.
    NoMethods,
    /// The recording ended before the list was complete, or the session for it failed.
    Missing(Option<Error>),
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
pub struct NamesRecorder {
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

    /// Makes room for the file, and creates it without its name.
    fn create(&self) -> Result<(File, StagedFile), NamesError> {
        let staged = self.remove().and_then(|()| StagedFile::create(folder_of(&self.names)));
        staged.map_err(|error| self.failed("open output", error))
    }

    fn failed(&self, step: &'static str, error: io::Error) -> NamesError {
        NamesError::File { step, path: self.names.clone(), error }
    }
}

impl NamesRecorder {
    /// Starts the sessions, within the [time limits](dipc_client::Timeouts) of the target. `on_error`
    /// receives errors while the recording goes on; an error of the list is in the [result](Self::finish).
    pub fn start(
        target: &Target,
        request: NamesRequest,
        on_error: impl Fn(NamesError) + Send + 'static,
    ) -> Self {
        let NamesRequest { files, reports_compiled, is_starting } = request;
        let target = target.clone();
        let over = Arc::new(AtomicBool::new(false));
        let report = move |target: &Target, on_error: &dyn Fn(NamesError)| {
            let started = reports_compiled.then(|| target.report_compiled_methods())?;
            started.map_err(|error| on_error(error.into())).ok()
        };
        let early = is_starting.then(|| report(&target, &on_error));
        let thread = thread::spawn({
            let (files, over) = (files.clone(), Arc::clone(&over));
            move || {
                if early.is_none() && target.is_native_aot().unwrap_or(false) {
                    return List::Nothing;
                }
                let compiled = early.unwrap_or_else(|| report(&target, &on_error));
                let delay = if is_starting { AFTER_START } else { Duration::ZERO };
                let list = || list_methods(&target, &files, &over, &on_error).unwrap_or_else(List::Failed);
                run(&over, compiled, delay, list)
            }
        });
        Self { files, over, thread }
    }

    /// Ends the sessions. The file stays if the recording lacks its own list: `is_needed`.
    pub fn finish(self, is_needed: bool) -> KeptNames {
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
                KeptNames::Unneeded
            }
            _ if !is_needed => KeptNames::Unneeded,
            Some(List::Done) => KeptNames::File(self.files.names),
            Some(List::Nothing) => KeptNames::NoMethods,
            Some(List::Failed(error)) => KeptNames::Missing(Some(error)),
            Some(List::Late) | None => KeptNames::Missing(None),
        }
    }
}

/// Takes the list after `delay`, and reads the other session until the recording is over.
fn run(over: &AtomicBool, mut compiled: Option<Session>, delay: Duration, take: impl Fn() -> List) -> List {
    let start = Instant::now();
    let mut list = None;
    let mut buffer = vec![0; 64 << 10];
    while !over.load(Ordering::Acquire) {
        if list.is_none() && start.elapsed() >= delay {
            list = Some(take());
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

/// Makes the runtime list its methods into a file that gets its name only if the list is whole.
fn list_methods(
    target: &Target,
    files: &NamesFiles,
    over: &AtomicBool,
    on_error: &dyn Fn(NamesError),
) -> Result<List, Error> {
    let list = target.list_methods()?;
    if over.load(Ordering::Acquire) {
        return Ok(List::Late);
    }
    let (mut file, mut staged) = match files.create() {
        Ok(created) => created,
        Err(error) => {
            on_error(error);
            return Ok(List::Late);
        }
    };
    let outcome = list.read(
        Deadline::after(LIST),
        || over.load(Ordering::Acquire),
        |piece| match file.write_all(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                on_error(files.failed("write", error));
                ControlFlow::Break(())
            }
        },
    );
    match outcome {
        Ok(true) => {}
        Err(error) if !error.is_deadline() => return Err(error),
        _ => return Ok(List::Late),
    }
    let named = dipc_transport::close(file).and_then(|()| staged.name_new(&files.names));
    Ok(match named {
        Ok(()) => List::Done,
        Err(error) => {
            on_error(files.failed("close", error));
            List::Late
        }
    })
}
