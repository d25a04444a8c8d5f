//! Dominators against the plain data-flow algorithm, also for shapes that are hard for fast algorithms.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use dump::Dump;
use gcdump::{Dominators, HeapGraph, NodeId};
use proptest::prelude::*;

/// Maximum number of objects of a random graph: the sets of the data-flow algorithm are numbers.
const MAX_OBJECTS: usize = 63;

/// A heap of objects of 24 bytes with these references.
fn graph(targets: &[Vec<usize>], roots: &[usize]) -> HeapGraph {
    let address = |object: usize| 0x1000 + 0x20 * object as u64;
    let objects: Vec<_> =
        targets.iter().enumerate().map(|(object, to)| (address(object), 24, 0, to.len() as u64)).collect();
    let roots: Vec<_> = roots.iter().map(|object| (address(*object), 2, 0)).collect();
    let edges: Vec<_> = targets.iter().flatten().map(|object| address(*object)).collect();
    let dump = Dump::begun().types(&[(0, 9, 0, "T", &[])]).roots(&roots).objects(&objects).references(&edges);
    dump.stop(5).graph().unwrap()
}

/// An object's immediate dominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dominator {
    /// No root reaches the object.
    None,
    Root,
    Object(usize),
}

/// Computes the immediate dominator of each object.
///
/// The dominator set of an object is that object plus the intersection of the sets of all that reference it,
/// which is recomputed until nothing changes. Bit 63 is the root.
fn by_data_flow(targets: &[Vec<usize>], roots: &[usize]) -> Vec<Dominator> {
    let count = targets.len();
    let mut sets = vec![u64::MAX; count];
    loop {
        let mut next: Vec<u64> = (0..count)
            .map(|object| if roots.contains(&object) { 1 << MAX_OBJECTS } else { u64::MAX })
            .collect();
        for (from, targets) in targets.iter().enumerate() {
            for to in targets {
                next[*to] &= sets[from];
            }
        }
        // If all bits are set, nothing that references the object has been reached yet.
        for (object, set) in next.iter_mut().enumerate().filter(|(_, set)| **set != u64::MAX) {
            *set |= 1 << object;
        }
        if next == sets {
            break;
        }
        sets = next;
    }
    let immediate = |object: usize| {
        let strict = sets[object] & !(1 << object);
        // The dominator that all others dominate.
        (0..count).filter(|it| strict >> it & 1 == 1).max_by_key(|it| sets[*it].count_ones())
    };
    let dominator = |object: usize| match sets[object] {
        u64::MAX => Dominator::None,
        _ => immediate(object).map_or(Dominator::Root, Dominator::Object),
    };
    (0..count).map(dominator).collect()
}

/// Computes the same with the crate.
fn by_the_crate(graph: &HeapGraph) -> Vec<Dominator> {
    let dominators = Dominators::new(graph);
    let ids: Vec<NodeId> = graph.objects().map(|object| object.id()).collect();
    ids.iter()
        .map(|id| {
            let dominator = dominators.immediate_dominator(*id);
            assert_eq!(dominator.is_some(), dominators.is_reachable(*id));
            dominator.map_or(Dominator::None, |dominator| {
                ids.iter().position(|id| *id == dominator).map_or(Dominator::Root, Dominator::Object)
            })
        })
        .collect()
}

/// References of up to 63 objects, few or many of each, and roots.
fn references() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<usize>)> {
    (1..=MAX_OBJECTS, 1_usize..6).prop_flat_map(|(count, most)| {
        let targets = prop::collection::vec(prop::collection::vec(0..count, 0..=most), count);
        (targets, prop::collection::vec(0..count, 1..4))
    })
}

mod random {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn dominators_match_the_data_flow_algorithm((targets, roots) in references()) {
            prop_assert_eq!(by_the_crate(&graph(&targets, &roots)), by_data_flow(&targets, &roots));
        }
    }
}

#[test]
fn objects_that_the_end_of_a_long_list_shares_with_its_beginning_are_held_by_the_beginning() {
    let count = 400_000;
    // The first object, the list, and the objects that the first and the last of the list reference.
    let shared = || count + 1..=2 * count;
    let mut targets = vec![vec![1]];
    targets.extend((2..=count).map(|next| vec![next]));
    targets.push(shared().collect());
    targets[0].extend(shared());
    targets.resize(2 * count + 1, Vec::new());
    let graph = graph(&targets, &[0]);
    let dominators = Dominators::new(&graph);
    let ids: Vec<NodeId> = graph.objects().map(|object| object.id()).collect();
    for object in shared() {
        assert_eq!(dominators.immediate_dominator(ids[object]), Some(ids[0]), "object {object}");
    }
    assert_eq!(dominators.immediate_dominator(ids[count]), Some(ids[count - 1]));
    assert_eq!(dominators.retained(ids[1]), Some(24 * count as u64), "the list alone");
    assert_eq!(dominators.retained(ids[0]), Some(graph.total_bytes()));
}
