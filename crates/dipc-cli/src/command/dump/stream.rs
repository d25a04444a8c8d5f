//! `dipc dump --stream`: a core dump by reading the process from outside, written where dipc runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::CollectArgs;
use crate::compression::OutputCompression;
use crate::exit::Outcome;
use crate::{duration, size};

/// Arguments of core dumps that dipc writes itself.
#[derive(Debug, Clone, Args)]
pub(super) struct StreamArgs {
    /// Read the process's memory from outside and write the dump here, not on the target's filesystem; -o -
    /// writes to standard output
    ///
    /// For containers without a disk, runtimes without createdump, and programs of any kind. Needs permission
    /// to trace the process. The process is stopped while its memory is copied, and continues even if dipc is
    /// killed. Linux only.
    #[arg(long, conflicts_with_all = ["diag", "crashreport", "force"])]
    pub(super) stream: bool,
    /// Maximum time for which the process is stopped; memory not copied by then is left out, the largest
    /// parts first
    ///
    /// Stacks, and the data of threads that 'dump analyze' reads, are copied before all other memory.
    /// Stopping the threads and reading their registers can take a few milliseconds more.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s", requires = "stream")]
    pub(super) pause: Duration,
    /// Maximum amount of memory to copy; the largest parts are left out
    ///
    /// Stacks, and the data of threads that 'dump analyze' reads, are copied first, and the heap last: 5MB
    /// suffice for most programs.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "stream")]
    pub(super) max_size: Option<u64>,
    /// Compress the dump [default: gzip if the name ends in .gz, else none]
    #[arg(long, value_enum, value_name = "FORMAT", requires = "stream")]
    pub(super) compress: Option<OutputCompression>,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn run(args: &CollectArgs) -> Outcome {
    use dipc_collect::core::{CoreKind, CoreSettings};
    use jiff::Zoned;

    use super::{DumpKind, REQUEST_TIMEOUT, file_name};
    use crate::args::format::Format;
    use crate::args::target::without_pid;
    use crate::exit::{Exit, Failure};
    use crate::record::process_core::{CorePlace, write};
    use crate::render::messages;
    use crate::render::output;
    use crate::render::output_file::NameOrigin;

    let kind = match args.kind {
        DumpKind::Full => CoreKind::Full,
        DumpKind::Heap => CoreKind::Heap,
        DumpKind::Mini => CoreKind::Mini,
        DumpKind::Triage => {
            return Err(Failure::usage("dump: --type triage: only the runtime can leave out personal data")
                .with_help("--type mini is as small, but has the strings of the process; without --stream the runtime writes a triage dump"));
        }
    };
    let pid = match args.target.process_id {
        Some(pid) => Some(pid),
        None => args.target.find(REQUEST_TIMEOUT.min(args.timeout))?.target.pid(),
    };
    let pid = pid.ok_or_else(|| without_pid("dump: --stream"))?;
    let is_standard_output = args.output.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if is_standard_output && args.format == Format::Json {
        return Err(Failure::usage("dump: --format json: the dump goes to standard output"));
    }
    let path = args.output.clone().unwrap_or_else(|| {
        let extension = match args.stream.compress {
            Some(OutputCompression::Gzip) => ".gz",
            Some(OutputCompression::None) | None => "",
        };
        let mut name = file_name(Some(pid), &Zoned::now()).into_os_string();
        name.push(extension);
        PathBuf::from(name)
    });
    if args.stream.compress.is_none()
        && let Some(format) = OutputCompression::unsupported(&path)
    {
        return Err(Failure::usage(format_args!(
            "dump: {}: dipc does not compress as {format}",
            path.display()
        ))
        .with_help(
            "a name that ends in .gz compresses as gzip; --compress none writes as it is, whatever the name",
        ));
    }
    let settings = CoreSettings::new(kind, args.stream.pause).with_max_bytes(args.stream.max_size);
    let compression = args.stream.compress.unwrap_or_else(|| OutputCompression::of_path(&path));
    let origin = if args.output.is_some() { NameOrigin::User } else { NameOrigin::Chosen };
    let place = if is_standard_output { CorePlace::StandardOutput } else { CorePlace::File(&path, origin) };
    let written = write(pid, &settings, compression, place)?;
    messages::note(format_args!("Stopped        : {pid}, for {}", duration::display(written.copy.paused)));
    if written.copy.paused > settings.pause {
        messages::note(format_args!(
            "Overrun        : --pause is {}: stopping the threads, and reading their registers and the list of memory, took the rest",
            duration::display(settings.pause)
        ));
    }
    messages::note(format_args!("Written        : {}", written.amounts()));
    let copied = &written.copy.copied;
    let omitted = copied.omitted_bytes;
    if omitted > 0 {
        let limit = match (copied.size_reached, copied.time_reached) {
            (true, false) => "--max-size",
            (false, true) => "--pause",
            _ => "--pause and --max-size",
        };
        messages::warning(format_args!(
            "dump: {} of memory were left out for {limit}; stacks were copied first, the heap last",
            crate::render::units::bytes(omitted)
        ));
    }
    match (&written.path, args.format) {
        (None, _) => {}
        (Some(_), Format::Json) => output::print_json(&Written::new(&written, kind))?,
        (Some(path), Format::Table) => output::print(format_args!("{}\n", path.display()))?,
    }
    Ok(if omitted > 0 { Exit::Incomplete } else { Exit::Done })
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn run(_: &CollectArgs) -> Outcome {
    Err(crate::exit::Failure::usage("dump: --stream: only on Linux"))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(serde::Serialize)]
struct Written<'d> {
    path: Option<&'d std::path::Path>,
    #[serde(rename = "type")]
    kind: &'static str,
    threads: usize,
    /// Bytes of memory in the dump, including memory that the process has never touched.
    memory_bytes: u64,
    /// Bytes that are not zero.
    copied_bytes: u64,
    /// Bytes that were left out for the limits.
    omitted_bytes: u64,
    /// Bytes that the kernel did not let be read.
    unreadable_bytes: u64,
    paused_ms: u128,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl<'d> Written<'d> {
    fn new(
        written: &'d crate::record::process_core::WrittenCore,
        kind: dipc_collect::core::CoreKind,
    ) -> Self {
        let copied = &written.copy.copied;
        Self {
            path: written.path.as_deref(),
            kind: kind.name(),
            threads: written.copy.threads,
            memory_bytes: copied.memory_bytes,
            copied_bytes: copied.copied_bytes,
            omitted_bytes: copied.omitted_bytes,
            unreadable_bytes: copied.unreadable_bytes,
            paused_ms: written.copy.paused.as_millis(),
        }
    }
}
