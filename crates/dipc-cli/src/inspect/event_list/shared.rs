//! The events of one recording, shared by several readers that take turns.
//!
//! Each reads all of the recording on a thread of its own and brings its events into order, which costs a tenth of making lines of them. It
//! makes lines of the events of its own turns, and passes the others. The lines are written turn by turn.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use super::lines::{Lines, Writer};
use super::reading::{Ordered, Reading};
use crate::exit::Failure;
use crate::processors::no_thread;

/// The most readers: with each of them more is done several times.
pub(super) const MOST_READERS: usize = 8;
/// The events of a turn, at least: enough that turns cost nothing, few enough that the lines of a turn can wait for those before.
const TURN: u64 = 4096;
/// Messages of a reader that wait to be written.
const WAITING: usize = 16;
/// The memory in bytes that a reader may hold beside others: more than recordings of runtimes take. A recording in which nothing says which
/// events are the oldest is held as a whole, and by one reader.
const MOST_HELD: u64 = 32 << 20;

/// A message of a reader to the writer.
enum Message {
    /// Lines of the current turn.
    Lines(Lines),
    /// The next turn is another reader's, or all that follow are the first one's.
    EndOfTurn { is_last: bool },
    /// No other event follows.
    End,
}

/// The way from a reader to the writer, and back for what was written.
struct Outbox {
    messages: SyncSender<Message>,
    written: Receiver<Lines>,
}

struct Inbox {
    messages: Receiver<Message>,
    written: Sender<Lines>,
}

impl Outbox {
    fn new() -> (Self, Inbox) {
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let (back, written) = mpsc::channel();
        (Self { messages: sender, written }, Inbox { messages: receiver, written: back })
    }

    /// Sends lines, and leaves empty ones. Returns whether they are wanted.
    fn send_lines(&self, lines: &mut Lines) -> bool {
        let empty = self.written.try_recv().unwrap_or_default();
        self.messages.send(Message::Lines(std::mem::replace(lines, empty))).is_ok()
    }
}

/// Writes the lines of all events. Returns the reader that came to the end of them first, with what the others have seen.
pub(super) fn read<'s, O: Ordered + Send>(
    readings: Vec<Reading<'s, O>>,
    writer: &mut Writer<'_>,
) -> Result<Reading<'s, O>, Failure> {
    let count = readings.len();
    thread::scope(|scope| {
        let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
        for (number, mut reading) in readings.into_iter().enumerate() {
            let (outbox, inbox) = Outbox::new();
            let work = move || {
                reading.take_turns(number, count, &outbox);
                reading
            };
            let thread = thread::Builder::new().name(format!("reader {number}")).spawn_scoped(scope, work);
            threads.push(thread.map_err(|error| no_thread(&error))?);
            inboxes.push(inbox);
        }
        let outcome = write(&inboxes, writer);
        // Readers that have more to send stop.
        drop(inboxes);
        let mut readings: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect();
        let mut first = readings.swap_remove(outcome?);
        for other in readings {
            first.filter.append(other.filter);
        }
        Ok(first)
    })
}

/// Writes what the readers send, turn by turn. Returns the number of the one that came to the end first.
fn write(inboxes: &[Inbox], writer: &mut Writer<'_>) -> Result<usize, Failure> {
    let (mut turn, mut count) = (0, inboxes.len());
    loop {
        let number = turn % count;
        let inbox = &inboxes[number];
        match inbox.messages.recv() {
            Ok(Message::Lines(mut lines)) => {
                writer.write(&mut lines)?;
                // A reader that has ended needs no more.
                let _ = inbox.written.send(lines);
            }
            Ok(Message::EndOfTurn { is_last }) => {
                turn += 1;
                if is_last {
                    count = 1;
                }
            }
            // Without a word it has panicked.
            Ok(Message::End) | Err(_) => return Ok(number),
        }
    }
}

impl<O: Ordered> Reading<'_, O> {
    /// Reads to the end, as reader `number` of `count`.
    fn take_turns(&mut self, number: usize, count: usize, outbox: &Outbox) {
        let mut lines = Lines::default();
        let mut is_shared = true;
        let mut turn = 0;
        loop {
            let is_own = if is_shared { turn % count == number } else { number == 0 };
            let mut events = 0;
            while events < TURN && self.goes_on() {
                events += if is_own {
                    self.read_part(&mut lines, |lines| outbox.send_lines(lines))
                } else {
                    self.pass_part()
                };
            }
            if is_own && !outbox.send_lines(&mut lines) {
                return;
            }
            if !self.goes_on() {
                // Without a writer nobody asks.
                let _ = outbox.messages.send(Message::End);
                return;
            }
            // All readers find the same, at the same place.
            is_shared &= self.events.held_bytes() <= MOST_HELD;
            if is_own && outbox.messages.send(Message::EndOfTurn { is_last: !is_shared }).is_err()
                || !is_shared && number != 0
            {
                return;
            }
            turn += 1;
        }
    }
}
