//! Methods with their weights, alone and with their callees.

use clr_events::StackId;
use hashbrown::HashMap;

use crate::profile::Profile;
use crate::profile::frame::FrameId;
use crate::profile::frame_kind::FrameKind;
use crate::report::user_caller::{NearestUserFrames, UserCaller, UserCallers};

/// A method, or another frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopRow {
    /// The whole name.
    pub frame: String,
    /// The frame of the profile; `None` for a process, or for everything.
    pub frame_id: Option<FrameId>,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// True if it is code without a name.
    pub is_unnamed: bool,
    /// The file and line of it, if these are known.
    pub line: Option<(String, u32)>,
    /// True if it is a process, or everything, rather than code.
    pub is_root: bool,
    /// The weight of samples with the frame at the leaf.
    pub exclusive: u64,
    /// The weight of samples with the frame in their stack, counted once however often it is there.
    pub inclusive: u64,
    /// The part of `inclusive` in which the thread was [blocked](clr_events::ThreadState::Blocked) or
    /// [ready](clr_events::ThreadState::Ready); 0 unless [idle time](crate::Options::idle) is left out.
    pub blocked: u64,
    /// The same of `exclusive`.
    pub exclusive_blocked: u64,
    /// The user's method that leads to most of `exclusive`, if the frame is not the user's itself.
    pub exclusive_from: Option<UserCaller>,
    /// The same of `inclusive`.
    pub inclusive_from: Option<UserCaller>,
}

impl TopRow {
    const fn root(frame: String, exclusive: u64) -> Self {
        Self {
            frame,
            frame_id: None,
            kind: FrameKind::Pseudo,
            is_unnamed: false,
            line: None,
            is_root: true,
            exclusive,
            inclusive: 0,
            blocked: 0,
            exclusive_blocked: 0,
            exclusive_from: None,
            inclusive_from: None,
        }
    }

    /// Returns the user's method that leads to most of the weight, alone or with callees.
    pub const fn user_caller(&self, is_inclusive: bool) -> Option<UserCaller> {
        if is_inclusive { self.inclusive_from } else { self.exclusive_from }
    }
}

/// All frames of a profile, in arbitrary order, with the frames that TraceEvent puts above every stack:
/// `ROOT`, the process, `(Non-Activities)` and `Threads`. Samples without frames weigh on the last of them.
///
/// The profile should be one without [kinds](crate::Options::kinds), which would be the leaf of everything.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::report;
///
/// let mut rows = report::top(&profile);
/// rows.retain(|row| !row.is_root);
/// report::sort_top(&mut rows, false);
/// assert_eq!((rows[0].frame.as_str(), rows[0].exclusive), ("Shop!Cart.Load()", 5_000_000));
/// ```
pub fn top(profile: &Profile) -> Vec<TopRow> {
    let (weights, exclusive_from, inclusive_from) = by_frame(profile);
    let mut rows: Vec<_> = profile
        .frames
        .iter()
        .zip(weights)
        .map(|((frame, name), weights)| TopRow {
            frame: name.to_owned(),
            frame_id: Some(frame),
            kind: profile.frames.kind(frame),
            is_unnamed: !profile.frames.is_named(frame),
            line: profile.frames.line(frame).map(|source| (source.file.to_owned(), source.line)),
            is_root: false,
            exclusive: weights.exclusive,
            inclusive: weights.inclusive,
            blocked: weights.blocked,
            exclusive_blocked: weights.exclusive_blocked,
            exclusive_from: exclusive_from.get(&frame).copied(),
            inclusive_from: inclusive_from.get(&frame).copied(),
        })
        .collect();
    rows.extend(roots(profile));
    rows
}

/// The weights of a frame: alone, and with its callees.
#[derive(Debug, Clone, Copy, Default)]
struct FrameWeights {
    exclusive: u64,
    inclusive: u64,
    /// The blocked part of `inclusive`.
    blocked: u64,
    /// The blocked part of `exclusive`.
    exclusive_blocked: u64,
    /// The number of times that it is on the stack at hand.
    depth: u32,
}

/// User callers by frame.
type CallersByFrame = HashMap<FrameId, UserCaller>;

