//! Discovery among processes in containers, of other users, with other roots, and with planted sockets. Each
//! condition is real, and most are made by root; conditions that could not be made are reported.
#![cfg(target_os = "linux")]

mod containers;
mod listener;
mod planted;
mod real_runtime;

use std::io::Write as _;
use std::time::Duration;

use dipc_transport::Deadline;

/// Long enough for a crowded machine; a test that uses all of it has failed.
fn patient() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Reports that a test did not run, past the test harness's capture; if the machine is supposed to have
/// everything, that is a failure.
fn not_run(why: &str) {
    let required = std::env::var("DIPC_REQUIRE_RUNTIMES").is_ok_and(|it| !matches!(&*it, "" | "0" | "false"));
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(!required, "{test} cannot run: {why}");
    let _ = writeln!(std::io::stderr(), "!!! NOT RUN {test}: {why}");
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        not_run("only root can make this condition");
    }
    root
}
