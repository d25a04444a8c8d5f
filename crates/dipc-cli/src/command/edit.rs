//! `dipc edit`: a part of a recording as a recording.

mod around;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clr_activity::{ActivityEvents, ActivityFinder, ActivityPattern};
use nettrace::RelativeTime;
use nettrace_edit::{CopySummary, Criteria, Error, Redaction, RedactionLetters, Redactor, Slice};
use nettrace_export::Pattern;
use nettrace_writer::Version;

use crate::args::format::Format;
use crate::args::times::TimeArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::names::Names;
use crate::inspect::recording::Recording;
use crate::inspect::redact;
use crate::inspect::rewrite::{Rewrite, Rewritten};
use crate::inspect::thread_times;
use crate::render::output_file::NameOrigin;
use crate::render::{messages, output, units};
use crate::size;
use around::AroundArgs;
use summary::{Summary, Written};

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Path of the new recording; '-' is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    times: TimeArgs,
    #[command(flatten)]
    around: AroundArgs,
    /// Only events of this provider; '*' matches any text; may be given several times
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Only events of this name or number; '*' matches any text; may be given several times
    #[arg(long, value_name = "NAME|ID")]
    event: Vec<String>,
    /// Only events of this thread; may be given several times
    #[arg(long, alias = "threads", value_name = "TID", value_delimiter = ',')]
    tid: Vec<u64>,
    /// Only events of this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u64>,
    /// Only events of this activity and of the activities within it: an id, as in dipc events, or a path, as
    /// in dipc report FILE requests; may be given several times
    ///
    /// Keeps the events of the activity itself, and everything that happened on a thread working for it:
    /// samples, allocations, exceptions. Task events show which threads work for an activity, as in dipc
    /// report FILE requests. Pauses of the garbage collector during the activity are kept, too, and the times
    /// when its threads did other work. Reads the file twice.
    #[arg(long, value_name = "ID|PATH", value_parser = parse_activity)]
    activity: Vec<ActivityPattern>,
    /// Only events of requests with this text in their route, path, address or kind, as in dipc report FILE
    /// requests --name; may be given several times; reads the file twice
    #[arg(long, value_name = "TEXT")]
    request: Vec<String>,
    /// Only the first N of these events in time order; reads the file twice
    #[arg(long, value_name = "N", conflicts_with = "tail")]
    head: Option<usize>,
    /// Only the last N of these events in time order; reads the file twice
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// With --from or --to: take method names only from the lists at the end of a recording, and skip all
    /// blocks of events outside that time; methods unloaded before the end have no names
    #[arg(long)]
    listed_names: bool,
    /// Replace text with the same number of letters: command-lines, paths, user-names, exception-messages,
    /// sql, urls, or Provider/Event.field, where '*' matches any text; may be given several times
    ///
    /// Classes are recognized by field names. Within one run, equal strings become equal letters, unless
    /// --redact-with says otherwise. Replaced fields are listed, and so are events with undescribed fields,
    /// which stay unchanged.
    #[arg(long, value_name = "CLASS|FIELD", value_delimiter = ',')]
    redact: Vec<Redaction>,
    /// Letters to replace text with
    #[arg(long, value_name = "LETTERS", value_enum, default_value_t, requires = "redact")]
    redact_with: LettersArg,
    /// Write parts of this length in time, OUT.001 and so on, each a whole recording with names
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with_all = ["head", "tail", "split_size"])]
    split_time: Option<Duration>,
    /// Write parts of about this many bytes of events: 100MB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with_all = ["head", "tail"])]
    split_size: Option<u64>,
    /// Leave out the stacks of events
    #[arg(long)]
    drop_stacks: bool,
    /// Write this version of the format [default: the recording's version, at least 4]
    #[arg(long, value_name = "VERSION", value_enum)]
    upgrade: Option<VersionArg>,
    /// Format of the result: json prints an object with counts
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The letters that replace strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum LettersArg {
    /// From a hash of the string, with a key that exists only in this run: equal strings stay equal
    #[default]
    Hash,
    /// An x for each letter: only the length remains
    X,
}

impl LettersArg {
    fn letters(self) -> RedactionLetters {
        match self {
            Self::Hash => RedactionLetters::by_text(),
            Self::X => RedactionLetters::Same,
        }
    }
}

/// A version that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VersionArg {
    /// Of .NET Core 3.0 and later
    #[value(name = "4")]
    V4,
    /// With names of threads, many processes and labels
    #[value(name = "6")]
    V6,
}

impl VersionArg {
    const fn version(self) -> Version {
        match self {
            Self::V4 => Version::V4,
            Self::V6 => Version::V6,
        }
    }
}

