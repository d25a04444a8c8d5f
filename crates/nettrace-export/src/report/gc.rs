//! Collections: the table that people open PerfView for.

use hashbrown::{HashMap, HashSet};
use std::time::Duration;

use clr_events::enums::GcType;
use clr_events::{ClrEvent, sets};
use nettrace::{Event, Metadata, RelativeTime};
use serde::Serialize;

use crate::decode::decode;
use crate::report::distribution::Distribution;
use crate::report::nanoseconds;
use clr_activity::{Suspension, Suspensions};

/// A collection.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Collection {
    /// The process of the collection; `None` if the recording does not say.
    pub process: Option<u64>,
    /// Number of the collection within the process.
    pub number: u32,
    /// The generation that was collected, with all below it.
    pub generation: u32,
    /// The reason of the collection.
    pub reason: String,
    /// `NonConcurrent`, `Background`, or `Foreground` for one within a background collection.
    pub kind: String,
    /// Start of the collection.
    #[serde(rename = "start_ns", serialize_with = "nanoseconds::serialize")]
    pub start: RelativeTime,
    /// The duration; `None` if the recording lacks the end.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Option<Duration>,
    /// The time that the program was suspended for it, suspending and resuming included. A background
    /// collection has two pauses, one at its beginning and one before its end. A collection of young
    /// generations in the first of these, ahead of it, has that time for its own. `None` if the recording, or
    /// the selected part of it, lacks an end of a suspension for it.
    #[serde(rename = "pause_ns", serialize_with = "nanoseconds::serialize")]
    pub pause: Option<Duration>,
    /// The number of suspensions for it.
    pub pauses: u32,
    /// The part of that time until all threads had stopped.
    #[serde(rename = "suspend_ns", serialize_with = "nanoseconds::serialize")]
    pub suspend: Duration,
    /// The share of time, in percent, that the program stood still since the pause before.
    pub pause_percent: f64,
    /// The size of all generations before, free space included; `None` if the recording does not say.
    pub before_bytes: Option<u64>,
    /// The size of all generations after.
    pub after_bytes: Option<u64>,
    /// The generations afterwards: 0, 1, 2, large objects, pinned objects.
    pub generations_bytes: Option<[u64; 5]>,
    /// Free bytes between the objects of the generations afterwards; `None` if the recording does not say.
    pub free_bytes: Option<[u64; 5]>,
    /// The bytes that were promoted.
    pub promoted_bytes: Option<u64>,
}

/// A time for which the program was suspended for collections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GcPause {
    /// The paused process; `None` if the recording does not say.
    pub process: Option<u64>,
    /// The number of the collection that began first in it, or of the one in the background; `None` if there
    /// was neither.
    pub collection: Option<u32>,
    /// Start of the pause: the request to stop the threads, or the end of an earlier suspension that it
    /// waited for.
    #[serde(rename = "start_ns", serialize_with = "nanoseconds::serialize")]
    pub start: RelativeTime,
    /// Duration of the pause.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Duration,
    /// The part of that until all threads had stopped.
    #[serde(rename = "suspend_ns", serialize_with = "nanoseconds::serialize")]
    pub suspend: Duration,
}

/// The collections of a generation, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GenerationRow {
    /// The generation; `None` for all.
    pub generation: Option<u32>,
    /// The number of collections.
    pub collections: u64,
    /// The number of these that the program requested.
    pub induced: u64,
    /// The time suspended for each collection, all of its pauses together.
    pub pauses: Distribution,
    /// The sum of bytes promoted.
    pub promoted_bytes: u64,
}

/// The collections of a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct GcReport {
    /// The duration of the recording up to its last event, or of the [part](Collections::with_range) of it.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Duration,
    /// The share of that, in percent, for which the program stood still.
    pub pause_percent: f64,
    /// The durations of pauses, for whichever collections.
    pub pauses: Distribution,
    /// The individual pauses, in the order in which they ended.
    pub pause_list: Vec<GcPause>,
    /// Maximum heap size after a collection.
    pub peak_after_bytes: u64,
    /// By generation, then all.
    pub generations: Vec<GenerationRow>,
    /// One by one, as they began.
    pub collections: Vec<Collection>,
}

