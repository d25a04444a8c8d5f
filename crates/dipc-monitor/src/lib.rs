//! Unattended monitoring of all .NET processes of a machine.
//!
//! # Modules
//!
//! - `filter`: the processes that a request or a rule is about.
//! - `process`, `monitor`: a process, and the table of all of them. `counters`: the shared session of a
//!   process's counters.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod counters;
mod filter;
mod monitor;
mod process;

pub use counters::{CounterConsumer, CounterRequest, CounterSubscription, SharedCounters};
pub use filter::{Filter, FilterKey, MatchType, ProcessFacts};
pub use monitor::{Monitor, MonitorConfig, MonitorError, ProcessObserver, Unanswered};
pub use process::Watched;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
