//! Any bytes as a `.gcdump` file: its graph, and what that consists of.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    dipc_fuzz::bounded(input.len(), || {
        if let Ok(graph) = gcdump::file::read(input) {
            dipc_fuzz::heap::check(&graph);
            // A file that was read can be too large to be written: sizes and counts of it may take more
            // bytes.
            let _ = gcdump::file::write(&graph, std::io::sink());
        }
    });
});
