//! Conversion of stacks of addresses to stacks of names, after all events.

mod await_stacks;
mod causal_stacks;
mod memo;
mod named_frames;

use hashbrown::HashSet;
use std::collections::BTreeMap;

use clr_events::code::{Code, CodeOrigin, Symbolizer, UnresolvedReason};
use clr_events::csharp::Detail;
use clr_events::{CodeFrames, StackId, StackTree, ThreadState, WaitFrame};
use nettrace::Ticks;

use crate::bounds;
use crate::profile::StackTotal;
use crate::profile::address_stacks::AddressStacks;
use crate::profile::await_stack::AwaitFrame;
use crate::profile::causality::Contexts;
use crate::profile::frame::{FrameId, Frames};
use crate::profile::index::ThreadIndex;
use crate::profile::kernel_times::correction::Asleep;
use crate::profile::kernel_wait;
use crate::profile::lines::{LineCounts, SourceLines};
use crate::profile::metric::Metric;
use crate::profile::metrics::Sampler;
use crate::profile::options::{NameForm, Options, Order};
use crate::profile::pattern::Pattern;
use crate::profile::pseudo_frames;
use crate::profile::scheduler_frame::SchedulerFrame;
use crate::profile::stack_totals::{StackKey, StackTotals};
use causal_stacks::CausalStacks;
use memo::Memo;
use named_frames::{NamedFrames, csharp_name};

/// Stacks with names, and counts of unnamed frames.
pub(super) struct SymbolizedStacks {
    pub(super) frames: Frames,
    pub(super) stacks: StackTree<FrameId>,
    /// In the order of the sums.
    pub(super) stack_totals: Vec<StackTotal>,
    pub(super) unresolved: Vec<(UnresolvedReason, u64)>,
    pub(super) lines: LineCounts,
    /// Frames that were left out, because there were more stacks than are kept.
    pub(super) left_out: u64,
    /// Methods with names that were cut.
    pub(super) long_names: u64,
    /// True if an address of a stack had different code at different times.
    pub(super) is_ambiguous: bool,
    /// The time of threads that work according to their stacks, but outside managed code: they may be
    /// waiting.
    pub(super) unverified: u64,
    /// By total, its replacement while its thread sleeps by the kernel's account; `None` for totals of
    /// threads that do not work.
    pub(super) asleep: Vec<Option<Asleep>>,
    /// The methods of [`Options::waits_for_work`] that no thread waited in, by index.
    pub(super) unmatched_waits: Vec<usize>,
}

/// The sources of names and states.
pub(super) struct NameSources<'m, 'l> {
    pub(super) code: Symbolizer<'m>,
    pub(super) lines: Option<&'l mut dyn SourceLines>,
    /// True if the kernel's account of threads is at hand.
    pub(super) has_kernel_times: bool,
}

/// The facts about a thread that decide the meaning of its stacks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadFacts {
    pub(super) process: Option<u64>,
    /// True if the thread's name identifies it as one of the runtime's own.
    pub(super) is_of_runtime: bool,
}

