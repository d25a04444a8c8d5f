//! Retained sizes and paths of small graphs, against reachability.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use std::collections::BTreeSet;

use dump::Dump;
use gcdump::{
    Dominators, Grouping, HeapDiff, HeapGraph, HeapGraphBuilder, HeapReport, NodeId, PathStep, PathTree,
    RetainedSets,
};

/// A graph of objects at 0x1000, 0x1020 and so on, of three types with different sizes.
struct Small {
    targets: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl Small {
    /// A graph of up to `most` objects from a generator of pseudorandom numbers.
    fn random(seed: u64, most: usize) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let count = 1 + next(most);
        let targets = (0..count).map(|_| (0..next(4)).map(|_| next(count)).collect()).collect();
        Self { targets, roots: (0..=next(3)).map(|_| next(count)).collect() }
    }

    fn graph(&self) -> HeapGraph {
        let address = |object: usize| 0x1000 + 0x20 * object as u64;
        let objects: Vec<_> = (0..self.targets.len())
            .map(|object| {
                (address(object), Self::size(object), Self::of(object), self.targets[object].len() as u64)
            })
            .collect();
        let roots: Vec<_> = self.roots.iter().map(|object| (address(*object), 2, 0)).collect();
        let edges: Vec<_> = self.targets.iter().flatten().map(|object| address(*object)).collect();
        let types = [(0, 9, 0, "T0", &[][..]), (1, 9, 0, "T1", &[]), (2, 9, 0, "T2", &[])];
        let dump = Dump::begun().types(&types).roots(&roots).objects(&objects).references(&edges);
        dump.stop(5).graph().unwrap()
    }

    const fn size(object: usize) -> u64 {
        24 + 8 * object as u64
    }

    const fn of(object: usize) -> u64 {
        object as u64 % 3
    }

    /// The objects that roots reach without some of the objects.
    fn reached_without(&self, is_removed: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut waiting = self.roots.clone();
        while let Some(object) = waiting.pop() {
            if !is_removed(object) && reached.insert(object) {
                waiting.extend(&self.targets[object]);
            }
        }
        reached
    }
}

#[test]
fn keys_of_dependent_handles_reference_their_values_if_asked_for() {
    // A root holds two keys; the values of the first are held by it alone. The last key is not in the dump.
    let types = [(0, 9, 0, "Key", &[][..]), (1, 9, 0, "Value", &[])];
    let objects = [
        (0x1000, 24, 0, 1),
        (0x1020, 24, 0, 0),
        (0x1040, 100, 1, 0),
        (0x1080, 200, 1, 1),
        (0x1180, 300, 1, 0),
    ];
    let handles = [(0x1000, 0x1080), (0x1020, 0x1040), (0x1000, 0x1040), (0x2000, 0x1180)];
    let dump = Dump::begun().types(&types).roots(&[(0x1000, 2, 0), (0x1020, 2, 0)]).objects(&objects);
    let bytes = dump.references(&[0x1020, 0x1040]).dependent_handles(&handles).stop(5).bytes();
    let references = |graph: &HeapGraph| -> Vec<Vec<u64>> {
        let addresses = |object: gcdump::Object<'_>| {
            object.references().map(|target| graph.address(target).unwrap()).collect()
        };
        graph.objects().map(addresses).collect()
    };
    let retained = |graph: &HeapGraph| -> Vec<u64> {
        let dominators = Dominators::new(graph);
        graph.objects().map(|object| dominators.retained(object.id()).unwrap()).collect()
    };
    let roots = dump::graph_of(&bytes).unwrap();
    assert_eq!(references(&roots), [vec![0x1020], vec![], vec![], vec![0x1040], vec![]]);
    assert_eq!(retained(&roots), [24, 24, 100, 200, 300]);
    let edges = dump::graph_with(HeapGraphBuilder::new().with_dependent_references(), &bytes).unwrap();
    assert_eq!(
        references(&edges),
        [vec![0x1020, 0x1080, 0x1040], vec![0x1040], vec![], vec![0x1040], vec![]]
    );
    // The third is reached by both keys.
    assert_eq!(retained(&edges), [24 + 200, 24, 100, 200, 300]);
    assert_eq!((roots.root_count(), edges.root_count()), (6, 3));
}

