//! Any bytes as a recording.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| dipc_fuzz::read(b"", input));
