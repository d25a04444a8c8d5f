//! Statistics of a recording: its format, its losses, its providers and kinds of events.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nettrace::{Events, Source};
use nettrace_export::{EventCount, EventCounts, EventTypeCount};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::exit::{Exit, Failure};
use crate::inspect::recording::{Recording, start_time};
use crate::processors;
use crate::render::table::{Align, Columns};
use crate::render::width;

/// The result of `stat`; the JSON form is the struct.
#[derive(Debug, Serialize)]
pub(crate) struct Stat {
    format: String,
    version: u32,
    pointer_size: u8,
    process_id: Option<u64>,
    processors: Option<u32>,
    /// The start in RFC 3339; `None` if the recording's header lacks a calendar time.
    start: Option<String>,
    /// The time from the start to the last event.
    duration_ns: i64,
    events: u64,
    /// Events that the runtime dropped.
    lost: u64,
    /// More events may have been lost: the runtime does not report what a thread lost before it ended.
    lost_is_lower_bound: bool,
    bytes: u64,
    truncated: bool,
    damage: Vec<DamageRow>,
    providers: Vec<ProviderRow>,
    types: Vec<TypeRow>,
}

#[derive(Debug, Serialize)]
struct DamageRow {
    offset: u64,
    what: String,
}

#[derive(Debug, Serialize)]
struct ProviderRow {
    provider: String,
    events: u64,
    payload_bytes: u64,
}

#[derive(Debug, Serialize)]
struct TypeRow {
    provider: String,
    id: u32,
    version: u32,
    name: String,
    events: u64,
    payload_bytes: u64,
}

/// Maximum number of threads that count at the same time; one thread also searches the blocks for all.
const MAX_THREADS: usize = 8;

impl From<EventTypeCount> for TypeRow {
    fn from(row: EventTypeCount) -> Self {
        let EventCount { events, payload_bytes, .. } = row.count;
        Self {
            provider: row.provider,
            id: row.id,
            version: row.version,
            name: row.name,
            events,
            payload_bytes,
        }
    }
}

impl Stat {
    /// Reads a recording to its end. The exit code is [`Exit::Incomplete`] if it is cut or damaged.
    pub(crate) fn read(path: &Path) -> Result<(Self, Exit), Failure> {
        let recording = Recording::open(path)?;
        let file = recording.file();
        let (mut events, origin) = recording.into_parts();
        if let Some(file) = file {
            let threads = processors::count().min(MAX_THREADS);
            let outcome = EventCounts::of_file(&file, threads);
            let (events, counts) = outcome.map_err(|error| origin.failed(&error))?;
            let exit = origin.report_damage(&events);
            return Ok((Self::new(&events, &counts, events.input().offset()), exit));
        }
        let mut counts = EventCounts::default();
        events.for_each(|event| counts.add(&event)).map_err(|error| origin.failed(&error))?;
        let exit = origin.report_damage(&events);
        Ok((Self::new(&events, &counts, origin.bytes()), exit))
    }

    fn new<S: Source>(events: &Events<S>, counts: &EventCounts, bytes: u64) -> Self {
        let info = events.info();
        let types: Vec<_> = counts.types(events.metadata()).into_iter().map(TypeRow::from).collect();
        let last = counts.last();
        Self {
            format: info.map_or_else(String::new, |info| info.format.to_string()),
            version: info.map_or(0, |info| info.version),
            pointer_size: info.map_or(0, |info| info.pointer_size),
            process_id: info.and_then(|info| info.process_id),
            processors: info.and_then(|info| info.processors),
            start: info.and_then(|info| start_time(info.start)).map(|start| start.to_string()),
            duration_ns: info.zip(last).map_or(0, |(info, last)| info.relative_time(last).as_nanos()),
            events: types.iter().map(|row| row.events).sum(),
            lost: events.loss().total(),
            lost_is_lower_bound: events.loss().is_lower_bound(),
            bytes,
            truncated: events.truncated_at().is_some(),
            damage: events
                .damage()
                .iter()
                .map(|d| DamageRow { offset: d.offset, what: d.what.to_string() })
                .collect(),
            providers: providers(&types),
            types,
        }
    }

    /// The form for people.
    ///
    /// In a narrow width, the names of providers and events are cut, and less important numbers left out.
    pub(crate) fn table(&self, width: Option<usize>) -> String {
        let mut text = self.summary();
        let longest = |length: fn(&TypeRow) -> usize| self.types.iter().map(length).max().unwrap_or(0);
        let provider_room = width.map_or(usize::MAX, |width| width / 2);
        let provider = longest(|row| row.provider.width()).min(provider_room);
        let events = longest(|row| row.events.to_string().len()).max("EVENTS".len());
        let name_room = width.map_or(usize::MAX, |width| width.saturating_sub(provider + events + 4).max(16));
        let mut providers = Columns::new([
            ("PROVIDER", Align::Left),
            ("EVENTS", Align::Right),
            ("PAYLOAD BYTES", Align::Right),
        ]);
        for row in &self.providers {
            providers.row([
                width::cut(&row.provider, provider_room),
                row.events.to_string(),
                row.payload_bytes.to_string(),
            ]);
        }
        let mut types = Columns::new([
            ("PROVIDER", Align::Left),
            ("ID", Align::Right),
            ("VERSION", Align::Right),
            ("NAME", Align::Left),
            ("EVENTS", Align::Right),
            ("PAYLOAD BYTES", Align::Right),
        ]);
        for row in &self.types {
            types.row([
                width::cut(&row.provider, provider_room),
                row.id.to_string(),
                row.version.to_string(),
                width::cut(&row.name, name_room),
                row.events.to_string(),
                row.payload_bytes.to_string(),
            ]);
        }
        // Writing into a `String` does not fail.
        let _ = write!(
            text,
            "\n{}\n{}",
            providers.fitted_to(width, &[]),
            types.fitted_to(width, &["PAYLOAD BYTES", "VERSION", "ID"])
        );
        text
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "{label:<10} {value}");
        };
        let mut format =
            format!("{} version {}, {}-byte pointers", self.format, self.version, self.pointer_size);
        if let Some(count) = self.processors {
            let _ = write!(format, ", {count} processors");
        }
        line("Format", format);
        if let Some(pid) = self.process_id {
            line("Process", pid.to_string());
        }
        if let Some(start) = &self.start {
            line("Start", start.clone());
        }
        let duration = Duration::from_nanos(u64::try_from(self.duration_ns).unwrap_or(0));
        line("Duration", format!("{:.9} s", duration.as_secs_f64()));
        line("Size", format!("{} bytes", self.bytes));
        line("Events", self.events.to_string());
        let at_least = if self.lost_is_lower_bound { "at least " } else { "" };
        line("Lost", format!("{at_least}{}", self.lost));
        text
    }
}

fn providers(types: &[TypeRow]) -> Vec<ProviderRow> {
    let mut rows: BTreeMap<&str, ProviderRow> = BTreeMap::new();
    for row in types {
        let provider = || ProviderRow { provider: row.provider.clone(), events: 0, payload_bytes: 0 };
        let sum = rows.entry(&row.provider).or_insert_with(provider);
        sum.events += row.events;
        sum.payload_bytes += row.payload_bytes;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.events));
    rows
}
