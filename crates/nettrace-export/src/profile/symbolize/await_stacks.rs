//! Stacks as `await` has them, below their awaiters' stacks.

use hashbrown::HashMap;

use clr_activity::CauseId;
use clr_events::{StackId, StackTree};
use nettrace::Ticks;

use super::{CachedStack, StackSymbolizer};
use crate::profile::await_stack::{AwaitFrame, AwaitStack};
use crate::profile::causality::Context;
use crate::profile::frame::FrameId;
use crate::profile::pseudo_frames;
use crate::profile::scheduler_frame::{SchedulerFrame, is_idle, work};

/// Cached chains of awaiting methods, valid as long as addresses mean the same.
#[derive(Debug, Default)]
pub(super) struct AwaitChains {
    chains: StackTree<FrameId>,
    /// By cause.
    of_cause: HashMap<CauseId, StackId>,
    /// By request and chain, the stack shown.
    shown: HashMap<(StackId, StackId), CachedStack>,
}

/// The frames of a thread's own stack, leaf first.
type OwnFrames = [(FrameId, SchedulerFrame)];

impl StackSymbolizer<'_, '_, '_> {
    /// A stack of addresses as `await` has it.
    pub(super) fn await_stack(
        &mut self,
        context: Context,
        stack: StackId,
        process: Option<u64>,
        time: Ticks,
    ) -> CachedStack {
        let frames = self.leaf_first(stack, process, time);
        if is_idle(&frames) {
            let known = self.request(StackId::EMPTY);
            return frames.iter().rev().fold(known, |known, (frame, _)| self.push(known, *frame));
        }
        let cause = self.await_chain(context.cause, process);
        let (chain, own) = self.joined(&frames, cause);
        let known = self.shown_chain(context.request, chain);
        own.into_iter().fold(known, |known, frame| self.push(known, frame))
    }

    /// The chain of frames that a cause puts above its effects. No deeper than causes are followed.
    fn await_chain(&mut self, cause: CauseId, process: Option<u64>) -> StackId {
        if let Some(chain) = self.causal_stacks.awaits.of_cause.get(&cause) {
            return *chain;
        }
        let Some((&created, time)) = self.contexts.cause(cause) else { return StackId::EMPTY };
        let frames = self.leaf_first(created.stack, process, time);
        // The frames that report the `await`, or create the task, are not its.
        let own = frames.iter().position(|(_, role)| !role.is_between()).unwrap_or(frames.len());
        let by = self.await_chain(created.by, process);
        let (base, own) = self.joined(frames.get(own..).unwrap_or_default(), by);
        let chains = &mut self.causal_stacks.awaits.chains;
        let chain = own.into_iter().fold(base, |chain, frame| chains.push(chain, frame));
        self.causal_stacks.awaits.of_cause.insert(cause, chain);
        chain
    }

    /// Folds a thread's own stack. Returns the part of the chain of its cause that it is below, and its
    /// frames, root first.
    fn joined(&mut self, frames: &OwnFrames, cause: StackId) -> (StackId, Vec<FrameId>) {
        let own = self.fold(frames);
        if own.is_continued {
            let base = own.frames.first().map_or(StackId::EMPTY, |body| self.awaiting(cause, *body));
            return (base, own.frames);
        }
        // Without a frame of the work, the leaf is the method that invokes it.
        match work(frames).filter(|work| !work.is_empty() && cause != StackId::EMPTY) {
            None => (StackId::EMPTY, own.frames),
            Some(work) => {
                let own = self.fold(work);
                let starting = self.named.intern(&pseudo_frames::STARTING_TASK);
                (self.causal_stacks.awaits.chains.push(cause, starting), own.frames)
            }
        }
    }

    fn fold(&mut self, frames: &OwnFrames) -> AwaitStack<FrameId> {
        let roles: Vec<(FrameId, AwaitFrame)> =
            frames.iter().map(|(frame, _)| (*frame, self.traits(*frame).awaits)).collect();
        AwaitStack::fold(&roles, |frame| self.named.full_method(frame))
    }

    /// Returns the callers of a method in a chain, which are its awaiters. A chain without the method belongs
    /// to another.
    fn awaiting(&self, chain: StackId, body: FrameId) -> StackId {
        let chains = &self.causal_stacks.awaits.chains;
        let method = self.named.full_method(body);
        let mut at = chain;
        while let (Some(frame), Some(caller)) = (chains.leaf(at), chains.caller(at)) {
            if frame == body || self.named.full_method(frame) == method {
                return caller;
            }
            at = caller;
        }
        StackId::EMPTY
    }

    /// The shown frames of a chain, below its request.
    fn shown_chain(&mut self, request: StackId, chain: StackId) -> CachedStack {
        let begin = self.request(request);
        let mut missing = Vec::new();
        let mut known = begin;
        let mut at = chain;
        let chains = &self.causal_stacks.awaits;
        while let (Some(frame), Some(caller)) = (chains.chains.leaf(at), chains.chains.caller(at)) {
            if let Some(shown) = chains.shown.get(&(request, at)) {
                known = *shown;
                break;
            }
            missing.push((at, frame));
            at = caller;
        }
        for (at, frame) in missing.into_iter().rev() {
            known = self.push(known, frame);
            self.causal_stacks.awaits.shown.insert((request, at), known);
        }
        known
    }
}
