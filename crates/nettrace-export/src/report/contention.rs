//! Waits for locks.

use hashbrown::{HashMap, HashSet};
use std::time::Duration;

use clr_events::{ClrEvent, sets};
use nettrace::{Event, Metadata, RelativeTime, ThreadId};
use serde::Serialize;

use crate::decode::decode;
use crate::report::distribution::{Distribution, Durations};
use crate::report::lock_wait::{Deadlock, LockWait, deadlocks};
use crate::report::nanoseconds;
use crate::report::timeline::Timeline;
use crate::report::user_caller::UserCallerName;

/// Waits for one lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockRow {
    /// The runtime's number for the lock; 0 where it does not say (before .NET 7).
    pub lock: u64,
    /// The address that the object had that is locked.
    pub object: u64,
    /// The number of waits.
    pub waits: u64,
    /// The sum of the waits.
    #[serde(rename = "total_ns", serialize_with = "nanoseconds::serialize")]
    pub total: Duration,
    /// Duration of the longest wait.
    #[serde(rename = "max_ns", serialize_with = "nanoseconds::serialize")]
    pub max: Duration,
    /// The number of threads that waited.
    pub threads: u64,
    /// The thread that held the lock for most of the waits' time, with that time; `None` where the runtime
    /// does not say.
    #[serde(skip)]
    pub owner: Option<(u64, Duration)>,
    /// The user's method that waited the longest, if it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UserCallerName>,
}

/// The waits for locks in a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ContentionReport {
    /// The durations of waits.
    pub waits: Distribution,
    /// Waits that had not ended when the recording did.
    pub unfinished: u64,
    /// Nanoseconds waited, by when the waits began.
    pub timeline: Timeline,
    /// By lock, the longest sum first.
    pub locks: Vec<LockRow>,
    /// Waits that had not ended when the recording did, the longest first; if there are very many, only some
    /// threads' waits.
    pub unfinished_waits: Vec<LockWait>,
    /// Threads that wait for one another.
    pub deadlocks: Vec<Deadlock>,
}

impl ContentionReport {
    /// Returns true if no thread waited.
    pub const fn is_empty(&self) -> bool {
        self.waits.count == 0 && self.unfinished == 0
    }

    /// Names threads that are unnamed in the recording, given process and thread.
    pub fn name_threads(&mut self, name: impl Fn(Option<u64>, u64) -> Option<String>) {
        for wait in &mut self.unfinished_waits {
            wait.name = wait.name.take().or_else(|| name(wait.pid, wait.tid));
        }
        let known = self.unfinished_waits.iter();
        let known: HashMap<_, _> =
            known.filter_map(|wait| Some(((wait.pid, wait.tid), wait.name.clone()?))).collect();
        for wait in &mut self.unfinished_waits {
            let Some(owner) = wait.owner_tid else { continue };
            let of_owner = || known.get(&(wait.pid, owner)).cloned().or_else(|| name(wait.pid, owner));
            wait.owner_name = wait.owner_name.take().or_else(of_owner);
        }
        self.deadlocks = deadlocks(&self.unfinished_waits);
    }
}

/// Gathers waits for locks: runtime keyword `Contention` (0x4000) at level informational.
///
/// ```no_run
/// use nettrace_export::{nettrace::Reader, report::{Contention, read_kinds}};
///
/// let recording = Reader::new(std::fs::File::open("app.nettrace")?)?;
/// let mut contention = Contention::default();
/// read_kinds(recording, Contention::needs, |event| contention.add(event))?;
/// println!("{:?}", contention.finish());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Contention {
    open: HashMap<(Option<u64>, ThreadId), LockWait>,
    locks: HashMap<(Option<u64>, u64), Lock>,
    waits: Durations,
    timeline: Timeline,
}

/// A lock.
#[derive(Debug, Default)]
struct Lock {
    row: LockRow,
    /// The threads that waited for it.
    threads: HashSet<ThreadId>,
    /// The time of the waits, keyed by the thread that held it when they began.
    owners: HashMap<u64, Duration>,
}

/// The number of distinct locks, and of threads that are counted for each.
const MAX_LOCKS: usize = 1 << 16;

impl Contention {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        sets::CONTENTION.contains(kind)
    }

    /// Adds an event. Looks at [`sets::CONTENTION`].
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(view) = decode(event, &sets::CONTENTION) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let key = (event.process_id(), event.thread_id());
        let now = event.relative_time().max(RelativeTime::START);
        match view {
            ClrEvent::ContentionStart(start) => {
                let lock = start.lock_id.unwrap_or(0);
                let lock = if self.locks.len() < MAX_LOCKS { lock } else { 0 };
                let Lock { row, threads, .. } = self.locks.entry((key.0, lock)).or_default();
                row.lock = lock;
                row.object = start.associated_object_id.unwrap_or(0);
                if threads.len() < MAX_LOCKS {
                    threads.insert(key.1);
                }
                let wait = LockWait {
                    pid: key.0,
                    tid: key.1.0,
                    lock,
                    object: start.associated_object_id.unwrap_or(0),
                    owner_tid: start.lock_owner_thread_id.filter(|owner| *owner != 0),
                    name: name_of_thread(event),
                    owner_name: None,
                    since: now,
                    from: None,
                };
                self.open.insert(key, wait);
            }
            ClrEvent::ContentionStop(stop) => {
                let begin = self.open.remove(&key);
                let since_begin = begin.as_ref().map(|wait| now.abs_diff(wait.since));
                let Some(waited) = stop.duration().or(since_begin) else { return };
                // The lock of a wait that began before the recording is unknown.
                let begin = begin.map(|wait| (wait.since, wait.lock, wait.owner_tid));
                let (start, lock, owner) = begin.unwrap_or_else(|| {
                    let before = now.since_start().saturating_sub(waited);
                    (RelativeTime::after_start(before), 0, None)
                });
                self.waits.add(waited);
                self.timeline.add(start, nanoseconds::saturating(waited));
                let Lock { row, threads, owners } = self.locks.entry((key.0, lock)).or_default();
                if let Some(owner) =
                    owner.filter(|owner| owners.len() < MAX_LOCKS || owners.contains_key(owner))
                {
                    let held = owners.entry(owner).or_default();
                    *held = held.saturating_add(waited);
                }
                row.waits += 1;
                row.total = row.total.saturating_add(waited);
                row.max = row.max.max(waited);
                if threads.len() < MAX_LOCKS {
                    threads.insert(key.1);
                }
            }
            _ => {}
        }
    }

    /// Returns the report.
    pub fn finish(self) -> ContentionReport {
        let rows = self.locks.into_values().map(|Lock { row, threads, owners }| {
            let owner = owners.into_iter().max_by_key(|(owner, held)| (*held, *owner));
            LockRow { threads: threads.len() as u64, owner, ..row }
        });
        let mut locks: Vec<_> = rows.collect();
        locks.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.lock.cmp(&b.lock)));
        let unfinished = self.open.len() as u64;
        let mut unfinished_waits: Vec<_> = self.open.into_values().take(MAX_LOCKS).collect();
        unfinished_waits.sort_by_key(|wait| (wait.since, wait.pid, wait.tid));
        let mut report = ContentionReport {
            waits: self.waits.distribution(),
            unfinished,
            timeline: self.timeline,
            locks,
            unfinished_waits,
            deadlocks: Vec::new(),
        };
        report.name_threads(|_, _| None);
        report
    }
}

/// Returns the name that a recording has for the thread of an event.
fn name_of_thread(event: &Event<'_>) -> Option<String> {
    event.thread()?.name().filter(|name| !name.is_empty()).map(str::to_owned)
}
