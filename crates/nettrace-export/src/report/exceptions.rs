//! Exceptions by type.

use clr_events::{ClrEvent, sets};
use nettrace::{Event, Metadata, RelativeTime};
use serde::Serialize;

use crate::decode::decode;
use crate::report::nanoseconds;
use crate::report::timeline::Timeline;
use crate::report::type_table::{TypeTable, csharp_type};
use crate::report::user_caller::UserCallerName;

/// Exceptions of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExceptionRow {
    /// Name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// The type's name in C#.
    pub csharp: String,
    /// The number of throws.
    pub count: u64,
    /// The message of the first one, cut after 500 characters.
    pub first_message: String,
    /// The time of its first throw.
    #[serde(rename = "first_ns", serialize_with = "nanoseconds::serialize")]
    pub first: RelativeTime,
    /// The time of its last throw.
    #[serde(rename = "last_ns", serialize_with = "nanoseconds::serialize")]
    pub last: RelativeTime,
    /// The user's method that most of them were thrown in, or in code that it called, if it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UserCallerName>,
}

/// The exceptions of a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ExceptionsReport {
    /// The number of throws.
    pub count: u64,
    /// The number of throws over time.
    pub timeline: Timeline,
    /// By type, most first.
    pub types: Vec<ExceptionRow>,
}

impl ExceptionsReport {
    /// Returns true if the report is empty.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Gathers exceptions: runtime keyword `Exception` (0x8000) at level error.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use nettrace_export::{nettrace::Reader, report::{Exceptions, read_kinds}};
///
/// let mut exceptions = Exceptions::default();
/// read_kinds(Reader::new(&recording[..])?, Exceptions::needs, |event| exceptions.add(event))?;
/// let report = exceptions.finish();
/// let first = &report.types[0];
/// assert_eq!((first.csharp.as_str(), first.count), ("System.TimeoutException", 2));
/// assert_eq!(first.first_message, "no answer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Exceptions {
    types: TypeTable<ExceptionRow, MAX_TYPES>,
    timeline: Timeline,
}

/// The number of distinct types.
const MAX_TYPES: usize = 1 << 16;
/// Characters of a message that are kept.
const MAX_LENGTH: usize = 500;

impl Exceptions {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        sets::EXCEPTIONS.contains(kind)
    }

    /// Adds an event. Looks at [`sets::EXCEPTIONS`].
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(view) = decode(event, &sets::EXCEPTIONS) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let ClrEvent::ExceptionStart(thrown) = view else { return };
        let time = event.relative_time();
        self.timeline.add(time, 1);
        let row = self.types.row(thrown.exception_type.to_string(), |name| ExceptionRow {
            csharp: csharp_type(&name),
            name,
            count: 0,
            first_message: thrown.exception_message.chars().take(MAX_LENGTH).collect(),
            first: time,
            last: time,
            from: None,
        });
        row.count += 1;
        row.last = time;
    }

    /// Returns the report.
    pub fn finish(self) -> ExceptionsReport {
        let types = self.types.heaviest_first(|row| row.count);
        ExceptionsReport { count: types.iter().map(|row| row.count).sum(), timeline: self.timeline, types }
    }
}