/// Returns the weights of all frames, and the user's methods that lead to them, alone and with callees.
fn by_frame(profile: &Profile) -> (Vec<FrameWeights>, CallersByFrame, CallersByFrame) {
    let nearest = NearestUserFrames::new(profile);
    let (mut exclusive_from, mut inclusive_from) = (UserCallers::default(), UserCallers::default());
    let mut weights = vec![FrameWeights::default(); profile.frames.len()];
    let exclusive = profile.exclusive();
    let inclusive = with_callees(profile, exclusive.clone());
    let exclusive_blocked = profile.exclusive_where(|total| total.state.is_held_up());
    let blocked = with_callees(profile, exclusive_blocked.clone());
    let of = |weights: &[u64], stack: usize| weights.get(stack).copied().unwrap_or(0);
    Callees::new(profile).walk(|stack, frame, step| {
        let Some(sums) = weights.get_mut(frame.0 as usize) else { return };
        if step == Walk::Leave {
            sums.depth -= 1;
            return;
        }
        sums.depth += 1;
        if !profile.frames.is_user_code(frame) {
            exclusive_from.add(frame, nearest.get(stack), of(&exclusive, stack));
            if sums.depth == 1 {
                inclusive_from.add(frame, nearest.get(stack), of(&inclusive, stack));
            }
        }
        sums.exclusive = sums.exclusive.saturating_add(of(&exclusive, stack));
        sums.exclusive_blocked = sums.exclusive_blocked.saturating_add(of(&exclusive_blocked, stack));
        // However often it is on a stack, it counts once.
        if sums.depth == 1 {
            sums.inclusive = sums.inclusive.saturating_add(of(&inclusive, stack));
            sums.blocked = sums.blocked.saturating_add(of(&blocked, stack));
        }
    });
    (weights, exclusive_from.heaviest(), inclusive_from.heaviest())
}

/// Adds the weights of all that a stack called to its own.
fn with_callees(profile: &Profile, mut weights: Vec<u64>) -> Vec<u64> {
    // Callers precede their callees.
    for stack in profile.stacks.stacks().rev() {
        let weight = weights.get(stack.index()).copied().unwrap_or(0);
        let caller = profile.stacks.caller(stack).and_then(|caller| weights.get_mut(caller.index()));
        if let Some(sum) = caller {
            *sum = sum.saturating_add(weight);
        }
    }
    weights
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Enter,
    Leave,
}

/// The stacks of a profile from callers to callees, by [`StackId::index`]; 0 means none.
struct Callees {
    frames: Vec<FrameId>,
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Callees {
    fn new(profile: &Profile) -> Self {
        let count = profile.stacks.len() + 1;
        let mut callees =
            Self { frames: vec![FrameId(0); count], first: vec![0; count], next: vec![0; count] };
        for stack in profile.stacks.stacks() {
            let (Some(frame), Some(caller)) = (profile.stacks.leaf(stack), profile.stacks.caller(stack))
            else {
                continue;
            };
            let (index, caller) = (stack.index(), caller.index());
            callees.frames[index] = frame;
            callees.next[index] = callees.first[caller];
            callees.first[caller] = u32::try_from(index).unwrap_or(0);
        }
        callees
    }

    /// Every stack but the empty one, with its leaf, as it begins and as all of its callees are over.
    fn walk(&self, mut each: impl FnMut(usize, FrameId, Walk)) {
        let mut todo = vec![(self.first[0], Walk::Enter)];
        while let Some((stack, step)) = todo.pop() {
            let index = stack as usize;
            if index == 0 {
                continue;
            }
            each(index, self.frames[index], step);
            if step == Walk::Enter {
                todo.push((self.next[index], Walk::Enter));
                todo.push((stack, Walk::Leave));
                todo.push((self.first[index], Walk::Enter));
            }
        }
    }
}

fn roots(profile: &Profile) -> Vec<TopRow> {
    let mut rows: Vec<_> =
        profile.processes.iter().map(|process| TopRow::root(process.frame.clone(), 0)).collect();
    let mut without_frames = 0u64;
    for total in profile.stack_totals.iter().filter(|total| total.stack.is_some()) {
        let process =
            profile.threads.get(total.thread.index()).and_then(|thread| rows.get_mut(thread.process.index()));
        if let Some(process) = process {
            process.inclusive = process.inclusive.saturating_add(total.weight);
        }
        if total.stack == Some(StackId::EMPTY) {
            without_frames = without_frames.saturating_add(total.weight);
        }
    }
    rows.retain(|row| row.inclusive > 0);
    let total = profile.total();
    for (name, exclusive) in [("ROOT", 0), ("(Non-Activities)", 0), ("Threads", without_frames)] {
        rows.push(TopRow { inclusive: total, ..TopRow::root(name.to_owned(), exclusive) });
    }
    rows
}
