//! A track as frames that open and close.

use std::io;

use clr_events::{StackId, StackTree};

use crate::profile::Profile;
use crate::profile::frame::FrameId;
use crate::profile::track::Track;

/// A change of a thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Time in which the thread is known begins; the frames of its process and of itself open.
    Begin,
    /// A frame is called.
    Open(StackId),
    /// The frame returns.
    Close(StackId),
    /// The state of the thread is unknown from here on.
    End,
}

/// Returns the depth of each node, indexed by node.
pub(super) fn depths(stacks: &StackTree<FrameId>) -> Vec<u32> {
    let mut depths = vec![0u32; stacks.len() + 1];
    for stack in stacks.stacks() {
        let above = stacks.caller(stack).and_then(|caller| depths.get(caller.index())).copied().unwrap_or(0);
        if let Some(depth) = depths.get_mut(stack.index()) {
            *depth = above.saturating_add(1);
        }
    }
    depths
}

/// Passes every change of a thread's stack to `each`, with its time. Each frame that opens closes.
///
/// Times are in nanoseconds since the recording's start, or, for weights other than time, the sum of all
/// earlier weights: such a track is drawn as if each unit of weight took a unit of time.
pub(super) fn walk(
    profile: &Profile,
    depths: &[u32],
    track: &Track,
    mut each: impl FnMut(u64, Change) -> io::Result<()>,
) -> io::Result<()> {
    let is_time = profile.measure.unit.is_time();
    let depth = |node: StackId| depths.get(node.index()).copied().unwrap_or(0);
    let parent = |node: StackId| profile.stacks.caller(node).unwrap_or(StackId::EMPTY);
    let mut opening = Vec::new();
    // The open frames, and their end.
    let mut open: Option<(StackId, u64)> = None;
    let mut sum = 0u64;
    for span in track.iter() {
        let Some((_, stack)) = profile.shown(span.total) else { continue };
        let start = if is_time { span.start.as_nanos().max(0).unsigned_abs() } else { sum };
        let end = start.saturating_add(span.weight);
        sum = sum.saturating_add(span.weight);
        let mut at = match open {
            Some((leaf, until)) if until == start => leaf,
            Some((leaf, until)) => {
                close(leaf, StackId::EMPTY, parent, |node| each(until, Change::Close(node)))?;
                each(until, Change::End)?;
                each(start, Change::Begin)?;
                StackId::EMPTY
            }
            None => {
                each(start, Change::Begin)?;
                StackId::EMPTY
            }
        };
        let mut to = stack;
        opening.clear();
        while at != to {
            if depth(at) >= depth(to) {
                each(start, Change::Close(at))?;
                at = parent(at);
            }
            if depth(to) > depth(at) {
                opening.push(to);
                to = parent(to);
            }
        }
        for node in opening.iter().rev() {
            each(start, Change::Open(*node))?;
        }
        open = Some((stack, end));
    }
    if let Some((leaf, until)) = open {
        close(leaf, StackId::EMPTY, parent, |node| each(until, Change::Close(node)))?;
        each(until, Change::End)?;
    }
    Ok(())
}

fn close(
    leaf: StackId,
    up_to: StackId,
    parent: impl Fn(StackId) -> StackId,
    mut each: impl FnMut(StackId) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = leaf;
    while at != up_to {
        each(at)?;
        at = parent(at);
    }
    Ok(())
}
