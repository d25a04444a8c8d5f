//! Events over time.

use clr_events::Schema;
use nettrace::Event;
use serde::Serialize;

use crate::report::timeline::Timeline;

/// A kind of event.
#[derive(Debug, Clone, Serialize)]
pub struct EventRow {
    /// Its provider.
    pub provider: String,
    /// Its number there.
    pub id: u32,
    /// Its name; empty if neither the recording nor the runtime's own tables have one.
    pub name: String,
    /// How many.
    pub count: u64,
    /// When the first one was, in nanoseconds since the recording's start.
    pub first_ns: i64,
    /// When the last one was.
    pub last_ns: i64,
    /// How many over time; `None` for kinds after the first 4096.
    pub timeline: Option<Timeline>,
}

/// What a recording holds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EventCountsReport {
    /// All events.
    pub count: u64,
    /// All events over time.
    pub timeline: Timeline,
    /// By kind, most first.
    pub events: Vec<EventRow>,
}

/// Counts events.
#[derive(Debug, Default)]
pub struct EventCounts {
    /// By place in the recording's metadata.
    rows: Vec<Option<EventRow>>,
    timeline: Timeline,
}

/// Kinds of events that have timelines of their own.
const MOST: usize = 4096;

impl EventCounts {
    /// Takes in an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let index = event.metadata_index();
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, || None);
        }
        let time = event.time_ns();
        let Some(place) = self.rows.get_mut(index) else { return };
        let row = place.get_or_insert_with(|| EventRow {
            provider: event.provider().to_owned(),
            id: event.id(),
            name: match event.name() {
                "" => Schema::of(event).map_or("", |schema| schema.name).to_owned(),
                name => name.to_owned(),
            },
            count: 0,
            first_ns: time,
            last_ns: time,
            timeline: (index < MOST).then(Timeline::default),
        });
        row.count += 1;
        row.last_ns = row.last_ns.max(time);
        self.timeline.add(time, 1);
        if let Some(timeline) = &mut row.timeline {
            timeline.add(time, 1);
        }
    }

    /// What there was.
    pub fn finish(self) -> EventCountsReport {
        let mut events: Vec<_> = self.rows.into_iter().flatten().collect();
        events.sort_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (&a.provider, a.id).cmp(&(&b.provider, b.id)))
        });
        EventCountsReport { count: events.iter().map(|row| row.count).sum(), timeline: self.timeline, events }
    }
}
