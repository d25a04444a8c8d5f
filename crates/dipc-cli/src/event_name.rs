//! What an event is called.

use std::fmt;

use clr_events::{Provider, Schema};
use nettrace::{Event, Metadata};

const START: u8 = 1;
const STOP: u8 = 2;

/// The name of an event as the existing tools show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventName<'a> {
    /// The name that the recording has.
    Plain(&'a str),
    /// An event that begins or ends something: `Request/Start` for the name `RequestStart` with that opcode. The runtime's own
    /// events all have such names: `GC/AllocationTick`.
    Phase {
        /// What begins or ends.
        task: &'a str,
        /// `Start` or `Stop`; what happens.
        phase: &'static str,
    },
    /// Neither the recording nor the existing tools have a name for it.
    Number(u32),
}

impl<'a> EventName<'a> {
    /// The name of `event`.
    pub(crate) fn of(event: &Event<'a>) -> Self {
        match Schema::of(event) {
            Some(schema) => Self::known(schema),
            None => Self::new(event.name(), event.id(), event.opcode()),
        }
    }

    /// The name of a kind of event, with a version and an opcode that labels may have changed.
    pub(crate) fn of_kind(kind: &'a Metadata, version: u32, opcode: Option<u8>) -> Self {
        let provider = Provider::of(kind);
        match provider.and_then(|provider| Schema::find(provider, kind.event_id(), version)) {
            Some(schema) => Self::known(schema),
            None => Self::new(kind.name(), kind.event_id(), opcode),
        }
    }

    /// The name of an event of the runtime.
    fn known(schema: &'static Schema) -> Self {
        match schema.name.rsplit_once('/') {
            Some((task, phase)) => Self::Phase { task, phase },
            None => Self::new(schema.name, schema.id.into(), None),
        }
    }

    /// The name for what the recording says about a kind of event.
    fn new(name: &'a str, id: u32, opcode: Option<u8>) -> Self {
        let phase = match opcode {
            Some(START) => "Start",
            Some(STOP) => "Stop",
            _ => "",
        };
        match name.strip_suffix(phase) {
            _ if name.is_empty() => Self::Number(id),
            Some(task) if !phase.is_empty() && !task.is_empty() => Self::Phase { task, phase },
            _ => Self::Plain(name),
        }
    }

    /// Whether `text` is this name, in any case. The undivided name of an event with a phase is also its name.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::Plain(name) => name.eq_ignore_ascii_case(text),
            Self::Phase { task, phase } => {
                let prefix = text.get(..task.len()).filter(|prefix| prefix.eq_ignore_ascii_case(task));
                prefix
                    .and_then(|_| text.get(task.len()..))
                    .is_some_and(|rest| rest.strip_prefix('/').unwrap_or(rest).eq_ignore_ascii_case(phase))
            }
            Self::Number(_) => text.eq_ignore_ascii_case(&self.to_string()),
        }
    }
}

impl fmt::Display for EventName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) => f.write_str(name),
            Self::Phase { task, phase } => write!(f, "{task}/{phase}"),
            Self::Number(id) => write!(f, "EventID({id})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_existing_tools() {
        for (name, id, opcode, shown) in [
            ("Ints", 1, None, "Ints"),
            ("RequestStart", 5, Some(1), "Request/Start"),
            ("RequestStop", 6, Some(2), "Request/Stop"),
            ("RequestStart", 5, None, "RequestStart"),
            ("RequestStart", 5, Some(2), "RequestStart"),
            ("Request", 5, Some(1), "Request"),
            ("Start", 5, Some(1), "Start"),
            ("", 80, Some(1), "EventID(80)"),
        ] {
            assert_eq!(EventName::new(name, id, opcode).to_string(), shown);
        }
    }

    #[test]
    fn the_runtimes_events_have_the_names_of_the_existing_tools() {
        let name = |provider, id| EventName::known(Schema::find(provider, id, 9).unwrap());
        assert_eq!(name(Provider::Runtime, 10).to_string(), "GC/AllocationTick");
        assert_eq!(name(Provider::UniversalSystem, 4).to_string(), "ProcessSymbol");
        // One that they have no name for.
        assert_eq!(name(Provider::Runtime, 200).to_string(), "EventID(200)");
        assert!(name(Provider::Runtime, 10).matches("gc/allocationtick"));
        assert!(name(Provider::Runtime, 10).matches("GCAllocationTick"));
    }

    #[test]
    fn names_match_in_any_case_divided_or_not() {
        let start = EventName::new("RequestStart", 5, Some(1));
        assert!(start.matches("Request/Start") && start.matches("requeststart"));
        assert!(
            !start.matches("Request/Stop") && !start.matches("Request") && !start.matches("Reqüest/Start")
        );
        assert!(EventName::new("", 80, None).matches("eventid(80)"));
        assert!(!EventName::new("Ints", 1, None).matches("Int"));
    }
}
