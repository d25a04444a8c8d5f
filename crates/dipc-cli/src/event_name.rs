//! What an event is called.

use std::fmt;

use nettrace::Event;

const START: u8 = 1;
const STOP: u8 = 2;

/// The name of an event as the existing tools show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventName<'a> {
    /// The name that the recording has.
    Plain(&'a str),
    /// An event that begins or ends something: `Request/Start` for the name `RequestStart` with that opcode.
    Phase {
        /// What begins or ends.
        task: &'a str,
        /// `Start` or `Stop`.
        phase: &'static str,
    },
    /// The recording has no name for it: the runtime's own events are like that.
    Number(u32),
}

impl<'a> EventName<'a> {
    /// The name of `event`.
    pub(crate) fn of(event: &Event<'a>) -> Self {
        Self::new(event.name(), event.id(), event.opcode())
    }

    /// The name for what the recording says about a kind of event.
    pub(crate) fn new(name: &'a str, id: u32, opcode: Option<u8>) -> Self {
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
