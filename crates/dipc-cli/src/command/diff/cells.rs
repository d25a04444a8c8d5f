//! The words and numbers of a comparison.

use std::time::Duration;

use nettrace_export::NameForm;
use nettrace_export::Unit;
use nettrace_export::diff::{Basis, Change, Kind, Noise, Statistic, Verdict};

use crate::command::diff::Report;
use crate::render::units;

/// The headings of findings, by descending importance.
pub(super) const SECTIONS: [(Verdict, &str); 3] =
    [(Verdict::Worse, "Worse"), (Verdict::Better, "Better"), (Verdict::Different, "Different load")];

/// Returns a number of a subject in words.
pub(super) fn what(change: &Change) -> &'static str {
    match (change.subject.kind, change.statistic) {
        (Kind::Cpu, _) => "CPU time",
        (Kind::CpuInclusive, _) => "CPU time with callees",
        (Kind::Blocked, _) => "blocked",
        (Kind::Allocations, _) => "allocated",
        (Kind::AllocatingMethods, _) => "allocated by",
        (Kind::Exceptions, _) => "exceptions",
        (Kind::GcPauses, Statistic::Amount) => "GC pauses",
        (Kind::GcPauses, Statistic::Count) => "number of GC pauses",
        (Kind::GcPauses, _) => "GC pause p99",
        (Kind::LockWaits, Statistic::Amount) => "lock waits",
        (Kind::LockWaits, Statistic::Count) => "number of lock waits",
        (Kind::LockWaits, _) => "lock wait p99",
        (_, Statistic::Mean) => "mean",
        (_, Statistic::P50) => "p50",
        (_, Statistic::P99) => "p99",
        (Kind::Requests, _) => "requests",
        (Kind::Calls, _) => "calls",
        _ => "operations",
    }
}

/// Returns the name of a change's subject in the requested form.
pub(super) fn name(change: &Change, report: &Report<'_>) -> String {
    if change.subject.is_all() {
        return match change.subject.kind {
            Kind::Requests => "(all requests)",
            Kind::Calls => "(all calls)",
            Kind::Operations => "(all operations)",
            _ => "(all)",
        }
        .to_owned();
    }
    let is_full = report.args.names.form() == NameForm::Full;
    if is_full { change.subject.name.to_string() } else { change.name().to_owned() }
}

/// Formats a value of a change, with its unit.
pub(super) fn value(change: &Change, value: Option<f64>, report: &Report<'_>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let basis = report.comparison.options.basis;
    if basis == Basis::Share && !change.statistic.is_duration() && !is_rate(change) {
        return units::percent(value * 100.0);
    }
    let text = match change.unit {
        Unit::Nanoseconds => time(value),
        Unit::Bytes => units::quantity(value, "B"),
        _ => units::quantity(value, ""),
    };
    if change.statistic.is_duration() {
        return text;
    }
    let per = match basis {
        _ if is_rate(change) => "/s",
        Basis::Second => "/s",
        Basis::Request => "/req",
        _ => "",
    };
    text + per
}

/// Returns true if a number refers to a second, whatever the basis.
fn is_rate(change: &Change) -> bool {
    change.subject.kind.is_spans() && change.statistic == Statistic::Count
}

/// Formats nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
fn time(nanoseconds: f64) -> String {
    units::time(Duration::from_nanos(nanoseconds.round() as u64))
}

/// Formats a relative change: `+12.3%`, `new` if the base is 0.
pub(super) fn relative(change: &Change) -> String {
    match (change.relative_change(), change.difference()) {
        (Some(relative), _) => signed_percent(relative),
        (None, Some(difference)) if difference > 0.0 => "new".to_owned(),
        _ => "-".to_owned(),
    }
}

fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{percent:+.digits$}%");
    if text.trim_start_matches(['+', '-', '0', '.']) == "%" { "0.0%".to_owned() } else { text }
}

/// The part of the base beyond which ranges are not given in numbers.
const WIDEST: f64 = 10.0;

/// Formats the range that the difference was judged by, relative to the base; `-` if it was not judged.
pub(super) fn range(change: &Change) -> String {
    let base = change.base.value.filter(|base| *base > 0.0);
    match (change.judged_interval, base) {
        (Some(range), Some(base)) if range.high - range.low > 2.0 * WIDEST * base => {
            format!("beyond ±{}", signed_percent(WIDEST).trim_start_matches('+'))
        }
        (Some(range), Some(base)) => {
            format!("{} to {}", signed_percent(range.low / base), signed_percent(range.high / base))
        }
        _ => "-".to_owned(),
    }
}

/// Formats the smallest change that would have been a finding, relative to the base.
pub(super) fn detectable(change: &Change) -> String {
    let base = change.base.value.filter(|base| *base > 0.0);
    match (change.detectable(), base) {
        (Some(least), Some(base)) => format!("±{}", signed_percent(least / base).trim_start_matches('+')),
        _ => "-".to_owned(),
    }
}

