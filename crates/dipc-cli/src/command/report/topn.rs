//! `dipc report FILE topN`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use clr_events::code::CodeOrigin;
use nettrace_export::report::{TopReport, TopRow, blocked_methods, sort_top, top};
use nettrace_export::{FrameKind, Measure, Metric, NameForm, Profile, Unit};

use crate::args::format::Format;
use crate::args::profile::{MetricArg, ProfileArgs};
use crate::exit::Outcome;
use crate::inspect::profile::{self, ProfileRequest};
use crate::render::frame_name::FrameName;
use crate::render::table::{Align, Columns, heading};
use crate::render::{messages, output, units, width};

#[derive(Debug, Args)]
pub(crate) struct TopNArgs {
    /// Number of methods to show [default: 5, with --format json all]
    #[arg(short, long = "rows", alias = "number", value_name = "N")]
    number: Option<usize>,
    /// Order by the time in which a method was on the stack, not only at its leaf
    #[arg(long)]
    inclusive: bool,
    /// Only the time in which threads were blocked, by the program's own method that waited rather than the
    /// class library's methods that implement the wait
    #[arg(long, conflicts_with_all = ["idle", "no_blocked", "inclusive", "by"])]
    blocked: bool,
    /// Metric of the profile
    #[arg(long, value_enum)]
    by: Option<MetricArg>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    /// The name as tables show it.
    name: FrameName,
    exclusive_percent: f64,
    inclusive_percent: f64,
    blocked_percent: Option<f64>,
}

pub(super) fn run(file: &Path, args: &TopNArgs) -> Outcome {
    let mut options = args.profile.options(file)?;
    if args.format == Format::Json {
        options.names = NameForm::CSharp;
    }
    let request = ProfileRequest {
        metric: if args.blocked { Some(Metric::Wall) } else { args.by.map(MetricArg::metric) },
        tracks: false,
        kinds: false,
        idle_stacks: false,
    };
    let read = profile::read(file, &options, request)?;
    let frames = &read.profile.frames;
    let (total, blocked) =
        if args.blocked { (read.profile.blocked(), None) } else { (read.profile.total(), read.blocked) };
    let mut rows = top(&read.profile);
    if args.blocked {
        let weights: HashMap<_, _> = blocked_methods(&read.profile).into_iter().collect();
        rows.retain_mut(|row| {
            let weight = row.frame_id.and_then(|id| weights.get(&id)).copied();
            (row.exclusive, row.inclusive) = (weight.unwrap_or(0), weight.unwrap_or(0));
            weight.is_some()
        });
    }
    sort_top(&mut rows, args.inclusive);
    let frameless =
        rows.iter().filter(|row| row.is_root).map(|row| row.exclusive).fold(0, u64::saturating_add);
    let frameless = units::share(frameless, total);
    rows.retain(|row| !row.is_root);
    let nameless = nameless(&read.profile, &rows, total);
    match args.format {
        Format::Json => {
            rows.truncate(args.number.unwrap_or(usize::MAX));
            let mut report = TopReport::of_rows(&read.profile, rows, total, blocked);
            report.unverified = read.unverified;
            output::print_json(&report)?;
        }
        Format::Table => {
            let rows = rows.into_iter().take(args.number.unwrap_or(5)).map(|row| Row {
                name: FrameName::new(frames, row.frame_id, &row.frame),
                exclusive_percent: units::share(row.exclusive, total),
                inclusive_percent: units::share(row.inclusive, total),
                blocked_percent: blocked.map(|_| units::share(row.blocked, total)),
            });
            let rows: Vec<_> = rows.collect();
            let width = width::of_output();
            let mut text = table(&rows, args.inclusive, blocked.is_some_and(|blocked| blocked > 0), width);
            let unit = read.profile.measure.unit;
            let time = match unit {
                Unit::Nanoseconds => units::time(Duration::from_nanos(total)),
                Unit::Bytes => units::bytes(total),
                _ => units::count(total),
            };
            let measure = read.profile.measure;
            let is_of_processors = measure == Measure::CPU_TIME;
            let time = if is_of_processors {
                format!("{time} in {}", units::counted(read.profile.samples(), "sample", "samples"))
            } else {
                time
            };
            let has_sum = args.profile.no_blocked
                || is_of_processors
                || frameless >= LEAST_FRAMELESS
                || (read.profile.metric == Metric::Wall && !options.idle && nameless >= LEAST_NAMELESS);
            let ready = match read.without_processor {
                0 => String::new(),
                time => format!(
                    ", {} of it ready to run, without a processor",
                    units::time(Duration::from_nanos(time))
                ),
            };
            let sum = match profile::waiting(&read) {
                _ if args.blocked => Some(format!("\nblocked time: {time}{ready}")),
                Some(waiting) => Some(format!("\n{}: {time}, {waiting}", read.profile.measure.name)),
                None if has_sum => Some(format!("\n{}: {time}", read.profile.measure.name)),
                None => None,
            };
            if let Some(mut sum) = sum {
                if frameless >= LEAST_FRAMELESS {
                    let _ = write!(sum, "; {} without a stack", units::short_percent(frameless));
                }
                if nameless >= LEAST_NAMELESS {
                    let _ = write!(sum, "; {} in methods without a name", units::short_percent(nameless));
                }
                sum.push('\n');
                text.push_str(&width::wrapped(&sum, width));
            }
            if read.off_cpu > 0 && profile::is_regular(file) {
                text.push_str(&waits(&profile::read_off_cpu(file, &options)?, args.number.unwrap_or(5)));
            }
            output::print(text)?;
        }
    }
    Ok(read.exit)
}

