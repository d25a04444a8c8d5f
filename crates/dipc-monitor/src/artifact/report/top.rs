//! The hottest methods of some seconds of a process.

use std::fmt::Write as _;
use std::time::Duration;

use clr_events::escape_controls;
use dipc_collect::StopSignal;
use nettrace_export::report::{TopOptions, TopReport};
use nettrace_export::{Metric, Profile, Unit, units};

use super::super::{ArtifactError, ArtifactSink, begin, write};
use super::{failed, sample, title};
use crate::process::Watched;

/// A request for the hottest methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct TopRequest {
    /// The form.
    pub format: TopFormat,
    /// The weight of methods.
    pub kind: ProfileKind,
    /// The time; [`None`] is without a limit.
    pub duration: Option<Duration>,
    /// Maximum number of methods.
    pub number: usize,
    /// True if they are ordered by the time in which they were on the stack, not only at its leaf.
    pub is_inclusive: bool,
}

/// The kind of a profile that a session of the process makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileKind {
    /// The time of threads, working or blocked.
    #[default]
    Wall,
    /// Allocated bytes.
    Alloc,
    /// Allocated bytes that collections find in use.
    LiveAlloc,
    /// The time that threads wait for locks.
    Contention,
    /// Thrown exceptions.
    Exception,
}

impl ProfileKind {
    /// The kind with this name, which is that of `dipc push --by`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let kinds = [Self::Wall, Self::Alloc, Self::LiveAlloc, Self::Contention, Self::Exception];
        kinds.into_iter().find(|kind| kind.metric().name().eq_ignore_ascii_case(name))
    }

    pub(in crate::artifact) const fn metric(self) -> Metric {
        match self {
            Self::Wall => Metric::Wall,
            Self::Alloc => Metric::Alloc,
            Self::LiveAlloc => Metric::LiveAlloc,
            Self::Contention => Metric::Contention,
            Self::Exception => Metric::Exception,
        }
    }
}

/// The form of a table of methods, and of causes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopFormat {
    /// The JSON of `dipc report topN`, or of `dipc why`.
    #[default]
    Json,
    /// A table, or lines.
    PlainText,
}

impl TopFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::PlainText => "text/plain; charset=utf-8",
        }
    }

    /// The ending of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::PlainText => "txt",
        }
    }
}

/// Samples the threads for a time, or until it is stopped.
pub(in crate::artifact) fn top_methods(
    request: &TopRequest,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let profile = sample(request.kind.metric(), false, request.duration, process, stop)?;
    let options = TopOptions::default()
        .with_inclusive(request.is_inclusive)
        .with_number(request.number)
        .with_blocked(request.kind == ProfileKind::Wall);
    let report = TopReport::new(&profile, options);
    let bytes = match request.format {
        TopFormat::Json => serde_json::to_vec(&report).map_err(|error| failed(&error))?,
        TopFormat::PlainText if request.kind == ProfileKind::Wall => {
            table(&report, &title(process)).into_bytes()
        }
        TopFormat::PlainText => weights(&report, &profile, &title(process)).into_bytes(),
    };
    begin(sink)?;
    write(sink, &bytes)
}

/// Writes the methods with the most of something other than time as a table. All strings are from the
/// process.
fn weights(report: &TopReport, profile: &Profile, title: &str) -> String {
    let total = match profile.measure.unit {
        Unit::Nanoseconds => units::time(Duration::from_nanos(report.total)),
        Unit::Bytes => units::bytes(report.total),
        _ => units::count(report.total),
    };
    let mut text = format!(
        "{}: {}, {total}\n\n{:>10}{:>10}  METHOD\n",
        escape_controls(title),
        profile.measure.name,
        "SELF",
        "TOTAL"
    );
    for row in &report.rows {
        let method = escape_controls(&row.csharp);
        let _ = writeln!(text, "{:>9.2}%{:>9.2}%  {method}", row.exclusive_percent, row.inclusive_percent);
    }
    text
}

/// Writes the report as a table. All strings are from the process.
fn table(report: &TopReport, title: &str) -> String {
    let time = |nanoseconds| units::time(Duration::from_nanos(nanoseconds));
    let mut text = format!(
        "{}: {} of threads, {} of it blocked; {} idle are left out\n\n{:>10}{:>10}{:>10}  METHOD\n",
        escape_controls(title),
        time(report.total),
        time(report.blocked.unwrap_or_default()),
        time(report.idle),
        "SELF",
        "TOTAL",
        "BLOCKED"
    );
    for row in &report.rows {
        let _ = writeln!(
            text,
            "{:>9.2}%{:>9.2}%{:>9.2}%  {}",
            row.exclusive_percent,
            row.inclusive_percent,
            row.blocked_percent.unwrap_or_default(),
            escape_controls(&row.csharp)
        );
    }
    text
}
