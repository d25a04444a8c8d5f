//! Paths from roots to objects.

use std::borrow::Cow;
use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::graph::{HeapGraph, HeapType, NodeId, Object, RootGroup, TypeId};
use crate::group_references::GroupReferences;
use crate::retained_sets::RetainedSets;

/// The number of an absent path.
const NONE: u32 = u32::MAX;

/// Shortest path from the roots to each object, by the types on the path.
///
/// Consecutive objects of one type, such as the nodes of a list, are one step. Takes 4 bytes a node, and 32
/// for each path of different types.
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
    /// A shorter prefix of this path, chosen so that a few jumps lead to a prefix of any length.
    jump: u32,
    /// The number of steps before this one.
    depth: u32,
    step: PathStep,
}

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathStep {
    /// The index of a group of roots in [`HeapGraph::groups`].
    Group(usize),
    /// Objects of a type, one or several.
    Type(TypeId),
}

impl PathStep {
    /// Returns its name in a graph as dotnet-gcdump writes it; empty if it is not of this graph.
    pub fn name(self, graph: &HeapGraph) -> &str {
        match self {
            Self::Group(group) => graph.groups().get(group).map_or("", RootGroup::name),
            Self::Type(of) => graph.types().get(of.index()).map_or("", HeapType::name),
        }
    }

    /// Returns its name in C#; empty if it is not of this graph.
    pub fn csharp(self, graph: &HeapGraph) -> Cow<'_, str> {
        match self {
            Self::Group(group) => graph.groups().get(group).map_or_else(Cow::default, RootGroup::csharp),
            Self::Type(of) => graph.types().get(of.index()).map_or("", HeapType::csharp).into(),
        }
    }
}

/// Objects reached through the same types.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// use gcdump::{PathStep, PathTree};
///
/// let row = graph.object_at(0x1020).expect("an object").type_id();
/// for path in PathTree::new(&graph).paths_to(&graph, 10, |of| of == row).paths {
///     for step in &path.steps {
///         match step {
///             PathStep::Group(group) => println!("{}", graph.groups()[*group].csharp()),
///             PathStep::Type(of) => println!("  {}", graph.types()[of.index()].csharp()),
///             _ => {}
///         }
///     }
///     assert_eq!((path.objects, path.bytes), (1, 24));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapPath {
    /// The steps from a group of roots to the objects' own type. If the path has more than twice
    /// [`HeapPath::ENDS`] steps, that many at each end.
    pub steps: Vec<PathStep>,
    /// The number of omitted steps in the middle.
    pub steps_left_out: usize,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that would be free without all of them; `None` before [`PathTree::add_retained`].
    pub retained_bytes: Option<u64>,
    /// True if more than `retained_bytes` may be free without them, because there are too many paths for
    /// exact numbers.
    pub retains_more: bool,
    /// The first of the objects.
    pub example: NodeId,
    /// The number of the path in the tree.
    end: u32,
}

/// The paths to some objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapPaths {
    /// The paths, sorted by bytes, largest first.
    pub paths: Vec<HeapPath>,
    /// The number of all paths.
    pub count: usize,
    /// Unreachable objects.
    pub unreachable: u64,
}

/// Objects of a type that a group of roots reaches by the shortest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldObjects {
    /// The index of the group in [`HeapGraph::groups`].
    pub group: usize,
    /// The type.
    pub type_id: TypeId,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl HeapPath {
    /// The number of steps at each end of a long path.
    pub const ENDS: usize = 100;

    /// Returns the first steps, the number of omitted steps in the middle, and the last steps: at most `most`
    /// at each end.
    pub fn ends(&self, most: usize) -> (&[PathStep], usize, &[PathStep]) {
        let is_whole = self.steps_left_out == 0 && self.steps.len() <= most.saturating_mul(2);
        let first = if is_whole { self.steps.len() } else { most.min(self.steps.len() / 2) };
        let last = self.steps.len().saturating_sub(if is_whole { 0 } else { first });
        let middle = last.saturating_sub(first).saturating_add(self.steps_left_out);
        (self.steps.get(..first).unwrap_or_default(), middle, self.steps.get(last..).unwrap_or_default())
    }
}

