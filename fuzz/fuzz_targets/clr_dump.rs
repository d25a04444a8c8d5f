//! A real core dump with any words in it, and any bytes as a core dump: threads, stacks, names, exceptions, monitors, the heap.
//!
//! An input that does not begin as an ELF file is a list of patches: an offset of four bytes, and a word of eight.

#![no_main]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::LazyLock;

use clr_dump::{CoreFile, Names, Runtime};
use libfuzzer_sys::fuzz_target;

static CORE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let packed = include_bytes!("../../testdata/cores/parked-mini.core.xz");
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(&packed[..], true).read_to_end(&mut bytes).unwrap();
    bytes
});

/// Bytes that the pages of the file and the modules' metadata take, whatever the input: a damaged size can make a larger part of the file
/// the metadata of each of some modules.
const PAGES: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let bytes = if input.starts_with(b"\x7fELF") { input.to_vec() } else { patched(input) };
    let size = bytes.len();
    dipc_fuzz::bounded_beyond(PAGES, size, || read(bytes));
});

fn patched(input: &[u8]) -> Vec<u8> {
    let mut bytes = CORE.clone();
    for patch in input.as_chunks::<12>().0 {
        let at = u32::from_le_bytes([patch[0], patch[1], patch[2], patch[3]]) as usize % (bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&patch[4..]);
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
}
