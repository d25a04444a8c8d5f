//! The six forms of the request for a session: CollectTracing 1 to 6.

use dipc_wire::{
    CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6,
    Command, CommandId, FilteredProviderConfig, ProviderConfig, SessionId, StreamingSession,
    StreamingSession6,
};

use crate::exchange::Exchange;
use crate::{Error, SessionConfig, Target};

/// The number of the newest form.
pub(super) const NEWEST: u8 = 6;

/// Returns the name of a form's command.
pub(super) const fn name(form: u8) -> &'static str {
    let id = match form {
        6 => CommandId::COLLECT_TRACING_6,
        5 => CommandId::COLLECT_TRACING_5,
        4 => CommandId::COLLECT_TRACING_4,
        3 => CommandId::COLLECT_TRACING_3,
        2 => CommandId::COLLECT_TRACING_2,
        _ => CommandId::COLLECT_TRACING_1,
    };
    match id.name() {
        Some(name) => name,
        None => "CollectTracing",
    }
}

impl SessionConfig {
    /// Requests the session in this form, without the options that it lacks; `None` if the runtime does not
    /// know it.
    pub(super) fn try_form(&self, form: u8, target: &Target) -> Result<Option<(SessionId, Exchange)>, Error> {
        fn ask<C: Command<Reply = SessionId>>(
            target: &Target,
            command: &C,
        ) -> Result<Option<(SessionId, Exchange)>, Error> {
            target.try_request(command, target.request_deadline())
        }
        match form {
            6 => ask(target, &self.form_6()),
            5 => ask(target, &self.form_5()),
            4 => ask(target, &self.form_4()),
            3 => ask(target, &self.form_3()),
            2 => ask(target, &self.form_2()),
            _ => ask(target, &self.form_1()),
        }
    }

    fn streaming(&self) -> StreamingSession<&[FilteredProviderConfig]> {
        StreamingSession {
            buffer_mb: self.buffer_mb,
            format: self.format,
            rundown_keyword: self.rundown.keywords(),
            request_stackwalk: self.stackwalk,
            providers: &self.providers,
        }
    }

    fn unfiltered(&self) -> Vec<&ProviderConfig> {
        self.providers.iter().map(|filtered| &filtered.provider).collect()
    }

    /// Returns true if the forms without a rundown keyword request the rundown.
    fn request_rundown(&self) -> bool {
        !self.rundown.keywords().is_empty()
    }

    pub(super) fn form_6(&self) -> CollectTracing6<StreamingSession6<&[FilteredProviderConfig]>> {
        let (session, buffer_mode) = (self.streaming(), self.buffer_mode);
        CollectTracing6::Streaming(StreamingSession6 { session, buffer_mode })
    }

    pub(super) fn form_5(&self) -> CollectTracing5<StreamingSession<&[FilteredProviderConfig]>> {
        CollectTracing5::Streaming(self.streaming())
    }

    pub(super) fn form_4(&self) -> CollectTracing4<Vec<&ProviderConfig>> {
        CollectTracing4 {
            buffer_mb: self.buffer_mb,
            format: self.format,
            rundown_keyword: self.rundown.keywords(),
            request_stackwalk: self.stackwalk,
            providers: self.unfiltered(),
        }
    }

    pub(super) fn form_3(&self) -> CollectTracing3<Vec<&ProviderConfig>> {
        CollectTracing3 {
            buffer_mb: self.buffer_mb,
            format: self.format,
            request_rundown: self.request_rundown(),
            request_stackwalk: self.stackwalk,
            providers: self.unfiltered(),
        }
    }

    pub(super) fn form_2(&self) -> CollectTracing2<Vec<&ProviderConfig>> {
        CollectTracing2 {
            buffer_mb: self.buffer_mb,
            format: self.format,
            request_rundown: self.request_rundown(),
            providers: self.unfiltered(),
        }
    }

    pub(super) fn form_1(&self) -> CollectTracing1<Vec<&ProviderConfig>> {
        CollectTracing1 { buffer_mb: self.buffer_mb, format: self.format, providers: self.unfiltered() }
    }
}
