//! Names and opcodes of events, as TraceEvent shows them.

use alloc::string::ToString as _;
use core::fmt;

use nettrace::{Event, Label, Metadata, Utf16};

use crate::dynamic;
use crate::glob::Glob;
use crate::provider::Provider;
use crate::schema::Schema;

const START: u8 = 1;
const STOP: u8 = 2;

/// The name of an event as the existing tools show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventName<'a> {
    /// The name that the recording has.
    Plain(&'a str),
    /// The name of an event that begins or ends something, `Request/Start` for `RequestStart` with that
    /// opcode, or of one of the runtime's own events, `GC/AllocationTick`.
    Phase {
        /// The activity or the component: `Request`, `GC`.
        task: &'a str,
        /// The opcode: `Start`, `Stop`, `AllocationTick`.
        phase: &'static str,
    },
    /// The name of an event that the garbage collector defines dynamically (event 39): `GC/` and the name in
    /// its payload.
    Dynamic(Utf16<'a>),
    /// The id of an event without a name.
    Number(u32),
}

/// Returns the name of an event.
///
/// In order: the name that TraceEvent has for an event of the runtime, the name in the recording, the task
/// and opcode of the runtime's manifest, the number.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// let event = events.next()?.ok_or("an event")?;
/// // The recording has only the number 80.
/// assert_eq!(clr_events::event_name(&event).to_string(), "Exception/Start");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn event_name<'a>(event: &Event<'a>) -> EventName<'a> {
    match Schema::of(event) {
        Some(schema) if dynamic::is_dynamic(schema) => {
            dynamic::name(event.payload()).map_or_else(|| EventName::traced(schema.name), EventName::Dynamic)
        }
        schema => EventName::new(schema, event.metadata(), event.opcode()),
    }
}

/// Returns the opcode of an event: 1 is start, 2 is stop.
///
/// If it was not recorded, it is taken from the runtime's manifest or the end of the name: runtimes before
/// .NET 5 record no opcodes. `None` if it is unknown.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// let event = events.next()?.ok_or("an event")?;
/// assert_eq!(clr_events::event_opcode(&event), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn event_opcode(event: &Event<'_>) -> Option<u8> {
    opcode(Schema::of(event), event.metadata(), event.opcode())
}

/// Returns the opcode of a kind of event; see [`event_opcode`].
pub fn kind_opcode(metadata: &Metadata) -> Option<u8> {
    opcode(Schema::of_kind(metadata), metadata, metadata.opcode())
}

/// Returns true if all events of this event's kind have its name: labels (V6) do not change its version or
/// opcode, and it is not a dynamic event of the garbage collector.
#[inline]
pub fn is_named_by_kind(event: &Event<'_>) -> bool {
    !(event.id() == dynamic::ID && Provider::of(event.metadata()) == Some(Provider::Runtime)
        || event.labels().any(|label| matches!(label, Label::Version(_) | Label::Opcode(_))))
}

fn opcode(schema: Option<&Schema>, metadata: &Metadata, recorded: Option<u8>) -> Option<u8> {
    match (recorded, schema) {
        (Some(opcode @ 1..), _) => Some(opcode),
        (_, Some(schema)) => Some(schema.opcode),
        _ => phase_at_end(metadata.name()).map(|(opcode, _)| opcode).or(recorded),
    }
}

/// The opcode that a name ends with, and the opcode's name.
///
/// # Source
/// `EventPipeMetadata.ExtractImpliedOpcode` of microsoft/perfview: the case does not matter.
fn phase_at_end(name: &str) -> Option<(u8, &'static str)> {
    [(START, "Start"), (STOP, "Stop")].into_iter().find(|(_, phase)| without_end(name, phase).is_some())
}

/// The part of `name` before `end`, in any case.
fn without_end<'a>(name: &'a str, end: &str) -> Option<&'a str> {
    let (task, rest) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(end).then_some(task)
}

impl<'a> EventName<'a> {
    /// Returns the name of a kind of event: of all its events without a [name of their
    /// own](is_named_by_kind).
    pub fn of_kind(metadata: &'a Metadata) -> Self {
        Self::new(Schema::of_kind(metadata), metadata, metadata.opcode())
    }

    fn new(schema: Option<&'static Schema>, metadata: &'a Metadata, opcode: Option<u8>) -> Self {
        match schema {
            Some(schema) if !schema.name.is_empty() => Self::traced(schema.name),
            Some(schema) if metadata.name().is_empty() => Self::of_manifest(schema),
            _ => Self::recorded(metadata.name(), metadata.event_id(), opcode),
        }
    }

    /// The name that TraceEvent has for an event of the runtime.
    fn traced(name: &'static str) -> Self {
        match name.rsplit_once('/') {
            Some((task, phase)) => Self::Phase { task, phase },
            None => Self::Plain(name),
        }
    }

    /// The name that TraceEvent would have for an event of the runtime that it does not know: task and opcode
    /// of the manifest, without the parts that it omits for known events.
    fn of_manifest(schema: &'static Schema) -> Self {
        let task = schema.task.strip_suffix("Private").unwrap_or(schema.task);
        let task = task.strip_suffix("Rundown").unwrap_or(task);
        let task = if task == "GarbageCollection" { "GC" } else { task.strip_prefix("CLR").unwrap_or(task) };
        let phase = schema.opcode_name.strip_prefix("win:").unwrap_or(schema.opcode_name);
        let phase = phase.strip_prefix(task).filter(|rest| !rest.is_empty()).unwrap_or(phase);
        Self::Phase { task, phase }
    }

