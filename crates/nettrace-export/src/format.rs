//! The formats of profiles, a module each.

mod chromium;
mod csv;
mod firefox;
mod flamegraph;
mod folded;
mod nesting;
mod perfetto;
mod pprof;
mod protobuf;
mod speedscope;
mod text;

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};

use crate::bounds::{Limited, TooLarge, most_output};
use crate::profile::{Profile, StackTotal};

/// A file format of profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Speedscope's own file format, a profile for each thread.
    Speedscope,
    /// Chromium's trace events, for `chrome://tracing` and Perfetto.
    Chromium,
    /// The Firefox profiler's processed profiles.
    Firefox,
    /// Gzipped protobuf for `go tool pprof` and everything that reads the same.
    Pprof,
    /// A line for each stack, frames separated by semicolons, with its weight.
    Folded,
    /// A page that shows a flame graph, with everything it needs in it.
    Flamegraph,
    /// Perfetto's protobuf traces.
    Perfetto,
    /// A line for each span of each thread.
    Csv,
}

impl Format {
    /// Whether it shows when things happened: then [`Thread::track`](crate::Thread::track) is needed.
    pub const fn needs_tracks(self) -> bool {
        matches!(self, Self::Speedscope | Self::Chromium | Self::Firefox | Self::Perfetto | Self::Csv)
    }

    /// The usual ending of its files' names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Speedscope => "speedscope.json",
            Self::Chromium => "chromium.json",
            Self::Firefox => "firefox.json",
            Self::Pprof => "pb.gz",
            Self::Folded => "folded",
            Self::Flamegraph => "html",
            Self::Perfetto => "perfetto-trace",
            Self::Csv => "csv",
        }
    }
}

/// Labels written beside the profile.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Labels<'a> {
    /// The title of the profile.
    pub title: &'a str,
    /// The program that writes it.
    pub exporter: &'a str,
    /// Whether threads stay apart in the formats that show no time, each thread being the first frame of its stacks.
    pub by_thread: bool,
    /// Whether cells of CSV that a spreadsheet would take for a formula, those that begin with `=`, `+`, `-` or `@`, get an
    /// apostrophe in front. Programs that read the CSV would see it, so it is only for spreadsheets.
    pub for_spreadsheets: bool,
}

impl<'a> Labels<'a> {
    /// The title of the profile, and the program that writes it.
    pub const fn new(title: &'a str, exporter: &'a str) -> Self {
        Self { title, exporter, by_thread: false, for_spreadsheets: false }
    }

    /// With or without [`by_thread`](Self::by_thread).
    #[must_use]
    pub const fn with_by_thread(self, by_thread: bool) -> Self {
        Self { by_thread, ..self }
    }

    /// With or without [`for_spreadsheets`](Self::for_spreadsheets).
    #[must_use]
    pub const fn with_for_spreadsheets(self, for_spreadsheets: bool) -> Self {
        Self { for_spreadsheets, ..self }
    }
}

/// Bytes of memory that a format takes for each frame of each total, if it puts its result together before it writes it.
const fn bytes_per_frame(format: Format, labels: Labels<'_>) -> u64 {
    match format {
        Format::Firefox => 64,
        Format::Pprof => 16,
        Format::Flamegraph if labels.by_thread => 64,
        _ => 0,
    }
}

/// Counts the frames of all stack_totals.
fn frames_of_totals(profile: &Profile) -> u64 {
    let depths = nesting::depths(&profile.stacks);
    let depth =
        |total: &StackTotal| total.stack.and_then(|stack| depths.get(stack.index())).copied().unwrap_or(0);
    profile.stack_totals.iter().map(|total| u64::from(depth(total))).fold(0, u64::saturating_add)
}

/// Writes a profile. `out` may be a file: it is written to in large pieces.
///
/// # Errors
/// Those of `out`, and [`TooLarge`] if the result, or what must be held to make it, would be larger than
/// [`most_output`] of [`Profile::recorded_bytes`].
pub fn write(profile: &Profile, format: Format, labels: Labels<'_>, out: &mut dyn Write) -> io::Result<()> {
    let limit = most_output(profile.recorded_bytes);
    let bytes_per_frame = bytes_per_frame(format, labels);
    if bytes_per_frame > 0 && frames_of_totals(profile).saturating_mul(bytes_per_frame) > limit {
        return Err(TooLarge { limit }.into());
    }
    let mut buffer = BufWriter::with_capacity(BUFFER, out);
    write_pieces(profile, format, labels, &mut Limited::new(&mut buffer, limit))?;
    buffer.flush()
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

fn write_pieces(
    profile: &Profile,
    format: Format,
    labels: Labels<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Speedscope => speedscope::write(profile, labels, out),
        Format::Chromium => chromium::write(profile, labels, out),
        Format::Firefox => firefox::write(profile, labels, out),
        Format::Pprof => pprof::write(profile, out),
        Format::Folded => folded::write(profile, labels, out),
        Format::Flamegraph => flamegraph::write(profile, labels, out),
        Format::Perfetto => perfetto::write(profile, out),
        Format::Csv => csv::write(profile, labels, out),
    }
}
