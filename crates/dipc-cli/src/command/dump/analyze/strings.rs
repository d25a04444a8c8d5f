//! `dipc dump analyze CORE strings`: the strings of the heap.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Dump, HeapObject, HeapVisitor};
use nettrace_export::Pattern;
use serde::Serialize;

use super::objects;
use crate::args::format::Format;
use crate::exit::{Exit, Failure};
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
/// Maximum number of distinct strings, and of their bytes: further ones are only counted.
const MAX_STRINGS: usize = 1 << 20;
const MAX_BYTES: usize = 64 << 20;

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
    let mut strings = Strings::new(dump, pattern);
    let walk = objects::walk(source, dump, &mut strings)?;
    let report = strings.report(args.head);
    match format {
        Format::Table => output::print(report.text())?,
        Format::Json => output::print_json(&report)?,
    }
    Ok(if walk.gaps.is_empty() { Exit::Done } else { Exit::Incomplete })
}

/// Distinct strings.
struct Strings<'n> {
    dump: &'n Dump<'n>,
    pattern: Option<Pattern>,
    /// Keyed by string and length.
    amounts: HashMap<(String, u32), Amount>,
    /// Bytes of the strings that are kept.
    kept: usize,
    all: u64,
    found: u64,
    bytes: u64,
    left_out: u64,
    unreadable: u64,
}

#[derive(Clone, Copy)]
struct Amount {
    objects: u64,
    bytes: u64,
    /// The address of the first one.
    example: u64,
}

impl<'n> Strings<'n> {
    fn new(dump: &'n Dump<'n>, pattern: Option<Pattern>) -> Self {
        Self {
            dump,
            pattern,
            amounts: HashMap::new(),
            kept: 0,
            all: 0,
            found: 0,
            bytes: 0,
            left_out: 0,
            unreadable: 0,
        }
    }

    fn report(self, most: usize) -> Report {
        let different = self.amounts.len() as u64 + self.left_out;
        let duplicate_bytes = self
            .amounts
            .values()
            .map(|amount| amount.bytes.saturating_sub(amount.bytes / amount.objects.max(1)))
            .fold(0, u64::saturating_add);
        let mut rows: Vec<_> = self.amounts.into_iter().collect();
        rows.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(&b.0)));
        let rows = rows.into_iter().take(most).map(|((text, length), amount)| Row {
            objects: amount.objects,
            bytes: amount.bytes,
            length,
            cut: length > MAX_LENGTH,
            text,
            example: format!("{:#x}", amount.example),
        });
        Report {
            strings: self.all,
            matching: self.found,
            bytes: self.bytes,
            different,
            duplicate_bytes,
            not_compared: self.left_out,
            unreadable: self.unreadable,
            rows: rows.collect(),
        }
    }
}

impl HeapVisitor for Strings<'_> {
    fn object(&mut self, object: &HeapObject) {
        if !self.dump.types().is_string(object.type_handle) {
            return;
        }
        self.all = self.all.saturating_add(1);
        let Ok(text) = self.dump.heap().string(object, MAX_LENGTH) else {
            self.unreadable = self.unreadable.saturating_add(1);
            return;
        };
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.matches(&text)) {
            return;
        }
        self.found = self.found.saturating_add(1);
        self.bytes = self.bytes.saturating_add(object.size);
        let key = (text, object.length());
        let has_room = self.amounts.len() < MAX_STRINGS && self.kept.saturating_add(key.0.len()) <= MAX_BYTES;
        match self.amounts.get_mut(&key) {
            Some(amount) => {
                amount.objects = amount.objects.saturating_add(1);
                amount.bytes = amount.bytes.saturating_add(object.size);
            }
            None if has_room => {
                self.kept = self.kept.saturating_add(key.0.len());
                let amount = Amount { objects: 1, bytes: object.size, example: object.address };
                self.amounts.insert(key, amount);
            }
            None => self.left_out = self.left_out.saturating_add(1),
        }
    }
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
