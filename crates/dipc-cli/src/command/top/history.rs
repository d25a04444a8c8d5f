//! The data kept of a process: its last interval, and sums since its session began.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nettrace_export::report::Collection;
use nettrace_export::{Metric, Profile, ProfileSum};

use crate::command::top::interval::{Interval, Omissions, ThreadRow};
use crate::command::top::session::Features;
use crate::record::watch::WatchedProcess;

/// Maximum number of distinct stacks in the sum of all intervals.
const MAX_STACKS: u32 = 1 << 18;
/// Maximum number of distinct threads, types and exceptions in sums: further ones are counted together.
const MAX_ROWS: usize = 4096;
/// Maximum number of recent collections to keep.
const MAX_COLLECTIONS: usize = 500;
/// The name of the row for everything beyond the limits.
const OTHERS: &str = "(others)";

/// A process, and the data known about it.
pub(super) struct History {
    pub(super) process: WatchedProcess,
    pub(super) features: Features,
    pub(super) has_ended: bool,
    /// The interval shown.
    pub(super) latest: Option<Interval>,
    sum: ProfileSum,
    /// The total time of all intervals.
    pub(super) length: Duration,
    pub(super) threads: BTreeMap<u64, ThreadRow>,
    pub(super) types: BTreeMap<String, TypeSum>,
    pub(super) exceptions: BTreeMap<String, ExceptionSum>,
    /// The last collections, the newest first.
    pub(super) collections: VecDeque<Collection>,
    pub(super) omissions: Omissions,
}

/// The allocations of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypeSum {
    pub(super) bytes: u64,
    pub(super) samples: u64,
}

/// The exceptions of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ExceptionSum {
    pub(super) count: u64,
    /// The message of the first.
    pub(super) message: String,
}

impl History {
    pub(super) fn new(process: &WatchedProcess, features: Features) -> Self {
        Self {
            process: process.clone(),
            features,
            has_ended: false,
            latest: None,
            sum: ProfileSum::new(Metric::Wall, MAX_STACKS),
            length: Duration::ZERO,
            threads: BTreeMap::new(),
            types: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            collections: VecDeque::new(),
            omissions: Omissions::default(),
        }
    }

    /// Adds an interval to the sums.
    pub(super) fn add(&mut self, interval: &Interval) {
        self.sum.add(&interval.profile);
        self.length = self.length.saturating_add(interval.length);
        for row in &interval.threads {
            let id =
                if self.threads.len() < MAX_ROWS || self.threads.contains_key(&row.id) { row.id } else { 0 };
            let sum = self.threads.entry(id).or_insert_with(|| ThreadRow {
                id,
                name: if id == 0 { String::new() } else { row.name.clone() },
                role: if id == 0 { OTHERS.to_owned() } else { row.role.clone() },
                ..ThreadRow::default()
            });
            sum.working = sum.working.saturating_add(row.working);
            sum.runnable = sum.runnable.saturating_add(row.runnable);
            sum.blocked = sum.blocked.saturating_add(row.blocked);
            sum.idle = sum.idle.saturating_add(row.idle);
            sum.waited = sum.waited.saturating_add(row.waited);
        }
        for row in &interval.allocations.types {
            let sum = self.types.entry(key(&self.types, &row.csharp)).or_default();
            sum.bytes = sum.bytes.saturating_add(row.bytes);
            sum.samples = sum.samples.saturating_add(row.samples);
        }
        for row in &interval.exceptions.types {
            let sum = self.exceptions.entry(key(&self.exceptions, &row.csharp)).or_default();
            sum.count = sum.count.saturating_add(row.count);
            if sum.message.is_empty() {
                sum.message.clone_from(&row.first_message);
            }
        }
        for collection in &interval.collections.collections {
            self.collections.push_front(collection.clone());
        }
        self.collections.truncate(MAX_COLLECTIONS);
        let (sum, new) = (&mut self.omissions, interval.omissions);
        sum.lost = new.lost;
        sum.samples = sum.samples.saturating_add(new.samples);
        sum.frames = sum.frames.saturating_add(new.frames);
        sum.unnamed = sum.unnamed.saturating_add(new.unnamed);
    }

    /// All samples since the session began.
    pub(super) const fn sum(&self) -> &Profile {
        self.sum.profile()
    }

    /// Returns the counts of what is missing from the data shown.
    pub(super) fn omissions(&self) -> Omissions {
        let frames = self.omissions.frames.saturating_add(self.sum.left_out());
        Omissions { frames, ..self.omissions }
    }
}

/// The key of a row: its name, or [`OTHERS`] beyond the limit.
fn key<R>(rows: &BTreeMap<String, R>, name: &str) -> String {
    let has_room = rows.len() < MAX_ROWS || rows.contains_key(name);
    if has_room { name } else { OTHERS }.to_owned()
}
