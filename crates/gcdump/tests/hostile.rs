//! Dumps with gaps, contradictions and numbers that no heap has.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use dump::{Dump, graph_of};
use gcdump::{Completeness, Dominators, Error, HeapGraph, file};

const TYPES: [(u64, u64, u32, &str, &[u64]); 2] = [(1, 9, 0, "A.Node", &[]), (2, 9, 0, "System.String", &[])];

/// Three objects in a ring, and an object that refers to itself twice.
fn ring() -> Dump {
    Dump::begun()
        .types(&TYPES)
        .roots(&[(0x1000, 0, 0), (0, 0, 0)])
        .objects(&[(0x1000, 32, 1, 1), (0x1020, 32, 1, 1), (0x1040, 32, 1, 1), (0x1060, 24, 2, 2)])
        .references(&[0x1020, 0x1040, 0x1000, 0x1060, 0x1060])
}

fn completeness(dump: Dump) -> Completeness {
    *dump.graph().unwrap().completeness()
}

/// Addresses of each object's references.
fn references(graph: &HeapGraph) -> Vec<(u64, Vec<u64>)> {
    let of = |object: gcdump::Object<'_>| {
        object.references().map(|to| graph.address(to).unwrap_or_default()).collect()
    };
    graph.objects().map(|object| (object.address().unwrap_or_default(), of(object))).collect()
}

/// Writes a graph and reads it back.
fn through_a_file(graph: &HeapGraph) -> HeapGraph {
    let mut bytes = Vec::new();
    file::write(graph, &mut bytes).unwrap();
    file::read(&bytes).unwrap()
}

#[test]
fn cycles_and_references_to_oneself_are_a_graph_as_any_other() {
    let graph = ring().stop(5).module(9, "/app/a.dll").graph().unwrap();
    assert!(graph.completeness().is_complete(), "{:?}", graph.completeness());
    let expected = [
        (0x1000, vec![0x1020]),
        (0x1020, vec![0x1040]),
        (0x1040, vec![0x1000]),
        (0x1060, vec![0x1060, 0x1060]),
    ];
    assert_eq!(references(&graph), expected);
    let mut read = references(&through_a_file(&graph));
    read.sort();
    assert_eq!(read, expected);
    assert_eq!(graph.types()[1].module(), Some("/app/a.dll"));
}

#[test]
fn objects_that_come_twice_are_left_out_the_second_time() {
    let dump =
        ring().objects(&[(0x1020, 99, 2, 1), (0x1080, 40, 1, 1)]).references(&[0x1060, 0x1000]).stop(5);
    let graph = dump.graph().unwrap();
    assert_eq!(graph.completeness().repeated_objects, 1);
    let all = references(&graph);
    assert_eq!(
        (all.len(), all[1].clone(), all[4].clone()),
        (5, (0x1020, vec![0x1040]), (0x1080, vec![0x1000]))
    );
    assert_eq!(graph.total_bytes(), 32 * 3 + 24 + 40);
}

#[test]
fn references_after_a_gap_have_no_known_source() {
    let behind = |dump: Dump| dump.objects(&[(0x2000, 32, 1, 2)]).stop(5);
    let of_references = behind(ring().references_of_index(3, &[0x1000, 0x1020])).graph().unwrap();
    let expected = Completeness::default();
    let completeness = *of_references.completeness();
    assert_eq!((completeness.reference_gaps, completeness.unused_references), (2, 2));
    assert_eq!((completeness.objects_without_references, completeness.is_complete()), (1, false));
    assert_eq!(references(&of_references)[..4], references(&ring().stop(5).graph().unwrap())[..]);
    assert_eq!(references(&of_references)[4], (0x2000, vec![]));
    // Missing objects shift the references of those after them.
    let of_objects = ring().objects_of_index(7, &[(0x2000, 32, 1, 1)]).references(&[0x1000]).stop(5).graph();
    let of_objects = of_objects.unwrap();
    assert_eq!(references(&of_objects)[4], (0x2000, vec![]));
    let completeness = *of_objects.completeness();
    assert_eq!((completeness.object_gaps, completeness.unused_references), (6, 1));
    assert_eq!(expected.object_gaps, 0);
}

#[test]
fn too_many_and_too_few_references_are_counted() {
    let more = completeness(ring().references(&[0x1000; 7]).stop(5));
    assert_eq!((more.unused_references, more.objects_without_references), (7, 0));
    let huge = [(0x2000, 32, 1, u64::MAX), (0x2020, 32, 1, 1 << 40), (0x2040, 32, 1, 0)];
    let fewer = ring().objects(&huge).references(&[0x1000; 9]).stop(5).graph().unwrap();
    let counted = fewer.completeness();
    assert_eq!((counted.unused_references, counted.objects_without_references), (9, 2));
    assert_eq!((fewer.object_count(), references(&fewer)[4].1.len()), (7, 0));
}

#[test]
fn sizes_of_any_number_of_bytes_are_kept_and_clamped_in_files() {
    let objects = [(0x1000, u64::MAX, 1, 0), (0x1020, 3 << 30, 1, 0), (0x1040, 1 << 31, 2, 0)];
    let graph = Dump::begun().types(&TYPES).objects(&objects).stop(5).graph().unwrap();
    assert_eq!(graph.total_bytes(), u64::MAX);
    let sizes: Vec<_> = through_a_file(&graph).objects().map(|object| object.size()).collect();
    assert_eq!(sizes, [0x7fff_ffff; 3]);
}

