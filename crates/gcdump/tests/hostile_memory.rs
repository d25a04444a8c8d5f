//! Inputs that repeat long names: memory stays linear in their length.

#[allow(dead_code, reason = "other tests use the rest")]
mod dump;

use std::sync::{Mutex, MutexGuard, PoisonError};

use dump::{Dump, graph_of};
use gcdump::file;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs one measurement at a time.
static MEASURED: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MEASURED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Peak bytes allocated while `run` ran, beyond those before it, with its result.
fn peak<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = run();
    (ALLOCATOR.peak_usage() - before, result)
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap().to_le_bytes()
}

fn text(file: &mut Vec<u8>, text: &str) {
    file.extend(length(text.len()));
    file.extend(text.as_bytes());
}

/// A number of a record: seven bits a byte, all but the last marked; small enough for three.
fn number(value: usize) -> [u8; 3] {
    let bits = |shift: u32| u8::try_from(value >> shift & 0x7f).unwrap();
    [bits(14) | 0x80, bits(7) | 0x80, bits(0)]
}

/// The beginning of an object of a type that is described here.
fn begin(file: &mut Vec<u8>, version: u32, oldest: u32, name: &str) {
    file.extend([4, 4, 1]);
    file.extend(version.to_le_bytes());
    file.extend(oldest.to_le_bytes());
    text(file, name);
    file.push(6);
}

