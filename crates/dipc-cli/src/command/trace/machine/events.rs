//! The processes of a recording of many that have a session, and the session of each.

use dipc_client::SessionConfig;
use dipc_collect::kernel_samples::SampleScope;

use crate::command::trace::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::process::target::{FoundTarget, TargetSelector, endpoints_of_name};
use crate::record::machine::{MAX_SESSIONS, SessionRequest};
use crate::record::selection::Selection;
use crate::record::source::Source;
use crate::render::messages;

/// The processes and the session that the arguments ask for; `None` if they ask for samples alone.
pub(super) fn requested(
    args: &TraceArgs,
    scope: &SampleScope,
) -> Result<Option<(Vec<Source>, SessionRequest)>, Failure> {
    let request = args.selection.request();
    let names_processes = !args.source.process.process_ids.is_empty() || args.source.name.is_some();
    let is_whole = args.machine.all || args.machine.cgroup.is_some();
    if !request.is_some() {
        if is_whole && names_processes {
            return Err(Failure::usage(
                "-p and -n beside --all and --cgroup name the processes whose events are recorded as well: add --profile or --providers",
            )
            .with_help("-p 17,18 --one-file samples these processes alone"));
        }
        return Ok(None);
    }
    let sources = match scope {
        _ if is_whole && names_processes => named(args)?,
        SampleScope::Processes(pids) => reachable(pids, args)?,
        SampleScope::Group(group) => of_pids(&group.process_ids(), args)?,
        _ => {
            return Err(Failure::usage(
                "--all with --profile, --providers or --clrevents needs -p or -n: the processes whose events are recorded",
            )
            .with_help("a session in each process of the machine would be much of what the samples show"));
        }
    };
    if sources.len() > MAX_SESSIONS {
        return Err(Failure::usage(format_args!(
            "{} processes would have a session each, and {MAX_SESSIONS} may",
            sources.len()
        ))
        .with_help("choose them with -p"));
    }
    let selection = Selection::new(&request)?;
    // The kernel samples all of them.
    let selection = if request.names_sampler() { selection } else { selection.without_sampler() };
    selection.announce();
    let collect = SessionConfig::new(selection.configs())
        .with_buffer_mb(args.buffersize)
        .with_buffer_mode(args.buffering_mode.into())
        .with_rundown(selection.rundown(args.rundown));
    let request = SessionRequest { collect, timeout: args.timeout, resume: args.resume_runtime };
    Ok(Some((sources, request)))
}

/// The processes of `-p`, or all of the name of `-n`.
fn named(args: &TraceArgs) -> Result<Vec<Source>, Failure> {
    if let Some(name) = &args.source.name {
        let endpoints = endpoints_of_name(name, Some(args.timeout));
        if !endpoints.is_empty() {
            return Ok(endpoints
                .iter()
                .map(|endpoint| Source::from_endpoint(endpoint, args.timeout))
                .collect());
        }
    }
    let find = |selector| Ok(Source::from_target(FoundTarget::find(&selector, args.timeout)?));
    let mut pids = args.source.process.process_ids.clone();
    pids.sort_unstable();
    pids.dedup();
    let pids = pids.into_iter().map(TargetSelector::Pid);
    pids.chain(args.source.name.clone().map(TargetSelector::Name)).map(find).collect()
}

/// The processes whose runtime can be reached; the others are sampled alone.
fn reachable(pids: &[u32], args: &TraceArgs) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    let mut refused = Vec::new();
    for pid in pids {
        match FoundTarget::find(&TargetSelector::Pid(*pid), args.timeout) {
            Ok(found) => sources.push(Source::from_target(found)),
            Err(failure) => refused.push(failure),
        }
    }
    if sources.is_empty() {
        return Err(refused.into_iter().next().unwrap_or_else(no_process));
    }
    for failure in refused {
        messages::warning(format_args!("{failure}; sampling it without the events of a runtime"));
    }
    Ok(sources)
}

/// The processes of a control group that have an endpoint.
fn of_pids(pids: &[u32], args: &TraceArgs) -> Result<Vec<Source>, Failure> {
    let endpoints = dipc_transport::discover().endpoints;
    let of_group = endpoints.iter().filter(|endpoint| pids.contains(&endpoint.pid));
    let sources: Vec<_> = of_group.map(|endpoint| Source::from_endpoint(endpoint, args.timeout)).collect();
    if sources.is_empty() { Err(no_process()) } else { Ok(sources) }
}

fn no_process() -> Failure {
    Failure::new(Exit::NotReachable, "find: none of the processes has a .NET runtime that can be reached")
        .with_help("dipc ps lists the processes that can be reached; without --profile all are sampled")
}
