//! The stacks of a profile as one tree.

use clr_events::StackId;

use crate::profile::Profile;
use crate::profile::frame::FrameId;
use crate::profile::index::ThreadIndex;

/// The name of a node of a [`Tree`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name {
    /// The root is not a frame.
    None,
    Frame(FrameId),
    Thread(ThreadIndex),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    pub(crate) name: Name,
    pub(crate) exclusive: u64,
    pub(crate) inclusive: u64,
}

/// Callers precede their callees; the first node is the root.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// The stacks of all threads together, or below a node for each.
    pub(crate) fn new(profile: &Profile, by_thread: bool) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        tree.push(0, Name::None);
        let shown = |total: &crate::StackTotal| {
            Some((if by_thread { total.thread } else { ThreadIndex(0) }, total.stack?, total.weight))
        };
        let mut stack_totals: Vec<_> = profile.stack_totals.iter().filter_map(shown).collect();
        stack_totals.sort_by_key(|(thread, ..)| *thread);
        // By stack, the node that it has, and of which thread.
        let mut places = vec![None; profile.stacks.len() + 1];
        for (thread, stack, weight) in stack_totals {
            let node = tree.place(profile, &mut places, stack, by_thread, thread);
            if let Some(node) = tree.nodes.get_mut(node) {
                node.exclusive = node.exclusive.saturating_add(weight);
            }
        }
        for index in (0..tree.nodes.len()).rev() {
            let Some(node) = tree.nodes.get_mut(index) else { continue };
            node.inclusive = node.inclusive.saturating_add(node.exclusive);
            let Node { parent, inclusive, .. } = *node;
            if let Some(parent) = tree.nodes.get_mut(parent).filter(|_| index > 0) {
                parent.inclusive = parent.inclusive.saturating_add(inclusive);
            }
        }
        tree
    }

    fn push(&mut self, parent: usize, name: Name) -> usize {
        self.nodes.push(Node { parent, name, exclusive: 0, inclusive: 0 });
        self.nodes.len() - 1
    }

    fn place(
        &mut self,
        profile: &Profile,
        places: &mut [Option<(ThreadIndex, usize)>],
        stack: StackId,
        by_thread: bool,
        thread: ThreadIndex,
    ) -> usize {
        let known = |places: &[_], stack: StackId| match places.get(stack.index()) {
            Some(Some((of, node))) if *of == thread => Some(*node),
            _ => None,
        };
        let mut missing = Vec::new();
        let mut at = stack;
        let mut node = loop {
            if let Some(node) = known(places, at) {
                break node;
            }
            let (Some(frame), Some(caller)) = (profile.stacks.leaf(at), profile.stacks.caller(at)) else {
                let root = if by_thread { self.push(0, Name::Thread(thread)) } else { 0 };
                if let Some(place) = places.get_mut(at.index()) {
                    *place = Some((thread, root));
                }
                break root;
            };
            missing.push((at, frame));
            at = caller;
        };
        for (stack, frame) in missing.into_iter().rev() {
            node = self.push(node, Name::Frame(frame));
            if let Some(place) = places.get_mut(stack.index()) {
                *place = Some((thread, node));
            }
        }
        node
    }
}
