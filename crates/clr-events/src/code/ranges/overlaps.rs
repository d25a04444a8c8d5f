//! Many ranges that hold one address: memory that is reused many times.

use alloc::vec::Vec;
use core::cmp::Reverse;

use nettrace::Ticks;

use super::span::{Found, Span, distance};

/// A segment tree over addresses. Each range is in the nodes that it covers, at most two a level, so the
/// ranges that hold an address are in the nodes on one path to the root. Within a node, a binary search by
/// time decides.
///
/// # Memory
/// 16 bytes for each range and level at most, for ranges that overlap more than are compared one by one.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// The addresses where a range begins, or the first after one; each begins a leaf.
    bounds: Vec<u64>,
    /// First slot by node; one more at the end. The root is node 1, and leaves are last.
    first_slots: Vec<u32>,
    slots: Vec<Slot>,
}

/// A range in a node. Within a node, ranges are ordered by [`Span::from`], and form a binary tree with the
/// middle range as its root.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Index of the range.
    range: u32,
    /// Index of the range that ends last of those below this slot, itself included.
    ends_last: u32,
}

impl Overlaps {
    /// Overlaps of the ranges with these indices.
    pub(super) fn new<T: Span>(ranges: &[T], indices: Vec<u32>) -> Self {
        let mut order = indices;
        order.retain(|index| get(ranges, *index).is_some_and(|range| range.start() <= range.last()));
        order.sort_unstable_by_key(|index| (from(ranges, *index), *index));
        let overlaps = Self { bounds: bounds(ranges, &order), ..Self::default() };
        let mut counts = alloc::vec![0u32; overlaps.bounds.len().saturating_mul(2).saturating_add(1)];
        overlaps.each_node(ranges, &order, |node, _| {
            if let Some(count) = counts.get_mut(node) {
                *count = count.saturating_add(1);
            }
        });
        let mut sum = 0u32;
        for count in &mut counts {
            sum = sum.saturating_add(core::mem::replace(count, sum));
        }
        let mut next = counts.clone();
        let mut slots = alloc::vec![Slot::default(); usize::try_from(sum).unwrap_or(0)];
        overlaps.each_node(ranges, &order, |node, range| {
            let Some(place) = next.get_mut(node) else { return };
            if let Some(slot) = slots.get_mut(*place as usize) {
                *slot = Slot { range, ends_last: range };
            }
            *place = place.saturating_add(1);
        });
        for node in counts.windows(2) {
            if let &[first, end] = node
                && let Some(slots) = slots.get_mut(first as usize..end as usize)
            {
                set_ends(ranges, slots);
            }
        }
        Self { first_slots: counts, slots, ..overlaps }
    }

    /// Calls `each` with every node that a range covers.
    fn each_node<T: Span>(&self, ranges: &[T], order: &[u32], mut each: impl FnMut(usize, u32)) {
        let leaves = self.bounds.len();
        let leaf =
            |address: u64| self.bounds.partition_point(|bound| *bound < address).saturating_add(leaves);
        for index in order {
            let Some(range) = get(ranges, *index) else { continue };
            let mut left = leaf(range.start());
            let mut right = range.last().checked_add(1).map_or(leaves.saturating_mul(2), leaf);
            while left < right {
                if left & 1 == 1 {
                    each(left, *index);
                    left = left.saturating_add(1);
                }
                if right & 1 == 1 {
                    right = right.saturating_sub(1);
                    each(right, *index);
                }
                left >>= 1;
                right >>= 1;
            }
        }
    }

    /// Returns true if nowhere more ranges overlap than are compared one by one.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        let nodes = self.bounds.capacity().saturating_mul(size_of::<u64>());
        let firsts = self.first_slots.capacity().saturating_mul(size_of::<u32>());
        let slots = self.slots.capacity().saturating_mul(size_of::<Slot>());
        nodes.saturating_add(firsts).saturating_add(slots)
    }

    /// The range that [`Ranges::find`](super::Ranges::find) finds, by `O(log² n)` steps.
    pub(super) fn find<T: Span>(&self, ranges: &[T], address: u64, time: Ticks) -> Option<Found> {
        let leaf = self.bounds.partition_point(|bound| *bound <= address).checked_sub(1)?;
        let mut node = leaf.saturating_add(self.bounds.len());
        let mut best: Option<((u64, u64), Reverse<u32>)> = None;
        let mut seen = 0usize;
        while node > 0 {
            let slots = self.slots_of(node);
            seen = seen.saturating_add(slots.len());
            for index in nearest(ranges, slots, time).into_iter().flatten() {
                let candidate = (distance(get(ranges, index)?, time), Reverse(index));
                if best.is_none_or(|best| candidate < best) {
                    best = Some(candidate);
                }
            }
            node >>= 1;
        }
        best.map(|(_, Reverse(index))| Found { index: index as usize, is_only: seen == 1 })
    }

    fn slots_of(&self, node: usize) -> &[Slot] {
        let bounds = self.first_slots.get(node).zip(self.first_slots.get(node.saturating_add(1)));
        bounds.and_then(|(first, end)| self.slots.get(*first as usize..*end as usize)).unwrap_or_default()
    }
}

