//! Any text as what the kernel shows of a process, most of which that process chooses: its environment,
//! status, mounts and sockets, and the names of files. And as the name of a runtime's socket.
//!
//! The parsers are not public: they are source files of dipc-doctor. The first byte chooses one.

#![no_main]

#[path = "../../crates/dipc-doctor/src/facts/environment.rs"]
#[allow(dead_code, reason = "files of processes are not read here")]
mod environment;
#[path = "../../crates/dipc-doctor/src/facts/image.rs"]
#[allow(dead_code, reason = "files of processes are not read here")]
mod image;
#[path = "../../crates/dipc-doctor/src/facts/mounts.rs"]
#[allow(dead_code, reason = "files of processes are not read here")]
mod mounts;
#[path = "../../crates/dipc-doctor/src/facts/program.rs"]
#[allow(dead_code, reason = "the target `program` reads programs")]
mod program;
#[path = "../../crates/dipc-doctor/src/facts/status.rs"]
#[allow(dead_code, reason = "files of processes are not read here")]
mod status;
#[path = "../../crates/dipc-doctor/src/facts/unix_sockets.rs"]
#[allow(dead_code, reason = "files of processes are not read here")]
mod unix_sockets;

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

// The name by which its source files know it.
use dipc_doctor::RuntimeKind;
use dipc_transport::SocketName;
use environment::Environment;
use libfuzzer_sys::fuzz_target;
use status::ProcStatus;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    // As the readers of the files do it.
    let text = String::from_utf8_lossy(bytes);
    dipc_fuzz::bounded(bytes.len(), || match choice % 6 {
        0 => check_environment(&text),
        1 => check_status(&text),
        2 => check_mounts(&text),
        3 => check_sockets(&text),
        4 => check_library(bytes),
        _ => check_socket_name(bytes),
    });
});

fn check_environment(text: &str) {
    let environment = Environment::parse(text);
    assert!(!environment.tmpdir().as_os_str().is_empty());
    assert!(environment.ports().len() <= text.split(';').count());
    for (name, kind) in [
        ("EnableDiagnostics", RuntimeKind::CoreClr),
        ("EnableDiagnostics_IPC", RuntimeKind::NativeAot { has_port: true }),
        ("DiagnosticPorts", RuntimeKind::SingleFile),
    ] {
        let number = Cell::new(None);
        let setting = environment.setting_with_number(name, kind, |found| {
            number.set(Some(found));
            true
        });
        assert_eq!(setting.is_some(), number.get().is_some());
        // It is one of the variables.
        let is_variable = |setting: String| text.split('\0').any(|variable| variable == setting);
        assert!(setting.is_none_or(is_variable));
    }
}

fn check_status(text: &str) {
    let Some(status) = ProcStatus::parse(text.as_bytes()) else { return };
    assert!(!status.name.contains('\n') && text.contains(&status.name));
}

fn check_mounts(text: &str) {
    let (path, mounts) = text.split_once('\n').unwrap_or((text, ""));
    let point = mounts::read_only_in(mounts, Path::new(path));
    assert!(point.is_none_or(|point| Path::new(path).starts_with(point)));
}

fn check_sockets(text: &str) {
    for line in text.lines() {
        let Some(socket) = unix_sockets::parse(line) else { continue };
        let path = socket.path.to_str().expect("it was text");
        assert!(line.ends_with(path) && !path.is_empty() && !path.starts_with('@'));
    }
}

fn check_library(bytes: &[u8]) {
    let path = Path::new(OsStr::from_bytes(bytes));
    if let Some(version) = image::version_of_folder(path) {
        assert!(version.as_bytes()[0].is_ascii_digit() || version.starts_with('+'), "{version}");
    }
}

/// A socket has one name.
fn check_socket_name(bytes: &[u8]) {
    let name = OsStr::from_bytes(bytes);
    if let Some(parsed) = SocketName::parse(name) {
        assert_eq!(parsed.to_string().as_bytes(), bytes);
    }
}
