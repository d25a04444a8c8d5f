//! Reading a stream while it arrives.

use std::time::Duration;

use nettrace::{Decoder, Error, Event, Events, PushSource, TimeOrder, TraceInfo};

/// The events of a stream while it arrives, in time order as far as possible without waiting. The caller
/// reads the bytes, of a [`Session`](crate::Session) for example. An error ends the events, and is kept.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let simulated = dipc_sim::Runtime::builder().rate(1000).start_in(folder.path())?;
/// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
/// use std::time::Duration;
/// use dipc_client::{Deadline, LiveReader, Providers, SessionConfig};
///
/// let mut session = target.start_session(&SessionConfig::new(Providers::parse("Dipc-Simulated")?))?;
/// let (mut reader, mut buffer, mut count) = (LiveReader::new(Duration::from_millis(10)), [0; 4096], 0);
/// while count < 20 {
///     let bytes = session.read(&mut buffer, Deadline::after(Duration::from_secs(60)))?;
///     reader.feed(&buffer[..bytes]);
///     reader.for_each(|event| count += usize::from(event.provider() == "Dipc-Simulated"));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveReader {
    events: TimeOrder<PushSource>,
    /// True if events wait for older ones without a time limit.
    is_whole_order: bool,
    unreadable: Option<Error>,
}

impl LiveReader {
    /// Creates the reader of a stream from its first byte. An event is held back for older ones of other
    /// threads for `max_delay` at most.
    pub fn new(max_delay: Duration) -> Self {
        let events = Decoder::new().in_time_order().with_max_delay(max_delay);
        Self { events, is_whole_order: false, unreadable: None }
    }

    /// Creates the reader of a stream in which events may wait for older events until the stream ends.
    pub fn in_whole_order() -> Self {
        Self { events: Decoder::new().in_time_order(), is_whole_order: true, unreadable: None }
    }

    /// Takes the next bytes of the stream. After an error they are dropped, because nothing would read them.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.unreadable.is_some() {
            return;
        }
        self.events.feed(bytes);
        // The next event reports an error in the header.
        let _ = self.events.read_header();
    }

    /// Releases all events that have arrived, because the stream is silent; not if they must be in complete
    /// order.
    pub fn release(&mut self) {
        if !self.is_whole_order {
            self.events.release();
        }
    }

    /// Ends the stream.
    pub fn end_of_input(&mut self) {
        self.events.end_of_input();
    }

    /// Returns the next event; `None` until more bytes arrive, and after an error.
    #[allow(clippy::should_implement_trait, reason = "the event borrows from the reader")]
    pub fn next(&mut self) -> Option<Event<'_>> {
        if self.unreadable.is_some() {
            return None;
        }
        match self.events.next() {
            Ok(event) => event,
            Err(error) => {
                self.unreadable = Some(error);
                None
            }
        }
    }

    /// Calls `each` with the events that are ready.
    pub fn for_each(&mut self, mut each: impl FnMut(&Event<'_>)) {
        while let Some(event) = self.next() {
            each(&event);
        }
    }

    /// The stream's header, once it has arrived, which is before the first event.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.events.info()
    }

    /// The reader of the stream.
    pub const fn events(&self) -> &Events<PushSource> {
        self.events.events()
    }

    /// The error that made the stream unreadable.
    pub const fn unreadable(&self) -> Option<&Error> {
        self.unreadable.as_ref()
    }

    /// Returns true if the ended stream has the end that a runtime writes.
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.events().truncated_at().is_none()
    }
}