    /// The name for the description of a kind of event in a recording.
    fn recorded(name: &'a str, id: u32, opcode: Option<u8>) -> Self {
        if name.is_empty() {
            return Self::Number(id);
        }
        match phase_at_end(name) {
            Some((ending, phase)) if matches!(opcode, None | Some(0)) || opcode == Some(ending) => {
                match without_end(name, phase) {
                    Some(task) if !task.is_empty() => Self::Phase { task, phase },
                    _ => Self::Plain(name),
                }
            }
            _ => Self::Plain(name),
        }
    }

    /// Returns true if `wanted` is its name, or a pattern that [matches it](Glob::matches_event).
    pub fn is_matched_by(&self, wanted: &Glob) -> bool {
        if wanted.is_pattern() {
            wanted.matches_event(&self.to_string())
        } else {
            self.matches(wanted.text())
        }
    }

    /// Returns true if `text` is this name, in any case. The undivided name of an event with a phase is also
    /// its name.
    pub fn matches(&self, text: &str) -> bool {
        match *self {
            Self::Plain(name) => name.eq_ignore_ascii_case(text),
            Self::Phase { task, phase } => {
                without_start(text, task).is_some_and(|rest| without_slash(rest).eq_ignore_ascii_case(phase))
            }
            // TraceEvent's name for unknown dynamic events.
            Self::Dynamic(_) if Self::traced(dynamic::NAME).matches(text) => true,
            Self::Dynamic(name) => without_start(text, "GC").is_some_and(|rest| {
                let rest = without_slash(rest);
                rest.chars().map(|c| c.to_ascii_lowercase()).eq(name.chars().map(|c| c.to_ascii_lowercase()))
            }),
            Self::Number(id) => {
                without_start(text, "EventID(")
                    .and_then(|rest| rest.strip_suffix(')'))
                    .and_then(|id| id.parse().ok())
                    == Some(id)
            }
        }
    }
}

/// The part of `text` after `start`, ignoring case.
fn without_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (begin, rest) = text.split_at_checked(start.len())?;
    begin.eq_ignore_ascii_case(start).then_some(rest)
}

fn without_slash(text: &str) -> &str {
    text.strip_prefix('/').unwrap_or(text)
}

impl fmt::Display for EventName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) => f.write_str(name),
            Self::Phase { task, phase } => write!(f, "{task}/{phase}"),
            Self::Dynamic(name) => write!(f, "GC/{name}"),
            Self::Number(id) => write!(f, "EventID({id})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_schema(provider: Provider, id: u32) -> EventName<'static> {
        let schema = Schema::find(provider, id, 9).unwrap();
        if schema.name.is_empty() { EventName::of_manifest(schema) } else { EventName::traced(schema.name) }
    }

    #[test]
    fn names_match_the_existing_tools() {
        for (name, id, opcode, shown) in [
            ("Ints", 1, None, "Ints"),
            ("RequestStart", 5, Some(1), "Request/Start"),
            ("RequestStop", 6, Some(2), "Request/Stop"),
            ("RequestStart", 5, Some(2), "RequestStart"),
            ("RequestStart", 5, Some(11), "RequestStart"),
            ("Request", 5, Some(1), "Request"),
            ("Start", 5, Some(1), "Start"),
            ("", 80, Some(1), "EventID(80)"),
            // No opcode was recorded: .NET Core 3.1, netperf.
            ("RequestStart", 5, None, "Request/Start"),
            ("RequestStop", 6, Some(0), "Request/Stop"),
            ("Start", 5, None, "Start"),
            ("RequestStarted", 5, None, "RequestStarted"),
            ("Restart", 5, None, "Re/Start"),
            ("ü", 5, None, "ü"),
            ("aüart", 5, None, "aüart"),
        ] {
            assert_eq!(EventName::recorded(name, id, opcode).to_string(), shown);
        }
    }

    #[test]
    fn the_runtimes_events_have_the_names_of_the_existing_tools() {
        let name = |provider, id| of_schema(provider, id).to_string();
        assert_eq!(name(Provider::Runtime, 10), "GC/AllocationTick");
        assert_eq!(name(Provider::UniversalSystem, 4), "ProcessSymbol");
        // Some events that they do not name.
        assert_eq!(name(Provider::Runtime, 200), "GC/IncreaseMemoryPressure");
        assert_eq!(name(Provider::Runtime, 201), "GC/DecreaseMemoryPressure");
        assert_eq!(name(Provider::Runtime, 40), "WorkerThreadCreation/Start");
        assert_eq!(name(Provider::Private, 189), "Method/JittedMethodRichDebugInfo");
        assert_eq!(name(Provider::Rundown, 160), "PerfTrack/ModuleRangeDCStart");
        assert_eq!(name(Provider::Runtime, 299), "Profiler/Profiler");
        assert!(of_schema(Provider::Runtime, 10).matches("gc/allocationtick"));
        assert!(of_schema(Provider::Runtime, 10).matches("GCAllocationTick"));
    }

    #[test]
    fn names_match_in_any_case_divided_or_not() {
        let start = EventName::recorded("RequestStart", 5, None);
        assert!(start.matches("Request/Start") && start.matches("requeststart"));
        assert!(
            !start.matches("Request/Stop") && !start.matches("Request") && !start.matches("Reqüest/Start")
        );
        assert!(EventName::recorded("", 80, None).matches("eventid(80)"));
        assert!(!EventName::recorded("", 80, None).matches("eventid(8)"));
        assert!(!EventName::recorded("Ints", 1, None).matches("Int"));
    }
}
