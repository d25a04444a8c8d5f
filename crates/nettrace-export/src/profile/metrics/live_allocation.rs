//! Allocated bytes that are still in use, each with its type at the leaf.

use hashbrown::HashMap;

use clr_activity::{LiveObjects, SampledAllocation, SampledAllocations};
use clr_events::ClrEvent;
use nettrace::Event;

use crate::profile::liveness::Liveness;
use crate::profile::metrics::{PendingSample, Sample, SampleContext};

/// Maximum number of objects to follow, of all processes. Each represents about 100 KB.
const MAX_OBJECTS: usize = 1 << 19;

/// Maximum number of processes with followed objects.
const MAX_PROCESSES: usize = 1 << 12;

/// Sampled allocations, followed through the collections of their processes.
#[derive(Debug, Default)]
pub(super) struct LiveAllocations {
    heaps: HashMap<Option<u64>, LiveObjects<Allocation>>,
    /// The number of followed objects.
    followed: usize,
    /// Allocations of processes beyond the limit.
    left_out: u64,
    chosen: SampledAllocations,
}

/// A sampled allocation.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    sample: PendingSample,
    thread: u32,
    /// The bytes that it represents.
    weight: u64,
}

impl LiveAllocations {
    /// Adds an event of a collection; false for other events.
    pub(super) fn add_collection(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) -> bool {
        if matches!(view, ClrEvent::AllocationTick(_) | ClrEvent::AllocationSampled(_)) {
            return false;
        }
        if let Some(heap) = self.heap(event.process_id()) {
            let before = heap.len();
            heap.add(view);
            let died = before.saturating_sub(heap.len());
            self.followed = self.followed.saturating_sub(died);
        }
        true
    }

    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) {
        let Some(sampled) = sample_context.view.and_then(|view| self.chosen.choose(view)) else { return };
        if sampled.replaces_earlier {
            self.heaps.values_mut().for_each(LiveObjects::forget);
            self.followed = 0;
        }
        let leaf = sample_context.leaves.intern(&sampled.type_name.to_string());
        let sample = sample_context.pending(Some(leaf));
        let allocation = Allocation { sample, thread: sample_context.thread, weight: sampled.bytes };
        self.allocate(sample_context.event.process_id(), &sampled, allocation);
    }

    fn allocate(&mut self, process: Option<u64>, sampled: &SampledAllocation<'_>, allocation: Allocation) {
        let others = self.followed;
        let Some(heap) = self.heap(process) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        let before = heap.len();
        heap.set_limit(MAX_OBJECTS.saturating_sub(others.saturating_sub(before)));
        heap.allocate(sampled.address, sampled.object_size, sampled.kind, allocation);
        self.followed = others.saturating_sub(before).saturating_add(heap.len());
    }

    /// Returns the heap of a process; `None` beyond the limit.
    fn heap(&mut self, process: Option<u64>) -> Option<&mut LiveObjects<Allocation>> {
        if !self.heaps.contains_key(&process) && self.heaps.len() >= MAX_PROCESSES {
            return None;
        }
        Some(self.heaps.entry(process).or_insert_with(|| LiveObjects::new(MAX_OBJECTS)))
    }

    /// Returns the allocations that are in use, in order of time.
    pub(super) fn finish(&self) -> impl Iterator<Item = Sample> + use<> {
        let mut alive: Vec<_> = self.heaps.values().flat_map(LiveObjects::survivors).copied().collect();
        alive.sort_by_key(|allocation| (allocation.sample.start, allocation.thread, allocation.sample.time));
        alive.into_iter().map(|it| it.sample.weighing(it.weight, it.thread))
    }

    pub(super) fn liveness(&self) -> Liveness {
        let mut liveness = Liveness::default();
        let sums = &mut liveness.counts;
        sums.left_out = self.left_out;
        for counts in self.heaps.values().map(LiveObjects::counts) {
            for (sum, count) in [
                (&mut sums.collections, counts.collections),
                (&mut sums.full_collections, counts.full_collections),
                (&mut sums.missing_collections, counts.missing_collections),
                (&mut sums.dead, counts.dead),
                (&mut sums.left_out, counts.left_out),
            ] {
                *sum = sum.saturating_add(count);
            }
        }
        let not_collected = self.heaps.values().flat_map(LiveObjects::not_collected);
        liveness.not_collected =
            not_collected.map(|allocation| allocation.weight).fold(0, u64::saturating_add);
        liveness
    }
}
