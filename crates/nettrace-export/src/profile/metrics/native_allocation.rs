//! Native allocations that are still in use.

use hashbrown::HashMap;

use clr_events::{NativeAllocation, NativeAllocationKind};
use nettrace::Event;

use crate::profile::liveness::NativeLiveness;
use crate::profile::metrics::{PendingSample, Sample, SampleContext};

/// Maximum number of allocations to follow, of all processes.
const MAX_ALLOCATIONS: usize = 1 << 19;

/// Allocations by the process and the address.
#[derive(Debug, Default)]
pub(super) struct NativeAllocations {
    in_use: HashMap<(Option<u64>, u64), Allocation>,
    liveness: NativeLiveness,
}

/// An allocation that is followed.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    sample: PendingSample,
    thread: u32,
    /// The bytes that it represents.
    bytes: u64,
    /// The number of allocations that it represents.
    count: u64,
}

impl NativeAllocations {
    /// Adds an event of freed memory or of the end of the probes, which count on all threads; false for other
    /// events.
    pub(super) fn add_end(&mut self, event: &Event<'_>) -> bool {
        let Some(kind) = NativeAllocationKind::of(event.metadata()) else { return false };
        match kind.read(event) {
            Some(NativeAllocation::Freed { address }) => {
                let known = self.in_use.remove(&(event.process_id(), address));
                self.liveness.freed = self.liveness.freed.saturating_add(known.is_some().into());
            }
            Some(NativeAllocation::End(end)) => self.liveness.add_end(&end),
            Some(NativeAllocation::Allocated { .. }) => return false,
            None => {}
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
        self.in_use.insert(key, Allocation { sample, thread, bytes, count });
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
