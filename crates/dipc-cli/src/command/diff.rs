//! `dipc diff`: a comparison of recordings, or of two snapshots of memory.

mod cells;
mod json;
mod markdown;
mod memory;
mod table;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use nettrace_export::diff::{
    Basis, Change, Comparison, ComparisonOptions, Noise, Picture, Rule, RuleOutcome, Run, StackComparison,
};

use crate::args::names::NameArgs;
use crate::args::times::TimeArgs;
use crate::command::gcdump::HeapDiffFormat;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::names::names_path;
use crate::inspect::recording::is_gcdump;
use crate::inspect::rewrite::refuse_input;
use crate::inspect::run;
use crate::inspect::thread_times::threads_path;
use crate::inspect::time_range::TimeRange;
use crate::render::destination::Destination;
use crate::render::output_file::NameOrigin;
use crate::render::{messages, output};
use crate::time_point::{self, TimePoint};

#[derive(Debug, Args)]
#[command(
    override_usage = "dipc diff [OPTIONS] BASE NEW\n       dipc diff [OPTIONS] --base A1 A2 A3 --new B1 B2 B3",
    after_help = AFTER_HELP
)]
pub(crate) struct DiffArgs {
    /// The recording, pprof profile, heap or snapshot of memory (dipc memory --format json) to compare with
    #[arg(value_name = "BASE", value_hint = ValueHint::FilePath, requires = "new_file",
          required_unless_present = "base")]
    base_file: Option<PathBuf>,
    /// The recording that may be slower
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    new_file: Option<PathBuf>,
    /// The recordings to compare with, in place of BASE
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath, requires = "new",
          conflicts_with_all = ["base_file", "new_file"])]
    base: Vec<PathBuf>,
    /// The recordings that may be slower, in place of NEW
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath, requires = "base")]
    new: Vec<PathBuf>,
    /// Unit of work that amounts refer to [default: second; for flame graphs, share]
    #[arg(long, value_enum)]
    per: Option<BasisArg>,
    /// Minimum change that counts as a finding
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse_percent)]
    min_change: f64,
    /// Exit with 8 if this condition is met, such as 'GET /orders p99 > +20%'; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = parse_rule)]
    fail_if: Vec<Rule>,
    /// Number of rows of each table [default: 20; all with --format json and --all]
    #[arg(short, long = "rows", alias = "number", value_name = "N")]
    number: Option<usize>,
    /// Show all differences, not only findings
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    times: TimeArgs,
    /// Start of the time range in NEW, in place of --from
    #[arg(long, value_name = "TIME", value_parser = time_point::parse)]
    new_from: Option<TimePoint>,
    /// End of the time range in NEW, in place of --to
    #[arg(long, value_name = "TIME", value_parser = time_point::parse)]
    new_to: Option<TimePoint>,
    /// Only this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<u64>,
    #[command(flatten)]
    names: NameArgs,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    format: DiffFormat,
    /// Path of a page or flame graph; '-' is standard output, the default
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Conditions:
  'GET /orders p99 > +20%'   a route, or a part of its name: p50, p99, mean, count
  'Orders.Load cpu > +10%'   a method: cpu, cpu-inclusive, blocked, alloc
  'alloc > +10%'             all of: cpu, blocked, alloc, exceptions, gc-pauses, gc-count, lock-waits
  'gc p99 > 20ms'            without + or -: the new value itself
A change beyond the limit meets its condition if noise does not explain it.";

/// The unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BasisArg {
    /// Per second: for a service under the same load on both sides
    Second,
    /// Per served request: for different loads
    Request,
    /// Per recording: for programs that do the same work each time
    Run,
    /// Share of the sum: a method's share of all CPU time, a type's share of all bytes
    Share,
}

impl BasisArg {
    const fn basis(self) -> Basis {
        match self {
            Self::Second => Basis::Second,
            Self::Request => Basis::Request,
            Self::Run => Basis::Run,
            Self::Share => Basis::Share,
        }
    }
}

/// The format of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For pull requests
    Markdown,
    /// A page: of recordings a differential flame graph, of heaps and memory bars
    Html,
    /// A differential flame graph as a picture
    Svg,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim().trim_end_matches('%').trim_end().parse().map_err(|_| "use a number, as 5%")?;
    if (0.0..=1000.0).contains(&number) { Ok(number / 100.0) } else { Err("use 0% to 1000%".to_owned()) }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: nettrace_export::diff::RuleError| error.to_string())
}

