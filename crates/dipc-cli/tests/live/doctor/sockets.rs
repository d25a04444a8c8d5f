//! Sockets that are missing, not reachable, or not the runtime's own.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::examine;
use crate::program::run;
use crate::runtime::Runtime::{NativeAot9, Net3_1, Net9_0};
use crate::runtime::say_not_run;
use crate::workload::Workload;

/// CoreCLR cuts the name and listens all the same; NativeAOT opens nothing.
#[test]
fn a_path_that_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(80 - folder.path().as_os_str().len()));
    fs::create_dir(&long).unwrap();
    let long = long.to_str().unwrap();
    for runtime in [Net9_0, Net3_1, NativeAot9] {
        let Some(workload) = Workload::start_with(runtime, &[("TMPDIR", long)]) else { continue };
        let examined = examine(workload.pid(), 3);
        examined.only_problems(&["socket"]);
        let words = examined.names("socket", "problem", &["at most 107 bytes", "shorter TMPDIR", long]);
        if runtime == Net9_0 {
            // The way out works.
            let endpoint = words.split("use --endpoint ").nth(1).unwrap().split(' ').next().unwrap();
            run(["info", "--endpoint", endpoint]).with_code(0);
        }
    }
}

#[test]
fn a_folder_that_does_not_exist() {
    for runtime in [Net9_0, NativeAot9] {
        let Some(workload) = Workload::start_with(runtime, &[("TMPDIR", "/nonexistent/folder")]) else {
            continue;
        };
        let examined = examine(workload.pid(), 3);
        examined.only_problems(&["socket"]);
        examined.names(
            "socket",
            "problem",
            &["the folder /nonexistent/folder does not exist", "make the folder"],
        );
    }
}

#[test]
fn a_socket_that_was_removed() {
    for runtime in [Net9_0, Net3_1, NativeAot9] {
        let Some(workload) = Workload::start(runtime) else { continue };
        let socket = workload.socket();
        fs::remove_file(&socket).unwrap();
        let examined = examine(workload.pid(), 3);
        examined.only_problems(&["socket"]);
        examined.names(
            "socket",
            "problem",
            &["still listens on", socket.to_str().unwrap(), "removed", "start the process again"],
        );
    }
}

#[test]
fn a_socket_that_was_moved() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let socket = workload.socket();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join(socket.file_name().unwrap());
    fs::rename(&socket, &moved).unwrap();
    // The kernel knows it by the name at which it was bound, so a moved one looks like a removed one.
    examine(workload.pid(), 3).names("socket", "problem", &["still listens on"]);
    run(["info", "--endpoint", moved.to_str().unwrap()]).with_code(0);
}

#[test]
fn sockets_of_earlier_processes_are_counted_and_not_used() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let (pid, socket) = (workload.pid(), workload.socket());
    for key in [17, 18] {
        let path = workload.folder().join(format!("dotnet-diagnostic-{pid}-{key}-socket"));
        drop(UnixListener::bind(path).unwrap());
    }
    let examined = examine(pid, 0);
    examined.names("stale-sockets", "ok", &["2 older sockets"]);
    examined.names("socket", "ok", &[socket.to_str().unwrap()]);
}

/// Renames the socket of a process, and returns its old path.
fn replaced(workload: &Workload) -> PathBuf {
    let socket = workload.socket();
    fs::rename(&socket, workload.folder().join("its-own")).unwrap();
    socket
}

#[test]
fn a_socket_on_which_another_process_listens() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let planted = UnixListener::bind(replaced(&workload)).unwrap();
    planted.set_nonblocking(true).unwrap();
    let us = format!("process {}", std::process::id());
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["answer"]);
    examined.names("answer", "problem", &[&us, "nothing was sent to it"]);
    let (mut connection, _) = planted.accept().unwrap();
    assert_eq!(std::io::Read::read(&mut connection, &mut [0]).unwrap(), 0, "nothing was sent");
}

#[test]
fn a_socket_without_a_listener() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    drop(UnixListener::bind(replaced(&workload)).unwrap());
    examine(workload.pid(), 3).names("answer", "problem", &["no process listens"]);
}

#[test]
fn a_file_in_the_way() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    fs::write(replaced(&workload), "").unwrap();
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["socket"]);
    examined.names("socket", "problem", &["not a socket", "remove the file"]);
}

#[test]
fn a_socket_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return say_not_run("only root can give a file to another user");
    }
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let path = replaced(&workload);
    let _planted = UnixListener::bind(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["socket"]);
    examined.names("socket", "problem", &["belongs to user 65534", "sends nothing there"]);
    // Also in the list of all.
    let all = run(["doctor", "--format", "json"]).with_code(3).json();
    let processes = all["processes"].as_array().unwrap();
    assert!(processes.iter().any(|it| it["pid"] == workload.pid() && it["reachable"] == false), "{all}");
}
