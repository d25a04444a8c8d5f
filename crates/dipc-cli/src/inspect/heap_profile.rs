//! A heap as a profile: bytes and objects by type, below their dominators.

use gcdump::page::MAX_TREE_NODES;
use gcdump::{Dominators, HeapGraph, PathStep, TypeTree};
use nettrace_export::{Metric, NameForm, Profile, ProfileSum, StackTotal, ThreadIndex};

use crate::inspect::heap::step_name;

/// Builds the profile. Its stacks are paths of the dominator tree, starting at the roots; its sample types
/// have the names of Go's heap profiles, which pprof tools know.
pub(crate) fn heap_profile(graph: &HeapGraph, names: NameForm) -> Profile {
    let tree = TypeTree::new(graph, &Dominators::new(graph), MAX_TREE_NODES);
    let most = u32::try_from(tree.nodes().len()).unwrap_or(u32::MAX);
    let mut profile = ProfileSum::new(Metric::Alloc, most).into_profile();
    (profile.measure.sample, profile.measure.name) = ("inuse_objects", "inuse_space");
    let mut stacks = Vec::with_capacity(tree.nodes().len());
    for (index, node) in tree.nodes().iter().enumerate() {
        let name = match node.step {
            Some(PathStep::Type(of)) => {
                let module = graph.types().get(of.index()).map_or("", |of| of.module_name());
                let name = step_name(graph, PathStep::Type(of), names);
                if module.is_empty() { name.into_owned() } else { format!("{module}!{name}") }
            }
            Some(step) => step_name(graph, step, names).into_owned(),
            None => "(no root reaches)".to_owned(),
        };
        let holder = if index == 0 { None } else { stacks.get(node.holder).copied() };
        let frame = profile.frames.intern(&name);
        let stack = profile.stacks.push(holder.unwrap_or_default(), frame);
        stacks.push(stack);
        if node.objects > 0 {
            profile.stack_totals.push(StackTotal::new(ThreadIndex(0), Some(stack), node.bytes, node.objects));
        }
    }
    // Each object takes some bytes of a dump, which bounds the output.
    profile.recorded_bytes = u64::from(graph.object_count()).saturating_mul(8);
    profile
}
