//! `dipc report FILE gc`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nettrace_export::Metric;
use nettrace_export::report::{Collection, Collections, GcReport, UserCallerName};

use crate::command::report::reading::{ReadingArgs, WithUserCode, from_cell};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "garbage collections", command: "dipc trace -p PID --profile gc-collect" };

pub(super) fn run(file: &Path, with: &WithUserCode<ReadingArgs>) -> Outcome {
    let args = &with.args;
    let mut collections = Collections::default().with_start(args.start(file)?);
    let read = args.read_kinds(file, Collections::needs, |event| collections.add(event))?;
    collections.set_range(read.start, read.end);
    let exit = read.exit;
    let report = Some(collections.finish()).filter(|report| !report.is_empty());
    let callers = match &report {
        Some(_) => with.user_callers(file, args, Metric::Gc)?,
        None => HashMap::new(),
    };
    args.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.collections.truncate(rows),
        |report| table(report, args.all_rows()) + &callers_table(&callers),
    )
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

/// Formats the user's methods that led to collections, by allocation or by request.
fn callers_table(callers: &HashMap<String, UserCallerName>) -> String {
    use Align::{Left, Right};
    if callers.is_empty() {
        return String::new();
    }
    let mut callers: Vec<_> = callers.iter().collect();
    callers.sort_by_key(|(collection, caller)| (Reverse(caller.weight), *collection));
    let mut columns = Columns::new([("PAUSE", Right), ("COLLECTIONS", Left), ("CAUSED MOST IN", Left)]);
    for (collection, caller) in callers {
        let time = units::time(Duration::from_nanos(caller.weight));
        columns.row([time, collection.clone(), from_cell(Some(caller))]);
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
