//! All processes at once.

use std::path::{Path, PathBuf};

use dipc_transport::{Discovery, SkipReason};

use crate::facts::{self, Status as ProcessStatus};
use crate::finding::{Check, Finding};

/// The processes that look like .NET, by rising pid: those with a diagnostic socket, those with a runtime in them, and those
/// whose socket is not to be trusted. What may not be looked into is not among them; [`check_host`] counts it.
pub fn candidates(discovery: &Discovery) -> Vec<u32> {
    let mut pids: Vec<_> = discovery.endpoints.iter().map(|endpoint| endpoint.pid).collect();
    pids.extend(
        discovery.skipped.iter().filter(|skipped| !is_silent(&skipped.reason)).filter_map(|it| it.pid),
    );
    let known = pids.clone();
    pids.extend(
        facts::pids().into_iter().filter(|pid| !known.contains(pid) && is_process_with_runtime(*pid)),
    );
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The processes of that name among the [`candidates`], or else any of that name.
pub fn named(name: &str, discovery: &Discovery) -> Vec<u32> {
    let of_name = |pid: &u32| dipc_transport::process_name(*pid).is_ok_and(|it| it == name);
    let dotnet: Vec<_> = candidates(discovery).into_iter().filter(of_name).collect();
    if dotnet.is_empty() { facts::pids().into_iter().filter(of_name).collect() } else { dotnet }
}

fn is_process_with_runtime(pid: u32) -> bool {
    ProcessStatus::read(pid).is_ok_and(|status| status.has_memory) && facts::is_dotnet(pid)
}

/// Of most processes nothing can be read, and nothing is wrong with them.
fn is_silent(reason: &SkipReason) -> bool {
    !matches!(reason, SkipReason::ForeignOwner { .. } | SkipReason::NotASocket)
}

/// What concerns all processes: our own TMPDIR, what could not be looked into, and sockets that were left behind.
pub fn check_host(discovery: &Discovery, our_tmpdir: &Path) -> Vec<Finding> {
    let tmpdir = our_tmpdir.display();
    let mut findings = vec![match std::fs::metadata(our_tmpdir) {
        Ok(metadata) if metadata.is_dir() => {
            Finding::ok(Check::Tmpdir, format!("{tmpdir} for dipc; each process is looked for in its own"))
        }
        _ => Finding::warning(Check::Tmpdir, format!("{tmpdir} for dipc is no folder"))
            .because("dipc looks for each process in that process's own; other tools will find none")
            .fix("set TMPDIR to that of the processes"),
    }];
    findings.extend(hidden(discovery));
    findings.extend(stale(discovery));
    findings
}

fn hidden(discovery: &Discovery) -> Option<Finding> {
    let is_hidden = |reason: &SkipReason| matches!(reason, SkipReason::EnvironmentUnreadable(_));
    let count = discovery.skipped.iter().filter(|it| it.pid.is_some() && is_hidden(&it.reason)).count();
    (count > 0).then(|| {
        Finding::warning(Check::User, format!("processes that could not be looked into: {count}"))
            .because("what is .NET among them is not in the list")
            .fix("run dipc as root, or as the user of the process")
    })
}

fn stale(discovery: &Discovery) -> Option<Finding> {
    let is_stale = |reason: &SkipReason| matches!(reason, SkipReason::Stale);
    let stale: Vec<PathBuf> =
        discovery.skipped.iter().filter(|it| is_stale(&it.reason)).map(|it| it.path.clone()).collect();
    let example = stale.first()?.display();
    Some(
        Finding::ok(
            Check::StaleSockets,
            format!(
                "sockets of processes that have ended: {}, such as \
            {example}",
                stale.len()
            ),
        )
        .because(
            "a runtime that crashes or is killed leaves its socket behind; dipc does not \
                take them for anything",
        )
        .fix("they can be removed"),
    )
}
