//! Recordings of several processes, as `dipc merge` writes them: a graph belongs to one process.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use dump::{Dump, graph_with};
use gcdump::{Error, HeapGraph, HeapGraphBuilder};

/// Addresses of the objects, and the names and modules of their types.
fn objects(graph: &HeapGraph) -> Vec<(u64, &str, &str)> {
    let of = |object: gcdump::Object<'_>| {
        let of = graph.types().get(object.type_id().index()).unwrap();
        (object.address().unwrap(), of.name(), of.module().unwrap())
    };
    graph.objects().map(of).collect()
}

/// The dumps of two processes at the same time, with the same numbers of everything.
fn overlapping() -> Dump {
    let of = |dump: Dump, process| dump.process(process);
    let dump = of(Dump::of_processes(&[1, 2]), 1).module(9, "/one.dll").types(&[(7, 9, 0, "One", &[])]);
    let dump = of(dump, 2).module(9, "/two.dll").types(&[(7, 9, 0, "Two", &[])]);
    let dump = of(dump, 1).start(5, 1);
    let dump = of(dump, 2).start(5, 1);
    let dump = of(dump, 1).objects(&[(0x1000, 24, 7, 1)]).references(&[0x1000]).roots(&[(0x1000, 0, 0)]);
    let dump = of(dump, 2).objects(&[(0x2000, 24, 7, 1)]).references(&[0x2000]).roots(&[(0x2000, 0, 0)]);
    of(of(dump, 2).stop(5), 1).stop(5)
}

/// A dump, followed by a dump of another process with the same type numbers.
fn one_after_the_other() -> Dump {
    let dump = Dump::of_processes(&[1, 2]).process(1).start(5, 1).objects(&[(0x1000, 24, 7, 0)]);
    let dump = dump.types(&[(7, 9, 0, "One", &[])]).stop(5).module(9, "/one.dll");
    let dump = dump.process(2).start(9, 1).objects(&[(0x2000, 24, 7, 0)]);
    dump.types(&[(7, 9, 0, "Two", &[])]).stop(9).module(9, "/two.dll")
}

#[test]
fn dumps_that_overlap_are_not_mixed() {
    let graph = overlapping().graph().unwrap();
    assert_eq!(objects(&graph), [(0x1000, "One", "/one.dll")]);
    assert!(graph.completeness().is_complete(), "{:?}", graph.completeness());
}

#[test]
fn types_of_a_later_process_replace_none() {
    let graph = one_after_the_other().graph().unwrap();
    assert_eq!(objects(&graph), [(0x1000, "One", "/one.dll")]);
}

#[test]
fn a_collection_of_another_process_hides_no_dump() {
    let dump = Dump::of_processes(&[1, 2]).process(1).start(5, 1);
    let dump = dump.process(2).start(6, 1).types(&[(7, 9, 0, "Two", &[])]);
    let dump = dump.process(1).stop(5).process(2).module(9, "/two.dll");
    let graph = dump.objects(&[(0x2000, 24, 7, 0)]).stop(6).graph().unwrap();
    assert_eq!(objects(&graph), [(0x2000, "Two", "/two.dll")]);
    assert!(graph.completeness().is_complete(), "{:?}", graph.completeness());
}

#[test]
fn a_process_can_be_chosen_and_the_others_are_named() {
    for dump in [overlapping, one_after_the_other] {
        let bytes = dump().bytes();
        let graph = graph_with(HeapGraphBuilder::new(), &bytes).unwrap();
        assert_eq!((graph.process_id(), graph.other_processes()), (Some(1), &[2][..]));
        assert_eq!(graph.completeness().other_processes, 1);
        let chosen = graph_with(HeapGraphBuilder::new().of_process(2), &bytes).unwrap();
        assert_eq!((chosen.process_id(), chosen.other_processes()), (Some(2), &[1][..]));
        assert_eq!(objects(&chosen), [(0x2000, "Two", "/two.dll")]);
        assert!(chosen.completeness().is_complete(), "{:?}", chosen.completeness());
        let none = graph_with(HeapGraphBuilder::new().of_process(3), &bytes);
        assert_eq!(none.unwrap_err(), Error::NoDump);
    }
}
