//! The end of the process as a cause.

use clr_events::escape_controls;

use crate::finding::{Details, Finding, FindingKind};
use crate::process::ProcessEnd;

/// Maximum number of lines of an exception that are evidence.
const LINES: usize = 4;

/// Returns the end of a process as a finding: the cause with its exception, and the nearest method of the user's code.
/// An exit without an error is none.
pub(crate) fn finding(end: &ProcessEnd) -> Option<Finding> {
    if end.exit_code == Some(0) {
        return None;
    }
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with("---");
    let lines: Vec<_> = end.details.iter().map(|line| line.trim()).filter(is_text).collect();
    let method = lines.iter().find_map(|line| user_method(line));
    let exception = lines.first().filter(|line| !is_of_stack(line));
    let mut cause = capitalized(&escape_controls(&end.cause));
    if let Some(exception) = exception {
        cause = format!("{cause}: {}", escape_controls(exception));
    }
    if let Some(method) = &method {
        cause = format!("{cause}, in {method}");
    }
    let evidence = lines.iter().skip(usize::from(exception.is_some())).take(LINES);
    Some(
        Finding::new(FindingKind::Death, f64::MAX, cause, Details::Exceptions)
            .with_method(method)
            .with_evidence(evidence.map(|line| escape_controls(line).into_owned())),
    )
}

/// Returns true for a line of a stack, or what the runtime writes about repeated ones.
fn is_of_stack(line: &str) -> bool {
    line.starts_with("at ") || line.starts_with("Repeat")
}

/// The method of a line of a stack, if it is of the user's code: `at Shop.Orders.Sell(Int32)` is `Orders.Sell`.
fn user_method(line: &str) -> Option<String> {
    let (name, _) = line.strip_prefix("at ")?.split_once('(')?;
    let is_framework = ["System.", "Microsoft.", "Interop."].iter().any(|start| name.starts_with(start));
    let mut parts = name.rsplit('.');
    let (method, of_type) = (parts.next()?, parts.next()?);
    (!is_framework).then(|| escape_controls(&format!("{of_type}.{method}")).into_owned())
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
