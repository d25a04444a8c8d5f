//! The end of the process as a cause.

use clr_events::escape_controls;

use crate::finding::{Details, Finding, FindingKind};
use crate::process::ProcessEnd;

/// Maximum number of lines of an exception that are evidence.
const LINES: usize = 4;

/// Returns the end of a process as a finding: the cause with the first line of its details, an exception with its
/// message above all.
pub(crate) fn finding(end: &ProcessEnd) -> Finding {
    let cause = capitalized(&escape_controls(&end.cause));
    let mut lines = end.details.iter().map(|line| escape_controls(line.trim()).into_owned());
    let cause = match lines.next() {
        Some(first) => format!("{cause}: {first}"),
        None => cause,
    };
    Finding::new(FindingKind::Death, f64::MAX, cause, Details::Exceptions).with_evidence(lines.take(LINES))
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
