//! Sums of the subjects of a recording, by slices of time.

use std::time::Duration;

use hashbrown::HashMap;
use nettrace::RelativeTime;

use crate::diff::durations::SparseDurations;
use crate::diff::subject::{Kind, Subject};

/// Maximum number of slices of a recording: with more, two become one.
const MAX_SLICES: usize = 64;
/// Slice length of a short recording. Shorter slices would depend on their neighbours.
const MIN_SLICE: Duration = Duration::from_secs(1);
/// Maximum number of subjects of a kind; the rest is `(others)`.
const MAX_SUBJECTS: usize = 1 << 13;
/// Maximum number of subjects of a kind with durations, which take more memory.
const MAX_WITH_DURATIONS: usize = 1 << 9;

/// The sums of a subject in a slice.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cell {
    /// Nanoseconds, bytes or a number.
    pub(super) amount: f64,
    /// The number of events or samples.
    pub(super) count: f64,
    /// The part of the amount that was in the kernel.
    pub(super) kernel: f64,
    /// The sum of the squares of the amounts of these.
    pub(super) squares: f64,
    /// The durations of spans and waits.
    pub(super) durations: SparseDurations,
}

impl Cell {
    pub(super) fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.count += other.count;
        self.kernel += other.kernel;
        self.squares += other.squares;
        self.durations.merge(&other.durations);
    }
}

/// An amount to be added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) amount: f64,
    pub(super) count: f64,
    /// The part of the amount that was in the kernel.
    pub(super) kernel: f64,
    /// The duration in nanoseconds, if durations are counted.
    pub(super) duration: Option<u64>,
}

/// Cells by subject and slice. The first slice begins with the selected part of the recording.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    start: RelativeTime,
    slice: Duration,
    cells: HashMap<Subject, Vec<Cell>>,
    subjects: HashMap<Kind, usize>,
}

impl SeriesTable {
    pub(super) fn new(start: RelativeTime) -> Self {
        Self { start, slice: MIN_SLICE, ..Self::default() }
    }

    /// The length of a slice.
    pub(super) const fn slice(&self) -> Duration {
        self.slice
    }

    pub(super) fn into_cells(self) -> HashMap<Subject, Vec<Cell>> {
        self.cells
    }

    /// Lengthens the slices until a time is within the maximum number of slices, and returns its slice's
    /// index.
    pub(super) fn slice_of(&mut self, time: RelativeTime) -> usize {
        let since = time.saturating_duration_since(self.start);
        while since.as_nanos() / self.slice.as_nanos().max(1) >= MAX_SLICES as u128 {
            self.slice = self.slice.saturating_mul(2);
            for cells in self.cells.values_mut() {
                *cells = cells.chunks(2).map(merged).collect();
            }
        }
        usize::try_from(since.as_nanos() / self.slice.as_nanos().max(1)).unwrap_or(0)
    }

    /// Returns the nanoseconds until the slice after that of a time; at least 1.
    pub(super) fn until_next(&self, time: RelativeTime) -> u64 {
        let slice = u64::try_from(self.slice.as_nanos()).unwrap_or(u64::MAX).max(1);
        let since = u64::try_from(time.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX);
        slice - since % slice
    }

    /// Adds an amount of a subject, and of all of its kind, at a time.
    pub(super) fn add(&mut self, kind: Kind, name: &str, time: RelativeTime, amount: Entry) {
        let slice = self.slice_of(time);
        self.add_in(Subject::all(kind), slice, amount);
        if !name.is_empty() {
            self.add_in(Subject::new(kind, name.to_owned().into()), slice, amount);
        }
    }

    /// Adds an amount of a subject alone in a slice.
    pub(super) fn add_in(&mut self, subject: Subject, slice: usize, amount: Entry) {
        let most = if amount.duration.is_some() { MAX_WITH_DURATIONS } else { MAX_SUBJECTS };
        let subject = if self.cells.contains_key(&subject) {
            subject
        } else {
            let count = self.subjects.entry(subject.kind).or_default();
            *count += 1;
            if *count > most { Subject::new(subject.kind, "(others)".into()) } else { subject }
        };
        let cells = self.cells.entry(subject).or_default();
        if cells.len() <= slice {
            cells.resize(slice + 1, Cell::default());
        }
        let cell = &mut cells[slice];
        cell.amount += amount.amount;
        cell.count += amount.count;
        cell.kernel += amount.kernel;
        if amount.count > 0.0 {
            cell.squares += amount.amount * amount.amount / amount.count;
        }
        if let Some(duration) = amount.duration {
            cell.durations.add(duration);
        }
    }
}

/// Returns the sum of cells.
pub(super) fn merged(cells: &[Cell]) -> Cell {
    let mut sum = Cell::default();
    for cell in cells {
        sum.add(cell);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn slices_grow_with_the_recording_and_keep_their_sums() {
        let mut table = SeriesTable::new(at(500));
        for second in 0..200 {
            let amount = Entry { amount: 2.0, count: 1.0, kernel: 0.5, duration: Some(1000) };
            table.add(Kind::Requests, "GET /", at(500 + second * 1000), amount);
        }
        assert_eq!(table.slice(), Duration::from_secs(4));
        let cells = &table.cells[&Subject::new(Kind::Requests, "GET /".into())];
        assert_eq!(cells.len(), 50);
        let sums = |cell: &Cell| (cell.amount, cell.count, cell.kernel, cell.squares);
        assert!(cells.iter().all(|cell| sums(cell) == (8.0, 4.0, 2.0, 16.0)));
        assert_eq!(cells, &table.cells[&Subject::all(Kind::Requests)]);
        // Before the start counts as the start.
        assert_eq!(table.slice_of(at(0)), 0);
    }

    #[test]
    fn subjects_beyond_the_limit_share_one() {
        let mut table = SeriesTable::new(RelativeTime::START);
        for number in 0..MAX_WITH_DURATIONS * 2 {
            let amount = Entry { amount: 1.0, count: 1.0, kernel: 0.0, duration: Some(1) };
            table.add(Kind::Calls, &format!("/{number}"), RelativeTime::START, amount);
        }
        assert_eq!(table.cells.len(), MAX_WITH_DURATIONS + 1);
        let sum: f64 = table.cells.values().map(|cells| cells[0].amount).sum();
        #[allow(clippy::cast_precision_loss, reason = "exact")]
        let all = (MAX_WITH_DURATIONS * 4) as f64;
        assert!((sum - all).abs() < 1e-9);
    }
}
