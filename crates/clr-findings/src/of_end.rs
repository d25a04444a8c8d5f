//! The end of the process as a cause.

use clr_events::escape_controls;

use crate::finding::{Details, Finding, FindingKind};
use crate::names::short_name;
use crate::process::ProcessEnd;

/// Maximum number of lines of an exception that are evidence.
const LINES: usize = 4;

/// A signature in the runtime's notation: the name of a method does not depend on it.
const SIGNATURE: &str = "void  ()";

/// Returns the end of a process as a finding: the cause with its exception, and the nearest method of the
/// user's code. An exit without an error is none.
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

/// The method of a line of a stack, if it is of the user's code: `at Shop.Orders.Sell(Int32)` is
/// `Orders.Sell`.
fn user_method(line: &str) -> Option<String> {
    let (name, _) = line.strip_prefix("at ")?.split_once('(')?;
    let is_framework = ["System.", "Microsoft.", "Interop."].iter().any(|start| name.starts_with(start));
    // A constructor's name begins with a dot.
    let (of_type, _) = name.rsplit_once("..").or_else(|| name.rsplit_once('.'))?;
    let method = name.get(of_type.len().saturating_add(1)..)?;
    (!is_framework).then(|| short_name(of_type, method, SIGNATURE))
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_the_user_in_stacks_have_their_names_of_csharp() {
        for (line, method) in [
            ("at Shop.Orders.Sell(Int32 id) in /src/Orders.cs:line 12", Some("Orders.Sell")),
            ("at P.<Main>m__2()", Some("P.Main.AnonymousMethod__2")),
            ("at Shop.Orders..ctor(String name)", Some("Orders..ctor")),
            ("at System.Array.Copy(Array from)", None),
            ("Unhandled exception.", None),
        ] {
            assert_eq!(user_method(line).as_deref(), method, "{line}");
        }
    }
}
