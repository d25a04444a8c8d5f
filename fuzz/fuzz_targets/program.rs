//! Any bytes as the file of a program: the runtime that is linked into it, and its version.
//!
//! The reader is not public: it is the source file of dipc-doctor.

#![no_main]

#[path = "../../crates/dipc-doctor/src/facts/program.rs"]
mod program;

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use program::{LinkedRuntime, Markers, machine};

fuzz_target!(|input: &[u8]| {
    dipc_fuzz::bounded(input.len(), || LinkedRuntime::find(Cursor::new(input)));
    let is_elf = input.starts_with(b"\x7fELF\x02\x01") && input.len() >= 20;
    assert_eq!(machine(input).is_some(), is_elf);
    let markers = dipc_fuzz::bounded(input.len(), || Markers::read(input));
    let is_version = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    assert!(markers.version.as_ref().is_none_or(is_version), "{:?}", markers.version);
    assert!(!markers.has_port || input.windows(17).any(|window| window == b"dotnet-diagnostic"));
});
