//! Requests that have not ended: those that ASP.NET Core serves, those that `HttpClient` has sent, and
//! commands of SQL Server's clients.
//!
//! A request is found by the `async` methods and threads that work on it, so objects of ended requests, and
//! those that a server keeps for the next ones, are not taken for requests.

pub(crate) mod activity;
pub(crate) mod commands;
pub(crate) mod completions;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod property;
pub(crate) mod reader;
pub(crate) mod stacks;
pub(crate) mod work;

use crate::analysis::ThreadSnapshot;
use crate::dump::view;
use crate::heap::HeapWalk;
use crate::memory::MemoryResult;
use crate::requests::commands::DatabaseCommand;
use crate::requests::incoming::IncomingRequest;
use crate::requests::outgoing::OutgoingRequest;
use crate::requests::reader::RequestReader;
use crate::requests::stacks::ThreadObjects;

/// Maximum number of requests of each direction to return.
const MAX_REQUESTS: usize = 1 << 14;

view! {
    /// The requests of a dump.
    Requests, requests
}

/// The requests that have not ended.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenRequests {
    /// The requests that ASP.NET Core serves, by address.
    pub incoming: Vec<IncomingRequest>,
    /// The requests of `HttpClient`, by address.
    pub outgoing: Vec<OutgoingRequest>,
    /// The commands of clients of SQL Server, by address.
    pub commands: Vec<DatabaseCommand>,
    /// The number of open results of commands that no thread or method reads from.
    pub unread_results: u64,
    /// The number of connections of HTTP/1 without a request.
    pub idle_connections: u64,
    /// A time in the milliseconds of `Environment.TickCount64` at which the server looked at its connections
    /// last, as it does each second; `None` without a server.
    pub heartbeat: Option<u64>,
    /// True if a limit cut off requests.
    pub is_truncated: bool,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

impl Requests<'_> {
    /// Reads the requests that have not ended. Threads are those of the process: they tell which thread works
    /// on a request.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let threads: Vec<clr_dump::ThreadSnapshot> = Vec::new();
    /// let threads: Vec<_> = threads.iter().collect();
    /// for request in dump.requests().read(&threads)?.incoming {
    ///     println!("{:?} {:?}: {:?}", request.method, request.target, request.state);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn read(self, threads: &[&ThreadSnapshot]) -> MemoryResult<OpenRequests> {
        let links = self.dump.awaits().links()?;
        let threads = ThreadObjects::new(self.dump, threads);
        let mut reader = RequestReader::new(self.dump, &links, &threads);
        let incoming = reader.incoming();
        let outgoing = reader.outgoing();
        let commands = reader.commands();
        let mut requests = OpenRequests {
            incoming: incoming.requests,
            outgoing,
            commands: commands.open,
            unread_results: commands.unread_results,
            idle_connections: incoming.idle,
            heartbeat: incoming.heartbeat,
            is_truncated: links.is_full || commands.is_truncated,
            walk: links.walk,
        };
        requests.is_truncated |= requests.incoming.len().max(requests.outgoing.len()) >= MAX_REQUESTS;
        requests.incoming.sort_by_key(|request| request.address);
        requests.outgoing.sort_by_key(|request| request.address);
        requests.commands.sort_by_key(|command| command.address);
        Ok(requests)
    }
}
