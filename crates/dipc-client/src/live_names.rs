//! Names of methods for a stream that is read while it arrives.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Deadline, Error, Session, Target};

/// The time from the start of a program to its list: most of the methods it needs are loaded by then.
const AFTER_START: Duration = Duration::from_secs(1);
/// The time limit for a list of methods.
const LIST: Duration = Duration::from_secs(30);
/// Maximum wait between checks whether the names are still wanted.
const TICK: Duration = Duration::from_millis(100);
/// Maximum number of pieces of the list that may wait for a reader.
const PIECES: usize = 8;
/// Bytes that are read at once.
const BUFFER: usize = 64 << 10;
/// Minimum time between the first list and the second; it doubles with each later list.
const BEFORE_AGAIN: Duration = Duration::from_secs(2);

/// The names of a process's methods while it runs, for stacks that are shown immediately.
///
/// A runtime lists its methods only at the end of a session, which is too late for a live view. A thread of
/// this type requests [the list](Target::list_methods) with a session of its own, and [makes the runtime
/// report](Target::report_compiled_methods) each method that it compiles from then on to the session that
/// provides the displayed stacks. That session needs [`NAME_KEYWORDS`](crate::NAME_KEYWORDS) at level
/// informational. Precompiled methods that run for the first time after the list are in neither: if names are
/// missing, [request the list again](Self::request_again).
///
/// The thread ends when the value is dropped.
///
/// ```no_run
/// use dipc_client::{LiveNames, LiveNamesOptions, Providers, SessionConfig, Target};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let target = Target::from_pid(4711)?;
/// let options = LiveNamesOptions::default().with_compiled_methods(true);
/// let mut names = LiveNames::start(&target, options, |error| eprintln!("no names: {error}"));
/// // Exceptions with their stacks, and the names of methods that are compiled from now on: 0x8000 and NAME_KEYWORDS.
/// let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x8038:4")?;
/// let mut session = target.start_session(&SessionConfig::new(providers))?;
/// # #[cfg(feature = "nettrace")]
/// # {
/// # let mut code = Vec::new();
/// let mut events = session.events()?;
/// while let Some(event) = events.next()? {
///     names.read(|method| code.push(method.provider().to_owned())); // To the code map of clr-events.
///     code.push(event.provider().to_owned());
/// }
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LiveNames {
    /// Pieces of lists; `None` marks the end of a list.
    pieces: Receiver<Option<Vec<u8>>>,
    #[cfg(feature = "nettrace")]
    decoder: nettrace::Decoder,
    flags: Arc<Flags>,
    /// True if the first list has been read, or will never arrive.
    is_whole: bool,
    /// The time from which the next list may be requested, and the interval after that one.
    next: Instant,
    wait: Duration,
}

/// A piece of a list of methods.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListPiece {
    /// The next bytes of its stream, which is a recording.
    Bytes(Vec<u8>),
    /// The end of the list.
    End,
}

/// The sessions that [`LiveNames`] needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveNamesOptions {
    reports_compiled: bool,
    is_starting: bool,
}

impl LiveNamesOptions {
    /// With or without a session that makes the runtime report methods that it compiles. A session that
    /// itself requests the verbose level does not need it.
    #[must_use]
    pub const fn with_compiled_methods(self, reports_compiled: bool) -> Self {
        Self { reports_compiled, ..self }
    }

    /// With true for a program that is starting and cannot list its methods yet: the list is requested a
    /// second later, but the other session runs when [`LiveNames::start`] returns.
    #[must_use]
    pub const fn with_starting_program(self, is_starting: bool) -> Self {
        Self { is_starting, ..self }
    }
}

/// The state shared with the thread of the sessions.
#[derive(Debug, Default)]
struct Flags {
    over: AtomicBool,
    again: AtomicBool,
}

