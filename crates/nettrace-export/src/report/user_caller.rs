//! The user's methods that lead to the framework's.

use hashbrown::HashMap;
use serde::Serialize;

use crate::profile::Profile;
use crate::profile::frame::FrameId;

/// A method of the [user's code](crate::Frames::is_user_code) that is the nearest one below a frame of the
/// framework or of native code, on the way to the root of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserCaller {
    /// The user's method.
    pub frame: FrameId,
    /// The part of the frame's weight that it leads to.
    pub weight: u64,
}

/// The nearest user method of each stack, by [`StackId::index`](clr_events::StackId::index): its leaf, or
/// that of the nearest caller.
#[derive(Debug)]
pub(crate) struct NearestUserFrames(Vec<Option<FrameId>>);

impl NearestUserFrames {
    pub(crate) fn new(profile: &Profile) -> Self {
        let mut nearest = vec![None; profile.stacks.len().saturating_add(1)];
        // Callers precede their callees.
        for stack in profile.stacks.stacks() {
            let leaf = profile.stacks.leaf(stack).filter(|leaf| profile.frames.is_user_code(*leaf));
            let inherited = || {
                let caller = profile.stacks.caller(stack)?;
                nearest.get(caller.index()).copied().flatten()
            };
            let frame = leaf.or_else(inherited);
            if let Some(place) = nearest.get_mut(stack.index()) {
                *place = frame;
            }
        }
        Self(nearest)
    }

    /// Returns the nearest user method of a stack.
    pub(crate) fn get(&self, stack: usize) -> Option<FrameId> {
        self.0.get(stack).copied().flatten()
    }
}

/// The weights of frames by the user's methods that lead to them.
#[derive(Debug, Default)]
pub(crate) struct UserCallers(HashMap<(FrameId, FrameId), u64>);

impl UserCallers {
    /// Adds the weight of a stack with this leaf.
    pub(crate) fn add(&mut self, frame: FrameId, user_frame: Option<FrameId>, weight: u64) {
        if let Some(user_frame) = user_frame.filter(|user_frame| weight > 0 && *user_frame != frame) {
            let sum = self.0.entry((frame, user_frame)).or_default();
            *sum = sum.saturating_add(weight);
        }
    }

    /// Returns the heaviest user caller of each frame.
    pub(crate) fn heaviest(self) -> HashMap<FrameId, UserCaller> {
        let mut heaviest: HashMap<FrameId, UserCaller> = HashMap::new();
        for ((frame, user_frame), weight) in self.0 {
            let caller = UserCaller { frame: user_frame, weight };
            let best = heaviest.entry(frame).or_insert(caller);
            if (weight, best.frame) > (best.weight, user_frame) {
                *best = caller;
            }
        }
        heaviest
    }
}

/// A user caller in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct UserCallerName {
    /// The name of the user's method as TraceEvent writes it.
    pub frame: String,
    /// Method name in C# form.
    pub csharp: String,
    /// Method name in C# form without module and namespace, as tables show it.
    #[serde(skip)]
    pub short: String,
    /// The part of the weight that it leads to.
    pub weight: u64,
}

impl UserCallerName {
    pub(crate) fn new(profile: &Profile, caller: UserCaller) -> Self {
        let frames = &profile.frames;
        Self {
            frame: frames.full_name(caller.frame).to_owned(),
            csharp: frames.name(caller.frame).to_owned(),
            short: frames.short_name(caller.frame).unwrap_or_else(|| frames.parts(caller.frame).1).to_owned(),
            weight: caller.weight,
        }
    }
}

/// Returns the user's methods that lead to the subjects at the leaves of stacks, such as allocated types: for
/// each subject, keyed by full name, the heaviest one.
pub fn user_callers(profile: &Profile) -> std::collections::HashMap<String, UserCallerName> {
    let nearest = NearestUserFrames::new(profile);
    let mut callers = UserCallers::default();
    for total in &profile.stack_totals {
        let Some((stack, leaf)) = total.stack.and_then(|stack| Some((stack, profile.stacks.leaf(stack)?)))
        else {
            continue;
        };
        if !profile.frames.is_user_code(leaf) {
            callers.add(leaf, nearest.get(stack.index()), total.weight);
        }
    }
    let named =
        |(leaf, caller)| (profile.frames.full_name(leaf).to_owned(), UserCallerName::new(profile, caller));
    callers.heaviest().into_iter().map(named).collect()
}
