//! `dipc dump`: makes a process write a core dump of itself.

mod analyze;
mod stream;
mod strip;

pub(crate) use analyze::{awaits, dotnet_dump::join_command, locks, stacks, variables};

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use dipc_client::{
    Dump, DumpFlags, DumpType, Error, Hazard, OptionalFeature, ProcessState, ProcessView, WrittenDump,
};
use dipc_collect::staged::folder_of;
use jiff::Zoned;
use serde::Serialize;

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::messages;
use crate::render::output;
use crate::render::output_file::{note_overwritten, unused_names};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct DumpArgs {
    #[command(subcommand)]
    command: Option<DumpCommand>,
    #[command(flatten)]
    collect: CollectArgs,
}

/// The process and the dump.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).args(TARGETS))]
struct CollectArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Path of the dump, as the target sees its files; written by the target's user [default:
    /// ./core_PID_yyyyMMdd_HHmmss]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Content of the dump
    #[arg(long = "type", value_enum, ignore_case = true, default_value_t)]
    kind: DumpKind,
    /// Let the target write a log on its own console
    #[arg(long)]
    diag: bool,
    /// Write a crash report next to the dump
    #[arg(long)]
    crashreport: bool,
    /// Request the dump even if the runtime becomes unreachable afterwards
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    stream: stream::StreamArgs,
    /// Time limit for the dump
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    timeout: Duration,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The commands about written dumps.
#[derive(Debug, Subcommand)]
enum DumpCommand {
    /// Write a dump, the default: for compatibility with dotnet-dump
    #[command(hide = true)]
    Collect(CollectArgs),
    /// Show the contents of a core dump or of a process's memory, with no .NET installed
    ///
    /// Reads a process while it runs, without stopping it and without the help of its runtime: threads that
    /// are running at that moment may be shown incorrectly. Supports .NET 8, 9, 10 and 3.1.23, and NativeAOT
    /// of .NET 8 to 11, on x86-64 Linux, and .NET 10 and NativeAOT on arm64. A core dump can be of another
    /// processor than this machine's.
    Analyze(analyze::AnalyzeArgs),
    /// Copy a core dump without the program's strings and buffers, to pass it on
    ///
    /// The copy keeps the data that 'dump analyze' reads: threads, stacks, types, objects with their sizes
    /// and references, locks and async methods. All other memory is zeroed: the characters of strings, the
    /// elements of arrays of bytes, characters and numbers, 'fixed' buffers and inline arrays, the
    /// environment, the command line, native memory, and everything in stacks and registers except addresses
    /// and small numbers.
    ///
    /// What remains: numbers in fields (such as long, Guid, decimal and DateTime), in boxes, in array
    /// elements that also have references, and captured by lambdas; static numbers; constants and attributes
    /// in the metadata of assemblies; names of types and members; paths of mapped files.
    Strip(strip::StripArgs),
}

/// The content of a core dump, by dotnet-dump's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpKind {
    /// All memory, with the images of modules
    #[default]
    Full,
    /// Modules, threads, stacks, exceptions, handles, and all memory except images
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

/// The time limit for the requests before the dump.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &DumpArgs) -> Outcome {
    match &args.command {
        Some(DumpCommand::Analyze(args)) => analyze::run(args),
        Some(DumpCommand::Strip(args)) => strip::run(args),
        Some(DumpCommand::Collect(args)) => collect(args),
        None => collect(&args.collect),
    }
}

fn collect(args: &CollectArgs) -> Outcome {
    if args.stream.stream {
        return stream::run(args);
    }
    let target = args.target.find(REQUEST_TIMEOUT.min(args.timeout))?.target;
    let timeouts = target.timeouts().with_dump(args.timeout);
    let target = target.with_timeouts(timeouts);
    let target = if args.force { target.without_safeguards() } else { target };
    let view = target.pid().map(ProcessView::of);
    let path = match &args.output {
        Some(path) => absolute(path)?,
        None => unused(absolute(&file_name(target.pid(), &Zoned::now()))?, view.as_ref()),
    };
    if let Some(file) = view.as_ref().and_then(|view| view.locate(&path).ok()) {
        prepare(&path, &file)?;
    }
    let path = target_path(path)?;
    let flag = |wanted, flag| if wanted { flag } else { DumpFlags::NONE };
    let dump = Dump::new(path)
        .with_dump_type(args.kind.into())
        .with_flags(flag(args.diag, DumpFlags::LOGGING) | flag(args.crashreport, DumpFlags::CRASH_REPORT));
    messages::note(format_args!(
        "Writing {} to {} on the target's filesystem",
        kind(dump.dump_type),
        dump.path
    ));
    let written = target.dump(&dump).map_err(|error| unfinished(&error).unwrap_or_else(|| failed(error)))?;
    verify(&dump, &written);
    match args.format {
        Format::Json => output::print_json(&Written::new(&dump, &written))?,
        Format::Table => output::print(format_args!("{}\n", dump.path))?,
    }
    Ok(Exit::Done)
}

