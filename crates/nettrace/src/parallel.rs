//! Events in no order, on all processors.

use alloc::vec::Vec;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::engine::Step;
use crate::engine::deferred::{BlockOutcome, DeferredBlock};
use crate::error::Error;
use crate::event::Event;
use crate::events::Events;
use crate::slice::SliceReader;

/// How many blocks are read at the same time, for each thread of the pool: enough to keep all of them busy although blocks are
/// of different sizes, and few enough that what is said of them takes no memory worth mentioning.
const BLOCKS: usize = 128;

impl SliceReader<'_> {
    /// Folds the events that are left, on the threads of the current rayon pool: `fold` is given the events of some blocks, each
    /// time in the order of the file, with a value of `init`; `join` makes one of two such values, the left one of which comes
    /// from earlier in the file. Loss, damage and whatever else the reader knows is then as after [`Events::for_each`], but for
    /// the order in which damage of the same block is listed.
    ///
    /// Netperf recordings, whose blocks depend on one another, are read on one thread.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn par_fold<T: Send>(
        &mut self,
        init: impl Fn() -> T + Sync,
        fold: impl Fn(&mut T, Event<'_>) + Sync,
        join: impl Fn(T, T) -> T + Send,
    ) -> Result<T, Error> {
        // In the pool, so that between two batches nobody has to be woken.
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
        let mut passed = Vec::new();
        loop {
            let step = self.engine.pass(self.source.0)?;
            let is_last = match step {
                Ok(block) => {
                    passed.push(block);
                    if passed.len() < most {
                        continue;
                    }
                    false
                }
                Err(step) => step == Step::End,
            };
            for (values, accounts) in self.decode_deferred(&passed, init, fold) {
                whole = join(whole, values);
                for (block, account) in accounts {
                    self.engine.commit(self.source.0, block, account);
                }
            }
            passed.clear();
            self.engine.forget_past();
            if is_last {
                return Ok(whole);
            }
        }
    }

    /// Reads blocks at the same time, neighbours together.
    fn decode_deferred<'p, T: Send>(
        &self,
        passed: &'p [DeferredBlock],
        init: &(impl Fn() -> T + Sync),
        fold: &(impl Fn(&mut T, Event<'_>) + Sync),
    ) -> Vec<(T, Vec<(&'p DeferredBlock, BlockOutcome)>)> {
        let Events { engine, source } = self;
        let read = |blocks: &'p [DeferredBlock]| {
            let mut values = init();
            let accounts = blocks.iter().map(|block| {
                (block, engine.decode_deferred(source.0, block, |event| fold(&mut values, event)))
            });
            let accounts = accounts.collect();
            (values, accounts)
        };
        // Several pieces for each thread, so that one which is done early takes on another.
        let pieces = rayon::current_num_threads().saturating_mul(8);
        let size = passed.len().div_ceil(pieces).max(1);
        let pieces: Vec<_> = passed.chunks(size).collect();
        pieces.par_iter().with_max_len(1).map(|blocks| read(blocks)).collect()
    }
}
