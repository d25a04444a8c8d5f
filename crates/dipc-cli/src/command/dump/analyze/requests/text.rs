//! The requests as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Age, List, Row};
use crate::inspect::tick_clock::time_text;
use crate::render::table::{Align, Columns};
use crate::render::{units, width};

/// The requests in one sentence.
pub(super) fn answer(list: &List) -> String {
    let part = |rows: &[Row], one: &str, many: &str| {
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows {
            *states.entry(row.state).or_default() += 1;
        }
        let mut states: Vec<_> = states.into_iter().collect();
        states.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let states: Vec<_> =
            states.into_iter().map(|(state, count)| format!("{} {state}", units::count(count))).collect();
        let count = units::counted(rows.len() as u64, one, many);
        if states.is_empty() { count } else { format!("{count} ({})", states.join(", ")) }
    };
    format!(
        "{}, {}, {}",
        part(&list.incoming, "incoming request", "incoming requests"),
        part(&list.outgoing, "outgoing request", "outgoing requests"),
        units::counted(list.idle_connections, "idle connection", "idle connections"),
    )
}

pub(super) fn table(list: &List, most: usize, room: Option<usize>) -> String {
    let mut text = width::wrapped(&(answer(list) + "\n"), room);
    for (title, rows) in [("INCOMING", &list.incoming), ("OUTGOING", &list.outgoing)] {
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&rows_text(title, rows, most));
        }
    }
    if list.incoming.iter().chain(&list.outgoing).any(|row| row.age.is_some_and(|age| age.is_minimum)) {
        text.push_str(
            "\nA core dump lacks the time at which it was written: ages are those when the server looked at its\n\
             connections last, which it does each second\n",
        );
    }
    if !list.is_complete {
        text.push_str("\nThe heap was not read to its end: requests can be missing\n");
    }
    text
}

fn rows_text(title: &str, rows: &[Row], most: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("AGE", Right),
        ("STATE", Left),
        (title, Left),
        ("THREAD", Right),
        ("IN", Left),
        ("TRACE", Left),
    ]);
    for row in rows.iter().take(most) {
        let method = row.method.as_deref().unwrap_or_default();
        let url = row.url.as_deref().unwrap_or("(not known)");
        columns.row([
            age(row),
            row.state.to_owned(),
            if method.is_empty() { url.to_owned() } else { format!("{method} {url}") },
            row.thread.map_or_else(String::new, |tid| tid.to_string()),
            code(row),
            row.trace.as_ref().map_or_else(String::new, |ids| ids.trace.clone()),
        ]);
    }
    let mut text = columns.fitted(&[title, "IN"]);
    let left = rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left as u64));
    }
    text
}

fn age(row: &Row) -> String {
    match (row.age, row.started) {
        (Some(Age { time, is_minimum }), _) => {
            let sign = if is_minimum { "≥ " } else { "" };
            format!("{sign}{}", units::time(time))
        }
        (None, Some(started)) => format!("since {}", time_text(started)),
        (None, None) => "unknown".to_owned(),
    }
}

/// The method of the program, or the innermost one of the framework.
fn code(row: &Row) -> String {
    let code = row.code.as_ref().or_else(|| row.chain.get(1)).or_else(|| row.chain.first());
    let code = code.map_or("", |code| code);
    if row.is_queued { format!("{code} (waits for a thread)") } else { code.to_owned() }
}