impl LiveNames {
    /// Starts the sessions, within the [time limits](crate::Timeouts) of the target. `on_error` receives the
    /// errors of the sessions, after which names are missing.
    pub fn start(
        target: &Target,
        options: LiveNamesOptions,
        on_error: impl Fn(Error) + Send + 'static,
    ) -> Self {
        let LiveNamesOptions { reports_compiled, is_starting } = options;
        let target = target.clone();
        let flags = Arc::new(Flags::default());
        let (sender, pieces) = mpsc::sync_channel(PIECES);
        let report = move |target: &Target, on_error: &dyn Fn(Error)| {
            let started = reports_compiled.then(|| target.report_compiled_methods())?;
            started.map_err(on_error).ok()
        };
        let early = is_starting.then(|| report(&target, &on_error));
        thread::spawn({
            let flags = Arc::clone(&flags);
            move || {
                let mut compiled = early.unwrap_or_else(|| report(&target, &on_error));
                let start = Instant::now();
                flags.again.store(true, Ordering::Release);
                let mut buffer = vec![0; BUFFER];
                while !flags.over.load(Ordering::Acquire) {
                    let is_early = is_starting && start.elapsed() < AFTER_START;
                    if !is_early && flags.again.swap(false, Ordering::AcqRel) {
                        if let Err(error) = send_list(&target, &sender, &flags.over) {
                            on_error(error);
                        }
                        // The receiver is gone if the names are no longer wanted.
                        let _ = sender.send(None);
                    }
                    drain(&mut compiled, &mut buffer);
                }
            }
        });
        Self {
            pieces,
            #[cfg(feature = "nettrace")]
            decoder: nettrace::Decoder::new(),
            flags,
            is_whole: false,
            next: Instant::now() + BEFORE_AGAIN,
            wait: BEFORE_AGAIN,
        }
    }

    /// Requests the list again, unless it is too early: each list costs the process some time. The first wait
    /// is 2 seconds, and each later wait is twice as long.
    pub fn request_again(&mut self) {
        if self.is_whole && Instant::now() >= self.next {
            self.wait = self.wait.saturating_mul(2);
            self.request();
        }
    }

    /// Requests the list again, however early. Returns false if the first list has not ended.
    pub fn request_now(&mut self) -> bool {
        if self.is_whole {
            self.request();
        }
        self.is_whole
    }

    fn request(&mut self) {
        let now = Instant::now();
        self.next = now.checked_add(self.wait).unwrap_or(now);
        self.flags.again.store(true, Ordering::Release);
    }

    /// Returns the next piece of a list that has arrived.
    pub fn next_piece(&mut self) -> Option<ListPiece> {
        match self.pieces.try_recv() {
            Ok(Some(bytes)) => Some(ListPiece::Bytes(bytes)),
            Ok(None) => {
                self.is_whole = true;
                Some(ListPiece::End)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.is_whole = true;
                None
            }
        }
    }

    /// Passes the events of lists that have arrived to `add`. Returns whether the first list has ended.
    #[cfg(feature = "nettrace")]
    pub fn read(&mut self, mut add: impl FnMut(&nettrace::Event<'_>)) -> bool {
        for _ in 0..PIECES {
            let Some(piece) = self.next_piece() else { break };
            match &piece {
                ListPiece::Bytes(bytes) => self.decoder.feed(bytes),
                ListPiece::End => self.decoder.end_of_input(),
            }
            // Damage in the list loses names, which are counted where they are missing.
            while let Ok(Some(event)) = self.decoder.next() {
                add(&event);
            }
            if matches!(piece, ListPiece::End) {
                self.decoder = nettrace::Decoder::new();
            }
        }
        self.is_whole
    }
}

impl Drop for LiveNames {
    fn drop(&mut self) {
        self.flags.over.store(true, Ordering::Release);
    }
}

/// Requests the list of methods, and sends its stream.
fn send_list(target: &Target, pieces: &SyncSender<Option<Vec<u8>>>, over: &AtomicBool) -> Result<(), Error> {
    let is_over = || over.load(Ordering::Acquire);
    let list = target.list_methods()?;
    list.read(Deadline::after(LIST), is_over, |piece| {
        // The receiver is gone if the names are no longer wanted.
        if is_over() || pieces.send(Some(piece.to_vec())).is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(())
}

/// Reads the session that makes the runtime report methods, for a moment.
fn drain(session: &mut Option<Session>, buffer: &mut [u8]) {
    match session.as_mut().map(|running| running.poll_read(buffer, Deadline::after(TICK))) {
        Some(Ok(None | Some(1..))) => {}
        Some(Ok(Some(0)) | Err(_)) => *session = None,
        None => thread::sleep(TICK),
    }
}
