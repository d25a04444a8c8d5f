//! Growth from one snapshot to the next.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::snapshot::{MemorySnapshot, OwnerSnapshot};

/// The growth of the owners from one snapshot to another.
///
/// ```
/// use dipc_collect::memory::{MemoryGrowth, MemorySnapshot};
///
/// let snapshot = |time: u64, bytes: u64| {
///     MemorySnapshot::parse(
///         format!(
///             r#"{{"time_unix_ms": {time}, "rss_bytes": {bytes}, "unattributed_bytes": 0,
///             "owners": [{{"owner": "native-heap", "bytes": {bytes}}}]}}"#
///         )
///         .as_bytes(),
///     )
/// };
/// let growth = MemoryGrowth::between(&snapshot(0, 1_000_000)?, &snapshot(30_000, 4_000_000)?);
/// assert_eq!(growth.owners[0].change(), 3_000_000);
/// assert_eq!(growth.per_minute(growth.owners[0].change()), Some(6_000_000));
/// # Ok::<(), dipc_collect::memory::SnapshotError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryGrowth {
    /// The owners of either snapshot, the largest growth first.
    pub owners: Vec<OwnerGrowth>,
    /// All memory.
    pub total: OwnerGrowth,
    /// The time from one to the other; `None` if they do not state it, or in another order.
    pub elapsed: Option<Duration>,
    /// True if the second was read before the first.
    pub is_reversed: bool,
    /// True if they are of different processes.
    pub has_other_process: bool,
}

/// The growth of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerGrowth {
    /// The owner, as [`MemoryOwner::id`](clr_dump::MemoryOwner::id).
    pub owner: String,
    /// The name for people.
    pub name: String,
    /// Bytes in the first snapshot.
    pub before: u64,
    /// Bytes in the second snapshot.
    pub after: u64,
}

impl OwnerGrowth {
    /// The difference in bytes.
    pub fn change(&self) -> i64 {
        let change = i128::from(self.after) - i128::from(self.before);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    }
}

impl MemoryGrowth {
    /// Compares two snapshots.
    pub fn between(before: &MemorySnapshot, after: &MemorySnapshot) -> Self {
        let mut owners: BTreeMap<&str, OwnerGrowth> = BTreeMap::new();
        for (is_after, owned) in before
            .owners
            .iter()
            .map(|owned| (false, owned))
            .chain(after.owners.iter().map(|owned| (true, owned)))
        {
            let growth = owners.entry(&owned.owner).or_insert_with(|| OwnerGrowth::none(owned));
            if is_after {
                growth.after = owned.bytes;
            } else {
                growth.before = owned.bytes;
            }
        }
        let mut owners: Vec<_> = owners.into_values().collect();
        owners.sort_by_key(|growth| (Reverse(growth.change()), Reverse(growth.after)));
        let total = OwnerGrowth {
            owner: "all".to_owned(),
            name: if after.rss_bytes.is_some() { "All resident (RSS)" } else { "All in the dump" }.to_owned(),
            before: before.total(),
            after: after.total(),
        };
        let times = before.time_unix_ms.zip(after.time_unix_ms);
        let elapsed = times.and_then(|(before, after)| after.checked_sub(before));
        Self {
            owners,
            total,
            elapsed: elapsed.filter(|ms| *ms > 0).map(Duration::from_millis),
            is_reversed: times.is_some_and(|(before, after)| after < before),
            has_other_process: before
                .process_id
                .zip(after.process_id)
                .is_some_and(|(one, other)| one != other),
        }
    }

    /// Returns a change as bytes a minute; `None` without times.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a rate, of three digits"
    )]
    pub fn per_minute(&self, change: i64) -> Option<i64> {
        let minutes = self.elapsed?.as_secs_f64() / 60.0;
        Some((change as f64 / minutes) as i64)
    }

    /// Returns the owner that grew most; `None` if none grew.
    pub fn largest(&self) -> Option<&OwnerGrowth> {
        self.owners.first().filter(|growth| growth.change() > 0)
    }
}

impl OwnerGrowth {
    fn none(of: &OwnerSnapshot) -> Self {
        Self { owner: of.owner.clone(), name: of.name().to_owned(), before: 0, after: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(time: Option<u64>, pid: u32, owners: &[(&str, u64)]) -> MemorySnapshot {
        let owner = |(owner, bytes): &(&str, u64)| OwnerSnapshot {
            owner: (*owner).to_owned(),
            name: None,
            bytes: *bytes,
        };
        MemorySnapshot {
            time_unix_ms: time,
            process_id: Some(pid),
            rss_bytes: Some(owners.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)),
            dump_bytes: None,
            unattributed_bytes: 0,
            owners: owners.iter().map(owner).collect(),
        }
    }

    #[test]
    fn owners_are_in_the_order_of_growth() {
        let before = snapshot(Some(1000), 7, &[("gone", 500), ("same", 70), ("heap", 1000)]);
        let after = snapshot(Some(31_000), 7, &[("heap", 4000), ("new", 900), ("same", 70)]);
        let growth = MemoryGrowth::between(&before, &after);
        let rows: Vec<_> =
            growth.owners.iter().map(|of| (&*of.owner, of.before, of.after, of.change())).collect();
        assert_eq!(
            rows,
            [("heap", 1000, 4000, 3000), ("new", 0, 900, 900), ("same", 70, 70, 0), ("gone", 500, 0, -500)]
        );
        assert_eq!((growth.total.change(), growth.elapsed), (3400, Some(Duration::from_secs(30))));
        assert_eq!([3000, -500].map(|change| growth.per_minute(change)), [Some(6000), Some(-1000)]);
        assert_eq!(growth.largest().map(|of| &*of.owner), Some("heap"));
        assert!(!growth.is_reversed && !growth.has_other_process);
        // In the other order, the largest owner that is gone is last.
        let shrunk = MemoryGrowth::between(&after, &before);
        assert_eq!((shrunk.elapsed, shrunk.per_minute(60), shrunk.is_reversed), (None, None, true));
        assert_eq!(shrunk.owners.last().map(|of| &*of.owner), Some("heap"));
    }

    #[test]
    fn snapshots_without_times_and_of_others_are_compared() {
        let same = snapshot(None, 7, &[("heap", 1)]);
        let growth = MemoryGrowth::between(&same, &snapshot(Some(5), 8, &[("heap", 1)]));
        assert_eq!((growth.largest(), growth.elapsed, growth.is_reversed), (None, None, false));
        assert!(growth.has_other_process);
        // At the same time, nothing has a rate.
        let at = snapshot(Some(5), 7, &[]);
        assert_eq!(MemoryGrowth::between(&at, &at).elapsed, None);
        let most =
            MemoryGrowth::between(&snapshot(Some(0), 7, &[]), &snapshot(Some(1), 7, &[("x", u64::MAX)]));
        assert_eq!((most.total.change(), most.per_minute(i64::MAX)), (i64::MAX, Some(i64::MAX)));
        let least = MemoryGrowth::between(&snapshot(Some(0), 7, &[("x", u64::MAX)]), &at);
        assert_eq!(least.total.change(), i64::MIN);
    }
}
