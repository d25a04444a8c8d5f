//! Claims of owners on ranges of addresses.

use std::collections::BTreeMap;

use super::owner::MemoryOwner;
use super::parts::PartName;
use crate::memory::PAGE;

/// Maximum number of claimed ranges.
const MAX_CLAIMS: usize = 1 << 19;

/// Claimed ranges of whole pages, which do not overlap: an earlier claim counts.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// By start.
    ranges: BTreeMap<u64, Claim>,
    parts: Vec<PartName>,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    end: u64,
    owner: MemoryOwner,
    part: Option<usize>,
}

/// A range of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The owner, with the number of its part; `None` of a range without a claim.
    pub(super) claim: Option<(MemoryOwner, Option<usize>)>,
}

impl Claims {
    /// Claims the pages of a range that nobody has claimed yet.
    pub(super) fn add(&mut self, start: u64, end: u64, owner: MemoryOwner, part: Option<usize>) {
        let Some(end) = end.checked_next_multiple_of(PAGE) else { return };
        let mut at = (start / PAGE).saturating_mul(PAGE);
        if let Some((_, before)) = self.ranges.range(..=at).next_back() {
            at = at.max(before.end);
        }
        while at < end && self.ranges.len() < MAX_CLAIMS {
            let next = self.ranges.range(at..).next().map(|(start, claim)| (*start, claim.end));
            let stop = next.map_or(end, |(start, _)| start.min(end));
            if at < stop {
                self.ranges.insert(at, Claim { end: stop, owner, part });
            }
            let Some((_, next_end)) = next else { break };
            at = next_end;
        }
    }

    /// Adds a part that claims refer to.
    pub(super) fn part(&mut self, part: PartName) -> usize {
        self.parts.push(part);
        self.parts.len().saturating_sub(1)
    }

    /// Returns a part by its number.
    pub(super) fn part_at(&self, number: usize) -> Option<&PartName> {
        self.parts.get(number)
    }

    /// Divides a range into its claimed and other parts, neighbours with the same owner in one.
    pub(super) fn pieces(&self, start: u64, end: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut add = |start: u64, end: u64, claim| {
            if start >= end {
                return;
            }
            match pieces.last_mut().filter(|last| last.claim == claim && last.end == start) {
                Some(last) => last.end = end,
                None => pieces.push(Piece { start, end, claim }),
            }
        };
        let mut at = start;
        let before = self.ranges.range(..=start).next_back().map_or(start, |(start, _)| *start);
        for (from, claim) in self.ranges.range(before..end) {
            let (from, to) = ((*from).max(at), claim.end.min(end));
            if from >= to {
                continue;
            }
            add(at, from, None);
            add(from, to, Some((claim.owner, claim.part)));
            at = to;
        }
        add(at, end, None);
        pieces
    }

    /// The parts of a range without a claim.
    pub(super) fn unclaimed(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let pieces = self.pieces(start, end).into_iter();
        pieces.filter(|piece| piece.claim.is_none()).map(|piece| (piece.start, piece.end))
    }

    /// Returns true if a part of a range has a claim.
    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.pieces(start, end).iter().any(|piece| piece.claim.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(claims: &Claims, start: u64, end: u64) -> Vec<(u64, u64, Option<MemoryOwner>)> {
        let pieces = claims.pieces(start, end).into_iter();
        pieces.map(|piece| (piece.start, piece.end, piece.claim.map(|(owner, _)| owner))).collect()
    }

    #[test]
    fn an_earlier_claim_counts() {
        let (first, second, third) = (MemoryOwner::JitCode, MemoryOwner::NativeHeap, MemoryOwner::Kernel);
        let mut claims = Claims::default();
        claims.add(0x3000, 0x5000, first, None);
        // Pages are whole.
        claims.add(0x7fff, 0x8001, first, None);
        claims.add(0x2000, 0x9000, second, None);
        claims.add(0, u64::MAX, third, None);
        claims.add(0x4000, 0xa000, third, None);
        let expected = [
            (0x1000, 0x2000, None),
            (0x2000, 0x3000, Some(second)),
            (0x3000, 0x5000, Some(first)),
            (0x5000, 0x7000, Some(second)),
            (0x7000, 0x9000, Some(first)),
            (0x9000, 0xa000, Some(third)),
            (0xa000, 0xb000, None),
        ];
        assert_eq!(pieces(&claims, 0x1000, 0xb000), expected);
        assert_eq!(
            pieces(&claims, 0x4000, 0x6000),
            [(0x4000, 0x5000, Some(first)), (0x5000, 0x6000, Some(second))]
        );
        assert!(claims.unclaimed(0x1000, 0xb000).eq([(0x1000, 0x2000), (0xa000, 0xb000)]));
        assert!(claims.overlaps(0x1000, 0x2001) && !claims.overlaps(0xa000, 0xb000));
    }

    #[test]
    fn neighbours_of_one_owner_are_one_piece() {
        let mut claims = Claims::default();
        let part = claims.part(PartName::new("a"));
        claims.add(0x1000, 0x2000, MemoryOwner::JitCode, None);
        claims.add(0x2000, 0x3000, MemoryOwner::JitCode, None);
        claims.add(0x3000, 0x4000, MemoryOwner::JitCode, Some(part));
        let owner = Some(MemoryOwner::JitCode);
        assert_eq!(pieces(&claims, 0x1000, 0x4000), [(0x1000, 0x3000, owner), (0x3000, 0x4000, owner)]);
        assert_eq!(claims.part_at(part), Some(&PartName::new("a")));
        // Empty ranges, and ranges that end before they begin.
        claims.add(0x5000, 0x5000, MemoryOwner::Kernel, None);
        claims.add(0x7000, 0x6000, MemoryOwner::Kernel, None);
        assert_eq!(pieces(&claims, 0x5000, 0x7000), [(0x5000, 0x7000, None)]);
        assert_eq!(pieces(&claims, 0x7000, 0x5000), []);
    }
}
