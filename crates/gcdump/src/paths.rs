//! Paths from roots to objects.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::dominators::{Dominators, GroupReferences};
use crate::graph::{HeapGraph, NodeId, TypeId};

/// The number of a path that there is not.
const NONE: u32 = u32::MAX;

/// The shortest path from the roots to each object, by the types on the way.
///
/// Objects of one type that follow each other, as those of a list, are one step. Takes 4 bytes a node, and 24 for each path of different types.
#[derive(Debug)]
pub struct PathTree {
    /// The path of each node.
    paths: Vec<u32>,
    /// The last step of each path.
    steps: Vec<PathEnd>,
}

/// The last step of a path, and the path before it.
#[derive(Debug, Clone, Copy)]
struct PathEnd {
    before: u32,
    step: Step,
}

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The index of a group of roots in [`HeapGraph::groups`].
    Group(usize),
    /// Objects of a type, one or several.
    Type(TypeId),
}

/// Objects that are reached by the same types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// The steps from a group of roots to the objects' own type.
    pub steps: Vec<Step>,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that would be free without them; `None` where that was not asked for.
    pub retained_bytes: Option<u64>,
    /// The first of them.
    pub example: NodeId,
}

/// The paths to some objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paths {
    /// The paths, those of the most bytes first.
    pub paths: Vec<Path>,
    /// The number of all paths.
    pub count: usize,
    /// Objects that no root reaches.
    pub unreachable: u64,
}

impl PathTree {
    /// Finds the paths.
    pub fn new(graph: &HeapGraph) -> Self {
        let groups = GroupReferences::new(graph);
        let mut tree = Self { paths: vec![NONE; graph.node_count() as usize], steps: Vec::new() };
        let mut numbers: HashMap<(u32, Step), u32> = HashMap::new();
        let root = graph.first_group();
        let start = tree.step(&mut numbers, NONE, Step::Group(0));
        let mut waiting = VecDeque::from([root]);
        tree.set(root, start);
        while let Some(node) = waiting.pop_front() {
            let path = tree.paths.get(node as usize).copied().unwrap_or(NONE);
            for target in graph.successors(&groups, node) {
                if tree.paths.get(*target as usize).is_none_or(|path| *path != NONE) {
                    continue;
                }
                let step = match (target.checked_sub(root), graph.object(NodeId(*target))) {
                    (Some(group), _) => Step::Group(group as usize),
                    (None, Some(object)) => Step::Type(object.type_id()),
                    (None, None) => Step::Type(TypeId(0)),
                };
                let path = tree.step(&mut numbers, path, step);
                tree.set(*target, path);
                waiting.push_back(*target);
            }
        }
        tree
    }

    /// The path that goes on with a step, or the same path where the step is its last already.
    fn step(&mut self, numbers: &mut HashMap<(u32, Step), u32>, before: u32, step: Step) -> u32 {
        if self.steps.get(before as usize).is_some_and(|end| end.step == step) {
            return before;
        }
        *numbers.entry((before, step)).or_insert_with(|| {
            self.steps.push(PathEnd { before, step });
            u32::try_from(self.steps.len()).unwrap_or(NONE).saturating_sub(1)
        })
    }

    fn set(&mut self, node: u32, path: u32) {
        if let Some(place) = self.paths.get_mut(node as usize) {
            *place = path;
        }
    }

    /// Returns the paths to the objects of types that are chosen: at most so many, those of the most bytes first.
    pub fn paths_to(
        &self,
        graph: &HeapGraph,
        dominators: Option<&Dominators>,
        most: usize,
        is_chosen: impl Fn(TypeId) -> bool,
    ) -> Paths {
        let mut found: HashMap<u32, Path> = HashMap::new();
        let mut unreachable = 0_u64;
        let path_of = |node: NodeId| self.paths.get(node.0 as usize).copied().unwrap_or(NONE);
        for object in graph.objects().filter(|object| is_chosen(object.type_id())) {
            let path = path_of(object.id());
            if path == NONE {
                unreachable = unreachable.saturating_add(1);
                continue;
            }
            let entry = found.entry(path).or_insert_with(|| Path {
                steps: Vec::new(),
                objects: 0,
                bytes: 0,
                retained_bytes: dominators.map(|_| 0),
                example: object.id(),
            });
            entry.objects = entry.objects.saturating_add(1);
            entry.bytes = entry.bytes.saturating_add(object.size());
            let Some(dominators) = dominators else { continue };
            // What objects hold that hold one another, as those of a list, counts once.
            let dominator = dominators.immediate_dominator(object.id());
            if dominator.is_none_or(|dominator| path_of(dominator) != path) {
                let retained = dominators.retained(object.id()).unwrap_or_default();
                entry.retained_bytes = entry.retained_bytes.map(|sum| sum.saturating_add(retained));
            }
        }
        let count = found.len();
        let mut paths: Vec<_> = found.into_iter().collect();
        paths.sort_by(|(a, first), (b, second)| {
            (second.bytes, second.objects, a).cmp(&(first.bytes, first.objects, b))
        });
        paths.truncate(most);
        let paths = paths.into_iter().map(|(end, path)| Path { steps: self.steps_of(end), ..path }).collect();
        Paths { paths, count, unreachable }
    }

    fn steps_of(&self, end: u32) -> Vec<Step> {
        let mut steps: Vec<_> =
            std::iter::successors(self.steps.get(end as usize), |step| self.steps.get(step.before as usize))
                .map(|end| end.step)
                .collect();
        steps.reverse();
        steps
    }
}
