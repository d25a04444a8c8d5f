//! The start of a request, and the ids of its trace.
//!
//! # Source
//! dotnet/runtime `System.Diagnostics.DiagnosticSource/src/System/Diagnostics/Activity.cs`,
//! `System.Private.CoreLib/src/System/Threading/CancellationTokenSource.cs`.

use crate::dump::Dump;
use crate::heap::object::Value;
use crate::memory::address::Address;
use crate::requests::property::{number, reference, structure, text};

/// The start of a request, by one of the clocks of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestStart {
    /// The time in UTC: units of 100 ns since the beginning of the year 1, as `DateTime.Ticks` counts them.
    Utc(u64),
    /// The milliseconds that `Environment.TickCount64` counts.
    Tick(u64),
}

/// The ids of an `Activity` in the form of W3C, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceIds {
    /// The id of the trace.
    pub trace: String,
    /// The id of the span; `None` if it has none yet.
    pub span: Option<String>,
}

impl TraceIds {
    /// Reads the ids of an activity; `None` if it has ids of another form.
    pub(super) fn read(dump: &Dump<'_>, activity: Address) -> Option<Self> {
        let id = |name: &str, length: usize| {
            let id = text(dump, activity, name)?;
            (id.len() == length && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
        };
        Some(Self { trace: id("_traceId", 32)?, span: id("_spanId", 16) })
    }
}

/// Returns the start of an activity.
pub(super) fn start(dump: &Dump<'_>, activity: Address) -> Option<RequestStart> {
    const KIND: u64 = 3 << 62;
    match structure(dump, activity, "StartTimeUtc")?.first()?.value {
        Value::Unsigned(date) => Some(RequestStart::Utc(date & !KIND)).filter(|_| date & !KIND != 0),
        _ => None,
    }
}

/// Returns the time at which the timeout of a `CancellationTokenSource` began.
pub(super) fn timeout_start(dump: &Dump<'_>, source: Address) -> Option<RequestStart> {
    let timer = reference(dump, source, "_timer")?;
    Some(RequestStart::Tick(number(dump, timer, "_startTicks").filter(|tick| *tick != 0)?))
}

/// Returns the time of a count of `Stopwatch`, which counts nanoseconds on Linux.
pub(super) fn stopwatch_start(timestamp: u64) -> Option<RequestStart> {
    (timestamp != 0).then_some(RequestStart::Tick(timestamp / 1_000_000))
}
