//! A recording's events other than samples, by time.

mod cells;
mod curves;
mod requests;

use std::io::{self, Read, Write};

use clr_events::{ClrEvent, EventSet, StackId, sets};
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use nettrace::{Event, Interest, Metadata, MetadataMap, RelativeTime};

use super::bins::BinWidth;
use super::data::list;
use super::text::text;
use crate::decode::decode;
use crate::profile::Profile;
use crate::profile::read::ProfiledRecording;
use crate::report::{Collection, Collections};
use cells::Cells;
use clr_activity::Suspensions;
use clr_counters::Counters;
use curves::Curves;
use requests::Requests;

/// Gathers the contents of a page besides the profile: pauses and collections, exceptions, allocated bytes,
/// requests and other spans, counters.
///
/// # Memory
/// Bounded but for 200 bytes a collection: everything else is counted in bins, which get wider.
#[derive(Debug, Default)]
pub struct PageReports {
    last: RelativeTime,
    collections: Collections,
    suspensions: Suspensions<()>,
    /// Pauses by the bin of their start, and nanoseconds in each bin.
    pauses: Cells,
    /// By type.
    exceptions: Cells,
    types: IndexMap<String, ExceptionType, DefaultHashBuilder>,
    /// Bytes by ticks, and by samples, which both count the same.
    ticks: Cells,
    samples: Cells,
    requests: Requests,
    curves: Curves,
    /// True if there are events of tasks, which stacks of awaits are derived from.
    has_tasks: bool,
    /// True if CPU time is shown first, and waits are shown on request.
    is_cpu_first: bool,
    /// True for kinds of events of tasks.
    of_tasks: MetadataMap<bool>,
}

/// The provider of events of tasks, and the event in which each EventSource describes itself.
const TASKS: &str = "System.Threading.Tasks.TplEventSource";
const MANIFEST: u32 = 0xfffe;

/// The events that are counted and listed.
const OF_REPORTS: [&EventSet; 3] = [&sets::COLLECTIONS, &sets::EXCEPTIONS, &sets::ALLOCATION_TICKS];

/// A type of exceptions.
#[derive(Debug)]
struct ExceptionType {
    first_message: String,
}

/// The number of distinct types of exceptions.
const MAX_TYPES: usize = 500;
/// Characters of a name or message that are kept.
const MAX_LENGTH: usize = 300;
/// Collections that are listed.
const MAX_COLLECTIONS: usize = 10_000;
/// The name of the row for everything above a limit.
const OTHERS: &str = "(others)";

impl PageReports {
    /// The events of a kind that make a difference.
    pub(super) fn interest(kind: &Metadata, has_spans: bool) -> Interest {
        let is_needed = OF_REPORTS.iter().any(|set| set.contains(kind)) || Counters::needs(kind);
        let of_spans = if has_spans { Requests::interest(kind) } else { Interest::None };
        Interest::all_if(is_needed).max(of_spans)
    }

    /// Adds the kinds of events that a reader of all of a recording counted.
    pub(super) fn add_counts<R: Read>(&mut self, read: &ProfiledRecording<R>) {
        let mut kinds = read.counts.iter().filter_map(|(index, _)| read.events.metadata().get(*index));
        self.has_tasks |= kinds.any(is_of_tasks);
    }

    /// Extends the recording to the time of an event that need not be added.
    pub(super) fn extend_to(&mut self, time: RelativeTime) {
        self.last = self.last.max(time);
        self.requests.extend_to(time);
    }

