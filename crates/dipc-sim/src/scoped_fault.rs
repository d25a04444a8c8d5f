//! Faults of some requests only.

use crate::fault::{Fault, ParseFaultError};
use dipc_wire::CommandId;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// A fault, and the requests that it applies to: all requests, the requests of one command, or a single
/// request of either, selected by number.
///
/// Written as `FAULT[@COMMAND][#NUMBER]`, with the command's name in the protocol:
/// `error:0x80004005@ProcessInfo3#2` applies to the answer to the second ProcessInfo3, `never-answer#1` to
/// the first request of any command. Each form of a command counts as a command of its own.
///
/// ```
/// use dipc_sim::{CommandId, Fault, ScopedFault};
///
/// let second = ScopedFault::new(Fault::NeverAnswer).on(CommandId::STOP_TRACING).nth(2);
/// assert_eq!(second, "never-answer@StopTracing#2".parse()?);
/// # Ok::<(), dipc_sim::ParseFaultError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopedFault {
    pub(crate) fault: Fault,
    pub(crate) command: Option<CommandId>,
    pub(crate) number: Option<NonZeroU32>,
}

impl ScopedFault {
    /// Creates a fault of all requests.
    pub const fn new(fault: Fault) -> Self {
        Self { fault, command: None, number: None }
    }

    /// Returns the fault restricted to requests of `command`.
    #[must_use]
    pub const fn on(self, command: CommandId) -> Self {
        Self { command: Some(command), ..self }
    }

    /// Returns the fault restricted to the request with this number, among the requests that it applied to
    /// before. The first is 1; 0 means the first, too.
    ///
    /// ```
    /// use dipc_sim::{CommandId, Fault, Runtime, ScopedFault};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// // The first dump succeeds, the second one never ends.
    /// let second = ScopedFault::new(Fault::NeverAnswer).on(CommandId::GENERATE_CORE_DUMP_3).nth(2);
    /// let runtime = Runtime::builder().scoped_fault(second).start_in(folder.path())?;
    /// assert!(!runtime.has_died());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn nth(self, number: u32) -> Self {
        Self { number: Some(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)), ..self }
    }

    /// Returns the fault itself.
    pub const fn fault(self) -> Fault {
        self.fault
    }
}

impl From<Fault> for ScopedFault {
    fn from(fault: Fault) -> Self {
        Self::new(fault)
    }
}

/// Prints the fault in the form in which it is parsed.
impl fmt::Display for ScopedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        self.command.map_or(Ok(()), |command| write!(f, "@{command}"))?;
        self.number.map_or(Ok(()), |number| write!(f, "#{number}"))
    }
}

impl FromStr for ScopedFault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, number) = match text.split_once('#') {
            Some((rest, number)) => (rest, Some(number)),
            None => (text, None),
        };
        let (fault, command) = match rest.split_once('@') {
            Some((fault, command)) => (fault, Some(command)),
            None => (rest, None),
        };
        let scoped = Self::new(fault.parse()?);
        if matches!(scoped.fault, Fault::StaleSocket | Fault::ForeignOwner)
            && let Some(scope) = text.strip_prefix(fault).filter(|scope| !scope.is_empty())
        {
            return Err(ParseFaultError::Surplus { name: fault.into(), argument: scope.into() });
        }
        let command = match command {
            Some(name) => Some(command_named(name)?),
            None => None,
        };
        let number = match number {
            Some(text) => Some(text.parse().map_err(|_| ParseFaultError::Number { number: text.into() })?),
            None => None,
        };
        Ok(Self { command, number, ..scoped })
    }
}

fn command_named(name: &str) -> Result<CommandId, ParseFaultError> {
    let requests = CommandId::NAMED.iter().filter(|id| !matches!(**id, CommandId::OK | CommandId::ERROR));
    let found = requests.copied().find(|id| id.name().is_some_and(|known| known.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| ParseFaultError::UnknownCommand { name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_survives_a_round_trip() {
        for text in [
            "never-answer",
            "error:0x80004005@ProcessInfo3",
            "close-in-stream:4096@CollectTracing4#2",
            "answer-late:20#3",
        ] {
            assert_eq!(text.parse::<ScopedFault>().unwrap().to_string(), text);
        }
        let lower = "never-stop@stoptracing".parse::<ScopedFault>().unwrap();
        assert_eq!(lower, ScopedFault::new(Fault::NeverStop).on(CommandId::STOP_TRACING));
    }

    #[test]
    fn a_parse_error_names_the_part() {
        let message = |text: &str| text.parse::<ScopedFault>().unwrap_err().to_string();
        assert_eq!(
            message("flood@Flood"),
            "\"Flood\" is not a command of the protocol, such as ProcessInfo3"
        );
        assert_eq!(message("flood@OK"), "\"OK\" is not a command of the protocol, such as ProcessInfo3");
        for wrong in ["0", "", "x", "1#2"] {
            let text = format!("flood#{wrong}");
            assert_eq!(
                message(&text),
                format!("{wrong:?} is not the number of a request; the first one is 1")
            );
        }
        assert_eq!(message("explode#1"), "unknown fault \"explode\"");
        assert_eq!(
            message("stale-socket#2"),
            "the fault stale-socket has no argument, but \"#2\" follows it"
        );
    }
}
