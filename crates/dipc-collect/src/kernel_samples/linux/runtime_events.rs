//! The events that a runtime writes to the kernel's user_events, in a recording of samples.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::AsFd as _;

use clr_events::Schema;
use dipc_client::dipc_wire::{
    EventExtension, EventFilter, Keywords, ProviderConfig, TracepointConfig, UserEventsProviderConfig,
};
use dipc_client::{Target, UserEvents};
use linux_sampler::{
    ProgramEvent, Record, RecordingWriter, Sampler, Tracepoint, TracepointEvent, UserEvent,
    open_user_events_data,
};
use nettrace::raw::ParsedMetadata;
use nettrace_writer::{Activities, Error, EventKind, EventKindId};

use crate::kernel_samples::SampleError;

/// The fields of the tracepoints to which runtimes write, as they declare them.
const FIELDS: &str = "u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";
/// Maximum number of kinds of events with the same provider and number.
const MAX_VERSIONS: usize = 16;

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
    /// The kinds of events by the index of the provider and the number of the event.
    kinds: HashMap<(usize, u16), Vec<Kind>>,
    hasher: RandomState,
    /// Events whose parts could not be read.
    unreadable: u64,
}

struct Provider {
    config: ProviderConfig,
    /// The name of the tracepoint.
    name: String,
    tracepoint: UserEvent,
}

/// A kind of event.
#[derive(Clone, Copy)]
struct Kind {
    id: EventKindId,
    /// The hash of its description; `None` without one.
    description: Option<u64>,
    /// The fields that are known without the description, which has none.
    schema: Option<&'static Schema>,
}

impl Kind {
    /// Returns true unless the fields are known and end elsewhere than the payload.
    fn may_have(&self, payload: &[u8]) -> bool {
        self.schema.is_none_or(|schema| covers(schema, payload))
    }
}

/// Returns true if the last field ends where the payload does.
fn covers(schema: &Schema, payload: &[u8]) -> bool {
    let mut fields = schema.fields(payload, size_of::<usize>() as u8);
    fields.by_ref().all(|field| field.is_ok()) && fields.rest().is_empty()
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
            let tracepoint = UserEvent::register(&data, &name, FIELDS).map_err(SampleError::Open)?;
            Ok(Provider { config, name, tracepoint })
        };
        let providers =
            providers.into_iter().enumerate().map(register).collect::<Result<_, SampleError>>()?;
        let (kinds, hasher) = (HashMap::new(), RandomState::new());
        Ok(Self { target: target.clone(), data, providers, session: None, kinds, hasher, unreadable: 0 })
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
        let parts = provider.and_then(|provider| Parts::read(provider.tracepoint.tracepoint(), event));
        let Some(parts) = parts else {
            self.unreadable = self.unreadable.saturating_add(1);
            return Ok(());
        };
        let kind = self.kind(recording, event.tracepoint, &parts)?;
        let EventExtension { activity_id, related_activity_id, .. } = parts.extension;
        let activities = Activities { activity: activity_id, related: related_activity_id };
        recording.program_event(record, event, &ProgramEvent { kind, activities, payload: parts.payload })
    }

    /// Returns the kind of an event. Runtimes describe a kind with its first event; later ones have the number
    /// alone, which several versions share.
    fn kind(
        &mut self,
        recording: &mut RecordingWriter,
        provider: usize,
        parts: &Parts<'_>,
    ) -> Result<EventKindId, Error> {
        let kinds = self.kinds.entry((provider, parts.id)).or_default();
        if let Some(description) = parts.extension.metadata {
            let hash = self.hasher.hash_one(description);
            if let Some(kind) = kinds.iter().find(|kind| kind.description == Some(hash)) {
                return Ok(kind.id);
            }
            if let Some(ParsedMetadata { metadata, .. }) = ParsedMetadata::of_definition(description) {
                let id = recording.define_as(&metadata)?;
                let schema = Schema::of_kind(&metadata).filter(|schema| schema.overrides(&metadata));
                if kinds.len() < MAX_VERSIONS {
                    kinds.push(Kind { id, description: Some(hash), schema });
                }
                return Ok(id);
            }
        }
        let known = kinds.iter().rev().find(|kind| kind.may_have(parts.payload));
        if let Some(kind) = known.or_else(|| kinds.last().filter(|kind| kind.description.is_some())) {
            return Ok(kind.id);
        }
        // The kernel has lost the description.
        let name = self.providers.get(provider).map_or("", |provider| &provider.config.name);
        let versions =
            clr_events::Provider::from_name(name).map_or(&[][..], |of| Schema::versions(of, parts.id.into()));
        let schema = versions.iter().rev().find(|schema| covers(schema, parts.payload));
        let version = schema.map_or(0, |schema| schema.version.into());
        let kind = EventKind::new(name, parts.id.into(), "", &[]).with_version(version);
        let id = recording.define(&kind)?;
        if kinds.len() < MAX_VERSIONS {
            kinds.push(Kind { id, description: None, schema });
        }
        Ok(id)
    }
}

impl fmt::Debug for RuntimeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<_> = self.providers.iter().map(|provider| &provider.config.name).collect();
        f.debug_struct("RuntimeEvents").field("providers", &providers).finish_non_exhaustive()
    }
}

/// The parts of an event that a runtime writes.
struct Parts<'a> {
    id: u16,
    extension: EventExtension<'a>,
    payload: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(tracepoint: &Tracepoint, event: &TracepointEvent<'a>) -> Option<Self> {
        let value = |name| tracepoint.value(name, event.data);
        let id = u16::from_ne_bytes(value("event_id")?.try_into().ok()?);
        let extension = EventExtension::from_bytes(value("extension")?).ok()?;
        Some(Self { id, extension, payload: value("payload")? })
    }
}
