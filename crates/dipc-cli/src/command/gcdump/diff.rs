//! `dipc gcdump diff`: growth between two heaps.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use gcdump::page::HeapDiffPage;
use gcdump::{DiffRow, Dominators, HeapChange, HeapDiff, HeapReport};
use nettrace_export::NameForm;
use serde::Serialize;

use crate::args::heap_report::{GroupingArg, ROWS, csv_cell, or_none, warn_of_inexact};
use crate::args::names::NameArgs;
use crate::command::gcdump::args::DependentArgs;
use crate::command::gcdump::suspects::{Suspect, Suspects};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::heap::Heap;
use crate::inspect::rewrite::refuse_input;
use crate::render::destination::Destination;
use crate::render::output;
use crate::render::output_file::NameOrigin;
use crate::render::table::{Align, Columns};
use crate::render::units::{self, signed};

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The heap before: a .gcdump file, or a recording with a heap dump
    #[arg(value_hint = ValueHint::FilePath)]
    before: PathBuf,
    /// The heap after
    #[arg(value_hint = ValueHint::FilePath)]
    after: PathBuf,
    /// Only the heaps of this process, in recordings of many
    #[arg(long, value_name = "PID", conflicts_with_all = ["pid_before", "pid_after"])]
    pid: Option<u64>,
    /// Only the heap of this process in the recording before
    #[arg(long, value_name = "PID")]
    pid_before: Option<u64>,
    /// Only the heap of this process in the recording after
    #[arg(long, value_name = "PID")]
    pid_after: Option<u64>,
    #[command(flatten)]
    dependent: DependentArgs,
    /// Property that objects are grouped by
    #[arg(long, value_enum, default_value_t)]
    by: GroupingArg,
    /// Number of groups to show, of the groups that grew the most and, in a table, of the groups that shrank
    /// the most [default: 30 in a table, else all]
    #[arg(long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
    /// Leave out retained sizes
    #[arg(long)]
    no_retained: bool,
    #[command(flatten)]
    names: NameArgs,
    /// Format of the difference
    #[arg(long, value_enum, default_value_t)]
    format: HeapDiffFormat,
    /// Path of the difference [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// The format of a difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeapDiffFormat {
    /// For people
    #[default]
    Table,
    /// For programs: one object
    Json,
    /// For spreadsheets: one line per row
    Csv,
    /// A page for browsers
    Html,
}

impl DiffArgs {
    /// The difference of two heaps, with the usual settings.
    pub(super) fn of_files(
        before: &Path,
        after: &Path,
        format: HeapDiffFormat,
        names: NameArgs,
        output: Option<&Path>,
    ) -> Self {
        Self {
            before: before.to_owned(),
            after: after.to_owned(),
            pid: None,
            pid_before: None,
            pid_after: None,
            dependent: DependentArgs::default(),
            by: GroupingArg::default(),
            head: None,
            no_retained: false,
            names,
            format,
            output: output.map(Path::to_owned),
        }
    }
}

pub(crate) fn run(args: &DiffArgs) -> Outcome {
    let out = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    match out {
        Some(out) => refuse_input(&[args.before.clone(), args.after.clone()], out)?,
        None if args.format == HeapDiffFormat::Html => output::refuse_terminal("a page")?,
        None => {}
    }
    let before = args.open(&args.before, args.pid_before)?;
    let after = args.open(&args.after, args.pid_after)?;
    let diff = HeapDiff::new(&args.report(&before), &args.report(&after));
    let suspects = Suspects::new(&before.graph, &after.graph, args.names.form());
    let exit = before.exit.join(after.exit);
    let rows = args.head.unwrap_or(if args.format == HeapDiffFormat::Table { ROWS } else { usize::MAX });
    let text = match args.format {
        HeapDiffFormat::Table => args.table(&diff, &suspects, rows),
        HeapDiffFormat::Json => return args.finish_json(&diff, &suspects, rows).map(|()| exit),
        HeapDiffFormat::Html => return args.finish_page(&diff, &suspects, rows).map(|()| exit),
        HeapDiffFormat::Csv => csv(&diff, &suspects, args.by, rows),
    };
    args.write(&text)?;
    Ok(exit)
}

