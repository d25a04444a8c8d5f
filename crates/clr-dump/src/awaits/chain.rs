//! Chains of awaits, from an uncompleted operation to its last waiter.

use hashbrown::{HashMap, HashSet};

/// Maximum number of objects of a chain.
const MAX_DEPTH: usize = 10_000;
/// Maximum number of steps from one object to another.
const MAX_STEPS: u64 = 1 << 24;
/// Maximum number of objects of the chains to keep.
const MAX_KEPT: usize = 1 << 21;

/// Chains with equal labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The number of chains.
    pub(crate) count: u64,
    /// Indexes of the first chain's objects, starting with the object that the others wait for.
    pub(crate) nodes: Vec<usize>,
    pub(crate) end: ChainEnd,
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainEnd {
    /// Nothing waits for the last object.
    Whole,
    /// The object with this index waits for the last object: the methods wait for each other and never end.
    Cycle(usize),
    /// More objects follow than are read.
    Cut,
}

/// The chains of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    /// The groups, largest first.
    pub(crate) groups: Vec<Group>,
    /// The number of all chains.
    pub(crate) count: u64,
    /// True if the limits cut off chains.
    pub(crate) is_truncated: bool,
}

/// Follows the chains of a graph. `waiters` lists the waiters of each node. Two chains belong to one group if
/// the labels of their nodes are equal.
pub(crate) fn chains<L: Copy + Eq + std::hash::Hash>(waiters: &[Vec<usize>], labels: &[L]) -> Chains {
    let mut reader = Reader {
        waiters,
        labels,
        visited: vec![false; waiters.len()],
        groups: HashMap::new(),
        order: Vec::new(),
        steps_left: MAX_STEPS,
        kept: 0,
        result: Chains::default(),
    };
    let mut waits = vec![false; waiters.len()];
    for waiter in waiters.iter().flatten() {
        if let Some(waits) = waits.get_mut(*waiter) {
            *waits = true;
        }
    }
    for (start, _) in waits.iter().enumerate().filter(|(_, waits)| !**waits) {
        reader.follow(start);
    }
    // Nodes that no start reaches are in a cycle, or after one.
    if !reader.result.is_truncated {
        for start in 0..waiters.len() {
            if reader.visited.get(start) == Some(&false) {
                reader.follow(start);
            }
        }
    }
    reader.finish()
}

struct Reader<'g, L> {
    waiters: &'g [Vec<usize>],
    labels: &'g [L],
    visited: Vec<bool>,
    /// Indexes of `order` by the labels and the end of a chain.
    groups: HashMap<(Vec<L>, ChainEnd), usize>,
    order: Vec<Group>,
    steps_left: u64,
    kept: usize,
    result: Chains,
}

