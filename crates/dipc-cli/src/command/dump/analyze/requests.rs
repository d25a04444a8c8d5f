//! `dipc dump analyze CORE requests`: the requests that have not ended, of ASP.NET Core and of `HttpClient`,
//! and commands of clients of SQL Server.

use std::time::Duration;

use clap::Args;
use clr_dump::{
    AwaitNode, CommandState, IncomingState, OpenRequests, OutgoingState, RequestStart, RequestWork, TraceIds,
};
use jiff::Timestamp;

mod json;
mod text;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::await_name::{await_name, is_of_program};
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_heap;
use crate::inspect::tick_clock::TickClock;
use crate::render::{output, width};

/// The default number of rows that are shown of each direction.
const ROWS: usize = 30;

#[derive(Debug, Args)]
pub(super) struct RequestsArgs {
    /// Number of requests to show of each direction, the oldest first [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(analysis: &Analysis<'_>, args: &RequestsArgs, format: Format) -> Result<Exit, Failure> {
    let requests = analysis
        .dump
        .requests()
        .read(&analysis.snapshots())
        .map_err(|missing| core_heap::lacks(analysis.source, &missing.to_string()))?;
    core_heap::check(analysis.source, &requests.walk)?;
    let list = List::new(analysis, &requests);
    match format {
        Format::Table => output::print(text::table(&list, args.head.unwrap_or(ROWS), width::of_output()))?,
        Format::Json => output::print_json(&json::Report::new(&list, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if list.is_complete { Exit::Done } else { Exit::Incomplete })
}

/// The requests of a process.
struct List {
    incoming: Vec<Row>,
    outgoing: Vec<Row>,
    commands: Vec<Row>,
    /// The number of open results of commands that nothing reads from.
    unread_results: u64,
    idle_connections: u64,
    is_complete: bool,
}

/// A request or a command.
struct Row {
    address: u64,
    state: &'static str,
    subject: Subject,
    age: Option<Age>,
    started: Option<Timestamp>,
    trace: Option<TraceIds>,
    /// The thread that works on it, or that waits for it.
    thread: Option<u64>,
    /// The innermost method of the program that runs or awaits something; `None` of requests that only the
    /// framework works on.
    code: Option<String>,
    /// True if the method waits for a thread of the pool.
    is_queued: bool,
    /// The methods that await something, and what the innermost of them awaits, which is the first.
    chain: Vec<String>,
}

/// The request or command itself.
enum Subject {
    Request { method: Option<String>, url: Option<String>, version: Option<String> },
    Command { server: Option<String>, database: Option<String>, text: Option<String> },
}

/// The time since the start of a request.
#[derive(Debug, Clone, Copy)]
struct Age {
    time: Duration,
    /// True for a core dump: the time until the server looked at its connections last.
    is_minimum: bool,
}

impl List {
    fn new(analysis: &Analysis<'_>, requests: &OpenRequests) -> Self {
        let clock = RequestClock {
            clock: TickClock::new(analysis.source, &analysis.dump),
            now: analysis.source.pid().map(|_| Timestamp::now()),
            heartbeat: requests.heartbeat,
        };
        let row = |subject: Subject, work: &RequestWork, started: Option<RequestStart>| Row {
            age: started.and_then(|start| clock.age(start)),
            started: started.and_then(|start| clock.time(start)),
            ..Row::of_work(analysis, work, subject)
        };
        let incoming = requests.incoming.iter().map(|of| Row {
            address: of.address.get(),
            state: incoming_state(of.state),
            trace: of.trace.clone(),
            ..row(
                Subject::Request {
                    method: of.method.clone(),
                    url: of.target.clone(),
                    version: of.version.map(ToOwned::to_owned),
                },
                &of.work,
                of.started,
            )
        });
        let outgoing = requests.outgoing.iter().map(|of| Row {
            address: of.address.get(),
            state: outgoing_state(of.state),
            trace: of.trace.clone(),
            ..row(
                Subject::Request {
                    method: of.method.clone(),
                    url: of.url.clone(),
                    version: of.version.as_deref().map(version),
                },
                &of.work,
                of.started,
            )
        });
        let commands = requests.commands.iter().map(|of| Row {
            address: of.address.get(),
            state: command_state(of.state),
            ..row(
                Subject::Command {
                    server: of.server.clone(),
                    database: of.database.clone(),
                    text: of.text.clone(),
                },
                &of.work,
                of.started,
            )
        });
        let mut list = Self {
            incoming: incoming.collect(),
            outgoing: outgoing.collect(),
            commands: commands.collect(),
            unread_results: requests.unread_results,
            idle_connections: requests.idle_connections,
            is_complete: core_heap::is_whole(&requests.walk) && !requests.is_truncated,
        };
        for rows in [&mut list.incoming, &mut list.outgoing, &mut list.commands] {
            // Those without a start come last.
            rows.sort_by_key(|row| (row.started.is_none(), row.started));
        }
        list
    }
}

impl Row {
    /// The parts of a request that its work shows.
    fn of_work(analysis: &Analysis<'_>, work: &RequestWork, subject: Subject) -> Self {
        let dump = &analysis.dump;
        let name = |node: &AwaitNode| await_name(dump, node);
        let code_of = |id: Option<u64>| {
            let thread = analysis.threads.iter().find(|of| Some(of.thread.os_id) == id)?;
            let mut frames = thread.frames.iter().filter(|frame| frame.is_user_code);
            frames.find_map(|frame| Some(frame.name.as_ref()?.text.clone()))
        };
        let awaiting = || work.chain.iter().find(|node| is_of_program(dump, node)).map(name);
        Self {
            address: 0,
            state: "",
            subject,
            age: None,
            started: None,
            trace: None,
            thread: work.thread.or(work.waiting_thread),
            code: code_of(work.thread).or_else(awaiting).or_else(|| code_of(work.waiting_thread)),
            is_queued: work.is_running && work.thread.is_none(),
            chain: work.chain.iter().map(name).collect(),
        }
    }
}

/// The clocks of a process, and the time of reading.
struct RequestClock {
    clock: TickClock,
    /// `None` of a core dump.
    now: Option<Timestamp>,
    heartbeat: Option<u64>,
}

impl RequestClock {
    fn time(&self, start: RequestStart) -> Option<Timestamp> {
        match start {
            RequestStart::Utc(ticks) => TickClock::utc(ticks),
            RequestStart::Tick(tick) => self.clock.time(tick).or_else(|| {
                let age = self.clock.until(tick).and_then(i64::checked_neg)?;
                self.now?.checked_sub(jiff::SignedDuration::from_millis(age)).ok()
            }),
            _ => None,
        }
    }

    fn age(&self, start: RequestStart) -> Option<Age> {
        let since =
            |from: Timestamp, to: Timestamp| Duration::try_from(to.duration_since(from)).unwrap_or_default();
        if let Some(now) = self.now {
            let time = match start {
                RequestStart::Tick(tick) => {
                    let age = self.clock.until(tick)?.checked_neg()?;
                    Duration::from_millis(u64::try_from(age).unwrap_or_default())
                }
                start => since(self.time(start)?, now),
            };
            return Some(Age { time, is_minimum: false });
        }
        let heartbeat = self.heartbeat?;
        let time = match start {
            RequestStart::Tick(tick) => Duration::from_millis(heartbeat.saturating_sub(tick)),
            start => since(self.time(start)?, self.clock.time(heartbeat)?),
        };
        Some(Age { time, is_minimum: true })
    }
}

const fn incoming_state(state: IncomingState) -> &'static str {
    match state {
        IncomingState::Reading => "reading",
        IncomingState::ReadingBody => "reading body",
        IncomingState::Responding => "responding",
        IncomingState::Writing => "writing",
        _ => "handler",
    }
}

const fn outgoing_state(state: OutgoingState) -> &'static str {
    match state {
        OutgoingState::WaitingForConnection => "waiting for a connection",
        OutgoingState::Sending => "sending",
        OutgoingState::WaitingForResponse => "waiting for response",
        OutgoingState::ReadingResponse => "reading response",
        _ => "handler",
    }
}

const fn command_state(state: CommandState) -> &'static str {
    match state {
        CommandState::ReadingRows => "reading rows",
        _ => "executing",
    }
}

/// The version of HTTP as servers write it: 2, not 2.0.
fn version(of: &str) -> String {
    match of {
        "2.0" => "2",
        "3.0" => "3",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
