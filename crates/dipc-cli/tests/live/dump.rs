//! `dump`: the file is there, or it is said why not.

use std::fs;

use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::Workload;

const ELF: &[u8] = b"\x7fELF";

#[test]
fn a_mini_dump_is_a_core_file_of_the_process() {
    for runtime in [Runtime::Net3_1, Runtime::Net9_0] {
        let Some(workload) = Workload::start(runtime) else { continue };
        let file = workload.folder().join("core");
        let file = file.to_str().unwrap();
        let pid = workload.pid().to_string();
        let dump = run(["dump", "-p", &pid, "--type", "Mini", "-o", file, "--format", "json"]).with_code(0);
        let written = dump.json();
        let bytes = fs::read(file).unwrap();
        assert!(bytes.starts_with(ELF));
        assert_eq!(written["bytes"], bytes.len());
        assert_eq!((&written["path"], &written["type"]), (&file.into(), &"Normal".into()));
        let form = if runtime == Runtime::Net3_1 { "GenerateCoreDump" } else { "GenerateCoreDump3" };
        assert_eq!(written["command"], form);
        assert!(dump.stderr.contains("on the target's filesystem"), "{}", dump.stderr);
    }
}

/// A dump has all that the process knows.
#[test]
#[cfg(unix)]
fn a_dump_in_place_of_a_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    run(["dump", "-p", &pid, "--type", "mini", "-o", file.to_str().unwrap()]).with_code(0);
    assert!(fs::read(&file).unwrap().starts_with(ELF));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// The runtime would wait for a reader, and write no other dump meanwhile.
#[test]
#[cfg(unix)]
fn a_pipe_is_refused_for_a_dump() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    run(["dump", "-p", &pid, "--type", "mini", "-o", &at("pipe")])
        .with_code(2)
        .assert_error_names(&["pipe", "it is not a regular file"]);
    run(["dump", "-p", &pid, "--type", "mini", "-o", &at("core")]).with_code(0);
    assert!(fs::read(at("core")).unwrap().starts_with(ELF));
}

#[test]
fn why_there_is_no_dump_is_said_in_the_words_of_the_runtime() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let dump = run(["dump", "-p", &pid, "--type", "mini", "-o", "/nonexistent/core"]).with_code(4);
    dump.assert_error_names(&["GenerateCoreDump3", "0x80004005"]);
    assert!(dump.stderr.contains("runtime: [createdump] "), "{}", dump.stderr);
    assert!(dump.stderr.contains("/nonexistent/core"), "{}", dump.stderr);
}

#[test]
fn what_a_program_without_createdump_cannot_do_is_said() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let dump = run(["dump", "-p", &pid, "-o", file.to_str().unwrap()]);
    assert!(matches!(dump.code, Some(1 | 4)), "{dump:?}");
    dump.assert_error_names(&["GenerateCoreDump"]);
    assert!(!file.exists());
    run(["info", "-p", &pid]).with_code(0);
}

#[test]
fn what_an_old_runtime_cannot_say_is_an_error() {
    let Some(workload) = Workload::start(Runtime::Net3_1) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let dump = run(["dump", "-p", &pid, "--crashreport", "-o", file.to_str().unwrap()]).with_code(4);
    dump.assert_error_names(&["GenerateCoreDump2", "a crash report"]);
    assert!(
        dump.stderr.ends_with("help: leave out --crashreport, which needs .NET 6 or later\n"),
        "{}",
        dump.stderr
    );
    assert!(!file.exists());
}