mod random {
    use super::*;

    /// The seeds of as many graphs, from proptest's seed.
    fn seeds(graphs: u64) -> impl Iterator<Item = u64> {
        let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0u64);
        (0..graphs).map(move |graph| seed.wrapping_mul(4000).wrapping_add(graph))
    }

    #[test]
    fn objects_and_types_retain_objects_unreachable_without_them() {
        let (mut nested, mut together) = (0, 0);
        for seed in seeds(3000) {
            let small = Small::random(seed, 24);
            let graph = small.graph();
            let dominators = Dominators::new(&graph);
            let all = small.reached_without(|_| false);
            let ids: Vec<NodeId> = graph.objects().map(|object| object.id()).collect();
            // The objects that each object dominates, itself included.
            let dominated: Vec<BTreeSet<usize>> = (0..small.targets.len())
                .map(|object| all.difference(&small.reached_without(|it| it == object)).copied().collect())
                .collect();
            for (object, dominated) in dominated.iter().enumerate() {
                let expected =
                    all.contains(&object).then(|| dominated.iter().map(|it| Small::size(*it)).sum());
                assert_eq!(dominators.retained(ids[object]), expected, "object {object} of graph {seed}");
            }
            let report = HeapReport::new(&graph, Grouping::Type, Some(&dominators));
            for row in &report.rows {
                let of = |object: usize| format!("T{}", Small::of(object)) == row.name;
                let left = small.reached_without(of);
                let expected = all.difference(&left).map(|it| Small::size(*it)).sum();
                assert_eq!(row.retained_bytes, Some(expected), "{} of graph {seed}", row.name);
                assert!(!row.retains_more);
                let alone = dominators.retained_by_class(1, |object| {
                    (object.heap_type().unwrap().name() == row.name).then_some(0)
                });
                together += usize::from(alone[0] < expected);
            }
            let unreachable = report.unreachable.unwrap();
            assert_eq!(unreachable.objects, (small.targets.len() - all.len()) as u64);
            nested += dominated.iter().filter(|dominated| dominated.len() > 2).count();
        }
        assert!(nested > 1000, "the graphs have {nested} objects that hold two others");
        assert!(together > 500, "{together} types hold more together than each object of them alone");
    }

    /// More sets than are processed together, of few objects each.
    #[test]
    fn sets_retain_objects_unreachable_without_each_of_them() {
        const SETS: usize = 150;
        let (mut together, mut outside) = (0, 0);
        for seed in seeds(100) {
            let small = Small::random(seed, if seed % 2 == 0 { 700 } else { 250 });
            let graph = small.graph();
            let dominators = Dominators::new(&graph);
            let set = |object: gcdump::Object<'_>| {
                let object = usize::try_from((object.address().unwrap() - 0x1000) / 0x20).unwrap();
                // The last few are in none.
                Some(object * 7919 % (SETS + 5)).filter(|set| *set < SETS)
            };
            let alone = dominators.retained_by_class(SETS, set);
            let sizes = RetainedSets::new(&dominators).sizes(SETS, set);
            let all = small.reached_without(|_| false);
            for (number, size) in sizes.iter().enumerate() {
                let left = small.reached_without(|object| object * 7919 % (SETS + 5) == number);
                let expected: u64 = all.difference(&left).map(|object| Small::size(*object)).sum();
                assert_eq!((size.bytes, size.is_exact), (expected, true), "set {number} of graph {seed}");
                together += usize::from(alone[number] < expected);
            }
            outside += small.targets.len() - all.len();
        }
        assert!(together > 20 && outside > 100, "{together} {outside}");
    }
}

