//! Time of threads that the samples take for work and in which, by the kernel, they did not run.

use clr_events::{StackId, ThreadState};
use hashbrown::HashMap;
use nettrace::{RelativeTime, Ticks, TraceInfo};

use super::{Carry, KernelTimes, LAG, ThreadTime};
use crate::profile::index::TotalIndex;
use crate::profile::selection::Selection;
use crate::profile::track::{Span, Track};
use crate::profile::{StackTotal, Thread};

/// The replacement of a working thread's stack while the thread sleeps according to the kernel.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct Asleep {
    /// The stack that is shown.
    pub(in crate::profile) stack: Option<StackId>,
    /// Blocked, or idle in a method that waits for work.
    pub(in crate::profile) state: ThreadState,
    /// True if the samples were taken in managed code, where no thread sleeps.
    pub(in crate::profile) is_managed: bool,
}

/// A part of a thread's track.
#[derive(Debug, Clone, Copy)]
struct Piece {
    span: Span,
    /// The interval between two rounds; `None` before the first one and after the last one.
    interval: Option<usize>,
}

impl Piece {
    /// Takes the end of the piece, so that `left` nanoseconds stay; samples go with the time.
    fn split_off(&mut self, left: u64) -> Self {
        let left = left.min(self.span.weight);
        let samples = share(self.span.samples, left, self.span.weight);
        let start = self.span.start.as_nanos().saturating_add_unsigned(left);
        let end = Span {
            start: RelativeTime::from_nanos(start),
            weight: self.span.weight.saturating_sub(left),
            samples: self.span.samples.saturating_sub(samples),
            total: self.span.total,
        };
        self.span.weight = left;
        self.span.samples = samples;
        Self { span: end, interval: self.interval }
    }
}

/// Returns `number * part / whole`, rounded.
fn share(number: u64, part: u64, whole: u64) -> u64 {
    let half = u128::from(whole) / 2;
    let product = (u128::from(number) * u128::from(part)).saturating_add(half);
    product
        .checked_div(whole.into())
        .and_then(|share| u64::try_from(share).ok())
        .unwrap_or(number)
        .min(number)
}

/// The used part of threads' time, for the next profile of a session.
pub(in crate::profile) struct Carries(HashMap<u64, Carry>);

impl Carries {
    pub(in crate::profile) fn keep_in(self, times: &mut KernelTimes) {
        times.carries = self.0;
    }
}

/// The correction of a profile's totals and tracks.
pub(in crate::profile) struct Correction<'c> {
    times: &'c KernelTimes,
    /// The times of rounds, from the recording's start.
    rounds: Vec<RelativeTime>,
    totals: &'c mut Vec<StackTotal>,
    /// By total; `None` for totals of threads that do not work.
    asleep: Vec<Option<Asleep>>,
    /// By total, that of its time asleep.
    partners: Vec<Option<TotalIndex>>,
    /// By interval, the time of threads that the kernel's account lacks, as the samples and as the kernel
    /// have it.
    others: Vec<(u64, Option<u64>)>,
    selection: &'c Selection,
    carries: HashMap<u64, Carry>,
    /// The time of working threads that may or may not have run, by the kernel's account.
    pub(in crate::profile) unverified: u64,
    /// The time that was taken from working threads in which they were ready but not running.
    pub(in crate::profile) queued: u64,
}

impl<'c> Correction<'c> {
    pub(in crate::profile) fn new(
        times: &'c KernelTimes,
        info: &TraceInfo,
        totals: &'c mut Vec<StackTotal>,
        asleep: Vec<Option<Asleep>>,
        selection: &'c Selection,
    ) -> Self {
        let rounds: Vec<_> = times.rounds.iter().map(|round| info.relative_time(round.time)).collect();
        let others = (1..rounds.len()).map(|next| (0, times.unassigned(next.saturating_sub(1))));
        Self {
            others: others.collect(),
            carries: times.carries.clone(),
            times,
            rounds,
            partners: vec![None; totals.len()],
            totals,
            asleep,
            selection,
            unverified: 0,
            queued: 0,
        }
    }

