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
/// The rows of undecided changes, without --all.
const OPEN_ROWS: usize = 5;

pub(super) fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (name, fact) in cells::facts(report) {
        let _ = writeln!(text, "{:<14}: {}", name, escape_controls(&fact));
    }
    let mut text = width::wrapped(&text, width::of_output());
    for (verdict, title) in cells::SECTIONS {
        let changes: Vec<_> = report.comparison.findings(verdict).collect();
        if !changes.is_empty() {
            section(&mut text, title, &changes, report, Judgement::Given);
        }
    }
    let undecided = cells::undecided(report);
    if !report.args.all && !undecided.is_empty() {
        section(&mut text, "Cannot tell", &undecided, report, Judgement::Open);
    }
    text.push_str(&width::wrapped(&format!("\n{}\n", cells::summary(report)), width::of_output()));
    let is_rest = |change: &&Change| {
        !change.is_finding()
            && (report.args.all || report.comparison.noise == Noise::Unknown || change.subject.is_all())
    };
    let rest: Vec<_> = report.comparison.changes.iter().filter(is_rest).collect();
    if !rest.is_empty() {
        let title = if report.args.all { "Everything else" } else { "Sums" };
        section(&mut text, title, &rest, report, Judgement::Named);
    }
    text
}

/// The columns about the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    /// The section has it in its title.
    Given,
    /// In a word.
    Named,
    /// The smallest change that would have been seen, and the number of recordings that would decide.
    Open,
}

fn section(text: &mut String, title: &str, changes: &[&Change], report: &Report<'_>, judgement: Judgement) {
    use Align::{Left, Right};
    let _ = write!(text, "\n{}", heading(title));
    let mut headings =
        vec![("CHANGE", Right), ("BASE", Right), ("NEW", Right), ("RANGE OF THE CHANGE", Right)];
    match judgement {
        Judgement::Given => {}
        Judgement::Named => headings.push(("JUDGED", Left)),
        Judgement::Open => headings.extend([("SEEN FROM", Right), ("DECIDED BY", Left)]),
    }
    headings.extend([("OF", Left), ("NAME", Left)]);
    let mut columns = Columns::new(headings);
    let rows = match judgement {
        Judgement::Open => report.args.rows().min(OPEN_ROWS),
        _ => report.args.rows(),
    };
    for change in changes.iter().take(rows) {
        let [base, new] = [change.base.value, change.new.value].map(|it| cells::value(change, it, report));
        let mut cells = vec![cells::relative(change), base, new, cells::range(change)];
        match judgement {
            Judgement::Given => {}
            Judgement::Named => cells.push(cells::verdict(change).to_owned()),
            Judgement::Open => cells.extend([cells::detectable(change), cells::deciding(change, report)]),
        }
        cells.extend([cells::what(change).to_owned(), fit_csharp(&cells::name(change, report), NAME)]);
        columns.row(cells);
    }
    text.push_str(&columns.fitted(&["SEEN FROM", "JUDGED", "RANGE OF THE CHANGE"]));
    let left = changes.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
}
