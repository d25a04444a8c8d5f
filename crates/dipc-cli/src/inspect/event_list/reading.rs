//! Reading a recording for a list of its events.

use nettrace::{Error, Event, Events, Source, TimeOrder};
use nettrace_edit::{Filter, RecordedRange};

use super::lines::{Formatter, Lines, Writer};
use crate::exit::{Failure, Outcome};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::recording::Origin;

/// The approximate number of events in a part of a recording in time order.
const PART: usize = 1024;

/// A source of events in time or file order.
pub(super) trait Ordered {
    type Source: Source;
    /// True if no event is older than its predecessor.
    const IN_TIME_ORDER: bool;

    /// Calls `each` with the events of the next part. Returns their number; `None` at the end.
    fn read_part(&mut self, each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error>;
    /// Skips the next part.
    fn pass_part(&mut self) -> Result<Option<u64>, Error>;
    /// The memory of held-back events, in bytes.
    fn held_bytes(&self) -> u64;
    fn reader(&self) -> &Events<Self::Source>;
}

impl<S: Source> Ordered for Events<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = false;

    fn read_part(&mut self, each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error> {
        self.read_part(each)
    }

    fn pass_part(&mut self) -> Result<Option<u64>, Error> {
        self.read_part(|_| ())
    }

    fn held_bytes(&self) -> u64 {
        0
    }

    fn reader(&self) -> &Events<S> {
        self
    }
}

impl<S: Source> Ordered for TimeOrder<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = true;

    fn read_part(&mut self, each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error> {
        self.read_part(PART, each)
    }

    fn pass_part(&mut self) -> Result<Option<u64>, Error> {
        self.pass_part(PART)
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes()
    }

    fn reader(&self) -> &Events<S> {
        self.events()
    }
}

/// A reader of a recording that formats its events as lines.
pub(super) struct Reading<'s, O> {
    pub(super) events: O,
    pub(super) origin: Origin,
    pub(super) filter: Filter,
    pub(super) formatter: Formatter<'s>,
    /// The number of events that may still be shown.
    pub(super) left: u64,
    pub(super) state: State,
}

/// The progress of a reading.
#[derive(Debug)]
pub(super) enum State {
    Reading,
    /// No more events will be shown.
    Over,
    /// No more events are wanted, or can be written.
    Stopped,
    /// The bytes that follow cannot be read.
    Failed(Error),
}

impl<O: Ordered> Reading<'_, O> {
    /// Returns true if there may be more events.
    pub(super) const fn goes_on(&self) -> bool {
        matches!(self.state, State::Reading)
    }

    /// Formats the events of a part as lines. `write` is called with full batches, and returns whether more
    /// are wanted. Returns the number of events in the part.
    pub(super) fn read_part(&mut self, lines: &mut Lines, mut write: impl FnMut(&mut Lines) -> bool) -> u64 {
        let Self { events, filter, formatter, left, state, .. } = self;
        let outcome = events.read_part(|event| {
            if !matches!(state, State::Reading) {
                return;
            }
            if O::IN_TIME_ORDER && filter.is_over(&event) {
                *state = State::Over;
                return;
            }
            // Not an event of the process.
            if !filter.admits(&event) || RecordedRange::of(&event).is_some() {
                return;
            }
            formatter.push(lines, &event);
            *left = left.saturating_sub(1);
            if *left == 0 || lines.is_full() && !write(lines) {
                *state = State::Stopped;
            }
        });
        self.note(outcome)
    }

    /// Skips a part without formatting its events. Returns their number.
    pub(super) fn pass_part(&mut self) -> u64 {
        let outcome = self.events.pass_part();
        self.note(outcome)
    }

    fn note(&mut self, outcome: Result<Option<u64>, Error>) -> u64 {
        match outcome {
            Ok(Some(count)) => return count,
            Ok(None) => self.state = State::Over,
            Err(error) => self.state = State::Failed(error),
        }
        0
    }

    /// Reads the whole recording.
    pub(super) fn read_alone(&mut self, writer: &mut Writer<'_>) -> Result<(), Failure> {
        if self.left == 0 {
            self.state = State::Stopped;
        }
        let mut lines = Lines::default();
        let mut written = Ok(());
        while self.goes_on() {
            self.read_part(&mut lines, |lines| {
                written = writer.write(lines);
                written.is_ok()
            });
        }
        written?;
        writer.write(&mut lines)
    }

    /// Warns of losses and damage. Returns the exit code for them.
    pub(super) fn finish(mut self) -> Outcome {
        let reader = self.events.reader();
        match &self.state {
            State::Failed(error) => return Err(self.origin.failed(error)),
            State::Over => warn_of_misses(&self.filter.misses(reader)),
            // The part not read cannot be judged, but damage found so far is reported.
            State::Reading | State::Stopped => {}
        }
        Ok(self.origin.report_damage(reader))
    }
}
