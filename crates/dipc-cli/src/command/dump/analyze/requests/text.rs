//! The requests as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Age, List, Row, Subject};
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
    let mut text = format!(
        "{}, {}, {}",
        part(&list.incoming, "incoming request", "incoming requests"),
        part(&list.outgoing, "outgoing request", "outgoing requests"),
        units::counted(list.idle_connections, "idle connection", "idle connections"),
    );
    if !list.commands.is_empty() {
        let _ = write!(text, ", {}", part(&list.commands, "database command", "database commands"));
    }
    if list.unread_results > 0 {
        let results = units::counted(list.unread_results, "open result", "open results");
        let _ = write!(text, ", {results} that nothing reads from");
    }
    text
}

pub(super) fn table(list: &List, most: usize, room: Option<usize>) -> String {
    let mut text = width::wrapped(&(answer(list) + "\n"), room);
    let all = [("INCOMING", &list.incoming), ("OUTGOING", &list.outgoing), ("COMMAND", &list.commands)];
    for (title, rows) in all {
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&rows_text(title, rows, most));
        }
    }
    if all.iter().flat_map(|(_, rows)| *rows).any(|row| row.age.is_some_and(|age| age.is_minimum)) {
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
    // A command has no trace, and a request has no database.
    let is_command = |row: &Row| matches!(row.subject, Subject::Command { .. });
    let last = if rows.iter().any(is_command) { "DATABASE" } else { "TRACE" };
    let mut columns = Columns::new([
        ("AGE", Right),
        ("STATE", Left),
        (title, Left),
        ("THREAD", Right),
        ("IN", Left),
        (last, Left),
    ]);
    for row in rows.iter().take(most) {
        columns.row([
            age(row),
            row.state.to_owned(),
            subject(&row.subject),
            row.thread.map_or_else(String::new, |tid| tid.to_string()),
            code(row),
            database(&row.subject)
                .or_else(|| row.trace.as_ref().map(|ids| ids.trace.clone()))
                .unwrap_or_default(),
        ]);
    }
    let mut text = columns.fitted(&[title, "IN"]);
    let left = rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left as u64));
    }
    text
}

/// The method and URL of a request, or the text of a command in one line.
fn subject(subject: &Subject) -> String {
    const UNKNOWN: &str = "(not known)";
    match subject {
        Subject::Request { method, url, .. } => {
            let url = url.as_deref().unwrap_or(UNKNOWN);
            method.as_ref().map_or_else(|| url.to_owned(), |method| format!("{method} {url}"))
        }
        Subject::Command { text, .. } => {
            let text = text.as_deref().unwrap_or(UNKNOWN);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    }
}

/// The database of a command with its server.
fn database(subject: &Subject) -> Option<String> {
    let Subject::Command { server, database, .. } = subject else { return None };
    let known: Vec<&str> = [database, server].into_iter().filter_map(Option::as_deref).collect();
    Some(known.join(" on "))
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
