//! The counters of a process, from a session that is asked for again with the settings of other clients.
//!
//! All clients of a process's Meters share one session of them, with the settings of the first. A client that
//! asks for other settings is refused, and told those that it has to ask for.

use std::time::Duration;

use clr_counters::{ProviderRequest, SessionSettings, SharedSettings};
use dipc_client::{LiveReader, Rundown, SessionConfig, Target};
use nettrace::{Event, TraceInfo};

use crate::live_stream::{EventConsumer, LiveStream};
use crate::observer::{Note, Observer};
use crate::session::{self, StartError};
use crate::silence::{Silence, SilenceGuard};
use crate::stream::{self, Limits, StreamEnd};

/// The default size of the runtime's buffer in MB, as dotnet-counters asks for it.
const BUFFER_MB: u32 = 256;
/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The session to ask for.
#[derive(Debug, Clone)]
pub struct CountersRequest {
    settings: SessionSettings,
    buffer_mb: u32,
    needs_statuses: bool,
    is_renewed: bool,
}

impl CountersRequest {
    /// Creates a request with these settings, and with 256 MB for the runtime's buffer.
    pub const fn new(settings: SessionSettings) -> Self {
        Self { settings, buffer_mb: BUFFER_MB, needs_statuses: false, is_renewed: true }
    }

    /// Sets the size of the runtime's buffer in MB.
    #[must_use]
    pub fn with_buffer_mb(self, buffer_mb: u32) -> Self {
        Self { buffer_mb, ..self }
    }

    /// Sets whether the statuses of requests are needed: then they are requested again, as counters are, if
    /// the end of another session has stopped them.
    #[must_use]
    pub fn with_statuses(self, needs_statuses: bool) -> Self {
        Self { needs_statuses, ..self }
    }

    /// Does not request silent counters again: for sessions of seconds.
    #[must_use]
    pub fn without_renewal(self) -> Self {
        Self { is_renewed: false, ..self }
    }
}

/// The reader of the events of a process's counters.
pub trait CounterReader {
    /// The error of a reader that cannot go on.
    type Error: From<StartError>;

    /// Returns the requests of a session with these settings.
    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest>;

    /// Called when a session has begun, and again if another one takes its place: what an earlier session has
    /// sent does not count, and numbers of series belong to one session. Returns the limits of the session.
    fn begin(&mut self, settings: &SessionSettings) -> Limits;

    /// Takes the events that are ready. With `is_end`, no more follow.
    ///
    /// # Errors
    /// The reader's own, which end the session.
    fn read(&mut self, events: &mut CounterEvents<'_>, is_end: bool) -> Result<(), Self::Error>;

    /// Called when events have fallen silent while their session runs. They were requested again.
    fn report(&mut self, silence: Silence) {
        let _ = silence;
    }

    /// Returns true once the reader is satisfied, which stops the session.
    fn is_satisfied(&self) -> bool;
}

/// The events of a session of counters that are ready.
#[derive(Debug)]
pub struct CounterEvents<'s> {
    reader: &'s mut LiveReader,
    state: Option<&'s mut SessionState>,
}

impl<'s> CounterEvents<'s> {
    /// Creates the events of a stream without a session, such as a recording.
    pub const fn new(reader: &'s mut LiveReader) -> Self {
        Self { reader, state: None }
    }

    /// Returns the next event; `None` until more bytes arrive.
    #[allow(clippy::should_implement_trait, reason = "the event borrows from the reader")]
    pub fn next(&mut self) -> Option<Event<'_>> {
        let event = self.reader.next()?;
        if let Some(state) = &mut self.state {
            state.add(&event);
        }
        Some(event)
    }

    /// Returns true if the shared session of the process's Meters has other settings, which stops this one.
    pub fn is_refused(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.refusal.is_some())
    }

    /// The reader of the stream, which knows its header and its losses.
    pub const fn reader(&self) -> &LiveReader {
        self.reader
    }

    /// The stream's header, once it has arrived.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.reader.info()
    }
}