impl DiffArgs {
    fn finish_json(&self, diff: &HeapDiff, suspects: &Suspects, rows: usize) -> Result<(), Failure> {
        let json = JsonDiff::new(diff, suspects, self.by, rows);
        if self.output.is_none() {
            return output::print_json(&json);
        }
        let text = serde_json::to_string_pretty(&json)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("gcdump diff: {error}")))?;
        self.write(&(text + "\n"))
    }

    fn finish_page(&self, diff: &HeapDiff, suspects: &Suspects, rows: usize) -> Result<(), Failure> {
        let title = format!("{} → {}", self.before.display(), self.after.display());
        let form = self.names.form();
        let change = signed(diff.total.bytes(), units::bytes);
        let answer = suspects.answer(form).unwrap_or_else(|| format!("No root holds more: {change} in all"));
        let is_by_type = self.by == GroupingArg::Type;
        let page = HeapDiffPage::new(diff, &title, &answer)
            .with_full_names(form == NameForm::Full)
            .with_rows(rows)
            .with_suspects(suspects.sentences(form))
            .with_holders(|row| {
                let holder = suspects.holder(&row.name, &row.module).filter(|_| is_by_type);
                holder.map(ToOwned::to_owned)
            });
        let out = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        Destination::create(out, NameOrigin::User)?.write_with(|out| page.write(out))
    }

    /// Writes the difference to the file or to standard output.
    fn write(&self, text: &str) -> Result<(), Failure> {
        let Some(path) = &self.output else { return output::print(text) };
        let mut out = Destination::create(Some(path), NameOrigin::User)?;
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => out.close(),
            Err(error) => Err(out.failed(&error)),
        }
    }

    fn open(&self, file: &Path, pid: Option<u64>) -> Result<Heap, Failure> {
        Heap::open(file, self.dependent.graph(pid.or(self.pid)))
    }

    fn report(&self, heap: &Heap) -> HeapReport {
        let dominators = (!self.no_retained).then(|| Dominators::new(&heap.graph));
        let report = HeapReport::new(&heap.graph, self.by.grouping(), dominators.as_ref());
        warn_of_inexact(&report);
        report
    }

    fn table(&self, diff: &HeapDiff, suspects: &Suspects, most: usize) -> String {
        use Align::{Left, Right};
        let HeapChange { objects_before, objects_after, bytes_before, bytes_after, .. } = diff.total;
        let mut text = format!(
            "{} to {} objects ({}), {} to {} ({})\n\n",
            units::count(objects_before),
            units::count(objects_after),
            signed(diff.total.objects(), units::count),
            units::bytes(bytes_before),
            units::bytes(bytes_after),
            signed(diff.total.bytes(), units::bytes),
        );
        let is_change = |row: &&DiffRow| {
            let change = row.change;
            change.bytes() != 0
                || change.objects() != 0
                || change.retained().is_some_and(|retained| retained != 0)
        };
        let changed: Vec<_> = diff.rows.iter().filter(is_change).collect();
        // Groups that grew, then groups that shrank.
        let shrunk = changed.iter().filter(|row| row.change.bytes() < 0).count().min(most / 3);
        let grown = (changed.len() - shrunk).min(most - shrunk);
        let mut columns = Columns::new([
            ("BYTES", Right),
            ("OBJECTS", Right),
            ("RETAINED", Right),
            ("BYTES AFTER", Right),
            ("HELD BY", Left),
            (self.by.heading(), Left),
        ]);
        let is_by_type = self.by == GroupingArg::Type;
        for row in changed[..grown].iter().chain(&changed[changed.len() - shrunk..]) {
            let retained = row.change.retained();
            columns.row([
                signed(row.change.bytes(), units::bytes),
                signed(row.change.objects(), units::count),
                retained.map_or_else(|| "-".to_owned(), |retained| signed(retained, units::bytes)),
                units::bytes(row.change.bytes_after),
                suspects.holder(&row.name, &row.module).filter(|_| is_by_type).unwrap_or("-").to_owned(),
                or_none(if self.names.form() == NameForm::Full { &row.name } else { &row.csharp }).to_owned(),
            ]);
        }
        text.push_str(&columns.fitted(&["BYTES AFTER", "HELD BY"]));
        let left = changed.len() - grown - shrunk;
        if left > 0 {
            let _ = writeln!(text, "({left} more)");
        }
        text + &suspects.text(&self.after, self.pid_after.or(self.pid), self.names.form())
    }
}

fn csv(diff: &HeapDiff, suspects: &Suspects, by: GroupingArg, rows: usize) -> String {
    let mut text = format!(
        "{},csharp,module,objects_before,objects_after,bytes_before,bytes_after,retained_before,retained_after,held_by\n",
        by.key()
    );
    let retained = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    for row in diff.rows.iter().take(rows) {
        let change = row.change;
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{}",
            csv_cell(&row.name),
            csv_cell(&row.csharp),
            csv_cell(&row.module),
            change.objects_before,
            change.objects_after,
            change.bytes_before,
            change.bytes_after,
            retained(change.retained_before),
            retained(change.retained_after),
            csv_cell(suspects.holder(&row.name, &row.module).unwrap_or_default())
        );
    }
    text
}

/// A difference as JSON.
#[derive(Serialize)]
struct JsonDiff<'a> {
    by: &'static str,
    objects_before: u64,
    objects_after: u64,
    bytes_before: u64,
    bytes_after: u64,
    suspects: &'a [Suspect],
    rows: Vec<JsonRow<'a>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    csharp: &'a str,
    module: &'a str,
    objects_before: u64,
    objects_after: u64,
    bytes_before: u64,
    bytes_after: u64,
    retained_bytes_before: Option<u64>,
    retained_bytes_after: Option<u64>,
    held_by: Option<&'a str>,
}

impl<'a> JsonDiff<'a> {
    fn new(diff: &'a HeapDiff, suspects: &'a Suspects, by: GroupingArg, rows: usize) -> Self {
        let row = |row: &'a DiffRow| JsonRow {
            name: &row.name,
            csharp: &row.csharp,
            module: &row.module,
            objects_before: row.change.objects_before,
            objects_after: row.change.objects_after,
            bytes_before: row.change.bytes_before,
            bytes_after: row.change.bytes_after,
            retained_bytes_before: row.change.retained_before,
            retained_bytes_after: row.change.retained_after,
            held_by: suspects.holder(&row.name, &row.module),
        };
        Self {
            by: by.key(),
            objects_before: diff.total.objects_before,
            objects_after: diff.total.objects_after,
            bytes_before: diff.total.bytes_before,
            bytes_after: diff.total.bytes_after,
            suspects: suspects.list(),
            rows: diff.rows.iter().take(rows).map(row).collect(),
        }
    }
}
