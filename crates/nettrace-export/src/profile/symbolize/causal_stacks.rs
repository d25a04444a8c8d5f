//! Stacks below the stacks and requests that caused them: causal stacks.

use hashbrown::HashMap;

use clr_activity::CauseId;
use clr_events::{StackId, StackTree};
use nettrace::Ticks;

use super::await_stacks::AwaitChains;
use super::{CachedStack, StackSymbolizer};
use crate::profile::causality::Context;
use crate::profile::frame::FrameId;
use crate::profile::pseudo_frames;
use crate::profile::scheduler_frame::{SchedulerFrame, is_idle, work};

/// Cached stacks of contexts, valid as long as addresses mean the same.
#[derive(Debug, Default)]
pub(super) struct CausalStacks {
    /// By request.
    bases: HashMap<StackId, CachedStack>,
    /// By request and cause: an index of `caused`.
    numbers: HashMap<(StackId, CauseId), usize>,
    caused: Vec<Caused>,
    /// The parts of stacks between two causes.
    parts: StackTree<FrameId>,
    /// The chains of stacks as `await` has them.
    pub(super) awaits: AwaitChains,
}

/// The stack that a cause puts above its effects.
#[derive(Debug, Clone, Copy)]
struct Caused {
    known: CachedStack,
    part: StackId,
    by: Option<usize>,
}

impl StackSymbolizer<'_, '_, '_> {
    /// A stack of addresses below its causes.
    pub(super) fn causal_stack(
        &mut self,
        context: Context,
        stack: StackId,
        process: Option<u64>,
        time: Ticks,
    ) -> CachedStack {
        let frames = self.leaf_first(stack, process, time);
        let context = if is_idle(&frames) { Context::default() } else { context };
        let mut known = self.request(context.request);
        let mut own = frames.as_slice();
        if let Some(work) = work(own)
            && let Some(number) = self.cause(context, process)
            && let Some(caused) = self.causal_stacks.caused.get(number)
        {
            known = caused.known;
            own = work;
        }
        for (frame, _) in own.iter().rev() {
            known = self.push(known, *frame);
        }
        known
    }

    /// The frames of a request.
    pub(super) fn request(&mut self, request: StackId) -> CachedStack {
        if !self.options.grouping.requests {
            return self.begin();
        }
        if let Some(known) = self.causal_stacks.bases.get(&request) {
            return *known;
        }
        let names = match self.contexts.request(request) {
            names if names.is_empty() => vec![pseudo_frames::NO_REQUEST],
            names => names,
        };
        let frames: Vec<_> = names.into_iter().map(|name| self.named.intern(&name)).collect();
        let known = frames.into_iter().fold(self.begin(), |known, frame| self.push(known, frame));
        self.causal_stacks.bases.insert(request, known);
        known
    }

    /// Returns the stack of a context's cause, if any. No deeper than causes are followed.
    fn cause(&mut self, context: Context, process: Option<u64>) -> Option<usize> {
        let key = (context.request, context.cause);
        if let Some(number) = self.causal_stacks.numbers.get(&key) {
            return Some(*number);
        }
        let (&cause, time) = self.contexts.cause(context.cause)?;
        let frames = self.leaf_first(cause.stack, process, time);
        let by = work(&frames)
            .and_then(|work| Some((self.cause(Context { cause: cause.by, ..context }, process)?, work)));
        let (by, own) = match by {
            Some((by, work)) => (Some(by), work),
            None => (None, frames.as_slice()),
        };
        let own = creating(own);
        let part = own.iter().rev().map(|(frame, _)| *frame);
        let part = self.causal_stacks.parts.add(part);
        let mut above = std::iter::successors(by, |number| self.causal_stacks.caused.get(*number)?.by);
        let same = above
            .find(|number| self.causal_stacks.caused.get(*number).is_some_and(|caused| caused.part == part));
        // In a loop with a first round on another path, addresses differ and names do not.
        let number = same.unwrap_or_else(|| {
            let above =
                by.and_then(|number| self.causal_stacks.caused.get(number)).map(|caused| caused.known);
            let mut known = above.unwrap_or_else(|| self.request(context.request));
            for (frame, _) in own.iter().rev() {
                known = self.push(known, *frame);
            }
            let starting = self.named.intern(&pseudo_frames::STARTING_TASK);
            known = self.push(known, starting);
            self.causal_stacks.caused.push(Caused { known, part, by });
            self.causal_stacks.caused.len() - 1
        });
        self.causal_stacks.numbers.insert(key, number);
        Some(number)
    }

    pub(super) fn leaf_first(
        &mut self,
        stack: StackId,
        process: Option<u64>,
        time: Ticks,
    ) -> Vec<(FrameId, SchedulerFrame)> {
        let addresses = self.addresses;
        let frame = |address| {
            let frame = self.frame_within(process, address, time)?;
            Some((frame, self.traits(frame).role))
        };
        addresses.frames(stack).map_while(frame).collect()
    }
}

/// A stack, leaf first, that created something, without the frames of the creation itself: from the creating
/// method on, or from the scheduler's method that it called.
fn creating(frames: &[(FrameId, SchedulerFrame)]) -> &[(FrameId, SchedulerFrame)] {
    let own = frames.iter().position(|(_, role)| !role.is_between()).unwrap_or(frames.len());
    let asked = own
        .checked_sub(1)
        .filter(|at| frames.get(*at).is_some_and(|(_, of)| *of == SchedulerFrame::Schedules));
    frames.get(asked.unwrap_or(own)..).unwrap_or(frames)
}
