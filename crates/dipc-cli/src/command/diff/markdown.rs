//! A comparison as Markdown for pull requests.

use std::fmt::Write as _;

use nettrace_export::diff::{Change, Verdict};

use crate::command::diff::{Report, cells};
use crate::render::escape::escape_controls;

pub(super) fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (verdict, title) in cells::SECTIONS {
        let changes: Vec<_> = report.comparison.findings(verdict).collect();
        if !changes.is_empty() {
            let _ = write!(text, "### {title}\n\n");
            table(&mut text, &changes, report);
            text.push('\n');
        }
    }
    let undecided = cells::undecided(report);
    if !report.args.all && !undecided.is_empty() {
        text.push_str("### Cannot tell\n\n");
        table(&mut text, &undecided, report);
        text.push('\n');
    }
    let _ = write!(text, "{}\n\n", cells::summary(report));
    let is_rest = |change: &&Change| !change.is_finding() && (report.args.all || change.subject.is_all());
    let rest: Vec<_> = report.comparison.changes.iter().filter(is_rest).collect();
    if !rest.is_empty() {
        text.push_str("<details><summary>Everything else</summary>\n\n");
        table(&mut text, &rest, report);
        text.push_str("\n</details>\n\n");
    }
    for (name, fact) in cells::facts(report) {
        let _ = writeln!(text, "- {name}: {}", plain(&fact));
    }
    text
}

fn table(text: &mut String, changes: &[&Change], report: &Report<'_>) {
    text.push_str(
        "| change | base | new | range of the change | judged | of | name |\n|--:|--:|--:|--:|---|---|---|\n",
    );
    for change in changes.iter().take(report.args.rows()) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cells::relative(change),
            cells::value(change, change.base.value, report),
            cells::value(change, change.new.value, report),
            cells::range(change),
            judged(change, report),
            cells::what(change),
            code(&cells::name(change, report))
        );
    }
    let left = changes.len().saturating_sub(report.args.rows());
    if left > 0 {
        let _ = writeln!(text, "\n{left} more");
    }
}

/// The judgement; of what cannot be told, what would decide.
fn judged(change: &Change, report: &Report<'_>) -> String {
    match (change.verdict, change.is_of_interest()) {
        (Verdict::Undecided, true) => {
            format!("{}: {} would decide", cells::verdict(change), cells::deciding(change, report))
        }
        _ => cells::verdict(change).to_owned(),
    }
}

/// Text in which nothing is markup.
fn plain(text: &str) -> String {
    let mut escaped = String::new();
    for c in escape_controls(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '@' | '~') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A name as code in a cell of a table. A code span begins with more backticks than occur in it, and a bar
/// ends a cell even there.
fn code(name: &str) -> String {
    let name = escape_controls(name).replace('|', "\\|");
    let (mut longest, mut length) = (0, 0);
    for c in name.chars() {
        length = if c == '`' { length + 1 } else { 0 };
        longest = longest.max(length);
    }
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{name}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_code() {
        assert_eq!(code("List<int>.Add(int)"), "`List<int>.Add(int)`");
        assert_eq!(code("List`1[A|B]"), "`` List`1[A\\|B] ``");
        assert_eq!(code("a\nb"), "`a\\nb`");
        assert_eq!(plain("<b>@x_1"), "\\<b\\>\\@x\\_1");
    }
}
