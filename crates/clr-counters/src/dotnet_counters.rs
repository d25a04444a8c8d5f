//! Rows as dotnet-counters writes them, for scripts that read its files.

mod csv;
mod escape;
mod json;
mod number;
mod row;

pub use csv::{CSV_HEAD, write_csv_row, write_strict_csv_row};
pub use json::{JsonHead, write_json_end, write_json_head, write_json_row};
pub use number::Number;
pub use row::{Row, RowKind, rows};
