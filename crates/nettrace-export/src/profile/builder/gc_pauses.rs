//! Pauses of the garbage collector, cut out of the time of threads.
//!
//! The sampler takes no stacks while the collector has stopped all threads: the sample before a pause holds
//! until after it, and its method would be charged with the pause.

use std::collections::VecDeque;

use clr_activity::Suspensions;
use clr_events::ClrEvent;
use hashbrown::HashMap;
use nettrace::{Event, RelativeTime, ThreadId};

use crate::profile::metrics::{PauseLeaves, Sample};

/// A time for which all threads of a process stood still.
#[derive(Debug, Clone, Copy)]
struct Pause {
    start: RelativeTime,
    end: RelativeTime,
    /// The thread that stopped the others. Without concurrent and server collection it also collects.
    by: ThreadId,
}

/// A sample of a thread; a pause within its time may follow later in the recording.
#[derive(Debug)]
struct HeldSample {
    process: Option<u64>,
    thread: ThreadId,
    sample: Sample,
    /// True if pauses are cut out of it.
    is_cut: bool,
}

/// The pauses of a recording, and the newest samples of threads, which are held back until their pauses are
/// known.
#[derive(Debug)]
pub(super) struct GcPauses {
    leaves: PauseLeaves,
    suspensions: Suspensions<()>,
    /// By process, in the order of time. They do not overlap.
    pauses: HashMap<Option<u64>, Vec<Pause>>,
    count: usize,
    held: VecDeque<HeldSample>,
    /// The latest end of the samples that were passed on.
    passed: RelativeTime,
    /// The time of the newest event of a pause.
    newest: RelativeTime,
    is_late: bool,
}

impl GcPauses {
    /// In file order, the samples that a runtime writes before it reaches the thread with the events that
    /// report a pause: some 100 ms of 650 threads.
    const MAX_HELD: usize = 1 << 16;
    /// Pauses past this number stay with the methods that they interrupted.
    const MAX_PAUSES: usize = 1 << 20;

    pub(super) fn new(leaves: PauseLeaves) -> Self {
        Self {
            leaves,
            suspensions: Suspensions::default(),
            pauses: HashMap::new(),
            count: 0,
            held: VecDeque::new(),
            passed: RelativeTime::START,
            newest: RelativeTime::START,
            is_late: false,
        }
    }

    /// Returns true if a pause arrived after samples of its time were passed on, or pauses arrived in another
    /// order than they happened.
    pub(super) const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Returns true if samples are held back.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Adds an event of a pause.
    pub(super) fn add(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let now = event.relative_time().max(RelativeTime::START);
        self.is_late |= now < self.newest;
        self.newest = self.newest.max(now);
        let Some(ended) = self.suspensions.add((event, view), now, || ()) else { return };
        self.is_late |= ended.start < self.passed;
        if self.count == Self::MAX_PAUSES {
            return;
        }
        let pauses = self.pauses.entry(event.process_id()).or_default();
        let start = pauses.last().map_or(ended.start, |last| ended.start.max(last.end));
        if start < now {
            pauses.push(Pause { start, end: now, by: event.thread_id() });
            self.count = self.count.saturating_add(1);
        }
    }

    /// Adds a sample, and passes the oldest one on if many are held. Without `is_cut`, pauses stay in it.
    pub(super) fn push(
        &mut self,
        (process, thread): (Option<u64>, ThreadId),
        sample: Sample,
        is_cut: bool,
        emit: impl FnMut(Sample),
    ) {
        self.held.push_back(HeldSample { process, thread, sample, is_cut });
        if self.held.len() > Self::MAX_HELD {
            self.pass_on(emit);
        }
    }

    /// Passes the oldest sample on, in parts. Returns whether there was one.
    pub(super) fn pass_on(&mut self, mut emit: impl FnMut(Sample)) -> bool {
        let Some(HeldSample { process, thread, sample, is_cut }) = self.held.pop_front() else {
            return false;
        };
        let end = sample.end();
        if is_cut {
            self.passed = self.passed.max(end);
        }
        let pauses = self.pauses.get(&process).map_or(&[][..], Vec::as_slice);
        let first = pauses.partition_point(|pause| pause.end <= sample.start);
        let mut rest = sample;
        if is_cut && self.leaves.is_in_code(sample.leaf) {
            for pause in pauses.iter().skip(first).take_while(|pause| pause.start < end) {
                rest.split_off_until(pause.start).into_iter().for_each(&mut emit);
                let leaf = self.leaves.of(sample.leaf, pause.by == thread);
                if let Some(part) = rest.split_off_until(pause.end) {
                    emit(Sample { leaf: Some(leaf), ..part });
                }
            }
        }
        // A sample outside pauses is passed on even if it weighs nothing.
        if rest.weight > 0 || rest.samples > 0 {
            emit(rest);
        }
        true
    }
}