/// The outcome of the last session of a process's counters.
#[derive(Debug)]
#[non_exhaustive]
pub struct CollectedCounters {
    /// The reader of its stream, which knows the losses and the damage.
    pub reader: LiveReader,
    /// The end of its stream.
    pub end: StreamEnd,
    /// True if the shared session of the process's Meters had other settings again.
    pub is_refused: bool,
}

/// Passes the events of a process's counters to `reader` until the session ends. Blocks.
///
/// If the shared session of the process's Meters has other settings, the session is stopped and another one
/// asked for, once, with those settings ([`Note::SettingsAdopted`]). Counters that fall silent while the
/// session runs are requested again. `is_over` gives up a session that has not begun.
///
/// # Errors
/// If a session does not begin, and the errors of the reader. Every other ending is a result.
pub fn collect<R: CounterReader>(
    target: &Target,
    mut request: CountersRequest,
    counters: &mut R,
    is_over: impl Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<CollectedCounters, R::Error> {
    let first = collect_once(target, &request, counters, &is_over, observer)?;
    let Some(expected) = first.refusal else { return Ok(first.into_collected()) };
    request.settings = request.settings.adopt(&expected);
    observer.note(Note::SettingsAdopted { settings: request.settings.clone() });
    collect_once(target, &request, counters, &is_over, observer).map(Reading::into_collected)
}

/// The outcome of a session.
struct Reading {
    reader: LiveReader,
    end: StreamEnd,
    refusal: Option<SharedSettings>,
}

impl Reading {
    fn into_collected(self) -> CollectedCounters {
        CollectedCounters { reader: self.reader, end: self.end, is_refused: self.refusal.is_some() }
    }
}

fn collect_once<R: CounterReader>(
    target: &Target,
    request: &CountersRequest,
    counters: &mut R,
    is_over: impl Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Reading, R::Error> {
    let config = request.config(counters, &request.settings);
    let session = session::start(target, &config, is_over, observer)?;
    let limits = counters.begin(&request.settings);
    let mut state = SessionState {
        client: request.settings.client.clone(),
        silence: SilenceGuard::new(request.settings.interval),
        refusal: None,
    };
    if request.is_renewed {
        state.silence.renew_from(target);
    }
    let mut stream =
        LiveStream::new(LiveReader::new(MAX_DELAY), SessionCounters { request, counters, state });
    let end = stream::run(session, &mut stream, &limits, observer)?;
    let (reader, counters) = stream.into_parts();
    Ok(Reading { reader, end, refusal: counters.state.refusal })
}

impl CountersRequest {
    /// The configuration of a session.
    fn config(&self, counters: &impl CounterReader, settings: &SessionSettings) -> SessionConfig {
        SessionConfig::new(counters.requests(settings))
            .with_buffer_mb(self.buffer_mb)
            .with_rundown(Rundown::Off)
    }
}

/// The state of a session.
#[derive(Debug)]
struct SessionState {
    /// This client's name in the Meters' shared session.
    client: String,
    silence: SilenceGuard,
    /// The settings of the shared session, if they differ from this client's.
    refusal: Option<SharedSettings>,
}

impl SessionState {
    fn add(&mut self, event: &Event<'_>) {
        self.silence.add(event);
        self.refusal = self.refusal.or_else(|| SharedSettings::of_refusal(event, &self.client));
    }
}

/// The events of a session, on their way to the reader.
struct SessionCounters<'c, R> {
    request: &'c CountersRequest,
    counters: &'c mut R,
    state: SessionState,
}

impl<R: CounterReader> EventConsumer for SessionCounters<'_, R> {
    type Error = R::Error;

    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), R::Error> {
        let Self { request, counters, state } = self;
        counters.read(&mut CounterEvents { reader, state: Some(state) }, is_end)?;
        if is_end {
            return Ok(());
        }
        // A client of the shared session must not have two sessions.
        let settings = || request.settings.clone().with_unique_client();
        let config = || request.config(*counters, &settings());
        for silence in state.silence.check(request.needs_statuses, config) {
            counters.report(silence);
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.state.refusal.is_some() || self.counters.is_satisfied()
    }
}
