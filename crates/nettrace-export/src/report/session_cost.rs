//! The cost of the session that made a recording, in the recorded process.

use clr_events::StackId;

use crate::profile::{Profile, StackTotal};

/// Time that the recorded process spent for the recording itself, or for compilation in the background:
/// neither is the program's work, and both are most of what a process does that is recorded while it hangs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionCost {
    /// Time of the runtime's own threads for sessions, and of methods that enable or disable EventSources and
    /// that write their events.
    pub session: u64,
    /// Time of the thread that recompiles frequently called methods, including methods called at the
    /// beginning of a session.
    pub compilation: u64,
}

/// The name of the runtime's threads for sessions: the server of the diagnostic port, and one for each
/// session.
const SESSION_THREADS: &str = ".NET EventPipe";
/// The beginning of the compiling thread's name; Linux keeps 15 characters of it.
const COMPILER: &str = ".NET Tiered Com";
/// Methods of EventSources that work for sessions.
const CALLBACKS: [&str; 2] = [
    "System.Diagnostics.Tracing.EventPipeEventProvider.",
    "System.Diagnostics.Tracing.EventSource+OverrideEventProvider.OnControllerCommand",
];

/// The part of the cost that a stack belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Session,
    Compilation,
}

impl SessionCost {
    /// Returns the cost in a profile of time.
    pub fn of(profile: &Profile) -> Self {
        let mut cost = Self::default();
        for total in &profile.stack_totals {
            cost.add(profile, total);
        }
        cost
    }

    /// Takes the cost out of a profile: its stacks are not shown any more.
    pub fn take(profile: &mut Profile) -> Self {
        let mut cost = Self::default();
        let parts: Vec<_> =
            profile.stack_totals.iter().map(|total| cost.add(profile, total).is_some()).collect();
        for (total, is_cost) in profile.stack_totals.iter_mut().zip(parts) {
            if is_cost {
                total.stack = None;
            }
        }
        cost
    }

    /// Returns the sum.
    pub const fn total(self) -> u64 {
        self.session.saturating_add(self.compilation)
    }

    fn add(&mut self, profile: &Profile, total: &StackTotal) -> Option<Part> {
        let part = part(profile, total)?;
        let sum = match part {
            Part::Session => &mut self.session,
            Part::Compilation => &mut self.compilation,
        };
        if !total.state.is_held_up() {
            *sum = sum.saturating_add(total.weight);
        }
        Some(part)
    }
}

fn part(profile: &Profile, total: &StackTotal) -> Option<Part> {
    let stack = total.stack?;
    let name = profile.threads.get(total.thread.index())?.name.as_deref().unwrap_or_default();
    if name.starts_with(SESSION_THREADS) {
        return Some(Part::Session);
    }
    if name.starts_with(COMPILER) {
        return Some(Part::Compilation);
    }
    is_callback(profile, stack).then_some(Part::Session)
}

fn is_callback(profile: &Profile, stack: StackId) -> bool {
    profile.path(stack).any(|(_, frame)| {
        let (_, method) = profile.frames.full_parts(frame);
        CALLBACKS.iter().any(|callback| method.starts_with(callback))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::index::{ProcessIndex, ThreadIndex};
    use crate::profile::metric::Metric;
    use crate::profile::{ProfileSum, Thread};

    #[test]
    fn the_cost_of_a_session_is_not_work() {
        let mut profile = ProfileSum::new(Metric::Wall, 1 << 10).into_profile();
        let callback = "C!System.Diagnostics.Tracing.EventPipeEventProvider.Callback(unsigned int8*)";
        let rows = [
            ("main", "App!P.Main()", 5),
            (".NET EventPipe", "libcoreclr.so!?", 7),
            (".NET Tiered Com", "libclrjit.so!?", 11),
            ("main", callback, 13),
        ];
        for (index, (thread, frame, weight)) in (0..).zip(rows) {
            profile.threads.push(Thread {
                process: ProcessIndex(0),
                id: u64::from(index),
                name: Some(thread.to_owned()),
                role: None,
                frame: String::new(),
                track: None,
            });
            let frame = profile.frames.intern(frame);
            let stack = Some(profile.stacks.add([frame]));
            profile.stack_totals.push(StackTotal::new(ThreadIndex(index), stack, weight, 1));
        }
        let expected = SessionCost { session: 20, compilation: 11 };
        assert_eq!(SessionCost::of(&profile), expected);
        assert_eq!((SessionCost::take(&mut profile), profile.total()), (expected, 5));
        assert_eq!(SessionCost::of(&profile), SessionCost::default());
    }
}
