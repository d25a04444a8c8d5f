//! The command set EventPipe.

use crate::client::{Client, Step};
use crate::version::Quirk;
use dipc_wire::{
    CollectTracing5, CollectTracing6, EventFilter, FilteredProviderConfig, Format, HResult, ProviderConfig,
    Request, SessionId, StreamingSession, encode_error,
};
use std::ops::ControlFlow;

/// The most providers that runtimes take.
const MAX_PROVIDERS: usize = 1000;
/// The greatest level that runtimes take.
const MAX_LEVEL: u32 = 5;

/// What a session asks for, whichever command it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRequest {
    pub(crate) buffer_mb: u32,
    pub(crate) format: Format,
    pub(crate) providers: Vec<FilteredProviderConfig>,
}

impl SessionRequest {
    /// `None` if the request is not for a session whose stream follows.
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

    /// Whether the providers are within a runtime's limits.
    fn has_good_providers(&self) -> bool {
        within_limits(self.providers.iter().map(|filtered| &filtered.provider))
    }

    /// Whether the buffer and the format are within a runtime's limits.
    fn has_good_buffer(&self) -> bool {
        self.buffer_mb != 0 && self.format.name().is_some()
    }
}

pub(super) fn within_limits<'a>(providers: impl ExactSizeIterator<Item = &'a ProviderConfig>) -> bool {
    let count = providers.len();
    let mut providers = providers;
    (1..=MAX_PROVIDERS).contains(&count)
        && providers.all(|provider| !provider.name.is_empty() && provider.level <= MAX_LEVEL)
}

impl Client<'_> {
    /// Starts a session, if what is asked for is within a runtime's limits, and streams it.
    pub(crate) fn collect(&mut self, request: &Request) -> Step {
        let asked = match request {
            Request::CollectTracing5(CollectTracing5::UserEvents(session))
            | Request::CollectTracing6(CollectTracing6::UserEvents(session)) => {
                return self.collect_into_user_events(request, &session.providers);
            }
            Request::CollectTracing6(CollectTracing6::Streaming(session))
                if session.buffer_mode.name().is_none() =>
            {
                return self.refuse_bad_session();
            }
            _ => SessionRequest::new(request),
        };
        let Some(asked) = asked.filter(SessionRequest::has_good_providers) else {
            return self.refuse_bad_session();
        };
        if !asked.has_good_buffer() {
            return if self.has(Quirk::DiesOfBadBuffer) { Ok(self.die()) } else { self.refuse_bad_session() };
        }
        let Some(session) = self.server().open_session(request) else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply_ok(&session.id())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.stream(&session, &asked)
    }

    /// Answers a CollectTracing that cannot be read, or asks for what is out of range.
    pub(crate) fn refuse_bad_session(&mut self) -> Step {
        self.refuse(HResult::BAD_ENCODING, self.has(Quirk::StaysOpenAfterError))
    }

    /// StopTracing: the reply comes when the stream has ended, unless a fault has it otherwise.
    pub(crate) fn stop(&mut self, id: SessionId, replies_first: bool) -> Step {
        if replies_first {
            let step = self.reply_ok(&id)?;
            self.server().stop_session(id);
            return Ok(step);
        }
        self.server().stop_session(id);
        self.reply_ok(&id)
    }
}