/// Converts the stacks of `totals`. `threads` are indexed by their numbers.
pub(super) fn symbolize(
    sources: NameSources<'_, '_>,
    options: &Options,
    addresses: &AddressStacks,
    totals: &StackTotals,
    threads: Vec<ThreadFacts>,
    sampler: &Sampler,
    contexts: &Contexts,
) -> SymbolizedStacks {
    let places = addresses.tree().len().saturating_add(totals.len());
    let most_stacks = bounds::most_stacks(places, options.grouping.any());
    let mut symbolizer =
        StackSymbolizer::new(options, contexts, addresses.tree(), sources, threads, most_stacks);
    // Stacks of one process and generation are consecutive: an address means the same in all of them.
    let mut order: Vec<_> = totals.iter().map(|(key, sum)| (key, sum.time)).enumerate().collect();
    let epoch =
        |symbolizer: &StackSymbolizer<'_, '_, '_>, key: &StackKey| (symbolizer.process(key), key.generation);
    order.sort_by_key(|(_, (key, _))| epoch(&symbolizer, key));
    let best = totals.iter().map(|(key, _)| key.rank).max().unwrap_or(0);
    let mut shown = vec![ShownStack::NONE; order.len()];
    let mut before = None;
    for (index, (key, time)) in order {
        let now = Some(epoch(&symbolizer, key));
        if now != before {
            before = now;
            symbolizer.epoch += 1;
            symbolizer.causal_stacks = CausalStacks::default();
        }
        // Only the duplicate source of the highest rank counts.
        if key.rank == best
            && let Some(place) = shown.get_mut(index)
        {
            *place = symbolizer.shown_stack(key, time, sampler);
        }
    }
    let are_unverified = totals.iter().zip(&shown).filter(|(_, shown)| shown.is_unverified);
    let unverified = are_unverified.map(|((_, sum), _)| sum.weight).fold(0, u64::saturating_add);
    let asleep = shown.iter().map(|shown| shown.asleep).collect();
    let stack_totals = totals.iter().zip(shown).map(|((key, sum), shown)| StackTotal {
        // Until the builder numbers threads anew.
        thread: ThreadIndex(key.thread),
        stack: shown.stack,
        state: shown.state,
        weight: sum.weight,
        samples: sum.samples,
    });
    let stack_totals = stack_totals.collect();
    let unmatched_waits = symbolizer.unmatched_waits();
    let unresolved = symbolizer.unresolved.into_values().collect();
    let StackSymbolizer { mut named, stacks, is_ambiguous, counts, left_out, .. } = symbolizer;
    named.set_user_code(&options.user_code);
    named.frames.find_runtime_in_program();
    let left_out = left_out.saturating_add(stacks.cut());
    let (frames, long_names) = match options.names {
        NameForm::Full => (named.frames, named.cut),
        NameForm::CSharp => named.into_csharp(),
    };
    SymbolizedStacks {
        frames,
        stacks,
        stack_totals,
        unresolved,
        lines: counts,
        left_out,
        long_names,
        is_ambiguous,
        unverified,
        asleep,
        unmatched_waits,
    }
}

/// A stack as it is shown, and the state of its thread.
#[derive(Debug, Clone, Copy)]
struct ShownStack {
    stack: Option<StackId>,
    state: ThreadState,
    asleep: Option<Asleep>,
    /// True if the thread works, and may as well wait.
    is_unverified: bool,
}

impl ShownStack {
    const NONE: Self = Self::of(None, ThreadState::Working);

    const fn of(stack: Option<StackId>, state: ThreadState) -> Self {
        Self { stack, state, asleep: None, is_unverified: false }
    }
}

/// The state of the conversion.
struct StackSymbolizer<'a, 'm, 'l> {
    options: &'a Options,
    contexts: &'a Contexts,
    /// True if the kernel's account of threads is at hand.
    has_kernel_times: bool,
    addresses: &'a StackTree<u64>,
    threads: Vec<ThreadFacts>,
    code: CodeFrames<'m>,
    names: Symbolizer<'m>,
    lines: Option<&'l mut dyn SourceLines>,
    counts: LineCounts,
    /// Addresses that were checked for ambiguity.
    checked: HashSet<(Option<u64>, u64)>,
    is_ambiguous: bool,
    /// By frame of code, its frame in the profile.
    of_code: Memo<FrameId>,
    named: NamedFrames<'m>,
    stacks: StackTree<FrameId>,
    /// By frame, the meaning of its name for stacks.
    traits: Memo<FrameTraits>,
    /// By frame of code, its meaning for waits.
    waits: Memo<WaitFrame>,
    /// By method of [`Options::waits_for_work`], whether a frame is one.
    matched_waits: Vec<bool>,
    /// By stack of addresses, its converted stack.
    known: Vec<CachedStack>,
    epoch: u32,
    /// Cached stacks of contexts, for this epoch.
    causal_stacks: CausalStacks,
    unresolved: BTreeMap<String, (UnresolvedReason, u64)>,
    /// Frames that may still be named.
    lookups_left: u64,
    left_out: u64,
}

/// Returns true if the first and the last code at an address are the same: then no other code was at the
/// address between them.
fn is_same(first: &Code<'_>, last: &Code<'_>) -> bool {
    match (first, last) {
        (Code::Method(first), Code::Method(last)) => {
            (first.start(), first.loaded(), first.id()) == (last.start(), last.loaded(), last.id())
        }
        (Code::Symbol(first), Code::Symbol(last)) => {
            (first.start(), first.file()) == (last.start(), last.file())
        }
        (Code::Unresolved(_), Code::Unresolved(_)) => true,
        _ => false,
    }
}

