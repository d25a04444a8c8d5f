//! `dipc report FILE topN`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use nettrace_export::report::{
    BlockedTime, MIN_UNNAMED, SessionCost, TopReport, TopRow, WaitingMethod, blocked_methods, blocked_time,
    sort_top, top, unnamed_share,
};
use nettrace_export::{FrameId, FrameKind, Measure, Metric, NameForm, Profile, Unit};

use super::by_process::{self, Grouping};
use crate::args::format::Format;
use crate::args::profile::{MetricArg, ProfileArgs};
use crate::exit::Outcome;
use crate::inspect::profile::{self, ProfileRequest, RecordingProfile};
use crate::render::frame_name::FrameName;
use crate::render::table::{Align, Columns, heading};
use crate::render::{messages, output, units, width};

#[derive(Debug, Args)]
pub(crate) struct TopNArgs {
    /// Number of methods to show [default: 5; all with --format json]
    #[arg(short, long = "rows", alias = "number", value_name = "N")]
    number: Option<usize>,
    /// Order by the time that a method was anywhere on the stack, not only at its leaf
    #[arg(long)]
    inclusive: bool,
    /// Only the time that threads were blocked, by the program's own waiting method rather than the class
    /// library's methods that implement the wait
    #[arg(long, conflicts_with_all = ["idle", "no_blocked", "inclusive", "by"])]
    blocked: bool,
    /// Show processes instead of methods: each with its part, its container and its hottest code
    #[arg(long, conflicts_with_all = ["inclusive", "blocked", "no_session", "by_container"])]
    by_process: bool,
    /// Show containers instead of methods, and control groups of processes outside containers
    #[arg(long, conflicts_with_all = ["inclusive", "blocked", "no_session"])]
    by_container: bool,
    /// Leave out the process's work for the recording's own session, and background compilation
    #[arg(long, conflicts_with = "idle")]
    no_session: bool,
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
    /// The line below the row: words, a method, and its share of the row's weight in percent.
    note: Option<(&'static str, FrameName, f64)>,
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
    let mut read = profile::read(file, &options, request)?;
    let grouping =
        (args.by_process.then_some(Grouping::Process)).or(args.by_container.then_some(Grouping::Container));
    if let Some(grouping) = grouping {
        return by_process::print(&read, grouping, args.number, args.format);
    }
    let cost = if args.no_session {
        let cost = SessionCost::take(&mut read.profile);
        read.unverified = read.unverified.min(read.profile.total());
        cost
    } else {
        SessionCost::of(&read.profile)
    };
    let frames = &read.profile.frames;
    let (total, blocked) =
        if args.blocked { (read.profile.blocked(), None) } else { (read.profile.total(), read.blocked) };
    let mut rows = top(&read.profile);
    let mut called_to_wait = HashMap::new();
    if args.blocked {
        let waits = blocked_methods(&read.profile);
        let weights: HashMap<_, _> = waits.iter().map(|wait| (wait.method, wait.weight)).collect();
        called_to_wait.extend(waits.iter().filter_map(|wait| Some((wait.method, wait.called?))));
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
    let nameless = unnamed_share(&read.profile, &rows, total);
    match args.format {
        Format::Json => {
            rows.truncate(args.number.unwrap_or(usize::MAX));
            let mut report = TopReport::of_rows(&read.profile, rows, total, blocked);
            report.unverified = read.unverified;
            report.live = read.live;
            report.native = read.native;
            output::print_json(&report)?;
        }
        Format::Table => {
            let rows = rows.into_iter().take(args.number.unwrap_or(5)).map(|row| Row {
                name: FrameName::new(frames, row.frame_id, &row.frame),
                exclusive_percent: units::share(row.exclusive, total),
                inclusive_percent: units::share(row.inclusive, total),
                blocked_percent: blocked.map(|_| units::share(row.blocked, total)),
                // dotnet-trace's form lacks such lines.
                note: (options.names == NameForm::CSharp)
                    .then(|| note(&read.profile, &row, args.inclusive, &called_to_wait))
                    .flatten(),
            });
            let rows: Vec<_> = rows.collect();
            let width = width::of_output();
            let mut text = table(&rows, args.inclusive, blocked.is_some_and(|blocked| blocked > 0), width);
            let shown = Shown { total, frameless, nameless, cost, is_idle: options.idle };
            if let Some(sum) = sum(&read, args, &shown) {
                text.push_str(&width::wrapped(&sum, width));
            }
            if args.blocked {
                text.push_str(&blocked_parts(&read.profile, args.number.unwrap_or(5)));
            }
            if read.off_cpu > 0 && profile::is_regular(file) {
                text.push_str(&waits(&profile::read_off_cpu(file, &options)?, args.number.unwrap_or(5)));
            }
            output::print(text)?;
        }
    }
    Ok(read.exit)
}

/// The facts of the line below the table.
struct Shown {
    /// The weight of all rows.
    total: u64,
    /// The part of it without a stack, and in methods without a name, in percent.
    frameless: f64,
    nameless: f64,
    cost: SessionCost,
    /// True if idle threads are counted.
    is_idle: bool,
}

/// Returns the line below the table: the sum of the rows, and the amounts missing from them; `None` if there
/// is nothing to say.
fn sum(read: &RecordingProfile, args: &TopNArgs, shown: &Shown) -> Option<String> {
    let Shown { total, frameless, nameless, cost, is_idle } = *shown;
    let measure = read.profile.measure;
    let mut time = match measure.unit {
        Unit::Nanoseconds => units::time(Duration::from_nanos(total)),
        Unit::Bytes => units::bytes(total),
        _ => units::count(total),
    };
    let is_of_processors = measure == Measure::CPU_TIME;
    if is_of_processors {
        let _ = write!(time, " in {}", units::counted(read.profile.samples(), "sample", "samples"));
    }
    let has_sum = args.profile.no_blocked
        || is_of_processors
        || frameless >= MIN_FRAMELESS
        || (read.profile.metric == Metric::Wall && !is_idle && nameless >= MIN_UNNAMED);
    let ready = match read.without_processor {
        0 => String::new(),
        time => {
            format!(", {} of it ready to run, without a processor", units::time(Duration::from_nanos(time)))
        }
    };
    let mut sum = match profile::waiting(read) {
        _ if args.blocked => format!("\nblocked time: {time}{ready}"),
        Some(waiting) => format!("\n{}: {time}, {waiting}", measure.name),
        None if has_sum => format!("\n{}: {time}", measure.name),
        None => return None,
    };
    if frameless >= MIN_FRAMELESS {
        let _ = write!(sum, "; {} without a stack", units::short_percent(frameless));
    }
    if nameless >= MIN_UNNAMED {
        let _ = write!(sum, "; {} in methods without a name", units::short_percent(nameless));
    }
    if measure.unit.is_time() && !args.blocked && units::share(cost.total(), total) >= MIN_FRAMELESS {
        let left_out = if args.no_session { " left out" } else { "" };
        let _ = write!(sum, "; not the program's{left_out}: {cost}");
    }
    sum.push('\n');
    Some(sum)
}

/// Returns the line below a row of the framework's code: the user's method that led to it; below a method
/// that waited: the framework's method that it called.
fn note(
    profile: &Profile,
    row: &TopRow,
    is_inclusive: bool,
    called_to_wait: &HashMap<FrameId, FrameId>,
) -> Option<(&'static str, FrameName, f64)> {
    let name = |frame| FrameName::new(&profile.frames, Some(frame), profile.frames.name(frame));
    if let Some(called) = row.frame_id.and_then(|frame| called_to_wait.get(&frame)) {
        return Some((WAITED_IN, name(*called), 100.0));
    }
    let caller = row.user_caller(is_inclusive)?;
    let weight = if is_inclusive { row.inclusive } else { row.exclusive };
    let words = if row.kind == FrameKind::Pseudo { CAUSED_IN } else { CALLED_FROM };
    Some((words, name(caller.frame), units::share(caller.weight, weight)))
}

/// The words before the user's method that led to a row.
const CALLED_FROM: &str = "called from ";
/// The words before that method if the row is not code, such as a type.
const CAUSED_IN: &str = "most in ";
/// The words before the method that a row called to wait.
const WAITED_IN: &str = "waited in ";

/// Blocked time, split by meaning.
fn blocked_parts(profile: &Profile, number: usize) -> String {
    let BlockedTime { in_work, asleep, throughout, .. } = blocked_time(profile);
    let mut text = String::new();
    for (title, part) in [
        ("Blocked in the midst of work", &in_work),
        ("Asleep (Thread.Sleep)", &asleep),
        ("Waited in one place all the time", &throughout),
    ] {
        // Waits without a stack lack a method.
        if part.methods.is_empty() {
            continue;
        }
        let time = units::time(Duration::from_nanos(part.weight));
        let threads = units::counted(part.threads, "thread", "threads");
        let _ = write!(text, "\n{}", heading(&format!("{title}: {time} on {threads}")));
        text.push_str(&wait_table(profile, part.weight, &part.methods, number));
        if !part.waits.is_empty() {
            let waits = part.waits.iter().map(|(kind, weight)| {
                format!("{} {kind}", units::short_percent(units::share(*weight, part.weight)))
            });
            let _ = writeln!(text, "waits: {}", waits.collect::<Vec<_>>().join(", "));
        }
    }
    text
}

/// The methods that waited, with their shares of a time.
fn wait_table(profile: &Profile, total: u64, methods: &[WaitingMethod], number: usize) -> String {
    let mut columns = Columns::new([
        ("TIME", Align::Right),
        ("%", Align::Right),
        ("THREADS", Align::Right),
        ("METHOD THAT WAITED", Align::Left),
        ("IN", Align::Left),
    ]);
    let name = |frame| FrameName::new(&profile.frames, Some(frame), profile.frames.name(frame));
    for wait in methods.iter().take(number) {
        columns.row([
            units::time(Duration::from_nanos(wait.weight)),
            units::short_percent(units::share(wait.weight, total)),
            units::count(wait.threads),
            name(wait.method).fit(WAIT_NAME),
            wait.called.map_or_else(|| "-".to_owned(), |frame| name(frame).without_parameters().to_owned()),
        ]);
    }
    columns.fitted(&[])
}

/// The second table of a recording with CPU time: the methods that waited during work.
fn waits(profile: &Profile, number: usize) -> String {
    let methods = blocked_methods(profile);
    if methods.is_empty() {
        return String::new();
    }
    let total = methods.iter().map(|wait| wait.weight).fold(0, u64::saturating_add);
    let text = wait_table(profile, total, &methods, number);
    let left = methods.len().saturating_sub(number);
    let more = if left > 0 { format!("({left} more: --blocked)\n") } else { String::new() };
    format!("\n{}{text}{more}", heading("Waits"))
}

/// Minimum share of time without a stack to mention, in percent.
const MIN_FRAMELESS: f64 = 1.0;

/// The width of a name, unless the terminal is narrower.
const NAME: usize = 70;
/// The width of the name of a method that waited.
const WAIT_NAME: usize = 48;
const MIN_NAME_LENGTH: usize = 20;
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
            width.saturating_sub(number + 4 + shares * NARROW_SHARE).clamp(MIN_NAME_LENGTH, NAME),
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
        if let Some((words, method, share)) = &row.note {
            let share = match units::short_percent(*share) {
                all if all == "100%" => String::new(),
                share => format!(" ({share})"),
            };
            let room = room.min(name).saturating_sub(words.len() + share.len());
            let _ = writeln!(text, "{}{words}{}{share}", " ".repeat(number), method.fit(room));
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
            note: None,
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

    #[test]
    fn a_row_names_the_users_method_that_led_to_it() {
        let row = |share| Row {
            name: FrameName::of_test("R!Regex.Match()", "", false),
            exclusive_percent: 50.0,
            inclusive_percent: 50.0,
            blocked_percent: None,
            note: Some((CALLED_FROM, FrameName::of_test("A!Shop.Engine.Total(int32)", "", false), share)),
        };
        let text = table(&[row(100.0), row(62.5)], false, false, None);
        let callers: Vec<_> = text.lines().filter(|line| line.contains("called from")).collect();
        assert_eq!(
            callers,
            ["   called from Engine.Total(int32)", "   called from Engine.Total(int32) (62.5%)"]
        );
    }
}
