//! The check of a heap's graph: sums agree, and nothing that a graph is asked for takes more time or memory
//! than its size allows.

use gcdump::{Dominators, Grouping, HeapDiff, HeapGraph, HeapReport, PathTree, RetainedSets, dotnet_gcdump};

/// Maximum number of paths to inspect: each has as many steps as the graph is deep.
const MAX_PATHS: usize = 8;

/// Makes everything of a graph.
///
/// # Panics
/// If sums do not agree.
pub fn check(graph: &HeapGraph) {
    let dominators = Dominators::new(graph);
    let mut reports = Vec::new();
    for grouping in [Grouping::Type, Grouping::Module, Grouping::Namespace] {
        let report = HeapReport::new(graph, grouping, Some(&dominators));
        assert_eq!(report.rows.iter().map(|row| row.objects).sum::<u64>(), report.objects);
        let bytes = report.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.bytes));
        assert_eq!(bytes, report.bytes);
        reports.push(report);
    }
    let diff = HeapDiff::new(&reports[0], &reports[0]);
    assert!(diff.rows.iter().all(|row| row.change.bytes() == 0 && row.change.objects() == 0));
    for object in graph.objects() {
        let retained = dominators.retained(object.id());
        assert_eq!(retained.is_some(), dominators.is_reachable(object.id()));
        assert!(retained.is_none_or(|retained| retained >= object.size()));
    }
    let retained = RetainedSets::new(&dominators);
    let tree = PathTree::new(graph);
    let mut paths = tree.paths_to(graph, MAX_PATHS, |_| true);
    tree.add_retained(&retained, &mut paths.paths);
    assert!(paths.paths.len() <= paths.count.min(MAX_PATHS));
    assert_eq!(paths.unreachable, reports[0].unreachable.unwrap_or_default().objects);
    assert!(dotnet_gcdump::report(graph, true, |name| name.into()).lines().count() >= 5);
}
