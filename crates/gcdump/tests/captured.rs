//! dotnet-gcdump's file for a heap dump of .NET 10, against this crate's result for the same stream.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use gcdump::{
    Dominators, Grouping, HeapGraph, HeapGraphBuilder, HeapReport, PathStep, TypeTree, dotnet_gcdump, file,
};

/// A dump small enough to be a seed for fuzzing: a ring of nodes, a static field, an array with a size of its
/// own, an unknown type.
fn small() -> Vec<u8> {
    let names = "Shop.Cart`1[Shop.Order+Line]";
    dump::Dump::begun()
        .types(&[(1, 9, 0, names, &[2]), (2, 9, 0, "Line", &[]), (3, 8, 8, "System.Byte[]", &[4])])
        .statics(&[(0x2000, 3, "Buffer")])
        .roots(&[(0x1000, 2, 0), (0, 0, 0), (0x1020, 1, 0), (0x1040, 2, 1), (0x1020, 2, 2)])
        .objects(&[(0x1000, 32, 1, 2), (0x1020, 32, 2, 1), (0x1040, 32, 2, 1), (0x2000, 20_000, 3, 0)])
        .objects(&[(0x9000, 24, 77, 1)])
        .references(&[0x1020, 0x1020, 0x1040, 0x1000, 0x7000])
        .stop(5)
        .module(9, "/app/shop.dll")
        .bytes()
}

#[test]
fn the_small_dump_and_its_file_match_testdata() {
    let mut file = Vec::new();
    let graph = dump::graph_of(&small()).unwrap();
    file::write(&graph, &mut file).unwrap();
    for (name, bytes) in [("recordings/small.nettrace", small()), ("files/small.gcdump", file)] {
        if std::env::var_os("DIPC_UPDATE_GOLDEN").is_some() {
            fs::write(folder().join(name), &bytes).unwrap();
        }
        assert_eq!(fs::read(folder().join(name)).unwrap(), bytes, "{name}");
    }
    let names: Vec<_> = graph.types().iter().map(|of| (of.name(), of.csharp())).collect();
    assert_eq!(
        names[1..4],
        [
            ("Shop.Cart<Shop.Order+Line>", "Shop.Cart<Order.Line>"),
            ("Line", "Shop.Order.Line"),
            ("System.Byte[]", "byte[]"),
        ]
    );
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump")
}

fn packed(name: &str) -> Vec<u8> {
    testdata::bytes_at(&folder().join(name))
}

fn graph() -> HeapGraph {
    let mut builder = HeapGraphBuilder::new();
    let recording = packed("recordings/net10.nettrace.xz");
    let mut events = nettrace::SliceReader::new(&recording).unwrap().in_time_order();
    while let Some(event) = events.next().unwrap() {
        builder.add(&event);
    }
    assert!(builder.has_ended());
    builder.finish(events.loss().total()).unwrap()
}

#[test]
fn the_file_is_that_of_the_tool_byte_for_byte() {
    let graph = graph();
    let mut bytes = Vec::new();
    file::write(&graph, &mut bytes).unwrap();
    let expected = packed("files/net10.gcdump.xz");
    let differs = bytes.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!((differs, bytes.len()), (None, expected.len()));
    assert!(graph.completeness().is_complete(), "{:?}", graph.completeness());
}

#[test]
fn the_tools_file_has_the_graph_of_the_stream() {
    let (stream, file) = (graph(), file::read(&packed("files/net10.gcdump.xz")).unwrap());
    let objects = |graph: &HeapGraph| {
        let mut objects: Vec<_> = graph
            .objects()
            .map(|object| {
                let references: Vec<_> = object.references().map(|to| graph.address(to)).collect();
                let of = object.heap_type().unwrap();
                (
                    object.address(),
                    object.size(),
                    of.name().to_owned(),
                    of.module().map(str::to_owned),
                    references,
                )
            })
            .collect();
        objects.sort();
        objects
    };
    assert_eq!(objects(&file), objects(&stream));
    assert_eq!(file.root_count(), stream.root_count());
    let mut names: [Vec<_>; 2] =
        [&file, &stream].map(|graph| graph.groups().iter().map(|group| group.name().to_owned()).collect());
    for names in &mut names {
        names.sort();
    }
    assert_eq!(names[0], names[1]);
    assert_eq!(file.completeness().dangling_references, stream.completeness().dangling_references);
}

