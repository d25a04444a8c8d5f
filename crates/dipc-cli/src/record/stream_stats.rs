//! Statistics of a stream while it arrives.

use nettrace::{Decoder, Event, Events, Loss, Metadata, Source};

use crate::exit::Exit;
use crate::record::stopping_event::StoppingEvent;
use crate::render::messages;

/// Counts the events of a stream. A damaged stream is kept like any other.
#[derive(Debug, Default)]
pub(crate) struct StreamStats {
    decoder: Decoder,
    events: u64,
    stopping_event: Option<StoppingEvent>,
    /// The first event that is the stopping event.
    stopped_by: Option<String>,
    /// The error that made the stream unreadable.
    unreadable: Option<nettrace::Error>,
}

impl StreamStats {
    /// Statistics that also look for an event.
    pub(crate) fn new(stopping_event: Option<StoppingEvent>) -> Self {
        Self { stopping_event, ..Self::default() }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.unreadable.is_none() {
            self.decoder.feed(bytes);
            self.count();
        }
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self) {
        if self.unreadable.is_none() {
            self.decoder.end_of_input();
            self.count();
        }
    }

    fn count(&mut self) {
        let (events, stopped_by) = (&mut self.events, &mut self.stopped_by);
        let stopping_event = self.stopping_event.as_ref();
        let look = |event: Event<'_>| {
            *events += 1;
            if let Some(stopping_event) = stopping_event
                && stopped_by.is_none()
            {
                *stopped_by = stopping_event.name_if_matches(&event);
            }
        };
        self.unreadable = self.decoder.for_each(look).err();
    }

    /// The name of the stopping event, once it was read.
    pub(crate) fn stopped_by(&self) -> Option<&str> {
        self.stopped_by.as_deref()
    }

    /// Events so far.
    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    /// Events that the runtime dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        self.decoder.loss().total()
    }

    /// The number of lost events in words: "at least" where the runtime does not report all of them.
    pub(crate) fn lost_in_words(&self) -> String {
        lost_in_words(self.decoder.loss())
    }

    /// The kinds of events so far.
    pub(crate) fn kinds(&self) -> &[Metadata] {
        self.decoder.metadata()
    }

    /// Returns true if the ended stream has the end that a runtime writes.
    pub(crate) fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.decoder.truncated_at().is_none()
    }

    /// Warns of damage inside the stream. Returns the exit code for it. The recorder judges a cut.
    pub(crate) fn report_damage(&self) -> Exit {
        report_damage(&self.decoder, self.unreadable.as_ref(), "its bytes were kept as received")
    }
}

/// The number of lost events in words: "at least" where the runtime does not report all of them.
pub(crate) fn lost_in_words(loss: &Loss) -> String {
    let at_least = if loss.is_lower_bound() { "at least " } else { "" };
    format!("{at_least}{}", loss.total())
}

/// Warns that events were lost; `lost` is their number in words.
pub(crate) fn warn_of_loss(lost: &str) {
    messages::warning(format_args!("the runtime lost {lost} events"));
    messages::help("a larger --buffersize, or fewer providers and keywords, lose less");
}

/// Warns of damage inside a stream, and of the error that ended its reading. Returns the exit code for it.
pub(crate) fn report_damage<S: Source>(
    events: &Events<S>,
    unreadable: Option<&nettrace::Error>,
    done: &str,
) -> Exit {
    if let Some(error) = unreadable {
        messages::warning(format_args!("the stream cannot be read: {error}; {done}"));
        return Exit::Incomplete;
    }
    let Some(damage) = events.damage().first() else { return Exit::Done };
    messages::warning(format_args!("the stream is damaged at {damage}; {done}"));
    Exit::Incomplete
}
