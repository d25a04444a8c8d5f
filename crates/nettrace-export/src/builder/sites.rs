//! Samples, summed up by thread and stack.

use std::hash::BuildHasher as _;

use clr_events::StackId;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::builder::ContextId;
use crate::frame::FrameId;
use crate::metrics::Sample;

/// The key by which samples are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) thread: u32,
    /// Addresses.
    pub(super) stack: StackId,
    /// The frame below the stack.
    pub(super) leaf: Option<FrameId>,
    /// Of which time the addresses are.
    pub(super) generation: u32,
    pub(super) context: ContextId,
    /// The priority among duplicate sources.
    pub(super) rank: u8,
}

/// A key, and the sum of its samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub(super) place: Place,
    /// When it was seen first.
    pub(super) time: nettrace::Ticks,
    pub(super) weight: u64,
    pub(super) samples: u64,
}

/// All places.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sums: Vec<Sum>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Sites {
    /// Adds what was seen; gives the number of the place.
    #[inline]
    pub(super) fn add(&mut self, sample: &Sample) -> u32 {
        let place = Place {
            thread: sample.thread,
            stack: sample.stack,
            leaf: sample.leaf,
            generation: sample.generation,
            context: sample.context,
            rank: sample.rank,
        };
        let Self { sums, numbers, hasher } = self;
        let hash = hasher.hash_one(place);
        let place_of = |number: &u32| sums.get(*number as usize).map(|sum| sum.place);
        let found = numbers.find(hash, |number| place_of(number) == Some(place)).copied();
        let number = found.unwrap_or_else(|| {
            let number = u32::try_from(sums.len()).unwrap_or(u32::MAX);
            numbers.insert_unique(hash, number, |number| {
                sums.get(*number as usize).map_or(0, |sum| hasher.hash_one(sum.place))
            });
            sums.push(Sum { place, time: sample.time, weight: 0, samples: 0 });
            number
        });
        if let Some(sum) = sums.get_mut(number as usize) {
            sum.weight = sum.weight.saturating_add(sample.weight);
            sum.samples = sum.samples.saturating_add(1);
        }
        number
    }

    pub(super) fn all(&self) -> &[Sum] {
        &self.sums
    }
}
