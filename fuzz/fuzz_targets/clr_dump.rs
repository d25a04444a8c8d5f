//! Real core dumps with any words in them, and any bytes as a core dump: threads, stacks, names, exceptions,
//! monitors, the heap with its references, contents and roots, and copies without texts. Any bytes as GCInfo.
//!
//! An input that does not begin as an ELF file is a list of patches: an offset of four bytes, and a word of
//! eight. Those of a list with an odd number of bytes are of the core dump that has a heap, and those of one
//! with two bytes more than a multiple of four are of .NET Core 3.1. In these each word is put at an offset,
//! or is the address that is at another offset, so that lists and references lead to other structures.

#![no_main]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::LazyLock;

use clr_dump::{
    Address, CoreFile, Dump, FramePosition, GcInfo, GcInfoFormat, HeapObject, HeapVisitor, Processor,
    StrippedCore, TypeHandle,
};
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
    read_gc_info(input);
    let bytes = if input.starts_with(b"\x7fELF") { input.to_vec() } else { patched(input) };
    let size = bytes.len();
    dipc_fuzz::bounded_beyond(PAGES, size, || read(bytes));
});

/// Reads any bytes as GCInfo, and the slots at each place in the code.
fn read_gc_info(input: &[u8]) {
    for processor in [Processor::X86_64, Processor::Aarch64] {
        for version in 2..=4 {
            let Ok(info) = GcInfo::decode(input, GcInfoFormat { processor, version }) else { continue };
            for offset in (0..info.code_length().min(256)).chain(info.safe_points().take(64)) {
                for position in [FramePosition::Innermost, FramePosition::Caller] {
                    if let Ok(live) = info.live_slots(offset, position) {
                        assert!(live.tracked.len() <= info.tracked().len());
                    }
                }
            }
        }
    }
}

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
    let Ok(dump) = Dump::open(&core) else { return };
    for thread in dump.threads().list().unwrap_or_default() {
        let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
        // No place of the stack has two frames.
        let places: BTreeSet<Address> = stack.frames.iter().map(|frame| frame.sp).collect();
        assert_eq!(places.len(), stack.frames.len());
        for (frame, code) in stack.managed() {
            dump.types().method(code);
            dump.types().il_offset(code, frame.position.lookup_address(frame.ip));
        }
        let _ = dump.threads().name(&thread);
        let _ = dump.locks().waits(&thread);
        for (_, chain) in dump.exceptions().of_thread(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                dump.exceptions().method(frame);
                dump.exceptions().il_offset(frame);
            }
        }
    }
    dump.locks().monitors();
    for module in dump.types().modules() {
        for entry in dump.types().debug_entries(&module) {
            dump.types().debug_data(&entry, 1 << 16);
        }
    }
    let _ = dump.heap().statistics();
    let _ = dump.awaits().chains();
    read_objects(&core, &dump);
    if let Ok(copy) = StrippedCore::new(&core) {
        let _ = copy.write(|_, _| Ok(()));
    }
}

/// The first objects of types.
#[derive(Default)]
struct Examples {
    types: BTreeSet<TypeHandle>,
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

fn read_objects(core: &CoreFile, dump: &Dump<'_>) {
    let mut examples = Examples::default();
    let _ = dump.heap().walk(&mut examples);
    for object in &examples.objects {
        let _ = dump.heap().content(object, 16);
    }
    let threads = dump.threads().list().unwrap_or_default();
    for field in dump.statics().fields(examples.types.iter().copied(), &threads) {
        dump.statics().value(&field);
    }
    let _ = (dump.heap().handles(), dump.heap().contents());
    if let Ok(regions) = dump.heap().regions() {
        let _ = (regions.finalizable(), regions.finalizer_queue());
    }
    for thread in threads {
        let registers = core.registers(thread.os_id);
        let stack = dump.threads().stack(&thread, registers);
        let _ = dump.statics().thread_object(&thread);
        let _ = dump.heap().stack_words(&thread, &stack, registers);
        let _ =
            (dump.threads().stack_roots(&thread, registers), dump.threads().variables(&thread, registers));
    }
}
