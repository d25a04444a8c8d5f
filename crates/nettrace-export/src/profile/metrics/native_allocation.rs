//! Native allocations that are still in use.

use std::collections::BTreeMap;

use clr_events::{NativeAllocation, NativeAllocationKind};
use nettrace::Event;

use crate::profile::liveness::NativeLiveness;
use crate::profile::metrics::{PendingSample, Sample, SampleContext};

/// Maximum number of allocations to follow, of all processes.
const MAX_ALLOCATIONS: usize = 1 << 19;

/// Allocations by the process and the address.
#[derive(Debug, Default)]
pub(super) struct NativeAllocations {
    in_use: BTreeMap<(Option<u64>, u64), Allocation>,
    liveness: NativeLiveness,
}

/// An allocation that is followed.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    sample: PendingSample,
    thread: u32,
    /// Its own bytes.
    size: u64,
    /// The bytes that it represents.
    bytes: u64,
    /// The number of allocations that it represents.
    count: u64,
}

impl Allocation {
    /// A part of it with a number of bytes, which represents as much of all bytes.
    fn part(self, size: u64) -> Self {
        let bytes = u128::from(self.bytes).saturating_mul(size.into()) / u128::from(self.size.max(1));
        Self { size, bytes: u64::try_from(bytes).unwrap_or(u64::MAX), ..self }
    }
}

impl NativeAllocations {
    /// Adds an event of freed memory or of the end of the probes, which count on all threads; false for other
    /// events.
    pub(super) fn add_end(&mut self, event: &Event<'_>) -> bool {
        let Some(kind) = NativeAllocationKind::of(event.metadata()) else { return false };
        match kind.read(event) {
            Some(NativeAllocation::Freed { address, size: 0 }) => {
                let known = self.in_use.remove(&(event.process_id(), address));
                self.liveness.freed = self.liveness.freed.saturating_add(known.is_some().into());
            }
            Some(NativeAllocation::Freed { address, size }) => {
                self.free_range(event.process_id(), address, address.saturating_add(size));
            }
            Some(NativeAllocation::End(end)) => self.liveness.add_end(&end),
            Some(NativeAllocation::Allocated { .. }) => return false,
            None => {}
        }
        true
    }

    /// Frees a range of addresses: allocations in it, and parts of the first and the last.
    fn free_range(&mut self, process: Option<u64>, start: u64, end: u64) {
        let before = self.in_use.range((process, 0)..(process, start)).next_back();
        let before = before.map(|((_, address), allocation)| (*address, *allocation));
        if let Some((address, allocation)) = before.filter(|(at, of)| at.saturating_add(of.size) > start) {
            let kept = allocation.part(start.saturating_sub(address));
            self.in_use.insert((process, address), kept);
            self.keep_from(process, end, (address, allocation));
        }
        let within = self.in_use.range((process, start)..(process, end));
        let within: Vec<_> = within.map(|((_, address), allocation)| (*address, *allocation)).collect();
        for (address, allocation) in within {
            self.in_use.remove(&(process, address));
            if !self.keep_from(process, end, (address, allocation)) {
                self.liveness.freed = self.liveness.freed.saturating_add(1);
            }
        }
    }

    /// Keeps the part of an allocation from an address on. Returns false if it ends before.
    fn keep_from(
        &mut self,
        process: Option<u64>,
        start: u64,
        (address, allocation): (u64, Allocation),
    ) -> bool {
        let rest = address.saturating_add(allocation.size).saturating_sub(start);
        if rest == 0 {
            return false;
        }
        if self.in_use.len() < MAX_ALLOCATIONS {
            self.in_use.insert((process, start), allocation.part(rest));
        } else {
            self.liveness.left_out = self.liveness.left_out.saturating_add(1);
        }
        true
    }

    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) {
        let event = sample_context.event;
        let kind = NativeAllocationKind::of(event.metadata());
        let Some(NativeAllocation::Allocated { address, size, bytes }) =
            kind.and_then(|kind| kind.read(event))
        else {
            return;
        };
        self.liveness.allocations = self.liveness.allocations.saturating_add(1);
        let key = (event.process_id(), address);
        if self.in_use.len() >= MAX_ALLOCATIONS && !self.in_use.contains_key(&key) {
            self.liveness.left_out = self.liveness.left_out.saturating_add(1);
            return;
        }
        let half = size / 2;
        let count = bytes.saturating_add(half).checked_div(size).unwrap_or(1).max(1);
        let (sample, thread) = (sample_context.pending(None), sample_context.thread);
        // What was at the address before was freed unseen.
        self.in_use.insert(key, Allocation { sample, thread, size, bytes, count });
    }

    /// Returns the allocations that are in use, in order of time.
    pub(super) fn finish(&self) -> impl Iterator<Item = Sample> + use<> {
        let mut in_use: Vec<_> = self.in_use.iter().map(|(key, allocation)| (*key, *allocation)).collect();
        in_use.sort_by_key(|(key, allocation)| (allocation.sample.start, *key));
        in_use
            .into_iter()
            .map(|(_, of)| Sample { samples: of.count, ..of.sample.weighing(of.bytes, of.thread) })
    }

    pub(super) const fn liveness(&self) -> NativeLiveness {
        self.liveness
    }
}