impl<L: Copy + Eq + std::hash::Hash> Reader<'_, L> {
    fn waiters(&self, node: usize) -> &[usize] {
        self.waiters.get(node).map_or(&[], |waiters| waiters)
    }

    /// Follows all chains that begin with a node.
    fn follow(&mut self, start: usize) {
        // The nodes of the chain, each with the number of its waiters that were followed.
        let mut path = vec![(start, 0_usize)];
        let mut on_path: HashSet<usize> = [start].into_iter().collect();
        self.visit(start);
        while let Some((node, next)) = path.last_mut() {
            let Some(left) = self.steps_left.checked_sub(1) else {
                self.result.is_truncated = true;
                return;
            };
            self.steps_left = left;
            let (of, number) = (*node, *next);
            *next = next.saturating_add(1);
            let waiter = self.waiters(of).get(number).copied();
            match waiter {
                None => {
                    if number == 0 {
                        self.add(&path, ChainEnd::Whole);
                    }
                    path.pop();
                    on_path.remove(&of);
                }
                Some(waiter) if on_path.contains(&waiter) => {
                    let at = path.iter().position(|(node, _)| *node == waiter).unwrap_or_default();
                    self.add(&path, ChainEnd::Cycle(at));
                }
                Some(_) if path.len() >= MAX_DEPTH => self.add(&path, ChainEnd::Cut),
                Some(waiter) => {
                    self.visit(waiter);
                    on_path.insert(waiter);
                    path.push((waiter, 0));
                }
            }
        }
    }

    fn visit(&mut self, node: usize) {
        if let Some(visited) = self.visited.get_mut(node) {
            *visited = true;
        }
    }

    fn add(&mut self, path: &[(usize, usize)], end: ChainEnd) {
        self.result.count = self.result.count.saturating_add(1);
        self.steps_left = self.steps_left.saturating_sub(u64::try_from(path.len()).unwrap_or(u64::MAX));
        let labels: Vec<L> = path.iter().filter_map(|(node, _)| self.labels.get(*node).copied()).collect();
        let key = (labels, end);
        if let Some(group) = self.groups.get(&key).and_then(|index| self.order.get_mut(*index)) {
            group.count = group.count.saturating_add(1);
            return;
        }
        if self.kept.saturating_add(path.len()) > MAX_KEPT {
            self.result.is_truncated = true;
            return;
        }
        self.kept = self.kept.saturating_add(path.len());
        self.groups.insert(key, self.order.len());
        self.order.push(Group { count: 1, nodes: path.iter().map(|(node, _)| *node).collect(), end });
    }

    fn finish(self) -> Chains {
        let Self { mut order, mut result, .. } = self;
        order.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| b.nodes.len().cmp(&a.nodes.len())));
        result.groups = order;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(count: u64, nodes: &[usize], end: ChainEnd) -> Group {
        Group { count, nodes: nodes.to_vec(), end }
    }

    #[test]
    fn chains_begin_at_their_end_and_equal_chains_are_counted() {
        // Two timers, each with a chain of two; a source that two methods wait for.
        let waiters = [vec![1], vec![2], vec![], vec![4], vec![5], vec![], vec![7, 8], vec![], vec![]];
        let labels = ['t', 'm', 'n', 't', 'm', 'n', 's', 'm', 'x'];
        let chains = chains(&waiters, &labels);
        assert_eq!((chains.count, chains.is_truncated), (4, false));
        let expected = [
            group(2, &[0, 1, 2], ChainEnd::Whole),
            group(1, &[6, 7], ChainEnd::Whole),
            group(1, &[6, 8], ChainEnd::Whole),
        ];
        assert_eq!(chains.groups, expected);
    }

    #[test]
    fn methods_that_wait_for_one_another_are_a_cycle() {
        // 0 and 1 wait for each other, 2 for 1; 3 waits for itself.
        let waiters = [vec![1], vec![0, 2], vec![], vec![3]];
        let chains = chains(&waiters, &[0, 1, 2, 3]);
        let expected = [
            group(1, &[0, 1, 2], ChainEnd::Whole),
            group(1, &[0, 1], ChainEnd::Cycle(0)),
            group(1, &[3], ChainEnd::Cycle(0)),
        ];
        assert_eq!(chains.groups, expected);
    }

    #[test]
    fn chains_that_branch_and_join_again_and_again_are_bounded() {
        // 2^40 ways through forty pairs.
        let mut waiters: Vec<Vec<usize>> = vec![vec![1, 2]];
        for level in 0..40 {
            let next = if level == 39 { vec![] } else { vec![2 * level + 3, 2 * level + 4] };
            waiters.extend([next.clone(), next]);
        }
        let labels: Vec<usize> = (0..waiters.len()).collect();
        let chains = chains(&waiters, &labels);
        assert!(chains.is_truncated);
        assert!(chains.groups.iter().map(|group| group.nodes.len()).sum::<usize>() <= MAX_KEPT);
    }

    #[test]
    fn a_chain_that_is_too_long_is_cut() {
        let count = MAX_DEPTH + 5;
        let waiters: Vec<_> = (0..count).map(|n| if n + 1 < count { vec![n + 1] } else { vec![] }).collect();
        let chains = chains(&waiters, &vec![0; count]);
        // The nodes past the cut form a chain of their own.
        assert_eq!(
            chains.groups.first().map(|group| (group.nodes.len(), group.end)),
            Some((MAX_DEPTH, ChainEnd::Cut))
        );
        assert!(chains.count >= 1);
    }
}
