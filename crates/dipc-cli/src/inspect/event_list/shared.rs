//! Formatting of one recording by several readers that take turns.
//!
//! Each reads the whole recording on a thread of its own and brings its events into order, which costs a
//! tenth of formatting them. It formats the events of its own turns, and skips the others. The readers
//! themselves write the lines, turn by turn.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::lines::{Lines, Writer};
use super::reading::{Ordered, Reading};
use crate::exit::Failure;
use crate::processors::no_thread;

/// Maximum number of readers: each one repeats some work.
pub(super) const MAX_READERS: usize = 8;
/// Minimum number of events in a turn: enough that turns cost little, few enough that the lines of a turn can
/// be held until the lines before are written.
const TURN: u64 = 1024;
/// The number of a reader's messages that may wait to be written.
const WAITING: usize = 32;
/// The memory in bytes that a reader may hold while others run: more than recordings of runtimes take. A
/// recording that does not reveal which events are the oldest is held as a whole, and by a single reader.
const MAX_HELD: u64 = 32 << 20;

/// A piece of a reader's output.
enum Message {
    /// Lines of the current turn.
    Lines(Lines),
    /// The next turn is another reader's, or, if `is_last`, all further turns are the first reader's.
    EndOfTurn { is_last: bool },
    /// No more events follow.
    End,
}

/// The place where readers deposit their output. The reader that deposits the piece due next writes it, and
/// the pieces that wait after it, while the others continue: a thread only for writing would take a processor
/// from them.
struct OrderedOutput<'w, 'o> {
    state: Mutex<State<'w, 'o>>,
    /// Notified when a waiting reader may continue.
    has_room: Condvar,
}

struct State<'w, 'o> {
    /// The writer; `None` while a reader writes.
    writer: Option<&'w mut Writer<'o>>,
    /// The pending messages of each reader.
    waiting: Vec<VecDeque<Message>>,
    /// Empty buffers of lines, for reuse.
    spare: Vec<Lines>,
    /// The number of the turn being written.
    turn: usize,
    /// The number of readers taking turns.
    count: usize,
    /// The number of the reader that reached the end of the events first, or the failure that stopped the
    /// writing.
    outcome: Option<Result<usize, Failure>>,
}

impl<'w, 'o> OrderedOutput<'w, 'o> {
    fn new(writer: &'w mut Writer<'o>, count: usize) -> Self {
        let waiting = (0..count).map(|_| VecDeque::with_capacity(WAITING)).collect();
        let state = State { writer: Some(writer), waiting, spare: Vec::new(), turn: 0, count, outcome: None };
        Self { state: Mutex::new(state), has_room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<'w, 'o>> {
        // Only a write can panic, and writes happen outside the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deposits a message of a reader, and writes the messages that are due. Returns whether more are wanted.
    fn leave(&self, number: usize, message: Message) -> bool {
        let mut state = self.state();
        while state.outcome.is_none() && state.waiting[number].len() >= WAITING {
            state = self.has_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.outcome.is_some() {
            return false;
        }
        state.waiting[number].push_back(message);
        self.write(state).outcome.is_none()
    }

    /// Deposits lines, and takes an empty buffer. Returns whether more are wanted.
    fn leave_lines(&self, number: usize, lines: &mut Lines) -> bool {
        let empty = self.state().spare.pop().unwrap_or_default();
        self.leave(number, Message::Lines(std::mem::replace(lines, empty)))
    }

    /// Stops all writing.
    fn stop(&self, outcome: Result<usize, Failure>) {
        self.state().outcome.get_or_insert(outcome);
        self.has_room.notify_all();
    }

    /// Returns the number of the reader that reached the end first.
    fn outcome(self) -> Result<usize, Failure> {
        // The default is the first reader, which takes all turns that the others leave.
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).outcome.unwrap_or(Ok(0))
    }

    /// Writes the pending messages, turn by turn, unless another reader is doing so.
    fn write<'s>(&'s self, mut state: MutexGuard<'s, State<'w, 'o>>) -> MutexGuard<'s, State<'w, 'o>> {
        let Some(writer) = state.writer.take() else {
            return state;
        };
        while state.outcome.is_none() {
            let number = state.turn % state.count;
            let Some(message) = state.waiting[number].pop_front() else {
                break;
            };
            match message {
                Message::Lines(mut lines) => {
                    drop(state);
                    let written = writer.write(&mut lines);
                    state = self.state();
                    state.spare.push(lines);
                    if let Err(failure) = written {
                        // Another reader may have stopped the writing meanwhile.
                        state.outcome.get_or_insert(Err(failure));
                    }
                }
                Message::EndOfTurn { is_last } => {
                    state.turn += 1;
                    if is_last {
                        state.count = 1;
                    }
                }
                Message::End => state.outcome = Some(Ok(number)),
            }
            self.has_room.notify_all();
        }
        state.writer = Some(writer);
        state
    }
}

/// A guard that stops the other readers if one panics: they would wait for its turn.
struct StopOnPanic<'a, 'w, 'o> {
    output: &'a OrderedOutput<'w, 'o>,
    number: usize,
}

impl Drop for StopOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.output.stop(Ok(self.number));
        }
    }
}

/// Writes the lines of all events. Returns the reader that reached the end first, merged with what the others
/// have seen.
pub(super) fn read<'s, O: Ordered + Send>(
    readings: Vec<Reading<'s, O>>,
    writer: &mut Writer<'_>,
) -> Result<Reading<'s, O>, Failure> {
    let count = readings.len();
    let output = OrderedOutput::new(writer, count);
    let mut readings: Vec<_> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, mut reading) in readings.into_iter().enumerate() {
            let output = &output;
            let work = move || {
                let _stop = StopOnPanic { output, number };
                reading.take_turns(number, count, output);
                reading
            };
            match thread::Builder::new().name(format!("reader {number}")).spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => output.stop(Err(no_thread(&error))),
            }
        }
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut first = readings.swap_remove(output.outcome()?);
    for other in readings {
        first.filter.append(other.filter);
    }
    Ok(first)
}

impl<O: Ordered> Reading<'_, O> {
    /// Reads to the end, as reader `number` of `count`.
    fn take_turns(&mut self, number: usize, count: usize, output: &OrderedOutput<'_, '_>) {
        let mut lines = Lines::default();
        let mut is_shared = true;
        let mut turn = 0;
        loop {
            let is_own = if is_shared { turn % count == number } else { number == 0 };
            let mut events = 0;
            while events < TURN && self.goes_on() {
                events += if is_own {
                    self.read_part(&mut lines, |lines| output.leave_lines(number, lines))
                } else {
                    self.pass_part()
                };
            }
            if is_own && !output.leave_lines(number, &mut lines) {
                return;
            }
            if !self.goes_on() {
                // No reader needs the remaining turns.
                let _ = output.leave(number, Message::End);
                return;
            }
            // All readers reach the same decision at the same event.
            is_shared &= self.events.held_bytes() <= MAX_HELD;
            if is_own && !output.leave(number, Message::EndOfTurn { is_last: !is_shared })
                || !is_shared && number != 0
            {
                return;
            }
            turn += 1;
        }
    }
}
