//! Arguments that name a process.

use std::path::Path;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use dipc_transport::TcpReach;

use crate::args::candidates;
use crate::duration;
use crate::exit::Failure;
use crate::inspect::core_source::Source;
use crate::process::target::{FoundTarget, TargetSelector};

/// The arguments of [`TargetArgs`] that name a process; mutually exclusive.
pub(crate) const TARGETS: [&str; 3] = ["process_id", "name", "endpoint"];

/// The selection of a process.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct TargetArgs {
    /// The process id
    #[arg(short, long, alias = "pid", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    pub(crate) process_id: Option<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(candidates::names))]
    pub(crate) name: Option<String>,
    /// The process's diagnostic socket, as a sidecar sees it: its path, its folder, a pattern with '*', or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    pub(crate) endpoint: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

impl TargetArgs {
    /// Finds the process.
    pub(crate) fn find(&self, timeout: Duration) -> Result<FoundTarget, Failure> {
        let Self { process_id, name, endpoint, reach } = self;
        FoundTarget::find(&selector(*process_id, name.as_ref(), endpoint.as_ref(), *reach)?, timeout)
    }

    /// Opens a core dump, or the memory of the process.
    pub(crate) fn core_or_memory(&self, core: Option<&Path>) -> Result<Source, Failure> {
        core.map_or_else(|| self.memory(), Source::open)
    }

    /// Opens the memory of the process. A process id needs no answer of the runtime.
    pub(crate) fn memory(&self) -> Result<Source, Failure> {
        const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
        let pid = match self.process_id {
            Some(pid) => Some(pid),
            None => self.find(REQUEST_TIMEOUT)?.target.pid(),
        };
        Source::attach(pid.ok_or_else(|| without_pid("read memory"))?)
    }
}

/// Returns the failure of an operation that needs a process id, for an address whose process has none here.
pub(crate) fn without_pid(operation: &str) -> Failure {
    Failure::usage(format_args!("{operation}: the process at this address has no process id here")).with_help(
        "run dipc on the host, or share the pid namespace with the process (shareProcessNamespace: true, --pid container:NAME), and name it by -p",
    )
}

/// Returns the process named with one of the three arguments.
pub(crate) fn selector(
    process_id: Option<u32>,
    name: Option<&String>,
    endpoint: Option<&String>,
    reach: ReachArgs,
) -> Result<TargetSelector, Failure> {
    match (process_id, name, endpoint) {
        (Some(pid), ..) => Ok(TargetSelector::Pid(pid)),
        (None, Some(name), _) => Ok(TargetSelector::Name(name.clone())),
        (None, None, Some(address)) => {
            Ok(TargetSelector::Endpoint { address: address.clone(), reach: reach.tcp() })
        }
        (None, None, None) => Err(Failure::usage("one of --process-id, --name and --endpoint is needed")),
    }
}

/// The permitted reach of an address.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReachArgs {
    /// Allow an address on another machine: the protocol has neither passwords nor encryption
    #[arg(long)]
    pub(crate) any_host: bool,
}

impl ReachArgs {
    pub(crate) const fn tcp(self) -> TcpReach {
        if self.any_host { TcpReach::Anywhere } else { TcpReach::Loopback }
    }
}

/// The selection of a process, and the time limit for its answer.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).args(TARGETS))]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Time limit for the runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) timeout: Duration,
}

impl RequestArgs {
    /// Finds the process.
    pub(crate) fn find(&self) -> Result<FoundTarget, Failure> {
        self.target.find(self.timeout)
    }
}