/// A comparison with all that its output shows.
struct Report<'a> {
    args: &'a DiffArgs,
    comparison: &'a Comparison,
    /// The conditions of --fail-if, with their outcomes.
    conditions: Vec<(&'a Rule, RuleOutcome<'a>)>,
    /// The files of each side, and the seconds of their recordings together.
    files: [&'a [PathBuf]; 2],
    seconds: [f64; 2],
}

impl DiffArgs {
    /// The files of each side.
    fn files(&self) -> [&[PathBuf]; 2] {
        match (&self.base_file, &self.new_file) {
            (Some(base), Some(new)) => [std::slice::from_ref(base), std::slice::from_ref(new)],
            _ => [&self.base, &self.new],
        }
    }

    /// The two files, if they are heaps, with the format.
    pub(crate) fn heaps(&self) -> Result<Option<(&Path, &Path, HeapDiffFormat)>, Failure> {
        let [base, new] = self.files();
        if !base.iter().chain(new).any(|file| is_gcdump(file)) {
            return Ok(None);
        }
        let ([base], [new]) = (base, new) else {
            return Err(Failure::usage("diff: heaps are compared one against one"));
        };
        if !self.fail_if.is_empty() {
            return Err(Failure::usage("diff: --fail-if is for recordings: heaps have no noise to judge by"));
        }
        let format = match self.format {
            DiffFormat::Table => HeapDiffFormat::Table,
            DiffFormat::Json => HeapDiffFormat::Json,
            DiffFormat::Html => HeapDiffFormat::Html,
            DiffFormat::Markdown | DiffFormat::Svg => {
                return Err(Failure::usage("diff: this --format is for recordings and profiles").with_help(
                    "heaps have --format table, json and html, and dipc gcdump diff has csv, too",
                ));
            }
        };
        if self.output.is_some() && self.format != DiffFormat::Html {
            return Err(Failure::usage("diff: --output is for --format html and svg"));
        }
        Ok(Some((base, new, format)))
    }

    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    pub(crate) const fn names(&self) -> NameArgs {
        self.names
    }

    /// Returns true if the result is a flame graph.
    const fn is_picture(&self) -> bool {
        matches!(self.format, DiffFormat::Html | DiffFormat::Svg)
    }

    /// The number of rows of a table.
    fn rows(&self) -> usize {
        let is_limited = !self.all && self.format != DiffFormat::Json;
        self.number.unwrap_or(if is_limited { 20 } else { usize::MAX })
    }

    fn read(&self, files: &[PathBuf], range: TimeRange) -> Result<(Vec<Run>, Exit), Failure> {
        let mut exit = Exit::Done;
        let mut runs = Vec::new();
        for file in files {
            let (run, read) = run::read(file, range, &self.pid)?;
            exit = exit.join(read);
            runs.push(run);
        }
        Ok((runs, exit))
    }
}

pub(crate) fn run(args: &DiffArgs) -> Outcome {
    if let Some(files) = args.snapshots()? {
        return memory::run(args, files);
    }
    let out = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = out {
        if !args.is_picture() {
            return Err(Failure::usage("diff: --output is for --format html and svg"));
        }
        args.files().iter().try_for_each(|files| refuse_input(files, path))?;
    } else if args.is_picture() {
        output::refuse_terminal("a flame graph")?;
    }
    let range = args.times.range();
    let basis = args.per.map(BasisArg::basis);
    let new_range = TimeRange { from: args.new_from.or(range.from), to: args.new_to.or(range.to) };
    let files = args.files().map(without_companions);
    let files = [&files[0][..], &files[1][..]];
    let (base, base_exit) = args.read(files[0], range)?;
    let (new, new_exit) = args.read(files[1], new_range)?;
    let options =
        ComparisonOptions::default().with_basis(basis.unwrap_or_default()).with_least_change(args.min_change);
    let comparison = Comparison::new(&base, &new, &options);
    let exit = base_exit.join(new_exit);
    if comparison.changes.is_empty() {
        return Err(Failure::new(
            exit.or_failed(),
            "diff: the two sides have no events in common to compare",
        )
        .with_help(
            "record both in the same way: dipc trace -p PID --profile dotnet-common,gc-verbose,aspnet",
        ));
    }
    let seconds = [&base, &new].map(|runs| runs.iter().map(|run| run.duration.as_secs_f64()).sum());
    let rules = &args.fail_if;
    let conditions = rules.iter().map(|rule| (rule, rule.apply(&comparison, rules.len()))).collect();
    let report = Report { args, comparison: &comparison, conditions, files, seconds };
    match args.format {
        DiffFormat::Table => output::print(table::text(&report))?,
        DiffFormat::Json => output::print_json(&json::document(&report))?,
        DiffFormat::Markdown => output::print(markdown::text(&report))?,
        DiffFormat::Html | DiffFormat::Svg => {
            let stacks = StackComparison::new(&base, &new, &options, basis);
            write_picture(&report, stacks.as_ref())?;
        }
    }
    report.judge(exit)
}

