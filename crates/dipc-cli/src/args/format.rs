//! Formats of results.

use clap::ValueEnum;
use nettrace_export::Format as ProfileFormat;

use crate::inspect::export::ExportFormat;

/// The format of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// The formats that a recording can be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// A page that shows the recording over time: threads, pauses, requests, exceptions, flame graph and
    /// tables of any part of it; opens in any browser, loads nothing
    Html,
    /// For <https://www.speedscope.app>: a flame graph over time, one profile per thread
    Speedscope,
    /// Trace events, for chrome://tracing and <https://ui.perfetto.dev>
    Chromium,
    /// For <https://profiler.firefox.com>
    Firefox,
    /// For `go tool pprof` and other tools that read its format
    Pprof,
    /// One line per stack, for flamegraph.pl, inferno and the like
    Folded,
    /// A page with a flame graph that can be searched; opens in any browser, loads nothing
    Flamegraph,
    /// A picture of a flame graph, for documents
    Svg,
    /// A trace in Perfetto's own format, for <https://ui.perfetto.dev> and trace_processor
    Perfetto,
    /// One line per period of time, allocation or the like, with its stack
    Csv,
    /// The events themselves, one object per line, as `dipc events --format jsonl` prints them
    Jsonl,
    /// The format of recordings
    #[value(hide = true)]
    Nettrace,
}

impl ConvertFormat {
    /// Returns the corresponding export format; `None` for recordings, which need no conversion.
    pub(crate) const fn export_format(self) -> Option<ExportFormat> {
        Some(ExportFormat::Profile(match self {
            Self::Html => return Some(ExportFormat::Page),
            Self::Speedscope => ProfileFormat::Speedscope,
            Self::Chromium => ProfileFormat::Chromium,
            Self::Firefox => ProfileFormat::Firefox,
            Self::Pprof => ProfileFormat::Pprof,
            Self::Folded => ProfileFormat::Folded,
            Self::Flamegraph => ProfileFormat::Flamegraph,
            Self::Svg => ProfileFormat::Svg,
            Self::Perfetto => ProfileFormat::Perfetto,
            Self::Csv => ProfileFormat::Csv,
            Self::Jsonl => return Some(ExportFormat::Events),
            Self::Nettrace => return None,
        }))
    }
}
