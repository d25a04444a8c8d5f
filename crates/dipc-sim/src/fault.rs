//! Faults of a simulated runtime.

use dipc_wire::HResult;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A fault of a simulated runtime. Each has a name, by which it is printed and parsed.
///
/// ```
/// use dipc_sim::Fault;
/// use std::time::Duration;
///
/// assert_eq!("answer-late:2000".parse(), Ok(Fault::AnswerLate(Duration::from_secs(2))));
/// assert_eq!(Fault::CloseInStream { after: 4096 }.to_string(), "close-in-stream:4096");
/// assert!("explode".parse::<Fault>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `never-answer`: reads the request and does not answer; the connection stays open.
    NeverAnswer,
    /// `answer-late:MILLISECONDS`: waits before it answers.
    AnswerLate(Duration),
    /// `wrong-magic`: the reply does not begin with the magic of a message.
    WrongMagic,
    /// `wrong-size`: the reply's size is smaller than its header.
    WrongSize,
    /// `oversize`: the reply's size is the largest possible one, and the reply is shorter.
    Oversize,
    /// `error:HRESULT`: answers with this error.
    Error(HResult),
    /// `close-after-header`: closes the connection after the reply's first 20 bytes.
    CloseAfterHeader,
    /// `close-in-stream:BYTES`: closes a session's connection after this many bytes of its stream.
    CloseInStream {
        /// The bytes of the stream that are sent.
        after: usize,
    },
    /// `damage-in-stream:BYTES`: inverts [`Fault::DAMAGED_BYTES`] of a session's stream after this many
    /// bytes.
    DamageInStream {
        /// The bytes of the stream before the damage.
        after: usize,
    },
    /// `one-byte-at-a-time`: sends replies and streams in pieces of one byte.
    OneByteAtATime,
    /// `never-stop`: neither answers StopTracing nor ends the stream.
    NeverStop,
    /// `stop-reply-before-stream-end`: answers StopTracing before the stream ends. Real runtimes do either;
    /// without this fault the stream ends first.
    StopReplyBeforeStreamEnd,
    /// `flood`: a session's stream has more events than can be read; its sequence numbers show the lost ones.
    Flood,
    /// `die-in-the-middle:BYTES`: the process ends after this many bytes of a session's stream, with all
    /// connections. The socket file stays, as after a killed process.
    DieInTheMiddle {
        /// The bytes of the stream that are sent.
        after: usize,
    },
    /// `stale-socket`: the process has ended from the start: the socket file exists, and connections are
    /// refused.
    StaleSocket,
    /// `foreign-owner`: the socket belongs to another user, [`Fault::FOREIGN_USER`]. Only root can do this.
    ForeignOwner,
}

impl Fault {
    /// The owner of the socket with [`Fault::ForeignOwner`]: `nobody` on most systems.
    pub const FOREIGN_USER: u32 = 65_534;
    /// The number of bytes that [`Fault::DamageInStream`] damages.
    pub const DAMAGED_BYTES: usize = 64;

    /// The syntax of each fault.
    pub const SYNTAX: &'static [FaultSyntax] = &[
        FaultSyntax { example: "never-answer", effect: "reads requests and never answers" },
        FaultSyntax { example: "answer-late:2000", effect: "answers after this many milliseconds" },
        FaultSyntax { example: "wrong-magic", effect: "answers without the magic of a message" },
        FaultSyntax { example: "wrong-size", effect: "answers with a size smaller than the header" },
        FaultSyntax { example: "oversize", effect: "answers with a size larger than the answer" },
        FaultSyntax { example: "error:0x80004005", effect: "answers with this HRESULT as an error" },
        FaultSyntax {
            example: "close-after-header",
            effect: "closes the connection after the header of the reply",
        },
        FaultSyntax {
            example: "close-in-stream:4096",
            effect: "closes a session's connection after this many bytes of its stream",
        },
        FaultSyntax {
            example: "damage-in-stream:4096",
            effect: "damages a session's stream after this many bytes",
        },
        FaultSyntax { example: "one-byte-at-a-time", effect: "sends everything in pieces of one byte" },
        FaultSyntax { example: "never-stop", effect: "neither answers StopTracing nor ends the stream" },
        FaultSyntax {
            example: "stop-reply-before-stream-end",
            effect: "answers StopTracing before the stream ends",
        },
        FaultSyntax { example: "flood", effect: "sends more events than can be read, and loses some" },
        FaultSyntax {
            example: "die-in-the-middle:4096",
            effect: "dies after this many bytes of a session's stream",
        },
        FaultSyntax {
            example: "stale-socket",
            effect: "is dead from the start, and its socket file remains",
        },
        FaultSyntax {
            example: "foreign-owner",
            effect: "the socket belongs to another user (only root can do this)",
        },
    ];
}

/// The form in which a fault is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultSyntax {
    /// The fault, with an example of its argument if it takes one.
    pub example: &'static str,
    /// The effect of the fault.
    pub effect: &'static str,
}

