//! Filters of events.

mod inventory;

use clr_events::{EventName, Glob, Provider, Schema, event_name, is_named_by_kind};
use nettrace::{Event, Events, Metadata, MetadataMap, RelativeTime, Source};

use inventory::Inventory;
pub use inventory::UnmatchedCriterion;

/// The values of filters. Empty ones admit everything.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace::RelativeTime;
/// use nettrace_edit::{Criteria, Slice};
/// use std::time::Duration;
///
/// let seconds = |seconds| Some(RelativeTime::after_start(Duration::from_secs(seconds)));
/// let criteria = Criteria::default().with_from(seconds(2)).with_to(seconds(5));
/// let copied = nettrace_edit::copy(&recording[..], &mut Vec::new(), &mut Slice::new(criteria))?;
/// assert_eq!(copied.kept, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Criteria {
    /// Names of providers.
    pub providers: Vec<Glob>,
    /// Names or numbers of events.
    pub events: Vec<EventMatch>,
    /// Ids of threads.
    pub threads: Vec<u64>,
    /// Ids of processes.
    pub processes: Vec<u64>,
    /// The first time.
    pub from: Option<RelativeTime>,
    /// The time after the last.
    pub to: Option<RelativeTime>,
}

/// A filter of kinds of events.
///
/// ```
/// use nettrace_edit::{EventMatch, Glob};
///
/// assert_eq!(EventMatch::new("80"), EventMatch::Id(80));
/// assert_eq!(EventMatch::new("GC/*"), EventMatch::Name(Glob::new("GC/*")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "events have a number and a name")]
pub enum EventMatch {
    /// The number of an event.
    Id(u32),
    /// The name of an event, with or without its slash.
    Name(Glob),
}

/// A filter of events, which also keeps an inventory of them to explain criteria that match nothing.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::{Criteria, Filter, UnmatchedCriterion};
///
/// let mut filter = Filter::new(Criteria::default().with_threads(vec![9]));
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// let mut admitted = 0;
/// events.for_each(|event| admitted += usize::from(filter.admits(&event)))?;
/// // The recording has only events of thread 8.
/// let misses = filter.misses(&events);
/// assert!(admitted == 0 && matches!(&misses[..], [UnmatchedCriterion::Thread { wanted: 9, .. }]), "{misses:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Filter {
    tracked: TrackedCriteria,
    /// By metadata index: whether provider and name are admitted, once known.
    kinds: MetadataMap<bool>,
    admitted: u64,
    /// The events that were read although all from there on are rejected.
    beyond: Inventory,
}

impl Filter {
    /// Creates a filter.
    pub fn new(criteria: Criteria) -> Self {
        Self {
            tracked: TrackedCriteria::new(criteria),
            kinds: MetadataMap::default(),
            admitted: 0,
            beyond: Inventory::default(),
        }
    }

    /// Returns true if the event is shown. One matching value per filter suffices; all filters have to match.
    #[inline]
    pub fn admits(&mut self, event: &Event<'_>) -> bool {
        self.admits_all() || self.admits_by_criteria(event)
    }

    /// Returns true if the criteria are empty.
    pub const fn admits_all(&self) -> bool {
        self.tracked.inventory.is_none()
    }

    fn admits_by_criteria(&mut self, event: &Event<'_>) -> bool {
        self.tracked.add(event);
        let is_admitted = self.tracked.criteria.admits_time_and_thread(event) && self.admits_kind(event);
        self.admitted = self.admitted.saturating_add(is_admitted.into());
        is_admitted
    }

    /// Returns true if the event belongs to a requested process.
    pub fn admits_process(&self, event: &Event<'_>) -> bool {
        self.tracked.criteria.admits_process(event)
    }

    fn admits_kind(&mut self, event: &Event<'_>) -> bool {
        if !is_named_by_kind(event) {
            return self.tracked.criteria.admits_kind(event);
        }
        let Self { tracked, kinds, .. } = self;
        kinds.get_or_insert_with(event.metadata_index(), || tracked.criteria.admits_kind(event))
    }

