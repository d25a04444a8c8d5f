//! Faults as they are written.

use super::Fault;
use dipc_wire::HResult;
use std::str::FromStr;
use std::time::Duration;

/// Why a text does not name a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFaultError {
    /// There is no fault of that name.
    #[error("there is no fault {name:?}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The fault needs an argument, or another one.
    #[error("the fault {name} needs a number behind it, such as {example}, not {argument:?}")]
    Argument {
        /// The name.
        name: String,
        /// What stands behind the colon.
        argument: String,
        /// How it is written.
        example: &'static str,
    },
    /// The fault has no argument.
    #[error("the fault {name} has no argument, but {argument:?} stands behind it")]
    Surplus {
        /// The name.
        name: String,
        /// What stands behind the colon.
        argument: String,
    },
}

/// Reads a fault as [`Fault::LIST`] writes it.
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
        let number = argument.and_then(number);
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
        let written = Self::LIST.iter().map(|(written, _)| *written);
        let example = written.into_iter().find(|written| written.starts_with(name)).unwrap_or_default();
        let argument = argument.unwrap_or_default().into();
        fault.ok_or_else(|| ParseFaultError::Argument { name: name.into(), argument, example })
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Option<u64> {
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
        for (written, meaning) in Fault::LIST {
            assert_eq!(written.parse::<Fault>().unwrap().to_string(), *written, "{meaning}");
        }
    }

    #[test]
    fn a_wrong_fault_is_named_with_what_is_wrong() {
        let message = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(message("explode"), "there is no fault \"explode\"");
        assert_eq!(
            message("close-in-stream"),
            "the fault close-in-stream needs a number behind it, such as close-in-stream:4096, not \"\""
        );
        assert_eq!(
            message("error:0x180004005"),
            "the fault error needs a number behind it, such as error:0x80004005, not \"0x180004005\""
        );
        assert_eq!(
            message("never-stop:3"),
            "the fault never-stop has no argument, but \"3\" stands behind it"
        );
    }
}
