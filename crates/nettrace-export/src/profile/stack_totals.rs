//! Samples, summed up by thread and stack.

use clr_events::StackId;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use nettrace::Ticks;

use crate::profile::causality::ContextId;
use crate::profile::frame::FrameId;
use crate::profile::index::TotalIndex;
use crate::profile::metrics::Sample;

/// The key of a sum of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    pub(super) thread: u32,
    /// Addresses.
    pub(super) stack: StackId,
    /// The frame below the stack.
    pub(super) leaf: Option<FrameId>,
    /// The generation of the addresses.
    pub(super) generation: u32,
    pub(super) context: ContextId,
    /// The priority among duplicate sources.
    pub(super) rank: u8,
}

/// The sum of the samples of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackSum {
    /// The time at which it was seen first.
    pub(super) time: Ticks,
    pub(super) weight: u64,
    pub(super) samples: u64,
}

/// The sums of all samples, numbered in the order in which their keys were met.
#[derive(Debug, Default)]
pub(super) struct StackTotals(IndexMap<StackKey, StackSum, DefaultHashBuilder>);

impl StackTotals {
    /// Adds a sample and returns the number of its sum.
    #[inline]
    pub(super) fn add(&mut self, sample: &Sample) -> TotalIndex {
        let key = StackKey {
            thread: sample.thread,
            stack: sample.stack,
            leaf: sample.leaf,
            generation: sample.generation,
            context: sample.context,
            rank: sample.rank,
        };
        let entry = self.0.entry(key);
        let number = entry.index();
        let sum = entry.or_insert(StackSum { time: sample.time, weight: 0, samples: 0 });
        sum.weight = sum.weight.saturating_add(sample.weight);
        sum.samples = sum.samples.saturating_add(sample.samples);
        TotalIndex::of(number)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&StackKey, &StackSum)> {
        self.0.iter()
    }
}