pub(crate) fn run(args: &EditArgs) -> Outcome {
    if args.format == Format::Json && args.output.as_os_str() == "-" {
        return Err(Failure::usage("-o -: standard output has the result with --format json")
            .with_help("name a file with -o"));
    }
    Names::warn_if_left_behind(&args.file);
    let times = args.times()?;
    let mut summary = Summary::default();
    let activities = args.activities(&mut summary)?;
    let exit = if args.split_time.is_some() || args.split_size.is_some() {
        write_parts(args, times, activities.as_ref(), &mut summary)?
    } else {
        write_one(args, times, activities, &mut summary)?
    };
    if args.format == Format::Json {
        output::print_json(&summary)?;
    }
    Ok(exit)
}

/// A time range, with a beginning, an end or both.
type Times = (Option<RelativeTime>, Option<RelativeTime>);

/// Writes one recording.
fn write_one(
    args: &EditArgs,
    times: Times,
    activities: Option<Arc<ActivityEvents>>,
    summary: &mut Summary,
) -> Outcome {
    let mut slice = args.slice(times, &args.redact_with.letters(), activities);
    if args.head.is_some() || args.tail.is_some() {
        if args.file.as_os_str() == "-" {
            return Err(Failure::usage("--head and --tail read a recording twice, which only a file can be"));
        }
        let (mut events, origin) = Recording::open(&args.file)?.into_parts();
        let limited = slice.limit(&mut events, args.head, args.tail).map_err(|error| match error {
            Error::Read(error) => origin.failed(&error),
            error => Failure::new(Exit::Failed, error),
        })?;
        if !limited {
            return Err(Failure::new(Exit::Failed, "no event matches the filters"));
        }
    }
    args.write(&mut slice, times, (&args.output, NameOrigin::User), summary)
}

/// Reads a recording to find the events of activities and requests.
fn find_activities(file: &Path, mut finder: ActivityFinder) -> Result<ActivityEvents, Failure> {
    let (events, origin) = Recording::open(file)?.into_parts();
    nettrace_export::report::read(events, |event| finder.add(event))
        .map_err(|error| origin.failed(&error))?;
    Ok(finder.finish())
}

fn parse_activity(text: &str) -> Result<ActivityPattern, String> {
    ActivityPattern::parse(text).ok_or_else(|| "an id, or a path as /#4711/1/2/, is expected".to_owned())
}

/// Maximum number of parts to write of a recording.
const MAX_PARTS: usize = 999;

/// Writes the parts of a recording.
fn write_parts(
    args: &EditArgs,
    (from, to): Times,
    activities: Option<&Arc<ActivityEvents>>,
    summary: &mut Summary,
) -> Outcome {
    if args.file.as_os_str() == "-" || args.output.as_os_str() == "-" {
        return Err(Failure::usage("--split-time and --split-size read and write files, not -"));
    }
    let cuts = cuts(args, (from, to))?;
    let mut exit = Exit::Done;
    let letters = args.redact_with.letters();
    for part in 0..=cuts.len() {
        let start = part.checked_sub(1).map_or(from, |before| Some(cuts[before]));
        let end = cuts.get(part).copied().or(to);
        let mut slice = args.slice((start, end), &letters, activities.cloned());
        let path = part_path(&args.output, part + 1);
        let outcome = args.write(&mut slice, (start, end), (&path, NameOrigin::Derived), summary)?;
        exit = if outcome == Exit::Done { exit } else { outcome };
    }
    Ok(exit)
}

/// Returns the times at which the parts are cut.
fn cuts(args: &EditArgs, (from, to): Times) -> Result<Vec<RelativeTime>, Failure> {
    let (events, origin) = Recording::open(&args.file)?.into_parts();
    let to = to.unwrap_or(RelativeTime::MAX);
    let mut events = events.in_time_order();
    let mut cuts = Vec::new();
    let (mut bytes, mut last) = (0, RelativeTime::MIN);
    while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
        let time = event.relative_time();
        if from.is_some_and(|from| time < from) || time >= to {
            continue;
        }
        let begins = match (args.split_time, args.split_size) {
            (Some(length), _) => {
                let length = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX).max(1);
                let start = from.unwrap_or(RelativeTime::START).as_nanos();
                let part = time.as_nanos().saturating_sub(start).div_euclid(length);
                let begin = RelativeTime::from_nanos(start.saturating_add(part.saturating_mul(length)));
                (part > 0 && cuts.last().is_none_or(|cut| *cut < begin)).then_some(begin)
            }
            // Events with the same time stay in one part.
            (None, Some(size)) => (bytes >= size && time > last).then_some(time),
            (None, None) => None,
        };
        if let Some(begin) = begins {
            cuts.push(begin);
            bytes = 0;
            if cuts.len() >= MAX_PARTS {
                return Err(Failure::usage(format_args!("more than {MAX_PARTS} parts")));
            }
        }
        bytes += event.payload().len() as u64 + HEADER_BYTES;
        last = time;
    }
    Ok(cuts)
}