/// The number of managed frames, from the leaf on, to search for the owner of a wait: a wait has fewer of its
/// own.
const MAX_WAIT_FRAMES: usize = 32;
/// The same limit including native and kernel frames, which the kernel's samples have above the managed ones.
const MAX_SEARCHED_FRAMES: usize = 128;

/// Returns the meaning of a frame's code for waits.
fn wait_frame(code: Option<&Code<'_>>, waits_for_work: &[Pattern], matched: &mut [bool]) -> WaitFrame {
    let mut name = String::new();
    let frame = match code {
        Some(code) if code.is_named() => {
            bounds::push_name(&mut name, code);
            match code.origin() {
                CodeOrigin::Managed => WaitFrame::of(&name),
                origin => native_frame(origin),
            }
        }
        Some(code) => native_frame(code.origin()),
        None => WaitFrame::opaque(),
    };
    let csharp = |detail| code.and_then(|code| csharp_name(code, detail));
    let mut is_owner = false;
    for (pattern, matched) in waits_for_work.iter().zip(matched) {
        let is_csharp = |detail| csharp(detail).is_some_and(|(name, _)| pattern.matches(&name));
        if pattern.matches(&name) || is_csharp(Detail::Short) || is_csharp(Detail::Qualified) {
            (is_owner, *matched) = (true, true);
        }
    }
    if is_owner { frame.as_waiting_for_work() } else { frame }
}

/// Returns the meaning of native code, or of code without a name, for waits.
const fn native_frame(origin: CodeOrigin) -> WaitFrame {
    if origin.is_native_runtime() { WaitFrame::runtime() } else { WaitFrame::opaque() }
}

/// The cached result for a stack of addresses.
#[derive(Debug, Clone, Copy)]
struct CachedStack {
    /// Valid in this epoch only.
    epoch: u32,
    stack: StackId,
    /// True if a frame was met that stacks may begin with.
    has_begun: bool,
}

impl CachedStack {
    /// An entry that is not valid: epochs count from 1.
    const INVALID: Self = Self { epoch: 0, stack: StackId::EMPTY, has_begun: false };
}

/// The meaning of a frame's name for stacks.
#[derive(Debug, Clone, Copy)]
struct FrameTraits {
    is_root: bool,
    is_hidden: bool,
    /// True if the function [switches threads](kernel_wait::is_switch).
    is_switch: bool,
    role: SchedulerFrame,
    awaits: AwaitFrame,
}

impl<'a, 'm, 'l> StackSymbolizer<'a, 'm, 'l> {
    fn new(
        options: &'a Options,
        contexts: &'a Contexts,
        addresses: &'a StackTree<u64>,
        sources: NameSources<'m, 'l>,
        threads: Vec<ThreadFacts>,
        most_stacks: u32,
    ) -> Self {
        Self {
            options,
            contexts,
            has_kernel_times: sources.has_kernel_times,
            addresses,
            threads,
            code: CodeFrames::new(sources.code),
            names: sources.code,
            lines: sources.lines,
            counts: LineCounts::default(),
            checked: HashSet::new(),
            is_ambiguous: false,
            of_code: Memo::default(),
            named: NamedFrames::default(),
            stacks: StackTree::with_limit(most_stacks),
            lookups_left: bounds::most_lookups(most_stacks),
            left_out: 0,
            traits: Memo::default(),
            waits: Memo::default(),
            matched_waits: vec![false; options.waits_for_work.len()],
            known: vec![CachedStack::INVALID; addresses.len() + 1],
            epoch: 0,
            causal_stacks: CausalStacks::default(),
            unresolved: BTreeMap::new(),
        }
    }
}

