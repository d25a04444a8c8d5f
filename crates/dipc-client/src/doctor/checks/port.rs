//! The diagnostic socket: where it should be, whether it is there, and who answers.

use std::path::Path;

use dipc_transport::{Error as TransportError, ProcessState};

use super::super::facts::{Answer, Facts, ImageKind, Process};
use super::super::finding::{Check, Finding};
use super::settings::switched_off;
use crate::Error;

/// The longest path that a socket can have on Linux, in bytes.
const PATH_LIMIT: usize = 107;

pub(super) fn tmpdir(facts: &Facts, process: &Process) -> Finding {
    if process.environment.is_err() {
        return Finding::unknown(Check::Tmpdir, "its TMPDIR cannot be seen; /tmp is assumed");
    }
    let (theirs, ours) = (process.tmpdir(), &facts.our_tmpdir);
    if theirs == *ours {
        return Finding::ok(Check::Tmpdir, format!("{} for it and for dipc", theirs.display()));
    }
    let theirs = theirs.display();
    let seen = format!("{theirs} for it, {} for dipc", ours.display());
    if process.endpoint.is_err() {
        return Finding::ok(Check::Tmpdir, seen);
    }
    Finding::warning(Check::Tmpdir, seen)
        .because("dipc looks in each process's own; dotnet-trace and the like look only in theirs")
        .fix(format!("for those tools: TMPDIR={theirs} dotnet-trace …"))
}

pub(super) fn socket(facts: &Facts, process: &Process) -> Option<Finding> {
    let problem = |seen: String| Finding::problem(Check::Socket, seen);
    Some(match &process.endpoint {
        Ok(endpoint) => Finding::ok(Check::Socket, endpoint.path.display().to_string()),
        Err(TransportError::NotDotNet { looked_in, .. }) => return missing(facts, process, looked_in),
        Err(error @ TransportError::PermissionDenied { .. }) => {
            problem(error.to_string()).fix("see user")
        }
        Err(error @ TransportError::ForeignSocket { .. }) => problem(error.to_string())
            .because("somebody else put a socket where that of this process belongs, perhaps to be sent what is meant for it; dipc sends nothing there")
            .fix("remove the file as its owner or as root, and start the process again"),
        Err(error @ TransportError::NotASocket { .. }) => problem(error.to_string())
            .because("a file with the name of its socket is in the way")
            .fix("remove the file, and start the process again"),
        Err(error) => problem(error.to_string()),
    })
}

/// Why there is no socket: the first reason that explains it.
fn missing(facts: &Facts, process: &Process, looked_in: &Path) -> Option<Finding> {
    let none =
        Finding::problem(Check::Socket, format!("it has no diagnostic socket in {}", looked_in.display()));
    let expected = process.expected_socket()?;
    let length = expected.as_os_str().len();
    if let Some(actual) = listening(process, &expected) {
        let path = actual.display();
        let root = if process.has_own_files == Some(true) {
            format!("/proc/{}/root", facts.pid)
        } else {
            String::new()
        };
        if actual == expected {
            let dumped = process.createdump.is_some();
            return Some(
                none.because(format!(
                    "the runtime still listens on {path}, but the file was removed: {}",
                    if dumped { "by the runtime itself after a dump request without a working createdump, or by something that clears temporary files" }
                    else { "by something that clears temporary files" }
                ))
                .fix("it cannot be made again: start the process again, and keep its folder from being cleared"),
            );
        }
        if length > PATH_LIMIT {
            return Some(
                none.because(format!(
                    "a socket's path has at most {PATH_LIMIT} bytes, and this one would have {length}: the runtime cut its name, and listens on {path}"
                ))
                .fix(format!("use --endpoint {root}{path} instead of the pid, or start it with a shorter TMPDIR")),
            );
        }
        return Some(
            none.because(format!("it listens on {path}: its TMPDIR was changed after its start"))
                .fix(format!("use --endpoint {root}{path} instead of the pid")),
        );
    }
    if let Some(variable) = switched_off(process) {
        return Some(none.because(format!("{variable} switches it off")).fix("see settings"));
    }
    if length > PATH_LIMIT {
        return Some(
            none.because(format!(
                "a socket's path has at most {PATH_LIMIT} bytes, and this one would have {length}"
            ))
            .fix("start it with a shorter TMPDIR"),
        );
    }
    match process.image() {
        // That there is no runtime in it, or none with a port, has been said.
        Some(image) if matches!(image.kind, ImageKind::NativeAot { has_port: false } | ImageKind::Mono) => {
            return None;
        }
        None if process.image.is_ok() => return None,
        _ => {}
    }
    let tmpdir = process.tmpdir();
    let tmpdir = tmpdir.display();
    if process.tmpdir_exists == Some(false) {
        return Some(
            none.because(format!("there is no folder {tmpdir} for it, or not any more"))
                .fix("make the folder, or set TMPDIR to one that exists, and start the process again"),
        );
    }
    if let Some(mount) = &process.read_only {
        return Some(
            none.because(format!("{tmpdir} is in a read-only file system (mounted at {mount})"))
                .fix(format!("mount something writable at {tmpdir}, or set TMPDIR to a writable folder, and start the process again")),
        );
    }
    Some(
        none.because("its file was removed and its socket closed, or the folder may not be written by its user, or the runtime has only just begun to start")
            .fix("try again; else look at the folder's rights, and start the process again"),
    )
}