/// The absolute path. As with dotnet-dump, a relative path starts at the user's working directory, not the
/// target's.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::new(Exit::Failed, format_args!("dump: {}: {error}", path.display())))
}

/// The path that is sent.
fn target_path(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        Failure::usage(format_args!(
            "dump: {}: the path is not valid UTF-8, and cannot be sent",
            path.display()
        ))
    })
}

/// Prepares an existing file for being replaced. The runtime makes a new file readable to its user alone, but
/// keeps the permissions of an existing one.
fn prepare(path: &Path, file: &Path) -> Result<(), Failure> {
    let Ok(metadata) = file.metadata() else { return Ok(()) };
    if !metadata.is_file() {
        return Err(Failure::usage(format_args!("dump: {}: it is not a regular file", path.display()))
            .with_help(
                "at a pipe the runtime waits for a reader, and writes no other dump meanwhile: name a file",
            ));
    }
    note_overwritten(path, &metadata);
    if let Err(error) = hide(file, &metadata) {
        messages::warning(format_args!("dump: {}: others may read it: {error}", path.display()));
    }
    Ok(())
}

/// Removes the permission to read a file from all but its owner.
#[cfg(unix)]
fn hide(file: &Path, metadata: &Metadata) -> io::Result<()> {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS_READ: u32 = 0o044;
    let mode = metadata.permissions().mode();
    if mode & OTHERS_READ == 0 {
        return Ok(());
    }
    fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o7777 & !OTHERS_READ))
}

#[cfg(not(unix))]
fn hide(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The path, or a similar one if the target already has such a file, or a link, which the runtime would
/// follow.
fn unused(path: PathBuf, view: Option<&ProcessView>) -> PathBuf {
    let folder = view.and_then(|view| view.locate(folder_of(&path)).ok());
    let is_free = |path: &PathBuf| match (&folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name).symlink_metadata().is_err(),
        _ => true,
    };
    let free = unused_names(&path).find(is_free);
    free.unwrap_or(path)
}

/// `core_<pid>_<yyyyMMdd>_<HHmmss>`: as dotnet-dump names its files on Linux, with the pid, so that two dumps
/// in the same second get different names.
fn file_name(pid: Option<u32>, now: &Zoned) -> PathBuf {
    let pid = pid.map(|pid| format!("_{pid}")).unwrap_or_default();
    format!("core{pid}_{}", now.strftime("%Y%m%d_%H%M%S")).into()
}

fn kind(dump_type: DumpType) -> &'static str {
    match dump_type {
        DumpType::FULL => "a full dump",
        DumpType::WITH_HEAP => "a dump with heaps",
        DumpType::TRIAGE => "a triage dump",
        _ => "a mini dump",
    }
}

/// Returns the failure if createdump had not ended at the time limit; `None` for other errors. A createdump
/// that is killed while it attaches to threads leaves them with its SIGSTOP, which stops the process.
fn unfinished(error: &Error) -> Option<Failure> {
    let Error::Transport(dipc_transport::Error::TimedOut { after, peer: Some(pid), peer_state, .. }) = error
    else {
        return None;
    };
    let Some(ProcessState::Dumping { createdump }) = peer_state else { return None };
    let failure = Failure::new(
        Exit::TimedOut,
        format_args!(
            "dump: process {pid}: its createdump, process {createdump}, did not end within {:.1} s",
            after.as_secs_f64()
        ),
    );
    Some(failure.with_help(format_args!(
        "it may still write (--timeout gives it longer) or hang: kill -KILL {createdump} ends it, kill -CONT {pid} lets \
         process {pid} run on; then dipc dump --stream -p {pid} writes a dump without createdump"
    )))
}

