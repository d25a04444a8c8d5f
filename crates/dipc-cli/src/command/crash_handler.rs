//! `dipc crash-handler`: the kernel's core dumps of all processes, written by this program into one folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use crate::{duration, size};

#[derive(Debug, Args)]
pub(crate) struct CrashHandlerArgs {
    #[command(subcommand)]
    command: Option<CrashHandlerCommand>,
    /// The folder with the kernel's settings
    #[arg(long, value_name = "DIR", hide = true, global = true, default_value = "/proc/sys/kernel")]
    kernel: PathBuf,
    /// The file with the handler's settings
    #[arg(
        long,
        value_name = "FILE",
        hide = true,
        global = true,
        default_value = "/etc/dipc/crash-handler.json"
    )]
    settings: PathBuf,
}

#[derive(Debug, Subcommand)]
enum CrashHandlerCommand {
    /// Make dipc the kernel's handler of core dumps, or change its settings
    ///
    /// Writes kernel.core_pattern and kernel.core_pipe_limit, and keeps the values before for uninstall. They
    /// last until the machine starts again; put both in a file below /etc/sysctl.d to keep them.
    Install(InstallArgs),
    /// Restore the kernel's settings from before; the core dumps stay
    Uninstall,
    /// Show the handler, its settings and its core dumps; the default
    Status,
    /// Take a core dump from standard input, as the kernel calls it
    #[command(hide = true)]
    Take(TakeArgs),
}

