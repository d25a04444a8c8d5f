//! Names of methods for a stream that is read while it arrives.
//!
//! The same two sessions as beside a recording (`names`), but the list is handed over in pieces as it comes. Precompiled methods that run for
//! the first time after the list are in none: the list is asked for again where names are missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Deadline, Error, Session, Target};
use nettrace::{Decoder, Event};

use crate::process::info::timeouts;
use crate::record::names::{ANSWER, LIST, TICK, compiled_methods, start_list};
use crate::render::messages;

/// The time from the start of a program to its list: most of what it needs was loaded by then.
const AFTER_START: Duration = Duration::from_secs(1);
/// Pieces of the list that may wait to be read.
const PIECES: usize = 8;
/// Bytes of a piece.
const PIECE: usize = 256 << 10;

/// The least time between the first list and the second; it doubles with each further one.
const BEFORE_AGAIN: Duration = Duration::from_secs(2);

/// The methods of a process, which the runtime lists.
#[derive(Debug)]
pub(crate) struct LiveNames {
    /// Pieces of lists; `None` is the end of one.
    pieces: Receiver<Option<Vec<u8>>>,
    decoder: Decoder,
    flags: Arc<Flags>,
    /// Whether the first list has been read, or there will be none.
    is_whole: bool,
    /// The time from which the next list may be requested, and the time to the one behind that.
    next: Instant,
    wait: Duration,
}

/// A piece of a list of methods.
#[derive(Debug)]
pub(crate) enum ListPiece {
    /// The next bytes of its stream.
    Bytes(Vec<u8>),
    /// Its end.
    End,
}

/// The state shared with the thread of the sessions.
#[derive(Debug, Default)]
struct Flags {
    over: AtomicBool,
    again: AtomicBool,
}

impl LiveNames {
    /// Starts the sessions. With `needs_help` a session at the verbose level makes the runtime tell of each method that it compiles. Of a
    /// program that `is_starting` nothing can be listed yet: the list is taken later, and that session runs when this returns.
    pub(crate) fn start(target: &Target, needs_help: bool, is_starting: bool) -> Self {
        let target = target.clone().with_timeouts(timeouts(ANSWER));
        let flags = Arc::new(Flags::default());
        let (sender, pieces) = mpsc::sync_channel(PIECES);
        let early = is_starting.then(|| compiled_methods(&target, needs_help));
        thread::spawn({
            let flags = Arc::clone(&flags);
            move || {
                let mut compiled = early.unwrap_or_else(|| compiled_methods(&target, needs_help));
                let start = Instant::now();
                flags.again.store(true, Ordering::Release);
                let mut buffer = vec![0; PIECE];
                while !flags.over.load(Ordering::Acquire) {
                    let is_early = is_starting && start.elapsed() < AFTER_START;
                    if !is_early && flags.again.swap(false, Ordering::AcqRel) {
                        if let Err(error) = send_list(&target, &sender, &flags.over) {
                            messages::detail(error);
                        }
                        // Nobody listens any more when the command has ended.
                        let _ = sender.send(None);
                    }
                    drain(&mut compiled, &mut buffer);
                }
            }
        });
        let wait = BEFORE_AGAIN;
        Self { pieces, decoder: Decoder::new(), flags, is_whole: false, next: Instant::now() + wait, wait }
    }

    /// Asks for the list again, if that is not too early: each list costs the process some of its time.
    pub(crate) fn request_again(&mut self) {
        if self.is_whole && Instant::now() >= self.next {
            self.wait = self.wait.saturating_mul(2);
            self.next = Instant::now() + self.wait;
            self.flags.again.store(true, Ordering::Release);
        }
    }

    /// Asks for the list again, however early. Returns false if there is none to be expected, or one is being read.
    pub(crate) fn request_now(&mut self) -> bool {
        if self.is_whole {
            self.next = Instant::now() + self.wait;
            self.flags.again.store(true, Ordering::Release);
        }
        self.is_whole
    }

    /// The next piece of a list that has arrived.
    pub(crate) fn next_piece(&mut self) -> Option<ListPiece> {
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

    /// Hands over the events of lists that have arrived. Whether the first list has ended.
    pub(crate) fn read(&mut self, mut add: impl FnMut(&Event<'_>)) -> bool {
        for _ in 0..PIECES {
            let Some(piece) = self.next_piece() else { break };
            match &piece {
                ListPiece::Bytes(bytes) => self.decoder.feed(bytes),
                ListPiece::End => self.decoder.end_of_input(),
            }
            // Damage in the list costs names, which are counted where they are missing.
            while let Ok(Some(event)) = self.decoder.next() {
                add(&event);
            }
            if matches!(piece, ListPiece::End) {
                self.decoder = Decoder::new();
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

/// Has the methods listed, and sends the stream.
fn send_list(target: &Target, pieces: &SyncSender<Option<Vec<u8>>>, over: &AtomicBool) -> Result<(), Error> {
    let mut session = start_list(target)?;
    let deadline = Instant::now() + LIST;
    let mut buffer = vec![0; PIECE];
    while !over.load(Ordering::Acquire) && Instant::now() < deadline {
        match session.read(&mut buffer, Deadline::after(TICK)) {
            Ok(0) => return Ok(()),
            // Nobody listens any more when the command has ended.
            Ok(count) if pieces.send(Some(buffer[..count].to_vec())).is_err() => return Ok(()),
            Err(error) if !error.is_deadline() => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Reads the session that makes the runtime tell of methods, for a moment.
fn drain(session: &mut Option<Session>, buffer: &mut [u8]) {
    match session.as_mut().map(|running| running.read(buffer, Deadline::after(TICK))) {
        Some(Ok(1..)) => {}
        Some(Err(error)) if error.is_deadline() => {}
        Some(Ok(0) | Err(_)) => *session = None,
        None => thread::sleep(TICK),
    }
}
