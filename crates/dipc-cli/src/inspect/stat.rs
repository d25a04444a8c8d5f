//! Statistics of a recording: its format, its losses, its providers and kinds of events.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clr_events::{EventName, event_name, is_named_by_kind};
use nettrace::{Error, Event, Events, Metadata, MetadataMap, ReadAtInput, Reader, Source, Ticks};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::exit::{Exit, Failure};
use crate::inspect::recording::{Recording, RecordingFile, start_time};
use crate::processors;
use crate::render::table::{Align, Columns};
use crate::render::width;

type FileInput<'a> = ReadAtInput<'a, RecordingFile>;

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

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    events: u64,
    payload_bytes: u64,
}

impl Count {
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "the program is compiled for size, and this is done for each event"
    )]
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.payload_bytes += other.payload_bytes;
    }
}

/// Maximum number of event names to count separately that differ from their kind's: payloads choose some of
/// them.
const MAX_RENAMED: usize = 4096;

/// Maximum number of threads that count at the same time; one thread also searches the blocks for all.
const MAX_THREADS: usize = 8;

/// The counts taken while a recording is read; names are looked up at its end.
#[derive(Debug, Default)]
struct Counts {
    /// The counts of each kind.
    kinds: MetadataMap<Count>,
    /// Events with a name or version that differs from their kind's, by metadata index, version and name.
    renamed: BTreeMap<(usize, u32, String), Count>,
    last: Option<i64>,
}

impl Counts {
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "the program is compiled for size, and this is done for each event"
    )]
    fn add(&mut self, event: &Event<'_>) {
        self.last = self.last.max(Some(event.time().0.cast_signed()));
        let one = Count { events: 1, payload_bytes: event.payload().len() as u64 };
        match self.kinds.get_mut(event.metadata_index()) {
            Some(count) if is_named_by_kind(event) => count.add(one),
            // A copy, because an argument of a function call must be in memory, which all other events need
            // not be.
            _ => self.add_unusual(*event, one),
        }
    }

    #[cold]
    fn add_unusual(&mut self, event: Event<'_>, one: Count) {
        let index = event.metadata_index();
        if is_named_by_kind(&event) {
            self.kinds.insert(index, one);
            return;
        }
        let name = if self.is_limited() { EventName::of_kind(event.metadata()) } else { event_name(&event) };
        self.renamed.entry((index, event.version(), name.to_string())).or_default().add(one);
    }

    /// Returns true if names were left out, which ones depending on the order of the events.
    fn is_limited(&self) -> bool {
        self.renamed.len() >= MAX_RENAMED
    }

    /// Adds the counts of other events.
    fn join(mut self, other: Self) -> Self {
        for (index, other) in other.kinds.iter() {
            self.kinds.update(index, |count| count.add(*other));
        }
        for (name, count) in other.renamed {
            self.renamed.entry(name).or_default().add(count);
        }
        self.last = self.last.max(other.last);
        self
    }

    /// Counts the events of a file on `threads` threads.
    fn of_file(file: &RecordingFile, threads: usize) -> Result<(Reader<FileInput<'_>>, Self), Error> {
        Reader::par_fold(file, threads, Self::default, |counts, event| counts.add(&event), Self::join)
    }

    /// The rows of the types, the most frequent first. Types that differ only in hidden columns are one row.
    fn types(&self, metadata: &[Metadata]) -> Vec<TypeRow> {
        let kinds = self.kinds.iter().filter_map(|(index, count)| {
            metadata.get(index).map(|row| (row, row.version(), EventName::of_kind(row).to_string(), count))
        });
        let renamed = self.renamed.iter().filter_map(|((index, version, name), count)| {
            metadata.get(*index).map(|row| (row, *version, name.clone(), count))
        });
        let mut rows: BTreeMap<_, Count> = BTreeMap::new();
        for (row, version, name, count) in kinds.chain(renamed) {
            rows.entry((row.provider(), row.event_id(), version, name)).or_default().add(*count);
        }
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|((provider, id, version, name), Count { events, payload_bytes })| TypeRow {
                provider: provider.to_owned(),
                id,
                version,
                name,
                events,
                payload_bytes,
            })
            .collect();
        // The sort is stable: equal counts stay in order of provider and number.
        rows.sort_by_key(|row| std::cmp::Reverse(row.events));
        rows
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
            let mut outcome = Counts::of_file(&file, threads);
            if threads > 1 && outcome.as_ref().is_ok_and(|(_, counts)| counts.is_limited()) {
                outcome = Counts::of_file(&file, 1);
            }
            let (events, counts) = outcome.map_err(|error| origin.failed(&error))?;
            let exit = origin.report_damage(&events);
            return Ok((Self::new(&events, &counts, events.input().offset()), exit));
        }
        let mut counts = Counts::default();
        events.for_each(|event| counts.add(&event)).map_err(|error| origin.failed(&error))?;
        let exit = origin.report_damage(&events);
        Ok((Self::new(&events, &counts, origin.bytes()), exit))
    }

    fn new<S: Source>(events: &Events<S>, counts: &Counts, bytes: u64) -> Self {
        let info = events.info();
        let types = counts.types(events.metadata());
        let last = counts.last.map(|ticks| Ticks(ticks.cast_unsigned()));
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
    let mut rows: BTreeMap<&str, Count> = BTreeMap::new();
    for row in types {
        rows.entry(&row.provider)
            .or_default()
            .add(Count { events: row.events, payload_bytes: row.payload_bytes });
    }
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|(provider, Count { events, payload_bytes })| ProviderRow {
            provider: provider.to_owned(),
            events,
            payload_bytes,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.events));
    rows
}