    /// Returns true if all events from this one on are rejected, given time order.
    pub fn is_over(&mut self, event: &Event<'_>) -> bool {
        let is_over = self.tracked.criteria.to.is_some_and(|to| event.relative_time() >= to);
        if is_over {
            self.beyond.add(event);
        }
        is_over
    }

    /// Adds the events that another filter with the same criteria has seen before the point where this one
    /// ended.
    pub fn append(&mut self, other: Self) {
        if let (Some(inventory), Some(others)) = (&mut self.tracked.inventory, other.tracked.inventory) {
            inventory.append(others);
        }
        self.admitted = self.admitted.saturating_add(other.admitted);
    }

    /// Returns the criteria that matched nothing. Called after all events that could be admitted were read.
    pub fn misses<S: Source>(&mut self, events: &Events<S>) -> Vec<UnmatchedCriterion> {
        if let Some(inventory) = &mut self.tracked.inventory {
            inventory.append(std::mem::take(&mut self.beyond));
        }
        self.tracked.add_skipped(events);
        let mut misses = self.tracked.misses(events.metadata());
        if misses.is_empty() && self.admitted == 0 && self.tracked.inventory.is_some() {
            misses.push(UnmatchedCriterion::Combination);
        }
        misses
    }
}

/// Criteria, with an inventory of the events to which they were applied.
#[derive(Debug)]
pub struct TrackedCriteria {
    criteria: Criteria,
    /// `None` without criteria.
    inventory: Option<Inventory>,
}

impl TrackedCriteria {
    /// Creates criteria with an empty inventory.
    pub fn new(criteria: Criteria) -> Self {
        let inventory = criteria.any().then(Inventory::default);
        Self { criteria, inventory }
    }

    /// Returns true if the filter is empty: events need not be added.
    pub const fn is_empty(&self) -> bool {
        self.inventory.is_none()
    }

    /// Skips the blocks that lie outside the requested time.
    pub fn skip_blocks<S: Source>(&self, events: &mut Events<S>) {
        self.criteria.skip_blocks(events);
    }

    /// Adds an event to the inventory.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(inventory) = &mut self.inventory {
            inventory.add(event);
        }
    }

    /// Adds the times of skipped blocks.
    pub fn add_skipped<S: Source>(&mut self, events: &Events<S>) {
        if let (Some(inventory), Some(info), Some((first, last))) =
            (&mut self.inventory, events.info(), events.skipped_times())
        {
            inventory.add_times(info.relative_time(first), info.relative_time(last));
        }
    }

    /// Returns the values that matched none of the added events. `metadata` is the recording's.
    pub fn misses(&self, metadata: &[Metadata]) -> Vec<UnmatchedCriterion> {
        self.inventory.as_ref().map_or_else(Vec::new, |inventory| inventory.misses(&self.criteria, metadata))
    }
}

impl Criteria {
    /// Criteria for providers and events: names, patterns, or event numbers.
    ///
    /// ```
    /// use nettrace_edit::{Criteria, EventMatch};
    ///
    /// let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    /// let criteria = Criteria::of_names(&names(&["Shop*"]), &names(&["Order", "7"]));
    /// assert!(criteria.admits_provider("Shop-Web") && !criteria.admits_provider("System.Runtime"));
    /// assert_eq!(criteria.events[1], EventMatch::Id(7));
    /// ```
    pub fn of_names(providers: &[String], events: &[String]) -> Self {
        Self {
            providers: providers.iter().map(|text| Glob::new(text)).collect(),
            events: events.iter().map(|text| EventMatch::new(text)).collect(),
            ..Self::default()
        }
    }

    /// With these [`providers`](Self::providers).
    #[must_use]
    pub fn with_providers(self, providers: Vec<Glob>) -> Self {
        Self { providers, ..self }
    }

    /// With these [`events`](Self::events).
    #[must_use]
    pub fn with_events(self, events: Vec<EventMatch>) -> Self {
        Self { events, ..self }
    }

