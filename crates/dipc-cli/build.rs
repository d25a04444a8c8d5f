//! Leaves the tables for unwinding out of the small program (profile `dist`): a panic ends it without
//! unwinding, and a trace without symbols shows nothing. LLVM would write one for each function, whatever
//! `-C force-unwind-tables` says, because the standard library has information for debuggers.

use std::env;
use std::fs;
use std::path::PathBuf;

/// Additions to the linker's own script, for LLD and GNU ld.
const WITHOUT_UNWIND_TABLES: &str = "SECTIONS { /DISCARD/ : { *(.eh_frame) } } INSERT AFTER .rodata;\n";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    let is_native = env::var("HOST") == env::var("TARGET");
    if is_native && is("TARGET", "x86_64-unknown-linux-gnu") && is("OPT_LEVEL", "z") {
        let folder = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
        let script = folder.join("without-unwind-tables.ld");
        fs::write(&script, WITHOUT_UNWIND_TABLES).expect("Cargo's folder can be written");
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
        println!("cargo:rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
}