fn get<T: Span>(ranges: &[T], index: u32) -> Option<&T> {
    ranges.get(index as usize)
}

fn from<T: Span>(ranges: &[T], index: u32) -> Ticks {
    get(ranges, index).map_or(Ticks(0), Span::from)
}

fn to<T: Span>(ranges: &[T], index: u32) -> Ticks {
    get(ranges, index).map_or(Ticks(0), Span::to)
}

/// Returns the first address of each range and the address after its last, sorted.
fn bounds<T: Span>(ranges: &[T], order: &[u32]) -> Vec<u64> {
    let mut bounds = Vec::with_capacity(order.len().saturating_mul(2));
    for range in order.iter().filter_map(|index| get(ranges, *index)) {
        bounds.push(range.start());
        bounds.extend(range.last().checked_add(1));
    }
    bounds.sort_unstable();
    bounds.dedup();
    bounds.shrink_to_fit();
    bounds
}

/// Sets [`Slot::ends_last`] of all slots and returns the middle slot's. Among ranges that end together, the
/// last counts.
fn set_ends<T: Span>(ranges: &[T], slots: &mut [Slot]) -> Option<u32> {
    let (left, rest) = slots.split_at_mut_checked(slots.len() / 2)?;
    let (middle, right) = rest.split_first_mut()?;
    let below = [set_ends(ranges, left), Some(middle.range), set_ends(ranges, right)];
    middle.ends_last = below.into_iter().flatten().max_by_key(|index| to(ranges, *index))?;
    Some(middle.ends_last)
}

/// The left half, the middle slot and the right half.
fn halves(slots: &[Slot]) -> Option<(&[Slot], &Slot, &[Slot])> {
    let (left, rest) = slots.split_at_checked(slots.len() / 2)?;
    let (middle, right) = rest.split_first()?;
    Some((left, middle, right))
}

/// The candidates of a node for the range nearest to a time: a range that has begun, and the next to begin.
fn nearest<T: Span>(ranges: &[T], slots: &[Slot], time: Ticks) -> [Option<u32>; 2] {
    let begun = slots.partition_point(|slot| from(ranges, slot.range) <= time);
    let before = newest(ranges, slots, begun, time).or_else(|| ends_last(ranges, slots, begun));
    let after = slots.get(begun).and_then(|next| {
        let next = from(ranges, next.range);
        let end = slots.partition_point(|slot| from(ranges, slot.range) <= next);
        Some(slots.get(end.checked_sub(1)?)?.range)
    });
    [before, after]
}

/// The last of the first `count` that does not end before `time`.
fn newest<T: Span>(ranges: &[T], slots: &[Slot], count: usize, time: Ticks) -> Option<u32> {
    let (left, middle, right) = halves(slots)?;
    if count == 0 || to(ranges, middle.ends_last) < time {
        return None;
    }
    let last_right = count.checked_sub(left.len().saturating_add(1));
    last_right
        .and_then(|count| newest(ranges, right, count, time))
        .or_else(|| last_right.and(Some(middle.range)).filter(|index| to(ranges, *index) >= time))
        .or_else(|| newest(ranges, left, count.min(left.len()), time))
}

/// The range that ends last among the first `count`.
fn ends_last<T: Span>(ranges: &[T], slots: &[Slot], count: usize) -> Option<u32> {
    let (left, middle, right) = halves(slots)?;
    if count >= slots.len() {
        return Some(middle.ends_last);
    }
    let Some(last_right) = count.checked_sub(left.len().saturating_add(1)) else {
        return ends_last(ranges, left, count);
    };
    let below =
        [ends_last(ranges, left, left.len()), Some(middle.range), ends_last(ranges, right, last_right)];
    below.into_iter().flatten().max_by_key(|index| to(ranges, *index))
}
