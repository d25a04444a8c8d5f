//! Providers of events, their filters and their tracepoints.

use crate::payload::payload;
use crate::{Keywords, Level};
use alloc::string::String;
use alloc::vec::Vec;

payload! {
    /// A provider of events, with keywords and level.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 8 | u64 | [`Keywords`] |
    /// | 8 | 4 | u32 | [`Level`], 0 to 5 |
    /// | 12 | … | string | name, not empty |
    /// | … | … | string | arguments, `Name=value;…` |
    ///
    /// ```
    /// use dipc_wire::{Keywords, Level, ProviderConfig};
    ///
    /// let counters = ProviderConfig {
    ///     name: "System.Runtime",
    ///     keywords: Keywords::NONE,
    ///     level: Level::INFORMATIONAL,
    ///     arguments: "EventCounterIntervalSec=1",
    /// };
    /// assert_eq!((counters.level.0, counters.keywords.0), (4, 0));
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing".
    pub struct ProviderConfig<S = String> {
        /// The enabled groups of events.
        pub keywords: Keywords = "keywords",
        /// The enabled level.
        pub level: Level = "level",
        /// The provider's name.
        pub name: S = "provider name",
        /// Arguments for the provider, empty for none.
        pub arguments: S = "provider arguments",
    }
}

payload! {
    /// A filter of the events that pass a provider's keywords and level.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 1 | bool | enable: the ids are enabled (1) or disabled (0) |
    /// | 1 | … | array of u32 | event ids |
    ///
    /// The default disables no id and so passes all events. "Or length = 0" in the text does not mean that it
    /// can be left out.
    ///
    /// ```
    /// use dipc_wire::{EventFilter, FilteredProviderConfig, Keywords, Level, ProviderConfig};
    ///
    /// let runtime = ProviderConfig {
    ///     name: "Microsoft-Windows-DotNETRuntime",
    ///     keywords: Keywords::GC,
    ///     level: Level::INFORMATIONAL,
    ///     arguments: "",
    /// };
    /// // GCStart and GCEnd only.
    /// let filter = EventFilter { enable: true, ids: [1_u32, 2] };
    /// let provider = FilteredProviderConfig { provider: runtime.clone(), filter };
    /// assert_eq!(provider.filter.ids.len(), 2);
    /// // Without a filter every event passes.
    /// assert!(FilteredProviderConfig::<&str, Vec<u32>>::from(runtime).filter.ids.is_empty());
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5"; the official tools always send it.
    pub struct EventFilter<I = Vec<u32>> {
        /// True if the ids are the enabled ones; otherwise they are the disabled ones.
        pub enable: bool = "filter enable",
        /// The event ids.
        pub ids: I = "filtered event ids",
    }
}

payload! {
    /// A provider of events, with a filter.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | | [`ProviderConfig`] |
    /// | … | … | | [`EventFilter`] |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5", `streaming_provider_config`.
    pub struct FilteredProviderConfig<S = String, I = Vec<u32>> {
        /// The provider.
        pub provider: ProviderConfig<S> = "provider",
        /// The filter of its events.
        pub filter: EventFilter<I> = "event filter",
    }
}

impl<S> From<ProviderConfig<S>> for FilteredProviderConfig<S> {
    /// The provider with a filter that passes every event.
    fn from(provider: ProviderConfig<S>) -> Self {
        Self { provider, filter: EventFilter::default() }
    }
}

payload! {
    /// Events that go to a tracepoint of their own.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | string | name of the tracepoint |
    /// | … | … | array of u32 | event ids |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5", `tracepoint_set`.
    pub struct TracepointSet<S = String, I = Vec<u32>> {
        /// The tracepoint.
        pub tracepoint: S = "tracepoint name",
        /// The ids of the events; the sets of a provider must not share an id.
        pub ids: I = "tracepoint event ids",
    }
}

payload! {
    /// The tracepoints of a provider's events.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | string | name of the tracepoint of all events that are in no set, empty for none |
    /// | … | … | array | [`TracepointSet`]s |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5", `tracepoint_config`: not both may be empty.
    pub struct TracepointConfig<S = String, T = Vec<TracepointSet<S>>> {
        /// The tracepoint of events that are in none of the sets; empty for none.
        pub default_tracepoint: S = "default tracepoint name",
        /// The tracepoints of single events.
        pub sets: T = "tracepoint sets",
    }
}

payload! {
    /// A provider of events, with a filter and tracepoints.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | | [`ProviderConfig`] |
    /// | … | … | | [`EventFilter`] |
    /// | … | … | | [`TracepointConfig`] |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5", `user_events_provider_config`.
    pub struct UserEventsProviderConfig<S = String, I = Vec<u32>, T = Vec<TracepointSet<S>>> {
        /// The provider.
        pub provider: ProviderConfig<S> = "provider",
        /// The filter of its events.
        pub filter: EventFilter<I> = "event filter",
        /// The tracepoints of its events.
        pub tracepoints: TracepointConfig<S, T> = "tracepoints",
    }
}
