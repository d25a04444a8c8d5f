//! The search for processes that look like .NET.

use std::collections::BTreeSet;

use dipc_transport::{Discovery, SkipReason};

use crate::facts::{self, ProcStatus};

/// Returns the processes that look like .NET, by rising pid: those with a diagnostic socket, those with a runtime in them, and
/// those whose socket is not to be trusted. [`check_host`](crate::check_host) counts the processes that cannot be read about.
pub fn find_candidates(discovery: &Discovery) -> Vec<u32> {
    let mut pids: BTreeSet<_> = discovery.endpoints.iter().map(|endpoint| endpoint.pid).collect();
    pids.extend(discovery.skipped.iter().filter(|it| is_suspect(&it.reason)).filter_map(|it| it.pid));
    let others: Vec<_> = facts::pids()
        .into_iter()
        .filter(|pid| !pids.contains(pid) && is_process_with_runtime(*pid))
        .collect();
    pids.extend(others);
    pids.into_iter().collect()
}

/// Returns the processes of that name among the [candidates](find_candidates), or else any of that name.
pub fn find_by_name(name: &str, discovery: &Discovery) -> Vec<u32> {
    let has_name = |pid: &u32| dipc_transport::process_name(*pid).is_ok_and(|it| it == name);
    let dotnet: Vec<_> = find_candidates(discovery).into_iter().filter(has_name).collect();
    if dotnet.is_empty() { facts::pids().into_iter().filter(has_name).collect() } else { dotnet }
}

fn is_process_with_runtime(pid: u32) -> bool {
    ProcStatus::read(pid).is_ok_and(|status| status.has_memory) && facts::is_dotnet(pid)
}

/// Returns whether a skipped file points to a .NET process with a problem. Most skipped processes are simply not readable.
fn is_suspect(reason: &SkipReason) -> bool {
    matches!(reason, SkipReason::ForeignOwner { .. } | SkipReason::NotASocket)
}
