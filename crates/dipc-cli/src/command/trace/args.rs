//! The arguments of `trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use dipc_client::BufferMode;

use crate::args::candidates;
use crate::args::format::ConvertFormat;
use crate::args::selection::SelectionArgs;
use crate::args::target::{self, ReachArgs};
use crate::duration;
use crate::exit::Failure;
use crate::process::target::parse_address;
use crate::record::source::SourceSelector;
use crate::record::stopping_event::{PayloadField, StoppingEvent};

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Path of the recording; '-' is standard output [default: APPNAME_PID_yyyyMMdd_HHmmss.nettrace, with _2 and so on where that exists]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Stop after this time: 30s, 1m30s, 500ms or dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Size of the buffer in the traced process, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) buffersize: u32,
    /// Policy when that is full; waiting needs .NET 11
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    pub(crate) buffering_mode: Buffering,
    /// Whether the runtime lists methods and modules at the end, which names of stack frames need
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) rundown: Option<bool>,
    /// Whether a runtime that waits at its start is let go once the session runs
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) resume_runtime: bool,
    #[command(flatten)]
    pub(crate) stopping: StoppingArgs,
    /// Record every other .NET process, too, that connects to the port or that the program starts, a file each
    #[arg(long)]
    pub(crate) follow: bool,
    /// Let the program that is started use this terminal; Ctrl-C then reaches it too
    #[arg(long, requires = "command")]
    pub(crate) show_child_io: bool,
    /// Also turn the recording into this, in a file beside it; see convert
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) format: Option<ConvertFormat>,
    /// Exit with 7 if the runtime lost events
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    pub(crate) timeout: Duration,
}

impl TraceArgs {
    /// The source that is recorded.
    pub(crate) fn source(&self) -> Result<SourceSelector, Failure> {
        self.source.selector(self.show_child_io)
    }
}

/// Which event ends the recording.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoppingArgs {
    /// Stop at an event of this provider, which must be among those that are recorded
    #[arg(id = "stopping_event_provider_name", long = "stopping-event-provider-name", value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
    /// Stop only at an event of this name, as dipc events shows it: GC/Start
    #[arg(id = "stopping_event_event_name", long = "stopping-event-event-name", value_name = "NAME", requires = "stopping_event_provider_name", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) event: Option<String>,
    /// Stop only at an event with these fields, values as dipc events shows them: Depth:2,Reason:Induced
    #[arg(
        id = "stopping_event_payload_filter",
        long = "stopping-event-payload-filter",
        value_name = "FIELD:VALUE,…",
        requires = "stopping_event_event_name",
        value_delimiter = ','
    )]
    pub(crate) payload: Vec<PayloadField>,
}

impl StoppingArgs {
    /// The event that the arguments name, if they name one.
    pub(crate) fn event(&self) -> Option<StoppingEvent> {
        let provider = self.provider.clone()?;
        Some(StoppingEvent { provider, name: self.event.clone(), payload: self.payload.clone() })
    }
}

/// Which process is recorded.
#[derive(Debug, Clone, Default, Args)]
#[group(id = "source", required = true, multiple = false, args = ["process_id", "name", "endpoint", "diagnostic_port", "command", "dsrouter"])]
pub(crate) struct SourceArgs {
    /// The process id
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    pub(crate) process_id: Option<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(candidates::names))]
    pub(crate) name: Option<String>,
    /// The process's diagnostic socket, as a sidecar sees it, or 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    pub(crate) endpoint: Option<String>,
    /// A port that the runtime connects to, or with ',connect' one that it listens on: a path, or 127.0.0.1:PORT
    #[arg(long, visible_alias = "dport", value_name = "ADDRESS[,listen|connect]")]
    pub(crate) diagnostic_port: Option<PortChoice>,
    /// The platform that dotnet-trace would start dotnet-dsrouter for
    #[arg(long, hide = true, value_name = "PLATFORM")]
    pub(crate) dsrouter: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// A program that is started and recorded from its first moment; its exit code is ours
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl SourceArgs {
    /// The source that the arguments name.
    fn selector(&self, show_child_io: bool) -> Result<SourceSelector, Failure> {
        if !self.command.is_empty() {
            return Ok(SourceSelector::Program { command: self.command.clone(), show_io: show_child_io });
        }
        let Some(PortChoice { address, is_ours }) = &self.diagnostic_port else {
            let (name, endpoint) = (self.name.as_ref(), self.endpoint.as_ref());
            return Ok(SourceSelector::Process(target::selector(
                self.process_id,
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
    /// Whether we listen and the runtime connects, and not the other way round.
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

/// The policy when the runtime's buffer is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffering {
    /// Events are dropped, and counted
    #[default]
    #[value(alias = "0")]
    Drop,
    /// The threads that write events wait
    #[value(alias = "1")]
    Block,
}

impl From<Buffering> for BufferMode {
    fn from(mode: Buffering) -> Self {
        match mode {
            Buffering::Drop => Self::DROP,
            Buffering::Block => Self::BLOCK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_ours_unless_it_is_said_to_be_the_runtimes() {
        let port = |is_ours| PortChoice { address: "/run/a.sock".into(), is_ours };
        assert_eq!("/run/a.sock".parse(), Ok(port(true)));
        assert_eq!("/run/a.sock,Listen".parse(), Ok(port(true)));
        assert_eq!("/run/a.sock,connect".parse(), Ok(port(false)));
        for wrong in ["", ",connect", "/run/a.sock,suspend"] {
            assert!(wrong.parse::<PortChoice>().is_err(), "{wrong}");
        }
    }
}
