//! Nettrace V6: any bytes behind the header.

#![no_main]

use dipc_fuzz::header;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| dipc_fuzz::read(header::NETTRACE_V6, input));
