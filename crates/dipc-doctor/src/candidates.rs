//! The search for processes that look like .NET.

use std::collections::BTreeSet;

use dipc_transport::{Discovery, SkipReason};

use crate::facts::{self, RuntimeSearch};

/// Returns the processes that look like .NET, by rising pid: processes with a diagnostic socket, trusted or
/// not, and processes with a loaded runtime. [`check_host`](crate::check_host) counts the unreadable
/// processes.
///
/// ```
/// let discovery = dipc_transport::discover();
/// for pid in dipc_doctor::find_candidates(&discovery) {
///     println!("{pid}: .NET {:?}", dipc_doctor::runtime_version(pid));
/// }
/// ```
pub fn find_candidates(discovery: &Discovery) -> Vec<u32> {
    candidates(discovery, find_runtimes())
}

/// Returns the same, given the result of [`find_runtimes`], which may have run in parallel with the
/// discovery.
pub fn candidates(discovery: &Discovery, with_runtime: Vec<u32>) -> Vec<u32> {
    let mut pids: BTreeSet<_> = discovery.endpoints.iter().map(|endpoint| endpoint.pid).collect();
    pids.extend(discovery.skipped.iter().filter(|it| is_suspect(&it.reason)).filter_map(|it| it.pid));
    pids.extend(with_runtime);
    pids.into_iter().collect()
}

/// Returns the processes with a loaded runtime, by rising pid, as far as this process may read about others.
/// Linux only.
pub fn find_runtimes() -> Vec<u32> {
    let mut search = RuntimeSearch::default();
    facts::pids().into_iter().filter(|pid| search.has_runtime(*pid)).collect()
}

/// Returns true if the program of a process, or a file that it has mapped, is a runtime of .NET, whatever the
/// state of the process is: also while its core dump is written. Linux only.
///
/// ```
/// assert!(!dipc_doctor::has_runtime(std::process::id()));
/// ```
pub fn has_runtime(pid: u32) -> bool {
    RuntimeSearch::default().has_image(pid)
}

/// Returns the processes of that name among the [candidates](find_candidates), or else those with an entry
/// assembly of that name, or else any process of that name.
///
/// ```
/// // A name as a user types it: of the program, or of its entry assembly.
/// let discovery = dipc_transport::discover();
/// let pids = dipc_doctor::find_by_name("no program of this name", &discovery);
/// assert!(pids.is_empty());
/// ```
pub fn find_by_name(name: &str, discovery: &Discovery) -> Vec<u32> {
    let has_name = |pid: &u32| dipc_transport::process_name(*pid).is_ok_and(|it| it == name);
    let has_assembly = |pid: &u32| entry_assembly(*pid).is_some_and(|it| it == name);
    let candidates = find_candidates(discovery);
    let named: Vec<_> = candidates.iter().copied().filter(has_name).collect();
    if !named.is_empty() {
        return named;
    }
    let started: Vec<_> = candidates.into_iter().filter(has_assembly).collect();
    if started.is_empty() { facts::pids().into_iter().filter(has_name).collect() } else { started }
}

/// Returns the version of the runtime in a process according to its files: the folder of `libcoreclr.so`, or
/// a string in that library. .NET 5 and earlier do not report it themselves.
///
/// ```
/// // This test is not a .NET program.
/// assert_eq!(dipc_doctor::runtime_version(std::process::id()), None);
/// ```
pub fn runtime_version(pid: u32) -> Option<String> {
    facts::RuntimeImage::read(pid).ok()??.version
}

/// Returns the name of the assembly that a process was started with, without `.dll`, from the command line of
/// `dotnet`. Linux only.
pub fn entry_assembly(pid: u32) -> Option<String> {
    dipc_client::entry_assembly(&dipc_transport::command_line(pid).ok()?)
}

/// Returns true if a skipped file points to a .NET process with a problem. Most skipped processes are simply
/// not readable.
fn is_suspect(reason: &SkipReason) -> bool {
    matches!(reason, SkipReason::ForeignOwner { .. } | SkipReason::NotASocket)
}
