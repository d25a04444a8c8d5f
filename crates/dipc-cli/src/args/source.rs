//! Arguments that select the process to record.

use std::ffi::OsString;
use std::str::FromStr;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;

use crate::args::candidates;
use crate::args::target::{self, ReachArgs};
use crate::exit::Failure;
use crate::process::target::{TargetSelector, parse_address};
use crate::record::source::SourceSelector;

/// The arguments of [`SourceArgs`] that name a source; mutually exclusive.
pub(crate) const SOURCES: [&str; 6] =
    ["process_id", "name", "endpoint", "diagnostic_port", "command", "dsrouter"];

/// The process ids that a command takes.
pub(crate) trait ProcessIds: Args {
    fn pids(&self) -> &[u32];
}

/// The id of one process.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct OneProcess {
    /// The process id
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    pub(crate) process_id: Option<u32>,
}

impl ProcessIds for OneProcess {
    fn pids(&self) -> &[u32] {
        self.process_id.as_slice()
    }
}

/// The ids of any number of processes, each of which is recorded in a file of its own.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct ManyProcesses {
    /// The process id, or several separated by commas; each gets its own file, with the id in its name
    #[arg(id = "process_id", short, long = "process-id", alias = "pid", value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    pub(crate) process_ids: Vec<u32>,
}

impl ProcessIds for ManyProcesses {
    fn pids(&self) -> &[u32] {
        &self.process_ids
    }
}

/// The selection of the process to record, or with [`ManyProcesses`] of several.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct SourceArgs<P: ProcessIds = OneProcess> {
    #[command(flatten)]
    pub(crate) process: P,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(candidates::names))]
    pub(crate) name: Option<String>,
    /// The process's diagnostic socket, as a sidecar sees it: its path, its folder, a pattern with '*', or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    pub(crate) endpoint: Option<String>,
    /// A port that the runtime connects to, or with ',connect' a port that it listens on: a path, or
    /// 127.0.0.1:PORT
    #[arg(long, visible_alias = "dport", value_name = "ADDRESS[,listen|connect]")]
    pub(crate) diagnostic_port: Option<PortChoice>,
    /// Platform for which dotnet-trace would start dotnet-dsrouter
    #[arg(long, hide = true, value_name = "PLATFORM")]
    pub(crate) dsrouter: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// A program to start and record from its first moment; dipc exits with the program's exit code
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl SourceArgs<ManyProcesses> {
    /// The sources that the arguments name; each process once.
    pub(crate) fn selectors(&self, show_child_io: bool) -> Result<Vec<SourceSelector>, Failure> {
        let mut pids = self.process.process_ids.clone();
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return Ok(vec![self.selector(show_child_io)?]);
        }
        Ok(pids.into_iter().map(|pid| SourceSelector::Process(TargetSelector::Pid(pid))).collect())
    }
}

impl<P: ProcessIds> SourceArgs<P> {
    /// Returns true if any of them names a source.
    pub(crate) fn is_given(&self) -> bool {
        let names = [&self.name, &self.endpoint, &self.dsrouter];
        !self.process.pids().is_empty()
            || names.iter().any(|name| name.is_some())
            || self.diagnostic_port.is_some()
            || !self.command.is_empty()
    }

    /// The source that the arguments name.
    pub(crate) fn selector(&self, show_child_io: bool) -> Result<SourceSelector, Failure> {
        if let Some(platform) = &self.dsrouter {
            return Err(no_router(platform));
        }
        if !self.command.is_empty() {
            let command = self.command.clone();
            return Ok(SourceSelector::Program { command, show_io: show_child_io, variables: Vec::new() });
        }
        let Some(PortChoice { address, is_ours }) = &self.diagnostic_port else {
            let (name, endpoint) = (self.name.as_ref(), self.endpoint.as_ref());
            return Ok(SourceSelector::Process(target::selector(
                self.process.pids().first().copied(),
                name,
                endpoint,
                self.reach,
            )?));
        };
        let address = parse_address(address, self.reach.tcp())?;
        Ok(if *is_ours { SourceSelector::Port(address) } else { SourceSelector::Runtime(address) })
    }
}

/// A port, and who listens on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortChoice {
    /// The address of the port.
    pub(crate) address: String,
    /// True if dipc listens and the runtime connects, rather than the other way round.
    pub(crate) is_ours: bool,
}

impl FromStr for PortChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, mode) = text.rsplit_once(',').unwrap_or((text, "listen"));
        if address.is_empty() {
            return Err("a port needs an address".into());
        }
        let is_ours = match mode.to_ascii_lowercase().as_str() {
            "listen" => true,
            "connect" => false,
            other => return Err(format!("'{other}' is neither listen nor connect")),
        };
        Ok(Self { address: address.to_owned(), is_ours })
    }
}

/// Returns the failure for `--dsrouter`: dotnet-trace starts dotnet-dsrouter by itself.
fn no_router(platform: &str) -> Failure {
    Failure::usage(format_args!("--dsrouter {platform}: dipc does not start dotnet-dsrouter")).with_help(format_args!(
        "start 'dotnet-dsrouter {platform}' in another terminal, and record with --endpoint and the socket that it makes in $TMPDIR or /tmp: dotnet-diagnostic-dsrouter-PID-…"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_ours_unless_marked_as_the_runtimes() {
        let port = |is_ours| PortChoice { address: "/run/a.sock".into(), is_ours };
        assert_eq!("/run/a.sock".parse(), Ok(port(true)));
        assert_eq!("/run/a.sock,Listen".parse(), Ok(port(true)));
        assert_eq!("/run/a.sock,connect".parse(), Ok(port(false)));
        for wrong in ["", ",connect", "/run/a.sock,suspend"] {
            assert!(wrong.parse::<PortChoice>().is_err(), "{wrong}");
        }
    }
}