#[test]
fn dangling_references_and_unknown_types_are_counted() {
    let dump = Dump::begun()
        .types(&TYPES)
        .roots(&[(0x5000, 2, 0), (0x5000, 1, 0)])
        .statics(&[(0x1000, 77, "Field"), (0x5000, 1, "Other")])
        .objects(&[(0x1000, 32, 77, 2), (0x1003, 32, 1, 0)])
        .references(&[0x5000, 0x6000]);
    let graph = dump.stop(5).graph().unwrap();
    let found = graph.completeness();
    assert_eq!((found.dangling_references, graph.undefined_count()), (5, 2));
    assert_eq!((found.objects_of_unknown_types, found.unknown_types, found.invalid_addresses), (1, 1, 1));
    let groups: Vec<_> = graph.groups().iter().map(gcdump::RootGroup::name).collect();
    assert!(groups.contains(&"[static var Type(0x4d).Field]"), "{groups:?}");
    assert!(groups.contains(&"[static var A.Node.Other]"), "{groups:?}");
    assert_eq!(through_a_file(&graph).completeness().dangling_references, 5);
}

#[test]
fn collections_of_the_program_itself_are_not_a_dump() {
    let own = || Dump::new().start(4, 1).stop(4);
    assert_eq!(own().graph().unwrap_err(), Error::NoDump);
    let dump = own().start(5, 1).types(&TYPES).objects(&[(0x1000, 24, 1, 0)]).stop(5);
    assert_eq!(dump.graph().unwrap().object_count(), 1);
    // Types described before it do not make it a dump.
    let dump = Dump::new().types(&TYPES).start(4, 1).stop(4).start(5, 1).objects(&[(0x1000, 24, 1, 0)]);
    let graph = dump.stop(5).graph().unwrap();
    assert_eq!((graph.object_count(), graph.completeness().is_complete()), (1, true));
    // The first of two dumps counts.
    let two = ring().stop(5).start(6, 1).objects_of_index(0, &[(0x9000, 24, 1, 0)]).stop(6);
    assert_eq!(two.graph().unwrap().object_count(), 4);
    assert_eq!(Dump::begun().types(&TYPES).stop(5).graph().unwrap_err(), Error::NoObjects);
    assert_eq!(graph_of(b"Nettrace").unwrap_err(), Error::NoDump);
}

#[test]
fn a_file_with_zeros_anywhere_is_a_graph_with_a_root_or_an_error() {
    let mut bytes = Vec::new();
    file::write(&ring().stop(5).graph().unwrap(), &mut bytes).unwrap();
    let mut problems = Vec::new();
    for start in 0..bytes.len() - 4 {
        let mut zeroed = bytes.clone();
        zeroed[start..start + 4].fill(0);
        match file::read(&zeroed) {
            Ok(graph) => {
                assert!(!graph.groups().is_empty(), "zeros at {start}");
                Dominators::new(&graph);
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    assert!(problems.iter().any(|problem| problem.ends_with("a root without a record")), "{problems:?}");
}

#[test]
fn a_recording_that_is_cut_anywhere_is_a_part_of_the_graph_or_an_error() {
    let bytes = ring().stop(5).module(9, "a.dll").bytes();
    let mut whole = 0;
    for cut in 0..bytes.len() {
        if let Ok(graph) = graph_of(&bytes[..cut]) {
            assert!(graph.object_count() <= 4 && graph.reference_count() <= 5);
            whole += u32::from(graph.completeness().is_complete());
            through_a_file(&graph);
        }
    }
    // After the end of the collection only the module's name follows.
    assert!(whole > 0);
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_is_an_error_or_another_graph() {
    let mut bytes = Vec::new();
    file::write(&ring().stop(5).graph().unwrap(), &mut bytes).unwrap();
    for cut in 0..bytes.len() {
        assert!(file::read(&bytes[..cut]).is_err(), "{cut}");
    }
    for at in 0..bytes.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= bits;
            if let Ok(graph) = file::read(&changed) {
                through_a_file(&graph);
            }
        }
    }
}

#[test]
fn records_that_overlap_are_refused() {
    // 100,000 nodes share one record of 100,000 children.
    let count = 100_000_u32;
    let mut file = Vec::new();
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        file.extend(text.as_bytes());
    };
    let begin = |file: &mut Vec<u8>, version: u32, oldest: u32, name: &str| {
        file.extend([4, 4, 1]);
        file.extend(version.to_le_bytes());
        file.extend(oldest.to_le_bytes());
        text(file, name);
        file.push(6);
    };
    for name in ["UNDEFINED", "[.NET Roots]"] {
        file.clear();
        text(&mut file, "!FastSerialization.1");
        begin(&mut file, 10, 8, "GCHeapDump");
        begin(&mut file, 1, 0, "Graphs.MemoryGraph");
        file.extend(0_u64.to_le_bytes());
        file.extend([0; 4]);
        file.extend(1_u32.to_le_bytes());
        text(&mut file, name);
        file.extend([0; 4]);
        file.extend([0xff; 4]);
        file.extend(count.to_le_bytes());
        (0..count).for_each(|_| file.extend(2_u32.to_le_bytes()));
        let mut record = vec![0, 0, 0, 0x86, 0x8d, 0x20];
        record.extend(vec![0; count as usize]);
        file.extend(u32::try_from(record.len()).unwrap().to_le_bytes());
        file.extend(record);
        file.extend([0; 4]);
        file.extend([6, 1]);
        file.extend([0, 0, 0x80, 0x3f].repeat(2));
        let table = u32::try_from(file.len()).unwrap();
        file.extend([0; 4]);
        file.extend(table.to_le_bytes());
        file.extend((table + 4).to_le_bytes());
        let error = file::read(&file).unwrap_err().to_string();
        assert!(error.ends_with("records that overlap"), "{error}");
    }
}
