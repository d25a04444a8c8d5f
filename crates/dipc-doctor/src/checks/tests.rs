//! What cannot be made real everywhere: other C libraries, other runtimes, what only the kernel of a container would say.

use std::time::Duration;

use super::*;
use crate::Status;
use crate::facts::{
    Answer, Environment, Facts, Image, ImageKind, Presence, Process, Status as ProcessStatus, UnixSocket,
};
use dipc_client::Startup;

fn image(kind: ImageKind, version: &str) -> Image {
    Image { kind, path: "/app/runtime".into(), version: Some(version.into()), musl: false }
}

/// A process of .NET 9 without a socket, of the user that dipc runs as.
fn process() -> Process {
    Process {
        name: "app".into(),
        status: ProcessStatus {
            name: "app".into(),
            process: 4711,
            uid: Some(1000),
            inner_pid: 4711,
            has_memory: true,
            is_zombie: false,
        },
        start_key: Some(99),
        state: None,
        environment: Ok(Environment::parse("")),
        image: Ok(Some(image(ImageKind::CoreClr, "9.0.1"))),
        has_own_files: Some(false),
        tmpdir_exists: Some(true),
        read_only: None,
        sockets: Vec::new(),
        leftovers: 0,
        startup: Startup::Running,
        createdump: None,
        endpoint: Err(dipc_transport::Error::NotDotNet {
            pid: 4711,
            name: "app".into(),
            looked_in: "/tmp".into(),
        }),
        answer: Answer::NotAsked,
    }
}

fn answered() -> Answer {
    Answer::Answered { info: None, after: Duration::from_millis(1) }
}

fn facts(presence: Presence) -> Facts {
    Facts { pid: 4711, our_uid: Some(1000), our_tmpdir: "/tmp".into(), presence }
}

fn judged(process: Process) -> Examination {
    judge(&facts(Presence::Here(Box::new(process))))
}

/// The status of a check, and all its words.
fn of(examination: &Examination, check: Check) -> Option<(Status, String)> {
    let finding = examination.findings.iter().find(|finding| finding.check == check)?;
    let words = [Some(&finding.seen), finding.cause.as_ref(), finding.fix.as_ref()];
    let words: Vec<_> = words.into_iter().flatten().map(String::as_str).collect();
    Some((finding.status, words.join(" | ")))
}

#[track_caller]
fn assert_names(examination: &Examination, check: Check, status: Status, parts: &[&str]) {
    let (found, words) = of(examination, check).unwrap();
    assert_eq!(found, status, "{words}");
    for part in parts {
        assert!(words.contains(part), "{part} is not in: {words}");
    }
}

#[test]
fn a_socket_that_is_missing_for_no_reason_that_is_seen() {
    let examination = judged(process());
    assert!(!examination.reachable);
    assert_names(&examination, Check::Socket, Status::Problem, &["/tmp", "try again"]);
}

#[test]
fn a_socket_in_another_folder() {
    let elsewhere = UnixSocket { path: "/run/x/dotnet-diagnostic-4711-99-socket".into(), listens: true };
    let listening = Process { sockets: vec![elsewhere.clone()], ..process() };
    let fix = "use --endpoint /run/x/dotnet-diagnostic-4711-99-socket instead";
    assert_names(&judged(listening), Check::Socket, Status::Problem, &["TMPDIR was changed", fix]);
    let contained = Process { sockets: vec![elsewhere], has_own_files: Some(true), ..process() };
    assert_names(&judged(contained), Check::Socket, Status::Problem, &["/proc/4711/root/run/x/dotnet"]);
    // Neither a connection nor the socket of a process that had the pid before.
    for (path, listens) in
        [("/run/x/dotnet-diagnostic-4711-99-socket", false), ("/x/dotnet-diagnostic-4711-98-socket", true)]
    {
        let other = Process { sockets: vec![UnixSocket { path: path.into(), listens }], ..process() };
        assert_names(&judged(other), Check::Socket, Status::Problem, &["try again"]);
    }
}

#[test]
fn musl_is_named_and_no_problem() {
    let musl = Image { musl: true, ..image(ImageKind::CoreClr, "9.0.1") };
    let examination = judged(Process { image: Ok(Some(musl)), answer: answered(), ..process() });
    assert_names(&examination, Check::Platform, Status::Ok, &["musl", "profilers"]);
    assert_eq!(of(&judged(process()), Check::Platform), None);
}

#[test]
fn runtimes_of_every_age() {
    for (version, status, part) in [
        ("2", Status::Problem, "begin with .NET Core 3.0"),
        ("3.1.23", Status::Warning, "cannot answer info"),
        ("5.0.17", Status::Warning, "startup-hook"),
        ("7.0.1", Status::Warning, "perfmap"),
        ("8.0.0-rc.1", Status::Ok, "8.0.0-rc.1"),
        ("10.0.5", Status::Ok, "10.0.5"),
    ] {
        let examination =
            judged(Process { image: Ok(Some(image(ImageKind::CoreClr, version))), ..process() });
        assert_names(&examination, Check::Version, status, &[part]);
        assert_eq!(examination.runtime.as_deref(), Some(version));
    }
}

#[test]
fn mono_has_no_port() {
    let mono = Image { version: None, ..image(ImageKind::Mono, "") };
    let examination = judged(Process { image: Ok(Some(mono)), ..process() });
    assert_names(&examination, Check::Runtime, Status::Problem, &["Mono"]);
    assert_eq!(of(&examination, Check::Socket), None, "one reason is enough");
}

#[test]
fn a_process_that_the_kernel_hides_from_its_own_user_and_from_root() {
    let hidden = || Process { environment: Err("/proc/4711/environ: no".into()), ..process() };
    let judged_by =
        |uid: u32| judge(&Facts { our_uid: Some(uid), ..facts(Presence::Here(Box::new(hidden()))) });
    assert_names(&judged_by(1000), Check::User, Status::Problem, &["setcap", "/proc/4711/environ"]);
    assert_names(&judged_by(0), Check::User, Status::Problem, &["SYS_PTRACE"]);
    assert_names(&judged_by(7), Check::User, Status::Problem, &["sudo -u '#1000'"]);
    // What answers is not hidden enough.
    let reached = judged(Process { answer: answered(), ..hidden() });
    assert_names(&reached, Check::User, Status::Ok, &["/proc/4711/environ"]);
    assert!(reached.reachable);
    assert_names(&reached, Check::Settings, Status::Unknown, &[]);
}

#[test]
fn numbers_that_are_no_process_here() {
    for (presence, parts) in [
        (Presence::Absent { inside: vec![12, 34] }, &["inside a container", "use -p 12 or -p 34"][..]),
        (Presence::NoMemory { name: "kworker".into(), zombie: false }, &["kworker", "thread of the kernel"]),
        (Presence::Hidden("why".into()), &["why", "as root"]),
    ] {
        let examination = judge(&facts(presence));
        assert_names(&examination, Check::Process, Status::Problem, parts);
        assert_eq!((examination.findings.len(), examination.reachable), (1, false));
    }
}