impl GcReport {
    /// Returns true if the report is empty.
    pub const fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }
}

/// Gathers the facts of collections. Needs the runtime's `GC` keyword (1) at level informational.
#[derive(Debug, Default)]
pub struct Collections {
    done: Vec<Collection>,
    processes: HashMap<Option<u64>, Heap>,
    /// With the collections that began in each.
    suspensions: Suspensions<Vec<usize>>,
    pauses: Vec<GcPause>,
    start: RelativeTime,
    last: RelativeTime,
}

/// The collections of a process, as indices in the list.
#[derive(Debug, Default)]
struct Heap {
    /// Collections that have not ended, the innermost last.
    open: Vec<usize>,
    /// The last collection that ended.
    ended: Option<usize>,
    /// The end of the last pause.
    resumed: RelativeTime,
}

impl Collections {
    /// Limits the report to a part of a recording, from this time on: its [duration](GcReport::duration) and
    /// the time since the last pause begin there.
    #[must_use]
    pub fn with_start(self, start: RelativeTime) -> Self {
        Self { start, ..self }
    }

    /// With this time range of the added events: the requested range, or the time of a process.
    #[must_use]
    pub fn with_range(self, start: RelativeTime, end: RelativeTime) -> Self {
        Self { start, last: end, ..self }
    }

    /// Returns true if [`add`](Self::add) looks at more of events of a kind than their time.
    pub fn needs(kind: &Metadata) -> bool {
        sets::COLLECTIONS.contains(kind)
    }

    /// Extends the recording's [duration](GcReport::duration) to the time of an event, where not all events
    /// are added.
    pub fn extend_to(&mut self, time: RelativeTime) {
        self.last = self.last.max(time);
    }