    /// Adds an event. Events must be in time order.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        let now = event.relative_time().max(RelativeTime::START);
        self.last = self.last.max(now);
        self.requests.add(event);
        self.curves.add(event);
        if !self.has_tasks {
            let is_of_tasks = || is_of_tasks(event.metadata());
            self.has_tasks = self.of_tasks.get_or_insert_with(event.metadata_index(), is_of_tasks);
        }
        if is_in(event, &OF_REPORTS) {
            self.take_in(event, now);
        }
    }

    #[inline(never)]
    fn take_in(&mut self, event: &Event<'_>, now: RelativeTime) {
        if let Some(view) = decode(event, &sets::COLLECTIONS) {
            if let Some(pause) = self.suspensions.add((event, &view), now, || ()) {
                self.pauses.add(0, pause.start, 1, 0);
                self.pauses.add_interval(0, pause.start, now);
            }
            self.collections.add_decoded(event, &view);
        }
        match decode(event, &sets::EXCEPTIONS) {
            Some(ClrEvent::ExceptionStart(thrown)) => {
                let name = cut(&thrown.exception_type.to_string());
                let has_room = self.types.len() < MAX_TYPES || self.types.contains_key(&name);
                let entry = self.types.entry(if has_room { name } else { OTHERS.to_owned() });
                let index = u32::try_from(entry.index()).unwrap_or(u32::MAX);
                entry.or_insert_with(|| ExceptionType {
                    first_message: cut(&thrown.exception_message.to_string()),
                });
                self.exceptions.add(index, now, 1, 0);
            }
            _ => match decode(event, &sets::ALLOCATION_TICKS) {
                Some(ClrEvent::AllocationTick(tick)) => self.ticks.add(0, now, 1, tick.allocation_amount64),
                Some(ClrEvent::AllocationSampled(sampled)) => {
                    self.samples.add(0, now, 1, sampled.estimated_bytes());
                }
                _ => {}
            },
        }
    }

    /// Returns true if there is nothing to show.
    pub fn is_empty(&self) -> bool {
        let cells = [&self.pauses, &self.exceptions, &self.ticks, &self.samples];
        cells.into_iter().all(Cells::is_empty) && self.requests.is_empty() && self.curves.is_empty()
    }

    /// The time of the last event.
    pub(super) const fn end(&self) -> RelativeTime {
        self.last
    }

    /// The widest bins in which anything was counted.
    pub(super) fn width(&self) -> BinWidth {
        let widths = [&self.pauses, &self.exceptions, &self.ticks, &self.samples].map(Cells::width);
        widths.into_iter().fold(self.requests.width(), BinWidth::max)
    }

    /// Ends unfinished items, and returns the collections individually.
    pub(super) fn finish(&mut self) -> Vec<Collection> {
        self.requests.finish();
        self.curves.finish();
        std::mem::take(&mut self.collections).finish().collections
    }

    /// Shows CPU time first, as recordings with the kernel's samples of running threads do.
    pub(super) fn set_cpu_first(&mut self, is_cpu_first: bool) {
        self.is_cpu_first = is_cpu_first;
    }

    /// Adds the stacks that requests had.
    pub(super) fn add_stacks(&mut self, profile: &Profile) {
        self.requests.add_stacks(profile, self.is_cpu_first);
    }

    pub(super) fn write(
        &self,
        collections: &[Collection],
        width: BinWidth,
        stack_number: &dyn Fn(StackId) -> u32,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        write!(out, ",\"hasTasks\":{},\"cpuFirst\":{}", self.has_tasks, self.is_cpu_first)?;
        self.pauses.write("pauses", width, out)?;
        self.exceptions.write("exceptions", width, out)?;
        list(out, "exceptionTypes", self.types.iter(), |out, (name, exception)| {
            out.write_all(b"[")?;
            text(out, name)?;
            out.write_all(b",")?;
            text(out, &exception.first_message)?;
            out.write_all(b"]")
        })?;
        let allocations = if self.ticks.is_empty() { &self.samples } else { &self.ticks };
        allocations.write("allocations", width, out)?;
        write_collections(collections, out)?;
        self.requests.write(width, stack_number, out)?;
        self.curves.write(width, out)
    }
}

/// Writes ten values for each collection, in the order of their beginnings; if there are too many, only the
/// collections with the longest pauses.
fn write_collections(all: &[Collection], out: &mut dyn Write) -> io::Result<()> {
    let mut listed: Vec<_> = all.iter().collect();
    if listed.len() > MAX_COLLECTIONS {
        listed.sort_by_key(|collection| std::cmp::Reverse(collection.pause));
        listed.truncate(MAX_COLLECTIONS);
        listed.sort_by_key(|collection| collection.start);
    }
    write!(out, ",\"collectionCount\":{}", all.len())?;
    list(out, "collections", listed.into_iter(), |out, collection| {
        let micros = |duration: std::time::Duration| duration.as_micros();
        write!(out, "[{},{},", collection.number, collection.generation)?;
        text(out, &collection.reason)?;
        out.write_all(b",")?;
        text(out, &collection.kind)?;
        write!(out, ",{},", collection.start.as_nanos() / 1000)?;
        nullable(out, collection.duration.map(micros))?;
        write!(out, ",{},", micros(collection.pause.unwrap_or_default()))?;
        nullable(out, collection.before_bytes)?;
        out.write_all(b",")?;
        nullable(out, collection.after_bytes)?;
        out.write_all(b",")?;
        nullable(out, collection.promoted_bytes)?;
        out.write_all(b"]")
    })
}

fn nullable(out: &mut dyn Write, value: Option<impl std::fmt::Display>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, "{value}"),
        None => out.write_all(b"null"),
    }
}

fn is_of_tasks(kind: &Metadata) -> bool {
    kind.provider() == TASKS && kind.event_id() != MANIFEST
}

fn is_in(event: &Event<'_>, wanted: &[&EventSet]) -> bool {
    wanted.iter().any(|set| set.contains(event.metadata()))
}

/// Returns the beginning of a string.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