    /// Corrects the totals, and the tracks of threads, which stay only if they are `wanted`.
    pub(in crate::profile) fn apply(&mut self, threads: &mut [Thread], wanted: bool) {
        for total in self.totals.iter_mut() {
            (total.weight, total.samples) = (0, 0);
        }
        for thread in &*threads {
            for piece in self.pieces(thread) {
                let Some(interval) = piece.interval.filter(|_| self.asleep_of(piece.span.total).is_some())
                else {
                    continue;
                };
                if self.times.between(thread.id, interval).is_none()
                    && let Some((sampled, _)) = self.others.get_mut(interval)
                {
                    *sampled = sampled.saturating_add(piece.span.weight);
                }
            }
        }
        for thread in threads {
            let pieces = self.pieces(thread);
            let track = self.correct(thread.id, &pieces);
            thread.track = wanted.then_some(track).filter(|track| !track.is_empty());
        }
        // Totals without any rest are dropped.
        for total in self.totals.iter_mut().filter(|total| total.weight == 0 && total.samples == 0) {
            total.stack = None;
        }
    }

    /// Returns the nanoseconds between a round and the next.
    fn length(&self, interval: usize) -> u64 {
        let (Some(start), Some(end)) =
            (self.rounds.get(interval), self.rounds.get(interval.saturating_add(1)))
        else {
            return 0;
        };
        end.as_nanos().abs_diff(start.as_nanos())
    }

    /// Returns the state for the next profile of the session.
    pub(in crate::profile) fn into_carries(self) -> Carries {
        Carries(self.carries)
    }

    fn asleep_of(&self, total: TotalIndex) -> Option<Asleep> {
        self.asleep.get(total.index()).copied().flatten()
    }

