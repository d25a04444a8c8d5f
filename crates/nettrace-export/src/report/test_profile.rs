//! Profiles for tests.

use clr_events::ThreadState;

use crate::profile::index::{ProcessIndex, ThreadIndex};
use crate::profile::metric::Metric;
use crate::profile::{Profile, ProfileSum, StackTotal, Thread};

/// A profile of threads with a state, a weight and frames, root first.
pub(crate) fn profile(stacks: &[(u32, ThreadState, u64, &[&str])]) -> Profile {
    let mut profile = ProfileSum::new(Metric::Wall, 1 << 10).into_profile();
    for (thread, state, weight, frames) in stacks {
        while profile.threads.len() <= *thread as usize {
            profile.threads.push(Thread {
                process: ProcessIndex(0),
                id: profile.threads.len() as u64,
                name: None,
                role: None,
                frame: String::new(),
                track: None,
            });
        }
        let frames: Vec<_> = frames.iter().map(|name| profile.frames.intern(name)).collect();
        let stack = Some(profile.stacks.add(frames));
        let total = StackTotal::new(ThreadIndex(*thread), stack, *weight, 1);
        profile.stack_totals.push(StackTotal { state: *state, ..total });
    }
    profile
}
