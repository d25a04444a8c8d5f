//! `dipc convert`: a recording as a profile that other programs open.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use nettrace_export::{Format, Labels, TooLarge};

use crate::command::events::{self, EventsArgs, EventsFormat, FilterArgs, Order};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::profile::{self, By, ProfileArgs, Wanted};
use crate::render::output_file::{self, OutputFile, with_help};
use crate::render::{output, report};

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format to convert to
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) format: ConvertFormat,
    /// Path of the result; '-' is standard output [default: the recording's name with the format's ending]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Metric of the profile
    #[arg(long, value_enum)]
    pub(crate) by: Option<By>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// Keep threads apart in formats that show no time: each is the first frame of its stacks
    #[arg(long)]
    pub(crate) by_thread: bool,
    /// With an apostrophe before cells of csv that a spreadsheet would take for formulas, those that begin with = + - or @
    #[arg(long)]
    pub(crate) for_spreadsheets: bool,
}

/// The formats that a recording can be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// For <https://www.speedscope.app>: a flame graph over time, a profile for each thread
    Speedscope,
    /// Trace events, for chrome://tracing and <https://ui.perfetto.dev>
    Chromium,
    /// For <https://profiler.firefox.com>
    Firefox,
    /// For `go tool pprof` and everything that reads the same
    Pprof,
    /// A line for each stack, for flamegraph.pl, inferno and the like
    Folded,
    /// A page with a flame graph that can be searched; opens in any browser, loads nothing
    Flamegraph,
    /// A trace of Perfetto's own, for <https://ui.perfetto.dev> and trace_processor
    Perfetto,
    /// A line for each stretch of time, or each allocation and the like, with its stack
    Csv,
    /// The events themselves, one object a line, as `dipc events --format jsonl` prints them
    Jsonl,
    /// The format of recordings
    #[value(hide = true)]
    Nettrace,
}

impl ConvertFormat {
    const fn of_profile(self) -> Option<Format> {
        Some(match self {
            Self::Speedscope => Format::Speedscope,
            Self::Chromium => Format::Chromium,
            Self::Firefox => Format::Firefox,
            Self::Pprof => Format::Pprof,
            Self::Folded => Format::Folded,
            Self::Flamegraph => Format::Flamegraph,
            Self::Perfetto => Format::Perfetto,
            Self::Csv => Format::Csv,
            Self::Jsonl | Self::Nettrace => return None,
        })
    }

    /// Whether it is made of weighed stacks.
    pub(crate) fn is_profile(self) -> bool {
        self.of_profile().is_some()
    }

    const fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Perfetto)
    }

    fn extension(self) -> &'static str {
        self.of_profile().map_or("jsonl", Format::extension)
    }
}

pub(crate) fn run(args: &ConvertArgs) -> Outcome {
    if args.format == ConvertFormat::Nettrace {
        return Err(Failure::usage("a recording is in the nettrace format already"));
    }
    if args.for_spreadsheets && args.format != ConvertFormat::Csv {
        return Err(Failure::usage("--for-spreadsheets is for csv: other formats have no cells"));
    }
    let Some(format) = args.format.of_profile() else { return lines(args) };
    let path = output_path(args)?;
    if path.is_none() && args.format.is_binary() {
        output::refuse_terminal("this format")?;
    }
    let wanted = Wanted { by: args.by, tracks: format.needs_tracks(), kinds: true };
    let read = profile::read(&args.file, &args.profile, wanted)?;
    let title = title(&args.file);
    let exporter = concat!("dipc ", env!("CARGO_PKG_VERSION"));
    let labels = Labels {
        title: &title,
        exporter,
        by_thread: args.by_thread,
        for_spreadsheets: args.for_spreadsheets,
    };
    write(path.as_deref(), |out| nettrace_export::write(&read.profile, format, labels, out))?;
    Ok(read.exit)
}

/// The file beside a recording that `dipc trace --format` makes of it.
pub(crate) fn beside(recording: &Path, format: ConvertFormat) -> Result<PathBuf, Failure> {
    let path = recording.with_extension(format.extension());
    if path == recording {
        return Err(Failure::usage(format_args!("{}: would be replaced", path.display()))
            .with_help("name another file with -o"));
    }
    Ok(path)
}

