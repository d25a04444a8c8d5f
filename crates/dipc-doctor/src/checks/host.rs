//! Checks that concern all processes of the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_transport::{Address, Connection, Deadline, Discovery, PeerCheck, SkipReason, SocketName};

use crate::facts::ProcStatus;
use crate::{Evidence, Finding, Fix, SocketEvidence, StaleSocketsEvidence, TmpdirEvidence, UserEvidence};

/// Checks this process's own `TMPDIR`, unreadable processes, sockets of processes that have ended or are not
/// visible here, and the destination of core dumps.
///
/// ```
/// use dipc_doctor::{Check, Status};
/// use std::path::Path;
///
/// let discovery = dipc_transport::discover();
/// let findings = dipc_doctor::check_host(&discovery, Path::new("/no/such/folder"));
/// let tmpdir = findings.iter().find(|finding| finding.check == Check::Tmpdir);
/// assert_eq!(tmpdir.map(|finding| finding.status), Some(Status::Warning));
/// ```
pub fn check_host(discovery: &Discovery, own_tmpdir: &Path) -> Vec<Finding> {
    let foreign = find_foreign_sockets(discovery);
    let findings = [
        Some(tmpdir(own_tmpdir)),
        unreadable(discovery),
        foreign_sockets(&foreign),
        stale_sockets(discovery, &foreign),
        core_dumps(),
    ];
    findings.into_iter().flatten().collect()
}

fn tmpdir(own_tmpdir: &Path) -> Finding {
    let is_folder = std::fs::metadata(own_tmpdir).is_ok_and(|metadata| metadata.is_dir());
    let evidence = Evidence::Tmpdir(TmpdirEvidence::Own { path: own_tmpdir.to_path_buf(), is_folder });
    if is_folder { Finding::ok(evidence) } else { Finding::warning(evidence).with_fix(Fix::SetTmpdir) }
}

/// Returns the kernel's destination of core dumps, if the system states it.
fn core_dumps() -> Option<Finding> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
    Some(Finding::ok(Evidence::CoreDumps { pattern: pattern.trim_end_matches('\n').to_owned() }))
}

fn unreadable(discovery: &Discovery) -> Option<Finding> {
    let is_unreadable = |reason: &SkipReason| matches!(reason, SkipReason::EnvironmentUnreadable(_));
    let count = discovery.skipped.iter().filter(|it| it.pid.is_some() && is_unreadable(&it.reason)).count();
    let own_uid = ProcStatus::read_own().and_then(|status| status.uid);
    let evidence = Evidence::User(UserEvidence::Unreadable { count });
    (count > 0).then(|| Finding::warning(evidence).with_fix(super::permission_fix(own_uid)))
}

/// Returns the sockets in [`Discovery::skipped`] at which a process listens that is not visible here: it is
/// in another pid namespace, as in a container that shares the folder. At most 16 sockets are tried, each
/// with a connection that sends nothing.
///
/// ```
/// for socket in dipc_doctor::find_foreign_sockets(&dipc_transport::discover()) {
///     println!("a process of another container listens at {}", socket.display());
/// }
/// ```
pub fn find_foreign_sockets(discovery: &Discovery) -> Vec<PathBuf> {
    const MAX_TRIED: usize = 16;
    // Of all together: a listener that never accepts can have a full queue.
    let deadline = Deadline::after(Duration::from_secs(1));
    let tried = unclaimed(discovery).take(MAX_TRIED);
    tried.filter(|path| has_listener(path, deadline) && !is_visible(path)).cloned().collect()
}

/// Returns the sockets without a visible process.
fn unclaimed(discovery: &Discovery) -> impl Iterator<Item = &PathBuf> {
    let is_stale = |reason: &SkipReason| matches!(reason, SkipReason::Stale);
    discovery.skipped.iter().filter(move |it| is_stale(&it.reason)).map(|it| &it.path)
}

fn has_listener(socket: &Path, deadline: Deadline) -> bool {
    Connection::connect(&Address::from(socket), PeerCheck::Any, deadline).is_ok()
}

/// Returns true if the process of a socket is visible: it has started since the sockets were listed.
fn is_visible(socket: &Path) -> bool {
    let name = socket.file_name().and_then(SocketName::parse);
    name.is_some_and(|name| dipc_transport::start_key(name.pid).is_ok_and(|key| key == name.key))
}

fn foreign_sockets(foreign: &[PathBuf]) -> Option<Finding> {
    let example = foreign.first()?.clone();
    let fix = Fix::UseEndpoint { path: example.clone(), is_cut: false };
    let evidence = SocketEvidence::ProcessNotVisible { count: foreign.len(), example };
    Some(Finding::warning(Evidence::Socket(evidence)).with_fix(fix))
}

fn stale_sockets(discovery: &Discovery, foreign: &[PathBuf]) -> Option<Finding> {
    let stale: Vec<&PathBuf> = unclaimed(discovery).filter(|path| !foreign.contains(path)).collect();
    let example = (*stale.first()?).clone();
    let evidence = StaleSocketsEvidence::Ended { count: stale.len(), example };
    Some(Finding::ok(Evidence::StaleSockets(evidence)).with_fix(Fix::RemoveStaleSockets))
}
