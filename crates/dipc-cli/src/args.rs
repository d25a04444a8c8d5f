//! The command line. Names and flags are those of the dotnet-* tools where these have them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCandidates;
use dipc_client::{Profile, Providers};
use dipc_sim::{Fault, Speed, Version};
use dipc_wire::PortConfig;

use crate::command::completions;
use crate::command::convert::ConvertArgs;
use crate::command::report::ReportArgs;
use crate::duration;
use crate::inspect::lines::LineArgs;

mod colon;
mod control;
mod doctor;
mod trace;

pub(crate) use colon::normalized;
pub(crate) use control::{
    AttachArgs, DumpArgs, PerfMapCommand, ProfilerArgs, ProfilerCommand, RequestArgs, SetEnvArgs,
    StartupHookArgs,
};
pub(crate) use doctor::DoctorArgs;

pub(crate) use trace::{PortsArgs, PortsFormat, StoppingArgs, TraceArgs};

/// Record, inspect and read .NET processes, with no .NET installed.
#[derive(Debug, Parser)]
#[command(name = "dipc", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing missing
  1  failed for a reason that no other code names
  2  wrong usage
  3  no such process or endpoint, or not reachable
  4  the runtime refused
  5  timed out
  6  done, but the input was cut or damaged; what is whole was used
  7  events were lost and --fail-on-loss was given";