#[test]
fn a_chain_of_a_million_objects_needs_no_stack() {
    let count = 1_000_000;
    let small = Small {
        targets: (1..=count).map(|next| if next < count { vec![next] } else { vec![0] }).collect(),
        roots: vec![0],
    };
    let graph = small.graph();
    let dominators = Dominators::new(&graph);
    let first = graph.objects().next().unwrap();
    assert_eq!(dominators.retained(first.id()), Some(graph.total_bytes()));
    let tree = PathTree::new(&graph);
    let mut paths = tree.paths_to(&graph, 1, |of| graph.types()[of.index()].name() == "T1");
    tree.add_retained(&RetainedSets::new(&dominators), &mut paths.paths);
    // The first T1 holds all objects after it.
    assert_eq!(
        paths.paths[0].retained_bytes,
        Some(Small::size(999_997) + Small::size(999_998) + Small::size(999_999))
    );
    // T0, T1, T2, T0 … to the last of them.
    assert_eq!((paths.count, paths.paths.len(), paths.unreachable), (333_333, 1, 0));
    let path = &paths.paths[0];
    assert_eq!((path.steps.len(), path.steps.len() + path.steps_left_out), (200, 3 + 999_998));
    let names = |steps: &[PathStep]| -> Vec<String> {
        steps
            .iter()
            .map(|step| match step {
                PathStep::Group(group) => graph.groups()[*group].name().to_owned(),
                PathStep::Type(of) => graph.types()[of.index()].name().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let (first, middle, last) = path.ends(5);
    assert_eq!(middle, 3 + 999_998 - 10);
    assert_eq!(names(first)[3..], ["T0", "T1"]);
    assert_eq!(names(last), ["T0", "T1", "T2", "T0", "T1"]);
    let (first, _, last) = path.ends(usize::MAX);
    assert_eq!((first.len(), last.len()), (100, 100));
    assert_eq!(names(&first[98..]), ["T2", "T0"]);
}

#[test]
fn paths_go_from_roots_over_types_each_of_which_is_one_step() {
    // Two lists of T0. One of them holds a T1, in turn.
    let small = Small {
        targets: vec![vec![3], vec![], vec![], vec![6], vec![1], vec![], vec![9], vec![], vec![], vec![1]],
        roots: vec![0],
    };
    let graph = small.graph();
    let dominators = Dominators::new(&graph);
    let retained = RetainedSets::new(&dominators);
    let tree = PathTree::new(&graph);
    let mut paths = tree.paths_to(&graph, 10, |of| graph.types()[of.index()].name() == "T1");
    tree.add_retained(&retained, &mut paths.paths);
    assert_eq!((paths.count, paths.unreachable), (1, 2));
    let path = &paths.paths[0];
    let names: Vec<_> = path
        .steps
        .iter()
        .map(|step| match step {
            PathStep::Group(group) => graph.groups()[*group].name(),
            PathStep::Type(of) => graph.types()[of.index()].name(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        names,
        [".NET Roots", "other roots", "strong Handles"]
            .map(|name| format!("[{name}]"))
            .iter()
            .map(String::as_str)
            .chain(["T0", "T1"])
            .collect::<Vec<_>>()
    );
    assert_eq!((path.objects, path.bytes, path.retained_bytes), (1, Small::size(1), Some(Small::size(1))));
    let mut lists = tree.paths_to(&graph, 10, |of| graph.types()[of.index()].name() == "T0");
    tree.add_retained(&retained, &mut lists.paths);
    let list = &lists.paths[0];
    assert_eq!((lists.count, list.objects), (1, 4));
    let held = [0, 3, 6, 9, 1].map(Small::size).iter().sum();
    assert_eq!(list.retained_bytes, Some(held), "the first of the list holds the others");
}

#[test]
fn a_difference_is_sorted_from_growth_to_shrinkage() {
    let report = |targets: Vec<Vec<usize>>| {
        let graph = Small { targets, roots: vec![0] }.graph();
        HeapReport::new(&graph, Grouping::Type, Some(&Dominators::new(&graph)))
    };
    let before = report(vec![vec![1], vec![]]);
    let after = report(vec![vec![2], vec![], vec![], vec![]]);
    let diff = HeapDiff::new(&before, &after);
    let rows: Vec<_> = diff
        .rows
        .iter()
        .map(|row| (&*row.name, row.change.objects(), row.change.bytes(), row.change.retained()))
        .collect();
    assert_eq!(rows, [("T0", 1, 48, Some(8)), ("T2", 1, 40, Some(40)), ("T1", 0, 0, Some(-32))]);
    assert_eq!((diff.total.objects(), diff.total.bytes()), (2, 88));
    let back = HeapDiff::new(&after, &before);
    assert_eq!(back.rows.last().map(|row| (&*row.name, row.change.bytes())), Some(("T0", -48)));
}
