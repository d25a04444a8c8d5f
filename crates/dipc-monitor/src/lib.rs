//! Unattended monitoring of all .NET processes of a machine.
//!
//! # Modules
//!
//! - `filter`: the processes that a request or a rule is about.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod filter;

pub use filter::{Filter, FilterKey, MatchType, ProcessFacts};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
