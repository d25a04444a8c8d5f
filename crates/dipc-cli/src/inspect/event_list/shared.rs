//! The events of one recording, shared by several readers that take turns.
//!
//! Each reads all of the recording on a thread of its own and brings its events into order, which costs a tenth of making lines of them. It
//! makes lines of the events of its own turns, and passes the others. The lines are written turn by turn, by the readers themselves.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::lines::{Lines, Writer};
use super::reading::{Ordered, Reading};
use crate::exit::Failure;
use crate::processors::no_thread;

/// The most readers: with each of them more is done several times.
pub(super) const MOST_READERS: usize = 8;
/// The events of a turn, at least: enough that turns cost nothing, few enough that the lines of a turn can wait for those before.
const TURN: u64 = 1024;
/// Messages of a reader that wait to be written.
const WAITING: usize = 32;
/// The memory in bytes that a reader may hold beside others: more than recordings of runtimes take. A recording in which nothing says which
/// events are the oldest is held as a whole, and by one reader.
const MOST_HELD: u64 = 32 << 20;

/// A piece of what a reader has made.
enum Message {
    /// Lines of the current turn.
    Lines(Lines),
    /// The next turn is another reader's, or all that follow are the first one's.
    EndOfTurn { is_last: bool },
    /// No other event follows.
    End,
}

/// The one place where readers leave what they have made. Whoever leaves something that is to be written next writes it, and what waits
/// behind it, while the others go on: a thread that only writes would take a processor from them.
struct Desk<'w, 'o> {
    state: Mutex<State<'w, 'o>>,
    /// Notified when a reader may go on that waits.
    has_room: Condvar,
}

struct State<'w, 'o> {
    /// The writer; `None` while a reader writes.
    writer: Option<&'w mut Writer<'o>>,
    /// The messages of each reader that wait to be written.
    waiting: Vec<VecDeque<Message>>,
    /// Empty lines.
    spare: Vec<Lines>,
    /// The number of the turn that is written.
    turn: usize,
    /// The number of readers that take turns.
    count: usize,
    /// The number of the reader that came to the end of the events first, or why no more is written.
    outcome: Option<Result<usize, Failure>>,
}

impl<'w, 'o> Desk<'w, 'o> {
    fn new(writer: &'w mut Writer<'o>, count: usize) -> Self {
        let waiting = (0..count).map(|_| VecDeque::with_capacity(WAITING)).collect();
        let state = State { writer: Some(writer), waiting, spare: Vec::new(), turn: 0, count, outcome: None };
        Self { state: Mutex::new(state), has_room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<'w, 'o>> {
        // Only a write can panic, and that is outside of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a message of a reader, and writes what can be written. Returns whether others are wanted.
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

    /// Leaves lines, and takes empty ones. Returns whether others are wanted.
    fn leave_lines(&self, number: usize, lines: &mut Lines) -> bool {
        let empty = self.state().spare.pop().unwrap_or_default();
        self.leave(number, Message::Lines(std::mem::replace(lines, empty)))
    }

    /// Has nothing else written.
    fn stop(&self, outcome: Result<usize, Failure>) {
        self.state().outcome.get_or_insert(outcome);
        self.has_room.notify_all();
    }

    /// Returns the number of the reader that came to the end first.
    fn outcome(self) -> Result<usize, Failure> {
        // The first one makes all turns that the others leave.
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).outcome.unwrap_or(Ok(0))
    }

    /// Writes what waits, turn by turn, unless another reader does.
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
                        // Another reader may have stopped all while this one wrote.
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

/// Stops the others where a reader panics: they would wait for its turn.
struct StopOnPanic<'a, 'w, 'o> {
    desk: &'a Desk<'w, 'o>,
    number: usize,
}

impl Drop for StopOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.desk.stop(Ok(self.number));
        }
    }
}

/// Writes the lines of all events. Returns the reader that came to the end of them first, with what the others have seen.
pub(super) fn read<'s, O: Ordered + Send>(
    readings: Vec<Reading<'s, O>>,
    writer: &mut Writer<'_>,
) -> Result<Reading<'s, O>, Failure> {
    let count = readings.len();
    let desk = Desk::new(writer, count);
    let mut readings: Vec<_> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, mut reading) in readings.into_iter().enumerate() {
            let desk = &desk;
            let work = move || {
                let _stop = StopOnPanic { desk, number };
                reading.take_turns(number, count, desk);
                reading
            };
            match thread::Builder::new().name(format!("reader {number}")).spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => desk.stop(Err(no_thread(&error))),
            }
        }
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut first = readings.swap_remove(desk.outcome()?);
    for other in readings {
        first.filter.append(other.filter);
    }
    Ok(first)
}

impl<O: Ordered> Reading<'_, O> {
    /// Reads to the end, as reader `number` of `count`.
    fn take_turns(&mut self, number: usize, count: usize, desk: &Desk<'_, '_>) {
        let mut lines = Lines::default();
        let mut is_shared = true;
        let mut turn = 0;
        loop {
            let is_own = if is_shared { turn % count == number } else { number == 0 };
            let mut events = 0;
            while events < TURN && self.goes_on() {
                events += if is_own {
                    self.read_part(&mut lines, |lines| desk.leave_lines(number, lines))
                } else {
                    self.pass_part()
                };
            }
            if is_own && !desk.leave_lines(number, &mut lines) {
                return;
            }
            if !self.goes_on() {
                // Of those to come nobody asks.
                let _ = desk.leave(number, Message::End);
                return;
            }
            // All readers find the same, at the same place.
            is_shared &= self.events.held_bytes() <= MOST_HELD;
            if is_own && !desk.leave(number, Message::EndOfTurn { is_last: !is_shared })
                || !is_shared && number != 0
            {
                return;
            }
            turn += 1;
        }
    }
}
