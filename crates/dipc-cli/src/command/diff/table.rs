//! A comparison as tables for a terminal.

use std::fmt::Write as _;

use nettrace_export::diff::{Change, Noise};

use crate::command::diff::{Report, cells};
use crate::render::escape::escape_controls;
use crate::render::frame_name::fit_csharp;
use crate::render::table::{Align, Columns, heading};
use crate::render::width;

/// The longest name of a table.
const NAME: usize = 70;

pub(super) fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (name, fact) in cells::facts(report) {
        let _ = writeln!(text, "{:<14}: {}", name, escape_controls(&fact));
    }
    let mut text = width::wrapped(&text, width::of_output());
    for (verdict, title) in cells::SECTIONS {
        let changes: Vec<_> = report.comparison.findings(verdict).collect();
        if !changes.is_empty() {
            section(&mut text, title, &changes, report, false);
        }
    }
    let _ = write!(text, "\n{}\n", cells::summary(report));
    let is_rest = |change: &&Change| {
        !change.is_finding()
            && (report.args.all || report.comparison.noise == Noise::Unknown || change.subject.is_all())
    };
    let rest: Vec<_> = report.comparison.changes.iter().filter(is_rest).collect();
    if !rest.is_empty() {
        let title = if report.args.all { "Everything else" } else { "Sums" };
        section(&mut text, title, &rest, report, true);
    }
    text
}

fn section(text: &mut String, title: &str, changes: &[&Change], report: &Report<'_>, has_verdict: bool) {
    use Align::{Left, Right};
    let _ = write!(text, "\n{}", heading(title));
    let headings = [
        ("CHANGE", Right),
        ("BASE", Right),
        ("NEW", Right),
        ("95% OF THE CHANGE", Right),
        ("OF", Left),
        ("NAME", Left),
    ];
    let [change, base, new, interval, of, name] = headings;
    let mut columns = if has_verdict {
        Columns::new([change, base, new, interval, ("JUDGED", Left), of, name])
    } else {
        Columns::new(headings)
    };
    for change in changes.iter().take(report.args.rows()) {
        let relative = cells::relative(change);
        let [base, new] = [change.base.value, change.new.value].map(|it| cells::value(change, it, report));
        let interval = cells::interval(change);
        let of = cells::what(change).to_owned();
        let name = fit_csharp(&cells::name(change, report), NAME);
        if has_verdict {
            columns.row([relative, base, new, interval, cells::verdict(change).to_owned(), of, name]);
        } else {
            columns.row([relative, base, new, interval, of, name]);
        }
    }
    text.push_str(&columns.fitted(&["JUDGED", "95% OF THE CHANGE"]));
    let left = changes.len().saturating_sub(report.args.rows());
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
}
