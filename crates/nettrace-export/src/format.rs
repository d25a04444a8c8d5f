//! The formats of profiles, a module each.

#[cfg(feature = "chromium")]
mod chromium;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "firefox")]
mod firefox;
#[cfg(feature = "folded")]
mod folded;
mod nesting;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "perfetto")]
mod perfetto;
#[cfg(feature = "pprof")]
mod pprof;
#[cfg(any(feature = "perfetto", feature = "pprof"))]
pub(crate) mod protobuf;
#[cfg(feature = "speedscope")]
mod speedscope;
#[cfg(feature = "svg")]
pub(crate) mod svg;

#[cfg(all(test, feature = "default"))]
pub(crate) mod tests;

use std::io::{self, BufWriter, Write};

#[cfg(any(feature = "otlp", feature = "pprof"))]
use clr_events::StackId;

use crate::bounds::{Limited, TooLarge, most_output};
#[cfg(feature = "flamegraph")]
use crate::page::Page;
#[cfg(any(feature = "otlp", feature = "pprof"))]
use crate::profile::pseudo_frames;
use crate::profile::{Profile, StackTotal};
use crate::write_options::WriteOptions;
#[cfg(feature = "otlp")]
pub use otlp::{OtlpRequest, otlp_request, otlp_request_by_process};

/// A file format of profiles; each is a Cargo feature of the same name.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::{Format, WriteOptions};
///
/// let mut lines = Vec::new();
/// nettrace_export::write(&profile, Format::Folded, WriteOptions::new("queries", "my-tool"), &mut lines)?;
/// let lines = String::from_utf8(lines)?;
/// let stack = "Shop!Program.Main();Shop!Cart.Pay() 2500000";
/// assert!(lines.lines().any(|line| line.ends_with(stack)), "{lines}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Speedscope's own file format, a profile for each thread.
    #[cfg(feature = "speedscope")]
    Speedscope,
    /// Chromium's trace events, for `chrome://tracing` and Perfetto.
    #[cfg(feature = "chromium")]
    Chromium,
    /// The Firefox profiler's processed profiles.
    #[cfg(feature = "firefox")]
    Firefox,
    /// Gzipped protobuf for `go tool pprof` and everything that reads the same.
    #[cfg(feature = "pprof")]
    Pprof,
    /// A line for each stack, frames separated by semicolons, with its weight.
    #[cfg(feature = "folded")]
    Folded,
    /// A [page](crate::page) that shows a flame graph, with everything it needs in it.
    #[cfg(feature = "flamegraph")]
    Flamegraph,
    /// A flame graph as a picture without a script, for documents and pages.
    #[cfg(feature = "svg")]
    Svg,
    /// Perfetto's protobuf traces.
    #[cfg(feature = "perfetto")]
    Perfetto,
    /// A line for each span of each thread.
    #[cfg(feature = "csv")]
    Csv,
}

impl Format {
    /// Returns true if it shows when things happened: then [`Thread::track`](crate::Thread::track) is needed.
    pub const fn needs_tracks(self) -> bool {
        match self {
            #[cfg(feature = "flamegraph")]
            Self::Flamegraph => false,
            #[cfg(feature = "folded")]
            Self::Folded => false,
            #[cfg(feature = "pprof")]
            Self::Pprof => false,
            #[cfg(feature = "svg")]
            Self::Svg => false,
            #[allow(unreachable_patterns, reason = "where no other format is compiled")]
            _ => true,
        }
    }

    /// The usual ending of its files' names.
    pub const fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "speedscope")]
            Self::Speedscope => "speedscope.json",
            #[cfg(feature = "chromium")]
            Self::Chromium => "chromium.json",
            #[cfg(feature = "firefox")]
            Self::Firefox => "firefox.json",
            #[cfg(feature = "pprof")]
            Self::Pprof => "pb.gz",
            #[cfg(feature = "folded")]
            Self::Folded => "folded",
            #[cfg(feature = "flamegraph")]
            Self::Flamegraph => "html",
            #[cfg(feature = "svg")]
            Self::Svg => "svg",
            #[cfg(feature = "perfetto")]
            Self::Perfetto => "perfetto-trace",
            #[cfg(feature = "csv")]
            Self::Csv => "csv",
        }
    }
}

/// Bytes of memory that a format takes for each frame of each total, if it puts its result together before it
/// writes it.
const fn bytes_per_frame(format: Format, options: WriteOptions<'_>) -> u64 {
    match format {
        #[cfg(feature = "firefox")]
        Format::Firefox => 64,
        #[cfg(feature = "pprof")]
        Format::Pprof => 16,
        // The stacks of each thread are nodes of their own; otherwise there are at most as many nodes as
        // stacks.
        #[cfg(feature = "svg")]
        Format::Svg if options.by_thread => 80,
        #[allow(unreachable_patterns, reason = "where no other format is compiled")]
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
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::{Format, WriteOptions};
///
/// let options = WriteOptions::new("queries", "my-tool").with_by_thread(true);
/// let mut svg = Vec::new();
/// nettrace_export::write(&profile, Format::Svg, options, &mut svg)?;
/// assert!(svg.starts_with(b"<svg"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of `out`, and [`TooLarge`] if the result, or the memory to make it, would be larger
/// than [`most_output`] of [`Profile::recorded_bytes`].
pub fn write(
    profile: &Profile,
    format: Format,
    options: WriteOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let limit = most_output(profile.recorded_bytes);
    let bytes_per_frame = bytes_per_frame(format, options);
    if bytes_per_frame > 0 && frames_of_totals(profile).saturating_mul(bytes_per_frame) > limit {
        return Err(TooLarge { limit }.into());
    }
    let mut buffer = BufWriter::with_capacity(BUFFER, out);
    write_pieces(profile, format, options, &mut Limited::new(&mut buffer, limit))?;
    buffer.flush()
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

fn write_pieces(
    profile: &Profile,
    format: Format,
    options: WriteOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        #[cfg(feature = "speedscope")]
        Format::Speedscope => speedscope::write(profile, options, out),
        #[cfg(feature = "chromium")]
        Format::Chromium => chromium::write(profile, options, out),
        #[cfg(feature = "firefox")]
        Format::Firefox => firefox::write(profile, options, out),
        #[cfg(feature = "pprof")]
        Format::Pprof => pprof::write(profile, out),
        #[cfg(feature = "folded")]
        Format::Folded => folded::write(profile, options, out),
        #[cfg(feature = "flamegraph")]
        Format::Flamegraph => Page::new(profile, options).write(out),
        #[cfg(feature = "svg")]
        Format::Svg => svg::write(profile, options, out),
        #[cfg(feature = "perfetto")]
        Format::Perfetto => perfetto::write(profile, out),
        #[cfg(feature = "csv")]
        Format::Csv => csv::write(profile, options, out),
    }
}

/// The stack without the frame of its kind of time, and that kind. These formats can express it as a label,
/// and otherwise such frames would fill the top of a list of methods.
#[cfg(any(feature = "otlp", feature = "pprof"))]
fn without_kind(profile: &Profile, stack: StackId) -> (StackId, Option<&str>) {
    match profile.leaf_name(stack) {
        name @ (pseudo_frames::MANAGED | pseudo_frames::UNMANAGED | pseudo_frames::BLOCKED) => {
            (profile.stacks.caller(stack).unwrap_or(StackId::EMPTY), Some(name))
        }
        _ => (stack, None),
    }
}

/// Returns the nanoseconds of a profile's time.
#[cfg(any(feature = "otlp", feature = "pprof"))]
fn duration(profile: &Profile) -> u64 {
    u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX)
}
