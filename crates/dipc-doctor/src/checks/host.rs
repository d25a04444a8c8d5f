//! Checks that concern all processes of the host.

use std::path::{Path, PathBuf};

use dipc_transport::{Discovery, SkipReason};

use crate::facts::ProcStatus;
use crate::{Evidence, Finding, Fix, StaleSocketsEvidence, TmpdirEvidence, UserEvidence};

/// Checks this process's own `TMPDIR`, unreadable processes, and sockets of ended processes.
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
    let findings = [Some(tmpdir(own_tmpdir)), unreadable(discovery), stale_sockets(discovery)];
    findings.into_iter().flatten().collect()
}

fn tmpdir(own_tmpdir: &Path) -> Finding {
    let is_folder = std::fs::metadata(own_tmpdir).is_ok_and(|metadata| metadata.is_dir());
    let evidence = Evidence::Tmpdir(TmpdirEvidence::Own { path: own_tmpdir.to_path_buf(), is_folder });
    if is_folder { Finding::ok(evidence) } else { Finding::warning(evidence).with_fix(Fix::SetTmpdir) }
}

fn unreadable(discovery: &Discovery) -> Option<Finding> {
    let is_unreadable = |reason: &SkipReason| matches!(reason, SkipReason::EnvironmentUnreadable(_));
    let count = discovery.skipped.iter().filter(|it| it.pid.is_some() && is_unreadable(&it.reason)).count();
    let own_uid = ProcStatus::read_own().and_then(|status| status.uid);
    let evidence = Evidence::User(UserEvidence::Unreadable { count });
    (count > 0).then(|| Finding::warning(evidence).with_fix(super::permission_fix(own_uid)))
}

fn stale_sockets(discovery: &Discovery) -> Option<Finding> {
    let is_stale = |reason: &SkipReason| matches!(reason, SkipReason::Stale);
    let stale: Vec<&PathBuf> =
        discovery.skipped.iter().filter(|it| is_stale(&it.reason)).map(|it| &it.path).collect();
    let example = (*stale.first()?).clone();
    let evidence = StaleSocketsEvidence::Ended { count: stale.len(), example };
    Some(Finding::ok(Evidence::StaleSockets(evidence)).with_fix(Fix::RemoveStaleSockets))
}
