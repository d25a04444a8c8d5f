//! The diagnostic socket: where it should be, and whether it is there.

use std::path::Path;

use dipc_transport::Error as TransportError;

use super::settings::switched_off;
use crate::facts::{Facts, ImageKind, Process};
use crate::finding::{Check, Finding};

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
        Err(error @ TransportError::PermissionDenied { .. }) => problem(error.to_string()).fix("see user"),
        Err(error @ TransportError::ForeignSocket { .. }) => problem(error.to_string())
            .because(
                "somebody else put a socket where that of this process belongs, perhaps to be \
                sent what is meant for it; dipc sends nothing there",
            )
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
    if let Some(actual) = listening(process, &expected) {
        return Some(listens_elsewhere(facts, process, none, &expected, actual));
    }
    if let Some(variable) = switched_off(process) {
        return Some(none.because(format!("{variable} switches it off")).fix("see settings"));
    }
    let length = expected.as_os_str().len();
    if length > PATH_LIMIT {
        return Some(none.because(too_long(length)).fix("start it with a shorter TMPDIR"));
    }
    match process.image() {
        // That there is no runtime in it, or none with a port, has been said.
        Some(image) if matches!(image.kind, ImageKind::NativeAot { has_port: false } | ImageKind::Mono) => {
            None
        }
        None if process.image.is_ok() => None,
        _ => Some(not_made(process, none)),
    }
}

fn too_long(length: usize) -> String {
    format!("a socket's path has at most {PATH_LIMIT} bytes, and this one would have {length}")
}

/// The runtime has a socket, and not where it should be.
fn listens_elsewhere(
    facts: &Facts,
    process: &Process,
    none: Finding,
    expected: &Path,
    actual: &Path,
) -> Finding {
    let path = actual.display();
    if actual == expected {
        let removed = if process.createdump.is_some() {
            "by the runtime itself after a dump request without a working createdump, or by something that clears \
             temporary files"
        } else {
            "by something that clears temporary files"
        };
        return none
            .because(format!("the runtime still listens on {path}, but the file was removed: {removed}"))
            .fix("it cannot be made again: start the process again, and keep its folder from being cleared");
    }
    let root = match process.has_own_files {
        Some(true) => format!("/proc/{}/root", facts.pid),
        _ => String::new(),
    };
    let endpoint = format!("use --endpoint {root}{path} instead of the pid");
    let length = expected.as_os_str().len();
    if length > PATH_LIMIT {
        let cut = too_long(length);
        return none
            .because(format!("{cut}: the runtime cut its name, and listens on {path}"))
            .fix(format!("{endpoint} (dipc info tells whose it is), or start it with a shorter TMPDIR"));
    }
    none.because(format!("it listens on {path}: its TMPDIR was changed after its start")).fix(endpoint)
}

/// The runtime could not make one.
fn not_made(process: &Process, none: Finding) -> Finding {
    let tmpdir = process.tmpdir();
    let tmpdir = tmpdir.display();
    if process.tmpdir_exists == Some(false) {
        return none
            .because(format!("there is no folder {tmpdir} for it, or not any more"))
            .fix("make the folder, or set TMPDIR to one that exists, and start the process again");
    }
    if let Some(mount) = &process.read_only {
        return none
            .because(format!("{tmpdir} is in a read-only file system (mounted at {mount})"))
            .fix(format!(
                "mount something writable at {tmpdir}, or set TMPDIR to a writable folder, and start the process again"
            ));
    }
    none.because(
        "its file was removed and its socket closed, or the folder may not be written by its user, or the runtime has \
         only just begun to start",
    )
    .fix("try again; else look at the folder's rights, and start the process again")
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