    /// With these [`threads`](Self::threads).
    #[must_use]
    pub fn with_threads(self, threads: Vec<u64>) -> Self {
        Self { threads, ..self }
    }

    /// With these [`processes`](Self::processes).
    #[must_use]
    pub fn with_processes(self, processes: Vec<u64>) -> Self {
        Self { processes, ..self }
    }

    /// With this [first](Self::from) time.
    #[must_use]
    pub fn with_from(self, from: Option<RelativeTime>) -> Self {
        Self { from, ..self }
    }

    /// With this [end](Self::to).
    #[must_use]
    pub fn with_to(self, to: Option<RelativeTime>) -> Self {
        Self { to, ..self }
    }

    /// Skips the blocks without events in the requested time, unless other criteria are given. Otherwise all
    /// events are read, to report criteria that match none.
    pub fn skip_blocks<S: Source>(&self, events: &mut Events<S>) {
        let is_time_alone = self.providers.is_empty()
            && self.events.is_empty()
            && self.threads.is_empty()
            && self.processes.is_empty();
        let Some(info) = events.info().filter(|_| is_time_alone) else { return };
        let first = info.ticks(self.from.unwrap_or(RelativeTime::MIN));
        let last = info.ticks(self.to.unwrap_or(RelativeTime::MAX));
        if self.from.is_some() || self.to.is_some() {
            events.skip_blocks_outside(first..=last, |_| false);
        }
    }

    fn any(&self) -> bool {
        !self.providers.is_empty()
            || !self.events.is_empty()
            || !self.threads.is_empty()
            || !self.processes.is_empty()
            || self.from.is_some()
            || self.to.is_some()
    }

    /// The providers given by full name.
    pub fn named_providers(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().filter(|glob| !glob.is_pattern()).map(Glob::text)
    }

    /// The keywords and levels of the runtime's own events given by full name or number: for each event, of
    /// its newest version.
    pub fn named_runtime_events(&self) -> impl Iterator<Item = (u64, u8)> {
        let is_newest = |schema: &Schema| {
            let versions = Schema::versions(schema.provider, schema.id.into());
            versions.iter().all(|other| other.version <= schema.version)
        };
        let is_named =
            move |schema: &&Schema| is_newest(schema) && self.events.iter().any(|it| it.names(schema));
        Schema::all(Provider::Runtime).iter().filter(is_named).map(|schema| (schema.keywords, schema.level))
    }

    /// Returns true if events of the provider are admitted.
    pub fn admits_provider(&self, name: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|glob| glob.matches(name))
    }

    fn admits_kind(&self, event: &Event<'_>) -> bool {
        self.admits_provider(event.provider())
            && (self.events.is_empty()
                || self.events.iter().any(|wanted| wanted.is(event.id(), &event_name(event))))
    }

    fn admits_process(&self, event: &Event<'_>) -> bool {
        self.processes.is_empty()
            || event.process_id().is_some_and(|process| self.processes.contains(&process))
    }

    fn admits_time_and_thread(&self, event: &Event<'_>) -> bool {
        (self.threads.is_empty() || self.threads.contains(&event.thread_id().0))
            && self.admits_process(event)
            && self.from.is_none_or(|from| event.relative_time() >= from)
            && self.to.is_none_or(|to| event.relative_time() < to)
    }
}

impl EventMatch {
    /// Parses a number, or the name or pattern of names of an event.
    pub fn new(text: &str) -> Self {
        // The name that existing tools give to an event without a name.
        let number = text.strip_prefix("EventID(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        number.parse().map_or_else(|_| Self::Name(Glob::new(text)), Self::Id)
    }

    /// Returns true if it is the number or the full name of an event of the runtime.
    fn names(&self, schema: &Schema) -> bool {
        match self {
            Self::Id(id) => *id == u32::from(schema.id),
            Self::Name(glob) => !glob.is_pattern() && glob.matches_event(schema.name),
        }
    }

    fn is(&self, id: u32, name: &EventName<'_>) -> bool {
        match self {
            Self::Id(wanted) => *wanted == id,
            Self::Name(glob) => name.is_matched_by(glob),
        }
    }
}
