//! The events that a runtime writes to the kernel's user_events, in a recording of samples.

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd as _;

use dipc_client::dipc_wire::{
    EventFilter, Keywords, ProviderConfig, RuntimeEvent, TracepointConfig, UserEventsProviderConfig,
};
use dipc_client::{Target, UserEvents};
use linux_sampler::{
    FieldPlace, ProgramEvent, Record, RecordingWriter, Sampler, Tracepoint, TracepointEvent, UserEvent,
    open_user_events_data,
};
use nettrace_writer::{Activities, Error};

use super::event_kinds::{EventKinds, KindPlace};
use crate::kernel_samples::SampleError;

/// A session whose events the runtime writes to the kernel. It ends with the sampler that reads them.
///
/// Each provider has a tracepoint of its own, of a name that no other session has. The tracepoints are
/// registered and read before the session begins: a runtime describes a kind of event once, even while nobody
/// reads its tracepoint.
pub struct RuntimeEvents {
    target: Target,
    data: File,
    providers: Vec<Provider>,
    /// `None` before the session has begun, and once it has ended.
    session: Option<UserEvents>,
    kinds: EventKinds,
    /// Events whose parts could not be read.
    unreadable: u64,
}

struct Provider {
    config: ProviderConfig,
    /// The name of the tracepoint.
    name: String,
    tracepoint: UserEvent,
    /// The places of [`RuntimeEvent::FIELDS`] in its events.
    fields: [Option<FieldPlace>; 3],
}

impl Provider {
    fn read<'a>(&self, event: &TracepointEvent<'a>) -> Option<RuntimeEvent<'a>> {
        match self.fields.map(|place| place?.value(event.data)) {
            [Some(id), Some(extension), Some(payload)] => {
                RuntimeEvent::from_fields([id, extension, payload]).ok()
            }
            _ => None,
        }
    }
}

impl RuntimeEvents {
    /// Prepares a session with these providers.
    ///
    /// # Errors
    /// If the kernel has no user_events, or this user may not use them.
    pub fn prepare(target: &Target, providers: Vec<ProviderConfig>) -> Result<Self, SampleError> {
        let data = open_user_events_data().map_err(SampleError::Open)?;
        let (own_id, now) = (std::process::id(), Sampler::now_ns());
        let register = |(index, config)| {
            let name = format!("dipc_{own_id}_{now:x}_{index}");
            let tracepoint = UserEvent::register(&data, &name, RuntimeEvent::DECLARATION);
            let tracepoint = tracepoint.map_err(SampleError::Open)?;
            let fields = RuntimeEvent::FIELDS.map(|name| tracepoint.tracepoint().field(name));
            Ok(Provider { config, name, tracepoint, fields })
        };
        let providers =
            providers.into_iter().enumerate().map(register).collect::<Result<_, SampleError>>()?;
        let (target, kinds) = (target.clone(), EventKinds::default());
        Ok(Self { target, data, providers, session: None, kinds, unreadable: 0 })
    }

    /// Starts the session.
    ///
    /// # Errors
    /// If the runtime refuses it: it needs .NET 10.
    pub(super) fn begin(&mut self) -> Result<(), dipc_client::Error> {
        let config = |provider: &Provider| UserEventsProviderConfig {
            provider: provider.config.clone(),
            filter: EventFilter::default(),
            tracepoints: TracepointConfig { default_tracepoint: provider.name.clone(), sets: Vec::new() },
        };
        let configs = self.providers.iter().map(config).collect();
        let session = self.target.start_user_events_session(configs, Keywords::NONE, self.data.as_fd())?;
        self.session = Some(session);
        Ok(())
    }

    /// The tracepoints, in the order of the events' indexes.
    pub(super) fn tracepoints(&self) -> Vec<Tracepoint> {
        self.providers.iter().map(|provider| provider.tracepoint.tracepoint().clone()).collect()
    }

    /// The events whose parts could not be read.
    pub(super) const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Ends the session.
    ///
    /// # Errors
    /// If the runtime does not answer, as one that has ended.
    pub(super) fn stop(&mut self) -> Result<(), dipc_client::Error> {
        self.session.take().map_or(Ok(()), UserEvents::stop)
    }

    /// Adds an event to the recording.
    pub(super) fn add(
        &mut self,
        recording: &mut RecordingWriter,
        record: &Record<'_>,
        event: &TracepointEvent<'_>,
    ) -> Result<(), Error> {
        let provider = self.providers.get(event.tracepoint);
        let Some((provider, written)) = provider.and_then(|provider| Some((provider, provider.read(event)?)))
        else {
            self.unreadable = self.unreadable.saturating_add(1);
            return Ok(());
        };
        let RuntimeEvent { id, extension, payload, .. } = written;
        let place = KindPlace { provider: event.tracepoint, name: &provider.config.name, event: id };
        let kind = self.kinds.of(recording, place, extension.metadata, payload)?;
        let activities =
            Activities { activity: extension.activity_id, related: extension.related_activity_id };
        recording.program_event(record, event, &ProgramEvent { kind, activities, payload })
    }
}

impl fmt::Debug for RuntimeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<_> = self.providers.iter().map(|provider| &provider.config.name).collect();
        f.debug_struct("RuntimeEvents").field("providers", &providers).finish_non_exhaustive()
    }
}
