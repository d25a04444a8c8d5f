//! The diagnostic socket: its folder, its file and the reason why the file is missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dipc_transport::Error;

use super::settings::disabling_setting;
use crate::facts::{Facts, Process};
use crate::{
    Check, Evidence, Finding, Fix, MissingSocketReason, RuntimeKind, SocketEvidence, StaleSocketsEvidence,
    TmpdirEvidence,
};

/// Maximum length of a socket's path on Linux, in bytes.
const PATH_LIMIT: usize = 107;

pub(super) fn tmpdir(facts: &Facts, process: &Process) -> Finding {
    if process.environment.is_err() {
        return Finding::unknown(Evidence::Tmpdir(TmpdirEvidence::Unreadable));
    }
    let mut path = process.tmpdir();
    if process.has_own_tmpdir {
        // The same path may refer to another folder here.
        path = below_root(facts.pid, &path);
    }
    if path == facts.own_tmpdir {
        return Finding::ok(Evidence::Tmpdir(TmpdirEvidence::Same { path }));
    }
    let fix = Fix::SetTmpdirForTools(path.clone());
    let evidence =
        Evidence::Tmpdir(TmpdirEvidence::Different { process: path, own: facts.own_tmpdir.clone() });
    if process.endpoint.is_err() {
        return Finding::ok(evidence);
    }
    Finding::warning(evidence).with_fix(fix)
}

pub(super) fn socket(facts: &Facts, process: &Process) -> Option<Finding> {
    let error = match &process.endpoint {
        Ok(endpoint) => {
            return Some(Finding::ok(Evidence::Socket(SocketEvidence::Found {
                path: endpoint.path.clone(),
            })));
        }
        Err(error) => error,
    };
    let fix = match &**error {
        Error::NoEndpoint { directory, .. } => {
            let (reason, fix) = missing(facts, process)?;
            let evidence = SocketEvidence::Missing { folder: directory.clone(), reason };
            return Some(Finding::problem(Evidence::Socket(evidence)).with_fix(fix));
        }
        Error::PermissionDenied { .. } => Some(Fix::SeeCheck(Check::User)),
        Error::ForeignSocket { .. } => Some(Fix::RemoveFile { is_foreign: true }),
        Error::NotASocket { .. } => Some(Fix::RemoveFile { is_foreign: false }),
        _ => None,
    };
    let evidence = Evidence::Socket(SocketEvidence::Rejected(Arc::clone(error)));
    Some(Finding { fix, ..Finding::problem(evidence) })
}

/// Returns the first reason that explains a missing socket.
fn missing(facts: &Facts, process: &Process) -> Option<(MissingSocketReason, Fix)> {
    let expected = process.expected_socket()?;
    if let Some(actual) = listening_path(process, &expected) {
        return Some(listens_elsewhere(facts, process, &expected, actual));
    }
    if let Some(setting) = disabling_setting(process) {
        return Some((MissingSocketReason::Disabled { setting }, Fix::SeeCheck(Check::Settings)));
    }
    let length = expected.as_os_str().len();
    if length > PATH_LIMIT {
        return Some((MissingSocketReason::PathTooLong { length, limit: PATH_LIMIT }, Fix::ShortenTmpdir));
    }
    match process.image() {
        // Check::Runtime has reported the lack of a runtime with a port.
        Some(image)
            if matches!(image.kind, RuntimeKind::NativeAot { has_port: false } | RuntimeKind::Mono) =>
        {
            None
        }
        None if process.image.is_ok() => None,
        _ => Some(not_created(process)),
    }
}

/// Reports a runtime that listens on `actual` while the socket is not found at `expected`.
fn listens_elsewhere(
    facts: &Facts,
    process: &Process,
    expected: &Path,
    actual: &Path,
) -> (MissingSocketReason, Fix) {
    let path = actual.to_path_buf();
    if actual == expected {
        let may_be_dump = super::runtime::dump_hazard(process).is_some();
        return (MissingSocketReason::Removed { path, may_be_dump }, Fix::RestartAndKeepFolder);
    }
    let reachable = match process.has_own_files {
        Some(true) => below_root(facts.pid, actual),
        _ => path.clone(),
    };
    let length = expected.as_os_str().len();
    if length > PATH_LIMIT {
        let reason = MissingSocketReason::Cut { path, length, limit: PATH_LIMIT };
        return (reason, Fix::UseEndpoint { path: reachable, is_cut: true });
    }
    (MissingSocketReason::Elsewhere { path }, Fix::UseEndpoint { path: reachable, is_cut: false })
}

/// Returns the path by which this process reaches a file of a process with its own view of the file system.
fn below_root(pid: u32, path: &Path) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").unwrap_or(path))
}

/// Reports a runtime that does not listen, although nothing disables it.
fn not_created(process: &Process) -> (MissingSocketReason, Fix) {
    let path = process.tmpdir();
    if process.tmpdir_exists == Some(false) {
        return (MissingSocketReason::NoFolder { path }, Fix::MakeTmpdir);
    }
    if let Some(mount) = process.read_only.clone() {
        let fix = Fix::MakeWritable(path.clone());
        return (MissingSocketReason::ReadOnly { path, mount }, fix);
    }
    (MissingSocketReason::Unknown, Fix::RetryOrCheckFolder)
}

/// Returns the path at which the runtime bound its socket, whether the file exists or not: the expected path,
/// its truncated form if it is too long, or one in another folder.
fn listening_path<'p>(process: &'p Process, expected: &Path) -> Option<&'p Path> {
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

pub(super) fn stale_sockets(process: &Process) -> Option<Finding> {
    let count = process.stale_sockets;
    let evidence = || StaleSocketsEvidence::SamePid { count, folder: process.tmpdir() };
    (count > 0).then(|| Finding::ok(Evidence::StaleSockets(evidence())))
}
