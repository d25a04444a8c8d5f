//! A comparison of two snapshots of memory.

use std::fmt::Write as _;
use std::path::Path;

use dipc_collect::memory::{MemoryGrowth, MemoryPage, MemorySnapshot, OwnerGrowth};
use serde::Serialize;

use super::{DiffArgs, DiffFormat};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::memory_growth::{amount, first_line, is_json, read_snapshot};
use crate::inspect::rewrite::refuse_input;
use crate::render::destination::Destination;
use crate::render::escape::escape_controls;
use crate::render::output_file::NameOrigin;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units, width};

/// The comparison as JSON.
#[derive(Serialize)]
struct Document<'a> {
    before: Side,
    after: Side,
    /// The time between the two; null if they do not state it.
    seconds: Option<f64>,
    answer: String,
    change_bytes: i64,
    bytes_per_minute: Option<i64>,
    unattributed_change_bytes: i64,
    /// The largest growth first.
    owners: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Side {
    file: String,
    time_unix_ms: Option<u64>,
    process_id: Option<u32>,
    rss_bytes: Option<u64>,
    dump_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Row<'a> {
    owner: &'a str,
    name: &'a str,
    before_bytes: u64,
    after_bytes: u64,
    change_bytes: i64,
    bytes_per_minute: Option<i64>,
}

impl DiffArgs {
    /// The two files, if they are snapshots of memory.
    pub(super) fn snapshots(&self) -> Result<Option<[&Path; 2]>, Failure> {
        let [base, new] = self.files();
        if !base.iter().chain(new).any(|file| is_json(file)) {
            return Ok(None);
        }
        let ([base], [new]) = (base, new) else {
            return Err(Failure::usage("diff: snapshots of memory are compared one against one"));
        };
        let range = self.times.range();
        let has_times = [range.from, range.to, self.new_from, self.new_to].iter().any(Option::is_some);
        if has_times || self.per.is_some() || !self.pid.is_empty() || !self.fail_if.is_empty() {
            return Err(Failure::usage(
                "diff: --per, --fail-if, --pid and times are for recordings: a snapshot of memory has one time",
            ));
        }
        if !matches!(self.format, DiffFormat::Table | DiffFormat::Json | DiffFormat::Html) {
            return Err(Failure::usage("diff: this --format is for recordings and profiles")
                .with_help("snapshots of memory have --format table, json and html"));
        }
        if self.output.is_some() && self.format != DiffFormat::Html {
            return Err(Failure::usage("diff: --output is for --format html and svg"));
        }
        Ok(Some([base, new]))
    }
}

pub(super) fn run(args: &DiffArgs, files: [&Path; 2]) -> Outcome {
    let [before, after] = [read_snapshot(files[0])?, read_snapshot(files[1])?];
    if before.rss_bytes.is_some() != after.rss_bytes.is_some() {
        return Err(Failure::usage(
            "diff: one snapshot is of a process, the other of a core dump, which has no resident memory",
        ));
    }
    let growth = MemoryGrowth::between(&before, &after);
    if growth.is_reversed {
        messages::warning(format_args!(
            "{} was read after {}: the order of the two is the other one",
            files[0].display(),
            files[1].display()
        ));
    }
    if growth.has_other_process {
        messages::warning("the snapshots are of different processes");
    }
    match args.format {
        DiffFormat::Json => output::print_json(&document(args, files, [&before, &after], &growth))?,
        DiffFormat::Html => {
            let title = files.map(|file| file.display().to_string()).join(" → ");
            let page = MemoryPage::of_growth(&growth, &title, &first_line(&growth));
            let out = args.output.as_deref().filter(|path| path.as_os_str() != "-");
            out.map_or(Ok(()), |out| refuse_input(&files.map(Path::to_owned), out))?;
            Destination::create(out, NameOrigin::User)?.write_with(|out| page.write(out))?;
        }
        _ => output::print(table(args, &growth))?,
    }
    Ok(Exit::Done)
}

fn table(args: &DiffArgs, growth: &MemoryGrowth) -> String {
    let width = width::of_output();
    let mut text = width::wrapped(&format!("{}\n\n", escape_controls(&first_line(growth))), width);
    let mut headings = vec![("CHANGE", Align::Right)];
    headings.extend(growth.elapsed.map(|_| ("A MINUTE", Align::Right)));
    headings.extend([("BEFORE", Align::Right), ("AFTER", Align::Right), ("OWNER", Align::Left)]);
    let mut columns = Columns::new(headings);
    let mut row = |of: &OwnerGrowth| {
        let mut cells = vec![amount(of.change())];
        cells.extend(growth.per_minute(of.change()).map(amount));
        cells.extend([units::bytes(of.before), units::bytes(of.after), of.name.clone()]);
        columns.row(cells);
    };
    let is_shown = |of: &&OwnerGrowth| args.all || of.change() != 0;
    let shown: Vec<_> = growth.owners.iter().filter(is_shown).take(args.rows()).collect();
    for of in &shown {
        row(of);
    }
    row(&growth.total);
    text.push_str(&columns.fitted_to(width, &["BEFORE"]));
    let more = growth.owners.len() - shown.len();
    if more > 0 {
        let _ = writeln!(text, "({} more: --all shows them)", units::count(more as u64));
    }
    text
}

fn document<'a>(
    args: &DiffArgs,
    files: [&Path; 2],
    [before, after]: [&MemorySnapshot; 2],
    growth: &'a MemoryGrowth,
) -> Document<'a> {
    let side = |file: &Path, of: &MemorySnapshot| Side {
        file: file.display().to_string(),
        time_unix_ms: of.time_unix_ms,
        process_id: of.process_id,
        rss_bytes: of.rss_bytes,
        dump_bytes: of.dump_bytes,
    };
    let row = |of: &'a OwnerGrowth| Row {
        owner: &of.owner,
        name: &of.name,
        before_bytes: of.before,
        after_bytes: of.after,
        change_bytes: of.change(),
        bytes_per_minute: growth.per_minute(of.change()),
    };
    let unattributed = i128::from(after.unattributed_bytes) - i128::from(before.unattributed_bytes);
    Document {
        before: side(files[0], before),
        after: side(files[1], after),
        seconds: growth.elapsed.map(|elapsed| elapsed.as_secs_f64()),
        answer: first_line(growth),
        change_bytes: growth.total.change(),
        bytes_per_minute: growth.per_minute(growth.total.change()),
        unattributed_change_bytes: i64::try_from(unattributed).unwrap_or(i64::MAX),
        owners: growth.owners.iter().take(args.rows()).map(row).collect(),
    }
}