/// Makes what was asked for with `dipc trace --format` of a recording, in a file beside it.
pub(crate) fn after_trace(recording: &Path, format: ConvertFormat) -> Outcome {
    run(&ConvertArgs {
        file: recording.to_owned(),
        format,
        output: None,
        by: None,
        profile: ProfileArgs::default(),
        by_thread: false,
        for_spreadsheets: false,
    })
}

/// The events, as `dipc events` prints them.
fn lines(args: &ConvertArgs) -> Outcome {
    if args.by.is_some() || args.profile.changes_stacks() {
        return Err(Failure::usage(
            "jsonl has events, not stacks: --by, --root, --hide, --fold-recursion, --by-task and --by-request mean nothing to it",
        ));
    }
    let path = output_path(args)?;
    let mut out = Out::open(path.as_deref())?;
    let destination = path.as_deref();
    let events = EventsArgs {
        file: args.file.clone(),
        format: EventsFormat::Jsonl,
        order: Order::Time,
        filter: FilterArgs {
            tid: args.profile.tid.clone(),
            from: args.profile.from,
            to: args.profile.to,
            ..FilterArgs::default()
        },
        // Names take a second reading, which a pipe cannot give.
        symbols: args.file.as_os_str() != "-",
        lines: args.profile.lines.clone(),
        stacks: true,
        payload: false,
    };
    let exit = events::write(&events, &mut out, &|error| failed(destination, error))?;
    out.close()?;
    Ok(exit)
}

/// Returns the path of the result; `None` is standard output.
fn output_path(args: &ConvertArgs) -> Result<Option<PathBuf>, Failure> {
    let extension = args.format.extension();
    match &args.output {
        Some(path) if path.as_os_str() == "-" => Ok(None),
        // A device or a pipe has the name that it has.
        Some(path) if output_file::is_device(path) => Ok(Some(path.clone())),
        Some(path) => Ok(Some(with_extension(path, extension))),
        None if args.file.as_os_str() == "-" => Ok(None),
        None => beside(&args.file, args.format).map(Some),
    }
}

/// Adds the ending that the format's files have, unless the name ends so already.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let last = extension.rsplit('.').next().unwrap_or(extension);
    if path.extension().is_some_and(|has| has.eq_ignore_ascii_case(last)) {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn title(file: &Path) -> String {
    let stem = file.file_stem().filter(|_| file.as_os_str() != "-");
    stem.map_or_else(|| "recording".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The destination of a result.
enum Out {
    File(OutputFile),
    StandardOutput(io::StdoutLock<'static>),
}

impl Out {
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::StandardOutput(output::stream())) };
        let mut file = OutputFile::open(path)?;
        file.begin()?;
        Ok(Self::File(file))
    }

    /// Leaves no part of a result in a file that was not there before.
    fn discard(self) {
        if let Self::File(file) = self {
            file.discard();
        }
    }

    /// Ends the result, and says where it is.
    fn close(self) -> Result<(), Failure> {
        if let Self::File(mut file) = self {
            file.close()?;
            report::note(format_args!("Written        : {file}"));
        }
        Ok(())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::StandardOutput(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::StandardOutput(out) => out.flush(),
        }
    }
}

/// Writes a result, and says where it is.
fn write(path: Option<&Path>, with: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 18, Out::open(path)?);
    let written = with(&mut out).and_then(|()| out.flush());
    let (out, _) = out.into_parts();
    let Err(error) = written else { return out.close() };
    if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLarge>) {
        out.discard();
        return Err(refused(path, &error));
    }
    Err(failed(path, &error))
}

fn refused(path: Option<&Path>, error: &io::Error) -> Failure {
    let place = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
    Failure::new(Exit::Failed, format_args!("write: {place}: {error}")).with_help(
        "--fold-recursion and --hide make stacks shorter, --from, --to and --tid take less; \
         flamegraph and report topN write each name once",
    )
}

fn failed(path: Option<&Path>, error: &io::Error) -> Failure {
    let Some(path) = path else { return output::failed(error) };
    with_help(Failure::new(Exit::Failed, format_args!("write: {}: {error}", path.display())), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_ending_of_their_format() {
        for (name, extension, expected) in [
            ("x", "speedscope.json", "x.speedscope.json"),
            ("x.JSON", "speedscope.json", "x.JSON"),
            ("a.b", "html", "a.b.html"),
            ("a.html", "html", "a.html"),
        ] {
            assert_eq!(with_extension(Path::new(name), extension), PathBuf::from(expected));
        }
    }
}
