//! The command set EventPipe.

use crate::client::{Client, Step};
use crate::fault::Fault;
use crate::session::Session;
use crate::version::Quirk;
use dipc_wire::{
    CollectTracing5, CollectTracing6, EventFilter, FilteredProviderConfig, Format, HResult, Level,
    ProviderConfig, Request, SessionId, StreamingSession, encode_error,
};
use std::ops::ControlFlow;

/// Maximum number of providers that runtimes accept.
const MAX_PROVIDERS: usize = 1000;

/// The parameters of a session with a stream, from any form of CollectTracing.
#[derive(Debug)]
struct SessionParameters {
    buffer_mb: u32,
    format: Format,
    providers: Vec<FilteredProviderConfig>,
}

impl SessionParameters {
    /// Returns the parameters; `None` if the request does not start a session with a stream.
    fn new(request: &Request) -> Option<Self> {
        let unfiltered = |buffer_mb, format, providers: &[ProviderConfig]| {
            let filter = EventFilter::default();
            let all = providers.iter().map(|provider| FilteredProviderConfig {
                provider: provider.clone(),
                filter: filter.clone(),
            });
            Self { buffer_mb, format, providers: all.collect() }
        };
        let streaming = |session: &StreamingSession| Self {
            buffer_mb: session.buffer_mb,
            format: session.format,
            providers: session.providers.clone(),
        };
        Some(match request {
            Request::CollectTracing1(c) => unfiltered(c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing2(c) => unfiltered(c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing3(c) => unfiltered(c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing4(c) => unfiltered(c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing5(CollectTracing5::Streaming(session)) => streaming(session),
            Request::CollectTracing6(CollectTracing6::Streaming(session)) => streaming(&session.session),
            _ => return None,
        })
    }

    /// Returns whether runtimes accept the providers.
    fn has_valid_providers(&self) -> bool {
        are_valid(self.providers.iter().map(|filtered| &filtered.provider))
    }

    /// Returns whether runtimes accept the buffer's size and the format.
    fn has_valid_buffer(&self) -> bool {
        self.buffer_mb != 0 && self.format.name().is_some()
    }
}

/// Returns whether runtimes accept the providers.
pub(super) fn are_valid<'a>(providers: impl ExactSizeIterator<Item = &'a ProviderConfig>) -> bool {
    let count = providers.len();
    let mut providers = providers;
    (1..=MAX_PROVIDERS).contains(&count)
        && providers.all(|provider| !provider.name.is_empty() && provider.level <= Level::VERBOSE)
}

impl Client<'_> {
    /// Answers CollectTracing: starts a session and sends its stream, if the parameters are valid.
    pub(super) fn start_session(&mut self, request: &Request) -> Step {
        let parameters = match request {
            Request::CollectTracing5(CollectTracing5::UserEvents(session))
            | Request::CollectTracing6(CollectTracing6::UserEvents(session)) => {
                return self.start_user_events_session(request, &session.providers);
            }
            Request::CollectTracing6(CollectTracing6::Streaming(session))
                if session.buffer_mode.name().is_none() =>
            {
                return self.refuse_bad_session();
            }
            _ => SessionParameters::new(request),
        };
        let Some(parameters) = parameters.filter(SessionParameters::has_valid_providers) else {
            return self.refuse_bad_session();
        };
        if !parameters.has_valid_buffer() {
            return if self.has(Quirk::DiesOfBadBuffer) { Ok(self.die()) } else { self.refuse_bad_session() };
        }
        let Some(session) = Session::open(self.server(), request) else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply_ok(&session.id())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.send_stream(&session, &parameters.providers)
    }

    /// Answers a CollectTracing that cannot be decoded, or has a parameter out of range.
    pub(super) fn refuse_bad_session(&mut self) -> Step {
        self.refuse(HResult::BAD_ENCODING, self.has(Quirk::StaysOpenAfterError))
    }

    /// Answers StopTracing: by default when the session's stream has ended.
    pub(super) fn stop_session(&mut self, id: SessionId) -> Step {
        if self.faults().contains(&Fault::StopReplyBeforeStreamEnd) {
            let step = self.reply_ok(&id)?;
            self.server().stop_session(id);
            return Ok(step);
        }
        self.server().stop_session(id);
        self.reply_ok(&id)
    }
}
