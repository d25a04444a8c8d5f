//! `dipc dump strip`: a copy of a core dump without strings and buffers, and a list of what a core dump
//! discloses.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use clr_dump::{Amount, CoreFile, StrippedCore, WrittenCopy};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_source::Source;
use crate::render::escape::escape_controls;
use crate::render::output_file::{NameOrigin, OutputFile, is_device, is_same_file};
use crate::render::{messages, output, units, width};

#[derive(Debug, Args)]
pub(super) struct StripArgs {
    /// The core dump
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: PathBuf,
    /// Path of the copy
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "privacy")]
    output: Option<PathBuf>,
    /// Show what the core dump discloses about the program; without -o nothing is written
    #[arg(long)]
    privacy: bool,
    /// Remove the program's numbers, too: of fields, static fields, boxes and array elements
    ///
    /// What remains: lengths of strings and arrays, counts of the framework's collections, addresses (and
    /// numbers that happen to be one), fields of exceptions, delegates and the framework's threads, locks,
    /// tasks and timers, states of async methods; constants, attributes, names and paths.
    #[arg(long)]
    no_numbers: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &StripArgs) -> Outcome {
    let source = Source::open(&args.core)?;
    let core = source.core().ok_or_else(|| Failure::usage("dump strip: it is not a core dump"))?;
    let failed = |error: clr_dump::Error| {
        Failure::new(Exit::Failed, format_args!("dump strip: {}: {error}", args.core.display()))
    };
    // The failure of a runtime that cannot be read has its help.
    source.runtime()?;
    let stripped =
        if args.no_numbers { StrippedCore::without_numbers(core) } else { StrippedCore::new(core) };
    let stripped = stripped.map_err(failed)?;
    let written = args.output.as_ref().map(|path| write(&stripped, &args.core, path)).transpose()?;
    let report = Report::new(core, &stripped, args.output.as_deref().zip(written));
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Table => {
            if args.privacy {
                output::print(report.text(width::of_output()))?;
            }
            if let Some((path, written)) = args.output.as_ref().zip(written) {
                messages::note(format_args!(
                    "Kept           : {} of {} of memory",
                    units::bytes(written.kept_bytes),
                    units::bytes(written.kept_bytes.saturating_add(written.removed_bytes))
                ));
                output::print(format_args!("{}\n", path.display()))?;
            }
        }
    }
    Ok(source.exit())
}

/// Writes the copy.
fn write(stripped: &StrippedCore<'_>, core: &Path, path: &Path) -> Result<WrittenCopy, Failure> {
    if path.as_os_str() == "-" || is_device(path) {
        return Err(Failure::usage("dump strip: the copy is written at offsets: -o takes a regular file"));
    }
    if is_same_file(core, path) {
        return Err(Failure::usage(format_args!("dump strip: {} is the core dump itself", path.display())));
    }
    let mut output = OutputFile::beside(path, NameOrigin::User)?;
    output.begin()?;
    let write = |mut file: &File| {
        owner_only(file)?;
        file.set_len(0)?;
        let written = stripped
            .write(|at, bytes| {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(bytes)
            })
            .map_err(std::io::Error::other)?;
        // Pages of zeros at the end are not written.
        file.set_len(written.file_bytes)?;
        Ok(written)
    };
    let written = output.file().map_or_else(|| Err(std::io::Error::other("it is closed")), write);
    let written = written.map_err(|error| output.failed("write", &error))?;
    output.close()?;
    Ok(written)
}

/// Lets others not read the copy: types, methods and paths are still in it.
#[cfg(unix)]
fn owner_only(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn owner_only(_: &File) -> std::io::Result<()> {
    Ok(())
}

/// The personal data found in a core dump, and the copy of it.
#[derive(Debug, Serialize)]
struct Report<'r> {
    /// The command line; the notes of a core dump have its first 79 bytes.
    command_line: Option<&'r str>,
    /// The names of the environment variables; null if they were not found.
    environment: Option<Vec<String>>,
    memory_bytes: u64,
    /// True if the heap is in the core dump.
    has_heap: bool,
    strings: Counted,
    /// Arrays of bytes, characters, numbers and structures without references.
    buffers: Counted,
    /// Free memory between objects, which can have the contents of former ones.
    free: Counted,
    mapped_files: usize,
    /// True for a copy without these.
    stripped: bool,
    /// True for such a copy without numbers, too.
    without_numbers: bool,
    copy: Option<Copy<'r>>,
}

#[derive(Debug, Serialize)]
struct Counted {
    objects: u64,
    bytes: u64,
}

impl From<Amount> for Counted {
    fn from(amount: Amount) -> Self {
        Self { objects: amount.objects, bytes: amount.bytes }
    }
}

#[derive(Debug, Serialize)]
struct Copy<'r> {
    path: &'r Path,
    kept_bytes: u64,
    removed_bytes: u64,
}

impl<'r> Report<'r> {
    fn new(core: &'r CoreFile, stripped: &StrippedCore<'_>, copy: Option<(&'r Path, WrittenCopy)>) -> Self {
        let contents = stripped.contents();
        let environment = core.environment_names().filter(|names| !names.is_empty());
        Self {
            command_line: core.process().map(|process| &*process.arguments),
            environment: environment.filter(|_| !core.is_stripped()),
            memory_bytes: core.memory_bytes(),
            has_heap: contents.has_heap,
            strings: contents.strings.into(),
            buffers: contents.buffers.into(),
            free: contents.free.into(),
            mapped_files: core.files().len(),
            stripped: core.is_stripped(),
            without_numbers: core.is_without_numbers(),
            copy: copy.map(|(path, written)| Copy {
                path,
                kept_bytes: written.kept_bytes,
                removed_bytes: written.removed_bytes,
            }),
        }
    }

    fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        let mut fact = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12}: {}", escape_controls(value));
        };
        if self.stripped {
            let numbers = if self.without_numbers { ", numbers in fields and static fields" } else { "" };
            let removed = [
                "yes: the contents of strings, arrays",
                numbers,
                ", environment and command line are removed",
            ];
            fact("Stripped", &removed.concat());
        }
        fact("Command line", self.command_line.filter(|line| !line.is_empty()).unwrap_or("not in the notes"));
        match &self.environment {
            Some(names) => {
                let count = units::counted(names.len() as u64, "variable", "variables");
                fact("Environment", &format!("{count} with their values: {}", names.join(", ")));
            }
            None => fact("Environment", "not found; copies of it can be in native memory"),
        }
        let amount = |of: &Counted, one, many| {
            format!("{}, {}", units::counted(of.objects, one, many), units::bytes(of.bytes))
        };
        if self.has_heap {
            fact("Strings", &amount(&self.strings, "string", "strings"));
            fact("Buffers", &amount(&self.buffers, "array without references", "arrays without references"));
            fact("Free", &format!("{}, with the contents of former objects", units::bytes(self.free.bytes)));
        } else {
            fact("Heap", "not in the dump, but for parts of it that stacks and exceptions refer to");
        }
        fact(
            "Memory",
            &format!("{} with native memory, stacks and registers", units::bytes(self.memory_bytes)),
        );
        fact(
            "Files",
            &units::counted(self.mapped_files as u64, "mapping with its path", "mappings with their paths"),
        );
        width::wrapped(&text, width)
    }
}
