//! Events over time.

use hashbrown::HashMap;

use clr_events::{EventName, event_name, is_named_by_kind};
use nettrace::{Event, MetadataMap, RelativeTime};
use serde::Serialize;

use crate::report::nanoseconds;
use crate::report::timeline::Timeline;

/// A kind of event.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct EventRow {
    /// The name of its provider.
    pub provider: String,
    /// Event id within the provider.
    pub id: u32,
    /// Event version.
    pub version: u32,
    /// Event [name](event_name).
    pub name: String,
    /// The number of events.
    pub count: u64,
    /// The time of the first one.
    #[serde(rename = "first_ns", serialize_with = "nanoseconds::serialize")]
    pub first: RelativeTime,
    /// The time of the last one.
    #[serde(rename = "last_ns", serialize_with = "nanoseconds::serialize")]
    pub last: RelativeTime,
    /// The number of events over time; `None` for kinds after the first 4096.
    pub timeline: Option<Timeline>,
}

/// The events of a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct EventCountsReport {
    /// The number of all events.
    pub count: u64,
    /// All events over time.
    pub timeline: Timeline,
    /// The kinds of events, the most frequent first.
    pub events: Vec<EventRow>,
}

/// Counts events by provider, id, version and name.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use nettrace_export::{nettrace::Reader, report};
///
/// let mut counts = report::EventCounts::default();
/// report::read(Reader::new(&recording[..])?, |event| counts.add(event))?;
/// let counts = counts.finish();
/// assert_eq!((counts.events[0].name.as_str(), counts.events[0].count), ("Exception/Start", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct EventCounts {
    rows: Vec<EventRow>,
    /// Indices of rows.
    by_kind: HashMap<Kind, usize>,
    /// Row indices of events named after their kind, indexed by the recording's metadata.
    by_metadata: MetadataMap<usize>,
    timeline: Timeline,
}

/// Provider, id, version and name.
type Kind = (String, u32, u32, String);

/// Kinds of events that have timelines of their own. Names that payloads choose are distinguished as long as
/// there are fewer kinds.
const MAX_KINDS: usize = 4096;

impl EventCounts {
    /// Counts an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let time = event.relative_time();
        let index = self.row(event);
        self.timeline.add(time, 1);
        let Some(row) = self.rows.get_mut(index) else { return };
        row.count += 1;
        row.first = row.first.min(time);
        row.last = row.last.max(time);
        if let Some(timeline) = &mut row.timeline {
            timeline.add(time, 1);
        }
    }

    /// Returns the index of an event's row.
    fn row(&mut self, event: &Event<'_>) -> usize {
        let metadata = event.metadata_index();
        if !is_named_by_kind(event) {
            let has_room = self.rows.len() < MAX_KINDS;
            let name = if has_room { event_name(event) } else { EventName::of_kind(event.metadata()) };
            return self.row_of_kind(event, name);
        }
        if let Some(row) = self.by_metadata.get(metadata) {
            return *row;
        }
        let row = self.row_of_kind(event, event_name(event));
        self.by_metadata.insert(metadata, row);
        row
    }

    fn row_of_kind(&mut self, event: &Event<'_>, name: EventName<'_>) -> usize {
        let kind = (event.provider().to_owned(), event.id(), event.version(), name.to_string());
        *self.by_kind.entry(kind).or_insert_with_key(|(provider, id, version, name)| {
            let index = self.rows.len();
            self.rows.push(EventRow {
                provider: provider.clone(),
                id: *id,
                version: *version,
                name: name.clone(),
                count: 0,
                first: event.relative_time(),
                last: event.relative_time(),
                timeline: (index < MAX_KINDS).then(Timeline::default),
            });
            index
        })
    }

    /// Returns the counts.
    pub fn finish(self) -> EventCountsReport {
        let mut events = self.rows;
        events.sort_by(|a, b| {
            let kind = |row: &EventRow| (row.id, row.version);
            b.count
                .cmp(&a.count)
                .then_with(|| a.provider.cmp(&b.provider))
                .then_with(|| kind(a).cmp(&kind(b)))
                .then_with(|| a.name.cmp(&b.name))
        });
        EventCountsReport { count: events.iter().map(|row| row.count).sum(), timeline: self.timeline, events }
    }
}
