//! The CSV files of `dotnet-counters collect`.

use std::io::{self, Write};

use crate::dotnet_counters::escape::Escaped;
use crate::dotnet_counters::number::Number;
use crate::dotnet_counters::row::Row;

/// The first line.
pub const CSV_HEAD: &str = "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n";

/// Writes a row. `time` is the event's, as `11/21/2026 09:18:46`.
///
/// Nothing is quoted, as in the tool's files: a comma in a name adds a column. Tags are separated by
/// semicolons. Characters that end a line or steer a terminal are escaped, `\n` and `\u001b`: a name cannot
/// add a row.
pub fn write_csv_row(out: &mut impl Write, time: &str, row: &Row<'_>) -> io::Result<()> {
    write!(out, "{time},{},{}", Escaped(row.provider), Escaped(&row.name))?;
    let mut separator = '[';
    for tags in [row.meter_tags, row.instrument_tags, &row.tags] {
        if !tags.is_empty() {
            write!(out, "{separator}{}", Escaped(&tags.replace(',', ";")))?;
            separator = ';';
        }
    }
    let end = if separator == '[' { "" } else { "]" };
    writeln!(out, "{end},{},{}", row.kind.name(), Number(row.value))
}