/// The amount of messages on standard error.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Verbosity {
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more on standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the .NET processes that can be reached
    Ps(PsArgs),
    /// Show what a runtime says about itself
    Info(InfoArgs),
    /// Show the environment of a .NET process
    Env(InfoArgs),
    /// Find out why a .NET process cannot be seen or reached
    Doctor(DoctorArgs),
    /// Record events of a .NET process
    #[command(visible_alias = "collect")]
    Trace(TraceArgs),
    /// Listen on a diagnostic port, and show which runtimes connect and go
    Ports(PortsArgs),
    /// Write a core dump of a .NET process
    Dump(DumpArgs),
    /// Let a .NET process run that was started suspended
    Resume(RequestArgs),
    /// Set or remove environment variables of a .NET process
    SetEnv(SetEnvArgs),
    /// Load an assembly into a suspended .NET process before its program begins
    #[command(visible_alias = "hook")]
    StartupHook(StartupHookArgs),
    /// Load a profiler into a .NET process
    #[command(subcommand, disable_help_subcommand = true)]
    Profiler(ProfilerCommand),
    /// Let perf know the names of jitted code
    #[command(subcommand, disable_help_subcommand = true)]
    Perfmap(PerfMapCommand),
    /// Show what is in a recording: providers, kinds of events, losses
    Stat(StatArgs),
    /// Print the events of a recording
    Events(EventsArgs),
    /// Turn a recording into a profile that other programs open
    Convert(ConvertArgs),
    /// Show what a recording says: hot methods, collections, allocations and more
    Report(ReportArgs),
    /// List the profiles that `trace --profile` takes
    ListProfiles,
    /// Record a simulated runtime and read the recording back: everything in a few seconds, with no .NET
    Demo(DemoArgs),
    /// Simulate .NET runtimes, well behaved or not, to test tools against
    Sim(SimArgs),
    /// Print the completion script of a shell: source <(dipc completions bash)
    Completions {
        /// The shell
        shell: Shell,
    },
    /// The runtime that `demo` records
    #[command(hide = true)]
    DemoRuntime {
        /// The folder of its socket
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Path of the recording [default: a temporary file]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The folder of the socket [default: where a runtime's is, $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "connect")]
    pub(crate) dir: Option<PathBuf>,
    /// Connect to a port that a tool listens on, instead of listening; the runtime waits to be resumed unless ',nosuspend' follows
    #[arg(long, value_name = "ADDRESS[,nosuspend]", conflicts_with = "suspend")]
    pub(crate) connect: Option<PortConfig>,
    /// Wait at the start to be resumed
    #[arg(long)]
    pub(crate) suspend: bool,
    /// So many runtimes, with one pid and different keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// The recording that each session gets
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub(crate) replay: Option<PathBuf>,
    /// Speed as a multiple of the recorded one, or 'max' for no delays [default: 1]
    #[arg(long, value_name = "X|max", value_parser = parse_speed, requires = "replay")]
    pub(crate) speed: Option<Speed>,
    /// Play the recording over and over until the session is stopped
    #[arg(long, requires = "replay")]
    pub(crate) r#loop: bool,
    /// Make up so many events a second: Dipc-Simulated/Tick, and samples, for sessions that ask for them
    #[arg(long, value_name = "EVENTS_PER_S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Which .NET: 3.1, 6, 8, 9, 10, 11 or nativeaot-9
    #[arg(long, value_name = "VERSION", default_value = "10")]
    pub(crate) version: Version,
    /// Misbehave in this way; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) fault: Vec<Fault>,
    /// List the ways to misbehave
    #[arg(long)]
    pub(crate) list_faults: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Format of the list
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Time limit for each runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2s")]
    pub(crate) timeout: Duration,
}

/// Which process is meant.
#[derive(Debug, Clone, Default, Args)]
#[group(required = true, multiple = false, args = ["process_id", "name", "endpoint"])]
pub(crate) struct TargetArgs {
    /// The process id
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(completions::pids))]
    pub(crate) process_id: Option<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(completions::names))]
    pub(crate) name: Option<String>,
    /// The process's diagnostic socket, as a sidecar sees it, or 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    pub(crate) endpoint: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// The permitted reach of an address.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReachArgs {
    /// Let an address be on another machine: the protocol has neither passwords nor encryption
    #[arg(long)]
    pub(crate) any_host: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Which events are recorded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectionArgs {
    /// Providers: 'Name[:Keywords[:Level[:key=value;…]]],…', keywords in hexadecimal, quotes around values with , ; or =
    #[arg(long, value_name = "LIST", value_parser = parse_providers)]
    pub(crate) providers: Vec<Providers>,
    /// Profiles, separated by commas; see list-profiles
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_profile, add = ArgValueCandidates::new(completions::profiles))]
    pub(crate) profile: Vec<&'static Profile>,
    /// Groups of the runtime's own events, joined by '+': gc+exception
    #[arg(long, value_name = "KEYWORDS", value_parser = parse_clr_keywords)]
    pub(crate) clrevents: Option<u64>,
    /// Level of --clrevents: a number or a name [default: informational]
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) clreventlevel: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format of the events
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: EventsFormat,
    /// In which order
    #[arg(long, value_enum, default_value_t)]
    pub(crate) order: Order,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// With the stack of each event, as addresses
    #[arg(long)]
    pub(crate) stacks: bool,
    /// With the stack of each event, as names; reads the file twice, since most names stand at its end
    #[arg(long)]
    pub(crate) symbols: bool,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
    /// With the payload of each event, as hexadecimal bytes
    #[arg(long)]
    pub(crate) payload: bool,
}

/// Which events of a recording are shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FilterArgs {
    /// Only events of this provider; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Vec<String>,
    /// Only events of this name or number; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME|ID")]
    pub(crate) event: Vec<String>,
    /// Only events of this thread; may be given several times
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only events at or after this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) from: Option<Duration>,
    /// Only events before this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) to: Option<Duration>,
    /// Only the first N of these events
    #[arg(long, value_name = "N")]
    pub(crate) head: Option<u64>,
}

/// The format of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// The format of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// For people, a line an event
    #[default]
    Table,
    /// One array
    Json,
    /// One object a line
    Jsonl,
}

/// The order in which events are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// As they happened
    #[default]
    Time,
    /// As the runtime wrote them, which needs less memory
    File,
}

fn parse_providers(text: &str) -> Result<Providers, String> {
    Providers::parse(text).map_err(|error| error.to_string())
}

