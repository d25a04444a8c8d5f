//! Folding over the events of a file on several threads.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io::ErrorKind;
use std::thread;

use crate::engine::batch::{Batch, Fill, Run};
use crate::engine::block_outcome::BlockOutcome;
use crate::error::Error;
use crate::event::Event;
use crate::events::sealed::Source as _;
use crate::read_at::{ReadAt, ReadAtInput};
use crate::reader::Reader;

/// The bytes of event blocks in a batch for each thread: enough that starting threads costs little, few
/// enough that the outcomes of the blocks take little memory.
const BATCH: usize = 8 << 20;
/// The bytes of event blocks that are worth another thread.
const WORTH_A_THREAD: usize = 256 << 10;

/// A thread's part of a fold.
struct Worker<T> {
    value: T,
    /// The bytes of blocks that are read at a time.
    bytes: Vec<u8>,
    /// Outcomes with the numbers of their blocks in the batch.
    outcomes: Vec<(usize, BlockOutcome)>,
}

impl<'a, I: ReadAt + ?Sized> Reader<ReadAtInput<'a, I>> {
    /// Reads a recording on several threads, and folds its events: `fold` takes an event and the thread's
    /// value, which `init` creates, and `join` combines two such values. Returns the value and the reader,
    /// which has read everything and knows losses, damage, kinds of events and so on.
    ///
    /// A thread takes the events of some blocks, in file order within a block; the assignment of blocks
    /// differs from run to run. So do not rely on the order in which values are joined. `fold` may be called
    /// for a value that is dropped later, so it should not have side effects.
    ///
    /// The calling thread reads everything but event blocks, and the first bytes and the last byte of event
    /// blocks. Each thread reads and decodes whole blocks, few at a time, so that memory does not grow with
    /// the recording. The events, and everything that the reader knows, are the same as with one thread,
    /// except [`thread_slot`](Event::thread_slot), which is as in `SliceReader::par_fold`.
    ///
    /// A single thread reads netperf recordings, because their blocks depend on one another, and everything
    /// from the first event block that is cut or larger than 4 MiB. A recording with damage is read a second
    /// time, on one thread. So is a V6 recording in which the bytes after an event block do not show that the
    /// block ends there: a recording that was cut, or has blocks of unknown kinds.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let file = std::fs::File::open("app.nettrace")?;
    /// let count = |count: &mut u64, _: nettrace::Event<'_>| *count += 1;
    /// let (reader, events) = nettrace::Reader::par_fold(&file, 4, || 0, count, |a, b| a + b)?;
    /// println!("{events} events, {} lost", reader.loss().total());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`next`](Self::next).
    pub fn par_fold<T: Send>(
        input: &'a I,
        threads: usize,
        init: impl Fn() -> T,
        fold: impl Fn(&mut T, Event<'_>) + Sync,
        join: impl Fn(T, T) -> T,
    ) -> Result<(Self, T), Error> {
        let reader = Self::at_start(input)?;
        if threads > 1 && reader.engine.has_independent_blocks() {
            let worker = || Worker { value: init(), bytes: Vec::new(), outcomes: Vec::new() };
            let workers = (0..threads).map(|_| worker()).collect();
            if let Some((reader, workers)) = reader.fold_on(workers, &fold) {
                let values = workers.into_iter().map(|worker| worker.value);
                return Ok((reader, values.reduce(join).unwrap_or_else(init)));
            }
        }
        let mut reader = Self::at_start(input)?;
        let mut value = init();
        reader.for_each(|event| fold(&mut value, event))?;
        Ok((reader, value))
    }

    /// Folds the events on the threads of the workers. Returns `None` if the recording violates the format or
    /// is unreadable.
    fn fold_on<T: Send>(
        mut self,
        mut workers: Vec<Worker<T>>,
        fold: &(impl Fn(&mut T, Event<'_>) + Sync),
    ) -> Option<(Self, Vec<Worker<T>>)> {
        self.engine.leave_unread(self.input().size);
        let most_bytes = BATCH.saturating_mul(workers.len());
        let mut batch = Batch::default();
        loop {
            let bytes = self.source.bytes();
            let fill = self.engine.fill(bytes, self.source.is_complete(), &mut batch, most_bytes).ok()?;
            match fill {
                Fill::NeedMore(wanted) => {
                    if !self.more(wanted).ok()? {
                        return None;
                    }
                    continue;
                }
                Fill::Skip(beyond) => {
                    let at_hand = self.source.bytes().len();
                    if !self.source.skip(beyond.saturating_sub(1)).ok()? {
                        return None;
                    }
                    self.engine.moved_beyond(at_hand, beyond);
                    continue;
                }
                Fill::Irregular => return None,
                Fill::Full | Fill::Rest => {}
            }
            let outcomes = self.decode(&batch, &mut workers, fold)?;
            self.engine.commit_batch(&batch, outcomes);
            if self.engine.is_irregular() {
                return None;
            }
            batch.clear();
            if fill == Fill::Rest {
                break;
            }
        }
        self.engine.read_all();
        let first = workers.first_mut()?;
        self.for_each(|event| fold(&mut first.value, event)).ok()?;
        Some((self, workers))
    }

    /// Decodes the blocks of a batch. Returns their outcomes, or `None` if one violates the format.
    fn decode<T: Send>(
        &self,
        batch: &Batch,
        workers: &mut [Worker<T>],
        fold: &(impl Fn(&mut T, Event<'_>) + Sync),
    ) -> Option<Vec<BlockOutcome>> {
        let (engine, input) = (&self.engine, self.input().input);
        let next = AtomicUsize::new(0);
        let has_failed = AtomicBool::new(false);
        let work = |worker: &mut Worker<T>| {
            while !has_failed.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = batch.runs.get(index) else { break };
                let Worker { value, bytes, outcomes } = worker;
                let each = |event: Event<'_>| fold(value, event);
                let decoded = read_run(input, run, bytes)
                    .and_then(|bytes| engine.decode_run(batch, run, bytes, outcomes, each));
                if decoded.is_none() {
                    has_failed.store(true, Ordering::Relaxed);
                }
            }
        };
        let (first, others) = workers.split_first_mut()?;
        let helpers = batch.bytes / WORTH_A_THREAD;
        thread::scope(|scope| {
            for worker in others.iter_mut().take(helpers) {
                let thread = thread::Builder::new().name("reader".into());
                // If a thread cannot be started, the others do its work.
                let _ = thread.spawn_scoped(scope, || work(worker));
            }
            work(first);
        });
        if has_failed.into_inner() {
            return None;
        }
        let mut outcomes: Vec<_> = workers.iter_mut().flat_map(|worker| worker.outcomes.drain(..)).collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        Some(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

/// Reads the bytes of a run. Returns `None` if they cannot be read whole.
fn read_run<'b, I: ReadAt + ?Sized>(input: &I, run: &Run, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    if buffer.len() < run.size {
        buffer.resize(run.size, 0);
    }
    let bytes = buffer.get_mut(..run.size)?;
    let mut filled = 0_usize;
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match input.read_at(room, run.offset.saturating_add(filled as u64)) {
            Ok(0) => return None,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(bytes)
}