/// The approximate size of an event in bytes, without its payload.
const HEADER_BYTES: u64 = 6;

/// Returns the path of a part: `out.002.nettrace`.
fn part_path(output: &Path, number: usize) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{number:03}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

impl EditArgs {
    /// The requested time range.
    fn times(&self) -> Result<Times, Failure> {
        if let Some((from, to)) = self.around.find(&self.file)? {
            return Ok((Some(from), Some(to)));
        }
        let times = self.times.range().resolve(&self.file)?;
        match times {
            (Some(from), Some(to)) if from >= to => Err(Failure::usage("--to: it is not after --from")),
            times => Ok(times),
        }
    }

    /// The slice of events in a time range.
    fn slice(
        &self,
        (from, to): Times,
        letters: &RedactionLetters,
        activities: Option<Arc<ActivityEvents>>,
    ) -> Slice {
        let criteria = Criteria::of_names(&self.provider, &self.event)
            .with_threads(self.tid.clone())
            .with_processes(self.pid.clone())
            .with_from(from)
            .with_to(to);
        let mut slice = Slice::new(criteria)
            .with_dropped_stacks(self.drop_stacks)
            .with_listed_names_only(self.listed_names);
        if !self.redact.is_empty() {
            slice = slice.with_redactor(Redactor::new(self.redact.clone(), letters.clone()));
        }
        if let Some(activities) = activities {
            slice = slice.with_predicate(move |event| activities.contains(event));
        }
        slice
    }

    /// Finds the events of the requested activities and requests; `None` without such a filter.
    fn activities(&self, summary: &mut Summary) -> Result<Option<Arc<ActivityEvents>>, Failure> {
        if self.activity.is_empty() && self.request.is_empty() {
            return Ok(None);
        }
        if self.file.as_os_str() == "-" {
            return Err(Failure::usage(
                "--activity and --request read a recording twice, which only a file can be",
            ));
        }
        let mut finder = ActivityFinder::new(self.activity.clone());
        if !self.request.is_empty() {
            let patterns: Vec<_> = self.request.iter().map(|text| Pattern::new(text)).collect();
            finder = finder.with_requests(move |span| {
                patterns.iter().any(|pattern| span.is_named(|name| pattern.matches(name)))
            });
        }
        let found = find_activities(&self.file, finder)?;
        if found.requests() == 0 && self.activity.is_empty() {
            return Err(Failure::new(Exit::Failed, "--request: the recording has no such request")
                .with_help("dipc report FILE requests lists its requests"));
        }
        if !self.request.is_empty() {
            messages::note(format_args!("Requests       : {}", found.requests()));
            summary.requests = Some(found.requests());
        }
        if found.left_out() > 0 {
            messages::warning(format_args!(
                "{} requests and stretches of the time of threads were left out: there were too many",
                found.left_out()
            ));
        }
        Ok(Some(Arc::new(found)))
    }

    /// Writes a part.
    fn write(
        &self,
        slice: &mut Slice,
        times: Times,
        (output, origin): (&Path, NameOrigin),
        summary: &mut Summary,
    ) -> Outcome {
        let rewrite =
            Rewrite::open(&self.file, None, (output, origin), self.upgrade.map(VersionArg::version))?;
        let rewrite = rewrite.copy(slice)?;
        warn_of_misses(&slice.misses(rewrite.events()));
        if let Some(redactor) = slice.redactor() {
            redact::report(redactor, "they are unchanged");
        }
        let Rewritten { version, copied, events, origin } = rewrite.finish()?;
        let CopySummary { read, kept, bytes, .. } = copied;
        if events.skipped_blocks() > 0 {
            let (blocks, skipped) = (events.skipped_blocks(), units::bytes(events.skipped_bytes()));
            messages::note(format_args!(
                "Skipped        : {blocks} blocks, {skipped}; {} read",
                units::bytes(origin.bytes())
            ));
        }
        messages::note(format_args!("Kept           : {kept} of {read} events, {bytes} bytes"));
        summary.add(output, times, Written { version, read, kept, bytes }, &events);
        if let Some(redactor) = slice.redactor() {
            summary.add_redactions(redactor);
        }
        if self.output.as_os_str() == "-" {
            thread_times::warn_if_left_behind(&self.file);
        } else {
            thread_times::carry_over(&self.file, output);
        }
        Ok(origin.report_damage(&events))
    }
}