/// Prints the fault in the form in which it is parsed.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverAnswer => f.write_str("never-answer"),
            Self::AnswerLate(delay) => write!(f, "answer-late:{}", delay.as_millis()),
            Self::WrongMagic => f.write_str("wrong-magic"),
            Self::WrongSize => f.write_str("wrong-size"),
            Self::Oversize => f.write_str("oversize"),
            Self::Error(hresult) => write!(f, "error:0x{:08x}", hresult.bits()),
            Self::CloseAfterHeader => f.write_str("close-after-header"),
            Self::CloseInStream { after } => write!(f, "close-in-stream:{after}"),
            Self::DamageInStream { after } => write!(f, "damage-in-stream:{after}"),
            Self::OneByteAtATime => f.write_str("one-byte-at-a-time"),
            Self::NeverStop => f.write_str("never-stop"),
            Self::StopReplyBeforeStreamEnd => f.write_str("stop-reply-before-stream-end"),
            Self::Flood => f.write_str("flood"),
            Self::DieInTheMiddle { after } => write!(f, "die-in-the-middle:{after}"),
            Self::StaleSocket => f.write_str("stale-socket"),
            Self::ForeignOwner => f.write_str("foreign-owner"),
        }
    }
}

/// A text is not a [`Fault`], or not a [`ScopedFault`](crate::ScopedFault).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFaultError {
    /// No fault has the name.
    #[error("unknown fault {name:?}")]
    #[non_exhaustive]
    Unknown {
        /// The name.
        name: String,
    },
    /// The argument is missing, or not a number in range.
    #[error("the fault {name} needs a number, such as {example}, not {argument:?}")]
    #[non_exhaustive]
    Argument {
        /// The name.
        name: String,
        /// The text after the colon.
        argument: String,
        /// An example of the fault with an argument.
        example: &'static str,
    },
    /// No command of the protocol has the name.
    #[error("{name:?} is not a command of the protocol, such as ProcessInfo3")]
    #[non_exhaustive]
    UnknownCommand {
        /// The name.
        name: String,
    },
    /// The number of a request is 0, or not a number.
    #[error("{number:?} is not the number of a request; the first one is 1")]
    #[non_exhaustive]
    Number {
        /// The text after the `#`.
        number: String,
    },
    /// The fault takes no argument.
    #[error("the fault {name} has no argument, but {argument:?} follows it")]
    #[non_exhaustive]
    Surplus {
        /// The name.
        name: String,
        /// The text after the colon.
        argument: String,
    },
}

/// Parses a fault in the form of [`Fault::SYNTAX`].
impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let fault = match name {
            "never-answer" => Self::NeverAnswer,
            "wrong-magic" => Self::WrongMagic,
            "wrong-size" => Self::WrongSize,
            "oversize" => Self::Oversize,
            "close-after-header" => Self::CloseAfterHeader,
            "one-byte-at-a-time" => Self::OneByteAtATime,
            "never-stop" => Self::NeverStop,
            "stop-reply-before-stream-end" => Self::StopReplyBeforeStreamEnd,
            "flood" => Self::Flood,
            "stale-socket" => Self::StaleSocket,
            "foreign-owner" => Self::ForeignOwner,
            _ => return Self::parse_with_argument(name, argument),
        };
        match argument {
            None => Ok(fault),
            Some(argument) => Err(ParseFaultError::Surplus { name: name.into(), argument: argument.into() }),
        }
    }
}

impl Fault {
    fn parse_with_argument(name: &str, argument: Option<&str>) -> Result<Self, ParseFaultError> {
        let number = argument.and_then(parse_number);
        let bytes = number.and_then(|number| usize::try_from(number).ok());
        let fault = match name {
            "answer-late" => number.map(Duration::from_millis).map(Self::AnswerLate),
            "error" => number
                .and_then(|number| u32::try_from(number).ok())
                .map(|bits| Self::Error(HResult::from_bits(bits))),
            "close-in-stream" => bytes.map(|after| Self::CloseInStream { after }),
            "damage-in-stream" => bytes.map(|after| Self::DamageInStream { after }),
            "die-in-the-middle" => bytes.map(|after| Self::DieInTheMiddle { after }),
            _ => return Err(ParseFaultError::Unknown { name: name.into() }),
        };
        let examples = Self::SYNTAX.iter().map(|syntax| syntax.example);
        let example = examples.into_iter().find(|example| example.starts_with(name)).unwrap_or_default();
        let argument = argument.unwrap_or_default().into();
        fault.ok_or_else(|| ParseFaultError::Argument { name: name.into(), argument, example })
    }
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_list_survives_a_round_trip() {
        for FaultSyntax { example, effect } in Fault::SYNTAX {
            assert_eq!(example.parse::<Fault>().unwrap().to_string(), *example, "{effect}");
        }
    }

    #[test]
    fn a_parse_error_names_the_fault_and_the_argument() {
        let message = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(message("explode"), "unknown fault \"explode\"");
        assert_eq!(
            message("close-in-stream"),
            "the fault close-in-stream needs a number, such as close-in-stream:4096, not \"\""
        );
        assert_eq!(
            message("error:0x180004005"),
            "the fault error needs a number, such as error:0x80004005, not \"0x180004005\""
        );
        assert_eq!(message("never-stop:3"), "the fault never-stop has no argument, but \"3\" follows it");
    }
}