impl PathTree {
    /// Computes the paths.
    pub fn new(graph: &HeapGraph) -> Self {
        let groups = GroupReferences::new(graph);
        let mut tree = Self { paths: vec![NONE; graph.node_count() as usize], steps: Vec::new() };
        let mut numbers: HashMap<(u32, PathStep), u32> = HashMap::new();
        let root = graph.first_group();
        let start = tree.step(&mut numbers, NONE, PathStep::Group(0));
        let mut waiting = VecDeque::from([root]);
        tree.set(root, start);
        while let Some(node) = waiting.pop_front() {
            let path = tree.paths.get(node as usize).copied().unwrap_or(NONE);
            for target in graph.successors(&groups, node) {
                if tree.paths.get(*target as usize).is_none_or(|path| *path != NONE) {
                    continue;
                }
                let step = match (target.checked_sub(root), graph.object(NodeId(*target))) {
                    (Some(group), _) => PathStep::Group(group as usize),
                    (None, Some(object)) => PathStep::Type(object.type_id()),
                    (None, None) => PathStep::Type(TypeId(0)),
                };
                let path = tree.step(&mut numbers, path, step);
                tree.set(*target, path);
                waiting.push_back(*target);
            }
        }
        tree
    }

    /// The path extended by a step; the same path if its last step is that one already.
    fn step(&mut self, numbers: &mut HashMap<(u32, PathStep), u32>, before: u32, step: PathStep) -> u32 {
        if self.steps.get(before as usize).is_some_and(|end| end.step == step) {
            return before;
        }
        *numbers.entry((before, step)).or_insert_with(|| {
            self.steps.push(self.end(before, step));
            u32::try_from(self.steps.len()).unwrap_or(NONE).saturating_sub(1)
        })
    }

    /// Returns the end of a path extended by a step. Jump lengths follow the skew-binary representation of
    /// the path's length.
    fn end(&self, before: u32, step: PathStep) -> PathEnd {
        let of = |path: u32| self.steps.get(path as usize);
        let Some(last) = of(before) else { return PathEnd { before, jump: NONE, depth: 0, step } };
        let depth = last.depth.saturating_add(1);
        let jump = of(last.jump).filter(|middle| {
            let further = of(middle.jump).map(|start| middle.depth.saturating_sub(start.depth));
            further == Some(last.depth.saturating_sub(middle.depth))
        });
        PathEnd { before, jump: jump.map_or(before, |middle| middle.jump), depth, step }
    }

    fn set(&mut self, node: u32, path: u32) {
        if let Some(place) = self.paths.get_mut(node as usize) {
            *place = path;
        }
    }