/// Where its runtime listens, whatever has become of the file: at the expected path, at what is left of it when it is too
/// long, or in another folder.
fn listening<'p>(process: &'p Process, expected: &Path) -> Option<&'p Path> {
    let listening =
        || process.sockets.iter().filter(|socket| socket.listens).map(|socket| socket.path.as_path());
    let name = expected.file_name()?;
    let whole = listening().find(|path| path.file_name() == Some(name));
    whole.or_else(|| {
        let expected = expected.as_os_str().as_encoded_bytes();
        let cut = expected.get(..PATH_LIMIT)?;
        listening().find(|path| path.as_os_str().as_encoded_bytes() == cut)
    })
}

pub(super) fn leftovers(process: &Process) -> Option<Finding> {
    let count = process.leftovers;
    (count > 0).then(|| {
        Finding::ok(
            Check::StaleSockets,
            format!(
                "{count} older socket{} with its pid in {}, left behind by processes that had it before",
                if count == 1 { "" } else { "s" },
                process.tmpdir().display()
            ),
        )
        .because("dipc goes by the start time in the name, and does not take them for this process's")
    })
}

pub(super) fn state(facts: &Facts, process: &Process) -> Option<Finding> {
    let state = process.state.as_ref().filter(|state| state.is_unresponsive())?;
    let seen = format!("it {state}");
    let finding = if process.has_answered() {
        Finding::warning(Check::State, seen)
    } else {
        Finding::problem(Check::State, seen).because("meanwhile it answers nobody")
    };
    Some(match (state, state.help()) {
        (ProcessState::Stopped, _) => finding.fix(format!("continue it: kill -CONT {}", facts.pid)),
        (_, Some(help)) => finding.fix(help),
        (_, None) => finding,
    })
}

pub(super) fn answer(process: &Process) -> Option<Finding> {
    let problem = |seen: String| Finding::problem(Check::Answer, seen);
    Some(match &process.answer {
        Answer::NotAsked => return None,
        Answer::Answered { info, after } => {
            let milliseconds = after.as_secs_f64() * 1000.0;
            let what = match info {
                Some(info) => format!("{} in {milliseconds:.1} ms", info.command),
                None => format!("in {milliseconds:.1} ms that it does not know the question"),
            };
            Finding::ok(Check::Answer, format!("it answered {what}"))
        }
        Answer::Failed(error) if error.is_deadline() => {
            let explained = process.state.as_ref().is_some_and(ProcessState::is_unresponsive);
            let finding = problem(error.to_string());
            if explained { finding.fix("see state") } else { busy(process, finding) }
        }
        Answer::Failed(Error::Transport(error @ TransportError::PeerMismatch { .. })) => problem(
            error.to_string(),
        )
        .because(
            "another process listens on its socket: it inherited it, or planted one; nothing was sent to it",
        )
        .fix("find out what that process is; end it, and start this one again"),
        Answer::Failed(Error::Transport(error @ TransportError::Stale { .. })) => problem(error.to_string())
            .because("the part of the runtime that listened has ended, or the file is not its own")
            .fix("start the process again"),
        Answer::Failed(error) => {
            let finding = problem(error.to_string());
            match error.help() {
                Some(help) => finding.fix(help),
                None => finding,
            }
        }
    })
}

/// It runs, lets us in and says nothing.
fn busy(process: &Process, finding: Finding) -> Finding {
    let path = process.endpoint.as_ref().map(|endpoint| &endpoint.path);
    let name = path.ok().and_then(|path| path.file_name());
    let connections =
        process.sockets.iter().filter(|socket| !socket.listens && socket.path.file_name() == name).count();
    match connections {
        0 => finding
            .because("the runtime does not get to its diagnostic port: its machine is overloaded, or its memory is being collected or swapped")
            .fix("try again with a longer --timeout"),
        _ => finding
            .because(format!(
                "the runtime serves one client at a time; {connections} other connection{} to its socket {} open, and one that says nothing, or a command that takes long, holds up all others",
                if connections == 1 { "" } else { "s" },
                if connections == 1 { "is" } else { "are" },
            ))
            .fix("end the other client (another dipc, dotnet-trace, dotnet-monitor), or wait for it"),
    }
}
