//! A comparison as JSON.

use std::path::PathBuf;

use nettrace_export::diff::{Change, Noise, OneSided, Rule, RuleOutcome};
use serde::Serialize;

use crate::command::diff::Report;

/// The document.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    base: Side,
    new: Side,
    /// The unit of amounts and counts: `second`, `request`, `run` or `share`.
    per: &'static str,
    /// The source of the noise: `runs`, `stretches` or `unknown`.
    noise: Noise,
    tested: usize,
    min_change_percent: f64,
    error_rate: f64,
    allowance_percent: f64,
    not_compared: &'a [OneSided],
    conditions: Vec<Condition>,
    changes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Side {
    files: Vec<String>,
    seconds: f64,
    /// The recordings, or stretches of them, by which noise was told apart.
    units: usize,
    /// The part of the time that threads could run in which they had no processor; null if not known.
    queued_percent: Option<f64>,
}

#[derive(Serialize)]
struct Condition {
    /// As it was given.
    text: String,
    matched: usize,
    met: bool,
    /// The number of changes of which it cannot be told.
    undecided: usize,
}

#[derive(Serialize)]
struct Row<'a> {
    kind: &'static str,
    /// The whole name; null for all of the kind.
    name: Option<&'a str>,
    csharp: Option<&'a str>,
    #[serde(flatten)]
    change: &'a Change,
    difference: Option<f64>,
    relative_change: Option<f64>,
    /// The smallest difference that would have been a finding; null if it was not tested.
    detectable: Option<f64>,
    /// The units of each side that would decide about it; null if it is decided.
    deciding_units: Option<usize>,
}

pub(super) fn document<'a>(report: &Report<'a>) -> Document<'a> {
    let comparison = report.comparison;
    let side = |index: usize| Side {
        files: report.files[index].iter().map(|file: &PathBuf| file.display().to_string()).collect(),
        seconds: report.seconds[index],
        units: comparison.units[index],
        queued_percent: comparison.queued[index].map(|part| part * 100.0),
    };
    let condition = |(rule, outcome): &(&Rule, RuleOutcome<'_>)| Condition {
        text: rule.to_string(),
        matched: outcome.matched.len(),
        met: !outcome.met.is_empty(),
        undecided: outcome.undecided.len(),
    };
    let row = |change: &'a Change| Row {
        kind: change.subject.kind.name(),
        name: (!change.subject.is_all()).then_some(&*change.subject.name),
        csharp: (!change.subject.is_all()).then(|| change.name()),
        change,
        difference: change.difference(),
        relative_change: change.relative_change(),
        detectable: change.detectable(),
        deciding_units: change.deciding_units(),
    };
    Document {
        base: side(0),
        new: side(1),
        per: comparison.options.basis.name(),
        noise: comparison.noise,
        tested: comparison.tested,
        min_change_percent: comparison.options.least_change * 100.0,
        error_rate: comparison.options.error_rate,
        allowance_percent: comparison.options.allowance * 100.0,
        not_compared: &comparison.one_sided,
        conditions: report.conditions.iter().map(condition).collect(),
        changes: comparison.changes.iter().take(report.args.rows()).map(row).collect(),
    }
}
