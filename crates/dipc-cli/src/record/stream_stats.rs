//! Statistics of a stream while it arrives.

use dipc_collect::RecordStream;
use nettrace::{Events, Loss, Metadata, Source};

use crate::exit::Exit;
use crate::record::stopping_event::{StoppingEvent, StoppingEventSearch};
use crate::render::messages;

/// Counts the events of a stream. A damaged stream is kept like any other.
#[derive(Debug, Default)]
pub(crate) struct StreamStats {
    stream: RecordStream,
    stopping_event: StoppingEventSearch,
}

impl StreamStats {
    /// Statistics that also look for an event.
    pub(crate) fn new(stopping_event: Option<StoppingEvent>) -> Self {
        Self { stopping_event: StoppingEventSearch::new(stopping_event), ..Self::default() }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.stream.feed(bytes);
        self.count();
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self) {
        self.stream.end_of_input();
        self.count();
    }

    fn count(&mut self) {
        let Self { stream, stopping_event } = self;
        stream.for_each_event(|event| stopping_event.add(event));
    }

    /// The search for the stopping event.
    pub(crate) const fn stopping_event(&self) -> &StoppingEventSearch {
        &self.stopping_event
    }

    /// Events so far.
    pub(crate) const fn events(&self) -> u64 {
        self.stream.event_count()
    }

    /// Events that the runtime dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        self.stream.decoder().loss().total()
    }

    /// The number of lost events in words: "at least" where the runtime does not report all of them.
    pub(crate) fn lost_in_words(&self) -> String {
        lost_in_words(self.stream.decoder().loss())
    }

    /// The kinds of events so far.
    pub(crate) fn kinds(&self) -> &[Metadata] {
        self.stream.decoder().metadata()
    }

    /// Returns true if the ended stream has the end that a runtime writes.
    pub(crate) fn is_whole(&self) -> bool {
        self.stream.is_whole()
    }

    /// Warns of damage inside the stream. Returns the exit code for it. The recorder judges a cut.
    pub(crate) fn report_damage(&self) -> Exit {
        report_damage(self.stream.decoder(), self.stream.unreadable(), "its bytes were kept as received")
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