    /// Returns the parts of a thread's track, cut at the rounds.
    fn pieces(&self, thread: &Thread) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for span in thread.track.iter().flat_map(Track::iter) {
            let mut next = self.rounds.partition_point(|round| *round <= span.start);
            let mut piece = Piece { span, interval: None };
            loop {
                piece.interval = next.checked_sub(1).filter(|_| next < self.rounds.len());
                let end = self.rounds.get(next).filter(|round| **round < piece.span.end(true));
                let Some(end) = end else { break };
                let left = end.as_nanos().abs_diff(piece.span.start.as_nanos());
                let rest = piece.split_off(left);
                pieces.push(piece);
                piece = rest;
                next = next.saturating_add(1);
            }
            pieces.push(piece);
        }
        pieces
    }

    /// Corrects the parts of a thread's track and returns its new track.
    fn correct(&mut self, thread: u64, pieces: &[Piece]) -> Track {
        let mut track = Track::new(true);
        let mut carry = self.carries.get(&thread).copied().unwrap_or_default();
        for pieces in pieces.chunk_by(|a, b| a.interval == b.interval) {
            let working = pieces.iter().filter(|piece| self.asleep_of(piece.span.total).is_some());
            let worked = working.map(|piece| piece.span.weight).fold(0, u64::saturating_add);
            let interval = pieces.first().and_then(|piece| piece.interval);
            let known = interval.and_then(|interval| self.times.between(thread, interval));
            let (allowed, queued) = match (known, interval) {
                (Some(ThreadTime { ran, queued }), _) => {
                    // The account lags of running threads alone.
                    let length = interval.map_or(0, |interval| self.length(interval));
                    let is_running = ran.saturating_mul(4) >= length;
                    let start = interval.and_then(|interval| self.times.rounds.get(interval));
                    let start = start.map_or(Ticks(0), |round| round.time);
                    let used = if carry.start == start { carry.used } else { 0 };
                    let left = ran.saturating_sub(used);
                    let allowed = if is_running { left.saturating_add(carry.credit) } else { left };
                    if is_running {
                        carry.credit = allowed.saturating_sub(worked).min(LAG);
                    }
                    (carry.start, carry.used) = (start, used.saturating_add(worked.min(allowed)));
                    (allowed, queued)
                }
                (None, Some(interval)) => (self.allowed_of_others(interval, worked), 0),
                (None, None) => (u64::MAX, 0),
            };
            if allowed == u64::MAX {
                let unmanaged = pieces
                    .iter()
                    .filter(|piece| self.asleep_of(piece.span.total).is_some_and(|it| !it.is_managed));
                let weight = unmanaged.map(|piece| piece.span.weight).fold(0, u64::saturating_add);
                self.unverified = self.unverified.saturating_add(weight);
            }
            let mut parts = pieces.to_vec();
            let excess = worked.saturating_sub(allowed);
            if excess > 0 {
                self.put_to_sleep(&mut parts, worked, excess, queued);
            }
            parts.sort_by_key(|part| part.span.start);
            for part in parts {
                self.emit(part.span, &mut track);
            }
        }
        self.carries.insert(thread, carry);
        track
    }

    /// Returns the share of a thread with unknown time in the time that is left by the known threads.
    fn allowed_of_others(&self, interval: usize, worked: u64) -> u64 {
        let Some((sampled, Some(left))) = self.others.get(interval).copied() else { return u64::MAX };
        share(worked, left.saturating_add(LAG).min(sampled), sampled)
    }

    /// Puts so much of the working time to sleep: time without a processor on a run queue in equal shares,
    /// the rest where the same stack was met longest, for a thread that sleeps shows the same one sample
    /// after sample.
    fn put_to_sleep(&mut self, parts: &mut Vec<Piece>, worked: u64, excess: u64, queued: u64) {
        let waiting = queued.min(excess);
        self.queued = self.queued.saturating_add(waiting);
        let mut order: Vec<_> = (0..parts.len()).collect();
        let runs = self.runs(parts);
        order.retain(|part| parts.get(*part).is_some_and(|part| self.asleep_of(part.span.total).is_some()));
        order.sort_by_key(|part| {
            let piece = parts.get(*part);
            let is_managed =
                piece.and_then(|piece| self.asleep_of(piece.span.total)).is_some_and(|it| it.is_managed);
            (is_managed, std::cmp::Reverse(runs.get(*part).copied()))
        });
        let mut left = excess.saturating_sub(waiting);
        let mut later = Vec::new();
        let mut awake = Vec::new();
        for part in order {
            let Some(piece) = parts.get_mut(part) else { continue };
            let slept = piece.span.weight.min(left);
            left = left.saturating_sub(slept);
            if slept < piece.span.weight {
                if slept > 0 {
                    later.push(piece.split_off(piece.span.weight.saturating_sub(slept)));
                }
                awake.push(part);
                continue;
            }
            if slept > 0 {
                piece.span.total = self.partner(piece.span.total);
            }
        }
        for piece in &mut later {
            piece.span.total = self.partner(piece.span.total);
        }
        let rest = worked.saturating_sub(excess.saturating_sub(waiting));
        // Shares of the sum so far, so that rounding leaves nothing over.
        let (mut passed, mut shared) = (0u64, 0u64);
        for part in awake {
            let Some(piece) = parts.get_mut(part) else { continue };
            passed = passed.saturating_add(piece.span.weight);
            let slept = share(passed, waiting, rest).saturating_sub(shared).min(piece.span.weight);
            shared = shared.saturating_add(slept);
            if slept > 0 {
                let mut end = piece.split_off(piece.span.weight.saturating_sub(slept));
                end.span.total = self.partner(end.span.total);
                later.push(end);
            }
        }
        parts.extend(later);
    }

    /// Returns for each part the length of the run of parts with its stack that it is in.
    fn runs(&self, parts: &[Piece]) -> Vec<u64> {
        let key = |piece: &Piece| self.totals.get(piece.span.total.index()).map(|total| total.stack);
        let runs = parts.chunk_by(|a, b| a.span.total == b.span.total || key(a) == key(b));
        let length = |run: &[Piece]| run.iter().map(|piece| piece.span.weight).fold(0, u64::saturating_add);
        runs.flat_map(|run| std::iter::repeat_n(length(run), run.len())).collect()
    }

    /// Returns the total for the time asleep of another one.
    fn partner(&mut self, total: TotalIndex) -> TotalIndex {
        let Some(asleep) = self.asleep_of(total) else { return total };
        if let Some(Some(partner)) = self.partners.get(total.index()) {
            return *partner;
        }
        let Some(of) = self.totals.get(total.index()) else { return total };
        let partner = TotalIndex::of(self.totals.len());
        let asleep = StackTotal { stack: asleep.stack, state: asleep.state, weight: 0, samples: 0, ..*of };
        self.totals.push(asleep);
        if let Some(place) = self.partners.get_mut(total.index()) {
            *place = Some(partner);
        }
        partner
    }

    /// Adds a part within the time range to its total, and to the track.
    fn emit(&mut self, span: Span, track: &mut Track) {
        let Some(span) = within(span, self.selection) else { return };
        let Some(total) = self.totals.get_mut(span.total.index()) else { return };
        total.weight = total.weight.saturating_add(span.weight);
        total.samples = total.samples.saturating_add(span.samples);
        track.push(span);
    }
}

/// Clips a span to the time range of a selection; `None` if it lies outside.
fn within(span: Span, selection: &Selection) -> Option<Span> {
    let from = selection.from.unwrap_or(RelativeTime::MIN);
    let to = selection.to.unwrap_or(RelativeTime::MAX);
    let end = span.end(true);
    if from <= span.start && end <= to {
        return Some(span);
    }
    let (start, end) = (span.start.max(from), end.min(to));
    (start < end).then(|| Span { start, weight: end.as_nanos().abs_diff(start.as_nanos()), ..span })
}
