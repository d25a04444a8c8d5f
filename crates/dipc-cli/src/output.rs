//! What goes to standard output, where results go and nothing else.

use std::fmt;
use std::io::{self, Write};

use anstyle::Style;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Writes text to standard output; colours only where they can be shown.
pub(crate) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(|error| failed(&error))
}

/// Writes a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(Exit::Failed, format_args!("write: standard output: {error}")))?;
    print(format_args!("{text}\n"))
}

/// A line of headings.
pub(crate) fn heading(text: &str) -> String {
    let bold = Style::new().bold();
    format!("{bold}{text}{bold:#}\n")
}

/// What to make of an error while writing to standard output: a reader that has seen enough (`| head`) is no failure, and ends
/// the program without a word.
pub(crate) fn failed(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::reader_left();
    }
    Failure::new(Exit::Failed, format_args!("write: standard output: {error}"))
}

/// A table without lines: columns that people can read and `awk` can split.
pub(crate) struct Columns {
    table: Table,
}

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

impl Columns {
    /// A table with these headings.
    pub(crate) fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.map(|(heading, _)| heading));
        for (column, (_, align)) in table.column_iter_mut().zip(columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        Self { table }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.table.add_row(cells.map(plain));
    }
}

/// The text without control characters: a cell must not break its line, and whatever a traced process calls itself must not
/// steer the terminal.
pub(crate) fn plain(text: String) -> String {
    if text.chars().any(char::is_control) {
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
    } else {
        text
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.table.lines().enumerate() {
            let line = line.trim_end();
            if number == 0 {
                f.write_str(&heading(line))?;
            } else {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}
