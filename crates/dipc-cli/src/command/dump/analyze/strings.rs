//! `dipc dump analyze CORE strings`: the strings of the heap.

use std::fmt::Write as _;

use clap::Args;
use clr_dump::{DistinctString, Dump, HeapStrings};
use nettrace_export::Pattern;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_value::quoted;
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

/// The default number of strings to show.
const STRINGS: usize = 30;
/// Maximum number of characters of a string to compare.
const MAX_LENGTH: u32 = 4096;
/// Maximum number of characters of a string in a table.
const WIDEST: usize = 200;

#[derive(Debug, Args)]
pub(super) struct StringsArgs {
    /// Only strings that contain this text, ignoring case; '*' matches any text
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
    /// Number of strings to show, starting with the most bytes
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N", default_value_t = STRINGS)]
    head: usize,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &StringsArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let pattern = args.grep.as_deref().map(Pattern::new);
    let is_wanted = |text: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(text));
    let strings = dump.heap().strings(MAX_LENGTH, is_wanted);
    let strings = strings.map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    core_heap::check(source, &strings.walk)?;
    let is_whole = strings.walk.gaps.is_empty();
    let report = Report::new(strings, args.head);
    match format {
        Format::Table => output::print(report.text())?,
        Format::Json => output::print_json(&report)?,
    }
    Ok(if is_whole { Exit::Done } else { Exit::Incomplete })
}

#[derive(Debug, Serialize)]
struct Report {
    strings: u64,
    /// The number of strings that contain the pattern.
    matching: u64,
    bytes: u64,
    /// The number of distinct strings.
    different: u64,
    /// Bytes that would be free with each string stored once.
    duplicate_bytes: u64,
    /// The number of strings that count as distinct because the limit is used up.
    not_compared: u64,
    /// The number of strings that the dump lacks.
    unreadable: u64,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    objects: u64,
    bytes: u64,
    length: u32,
    /// True if the string is longer than the part shown; only that part is compared.
    cut: bool,
    text: String,
    example: String,
}

impl Report {
    fn new(found: HeapStrings, most: usize) -> Self {
        let (different, duplicate_bytes) = (found.strings.len() as u64, found.duplicate_bytes());
        let row = |string: DistinctString| Row {
            objects: string.amount.objects,
            bytes: string.amount.bytes,
            length: string.length,
            cut: string.length > MAX_LENGTH,
            text: string.text,
            example: format!("{:#x}", string.example),
        };
        Self {
            strings: found.count,
            matching: found.matching.objects,
            bytes: found.matching.bytes,
            different: different + found.not_compared,
            duplicate_bytes,
            not_compared: found.not_compared,
            unreadable: found.unreadable,
            rows: found.strings.into_iter().take(most).map(row).collect(),
        }
    }

    fn text(&self) -> String {
        use Align::{Left, Right};
        let mut text = format!(
            "{} of {} strings, {}; {} different, {} in duplicates\n",
            units::count(self.matching),
            units::count(self.strings),
            units::bytes(self.bytes),
            units::count(self.different),
            units::bytes(self.duplicate_bytes)
        );
        if self.not_compared > 0 {
            let _ =
                writeln!(text, "{} were not compared: there are too many", units::count(self.not_compared));
        }
        if self.unreadable > 0 {
            let _ = writeln!(text, "{} cannot be read", units::count(self.unreadable));
        }
        text.push('\n');
        let mut columns =
            Columns::new([("BYTES", Right), ("OBJECTS", Right), ("EXAMPLE", Left), ("TEXT", Left)]);
        for row in &self.rows {
            columns.row([
                units::bytes(row.bytes),
                units::count(row.objects),
                row.example.clone(),
                shortened(&row.text, row.cut),
            ]);
        }
        text.push_str(&columns.fitted(&["EXAMPLE"]));
        let left = self.different.saturating_sub(self.rows.len() as u64);
        if left > 0 {
            let _ = writeln!(text, "({} more)", units::count(left));
        }
        text
    }
}

/// The beginning of a string in quotes.
fn shortened(text: &str, is_cut: bool) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => quoted(&text[..end], true),
        None => quoted(text, is_cut),
    }
}
