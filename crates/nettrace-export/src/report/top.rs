//! Methods by what they weigh, alone and with what they called.

use clr_events::StackId;

use crate::frame::FrameId;
use crate::profile::Profile;

/// A method, or another frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The whole name.
    pub frame: String,
    /// It stands for a process, or for everything, and not for code.
    pub is_root: bool,
    /// What samples weigh in which it is the leaf.
    pub exclusive: u64,
    /// What samples weigh in whose stack it is, once however often.
    pub inclusive: u64,
}

/// All frames of a profile, in no order that means anything, with those that TraceEvent puts above every stack: `ROOT`, the
/// process, `(Non-Activities)` and `Threads`. Samples without frames weigh on the last of them.
///
/// The profile should be one without [kinds](crate::Options::kinds), which would be the leaf of everything.
pub fn top(profile: &Profile) -> Vec<TopRow> {
    let (exclusive, inclusive) = by_frame(profile);
    let mut rows: Vec<_> = profile
        .frames
        .iter()
        .zip(exclusive.iter().zip(&inclusive))
        .map(|((_, name), (exclusive, inclusive))| TopRow {
            frame: name.to_owned(),
            is_root: false,
            exclusive: *exclusive,
            inclusive: *inclusive,
        })
        .collect();
    rows.extend(roots(profile));
    rows
}

/// By frame: what it weighs alone, and with what it called.
fn by_frame(profile: &Profile) -> (Vec<u64>, Vec<u64>) {
    let mut of_stack = profile.exclusive();
    let mut exclusive = vec![0u64; profile.frames.len()];
    let mut inclusive = vec![0u64; profile.frames.len()];
    let add = |weights: &mut Vec<u64>, frame: FrameId, weight: u64| {
        if let Some(sum) = weights.get_mut(frame.0 as usize) {
            *sum = sum.saturating_add(weight);
        }
    };
    // Callers come before those that they call.
    for stack in profile.stacks.stacks().rev() {
        let (Some(frame), Some(caller)) = (profile.stacks.leaf(stack), profile.stacks.caller(stack)) else {
            continue;
        };
        let own = of_stack.get(stack.index()).copied().unwrap_or(0);
        if let Some(sum) = of_stack.get_mut(caller.index()) {
            *sum = sum.saturating_add(own);
        }
        let is_outermost = profile.stacks.frames(caller).all(|other| other != frame);
        if is_outermost {
            add(&mut inclusive, frame, own);
        }
    }
    for site in &profile.sites {
        if let Some(frame) = site.stack.and_then(|stack| profile.stacks.leaf(stack)) {
            add(&mut exclusive, frame, site.weight);
        }
    }
    (exclusive, inclusive)
}

fn roots(profile: &Profile) -> Vec<TopRow> {
    let mut rows: Vec<_> = profile
        .processes
        .iter()
        .map(|process| TopRow { frame: process.frame.clone(), is_root: true, exclusive: 0, inclusive: 0 })
        .collect();
    let mut without_frames = 0u64;
    for site in profile.sites.iter().filter(|site| site.stack.is_some()) {
        let process =
            profile.threads.get(site.thread as usize).and_then(|thread| rows.get_mut(thread.process));
        if let Some(process) = process {
            process.inclusive = process.inclusive.saturating_add(site.weight);
        }
        if site.stack == Some(StackId::EMPTY) {
            without_frames = without_frames.saturating_add(site.weight);
        }
    }
    rows.retain(|row| row.inclusive > 0);
    let total = profile.total();
    for (name, exclusive) in [("ROOT", 0), ("(Non-Activities)", 0), ("Threads", without_frames)] {
        rows.push(TopRow { frame: name.to_owned(), is_root: true, exclusive, inclusive: total });
    }
    rows
}
