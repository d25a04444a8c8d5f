//! Conditions over the events of .NET programs.
//!
//! **Use it** to let users state when to act, such as `gc pause > 200ms`, and evaluate that over events in
//! time order. **Not for** actions: it says that a condition holds, and the program acts.
//!
//! Features: `dipc-wire` (requests as providers). Rust 1.89 or later.
//!
//! # Example
//!
//! ```
//! use clr_conditions::Condition;
//!
//! let condition = Condition::parse("gc pause > 200ms and counter cpu-usage > 80")?;
//! assert_eq!(condition.requests().len(), 2);
//! let error = Condition::parse("exception X or gc pause > soon").expect_err("not a time");
//! assert_eq!(error.position(), 26);
//! # Ok::<(), clr_conditions::ParseError>(())
//! ```
//!
//! # The language
//!
//! ```text
//! condition = all { "or" all }
//! all       = part { "and" part } [ "within" time ]
//! part      = "(" condition ")"
//!           | "exception" [ type { "," type } ]
//!           | "event" provider [ "/" event ] [ [ "where" ] field { "," field } ]
//!           | "gc" [ "pause" ] comparison time
//!           | "request" [ [ "duration" ] comparison time ] [ "status" comparison number ] [ "path" text ]
//!           | [ "counter" ] [ provider "/" ] counter [ ":" number-of-it ] comparison number
//!           | ( ( "process" | "container" ) ( "cpu" | "memory" ) | "native" "memory" ) comparison amount
//!             [ "for" time ]
//!           | "exit" | "crash" | "disconnect"
//! field     = name comparison value | name ":" value
//! comparison = ">" | ">=" | "<" | "<=" | "=" | "==" | "!="
//! ```
//!
//! Types, providers, events and strings may have `*` for any characters and match in any case (without `*`,
//! the names of events and fields ignore only the case of ASCII letters). A string with blanks or signs has
//! to be quoted, single or double. Times are as in [`parse_duration`]: `500ms`, `2s`, `1m30s`.
//!
//! Pauses are as in [`clr_activity::Pauses`], and a request is a
//! [span](clr_activity::Span::is_served_request) that a server started and stopped, as in the reports. Only
//! the named counter is requested. .NET's own counters are requested as EventCounter or Meter, whichever has
//! the counter; other counters are requested as both. A prefix `EventCounters\` or `Meter\` of the provider
//! selects one kind.
//!
//! Parts joined by `and` have to be met by events within ten seconds of one another, or within the time after
//! `within`. A counter meets its condition from the first value beyond its bound until a value within it:
//! alone it counts once for each such stretch.
//!
//! The system's values of a process and its container, in `parse_for_rules` alone, are not events: pass them
//! to [`Evaluator::usage`]. An amount is in percent (`150%`): of a core for a process, of its limit for a
//! container; or, for memory, in bytes with a unit (`500MB`, `2GiB`). They meet their condition as counters
//! do; with `for`, once they have been beyond the bound for that time, at each reading.
//!
//! # Out of scope
//!
//! This crate reads no clock and no file. Times are taken from events.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod condition;
mod duration;
mod error;
mod evaluator;
mod exception;
mod field;
mod parser;
mod system;
mod token;

pub use clr_counters::ProviderRequest;
pub use condition::Condition;
pub use duration::parse_duration;
pub use error::ParseError;
pub use evaluator::{Evaluator, Match, StreamEnd};
pub use system::{SystemUsage, SystemValue};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(Condition, Evaluator, ParseError)>();
    };
}
