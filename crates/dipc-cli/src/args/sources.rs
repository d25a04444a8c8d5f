//! Arguments that select any number of processes to read values from.

use std::ffi::OsString;

use clap::{ArgGroup, Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;

use crate::args::candidates;
use crate::args::source::{OneProcess, PortChoice, SourceArgs};
use crate::args::target::ReachArgs;
use crate::exit::Failure;
use crate::record::source::{SourceSelector, SourcesSelector};

/// Arguments that select processes; at least one is required. `--all` goes with a name, or alone.
const NEEDED: [&str; 7] =
    ["process_ids", "name", "endpoint", "diagnostic_port", "command", "dsrouter", "all"];
/// The arguments of which a command takes at most one.
const ONE_OF: [&str; 6] = ["process_ids", "name", "endpoint", "diagnostic_port", "command", "dsrouter"];

/// The selection of the processes to watch.
#[derive(Debug, Clone, Default, Args)]
#[command(group = ArgGroup::new("sources").required(true).multiple(true).args(NEEDED))]
#[command(group = ArgGroup::new("one_source").args(ONE_OF))]
pub(crate) struct SourcesArgs {
    /// The process id, or several separated by commas
    #[arg(id = "process_ids", short, long = "process-id", alias = "pid", value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    process_ids: Vec<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(candidates::names))]
    name: Option<String>,
    /// All processes with that name, or, without --name, all reachable ones, including those that start later
    #[arg(long, conflicts_with_all = ["process_ids", "endpoint", "diagnostic_port", "command", "dsrouter"])]
    all: bool,
    /// The process's diagnostic socket, as a sidecar sees it: its path, its folder, a pattern with '*', or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    endpoint: Option<String>,
    /// A port that runtimes connect to, where each one is watched, or with ',connect' a port that a runtime
    /// listens on: a path, or 127.0.0.1:PORT
    #[arg(long, visible_alias = "dport", value_name = "ADDRESS[,listen|connect]")]
    diagnostic_port: Option<PortChoice>,
    /// Platform for which dotnet-counters would start dotnet-dsrouter
    #[arg(long, hide = true, value_name = "PLATFORM")]
    dsrouter: Option<String>,
    #[command(flatten)]
    reach: ReachArgs,
    /// A program to start and watch from its first moment; dipc exits with the program's exit code
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl SourcesArgs {
    /// Returns true if there may be several processes at once.
    pub(crate) fn may_be_many(&self) -> bool {
        let listens = self.diagnostic_port.as_ref().is_some_and(|port| port.is_ours);
        self.all || listens || self.process_ids.len() > 1
    }

    /// The sources that the arguments name.
    pub(crate) fn selector(&self, show_child_io: bool) -> Result<SourcesSelector, Failure> {
        if self.all {
            return Ok(SourcesSelector::All { name: self.name.clone() });
        }
        if self.process_ids.len() > 1 {
            let mut pids = self.process_ids.clone();
            pids.sort_unstable();
            pids.dedup();
            return Ok(SourcesSelector::Pids(pids));
        }
        let one = SourceArgs {
            process: OneProcess { process_id: self.process_ids.first().copied() },
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            diagnostic_port: self.diagnostic_port.clone(),
            dsrouter: self.dsrouter.clone(),
            reach: self.reach,
            command: self.command.clone(),
        };
        Ok(match one.selector(show_child_io)? {
            SourceSelector::Port(address) => SourcesSelector::Port(address),
            selector => SourcesSelector::One(selector),
        })
    }
}
