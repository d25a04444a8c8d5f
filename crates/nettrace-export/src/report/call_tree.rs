//! Who called whom, heaviest first.

use std::collections::BinaryHeap;

use crate::profile::Profile;

/// A call tree.
#[derive(Debug)]
pub struct CallTree<'p> {
    /// Callers come before those that they call; the first one is the root, which is no frame.
    nodes: Vec<Node<'p>>,
}

#[derive(Debug)]
struct Node<'p> {
    name: &'p str,
    exclusive: u64,
    inclusive: u64,
    /// Heaviest first.
    callees: Vec<usize>,
}

/// A frame of a call tree.
#[derive(Debug, Clone, Copy)]
pub struct CallNode<'a> {
    /// Its whole name.
    pub name: &'a str,
    /// What it weighs without what it called.
    pub exclusive: u64,
    /// What it weighs with that.
    pub inclusive: u64,
    /// How many frames have the same caller and are shown, itself included.
    pub siblings: usize,
    /// It is the last of these.
    pub is_last: bool,
}

/// The call tree of a profile, of all threads together or under a frame for each.
pub fn call_tree(profile: &Profile, by_thread: bool) -> CallTree<'_> {
    let mut tree =
        CallTree { nodes: vec![Node { name: "", exclusive: 0, inclusive: 0, callees: Vec::new() }] };
    let threads: Vec<_> = if by_thread { (0..profile.threads.len()).map(Some).collect() } else { vec![None] };
    let mut parents = vec![0];
    for thread in threads {
        let root = thread.map_or(0, |thread| {
            let name = profile.threads.get(thread).map_or("", |thread| &thread.frame);
            parents.push(0);
            tree.add(name)
        });
        let mut places: Vec<Option<usize>> = vec![None; profile.stacks.len() + 1];
        for site in &profile.sites {
            let is_of_thread = thread.is_none_or(|thread| site.thread as usize == thread);
            let (Some(stack), true) = (site.stack, is_of_thread) else { continue };
            let mut missing = Vec::new();
            let mut place = root;
            for (at, frame) in profile.path(stack) {
                if let Some(Some(found)) = places.get(at.index()) {
                    place = *found;
                    break;
                }
                missing.push((at, frame));
            }
            for (at, frame) in missing.into_iter().rev() {
                parents.push(place);
                place = tree.add(profile.frames.name(frame));
                if let Some(entry) = places.get_mut(at.index()) {
                    *entry = Some(place);
                }
            }
            if let Some(node) = tree.nodes.get_mut(place) {
                node.exclusive = node.exclusive.saturating_add(site.weight);
            }
        }
    }
    tree.settle(&parents);
    tree
}

impl<'p> CallTree<'p> {
    fn add(&mut self, name: &'p str) -> usize {
        self.nodes.push(Node { name, exclusive: 0, inclusive: 0, callees: Vec::new() });
        self.nodes.len() - 1
    }

    fn settle(&mut self, parents: &[usize]) {
        for index in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get_mut(index) else { continue };
            node.inclusive = node.inclusive.saturating_add(node.exclusive);
            let whole = node.inclusive;
            if let Some(parent) =
                parents.get(index).filter(|_| index > 0).and_then(|at| self.nodes.get_mut(*at))
            {
                parent.inclusive = parent.inclusive.saturating_add(whole);
                parent.callees.push(index);
            }
        }
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get_mut(index) else { continue };
            let mut callees = std::mem::take(&mut node.callees);
            callees.sort_by_key(|callee| {
                let callee = self.nodes.get(*callee);
                callee.map(|callee| (std::cmp::Reverse(callee.inclusive), callee.name))
            });
            if let Some(node) = self.nodes.get_mut(index) {
                node.callees = callees;
            }
        }
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows the `most` frames that weigh most and at least `least`, callers before those that they call, heaviest first, each
    /// with how many frames are above it.
    pub fn walk<'a>(&'a self, most: usize, least: u64, mut each: impl FnMut(usize, CallNode<'a>)) {
        let chosen = self.choose(most, least);
        let is_chosen = |index: &usize| chosen.get(*index).copied().unwrap_or(false);
        let mut todo = vec![(0, 0, 1, true)];
        while let Some((index, depth, siblings, is_last)) = todo.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            if index > 0 {
                let Node { name, exclusive, inclusive, .. } = *node;
                each(depth - 1, CallNode { name, exclusive, inclusive, siblings, is_last });
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
        let mut waiting = BinaryHeap::from([(u64::MAX, std::cmp::Reverse(0))]);
        let mut left = most.saturating_add(1);
        while let (Some((_, std::cmp::Reverse(index))), 1..) = (waiting.pop(), left) {
            left -= 1;
            if let Some(is_chosen) = chosen.get_mut(index) {
                *is_chosen = true;
            }
            let callees = self.nodes.get(index).map_or(&[][..], |node| &node.callees);
            for callee in callees {
                let weight = self.nodes.get(*callee).map_or(0, |node| node.inclusive);
                if weight >= least {
                    waiting.push((weight, std::cmp::Reverse(*callee)));
                }
            }
        }
        chosen
    }
}
