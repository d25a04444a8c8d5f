//! The events of a recording, counted by kind and name.

use std::collections::BTreeMap;

use clr_events::{EventName, event_name, is_named_by_kind};
use nettrace::{Error, Event, Metadata, MetadataMap, ReadAt, ReadAtInput, Reader, Ticks};

/// Maximum number of event names to count separately that differ from their kind's: payloads choose some of
/// them.
const MAX_RENAMED: usize = 4096;

/// The number of some events, and their size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCount {
    /// The number of events.
    pub events: u64,
    /// The bytes of their payloads.
    pub payload_bytes: u64,
}

impl EventCount {
    /// Adds the count of other events.
    #[inline]
    pub const fn add(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
    }
}

/// The events with one provider, number, version and name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTypeCount {
    /// The name of the provider.
    pub provider: String,
    /// The number of the event in the provider.
    pub id: u32,
    /// The version of the event.
    pub version: u32,
    /// The name of the event.
    pub name: String,
    /// The count of these events.
    pub count: EventCount,
}

/// Counts the events of a recording. Names are looked up at its end.
///
/// ```
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../nettrace/examples/demo.bin");
/// use nettrace_export::EventCounts;
///
/// let file = std::fs::File::open(path)?;
/// let (reader, counts) = EventCounts::of_file(&file, 2)?;
/// for row in counts.types(reader.metadata()) {
///     println!("{}/{}: {}", row.provider, row.name, row.count.events);
/// }
/// # assert!(counts.last().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct EventCounts {
    /// The counts of each kind.
    kinds: MetadataMap<EventCount>,
    /// Events with a name or version that differs from their kind's, by metadata index, version and name.
    renamed: BTreeMap<(usize, u32, String), EventCount>,
    last: Option<i64>,
}

impl EventCounts {
    /// Counts the events of a file on `threads` threads, and returns the reader at the end of the file.
    ///
    /// # Errors
    /// As [`Reader::par_fold`].
    pub fn of_file(
        file: &dyn ReadAt,
        threads: usize,
    ) -> Result<(Reader<ReadAtInput<'_, dyn ReadAt + '_>>, Self), Error> {
        let read = |threads| {
            Reader::par_fold(file, threads, Self::default, |counts, event| counts.add(&event), Self::join)
        };
        let (reader, counts) = read(threads)?;
        // Which names were left out depends on the order of the events.
        if threads > 1 && counts.is_limited() { read(1) } else { Ok((reader, counts)) }
    }

    /// Counts an event.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        self.last = self.last.max(Some(event.time().0.cast_signed()));
        let one = EventCount { events: 1, payload_bytes: event.payload().len() as u64 };
        match self.kinds.get_mut(event.metadata_index()) {
            Some(count) if is_named_by_kind(event) => count.add(one),
            // A copy, because an argument of a function call must be in memory, which all other events need
            // not be.
            _ => self.add_unusual(*event, one),
        }
    }

    #[cold]
    fn add_unusual(&mut self, event: Event<'_>, one: EventCount) {
        let index = event.metadata_index();
        if is_named_by_kind(&event) {
            self.kinds.insert(index, one);
            return;
        }
        let name = if self.is_limited() { EventName::of_kind(event.metadata()) } else { event_name(&event) };
        self.renamed.entry((index, event.version(), name.to_string())).or_default().add(one);
    }

    /// Returns true if names were left out.
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

    /// The time of the last event; `None` without events.
    pub fn last(&self) -> Option<Ticks> {
        self.last.map(|ticks| Ticks(ticks.cast_unsigned()))
    }

    /// Returns the counts of event types, in descending order of events. `metadata` is the recording's.
    pub fn types(&self, metadata: &[Metadata]) -> Vec<EventTypeCount> {
        let kinds = self.kinds.iter().filter_map(|(index, count)| {
            metadata.get(index).map(|row| (row, row.version(), EventName::of_kind(row).to_string(), count))
        });
        let renamed = self.renamed.iter().filter_map(|((index, version, name), count)| {
            metadata.get(*index).map(|row| (row, *version, name.clone(), count))
        });
        let mut rows: BTreeMap<_, EventCount> = BTreeMap::new();
        for (row, version, name, count) in kinds.chain(renamed) {
            rows.entry((row.provider(), row.event_id(), version, name)).or_default().add(*count);
        }
        let row = |((provider, id, version, name), count): ((&str, _, _, _), _)| EventTypeCount {
            provider: provider.to_owned(),
            id,
            version,
            name,
            count,
        };
        let mut rows: Vec<_> = rows.into_iter().map(row).collect();
        // The sort is stable: equal counts stay in order of provider and number.
        rows.sort_by_key(|row| std::cmp::Reverse(row.count.events));
        rows
    }
}