impl StackSymbolizer<'_, '_, '_> {
    fn process(&self, key: &StackKey) -> Option<u64> {
        self.threads.get(key.thread as usize)?.process
    }

    fn is_of_runtime(&self, key: &StackKey) -> bool {
        self.threads.get(key.thread as usize).is_some_and(|thread| thread.is_of_runtime)
    }

    /// Returns the shown stack, and the state of its thread; no stack if stacks may not begin with any of its
    /// frames, or if the thread was idle and idle time is not shown.
    fn shown_stack(&mut self, key: &StackKey, time: Ticks, sampler: &Sampler) -> ShownStack {
        let (stack, process) = (key.stack, self.process(key));
        let known = if self.options.grouping.awaits {
            let context = self.contexts.get(key.context);
            self.await_stack(context, stack, process, time)
        } else if self.options.grouping.any() {
            let context = self.contexts.get(key.context);
            self.causal_stack(context, stack, process, time)
        } else {
            self.stack(stack, process, time)
        };
        let (is_wall, is_cpu) = match self.options.metric {
            Some(Metric::Wall | Metric::OffCpu) => (true, false),
            Some(Metric::Cpu) => (false, true),
            _ => (false, false),
        };
        if !is_wall && !is_cpu {
            return ShownStack::of(self.shown_leaf(known, key.leaf, sampler), ThreadState::Working);
        }
        let leaf = key.leaf.map(|leaf| sampler.leaf_name(leaf));
        let leaf = leaf.as_deref();
        // The kernel's samples of running threads are without a leaf, or have this one.
        let is_on_cpu = leaf == Some(pseudo_frames::ON_CPU);
        let tells_waits = !self.options.idle && leaf.is_some() && !is_on_cpu;
        let state = match leaf {
            Some(pseudo_frames::ABSENT) => ThreadState::Idle,
            Some(pseudo_frames::CONTENDED) => ThreadState::Blocked,
            Some(pseudo_frames::GC_PAUSE) => ThreadState::Working,
            _ if !tells_waits => ThreadState::Working,
            // The switch was lost, or the kernel denied stacks of switches.
            Some(pseudo_frames::OFF_CPU) if stack == StackId::EMPTY && self.is_of_runtime(key) => {
                ThreadState::Idle
            }
            Some(pseudo_frames::OFF_CPU) => ThreadState::of_off_cpu(self.wait_frames(key, time)),
            Some(pseudo_frames::READY) => ThreadState::Ready,
            Some(pseudo_frames::MANAGED | pseudo_frames::STOPPED) => {
                ThreadState::of_managed(self.wait_frames(key, time))
            }
            _ => ThreadState::of(self.wait_frames(key, time)),
        };
        let known = match leaf {
            Some(pseudo_frames::OFF_CPU | pseudo_frames::READY) => {
                CachedStack { stack: self.without_switch(known.stack), ..known }
            }
            _ => known,
        };
        let is_stopped = matches!(leaf, Some(pseudo_frames::STOPPED | pseudo_frames::STOPPED_UNMANAGED))
            && state == ThreadState::Working;
        let is_pause = is_stopped || leaf == Some(pseudo_frames::GC_PAUSE);
        // The kernel's account lacks the time of stopped threads.
        let state =
            if is_stopped && (is_wall || self.has_kernel_times) { ThreadState::Blocked } else { state };
        let stack_in = |symbolizer: &mut Self, state| match state {
            _ if !known.has_begun => None,
            ThreadState::Blocked | ThreadState::Ready if is_cpu || !symbolizer.options.blocked => None,
            ThreadState::Idle if is_cpu || !symbolizer.options.idle_stacks => None,
            ThreadState::Working | ThreadState::Blocked if is_pause => {
                Some(symbolizer.with_leaf(known.stack, pseudo_frames::GC_PAUSE))
            }
            _ if is_cpu || !symbolizer.options.kinds => Some(known.stack),
            ThreadState::Ready => Some(symbolizer.with_leaf(known.stack, pseudo_frames::READY)),
            ThreadState::Blocked => Some(symbolizer.with_leaf(known.stack, pseudo_frames::BLOCKED)),
            ThreadState::Idle => Some(symbolizer.with_leaf(known.stack, pseudo_frames::UNMANAGED)),
            ThreadState::Working => match leaf {
                Some(pseudo_frames::ON_CPU) => {
                    Some(symbolizer.with_leaf(known.stack, pseudo_frames::MANAGED))
                }
                Some(pseudo_frames::OFF_CPU) => {
                    Some(symbolizer.with_leaf(known.stack, pseudo_frames::BLOCKED))
                }
                Some(leaf) => Some(symbolizer.with_leaf(known.stack, leaf)),
                None => Some(known.stack),
            },
        };
        let mut shown = ShownStack::of(stack_in(self, state), state);
        let is_managed = leaf == Some(pseudo_frames::MANAGED);
        if state == ThreadState::Working && tells_waits && known.has_begun {
            shown.is_unverified = !is_managed && !is_pause;
        }
        if state == ThreadState::Working && tells_waits && self.has_kernel_times {
            let state = ThreadState::of_asleep(self.wait_frames(key, time));
            // A hidden stack is without a state.
            let state = if known.has_begun { state } else { ThreadState::Working };
            shown.asleep = Some(Asleep { stack: stack_in(self, state), state, is_managed });
        } else if !known.has_begun {
            shown.state = ThreadState::Working;
        }
        shown
    }

    /// Returns a stack with its leaf, for metrics other than thread time; `None` if it is not shown.
    fn shown_leaf(
        &mut self,
        known: CachedStack,
        leaf: Option<FrameId>,
        sampler: &Sampler,
    ) -> Option<StackId> {
        if !known.has_begun {
            return None;
        }
        let Some(leaf) = leaf else { return Some(known.stack) };
        let leaf = sampler.leaf_name(leaf);
        let leaf = if self.has_types() { self.named.intern_type(&leaf) } else { self.named.intern(&leaf) };
        Some(self.push_leaf(known.stack, leaf))
    }

    /// Returns a stack off the processors without the functions at its leaf that switched threads: all such
    /// stacks have them. A stack of nothing else stays.
    fn without_switch(&mut self, stack: StackId) -> StackId {
        let mut at = stack;
        while self.stacks.leaf(at).is_some_and(|leaf| self.traits(leaf).is_switch) {
            at = self.stacks.caller(at).unwrap_or(StackId::EMPTY);
        }
        if at == StackId::EMPTY { stack } else { at }
    }

    fn with_leaf(&mut self, stack: StackId, leaf: &str) -> StackId {
        let leaf = self.named.intern(&leaf);
        self.push_leaf(stack, leaf)
    }

    fn push_leaf(&mut self, stack: StackId, leaf: FrameId) -> StackId {
        let is_hidden = self.traits(leaf).is_hidden;
        if is_hidden { stack } else { self.stacks.push(stack, leaf) }
    }

    /// Returns the methods that were named as waiting for work and that no frame was, where frames were
    /// compared with them.
    fn unmatched_waits(&self) -> Vec<usize> {
        let tells_waits = matches!(self.options.metric, Some(Metric::Wall | Metric::Cpu | Metric::OffCpu))
            && !self.options.idle;
        let matched =
            self.matched_waits.iter().enumerate().filter(|(_, is_matched)| tells_waits && !**is_matched);
        matched.map(|(index, _)| index).collect()
    }

    /// Returns true if the leaves of stacks are types.
    const fn has_types(&self) -> bool {
        matches!(self.options.metric, Some(Metric::Alloc | Metric::LiveAlloc | Metric::Exception))
    }

    /// Returns the meaning of a stack's methods for waits, shown or not.
    fn wait_frames(&mut self, key: &StackKey, time: Ticks) -> impl Iterator<Item = WaitFrame> {
        let process = self.process(key);
        let Self { addresses, code, waits, options, matched_waits, .. } = self;
        let frames = addresses.frames(key.stack).take(MAX_SEARCHED_FRAMES).map(move |address| {
            let code_frame = code.resolve(process, address, time);
            waits.get(code_frame.index(), || {
                wait_frame(code.get(code_frame), &options.waits_for_work, matched_waits)
            })
        });
        let mut managed = 0;
        frames.take_while(move |frame| {
            managed += usize::from(!frame.is_opaque());
            managed <= MAX_WAIT_FRAMES
        })
    }

    /// Returns a stack without frames.
    fn begin(&self) -> CachedStack {
        CachedStack {
            epoch: self.epoch,
            stack: StackId::EMPTY,
            has_begun: self.options.filter.roots.is_empty(),
        }
    }

    /// Adds a frame, unless it is not to be shown.
    fn push(&mut self, mut known: CachedStack, frame: FrameId) -> CachedStack {
        let traits = self.traits(frame);
        known.has_begun |= traits.is_root;
        if known.has_begun && !traits.is_hidden {
            // The last line stays of a method that calls itself from several.
            let caller = if self.folds(known.stack, frame) { self.stacks.caller(known.stack) } else { None };
            known.stack = self.stacks.push(caller.unwrap_or(known.stack), frame);
        }
        known
    }

    /// Converts a stack of addresses, from its longest part that was converted in this epoch.
    fn stack(&mut self, stack: StackId, process: Option<u64>, time: Ticks) -> CachedStack {
        let mut missing = Vec::new();
        let mut at = stack;
        let mut known = self.begin();
        while let (Some(address), Some(caller)) = (self.addresses.leaf(at), self.addresses.caller(at)) {
            if let Some(found) = self.known.get(at.index()).filter(|known| known.epoch == self.epoch) {
                known = *found;
                break;
            }
            missing.push((at, address));
            at = caller;
        }
        while let Some((at, address)) = missing.pop() {
            let Some(frame) = self.frame_within(process, address, time) else { break };
            let cut = self.stacks.cut();
            known = self.push(known, frame);
            if self.stacks.cut() > cut {
                // The callees do not fit either.
                self.left_out = self.left_out.saturating_add(missing.len() as u64);
                break;
            }
            if let Some(place) = self.known.get_mut(at.index()) {
                *place = known;
            }
        }
        known
    }

    /// Returns whether a frame is folded into its caller: a run of unnamed code of one file says no more than
    /// one frame of it.
    fn folds(&self, stack: StackId, frame: FrameId) -> bool {
        let frames = &self.named.frames;
        if !frames.is_named(frame) && !frames.is_unknown(frame) && self.stacks.leaf(stack) == Some(frame) {
            return true;
        }
        let is_same =
            |leaf| leaf == frame || self.named.frames.method(leaf) == self.named.frames.method(frame);
        self.options.filter.fold_recursion && self.stacks.leaf(stack).is_some_and(is_same)
    }

    /// Returns the frame of an address; `None` once more were named than [bounds] allow. Addresses that often
    /// change their meaning lead there.
    fn frame_within(&mut self, process: Option<u64>, address: u64, time: Ticks) -> Option<FrameId> {
        let Some(left) = self.lookups_left.checked_sub(1) else {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        };
        self.lookups_left = left;
        Some(self.frame(process, address, time))
    }

    fn frame(&mut self, process: Option<u64>, address: u64, time: Ticks) -> FrameId {
        if self.options.order == Order::File && self.checked.insert((process, address)) {
            let at = |time| self.names.resolve(process, address, time);
            self.is_ambiguous |= !is_same(&at(Ticks(0)), &at(Ticks(u64::MAX)));
        }
        if let Some(frame) = self.line(process, address, time) {
            return frame;
        }
        let Self { code, of_code, unresolved, named, .. } = self;
        let id = code.resolve(process, address, time);
        of_code.get(id.index(), || match code.get(id) {
            Some(found @ Code::Unresolved(why)) => {
                let count = unresolved.entry(why.reason.to_string()).or_insert((why.reason, 0));
                count.1 = count.1.saturating_add(1);
                let module = found.module();
                // As dotnet-trace writes it.
                named.intern_unresolved(found, if module.is_empty() { "?" } else { module })
            }
            Some(found) => named.intern_code(found),
            None => named.frames.intern("?!?"),
        })
    }

    /// Returns the frame of the line that an address belongs to; `None` if lines are not wanted, or it has
    /// none.
    fn line(&mut self, process: Option<u64>, address: u64, time: Ticks) -> Option<FrameId> {
        let lines = self.lines.as_deref_mut()?;
        let code = self.names.resolve(process, address, time);
        let line = self.counts.find(lines, &code, address)?;
        Some(self.named.intern_line(&code, line))
    }

    fn traits(&mut self, frame: FrameId) -> FrameTraits {
        let Self { traits, named, options, .. } = self;
        let filter = &options.filter;
        traits.get(frame.0 as usize, || FrameTraits {
            is_root: filter.roots.is_empty() || named.has_name(frame, |name| filter.is_root(name)),
            is_hidden: !filter.hidden.is_empty() && named.has_name(frame, |name| filter.is_hidden(name)),
            is_switch: kernel_wait::is_switch(named.frames.full_parts(frame)),
            role: named.scheduler_frame(frame),
            awaits: if options.grouping.awaits { named.await_frame(frame) } else { AwaitFrame::Ordinary },
        })
    }
}
