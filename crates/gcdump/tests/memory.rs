//! Memory of a graph, while it is built and afterwards.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use dump::{Dump, graph_of};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The number of objects, unless `GCDUMP_OBJECTS` has another.
const OBJECTS: u64 = 1_000_000;
/// The objects of an event, and their references.
const OBJECTS_AN_EVENT: usize = 2008;

/// Bytes that do not grow with the graph: tables of types, buffers for events.
const FIXED: usize = 4 << 20;

/// The layout of a heap.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Each object lies directly after the previous one.
    Dense,
    /// Most objects are separated by holes.
    Holes,
}

#[test]
fn graph_file_and_dominators_use_the_documented_memory() {
    let count = std::env::var("GCDUMP_OBJECTS").map_or(OBJECTS, |count| count.parse().unwrap());
    check(count, Layout::Holes);
    check(count, Layout::Dense);
}

fn check(count: u64, layout: Layout) {
    let bytes = recording(count, layout);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let start = std::time::Instant::now();
    let graph = graph_of(&bytes).unwrap();
    let (peak, kept) = (ALLOCATOR.peak_usage() - before, ALLOCATOR.current_usage() - before);
    assert_eq!((u64::from(graph.object_count()), graph.undefined_count()), (count, 0));
    let (objects, references) = (graph.object_count() as usize, graph.reference_count() as usize);
    assert_eq!(references, objects / 4 * 5);
    println!(
        "{objects} objects, {references} references: {peak} bytes at most, {kept} kept, {:?}",
        start.elapsed()
    );
    // Vectors grow by an eighth; this allocator copies them, so that for a moment the longest exists twice.
    let bytes_an_object = if layout == Layout::Dense { 3 } else { 4 };
    let most = (bytes_an_object * objects + 4 * references) / 8 * 9 + 4 * references + FIXED;
    assert!(peak <= most, "{peak} bytes for {objects} objects and {references} references");

    ALLOCATOR.reset_peak_usage();
    let start = std::time::Instant::now();
    gcdump::file::write(&graph, std::io::sink()).unwrap();
    let writing = ALLOCATOR.peak_usage() - before - kept;
    println!("writing: {writing} bytes, {:?}", start.elapsed());
    assert!(writing <= 5 * objects + FIXED + (4 << 20), "{writing} bytes to write {objects} objects");

    ALLOCATOR.reset_peak_usage();
    let start = std::time::Instant::now();
    let dominators = gcdump::Dominators::new(&graph);
    let computing = ALLOCATOR.peak_usage() - before - kept;
    println!("dominators: {computing} bytes, {:?}", start.elapsed());
    // Half of the objects are strings and arrays that one reference leads to. The other half is deep: the
    // path down a list is kept, and copied by this allocator.
    assert!(computing <= 62 * objects / 2 + FIXED, "{computing} bytes for {objects} objects");
    let first = graph.objects().next().unwrap();
    assert!(dominators.retained(first.id()).unwrap() > first.size());
}

/// Groups of four objects: a node with three references and its targets; a table references every node. The
/// two regions follow each other in the wrong order.
fn recording(count: u64, layout: Layout) -> Vec<u8> {
    let mut dump = Dump::begun().types(&[
        (1, 9, 0, "Node", &[]),
        (2, 9, 0, "System.String", &[]),
        (3, 9, 8, "System.Byte[]", &[4]),
        (4, 9, 0, "System.Object", &[]),
    ]);
    let half = count / 8 * 4;
    let address = |object: u64| {
        let region = if object < half { 0x7f00_4000_0000 } else { 0x7f00_0000_0000 };
        let (group, member) = (object % half.max(1) / 4, object % 4);
        match layout {
            Layout::Dense => region + group * 264 + [0, 40, 152, 240][usize::try_from(member).unwrap()],
            Layout::Holes => region + group * 480 + member * 120,
        }
    };
    let (mut objects, mut references) = (Vec::new(), Vec::new());
    for object in 0..count {
        let (of, size, edges) = match object % 4 {
            0 => (1, 40, 3),
            1 => (2, 105 + object / 4 % 8, 0),
            2 => (3, 81 + object / 4 % 8, 0),
            _ => (4, 24, 2),
        };
        objects.push((address(object), size, of, edges));
        match object % 4 {
            0 => references.extend([1, 2, 3].map(|distance| address(object + distance))),
            3 => references.extend([address(object - 3), address((object + 12_345) % count)]),
            _ => {}
        }
        if objects.len() == OBJECTS_AN_EVENT || object + 1 == count {
            dump = dump.objects(&objects).references(&references);
            objects.clear();
            references.clear();
        }
    }
    dump.roots(&[(address(0), 0, 0)]).stop(5).bytes()
}
