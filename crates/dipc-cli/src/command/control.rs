//! The commands that change one thing in a process: `resume`, `set-env`, `startup-hook`, `profiler`, `perfmap`.

use dipc_client::{Error, HResult, Target};

use crate::args::{
    AttachArgs, PerfMapCommand, ProfilerArgs, ProfilerCommand, RequestArgs, SetEnvArgs, StartupHookArgs,
};
use crate::exit::{Exit, Failure, Outcome};
use crate::process::target::Chosen;
use crate::render::report;

pub(crate) fn resume(args: &RequestArgs) -> Outcome {
    target(args, false)?.resume()?;
    Ok(Exit::Done)
}

pub(crate) fn set_env(args: &SetEnvArgs) -> Outcome {
    let target = target(&args.request, args.force)?;
    for (name, value) in &args.variables {
        target.set_environment_variable(name, Some(value)).map_err(failed)?;
    }
    for name in &args.unset {
        match target.set_environment_variable(name, None) {
            Err(Error::Refused { reason, .. }) if reason.hresult == HResult::ENVVAR_NOT_FOUND => {
                report::note(format_args!("{name} was not set"));
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
    report::detail("It is loaded when the runtime is resumed; one that runs already passes it over.");
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

fn target(args: &RequestArgs, force: bool) -> Result<Target, Failure> {
    let target = Chosen::new(&args.target, args.timeout)?.target;
    Ok(if force { target.without_safeguards() } else { target })
}

/// Converts an error; for a blocked command the help names the flag that sends it all the same.
fn failed(error: Error) -> Failure {
    let blocked = matches!(error, Error::Blocked { .. });
    let failure = Failure::from(error);
    if !blocked {
        return failure;
    }
    let help = match &failure.help {
        Some(help) => format!("{help}; --force sends it all the same"),
        None => "--force sends it all the same".into(),
    };
    failure.with_help(help)
}
