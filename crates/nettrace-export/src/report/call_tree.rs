//! A tree of callers and callees, heaviest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::profile::Profile;
use crate::profile::frame::FrameId;
use crate::profile::lines::SourceLine;
use crate::tree::{self, Name, Tree};

/// A call tree.
#[derive(Debug)]
pub struct CallTree<'p> {
    /// Callers precede their callees; the first node is the root, which is not a frame.
    nodes: Vec<Node<'p>>,
}

#[derive(Debug)]
struct Node<'p> {
    name: &'p str,
    frame: Option<FrameId>,
    line: Option<SourceLine<'p>>,
    exclusive: u64,
    inclusive: u64,
    /// Heaviest first.
    callees: Vec<usize>,
}

/// A frame of a call tree.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallNode<'a> {
    /// The frame's full name.
    pub name: &'a str,
    /// The frame of the profile; `None` for a thread.
    pub frame: Option<FrameId>,
    /// The file and line of it, if these are known.
    pub line: Option<SourceLine<'a>>,
    /// The weight without callees.
    pub exclusive: u64,
    /// The weight with callees.
    pub inclusive: u64,
    /// The number of frames shown with the same caller, itself included.
    pub siblings: usize,
    /// The node is the last of its siblings.
    pub is_last: bool,
}

/// The call tree of a profile, of all threads together or under a frame for each.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// let tree = nettrace_export::report::call_tree(&profile, false);
/// let mut lines = Vec::new();
/// tree.walk(10, 0, |depth, node| {
///     lines.push(format!("{}{} {}", "  ".repeat(depth), node.inclusive, node.name));
/// });
/// assert_eq!(lines[1], "  5000000 Shop!Cart.Load()");
/// ```
pub fn call_tree(profile: &Profile, by_thread: bool) -> CallTree<'_> {
    let tree = Tree::new(profile, by_thread);
    let mut nodes: Vec<_> = tree.nodes.iter().map(|node| Node::of(node, profile)).collect();
    for (index, node) in tree.nodes.iter().enumerate().skip(1) {
        if let Some(parent) = nodes.get_mut(node.parent) {
            parent.callees.push(index);
        }
    }
    for index in 0..nodes.len() {
        let Some(node) = nodes.get_mut(index) else { continue };
        let mut callees = std::mem::take(&mut node.callees);
        callees.sort_by_key(|callee| {
            let callee = nodes.get(*callee);
            callee.map(|callee| (Reverse(callee.inclusive), callee.name))
        });
        if let Some(node) = nodes.get_mut(index) {
            node.callees = callees;
        }
    }
    CallTree { nodes }
}

impl<'p> Node<'p> {
    fn of(node: &tree::Node, profile: &'p Profile) -> Self {
        let (name, frame) = match node.name {
            Name::None => ("", None),
            Name::Frame(frame) => (profile.frames.name(frame), Some(frame)),
            Name::Thread(thread) => {
                (profile.threads.get(thread.index()).map_or("", |thread| &thread.frame), None)
            }
        };
        let line = frame.and_then(|frame| profile.frames.line(frame));
        Self { name, frame, line, exclusive: node.exclusive, inclusive: node.inclusive, callees: Vec::new() }
    }
}

impl CallTree<'_> {
    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows the `most` frames that weigh most and at least `least`, callers before their callees, heaviest
    /// first, each with the number of frames above it.
    pub fn walk<'a>(&'a self, most: usize, least: u64, mut each: impl FnMut(usize, CallNode<'a>)) {
        let chosen = self.choose(most, least);
        let is_chosen = |index: &usize| chosen.get(*index).copied().unwrap_or(false);
        let mut todo = vec![(0, 0, 1, true)];
        while let Some((index, depth, siblings, is_last)) = todo.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            if index > 0 {
                let Node { name, frame, line, exclusive, inclusive, .. } = *node;
                each(depth - 1, CallNode { name, frame, line, exclusive, inclusive, siblings, is_last });
            }
            let callees: Vec<_> = node.callees.iter().copied().filter(|callee| is_chosen(callee)).collect();
            let lightest = callees.last().copied();
            let count = callees.len();
            todo.extend(
                callees.into_iter().rev().map(|callee| (callee, depth + 1, count, Some(callee) == lightest)),
            );
        }
    }

    /// Heaviest first: a frame is never heavier than its caller, so that callers are chosen before.
    fn choose(&self, most: usize, least: u64) -> Vec<bool> {
        let mut chosen = vec![false; self.nodes.len()];
        let mut waiting = BinaryHeap::from([(u64::MAX, Reverse(0))]);
        let mut left = most.saturating_add(1);
        while let (Some((_, Reverse(index))), 1..) = (waiting.pop(), left) {
            left -= 1;
            if let Some(is_chosen) = chosen.get_mut(index) {
                *is_chosen = true;
            }
            let callees = self.nodes.get(index).map_or(&[][..], |node| &node.callees);
            for callee in callees {
                let weight = self.nodes.get(*callee).map_or(0, |node| node.inclusive);
                if weight >= least {
                    waiting.push((weight, Reverse(*callee)));
                }
            }
        }
        chosen
    }
}