/// Returns the recordings that would decide about a change.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn deciding(change: &Change, report: &Report<'_>) -> String {
    let comparison = report.comparison;
    let units = comparison.units[0].max(comparison.units[1]).max(1);
    match (change.deciding_units(), comparison.noise) {
        (Some(needed), Noise::Runs) => format!("{needed} recordings a side"),
        (Some(needed), _) => {
            let seconds = report.seconds[0].max(report.seconds[1]) / units as f64 * needed as f64;
            format!("{} a side", units::time(Duration::from_secs_f64(seconds.round().clamp(0.0, 1e9))))
        }
        (None, Noise::Runs) => "more than 1,000 recordings a side".to_owned(),
        (None, _) => "several recordings a side".to_owned(),
    }
}

/// Returns the undecided changes that would be of interest if they are as they appear: those first that the
/// fewest recordings decide.
pub(super) fn undecided<'a>(report: &Report<'a>) -> Vec<&'a Change> {
    let is_large = |change: &&Change| {
        change.verdict == Verdict::Undecided && !change.subject.is_all() && change.is_of_interest()
    };
    let mut changes: Vec<_> = report.comparison.changes.iter().filter(is_large).collect();
    changes.sort_by_cached_key(|change| change.deciding_units().unwrap_or(usize::MAX));
    changes
}

/// Returns the judgement in a word.
pub(super) const fn verdict(change: &Change) -> &'static str {
    match change.verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Different => "different",
        Verdict::Same => "same",
        Verdict::Undecided => "cannot tell",
        _ => "not judged",
    }
}

/// Formats a change in one line.
pub(super) fn sentence(change: &Change, report: &Report<'_>) -> String {
    format!(
        "{} {} {} ({} to {})",
        name(change, report),
        what(change),
        relative(change),
        value(change, change.base.value, report),
        value(change, change.new.value, report),
    )
}

/// The difference between the parts of time without a processor from which it is said.
const FELT_QUEUE: f64 = 0.03;

/// The facts above the tables: the sides, and how noise was told apart.
pub(super) fn facts(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let side = |index: usize| {
        let files = report.files[index];
        let seconds = units::time(Duration::from_secs_f64(report.seconds[index].clamp(0.0, 1e9)));
        match files {
            [file] => format!("{} ({seconds})", file.display()),
            [first, ..] => format!("{} and {} more ({seconds})", first.display(), files.len() - 1),
            [] => String::new(),
        }
    };
    let comparison = report.comparison;
    let allowance = units::short_percent(comparison.options.allowance * 100.0);
    let noise = match comparison.noise {
        Noise::Runs => format!("by {} and {} recordings", comparison.units[0], comparison.units[1]),
        Noise::Stretches => format!(
            "by {} and {} stretches of time, and {allowance} for differences between runs, which one recording \
             a side does not show",
            comparison.units[0], comparison.units[1]
        ),
        _ => "not known: recordings of 5 s or more, or two of each side, are needed".to_owned(),
    };
    let mut facts = vec![("Base", side(0)), ("New", side(1)), ("Noise", noise)];
    if let [Some(base), Some(new)] = comparison.queued
        && (new - base).abs() >= FELT_QUEUE
    {
        let percent = |part: f64| units::short_percent((part * 100.0).round());
        facts.push((
            "Run queue",
            format!(
                "threads had no processor in {} of the time that they could run on the base side, in {} on the \
                 new one: amounts per second and durations differ by the load of the machine",
                percent(base),
                percent(new)
            ),
        ));
    }
    if !comparison.one_sided.is_empty() {
        let kinds: Vec<_> = comparison
            .one_sided
            .iter()
            .map(|it| {
                let side = if it.is_new { "new" } else { "base" };
                format!("{} (only {side} has any)", it.kind.name().replace('_', " "))
            })
            .collect();
        facts.push(("Not compared", kinds.join(", ")));
    }
    facts
}

/// The sentences below the findings: how many differences were tested, and how they were judged.
pub(super) fn summary(report: &Report<'_>) -> String {
    let comparison = report.comparison;
    let number = |is: &dyn Fn(&Change) -> bool| comparison.changes.iter().filter(|it| is(it)).count() as u64;
    let found = number(&Change::is_finding);
    let same = number(&|change| change.verdict == Verdict::Same);
    let undecided = number(&|change| change.verdict == Verdict::Undecided);
    let least = units::short_percent(comparison.options.least_change * 100.0);
    let found = match (comparison.noise, found) {
        (Noise::Unknown, _) => return "No difference was judged.".to_owned(),
        (_, 0) => format!("No change of {least} or more beyond noise"),
        (_, found) => {
            format!("{} of {least} or more beyond noise", units::counted(found, "change", "changes"))
        }
    };
    let sure = units::short_percent(100.0 - comparison.options.error_rate * 100.0);
    let rest = match (same, undecided) {
        (0, 0) => String::new(),
        (_, 0) => format!(" {same} are the same."),
        (0, _) => format!(" These recordings cannot decide {undecided} changes."),
        _ => format!(" {same} are the same; these recordings cannot decide {undecided}."),
    };
    let tested = units::counted(comparison.tested as u64, "test", "tests");
    format!("{found}, by {tested}.{rest} Ranges hold for all rows together with {sure} confidence.")
}
