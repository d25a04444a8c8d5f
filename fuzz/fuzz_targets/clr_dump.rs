//! Real core dumps with any words in them, and any bytes as a core dump: threads, stacks, names, exceptions,
//! monitors, the heap with its references, contents and roots, and copies without texts.
//!
//! An input that does not begin as an ELF file is a list of patches: an offset of four bytes, and a word of
//! eight. Those of a list with an odd number of bytes are of the core dump that has a heap, and those of one
//! with two bytes more than a multiple of four are of .NET Core 3.1. In these each word is put at an offset,
//! or is the address that is at another offset, so that lists and references lead to other structures.

#![no_main]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::LazyLock;

use clr_dump::{CoreFile, HeapObject, HeapVisitor, Names, Runtime, StrippedCore};
use libfuzzer_sys::fuzz_target;

static MINI: LazyLock<Vec<u8>> =
    LazyLock::new(|| unpack(include_bytes!("../../testdata/cores/parked-mini.core.xz")));
static HEAP: LazyLock<Vec<u8>> =
    LazyLock::new(|| unpack(include_bytes!("../../testdata/cores/shop-heap.core.xz")));
static OLD: LazyLock<Vec<u8>> =
    LazyLock::new(|| unpack(include_bytes!("../../testdata/cores/deadlock-3.1.core.xz")));

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed, true).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Bytes that the pages of the file and the modules' metadata take, whatever the input: a damaged size can
/// make a larger part of the file the metadata of each of some modules.
const PAGES: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let bytes = if input.starts_with(b"\x7fELF") { input.to_vec() } else { patched(input) };
    let size = bytes.len();
    dipc_fuzz::bounded_beyond(PAGES, size, || read(bytes));
});

fn patched(input: &[u8]) -> Vec<u8> {
    let (core, has_heap) = match input.len() % 4 {
        0 => (&MINI, false),
        2 => (&OLD, true),
        _ => (&HEAP, true),
    };
    let mut bytes = core.to_vec();
    for patch in input.as_chunks::<12>().0 {
        let at = u32::from_le_bytes([patch[0], patch[1], patch[2], patch[3]]) as usize % (bytes.len() - 8);
        let mut word = [0; 8];
        word.copy_from_slice(&patch[4..]);
        // The highest byte of an address is zero: this one asks for another word of the file.
        if has_heap && word[7] == 0xee {
            let from = u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize % (bytes.len() - 8);
            word.copy_from_slice(&bytes[from..from + 8]);
        }
        bytes[at..at + 8].copy_from_slice(&word);
    }
    bytes
}

fn read(bytes: Vec<u8>) {
    let Ok(core) = CoreFile::open(bytes) else { return };
    let Ok(runtime) = Runtime::find(&core, core.files()) else { return };
    let names = Names::new(&core, &runtime);
    for thread in runtime.threads(&core).unwrap_or_default() {
        let stack = runtime.stack(&core, &thread, core.registers(thread.os_id));
        // No place of the stack has two frames.
        let places: BTreeSet<u64> = stack.frames.iter().map(|frame| frame.sp).collect();
        assert_eq!(places.len(), stack.frames.len());
        for (_, code) in stack.managed() {
            names.method(code);
        }
        let _ = runtime.thread_name(&core, &thread);
        let _ = runtime.monitor_waits(&core, &thread);
        for (_, chain) in names.thread_exceptions(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                names.exception_method(frame);
            }
        }
    }
    runtime.monitors(&core);
    names.known_modules();
    let _ = names.heap_statistics();
    let _ = names.await_chains();
    read_objects(&core, &names, &runtime);
    if let Ok(copy) = StrippedCore::new(&core) {
        let _ = copy.write(|_, _| Ok(()));
    }
}

/// The first objects of types.
#[derive(Default)]
struct Examples {
    types: BTreeSet<u64>,
    objects: Vec<HeapObject>,
}

impl HeapVisitor for Examples {
    fn object(&mut self, object: &HeapObject) {
        if self.types.len() < 1000 && self.types.insert(object.type_handle) {
            self.objects.push(*object);
        }
    }

    fn wants_references(&self) -> bool {
        true
    }
}

fn read_objects(core: &CoreFile, names: &Names<'_>, runtime: &Runtime) {
    let mut examples = Examples::default();
    let _ = names.walk_heap(&mut examples);
    for object in &examples.objects {
        let _ = names.content(object, 16);
    }
    let threads = runtime.threads(core).unwrap_or_default();
    for field in names.static_fields(examples.types.iter().copied(), &threads) {
        names.static_value(&field);
    }
    let _ = (names.handles(), names.finalizable());
    for thread in threads {
        let registers = core.registers(thread.os_id);
        let stack = runtime.stack(core, &thread, registers);
        let _ = names.thread_static_array(&thread);
        let _ = names.stack_words(&thread, &stack, registers);
    }
}
