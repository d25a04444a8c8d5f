//! Folding over events on all processors.

use alloc::vec::Vec;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::engine::block_outcome::BlockOutcome;
use crate::engine::deferred::{DeferredBlock, DeferredBlocks};
use crate::error::Error;
use crate::event::Event;
use crate::events::Events;
use crate::slice::SliceReader;

/// The blocks of a batch for each thread of the pool: enough to keep all threads busy although blocks are of
/// different sizes, and few enough that their outcomes take little memory.
const BLOCKS: usize = 128;

impl SliceReader<'_> {
    /// Folds the events that are left, on the threads of the current rayon pool: `fold` is given the events
    /// of some blocks, each time in the order of the file, with a value of `init`; `join` combines two such
    /// values, the left of which is from earlier in the file. Loss, damage and everything else that the
    /// reader knows is then as after [`Events::for_each`], except for the order of damage in the same block.
    ///
    /// A thread that is met for the first time has its number and its description, but its
    /// [index](Event::thread_slot) is relative to the block: use it for tables of a single block only.
    /// Indexes that are the same for all blocks would need a reading of all events before this one.
    ///
    /// Netperf recordings are read on one thread, because their blocks depend on one another.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let bytes_of_payloads = |sum: &mut usize, event: nettrace::Event<'_>| *sum += event.payload().len();
    /// let sum = events.par_fold(|| 0, bytes_of_payloads, |a, b| a + b)?;
    /// assert_eq!(sum, 18);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn par_fold<T: Send>(
        &mut self,
        init: impl Fn() -> T + Sync,
        fold: impl Fn(&mut T, Event<'_>) + Sync,
        join: impl Fn(T, T) -> T + Send,
    ) -> Result<T, Error> {
        // In the pool, so that no thread has to be woken between two batches.
        rayon::scope(|_| self.fold_in_pool(&init, &fold, join))
    }

    fn fold_in_pool<T: Send>(
        &mut self,
        init: &(impl Fn() -> T + Sync),
        fold: &(impl Fn(&mut T, Event<'_>) + Sync),
        join: impl Fn(T, T) -> T,
    ) -> Result<T, Error> {
        let mut whole = init();
        if !self.engine.has_independent_blocks() {
            self.for_each(|event| fold(&mut whole, event))?;
            return Ok(whole);
        }
        let most = BLOCKS.saturating_mul(rayon::current_num_threads());
        let bytes = self.source.0;
        let mut deferred = DeferredBlocks::default();
        loop {
            let is_last = self.engine.defer(bytes, &mut deferred, most)?;
            for (values, outcomes) in self.decode(&deferred, init, fold) {
                whole = join(whole, values);
                for (block, outcome) in outcomes {
                    self.engine.commit(bytes, block, outcome);
                }
            }
            deferred.clear();
            self.engine.tables.damages.sort();
            if is_last {
                return Ok(whole);
            }
        }
    }

    /// Decodes blocks at the same time, neighbours on the same thread.
    fn decode<'d, T: Send>(
        &self,
        deferred: &'d DeferredBlocks,
        init: &(impl Fn() -> T + Sync),
        fold: &(impl Fn(&mut T, Event<'_>) + Sync),
    ) -> Vec<(T, Vec<(&'d DeferredBlock, BlockOutcome)>)> {
        let Events { engine, source } = self;
        let decode = |blocks: &'d [DeferredBlock]| {
            let mut values = init();
            let outcomes = blocks.iter().map(|block| {
                let each = |event: Event<'_>| fold(&mut values, event);
                (block, engine.decode_deferred(source.0, deferred, block, each))
            });
            let outcomes = outcomes.collect();
            (values, outcomes)
        };
        // Several chunks for each thread, so that a thread that finishes early takes another.
        let chunks = rayon::current_num_threads().saturating_mul(8);
        let size = deferred.blocks.len().div_ceil(chunks).max(1);
        let chunks: Vec<_> = deferred.blocks.chunks(size).collect();
        chunks.par_iter().with_max_len(1).map(|blocks| decode(blocks)).collect()
    }
}
