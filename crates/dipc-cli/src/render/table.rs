//! Tables for people.

use std::fmt::{self, Write as _};

use anstyle::Style;
use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};

use crate::render::escape::escape_controls;
use crate::render::width;

/// Formats a line of headings.
pub(crate) fn heading(text: &str) -> String {
    let bold = Style::new().bold();
    format!("{bold}{text}{bold:#}\n")
}

/// A table without rules: columns that people can read and `awk` can split.
pub(crate) struct Columns {
    table: Table,
    headings: Vec<String>,
    /// True if the last column is text that may be cut.
    ends_in_text: bool,
}

/// Minimum width of a text column.
const MIN_TEXT_WIDTH: usize = 24;
/// Blanks between columns.
const GAP: u16 = 2;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

impl Columns {
    /// A table with these headings.
    pub(crate) fn new<'h>(columns: impl AsRef<[(&'h str, Align)]>) -> Self {
        let columns = columns.as_ref();
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().map(|(heading, _)| *heading));
        for (column, (_, align)) in table.column_iter_mut().zip(columns) {
            column.set_padding((0, GAP));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let ends_in_text = columns.last().is_some_and(|(_, align)| *align == Align::Left);
        Self {
            table,
            headings: columns.iter().map(|(heading, _)| (*heading).to_owned()).collect(),
            ends_in_text,
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells.into_iter().map(|cell| escape_controls(&cell).into_owned()));
    }
}

impl Columns {
    /// Returns the table in the width of the terminal. Columns that do not fit are left out, `spare` ones
    /// first, and named below. Without a terminal, returns all of it.
    pub(crate) fn fitted(self, spare: &[&str]) -> String {
        self.fitted_to(width::of_output(), spare)
    }

    /// The same in `width` characters.
    pub(crate) fn fitted_to(mut self, width: Option<usize>, spare: &[&str]) -> String {
        let Some(width) = width else { return self.to_string() };
        let hidden = self.without_room(width, spare);
        for index in &hidden {
            if let Some(column) = self.table.column_mut(*index) {
                column.set_constraint(ColumnConstraint::Hidden);
            }
        }
        let mut text = String::new();
        for (number, line) in self.table.lines().enumerate() {
            let line = width::cut(line.trim_end(), width);
            text.push_str(&if number == 0 { heading(&line) } else { line + "\n" });
        }
        if !hidden.is_empty() {
            let names: Vec<_> = hidden.iter().map(|index| &*self.headings[*index]).collect();
            let _ = writeln!(text, "(no room for {})", names.join(", "));
        }
        text
    }

    /// Returns the columns to leave out, from left to right. The first column stays, and so does a text
    /// column at the end.
    fn without_room(&self, width: usize, spare: &[&str]) -> Vec<usize> {
        let last = self.headings.len() - 1;
        let mut takes: Vec<_> = self.table.column_max_content_widths().into_iter().map(usize::from).collect();
        if self.ends_in_text {
            takes[last] = takes[last].min(MIN_TEXT_WIDTH);
        }
        let place = |name: &&str| self.headings.iter().position(|heading| heading == name);
        let mut order: Vec<_> = spare.iter().filter_map(place).collect();
        order.extend((1..=last).rev().filter(|index| !(self.ends_in_text && *index == last)));
        let mut sum = takes.iter().map(|takes| takes + usize::from(GAP)).sum::<usize>() - usize::from(GAP);
        let mut hidden = Vec::new();
        for index in order {
            if sum <= width {
                break;
            }
            if !hidden.contains(&index) {
                sum -= takes[index] + usize::from(GAP);
                hidden.push(index);
            }
        }
        hidden.sort_unstable();
        hidden
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Columns {
        let mut columns = Columns::new([("ID", Align::Right), ("SIZE", Align::Right), ("NAME", Align::Left)]);
        columns.row(["1".into(), "10 KB".into(), "System.Collections.Generic.List".into()]);
        columns
    }

    #[test]
    fn a_table_has_the_width_of_the_terminal() {
        let lines = |width, spare: &[&str]| {
            let text = anstream::adapter::strip_str(&table().fitted_to(width, spare)).to_string();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let whole = ["ID   SIZE  NAME", " 1  10 KB  System.Collections.Generic.List"];
        assert_eq!(lines(None, &[]), whole);
        assert_eq!(lines(Some(42), &[]), whole);
        assert_eq!(lines(Some(37), &[]), ["ID   SIZE  NAME", " 1  10 KB  System.Collections.Generi…"]);
        let without = ["ID  NAME", " 1  System.Collections.Generic.Li…", "(no room for SIZE)"];
        assert_eq!(lines(Some(34), &[]), without);
        assert_eq!(lines(Some(34), &["NAME"]), ["ID   SIZE", " 1  10 KB", "(no room for NAME)"]);
        assert_eq!(lines(Some(1), &[])[0], "…");
    }
}