fn parse_profile(name: &str) -> Result<&'static Profile, String> {
    Profile::find(name.trim()).ok_or_else(|| {
        let names: Vec<_> = dipc_client::PROFILES.iter().map(|profile| profile.name).collect();
        format!("there is no such profile; there are {}", names.join(", "))
    })
}

fn parse_clr_keywords(text: &str) -> Result<u64, String> {
    text.split(['+', ',']).map(str::trim).try_fold(0, |bits, name| {
        dipc_client::clr_keyword(name).map(|keyword| bits | keyword).ok_or_else(|| {
            let names: Vec<_> = dipc_client::CLR_KEYWORDS.iter().map(|&(name, _)| name).collect();
            format!("'{name}' is no keyword of the runtime; there are {}", names.join(", "))
        })
    })
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.map(Speed::Recorded).ok_or_else(|| "a speed is a number above 0, or 'max'".into())
}

fn parse_level(text: &str) -> Result<u32, String> {
    dipc_client::parse_level(text)
        .ok_or_else(|| format!("a level is a number or one of {}", dipc_client::LEVEL_NAMES.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn trace(arguments: &str) -> TraceArgs {
        let words = ["dipc", "trace"].into_iter().chain(arguments.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Trace(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn dotnet_trace_command_lines_are_understood() {
        let args = trace(
            "--process-id 7 --duration 00:00:00:30 --buffersize 64 --rundown false --output x.nettrace --format Speedscope",
        );
        assert_eq!(args.source.process_id, Some(7));
        assert_eq!(args.duration, Some(Duration::from_secs(30)));
        assert_eq!((args.buffersize, args.rundown), (64, Some(false)));
        assert_eq!(args.output.as_deref(), Some("x.nettrace".as_ref()));
        assert!(args.resume_runtime);
        assert_eq!(args.format, Some(crate::command::convert::ConvertFormat::Speedscope));

        let args = trace(
            "-n app --profile gc-collect,database --clrevents gc+Exception --clreventlevel verbose --rundown",
        );
        assert_eq!(
            args.selection.profile.iter().map(|p| p.name).collect::<Vec<_>>(),
            ["gc-collect", "database"]
        );
        assert_eq!((args.selection.clrevents, args.selection.clreventlevel), (Some(0x8001), Some(5)));
        assert_eq!(args.rundown, Some(true));
    }

    #[test]
    fn a_simulation_takes_what_fits_together() {
        let parse =
            |arguments: &str| Cli::try_parse_from(["dipc", "sim"].into_iter().chain(arguments.split(' ')));
        for good in [
            "--version 3.1 --count 1000 --connect /run/port.sock,nosuspend",
            "--replay a.nettrace --speed max --loop --dir /tmp",
            "--replay a.nettrace --speed 2.5 --fault never-stop --fault close-in-stream:10",
            "--rate 1000 --suspend",
            "--list-faults",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "--speed max",
            "--loop",
            "--replay a --rate 5",
            "--replay a --speed 0",
            "--replay a --speed NaN",
            "--fault explode",
            "--version 7",
            "--count 0",
            "--connect a --dir b",
            "--connect a --suspend",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn collect_is_trace_and_exactly_one_target_is_needed() {
        assert!(Cli::try_parse_from(["dipc", "collect", "-p", "1"]).is_ok());
        assert!(Cli::try_parse_from(["dipc", "trace"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "1", "-n", "x"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "0"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "-5"]).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_value_is_said() {
        for (arguments, message) in [
            (["--providers", "A:1:loud"], "at character 5: level 'loud'"),
            (["--profile", "nosuch"], "there are dotnet-common, "),
            (["--clrevents", "gc+nosuch"], "'nosuch' is no keyword"),
            (["--duration", "30"], "'30' has no unit"),
            (["--buffersize", "0"], "0 is not in 1.."),
        ] {
            let words = ["dipc", "trace", "-p", "1"].into_iter().chain(arguments);
            let error = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