/// The beginning of a file, up to its graph's root, which is node 0.
fn file_begun(oldest_reader_of_graph: u32) -> Vec<u8> {
    let mut file = Vec::new();
    text(&mut file, "!FastSerialization.1");
    begin(&mut file, 10, 8, "GCHeapDump");
    begin(&mut file, 1, oldest_reader_of_graph, "Graphs.MemoryGraph");
    file.extend(0_u64.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    file
}

/// A type without a module.
fn file_type(file: &mut Vec<u8>, name: &str, size: i32) {
    text(file, name);
    file.extend(size.to_le_bytes());
    file.extend((-1_i32).to_le_bytes());
}

/// The end of a file, with the targets of forward references.
fn file_ended(mut file: Vec<u8>, addresses: usize, forward: &[usize]) -> Vec<u8> {
    file.extend(length(addresses));
    (0..addresses).for_each(|_| file.extend([0; 8]));
    file.extend([8, 1, 6, 1]);
    file.extend([0, 0, 0x80, 0x3f].repeat(2));
    let table = file.len();
    file.extend(length(forward.len()));
    for place in forward {
        file.extend(length(*place));
    }
    let trailer = file.len();
    file.extend(length(table));
    file.extend(length(trailer));
    file
}

#[test]
fn deferred_types_of_a_file_share_the_path_of_their_module() {
    const TYPES: usize = 7000;
    let _alone = alone();
    let mut file = file_begun(1);
    file.extend(length(TYPES));
    file_type(&mut file, "[.NET Roots]", 0);
    (1..TYPES).for_each(|_| file_type(&mut file, "", -1));
    // One node: the root, of type 0, without children.
    file.extend(length(1));
    file.extend(length(2));
    file.extend(length(4));
    file.extend([0; 4]);
    // Types with only a token, all in the module that is sent with the first.
    let forward = file.len();
    file.extend(length(0));
    file.extend(length(TYPES));
    let path = "m".repeat(170 << 10);
    let mut module = None;
    for token in 1..=TYPES {
        file.extend(length(token));
        if let Some(place) = module {
            file.push(2);
            file.extend(length(place));
        } else {
            module = Some(file.len());
            begin(&mut file, 0, 0, "Graphs.Module");
            text(&mut file, &path);
            file.extend([0; 8 + 4 + 8]);
            text(&mut file, "");
            file.extend([0; 16 + 4]);
            file.push(6);
        }
        file.extend((-1_i32).to_le_bytes());
    }
    let end = file.len();
    let file = file_ended(file, 1, &[end]);
    assert!(forward < end);
    let (peak, graph) = peak(|| file::read(&file).unwrap());
    let last = graph.types().last().unwrap();
    assert_eq!((last.name(), last.module()), ("Type(0x1b58)", Some(&*path)));
    assert!(peak < 10 * file.len(), "{peak} bytes for a file of {}", file.len());
}

#[test]
fn groups_of_roots_of_a_file_share_the_name_of_their_type() {
    const GROUPS: usize = 10_000;
    let _alone = alone();
    let name = format!("[{}", "g".repeat(200 << 10));
    let mut file = file_begun(0);
    file.extend(length(2));
    file_type(&mut file, "[.NET Roots]", 0);
    file_type(&mut file, &name, 0);
    // The records: the root with the groups as its children, then a group without children, which is shared
    // by all.
    let mut records = vec![0, 0, 0];
    records.extend(number(GROUPS));
    (1..=GROUPS).for_each(|child| records.extend(number(child)));
    let group = records.len();
    records.extend([number(2), number(0)].concat());
    file.extend(length(1 + GROUPS));
    file.extend(length(2));
    (0..GROUPS).for_each(|_| file.extend(length(group)));
    file.extend(length(records.len()));
    file.extend(&records);
    let file = file_ended(file, 1 + GROUPS, &[]);
    let (peak, graph) = peak(|| file::read(&file).unwrap());
    assert_eq!((graph.groups().len(), graph.groups()[GROUPS].name()), (1 + GROUPS, &*name));
    assert!(peak < 10 * file.len(), "{peak} bytes for a file of {}", file.len());
}

/// Bytes that a graph may take in addition to those in proportion to the recording: repeated names, and
/// buffers.
const FIXED: usize = 40 << 20;

fn check_graph_of(dump: Dump) -> gcdump::HeapGraph {
    let bytes = dump.bytes();
    let (peak, graph) = peak(|| graph_of(&bytes).unwrap());
    println!("{peak} bytes for a recording of {}", bytes.len());
    assert!(peak < 10 * bytes.len() + FIXED, "{peak} bytes for a recording of {}", bytes.len());
    graph
}

#[test]
fn types_of_a_recording_share_the_path_of_their_module() {
    let _alone = alone();
    // A path as long as an event.
    let mut dump = Dump::begun().module(9, &"m".repeat(32_000));
    for event in 0..15 {
        let names: Vec<_> = (event * 1000..(event + 1) * 1000).map(|of| (of, format!("T{of}"))).collect();
        let types: Vec<_> = names.iter().map(|(of, name)| (1 + of, 9, 0, &**name, &[][..])).collect();
        dump = dump.types(&types);
    }
    let graph = check_graph_of(dump.objects(&[(0x1000, 24, 1, 0)]).stop(5));
    assert_eq!(graph.types()[1].module(), Some(&*"m".repeat(4096)));
    assert_eq!(graph.types().len(), 15_001);
}

#[test]
fn static_fields_of_a_long_type_repeat_its_name_within_a_limit() {
    let _alone = alone();
    let mut dump = Dump::begun().types(&[(1, 9, 0, &"t".repeat(30_000), &[])]).objects(&[(0x1000, 24, 1, 0)]);
    for event in 0..20 {
        let names: Vec<_> = (event * 1000..(event + 1) * 1000).map(|field| format!("f{field}")).collect();
        let fields: Vec<_> = names.iter().map(|name| (0x1000, 1, &**name)).collect();
        dump = dump.statics(&fields);
    }
    let graph = check_graph_of(dump.stop(5));
    let name = |of: usize, field: &str| format!("[static var {}.{field}]", "t".repeat(of));
    let names: Vec<_> = graph.groups().iter().map(gcdump::RootGroup::name).collect();
    assert!(names.contains(&&*name(4096, "f0")) && names.contains(&&*name(64, "f19999")));
}

#[test]
fn arrays_of_a_long_nested_type_repeat_its_name_within_a_limit() {
    let _alone = alone();
    let nested = format!("Outer{}+N", "o".repeat(4000));
    let mut dump = Dump::begun().types(&[(1, 9, 0, "N", &[]), (2, 9, 0, &format!("L`1[{nested}]"), &[1])]);
    for event in 0..20 {
        // Each in a module of its own, so that they are different types.
        let ids = event * 1000 + 10..(event + 1) * 1000 + 10;
        let types: Vec<_> = ids.map(|id| (id, id, 8, "N[]", &[1][..])).collect();
        dump = dump.types(&types);
    }
    let graph = check_graph_of(dump.objects(&[(0x1000, 24, 1, 0)]).stop(5));
    let arrays: Vec<_> = graph.types().iter().filter(|of| of.name() == "N[]").collect();
    assert_eq!(arrays.len(), 20_000);
    assert_eq!((arrays[0].csharp().len(), arrays[19_999].csharp()), (nested.len() + 2, "N[]"));
}