/// Prints the runtime's message, and returns the failure with its help.
fn failed(error: Error) -> Failure {
    if let Error::Refused { reason, .. } = &error {
        for line in reason.detail.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty())
        {
            messages::note(format_args!("runtime: {}", line.trim_end()));
        }
    }
    let blocked = matches!(
        &error,
        Error::Blocked { hazard: Hazard::NoCreateDump { .. } | Hazard::DumpInSingleFile { .. }, .. }
    );
    let help = error.help();
    let refusal = match &error {
        Error::Refused { reason, .. } => Some(reason.detail.is_none()),
        _ => None,
    };
    let failure = Failure::from(without_detail(error));
    match (help, refusal) {
        (Some(help), _) if blocked => failure.with_help(format_args!("{help}; --force requests it anyway")),
        (Some(help), Some(_)) => {
            failure.with_help(format_args!("{help}; dipc dump --stream does without createdump"))
        }
        (None, Some(true)) => failure.with_help(
            "a program that was compiled ahead of time (NativeAOT) writes no dumps; for others, the path is the target's, and written by the target's \
             user: does the folder exist there, and may that user write to it?",
        ),
        (None, Some(false)) => failure.with_help(
            "the path is the target's, and written by the target's user: does the folder exist there, and may that user write to it?",
        ),
        _ => failure,
    }
}

/// Removes the runtime's message, which has already been printed.
fn without_detail(error: Error) -> Error {
    match error {
        Error::Refused { command, address, mut reason } => {
            reason.detail = None;
            Error::Refused { command, address, reason }
        }
        other => other,
    }
}

/// Checks the file of a dump that the runtime reports as written.
fn verify(dump: &Dump, written: &WrittenDump) {
    match (&written.file, written.bytes) {
        (_, Some(0)) => messages::warning(format_args!("{} is empty", dump.path)),
        (Some(_), Some(bytes)) => {
            messages::note(format_args!("Written by {}: {bytes} bytes", written.command));
        }
        (Some(file), None) => {
            messages::warning(format_args!(
                "the runtime says that it wrote the dump, but {} is not there",
                file.display()
            ));
        }
        (None, _) => messages::note("Written; dipc cannot see from here whether it is there"),
    }
}

#[derive(Serialize)]
struct Written<'d> {
    /// The path as the target sees its files.
    path: &'d str,
    #[serde(rename = "type")]
    kind: &'static str,
    command: &'d str,
    /// The path at which this process reaches the file.
    file: Option<&'d Path>,
    bytes: Option<u64>,
    given_up: Vec<String>,
}

impl<'d> Written<'d> {
    fn new(dump: &'d Dump, written: &'d WrittenDump) -> Self {
        Self {
            path: &dump.path,
            kind: dump.dump_type.name().unwrap_or_default(),
            command: written.command,
            file: written.file.as_deref(),
            bytes: written.bytes,
            given_up: written.dropped_features.iter().map(OptionalFeature::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_dotnet_dump_names_them_with_the_pid() {
        let now = jiff::civil::date(2026, 11, 21).at(9, 2, 11, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(file_name(Some(7), &now), PathBuf::from("core_7_20261121_090211"));
        assert_eq!(file_name(None, &now), PathBuf::from("core_20261121_090211"));
    }

    #[test]
    fn a_createdump_that_could_not_attach_does_not_blame_the_path() {
        let help = |detail: &str| {
            let reason = dipc_wire::ServerError::new(dipc_client::HResult::FAIL).with_detail(detail);
            let address = dipc_client::Address::Unix("/tmp/socket".into());
            failed(Error::Refused { command: "GenerateCoreDump", address, reason }).help.unwrap()
        };
        for (reason, part) in
            [("No such process (3)", "try again"), ("Operation not permitted (1)", "tracer")]
        {
            let text = help(&format!("Problem suspending thread: ptrace(ATTACH, 4711) FAILED {reason}"));
            assert!(text.contains(part) && text.contains("dipc dump --stream"), "{text}");
            assert!(!text.contains("the path is the target's"), "{text}");
        }
        assert!(help("Could not create output file").starts_with("the path is the target's"));
    }

    #[test]
    fn paths_begin_where_the_user_is() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute(Path::new("core")).unwrap(), here.join("core"));
        assert_eq!(target_path(absolute(Path::new("/tmp/core")).unwrap()).unwrap(), "/tmp/core");
    }
}
