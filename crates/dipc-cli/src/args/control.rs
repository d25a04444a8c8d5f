//! Command lines of the commands that change something in a process: dumps, profilers, hooks, variables, perf maps.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use dipc_client::{DumpType, PerfMapType, Uuid};

use super::{Format, TargetArgs};
use crate::duration;

/// Which process, and how long it may take.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Time limit for the runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct SetEnvArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Variables to set
    #[arg(value_name = "NAME=VALUE", value_parser = parse_variable, required_unless_present = "unset")]
    pub(crate) variables: Vec<(String, String)>,
    /// Remove this variable; may be given several times
    #[arg(short, long, value_name = "NAME")]
    pub(crate) unset: Vec<String>,
    /// Send it even where the runtime is known to end of it
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartupHookArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// The assembly, as the target sees its files; its StartupHook.Initialize() is run
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: String,
    /// Send it to a runtime that runs already, or although the file is not seen: one that cannot load it ends
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfilerCommand {
    /// Load a profiler into a running process
    Attach(AttachArgs),
    /// Name the profiler that a suspended process loads when it is resumed
    Startup(ProfilerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ProfilerArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// The class that the library is asked for
    #[arg(long, value_name = "GUID")]
    pub(crate) guid: Uuid,
    /// The profiler's library, as the target sees its files
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: String,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) profiler: ProfilerArgs,
    /// Time limit of the runtime for loading the profiler
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) attach_timeout: Duration,
    /// A file whose bytes the profiler is handed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) client_data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PerfMapCommand {
    /// Begin writing the files by which perf names jitted code
    On {
        #[command(flatten)]
        request: RequestArgs,
        /// Which files
        #[arg(long = "type", value_enum, default_value_t)]
        kind: PerfMapKind,
        /// Send it even where the runtime is known to end of it
        #[arg(long)]
        force: bool,
    },
    /// End writing them
    Off {
        #[command(flatten)]
        request: RequestArgs,
    },
}

/// Which files are written for perf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerfMapKind {
    /// Both
    #[default]
    All,
    /// jit-PID.dump
    Jitdump,
    /// perf-PID.map
    Perfmap,
}

impl From<PerfMapKind> for PerfMapType {
    fn from(kind: PerfMapKind) -> Self {
        match kind {
            PerfMapKind::All => Self::ALL,
            PerfMapKind::Jitdump => Self::JIT_DUMP,
            PerfMapKind::Perfmap => Self::PERF_MAP,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Path of the dump, as the target sees its files; written by the target's user [default: ./core_PID_yyyyMMdd_HHmmss]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Content of the dump
    #[arg(long = "type", value_enum, ignore_case = true, default_value_t)]
    pub(crate) kind: DumpKind,
    /// The target says on its own console what it does
    #[arg(long)]
    pub(crate) diag: bool,
    /// Write a crash report beside the dump
    #[arg(long)]
    pub(crate) crashreport: bool,
    /// Ask for it even where the runtime cannot be reached any more afterwards
    #[arg(long)]
    pub(crate) force: bool,
    /// Time limit for the dump
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    pub(crate) timeout: Duration,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The content of a core dump, by dotnet-dump's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpKind {
    /// All memory, with the images of modules
    #[default]
    Full,
    /// Modules, threads, stacks, exceptions, handles, and all memory but images
    Heap,
    /// Modules, threads, exceptions, stacks
    Mini,
    /// As mini, without paths and other personal data
    Triage,
}

impl From<DumpKind> for DumpType {
    fn from(kind: DumpKind) -> Self {
        match kind {
            DumpKind::Full => Self::FULL,
            DumpKind::Heap => Self::WITH_HEAP,
            DumpKind::Mini => Self::NORMAL,
            DumpKind::Triage => Self::TRIAGE,
        }
    }
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("a variable is set by NAME=VALUE, and removed by --unset NAME".into()),
    }
}
