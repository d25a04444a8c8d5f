//! Files of samples.

use std::io::{self, Write};

use clap::ValueEnum;
use clr_counters::Sample;
use clr_counters::dotnet_counters::{
    CSV_HEAD, JsonHead, rows, write_csv_row, write_json_end, write_json_head, write_json_row,
    write_strict_csv_row,
};
use nettrace::RelativeTime;

use crate::inspect::counters::line::Line;
use crate::inspect::counters::origin::CounterOrigin;
use crate::render::escape::escape_output;

/// The format of a file of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CounterFormat {
    /// As dotnet-counters writes it: one line per value
    Csv,
    /// The same, with quotes around fields that contain commas: RFC 4180
    StrictCsv,
    /// As dotnet-counters writes it: one object
    Json,
    /// One object per line, with everything that the runtime sent
    Jsonl,
}

impl CounterFormat {
    /// The extension of its files.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Csv | Self::StrictCsv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
        }
    }
}

/// A file that samples are written to.
#[derive(Debug)]
pub(crate) struct CounterFile<W: Write> {
    out: W,
    format: CounterFormat,
    /// The number of rows.
    pub(crate) count: u64,
}

impl<W: Write> CounterFile<W> {
    /// Writes the beginning of the file.
    pub(crate) fn begin(mut out: W, format: CounterFormat, origin: &CounterOrigin) -> io::Result<Self> {
        match format {
            CounterFormat::Csv | CounterFormat::StrictCsv => out.write_all(CSV_HEAD.as_bytes())?,
            CounterFormat::Json => {
                let start = origin.clock.json(RelativeTime::START);
                let target = origin.process.as_deref().unwrap_or_default();
                write_json_head(&mut out, JsonHead::new(target, &start))?;
            }
            CounterFormat::Jsonl => {}
        }
        Ok(Self { out, format, count: 0 })
    }

    /// Writes a sample: one row, one for each quantile of a histogram, or none for a missing value.
    pub(crate) fn write(&mut self, sample: &Sample<'_>, origin: &CounterOrigin) -> io::Result<()> {
        if self.format == CounterFormat::Jsonl {
            let line = serde_json::to_string(&Line::new(sample, origin))?;
            self.count += 1;
            return writeln!(self.out, "{}", escape_output(&line));
        }
        for row in rows(sample, origin.interval) {
            let csv_time = || origin.clock.csv(sample.time);
            match self.format {
                CounterFormat::Csv => write_csv_row(&mut self.out, &csv_time(), &row)?,
                CounterFormat::StrictCsv => write_strict_csv_row(&mut self.out, &csv_time(), &row)?,
                CounterFormat::Json | CounterFormat::Jsonl => {
                    let time = origin.clock.json(sample.time);
                    write_json_row(&mut self.out, self.count == 0, &time, &row)?;
                }
            }
            self.count += 1;
        }
        Ok(())
    }

    /// Flushes the written samples, for readers of the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the end of the file.
    pub(crate) fn end(mut self) -> io::Result<W> {
        if self.format == CounterFormat::Json {
            write_json_end(&mut self.out)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