/// The second table of a recording with CPU time: the methods that waited in the midst of work.
fn waits(profile: &Profile, number: usize) -> String {
    let methods = blocked_methods(profile);
    if methods.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new([("BLOCKED", Align::Right), ("METHOD THAT WAITED", Align::Left)]);
    for (frame, weight) in methods.iter().take(number) {
        let name = FrameName::new(&profile.frames, Some(*frame), profile.frames.name(*frame));
        columns.row([units::time(Duration::from_nanos(*weight)), name.fit(NAME)]);
    }
    let text = columns.fitted(&[]);
    let left = methods.len().saturating_sub(number);
    let more = if left > 0 { format!("({left} more: --blocked)\n") } else { String::new() };
    format!("\n{}{text}{more}", heading("Waits"))
}

/// The share, in percent, from which missing names are mentioned.
pub(super) const LEAST_NAMELESS: f64 = 10.0;

/// The share, in percent, from which time without a stack is mentioned.
const LEAST_FRAMELESS: f64 = 1.0;

/// Returns the share, in percent, of methods without a name; of CPU time, that of native code too. Native
/// libraries without symbols are usual where time of threads has their frames.
pub(super) fn nameless(profile: &Profile, rows: &[TopRow], total: u64) -> f64 {
    let has_all = profile.measure == Measure::CPU_TIME;
    let may_be_method =
        |kind| matches!(kind, FrameKind::Code(CodeOrigin::Managed | CodeOrigin::Unknown)) || has_all;
    let nameless = rows.iter().filter(|row| row.is_unnamed && may_be_method(row.kind));
    units::share(nameless.map(|row| row.exclusive).fold(0, u64::saturating_add), total)
}

/// The width of a name, unless the terminal is narrower.
const NAME: usize = 70;
const SHORTEST_NAME: usize = 20;
/// The width of a share.
const SHARE: usize = 20;
const NARROW_SHARE: usize = 10;

/// dotnet-trace's table, with a column for blocked time if that is known.
fn table(rows: &[Row], inclusive: bool, has_blocked: bool, width: Option<usize>) -> String {
    let kind = if inclusive { "Inclusive" } else { "Exclusive" };
    let digits = rows.len().to_string().len();
    let number = digits + 2;
    let shares = if has_blocked { 3 } else { 2 };
    let (name, share) = match width {
        Some(width) if width < number + NAME + 4 + shares * SHARE => (
            width.saturating_sub(number + 4 + shares * NARROW_SHARE).clamp(SHORTEST_NAME, NAME),
            NARROW_SHARE,
        ),
        _ => (NAME, SHARE),
    };
    let head = width::cut(&format!("Top {} Functions ({kind})", rows.len()), number + name + 3);
    let before = number + name + 4;
    let mut text = format!("{head:<before$}{:<share$}{:<share$}", "Inclusive", "Exclusive");
    text.push_str(if has_blocked { "Blocked\n" } else { "\n" });
    for (index, row) in rows.iter().enumerate() {
        let room = if messages::is_verbose() { usize::MAX } else { name };
        let shortened = row.name.fit(room);
        let place = format!("{}.", index + 1);
        let mut parts = Vec::new();
        if messages::is_verbose() {
            let characters: Vec<char> = shortened.chars().collect();
            parts.extend(characters.chunks(name).map(|part| part.iter().collect::<String>()));
        } else if name < NAME {
            parts.push(width::cut(&shortened, name));
        } else {
            parts.push(width::prefix(&shortened, NAME).to_owned());
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_default();
        let (one, two) =
            (units::short_percent(row.inclusive_percent), units::short_percent(row.exclusive_percent));
        let _ = write!(text, "{place:<number$}{first:<name$}    {one:<share$}{two:<share$}");
        if let Some(blocked) = row.blocked_percent.filter(|_| has_blocked) {
            text.push_str(&units::short_percent(blocked));
        }
        text.push('\n');
        for part in parts {
            let _ = writeln!(text, "{}{part}", " ".repeat(number));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_dotnet_traces() {
        let row = |frame: &str, inclusive, exclusive| Row {
            name: FrameName::of_test(frame, "", false),
            exclusive_percent: exclusive,
            inclusive_percent: inclusive,
            blocked_percent: Some(2.5),
        };
        let rows = [row("A!B.C.D(int32)", 39.9, 10.0), row("Threads", 100.0, 0.0)];
        let text = table(&rows, true, false, None);
        let expected = [
            "Top 2 Functions (Inclusive)                                                  Inclusive           Exclusive           ",
            "1. C.D(int32)                                                                39.9%               10%                 ",
            "2. Threads                                                                   100%                0%                  ",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let blocked = table(&rows, true, true, None);
        let ends: Vec<_> = blocked.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
        assert_eq!(ends, ["Blocked", "2.5%", "2.5%"]);
        let narrow =
            table(&[row("A!B.Collection.Add(class System.String)", 39.9, 10.0)], false, false, Some(50));
        let expected = [
            "Top 1 Functions (Exclusive)   Inclusive Exclusive ",
            "1. Collection.Add(class S…    39.9%     10%       ",
        ];
        assert_eq!(narrow.lines().collect::<Vec<_>>(), expected);
    }
}