#[derive(Debug, Args)]
struct InstallArgs {
    /// Folder for the core dumps, which only root can read
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/var/lib/dipc/crashes")]
    folder: PathBuf,
    /// Maximum size of the file of a core dump; the rest of the memory is left out
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8GB")]
    max_size: u64,
    /// Number of core dumps to keep; the oldest are removed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Space to leave free on the file system: for that, the oldest core dumps are removed, and new ones end
    /// early
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "1GB")]
    min_free: u64,
    /// Maximum time for which a process that has crashed waits for its core dump to be written; the rest of
    /// the memory is left out
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2m")]
    max_wait: Duration,
    /// Take .NET processes only: other processes leave no core dump
    #[arg(long)]
    dotnet_only: bool,
    /// Keep only copies without strings and buffers, as dump strip makes them; processes that it cannot read
    /// leave none
    #[arg(long)]
    privacy: bool,
    /// Replace another handler, such as systemd-coredump
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct TakeArgs {
    /// Process (%P)
    pid: u32,
    /// Thread (%I)
    tid: u32,
    /// Signal (%s)
    signal: i32,
    /// Time (%t)
    time: u64,
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn run(_: &CrashHandlerArgs) -> crate::exit::Outcome {
    Err(crate::exit::Failure::usage("crash-handler: only on Linux, on x86-64 and aarch64"))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use linux::run;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::env;
    use std::fmt::Write as _;
    use std::fs::{self, File};
    use std::io::{self, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    use std::path::Path;
    use std::process::Stdio;
    use std::time::Duration;

    use dipc_collect::crash_handler::{
        CoreNames, CrashedProcess, CutReason, Former, HandlerSettings, InstallError, KernelSettings,
        TakenCore, kept_cores, make_room, take,
    };
    use dipc_collect::staged::{StagedFile, write_private};
    use jiff::{Timestamp, tz::TimeZone};
    use serde::Serialize;

    use super::{CrashHandlerArgs, CrashHandlerCommand, InstallArgs, TakeArgs};
    use crate::duration;
    use crate::exit::{Exit, Failure, Outcome};
    use crate::record::own_program;
    use crate::render::{messages, output, units};

    /// Maximum time for the overview of a core dump, or its stripped copy.
    const READING: Duration = Duration::from_secs(300);

    pub(crate) fn run(args: &CrashHandlerArgs) -> Outcome {
        let kernel = KernelSettings::new(args.kernel.clone(), args.settings.clone());
        match &args.command {
            Some(CrashHandlerCommand::Install(install)) => self::install(&kernel, install),
            Some(CrashHandlerCommand::Uninstall) => uninstall(&kernel),
            None | Some(CrashHandlerCommand::Status) => status(&kernel, &args.settings),
            Some(CrashHandlerCommand::Take(take)) => {
                let result = take_core(&args.settings, take);
                if let Err(failure) = &result {
                    log(&failure.to_string());
                }
                result
            }
        }
    }

    fn failed(error: &InstallError) -> Failure {
        let failure = |exit| Failure::new(exit, format_args!("crash-handler: {error}"));
        match error {
            InstallError::OtherHandler(_) => {
                failure(Exit::Failed).with_help("--force replaces it, and uninstall restores it")
            }
            InstallError::UnsafePath(_) => failure(Exit::Failed)
                .with_help("install the program as root where only root can write, such as /usr/local/bin"),
            InstallError::TooLong(..) | InstallError::InvalidPath(_) => {
                failure(Exit::Failed).with_help("a program in /usr/local/bin has a path that is short enough")
            }
            InstallError::Io { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => failure(
                Exit::Failed,
            )
            .with_help("the kernel's settings are root's, and those of the host: run it there as root"),
            _ => failure(Exit::Failed),
        }
    }

    fn install(kernel: &KernelSettings, args: &InstallArgs) -> Outcome {
        let program = env::current_exe().map_err(|error| {
            Failure::new(Exit::Failed, format_args!("crash-handler: this program's file: {error}"))
        })?;
        if !args.folder.is_absolute() {
            return Err(Failure::usage(
                "crash-handler: --folder: the kernel runs the handler in /: name an absolute path",
            ));
        }
        let in_folder = |error| failed_at(&args.folder, &error);
        if !args.folder.exists() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&args.folder).map_err(in_folder)?;
        }
        let mode = fs::metadata(&args.folder).map_err(in_folder)?.mode();
        if mode & 0o022 != 0 {
            return Err(Failure::usage(format_args!(
                "crash-handler: {}: other users can write there",
                args.folder.display()
            ))
            .with_help("core dumps are files of root: name a folder of root's own"));
        }
        let settings = HandlerSettings {
            folder: args.folder.clone(),
            max_bytes: args.max_size,
            keep: args.keep.try_into().unwrap_or(usize::MAX),
            min_free_bytes: args.min_free,
            max_wait_seconds: args.max_wait.as_secs().max(1),
            dotnet_only: args.dotnet_only,
            privacy: args.privacy,
            former: Former::default(),
        };
        kernel.install(&program, &settings, args.force).map_err(|error| failed(&error))?;
        let now = kernel.current().map_err(|error| failed(&error))?;
        messages::note(format_args!("Core dumps     : {}", args.folder.display()));
        messages::note(
            "Until          : uninstall, or the next start of the machine; to keep them, in /etc/sysctl.d:",
        );
        print_settings(&now)
    }

    fn uninstall(kernel: &KernelSettings) -> Outcome {
        let former = kernel.uninstall().map_err(|error| failed(&error))?;
        messages::note("Restored       : the kernel's settings from before; core dumps stay");
        print_settings(&former)
    }

    /// Prints the kernel's settings as a file below `/etc/sysctl.d` has them.
    fn print_settings(settings: &Former) -> Outcome {
        output::print(format_args!(
            "kernel.core_pattern = {}\nkernel.core_pipe_limit = {}\n",
            settings.core_pattern, settings.core_pipe_limit
        ))?;
        Ok(Exit::Done)
    }

    /// The failure of a file or folder.
    fn failed_at(path: &Path, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format_args!("crash-handler: {}: {error}", path.display()))
    }

    fn status(kernel: &KernelSettings, path: &Path) -> Outcome {
        let pattern = kernel.current().map_err(|error| failed(&error))?.core_pattern;
        if !KernelSettings::is_ours(&pattern) {
            let to = match pattern.strip_prefix('|') {
                Some(command) => format!("given to {command}"),
                None => format!("files named {pattern}"),
            };
            output::print(format_args!("Not installed: core dumps are {to}\n"))?;
            return Ok(Exit::Done);
        }
        let settings = read_settings(path)?;
        let mut text = format!(
            "Installed: core dumps of {} in {}\nLimits: {} each, the last {}; {} stay free; processes wait up to {}{}\n",
            if settings.dotnet_only { ".NET processes" } else { "all processes" },
            settings.folder.display(),
            units::bytes(settings.max_bytes),
            settings.keep,
            units::bytes(settings.min_free_bytes),
            duration::display(settings.max_wait()),
            if settings.privacy { "; without strings and buffers" } else { "" },
        );
        let cores = kept_cores(&settings.folder).map_err(|error| failed_at(&settings.folder, &error))?;
        for core in cores.iter().rev() {
            let time = i64::try_from(core.time).ok().and_then(|time| Timestamp::from_second(time).ok());
            let time = time.map_or_else(String::new, |time| {
                time.to_zoned(TimeZone::system()).strftime("%F %T").to_string()
            });
            let file = core
                .files
                .iter()
                .find(|file| file.extension().is_some_and(|it| it == "gz" || it == "stripped"));
            let file = file.map_or_else(String::new, |file| file.display().to_string());
            let _ =
                writeln!(text, "{time}  {} ({})  {}  {file}", core.name, core.pid, units::bytes(core.bytes));
        }
        output::print(text)?;
        Ok(Exit::Done)
    }

    fn read_settings(path: &Path) -> Result<HandlerSettings, Failure> {
        HandlerSettings::read(path)
            .map_err(|error| failed_at(path, &error).with_help("dipc crash-handler install writes them"))
    }

    /// The facts of a core dump, in the file next to it.
    #[derive(Serialize)]
    struct Facts<'f> {
        #[serde(flatten)]
        process: &'f CrashedProcess,
        /// The bytes that the kernel wrote.
        core_bytes: u64,
        /// The reason for which the core dump ends early.
        cut: Option<CutReason>,
    }

    /// Takes a core dump that the kernel writes to standard input. The process waits only for that.
    fn take_core(settings: &Path, args: &TakeArgs) -> Outcome {
        let settings = read_settings(settings)?;
        let is_dotnet = dipc_doctor::has_runtime(args.pid);
        let process = CrashedProcess::read(args.pid, args.tid, args.signal, args.time, is_dotnet);
        if settings.dotnet_only && !process.is_dotnet {
            return Ok(Exit::Done);
        }
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Failure::new(
                Exit::Failed,
                format_args!(
                    "crash-handler: core dump of {} ({}): {what}: {error}",
                    process.name, process.pid
                ),
            )
        };
        let room = make_room(&settings).map_err(|error| failed("older core dumps", &error))?;
        let max_bytes = settings.max_bytes.min(room.unwrap_or(u64::MAX));
        let stdin = io::stdin();
        let taken = take(stdin.lock(), &settings.folder, !settings.privacy, max_bytes, settings.max_wait());
        let mut taken = taken.map_err(|error| failed("write", &error))?;
        // The kernel lets the process go once nothing reads the pipe.
        if let Ok(nothing) = File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(nothing);
        }
        if taken.cut == Some(CutReason::Size) && max_bytes < settings.max_bytes {
            taken.cut = Some(CutReason::NoSpace);
        }
        let names =
            CoreNames::new(&settings.folder, &process.name, process.pid, process.time, settings.privacy);
        let has_core = taken.core_bytes > 0;
        match (has_core, settings.privacy) {
            (false, _) => {}
            (true, true) => strip(&taken, &names).map_err(|why| failed("no copy without strings", &why))?,
            (true, false) => taken.staged.name_new(&names.core).map_err(|error| failed("name", &error))?,
        }
        let facts = Facts { process: &process, core_bytes: taken.core_bytes, cut: taken.cut };
        let facts = serde_json::to_vec_pretty(&facts).map_err(|error| failed("facts", &error))?;
        write_private(&names.facts, &facts).map_err(|error| failed("facts", &error))?;
        let CrashedProcess { name, pid, signal, .. } = &process;
        let place = if has_core { names.core.display().to_string() } else { "none kept".to_owned() };
        log(&format!("core dump of {name} ({pid}), signal {signal}: {place}"));
        if has_core && !settings.privacy {
            overview(&settings, &names).map_err(|why| failed("overview", &why))?;
        }
        // Its own is the newest, which stays.
        make_room(&settings).map_err(|error| failed("older core dumps", &error))?;
        Ok(Exit::Done)
    }

    /// Writes a copy without strings and buffers.
    fn strip(taken: &TakenCore, names: &CoreNames) -> Result<(), String> {
        // The core dump itself has no name.
        let core = format!("/proc/{}/fd/{}", std::process::id(), taken.file.as_raw_fd());
        let folder = names.core.parent().unwrap_or(Path::new("/"));
        let status = own_program::command().and_then(|mut command| {
            command.args(["dump", "strip"]).arg(core).arg("-o").arg(&names.core);
            command.env("TMPDIR", folder).stdout(Stdio::null()).stderr(Stdio::null());
            own_program::run(&mut command, READING)
        });
        let status = status.map_err(|error| error.to_string())?;
        match status {
            _ if names.core.exists() => Ok(()),
            Some(status) => Err(format!("dump strip: {status}")),
            None => Err(format!("dump strip: it took longer than {}", duration::display(READING))),
        }
    }

    /// Writes the overview of a core dump into the file next to it.
    fn overview(settings: &HandlerSettings, names: &CoreNames) -> io::Result<()> {
        let (file, staged) = StagedFile::create(&settings.folder)?;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        // Of a core dump without a runtime, it has the reason.
        let mut command = own_program::command()?;
        command.args(["--quiet", "dump", "analyze"]).arg(&names.core).env("TMPDIR", &settings.folder);
        own_program::run(command.stdout(file.try_clone()?).stderr(file), READING)?;
        staged.name_over(&names.overview)
    }

    /// Writes a line into the kernel's log: nobody sees what a handler prints.
    fn log(line: &str) {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        // Without the log there is no other place.
        let _ = fs::OpenOptions::new()
            .write(true)
            .open("/dev/kmsg")
            .and_then(|mut kmsg| kmsg.write_all(format!("<4>dipc: {line}\n").as_bytes()));
    }
}
