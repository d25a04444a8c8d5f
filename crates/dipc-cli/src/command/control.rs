//! The commands that change one thing in a process: `resume`, `set-env`, `startup-hook`, `profiler`,
//! `perfmap`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use dipc_client::{
    Deadline, Error, HResult, PerfMapType, PortEvent, PortServer, ProcessView, Startup, Target, Uuid,
};
use dipc_doctor::{Evidence, StartupEvidence, SuspendReason};

use crate::args::target::RequestArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::process::info::timeouts;
use crate::render::messages;

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
    /// Send the command even if it is known to end this runtime
    #[arg(long)]
    pub(crate) force: bool,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("a variable is set by NAME=VALUE, and removed by --unset NAME".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct StartupHookArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// The assembly, as the target sees its files; its StartupHook.Initialize() is run
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: String,
    /// Send the command even to a running runtime, or if the file is not visible: a runtime that cannot load
    /// it ends
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
    /// The class to request from the library
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
    /// The runtime's time limit for loading the profiler
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) attach_timeout: Duration,
    /// File with data to pass to the profiler
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) client_data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PerfMapCommand {
    /// Start writing the files from which perf takes the names of jitted code
    On {
        #[command(flatten)]
        request: RequestArgs,
        /// Files to write
        #[arg(long = "type", value_enum, default_value_t)]
        kind: PerfMapKind,
        /// Send the command even if it is known to end this runtime
        #[arg(long)]
        force: bool,
    },
    /// Stop writing them
    Off {
        #[command(flatten)]
        request: RequestArgs,
    },
}

/// The files to write for perf.
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

pub(crate) fn resume(args: &RequestArgs) -> Outcome {
    let target = target(args, false)?;
    target.resume()?;
    if let Some(pid) = target.pid() {
        for address in unserved_ports(pid, args.timeout) {
            resume_at_port(pid, &address, args.timeout)?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the ports without a listener that a runtime still waits at: each of its ports has to resume it.
fn unserved_ports(pid: u32, timeout: Duration) -> Vec<String> {
    if ProcessView::of(pid).startup() == Startup::Running {
        return Vec::new();
    }
    let examination = dipc_doctor::examine(pid, &std::env::temp_dir(), timeouts(timeout));
    let ports = examination.findings.into_iter().find_map(|finding| match finding.evidence {
        Evidence::Startup(StartupEvidence { reason: SuspendReason::Ports { unserved, .. }, .. }) => {
            Some(unserved)
        }
        _ => None,
    });
    ports.unwrap_or_default()
}

/// Listens at a port in place of the program that used to, which may have been killed, and resumes the
/// runtime from there.
fn resume_at_port(pid: u32, address: &str, timeout: Duration) -> Result<(), Failure> {
    refuse_other_user(pid, address)?;
    let port = PortServer::bind(Path::new(address))?;
    let deadline = Deadline::after(timeout);
    loop {
        match port.next(deadline) {
            Ok(PortEvent::Connected(runtime)) if runtime.pid().is_none_or(|of| of == pid) => {
                runtime.target().resume()?;
                messages::note(format_args!("Resumed at     : {address}, where no process listened"));
                return Ok(());
            }
            Ok(PortEvent::Error(error)) => messages::warning(error),
            Ok(_) => {}
            Err(error) if error.is_deadline() => {
                return Err(Failure::new(
                    Exit::TimedOut,
                    format_args!(
                        "resume: {address}: no process listened there, and the runtime did not connect"
                    ),
                )
                .with_help(
                    "the address of a process in a container is inside the container: run dipc there",
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Refuses an address that another user has chosen: dipc creates nothing where that user could not.
#[cfg(unix)]
fn refuse_other_user(pid: u32, address: &str) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(format!("/proc/{pid}")).map(|process| process.uid()) {
        Ok(user) if user != own => Err(Failure::new(
            Exit::Failed,
            format_args!(
                "resume: the runtime waits at {address}, where no process listens, and belongs to user {user}"
            ),
        )
        .with_help(format_args!("sudo -u '#{user}' dipc resume -p {pid} listens there as that user"))),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn refuse_other_user(_: u32, _: &str) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn set_env(args: &SetEnvArgs) -> Outcome {
    let target = target(&args.request, args.force)?;
    for (name, value) in &args.variables {
        target.set_environment_variable(name, Some(value)).map_err(failed)?;
    }
    for name in &args.unset {
        match target.set_environment_variable(name, None) {
            Err(Error::Refused { reason, .. }) if reason.hresult == HResult::ENVVAR_NOT_FOUND => {
                messages::note(format_args!("{name} was not set"));
            }
            outcome => outcome.map_err(failed)?,
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn startup_hook(args: &StartupHookArgs) -> Outcome {
    target(&args.request, args.force)?.apply_startup_hook(&args.path).map_err(failed)?;
    Ok(Exit::Done)
}

pub(crate) fn profiler(command: &ProfilerCommand) -> Outcome {
    match command {
        ProfilerCommand::Attach(args) => attach(args),
        ProfilerCommand::Startup(args) => startup_profiler(args),
    }
}

fn attach(AttachArgs { profiler, attach_timeout, client_data }: &AttachArgs) -> Outcome {
    let data = match client_data {
        None => Vec::new(),
        Some(path) => std::fs::read(path).map_err(|error| {
            Failure::new(Exit::Failed, format_args!("read the client data: {}: {error}", path.display()))
        })?,
    };
    let target = target(&profiler.request, false)?;
    target.attach_profiler(profiler.guid, &profiler.path, *attach_timeout, &data)?;
    Ok(Exit::Done)
}

fn startup_profiler(args: &ProfilerArgs) -> Outcome {
    target(&args.request, false)?.startup_profiler(args.guid, &args.path)?;
    messages::detail("It is loaded when the runtime is resumed; a runtime that already runs ignores it.");
    Ok(Exit::Done)
}

pub(crate) fn perf_map(command: &PerfMapCommand) -> Outcome {
    match command {
        PerfMapCommand::On { request, kind, force } => {
            target(request, *force)?.enable_perf_map((*kind).into()).map_err(failed)?;
        }
        PerfMapCommand::Off { request } => target(request, false)?.disable_perf_map()?,
    }
    Ok(Exit::Done)
}

/// Finds the target, with or without the safeguards against commands that end it.
fn target(args: &RequestArgs, force: bool) -> Result<Target, Failure> {
    let target = args.find()?.target;
    Ok(if force { target.without_safeguards() } else { target })
}

/// Converts an error. For a blocked command, the help names the flag that sends it anyway.
fn failed(error: Error) -> Failure {
    let blocked = matches!(error, Error::Blocked { .. });
    let failure = Failure::from(error);
    if !blocked {
        return failure;
    }
    let help = match &failure.help {
        Some(help) => format!("{help}; --force sends it anyway"),
        None => "--force sends it anyway".into(),
    };
    failure.with_help(help)
}