    /// Returns the paths to the objects of the chosen types: at most `most`, largest number of bytes first.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// use gcdump::PathTree;
    ///
    /// let row = graph.object_at(0x1020).expect("an object").type_id();
    /// let paths = PathTree::new(&graph).paths_to(&graph, 10, |of| of == row);
    /// assert_eq!(paths.paths.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paths_to(&self, graph: &HeapGraph, most: usize, is_chosen: impl Fn(TypeId) -> bool) -> HeapPaths {
        self.paths_to_objects(graph, most, |object| is_chosen(object.type_id()))
    }

    /// Returns the paths to the chosen objects: at most `most`, largest number of bytes first.
    pub fn paths_to_objects(
        &self,
        graph: &HeapGraph,
        most: usize,
        is_chosen: impl Fn(&Object<'_>) -> bool,
    ) -> HeapPaths {
        let mut found: HashMap<u32, HeapPath> = HashMap::new();
        let mut unreachable = 0_u64;
        let path_of = |node: NodeId| self.paths.get(node.0 as usize).copied().unwrap_or(NONE);
        for object in graph.objects().filter(is_chosen) {
            let path = path_of(object.id());
            if path == NONE {
                unreachable = unreachable.saturating_add(1);
                continue;
            }
            let entry = found.entry(path).or_insert_with(|| HeapPath {
                steps: Vec::new(),
                steps_left_out: 0,
                objects: 0,
                bytes: 0,
                retained_bytes: None,
                retains_more: false,
                example: object.id(),
                end: path,
            });
            entry.objects = entry.objects.saturating_add(1);
            entry.bytes = entry.bytes.saturating_add(object.size());
        }
        let count = found.len();
        let mut paths: Vec<_> = found.into_iter().collect();
        paths.sort_by(|(a, first), (b, second)| {
            (second.bytes, second.objects, a).cmp(&(first.bytes, first.objects, b))
        });
        paths.truncate(most);
        let mut paths: Vec<_> = paths.into_iter().map(|(_, path)| path).collect();
        for path in &mut paths {
            self.add_steps(path);
        }
        HeapPaths { paths, count, unreachable }
    }

    /// Returns all reachable objects by type and by the group of roots that their shortest path begins with,
    /// in no particular order.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// use gcdump::PathTree;
    ///
    /// let held = PathTree::new(&graph).held_objects(&graph);
    /// let bytes: u64 = held.iter().map(|of| of.bytes).sum();
    /// assert_eq!((held.len(), bytes), (2, 56));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held_objects(&self, graph: &HeapGraph) -> Vec<HeldObjects> {
        let groups = self.root_groups();
        let mut held: HashMap<(usize, TypeId), HeldObjects> = HashMap::new();
        for object in graph.objects() {
            let path = self.paths.get(object.id().0 as usize).copied().unwrap_or(NONE);
            let Some(group) = groups.get(path as usize).copied() else { continue };
            let type_id = object.type_id();
            let sum =
                held.entry((group, type_id)).or_insert(HeldObjects { group, type_id, objects: 0, bytes: 0 });
            sum.objects = sum.objects.saturating_add(1);
            sum.bytes = sum.bytes.saturating_add(object.size());
        }
        held.into_values().collect()
    }

    /// Returns the paths to the objects of a type that begin with a group of roots: at most `most`, largest
    /// number of bytes first.
    pub fn paths_from(&self, graph: &HeapGraph, most: usize, group: usize, type_id: TypeId) -> HeapPaths {
        let groups = self.root_groups();
        self.paths_to_objects(graph, most, |object| {
            let path = self.paths.get(object.id().0 as usize);
            object.type_id() == type_id && path.and_then(|path| groups.get(*path as usize)) == Some(&group)
        })
    }

    /// Returns the last group of roots on each path.
    fn root_groups(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = Vec::with_capacity(self.steps.len());
        for end in &self.steps {
            groups.push(match end.step {
                PathStep::Group(group) => group,
                PathStep::Type(_) => groups.get(end.before as usize).copied().unwrap_or_default(),
            });
        }
        groups
    }

    /// Adds to each path the bytes that its objects retain together.
    pub fn add_retained<'p>(
        &self,
        retained: &RetainedSets<'_>,
        paths: impl IntoIterator<Item = &'p mut HeapPath>,
    ) {
        let mut paths: Vec<_> = paths.into_iter().collect();
        let numbers: HashMap<u32, usize> =
            paths.iter().enumerate().map(|(number, path)| (path.end, number)).collect();
        let path_of = |object: Object<'_>| self.paths.get(object.id().0 as usize);
        let sizes = retained.sizes(paths.len(), |object| numbers.get(path_of(object)?).copied());
        for (path, size) in paths.iter_mut().zip(sizes) {
            path.retained_bytes = Some(size.bytes);
            path.retains_more = !size.is_exact;
        }
    }

    fn add_steps(&self, path: &mut HeapPath) {
        let end = path.end;
        let count = self.steps.get(end as usize).map_or(0, |end| end.depth as usize).saturating_add(1);
        path.steps_left_out = count.saturating_sub(2 * HeapPath::ENDS);
        if path.steps_left_out == 0 {
            path.steps = self.last_steps(end, count);
        } else {
            path.steps = self.last_steps(self.shortened(end, HeapPath::ENDS), HeapPath::ENDS);
            path.steps.extend(self.last_steps(end, HeapPath::ENDS));
        }
    }

    /// Returns a path shortened to a number of steps.
    fn shortened(&self, mut end: u32, steps: usize) -> u32 {
        let is_longer =
            |path: u32| self.steps.get(path as usize).is_some_and(|end| end.depth as usize >= steps);
        while is_longer(end) {
            let Some(PathEnd { before, jump, .. }) = self.steps.get(end as usize) else { break };
            end = if is_longer(*jump) { *jump } else { *before };
        }
        end
    }

    fn last_steps(&self, end: u32, most: usize) -> Vec<PathStep> {
        let mut steps: Vec<_> =
            std::iter::successors(self.steps.get(end as usize), |step| self.steps.get(step.before as usize))
                .take(most)
                .map(|end| end.step)
                .collect();
        steps.reverse();
        steps
    }
}