#[test]
fn the_report_is_that_of_the_tool() {
    let expected = fs::read_to_string(folder().join("net10-report.txt")).unwrap();
    assert_eq!(dotnet_gcdump::report(&graph(), false, |name| Cow::Borrowed(name)), expected);
    assert_eq!(
        dotnet_gcdump::report(&file::read(&packed("files/net10.gcdump.xz")).unwrap(), false, |name| {
            Cow::Borrowed(name)
        }),
        expected
    );
    let live = dotnet_gcdump::report(&graph(), true, |name| Cow::Borrowed(name));
    assert_eq!(live.lines().nth(2), Some("         16,156  Total references"));
}

#[test]
fn retained_sizes_match_networkx() {
    let graph = graph();
    let dominators = Dominators::new(&graph);
    let expected = String::from_utf8(packed("net10-retained.txt.xz")).unwrap();
    let mut lines = expected.lines();
    let mut objects: Vec<_> = graph.objects().collect();
    objects.sort_by_key(gcdump::Object::address);
    for object in objects {
        let retained = dominators.retained(object.id());
        let retained = retained.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
        assert_eq!(Some(&*format!("{:x} {retained}", object.address().unwrap())), lines.next());
    }
    assert_eq!(lines.next(), None);
}

/// The sums of the dominator tree by types equal those computed object by object.
#[test]
fn the_type_tree_has_the_retained_sizes_of_the_types() {
    let graph = graph();
    let dominators = Dominators::new(&graph);
    let tree = TypeTree::new(&graph, &dominators, 1 << 20);
    let nodes = tree.nodes();
    assert_eq!((tree.folded(), nodes[0].retained_bytes), (0, graph.total_bytes()));
    let mut of_types = vec![0; graph.types().len()];
    for node in &nodes[1..] {
        let Some(PathStep::Type(of)) = node.step else { continue };
        let mut holder = node.holder;
        while holder > 0 && nodes[holder].step != node.step {
            holder = nodes[holder].holder;
        }
        // The outermost of its type.
        if holder == 0 {
            of_types[of.index()] += node.retained_bytes;
        }
    }
    let expected = dominators.retained_by_class(of_types.len(), |object| Some(object.type_id().index()));
    assert_eq!(of_types, expected);
    let full = TypeTree::new(&graph, &dominators, 10);
    assert_eq!((full.nodes().len(), full.nodes()[0].retained_bytes), (10, graph.total_bytes()));
    assert!(full.folded() > 0);
}

/// Against a walk from the root without the objects of each type.
#[test]
fn types_retain_objects_unreachable_without_all_of_their_instances() {
    let graph = graph();
    let dominators = Dominators::new(&graph);
    let report = HeapReport::new(&graph, Grouping::Type, Some(&dominators));
    let expected = String::from_utf8(packed("net10-retained-types.txt.xz")).unwrap();
    let mut rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| format!("{}\t{}\t{}", row.name, row.module, row.retained_bytes.unwrap()))
        .collect();
    rows.sort();
    let mut expected: Vec<_> = expected.lines().collect();
    expected.sort_unstable();
    assert_eq!(rows, expected);
}

#[test]
fn sums_by_type_module_and_namespace_are_all_of_the_heap() {
    let graph = graph();
    let dominators = Dominators::new(&graph);
    for grouping in [Grouping::Type, Grouping::Module, Grouping::Namespace] {
        let report = HeapReport::new(&graph, grouping, Some(&dominators));
        let sum = |of: fn(&gcdump::ReportRow) -> u64| report.rows.iter().map(of).sum::<u64>();
        assert_eq!(
            (sum(|row| row.objects), sum(|row| row.bytes)),
            (report.objects, report.bytes),
            "{grouping:?}"
        );
        assert_eq!(report.bytes, 2_690_750);
        for row in &report.rows {
            let unreachable = report.unreachable.unwrap().bytes;
            assert!(row.retained_bytes.unwrap() + unreachable >= row.bytes, "{row:?}");
        }
    }
    let report = HeapReport::new(&graph, Grouping::Type, Some(&dominators));
    let row = report.rows.iter().find(|row| row.name == "System.String").unwrap();
    assert_eq!((&*row.csharp, &*row.module, row.first_bytes), ("string", "System.Private.CoreLib.dll", 22));
}
