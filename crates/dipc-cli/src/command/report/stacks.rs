//! `dipc report FILE stacks`: a call tree.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use nettrace_export::report::{CallTree, call_tree};
use nettrace_export::{FrameKind, NameForm, Unit};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::args::format::Format;
use crate::args::profile::{MetricArg, ProfileArgs};
use crate::exit::{Failure, Outcome};
use crate::inspect::profile::{self, ProfileRequest, RecordingProfile};
use crate::render::escape::escape_controls;
use crate::render::frame_name::FrameName;
use crate::render::{output, table, units, width};

#[derive(Debug, Args)]
pub(crate) struct StacksArgs {
    /// Number of frames to show, heaviest first [default: 60; all with --format json]
    #[arg(short, long = "rows", alias = "number", value_name = "N")]
    number: Option<usize>,
    /// Leave out frames that weigh less than this share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5)]
    least: f64,
    /// Metric of the profile
    #[arg(long, value_enum)]
    by: Option<MetricArg>,
    /// Show each thread separately
    #[arg(long)]
    by_thread: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    profile: ProfileArgs,
}

#[derive(Debug, Serialize)]
struct StacksReport<'a> {
    measure: &'static str,
    unit: &'static str,
    samples: u64,
    total: u64,
    /// The weight of threads that waited for work, which the tree leaves out.
    idle: u64,
    /// The part of `total` in which threads waited in the middle of work; only for thread time, and not with
    /// `--idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<u64>,
    tree: Vec<Node<'a>>,
}

/// A frame; the frames below it are its callees.
#[derive(Debug, Serialize)]
struct Node<'a> {
    /// The number of frames above it.
    depth: usize,
    /// The name as TraceEvent writes it.
    frame: &'a str,
    /// The name in C# form; the same as `frame` if that is not a method.
    csharp: &'a str,
    /// The kind of the frame, as in the report `topN`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    inclusive: u64,
    exclusive: u64,
}

pub(super) fn run(file: &Path, args: &StacksArgs) -> Outcome {
    if !(0.0..=100.0).contains(&args.least) {
        return Err(Failure::usage("--least: a share is between 0 and 100"));
    }
    let mut options = args.profile.options(file)?;
    if args.format == Format::Json {
        options.names = NameForm::CSharp;
    }
    let request = ProfileRequest {
        metric: args.by.map(MetricArg::metric),
        tracks: false,
        kinds: true,
        idle_stacks: false,
    };
    let read = profile::read(file, &options, request)?;
    let profile = &read.profile;
    let tree = call_tree(profile, args.by_thread);
    match args.format {
        Format::Json => output::print_json(&report(&read, &tree, args.number.unwrap_or(usize::MAX)))?,
        Format::Table => output::print(table(&read, &tree, args, width::of_output()))?,
    }
    Ok(read.exit)
}

fn report<'a>(read: &'a RecordingProfile, tree: &'a CallTree<'a>, most: usize) -> StacksReport<'a> {
    let profile = &read.profile;
    let mut nodes = Vec::new();
    tree.walk(most, 0, |depth, node| {
        let (file, line) = node.line.map(|line| (line.file, line.line)).unzip();
        let (inclusive, exclusive) = (node.inclusive, node.exclusive);
        let frame = node.frame.map_or(node.name, |id| profile.frames.full_name(id));
        let kind = node.frame.map_or(FrameKind::Pseudo, |id| profile.frames.kind(id)).name();
        nodes.push(Node { depth, frame, csharp: node.name, kind, file, line, inclusive, exclusive });
    });
    StacksReport {
        measure: profile.measure.name,
        unit: profile.measure.unit.symbol(),
        samples: profile.samples(),
        total: profile.total(),
        idle: profile.idle(),
        blocked: read.blocked,
        tree: nodes,
    }
}

fn table(read: &RecordingProfile, tree: &CallTree<'_>, args: &StacksArgs, width: Option<usize>) -> String {
    let profile = &read.profile;
    let total = profile.total();
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share"
    )]
    let least = (total as f64 * args.least / 100.0).ceil() as u64;
    let shown = |weight: u64| match profile.measure.unit {
        Unit::Nanoseconds => units::time(Duration::from_nanos(weight)),
        Unit::Bytes => units::bytes(weight),
        _ => units::count(weight),
    };
    let mut text = table::heading("    TOTAL       %        SELF  FRAME");
    // By depth: whether siblings follow, to which a connecting line is drawn.
    let mut lines: Vec<bool> = Vec::new();
    let mut count = 0;
    tree.walk(args.number.unwrap_or(60), least.max(1), |depth, node| {
        lines.truncate(depth);
        lines.resize(depth, false);
        let branch: String = lines.iter().map(|goes_on| if *goes_on { "│" } else { " " }).collect();
        let corner = match (node.siblings, node.is_last) {
            (1, _) => "",
            (_, true) => "└",
            (_, false) => "├",
        };
        // Leave room for names, too.
        let most = width.map_or(MAX_DEPTH, |width| (width / 4).min(MAX_DEPTH));
        let indent = branch.chars().skip(depth.saturating_sub(most)).collect::<String>();
        let before = BEFORE_FRAME + indent.chars().count() + corner.chars().count();
        let name = escape_controls(node.name).into_owned();
        let room = width.map(|width| width.saturating_sub(before).max(1));
        let name = match room {
            Some(room) if name.width() > room => {
                let module = node.frame.map_or("", |frame| profile.frames.parts(frame).0);
                fit(&FrameName::new(&profile.frames, node.frame, node.name), module, room)
            }
            _ => name,
        };
        let own = if node.exclusive == 0 { String::new() } else { shown(node.exclusive) };
        let _ = writeln!(
            text,
            "{:>9} {:>7} {own:>11}  {indent}{corner}{name}",
            shown(node.inclusive),
            units::percent(units::share(node.inclusive, total)),
        );
        lines.push(node.siblings > 1 && !node.is_last);
        count += 1;
    });
    let waiting = profile::waiting(read);
    let waiting = waiting.map_or_else(String::new, |waiting| format!("; {waiting}"));
    let sum = format!(
        "{}: {} in {} {}; {} of {} frames shown{waiting}",
        profile.measure.name,
        shown(total),
        units::count(profile.samples()),
        profile.measure.sample,
        units::count(count),
        units::count(tree.len() as u64)
    );
    text.push('\n');
    text.push_str(&width::wrapped(&format!("{sum}\n"), width));
    text
}

/// Maximum depth of a frame to draw.
const MAX_DEPTH: usize = 40;
/// The width of the columns before the lines that join frames.
const BEFORE_FRAME: usize = 31;

/// Shortens a name to `room` columns: module and namespace are dropped first.
fn fit(name: &FrameName, module: &str, room: usize) -> String {
    let name = name.fit(room);
    let without_module = name.strip_prefix(module).and_then(|rest| rest.strip_prefix('!'));
    let shortened = without_module.filter(|_| name.width() > room);
    width::cut(shortened.unwrap_or(&name), room)
}
