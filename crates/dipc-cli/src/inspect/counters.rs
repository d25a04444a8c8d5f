//! Samples of counters, as files for programs and as tables for people.

mod clock;
mod file;
mod line;
mod origin;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use clr_counters::{Counters, Notice};

pub(crate) use clock::Clock;
pub(crate) use file::{CounterFile, CounterFormat};
pub(crate) use origin::CounterOrigin;
pub(crate) use summary::{Summary, label};

use crate::render::messages;
use crate::render::units;

/// Warns of counters that a session could not get. If there are several processes, `process` precedes each
/// warning.
pub(crate) fn report_notices(counters: &Counters, process: Option<&str>) {
    let before = process.map(|process| format!("{process}: ")).unwrap_or_default();
    if counters.left_out() > 0 {
        messages::warning(format_args!(
            "{before}{} values are left out: there are more series than are kept; name fewer with --counters",
            units::count(counters.left_out())
        ));
    }
    let mut said = Vec::new();
    for notice in counters.notices() {
        if !said.contains(&notice) {
            said.push(notice);
            messages::warning(format_args!("{before}{}", text(notice)));
        }
    }
}

/// Returns the help if counters arrived but none of them was requested; `None` if none arrived.
pub(crate) fn unselected_help(unselected: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    const SHOWN: usize = 30;
    let list = |(provider, names): (&String, &BTreeSet<String>)| {
        let shown: Vec<_> = names.iter().take(SHOWN).map(String::as_str).collect();
        let more = if names.len() > SHOWN { ",…" } else { "" };
        format!("{provider}[{}{more}]", shown.join(","))
    };
    let lists: Vec<_> = unselected.iter().map(list).collect();
    (!lists.is_empty()).then(|| format!("none of the received counters was requested: {}", lists.join(", ")))
}

/// Returns the text of a notice, with its remedy.
fn text(notice: &Notice) -> String {
    match notice {
        Notice::Error(message) => format!("the runtime ended the session of its Meters: {message}"),
        Notice::CallbackError(message) => {
            format!("an observable instrument of the program failed: {message}")
        }
        Notice::TimeSeriesLimit => {
            "the runtime left out time series: there are more than --maxTimeSeries allows".to_owned()
        }
        Notice::HistogramLimit => {
            "the runtime left out histograms: there are more than --maxHistograms allows".to_owned()
        }
        Notice::OtherSession(session) => {
            format!("the Meters of the process are held by another session, {session}: it must end first")
        }
        Notice::OtherSettings { expected, .. } => {
            let limit = |limit: Option<u32>| limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string());
            format!(
                "the Meters' session that clients share has other settings: --refresh-interval {} --maxTimeSeries {} --maxHistograms {}",
                expected.refresh_interval.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string()),
                limit(expected.max_time_series),
                limit(expected.max_histograms)
            )
        }
        other => format!("{other:?}"),
    }
}
