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
///
/// ```
/// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
/// # use std::time::Duration;
/// # let series = Series::new("MyApp", "orders", Kind::Counter);
/// # let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
/// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
/// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
/// use clr_counters::dotnet_counters::{CSV_HEAD, rows, write_csv_row};
///
/// let mut file = CSV_HEAD.as_bytes().to_vec();
/// for row in rows(&sample, Duration::from_secs(1)) {
///     write_csv_row(&mut file, "11/21/2026 09:18:46", &row)?;
/// }
/// let text = String::from_utf8_lossy(&file);
/// assert!(text.ends_with("\n11/21/2026 09:18:46,MyApp,orders (Count / 3 sec),Rate,6\n"), "{text}");
/// # Ok::<(), std::io::Error>(())
/// ```
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

/// Writes a row according to RFC 4180, except that lines end in `\n`: fields with commas or quotes stand in
/// quotes, so that each row has the columns of the [head](CSV_HEAD). Tags are separated by commas.
pub fn write_strict_csv_row(out: &mut impl Write, time: &str, row: &Row<'_>) -> io::Result<()> {
    let tags: Vec<&str> = [row.meter_tags, row.instrument_tags, &row.tags]
        .into_iter()
        .filter(|tags| !tags.is_empty())
        .collect();
    let name = if tags.is_empty() { row.name.clone() } else { format!("{}[{}]", row.name, tags.join(",")) };
    let (kind, value) = (row.kind.name(), Number(row.value));
    writeln!(out, "{},{},{},{kind},{value}", field(time), field(row.provider), field(&name))
}

/// Returns a field, in quotes if it needs them.
fn field(text: &str) -> String {
    let text = Escaped(text).to_string();
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dotnet_counters::row::RowKind;

    #[test]
    fn strict_rows_quote_fields_with_commas_and_quotes() {
        let row = Row {
            provider: "Shop, \"Berlin\"",
            name: "orders (a,b)".into(),
            tags: "city=Oslo,tier=2".into(),
            meter_tags: "",
            instrument_tags: "i=1",
            kind: RowKind::Rate,
            value: 1.5,
        };
        let mut text = Vec::new();
        write_strict_csv_row(&mut text, "11/21/2026 09:18:46", &row).unwrap();
        let plain =
            Row { provider: "Shop", name: "orders".into(), tags: String::new(), instrument_tags: "", ..row };
        write_strict_csv_row(&mut text, "11/21/2026 09:18:46", &plain).unwrap();
        let expected = "11/21/2026 09:18:46,\"Shop, \"\"Berlin\"\"\",\"orders (a,b)[i=1,city=Oslo,tier=2]\",Rate,1.5\n\
                        11/21/2026 09:18:46,Shop,orders,Rate,1.5\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
