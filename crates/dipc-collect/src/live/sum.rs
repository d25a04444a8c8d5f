//! Sums of intervals.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nettrace_export::report::Collection;
use nettrace_export::{Metric, Profile, ProfileSum};

use super::interval::{Interval, Omissions};
use super::threads::ThreadRow;

/// Maximum number of distinct stacks in the sum of all intervals.
const MAX_STACKS: u32 = 1 << 18;
/// Maximum number of distinct threads, types and exceptions in sums: further ones are counted together.
const MAX_ROWS: usize = 4096;
/// Maximum number of recent collections to keep.
const MAX_COLLECTIONS: usize = 500;
/// The name of the row for everything beyond the limits.
const OTHERS: &str = "(others)";

/// The sums of all intervals of a process since its session began.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntervalSum {
    sum: ProfileSum,
    /// The total time of all intervals.
    pub length: Duration,
    /// The threads by their ids; 0 stands for threads beyond the limit.
    pub threads: BTreeMap<u64, ThreadRow>,
    /// The allocations by the C# names of types; `(others)` stands for types beyond the limit.
    pub types: BTreeMap<String, TypeSum>,
    /// The exceptions by the C# names of types; `(others)` stands for types beyond the limit.
    pub exceptions: BTreeMap<String, ExceptionSum>,
    /// The last collections, the newest first.
    pub collections: VecDeque<Collection>,
    omissions: Omissions,
}

/// The allocations of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeSum {
    /// The allocated bytes, estimated from samples.
    pub bytes: u64,
    /// The number of samples.
    pub samples: u64,
}

/// The exceptions of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExceptionSum {
    /// The number of exceptions.
    pub count: u64,
    /// The message of the first.
    pub message: String,
}

impl Default for IntervalSum {
    fn default() -> Self {
        Self {
            sum: ProfileSum::new(Metric::Wall, MAX_STACKS),
            length: Duration::ZERO,
            threads: BTreeMap::new(),
            types: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            collections: VecDeque::new(),
            omissions: Omissions::default(),
        }
    }
}

impl IntervalSum {
    /// Adds an interval to the sums.
    pub fn add(&mut self, interval: &Interval) {
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
    pub const fn sum(&self) -> &Profile {
        self.sum.profile()
    }

    /// Returns counts of the omissions from the data shown.
    pub fn omissions(&self) -> Omissions {
        let frames = self.omissions.frames.saturating_add(self.sum.left_out());
        Omissions { frames, ..self.omissions }
    }
}

/// The key of a row: its name, or [`OTHERS`] beyond the limit.
fn key<R>(rows: &BTreeMap<String, R>, name: &str) -> String {
    let has_room = rows.len() < MAX_ROWS || rows.contains_key(name);
    if has_room { name } else { OTHERS }.to_owned()
}

#[cfg(test)]
mod tests {
    use nettrace_export::report::TypeRow;

    use super::*;

    #[test]
    fn types_beyond_the_limit_are_counted_together() {
        let mut interval =
            Interval::new(ProfileSum::new(Metric::Wall, 0).into_profile(), Duration::from_secs(1));
        for number in 0..MAX_ROWS + 2 {
            let mut row = TypeRow::default();
            (row.csharp, row.bytes, row.samples) = (number.to_string(), 10, 1);
            interval.allocations.types.push(row);
            interval.threads.push(ThreadRow { id: number as u64 + 1, working: 5, ..ThreadRow::default() });
        }
        let mut sum = IntervalSum::default();
        sum.add(&interval);
        assert_eq!((sum.types.len(), sum.threads.len()), (MAX_ROWS + 1, MAX_ROWS + 1));
        assert_eq!(sum.types[OTHERS], TypeSum { bytes: 20, samples: 2 });
        assert_eq!((sum.threads[&0].working, &*sum.threads[&0].role), (10, OTHERS));
    }
}