/// Leaves out companion files of a side's other files, which patterns such as `base*.nettrace` match, too.
fn without_companions(files: &[PathBuf]) -> Vec<PathBuf> {
    let is_beside = |file: &PathBuf| {
        files.iter().any(|of| of != file && (threads_path(of) == *file || names_path(of) == *file))
    };
    files.iter().filter(|file| !is_beside(file)).cloned().collect()
}

/// Writes the differential flame graph of the stacks.
fn write_picture(report: &Report<'_>, stacks: Option<&StackComparison>) -> Result<(), Failure> {
    let Some(stacks) = stacks else {
        return Err(Failure::new(
            Exit::Failed,
            "diff: one side has no stacks of CPU time, or stacks of another kind",
        )
        .with_help("record both with the sampler: dipc trace -p PID --profile dotnet-sampled-thread-time"));
    };
    let title = report.files.map(|files| match files {
        [file] => file.display().to_string(),
        [first, ..] => format!("{} and {} more", first.display(), files.len() - 1),
        [] => String::new(),
    });
    let title = title.join(" → ");
    let picture = Picture::new(stacks, &title);
    let path = report.args.output.as_deref().filter(|path| path.as_os_str() != "-");
    let mut out = Destination::create(path, NameOrigin::User)?;
    let written = match report.args.format {
        DiffFormat::Html => picture.write_page(&mut out),
        _ => picture.write(&mut out),
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => out.close(),
        Err(error) => Err(out.failed(&error)),
    }
}

impl Report<'_> {
    /// The exit code: the input's, unless a condition is met. A condition about nothing is an error, because
    /// it would go unnoticed that it never fails.
    fn judge(&self, exit: Exit) -> Outcome {
        let mut is_met = false;
        for (rule, outcome) in &self.conditions {
            if outcome.matched.is_empty() {
                return Err(Failure::new(
                    Exit::Failed,
                    format_args!("--fail-if '{rule}': nothing has that name"),
                )
                .with_help("dipc diff --all shows the names"));
            }
            for change in &outcome.met {
                is_met = true;
                messages::note(format_args!("--fail-if '{rule}' is met: {}", cells::sentence(change, self)));
            }
            self.warn_of_undecided(rule, &outcome.undecided);
        }
        if !self.conditions.is_empty() && self.comparison.noise == Noise::Unknown {
            messages::warning(
                "the recordings are too short to measure noise: conditions use the difference alone",
            );
        }
        Ok(if is_met { exit.join(Exit::ConditionMet) } else { exit })
    }

    /// Warns if a condition could be met without being noticed.
    fn warn_of_undecided(&self, rule: &Rule, undecided: &[&Change]) {
        if self.comparison.noise == Noise::Unknown {
            return;
        }
        let size = |change: &&&Change| change.relative_change().unwrap_or(f64::INFINITY).abs();
        let Some(largest) = undecided.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else { return };
        let more = match undecided.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let range = match cells::range(largest) {
            range if range == "-" => String::new(),
            range => format!(", range {range}"),
        };
        messages::warning(format_args!(
            "--fail-if '{rule}' is neither met nor excluded: {}{range}{more}",
            cells::sentence(largest, self),
        ));
        if largest.deciding_units().is_some() {
            messages::help(format_args!("{} would decide", cells::deciding(largest, self)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_companion_files_of_recordings() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let matched = paths(&["a1.names.nettrace", "a1.nettrace", "a1.threads.nettrace", "a2.nettrace"]);
        assert_eq!(without_companions(&matched), paths(&["a1.nettrace", "a2.nettrace"]));
        let alone = paths(&["a1.threads.nettrace"]);
        assert_eq!(without_companions(&alone), alone);
    }
}