    /// Adds an event. Looks at [`sets::COLLECTIONS`], and at the time of all others.
    pub fn add(&mut self, event: &Event<'_>) {
        self.extend_to(event.relative_time());
        if let Some(view) = decode(event, &sets::COLLECTIONS) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already. The last event that is shown ends [the
    /// recording](GcReport::duration).
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let now = event.relative_time().max(RelativeTime::START);
        self.last = self.last.max(now);
        let process = event.process_id();
        let resumed = self.start;
        let heap = self.processes.entry(process).or_insert_with(|| Heap { resumed, ..Heap::default() });
        if let Some(suspension) = self.suspensions.add((event, view), now, Vec::new) {
            let place = heap.resume(&suspension, now, &mut self.done);
            self.pauses.push(GcPause {
                process,
                collection: place.and_then(|place| self.done.get(place)).map(|collection| collection.number),
                start: suspension.start,
                duration: now.abs_diff(suspension.start),
                suspend: stopping(&suspension),
            });
        }
        match view {
            ClrEvent::GcStart(start) => {
                let place = self.done.len();
                heap.open.push(place);
                if let Some(suspension) = self.suspensions.now(process) {
                    suspension.about.push(place);
                }
                self.done.push(Collection {
                    process,
                    number: start.count,
                    generation: start.depth,
                    reason: start.reason.to_string(),
                    kind: kind(start.kind),
                    start: now,
                    ..Collection::default()
                });
            }
            ClrEvent::GcPerHeapHistory(history) => {
                if let Some(collection) = heap.open.last().and_then(|place| self.done.get_mut(*place)) {
                    let before = collection.before_bytes.get_or_insert(0);
                    let free = collection.free_bytes.get_or_insert_default();
                    let mut free = free.iter_mut();
                    // A row for each generation.
                    for row in history.values {
                        *before = before.saturating_add(row.size_before);
                        if let Some(free) = free.next() {
                            *free =
                                free.saturating_add(row.free_list_after.saturating_add(row.free_obj_after));
                        }
                    }
                }
            }
            ClrEvent::GcStop(stop) => {
                let number = |place: &usize| self.done.get(*place).map(|collection| collection.number);
                let found = heap.open.iter().rposition(|place| number(place) == Some(stop.count));
                if let Some(place) = found.map(|index| heap.open.remove(index)) {
                    heap.ended = Some(place);
                    if let Some(collection) = self.done.get_mut(place) {
                        collection.duration = Some(now.abs_diff(collection.start));
                    }
                }
            }
            ClrEvent::GcHeapStats(stats) => {
                if let Some(collection) = heap.ended.take().and_then(|place| self.done.get_mut(place)) {
                    let sizes = [
                        stats.generation_size0,
                        stats.generation_size1,
                        stats.generation_size2,
                        stats.generation_size3,
                        stats.generation_size4.unwrap_or(0),
                    ];
                    let promoted = [
                        stats.total_promoted_size0,
                        stats.total_promoted_size1,
                        stats.total_promoted_size2,
                        stats.total_promoted_size3,
                        stats.total_promoted_size4.unwrap_or(0),
                    ];
                    collection.after_bytes = Some(sizes.into_iter().fold(0, u64::saturating_add));
                    collection.generations_bytes = Some(sizes);
                    collection.promoted_bytes = Some(promoted.into_iter().fold(0, u64::saturating_add));
                }
            }
            _ => {}
        }
    }

    /// Returns the report.
    pub fn finish(self) -> GcReport {
        report(self.last.saturating_duration_since(self.start), self.pauses, self.done)
    }

    /// Returns the report of the collections and pauses that have ended since the last call, in which
    /// `duration` passed; open ones are in a later report.
    pub fn take(&mut self, duration: Duration) -> GcReport {
        let mut done = Vec::new();
        let mut kept = Vec::new();
        // By the place of a collection that is kept, its new one.
        let mut places = HashMap::new();
        let suspended = self.suspensions.iter().flat_map(|suspension| &suspension.about);
        let heaps = self.processes.values().flat_map(|heap| heap.open.iter().chain(&heap.ended));
        let open: HashSet<usize> = suspended.chain(heaps).copied().collect();
        for (place, collection) in std::mem::take(&mut self.done).into_iter().enumerate() {
            if open.contains(&place) {
                places.insert(place, kept.len());
                kept.push(collection);
            } else {
                done.push(collection);
            }
        }
        let moved = |place: &mut usize| places.get(place).copied().inspect(|new| *place = *new).is_some();
        for heap in self.processes.values_mut() {
            heap.open.retain_mut(moved);
            heap.ended = heap.ended.and_then(|place| places.get(&place).copied());
        }
        self.suspensions.iter_mut().for_each(|suspension| suspension.about.retain_mut(moved));
        // An end that was lost would keep its collection for ever.
        if kept.len() > MAX_OPEN {
            (kept, self.processes) = (Vec::new(), HashMap::new());
            self.suspensions = Suspensions::default();
        }
        self.done = kept;
        report(duration, std::mem::take(&mut self.pauses), done)
    }
}

/// The collections that may be open between two reports: more have lost their ends.
const MAX_OPEN: usize = 256;

fn report(duration: Duration, pause_list: Vec<GcPause>, done: Vec<Collection>) -> GcReport {
    let mut depths: Vec<_> = done.iter().map(|collection| collection.generation).collect();
    depths.sort_unstable();
    depths.dedup();
    let rows = depths.into_iter().map(Some).chain([None]);
    let generations: Vec<_> = rows.map(|generation| row(&done, generation)).collect();
    let pauses = Distribution::of(pause_list.iter().map(|pause| pause.duration).collect());
    GcReport {
        duration,
        pause_percent: percent(pauses.total, duration),
        pauses,
        pause_list,
        peak_after_bytes: done.iter().filter_map(|done| done.after_bytes).max().unwrap_or(0),
        generations,
        collections: done,
    }
}

impl Heap {
    /// All threads run again. The pause belongs to the first collection that began in it, except the time of
    /// collections that interrupted it, which began later and have ended. If none began in it, the pause
    /// belongs to the background collection. Returns its index.
    fn resume(
        &mut self,
        suspension: &Suspension<Vec<usize>>,
        now: RelativeTime,
        all: &mut [Collection],
    ) -> Option<usize> {
        let pause = now.abs_diff(suspension.start);
        let elapsed = now.abs_diff(self.resumed);
        let mut own = pause;
        for place in suspension.about.iter().skip(1) {
            let Some(inner) = all.get_mut(*place) else { continue };
            let took = inner.duration.unwrap_or_else(|| now.abs_diff(inner.start)).min(own);
            inner.pause(took, elapsed);
            own = own.saturating_sub(took);
        }
        let place = suspension.about.first().or(self.open.last()).copied()?;
        let collection = all.get_mut(place)?;
        collection.pause(own, elapsed);
        collection.suspend = collection.suspend.saturating_add(stopping(suspension));
        self.resumed = now;
        Some(place)
    }
}

/// Returns the time until all threads had stopped.
fn stopping(suspension: &Suspension<Vec<usize>>) -> Duration {
    let stopped = suspension.stopped;
    stopped.map_or(Duration::ZERO, |stopped| stopped.saturating_duration_since(suspension.start))
}

impl Collection {
    fn pause(&mut self, took: Duration, of_elapsed: Duration) {
        self.pauses = self.pauses.saturating_add(1);
        self.pause = Some(self.pause.unwrap_or_default().saturating_add(took));
        self.pause_percent = percent(took, of_elapsed).max(self.pause_percent);
    }
}

fn row(all: &[Collection], generation: Option<u32>) -> GenerationRow {
    let of = || all.iter().filter(|done| generation.is_none_or(|generation| done.generation == generation));
    GenerationRow {
        generation,
        collections: of().count() as u64,
        induced: of().filter(|collection| collection.reason.starts_with("Induced")).count() as u64,
        pauses: Distribution::of(of().filter_map(|collection| collection.pause).collect()),
        promoted_bytes: of().filter_map(|collection| collection.promoted_bytes).fold(0, u64::saturating_add),
    }
}

fn kind(kind: GcType) -> String {
    let name = kind.to_string();
    name.strip_suffix("GC").map_or_else(|| name.clone(), str::to_owned)
}

#[allow(clippy::cast_precision_loss, reason = "a share")]
fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_nanos() as f64 * 100.0 / whole.as_nanos() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_collections_are_in_a_later_report() {
        let mut collections = Collections::default();
        let collection = |number| Collection { number, ..Collection::default() };
        collections.done = (0..4).map(collection).collect();
        collections.pauses = vec![GcPause { duration: Duration::from_millis(5), ..GcPause::default() }];
        collections.processes.insert(None, Heap { open: vec![1, 3], ended: Some(2), ..Heap::default() });
        let report = collections.take(Duration::from_millis(100));
        let numbers = |report: &GcReport| report.collections.iter().map(|it| it.number).collect::<Vec<_>>();
        assert_eq!((numbers(&report), report.pause_percent), (vec![0], 5.0));
        let heap = collections.processes.get_mut(&None).unwrap();
        assert_eq!((&heap.open, heap.ended), (&vec![0, 2], Some(1)));
        heap.open.clear();
        heap.ended = None;
        let report = collections.take(Duration::from_millis(100));
        assert_eq!((numbers(&report), report.pauses.count), (vec![1, 2, 3], 0));
    }

    #[test]
    fn ends_that_never_come_keep_no_memory() {
        let done = vec![Collection::default(); MAX_OPEN + 1];
        let mut collections = Collections { done, ..Collections::default() };
        collections.processes.insert(None, Heap { open: (0..=MAX_OPEN).collect(), ..Heap::default() });
        assert!(collections.take(Duration::ZERO).collections.is_empty());
        assert!(collections.done.is_empty() && collections.processes.is_empty());
    }
}
