//! The kinds of synthetic events.

use dipc_wire::{FilteredProviderConfig, Level};
use nettrace_synth::{Field, Type, Value, payload};

/// A kind of synthetic event.
pub(super) struct EventKind {
    pub(super) provider: &'static str,
    pub(super) event_id: u32,
    pub(super) name: &'static str,
    pub(super) level: Level,
    pub(super) keywords: u64,
    /// True if each event has a stack.
    pub(super) stack: bool,
    pub(super) fields: fn() -> Vec<Field>,
    pub(super) payload: fn(thread: u64, number: u64) -> Vec<u8>,
}

/// All kinds; a session has the kinds that its providers enable.
pub(super) const EVENT_KINDS: &[EventKind] = &[
    EventKind {
        provider: "Dipc-Simulated",
        event_id: 1,
        name: "Tick",
        level: Level::INFORMATIONAL,
        keywords: 0,
        stack: false,
        fields: || vec![Field::new("thread", Type::Int32), Field::new("number", Type::Int64)],
        payload: |thread, number| {
            let thread = i32::try_from(thread).unwrap_or_default();
            payload(&[Value::Int32(thread), Value::Int64(number.cast_signed())])
        },
    },
    // A sample of managed code, as of the runtime's own sampler.
    EventKind {
        provider: "Microsoft-DotNETCore-SampleProfiler",
        event_id: 0,
        name: "",
        level: Level::LOG_ALWAYS,
        keywords: 0,
        stack: true,
        fields: Vec::new,
        payload: |_, _| 2_u32.to_le_bytes().to_vec(),
    },
];

impl EventKind {
    /// Returns true if a provider's configuration enables events of this kind.
    pub(super) fn is_enabled_by(&self, filtered: &FilteredProviderConfig) -> bool {
        let FilteredProviderConfig { provider, filter } = filtered;
        provider.name.eq_ignore_ascii_case(self.provider)
            && provider.level.includes(self.level)
            && (self.keywords == 0 || self.keywords & provider.keywords.0 != 0)
            && filter.enable == filter.ids.contains(&self.event_id)
    }
}
