//! The requests as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::text::answer;
use super::{List, Row, Subject};

/// Maximum number of methods of a chain.
const MAX_CHAIN: usize = 64;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The requests in one sentence.
    answer: String,
    complete: bool,
    /// Connections of HTTP/1 without a request.
    idle_connections: u64,
    incoming: Direction,
    outgoing: Direction,
    /// Commands of clients of SQL Server.
    commands: Direction,
    /// Open results of commands that nothing reads from.
    unread_results: u64,
}

#[derive(Debug, Serialize)]
struct Direction {
    requests: u64,
    /// The number of requests in each state.
    states: BTreeMap<&'static str, u64>,
    /// The oldest first; requests without a known start are last.
    rows: Vec<RowReport>,
}

#[derive(Debug, Serialize)]
struct RowReport {
    /// The address of the server's connection or stream, of the client's message, or of the command.
    address: String,
    state: &'static str,
    #[serde(flatten)]
    subject: SubjectReport,
    /// The time in UTC; null if the program has not recorded it.
    started: Option<String>,
    age_ms: Option<u64>,
    /// True for a core dump: the age when the server looked at its connections last.
    age_is_minimum: bool,
    /// The thread that works on it, or that waits for it.
    tid: Option<u64>,
    /// The innermost method of the program.
    r#in: Option<String>,
    /// True if the method waits for a thread of the pool.
    queued: bool,
    /// The awaited object and the methods that await, the innermost first.
    chain: Vec<String>,
    trace_id: Option<String>,
    span_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SubjectReport {
    Request {
        method: Option<String>,
        /// The path and query of an incoming request.
        url: Option<String>,
        version: Option<String>,
    },
    Command {
        server: Option<String>,
        database: Option<String>,
        /// The first 1024 characters.
        text: Option<String>,
    },
}

impl SubjectReport {
    fn new(subject: &Subject) -> Self {
        match subject {
            Subject::Request { method, url, version } => {
                Self::Request { method: method.clone(), url: url.clone(), version: version.clone() }
            }
            Subject::Command { server, database, text } => {
                Self::Command { server: server.clone(), database: database.clone(), text: text.clone() }
            }
        }
    }
}

impl Report {
    pub(super) fn new(list: &List, most: usize) -> Self {
        Self {
            answer: answer(list),
            complete: list.is_complete,
            idle_connections: list.idle_connections,
            incoming: Direction::new(&list.incoming, most),
            outgoing: Direction::new(&list.outgoing, most),
            commands: Direction::new(&list.commands, most),
            unread_results: list.unread_results,
        }
    }
}

impl Direction {
    fn new(rows: &[Row], most: usize) -> Self {
        let mut states = BTreeMap::new();
        for row in rows {
            *states.entry(row.state).or_default() += 1;
        }
        Self {
            requests: rows.len() as u64,
            states,
            rows: rows.iter().take(most).map(RowReport::new).collect(),
        }
    }
}

impl RowReport {
    fn new(row: &Row) -> Self {
        Self {
            address: format!("{:#x}", row.address),
            state: row.state,
            subject: SubjectReport::new(&row.subject),
            started: row.started.map(|time| time.to_string()),
            age_ms: row.age.and_then(|age| u64::try_from(age.time.as_millis()).ok()),
            age_is_minimum: row.age.is_some_and(|age| age.is_minimum),
            tid: row.thread,
            r#in: row.code.clone(),
            queued: row.is_queued,
            chain: row.chain.iter().take(MAX_CHAIN).cloned().collect(),
            trace_id: row.trace.as_ref().map(|ids| ids.trace.clone()),
            span_id: row.trace.as_ref().and_then(|ids| ids.span.clone()),
        }
    }
}
