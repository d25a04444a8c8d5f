//! `dipc report FILE gc`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nettrace::Metadata;
use nettrace_export::Metric;
use nettrace_export::report::{Collection, Collections, GcReport, UserCallerName};
use serde::Serialize;

use crate::command::report::callers::{Callers, caller_cell};
use crate::command::report::reading::{ReadingArgs, WithUserCode};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "garbage collections", command: "dipc trace -p PID --profile gc-collect" };

pub(super) fn run(file: &Path, with: &WithUserCode<ReadingArgs>) -> Outcome {
    let args = &with.args;
    let mut collections = Collections::default().with_start(args.start(file)?);
    let needs = (Collections::needs as fn(&Metadata) -> bool, Metric::Gc);
    let (read, callers) = with.read_kinds(file, args, needs, |event| collections.add(event))?;
    let exit = read.exit;
    let report =
        Some(collections.with_range(read.start, read.end).finish()).filter(|report| !report.is_empty());
    let report = report.map(|report| WithCauses { report, caused_by: causes(callers) });
    args.show(
        (file, exit),
        &NEEDS,
        report,
        |with, rows| with.report.collections.truncate(rows),
        |with| table(&with.report, args.all_rows()) + &causes_table(&with.caused_by),
    )
}

/// The report with the user's methods that led to collections, by allocation or by request.
#[derive(Debug, Serialize)]
struct WithCauses {
    #[serde(flatten)]
    report: GcReport,
    caused_by: Vec<Cause>,
}

/// The user method that led to the longest pauses for collections of a kind.
#[derive(Debug, Serialize)]
struct Cause {
    /// The kind of collections, such as `GC generation 0 (Induced)`.
    collections: String,
    from: UserCallerName,
}

fn causes(callers: Callers) -> Vec<Cause> {
    let causes = callers.into_subjects().into_iter();
    let mut causes: Vec<_> = causes.map(|(collections, from)| Cause { collections, from }).collect();
    causes.sort_by(|a, b| (b.from.weight, &a.collections).cmp(&(a.from.weight, &b.collections)));
    causes
}

fn table(report: &GcReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("GC", Right),
        ("START", Right),
        ("GEN", Right),
        ("REASON", Left),
        ("TYPE", Left),
        ("PAUSE", Right),
        ("SUSPEND", Right),
        ("% PAUSED", Right),
        ("BEFORE MB", Right),
        ("AFTER MB", Right),
        ("PROMOTED MB", Right),
        ("GEN0 MB", Right),
        ("GEN1 MB", Right),
        ("GEN2 MB", Right),
        ("LOH MB", Right),
        ("POH MB", Right),
    ]);
    for collection in report.collections.iter().take(rows) {
        columns.row(row(collection));
    }
    let mut text = columns.fitted(&["SUSPEND", "% PAUSED"]);
    let left = report.collections.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text.push('\n');
    let mut sums = Columns::new([
        ("GENERATION", Left),
        ("COUNT", Right),
        ("INDUCED", Right),
        ("PAUSES", Right),
        ("MEDIAN", Right),
        ("90%", Right),
        ("99%", Right),
        ("LONGEST", Right),
        ("PROMOTED MB", Right),
    ]);
    for row in &report.generations {
        let pauses = &row.pauses;
        sums.row([
            row.generation.map_or_else(|| "all".to_owned(), |generation| generation.to_string()),
            units::count(row.collections),
            units::count(row.induced),
            units::time(pauses.total),
            units::time(pauses.median),
            units::time(pauses.p90),
            units::time(pauses.p99),
            units::time(pauses.max),
            megabytes(Some(row.promoted_bytes)),
        ]);
    }
    let _ = write!(text, "{}", sums.fitted(&["INDUCED", "90%", "99%", "PROMOTED MB"]));
    let pauses = &report.pauses;
    let _ = writeln!(
        text,
        "\nPaused {} of {}, {}, the longest {}; largest heap after a collection {}",
        units::percent(report.pause_percent),
        units::time(report.duration),
        units::counted(pauses.count, "time", "times"),
        units::time(pauses.max),
        units::bytes(report.peak_after_bytes)
    );
    text.push_str(&charts::histogram("Pauses", pauses));
    text
}

fn causes_table(causes: &[Cause]) -> String {
    use Align::{Left, Right};
    if causes.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new([("PAUSE", Right), ("COLLECTIONS", Left), ("CAUSED MOST IN", Left)]);
    for cause in causes {
        let time = units::time(Duration::from_nanos(cause.from.weight));
        columns.row([time, cause.collections.clone(), caller_cell(Some(&cause.from))]);
    }
    format!("\n{}", columns.fitted(&[]))
}

fn row(collection: &Collection) -> [String; 16] {
    let generation = |index: usize| megabytes(collection.generations_bytes.map(|bytes| bytes[index]));
    [
        collection.number.to_string(),
        units::moment(collection.start.since_start()),
        collection.generation.to_string(),
        collection.reason.clone(),
        collection.kind.clone(),
        collection.pause.map_or_else(|| "-".to_owned(), units::time),
        units::time(collection.suspend),
        units::percent(collection.pause_percent),
        megabytes(collection.before_bytes),
        megabytes(collection.after_bytes),
        megabytes(collection.promoted_bytes),
        generation(0),
        generation(1),
        generation(2),
        generation(3),
        generation(4),
    ]
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.3}", bytes as f64 / 1e6))
}
