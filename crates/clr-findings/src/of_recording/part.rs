//! The time of threads in some frames.

use std::collections::HashMap;

use clr_events::ThreadState;
use nettrace_export::FrameId;

use super::OfRecording;

/// The time of threads in some frames and what they call, by state and by the nearest method of the user's
/// code.
pub(super) struct Part<'r> {
    recording: &'r OfRecording<'r>,
    weights: HashMap<(ThreadState, Option<FrameId>), u64>,
}

impl OfRecording<'_> {
    /// The time of threads in the frames for which `is_part` is true.
    pub(super) fn part(&self, is_part: impl Fn(FrameId) -> bool) -> Part<'_> {
        self.part_called_by(is_part, None)
    }

    /// The time of threads in such frames with a caller for which `is_caller` is true.
    pub(super) fn part_called_by(
        &self,
        is_part: impl Fn(FrameId) -> bool,
        is_caller: Option<&dyn Fn(FrameId) -> bool>,
    ) -> Part<'_> {
        let profile = &self.overview.profile;
        let mut weights: HashMap<_, u64> = HashMap::new();
        for total in &profile.stack_totals {
            let Some(stack) = total.stack else { continue };
            let mut frames = profile.path(stack).map(|(_, frame)| frame);
            if !frames.any(&is_part) {
                continue;
            }
            if let Some(is_caller) = is_caller {
                let mut callers = profile.path(stack).map(|(_, frame)| frame);
                callers.any(&is_part);
                if !callers.any(is_caller) {
                    continue;
                }
            }
            let method = frames.find(|frame| profile.frames.is_user_code(*frame));
            let sum = weights.entry((total.state, method)).or_default();
            *sum = sum.saturating_add(total.weight);
        }
        Part { recording: self, weights }
    }
}

impl Part<'_> {
    /// The time in a state, in nanoseconds.
    pub(super) fn weight(&self, state: ThreadState) -> u64 {
        let of_state = self.weights.iter().filter(|((of, _), _)| *of == state);
        of_state.map(|(_, weight)| *weight).fold(0, u64::saturating_add)
    }

    /// The user's method that most of the time in some states is called from.
    pub(super) fn method(&self, is_counted: impl Fn(ThreadState) -> bool) -> Option<String> {
        self.heaviest(is_counted).map(|(method, _)| self.recording.name(method))
    }

    fn heaviest(&self, is_counted: impl Fn(ThreadState) -> bool) -> Option<(FrameId, u64)> {
        let mut methods: HashMap<FrameId, u64> = HashMap::new();
        for ((state, method), weight) in &self.weights {
            if let Some(method) = method.filter(|_| is_counted(*state)) {
                let sum = methods.entry(method).or_default();
                *sum = sum.saturating_add(*weight);
            }
        }
        methods.into_iter().max_by_key(|(frame, weight)| (*weight, *frame))
    }

    /// The user's method that most of the work is called from.
    pub(super) fn worker(&self) -> Option<String> {
        self.method(|state| state == ThreadState::Working)
    }

    /// The same if its threads worked, or could have, for at least this many nanoseconds.
    pub(super) fn worker_of(&self, least: u64) -> Option<String> {
        let works = |state| matches!(state, ThreadState::Working | ThreadState::Ready);
        let (method, _) = self.heaviest(works).filter(|(_, weight)| *weight >= least)?;
        Some(self.recording.name(method))
    }
}
