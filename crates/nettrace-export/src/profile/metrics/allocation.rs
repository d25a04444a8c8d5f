//! Allocated bytes, each with its type at the leaf.

use hashbrown::HashMap;

use clr_events::ClrEvent;

use crate::profile::frame::FrameId;
use crate::profile::metrics::{Sample, SampleContext};

/// Allocations by the allocator's events. A recording may have several sources, which report the same bytes.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    /// Names of types that events refer to by number.
    names: HashMap<u64, String>,
    numbers: HashMap<FrameId, u64>,
}

/// Rank of `GCAllocationTick`, which counts all bytes since the one before it.
const TICK: u8 = 1;
/// An object that chance has chosen.
const SAMPLED: u8 = 2;
/// The objects of a type since the last event of that type.
const OF_TYPE: u8 = 3;

/// Maximum number of types with names that are kept.
const MAX_NAMES: usize = 1 << 17;

impl Allocations {
    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        match sample_context.view? {
            ClrEvent::AllocationTick(tick) => {
                let leaf = sample_context.leaves.intern(&tick.type_name.to_string());
                Some(Sample { rank: TICK, ..sample_context.point(tick.allocation_amount64, Some(leaf)) })
            }
            ClrEvent::AllocationSampled(sampled) => {
                let leaf = sample_context.leaves.intern(&sampled.type_name.to_string());
                Some(Sample { rank: SAMPLED, ..sample_context.point(sampled.estimated_bytes(), Some(leaf)) })
            }
            ClrEvent::SampledObjectAllocation(sampled) => {
                let leaf = sample_context.leaves.intern(&format!("type {:#x}", sampled.type_id));
                self.numbers.insert(leaf, sampled.type_id);
                Some(Sample {
                    rank: OF_TYPE,
                    ..sample_context.point(sampled.total_size_for_type_sample, Some(leaf))
                })
            }
            ClrEvent::BulkType(types) => {
                for row in types.values {
                    if self.names.len() < MAX_NAMES {
                        self.names.entry(row.type_id).or_insert_with(|| row.name.to_string());
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// Returns the name of a type that was known only as a number before.
    pub(super) fn late_name(&self, leaf: FrameId) -> Option<&str> {
        self.names.get(self.numbers.get(&leaf)?).map(String::as_str)
    }
}
