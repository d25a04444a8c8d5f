//! Requests that have not ended: those that ASP.NET Core serves, and those that `HttpClient` has sent.
//!
//! A request is found by the `async` methods and threads that work on it, so objects of ended requests, and
//! those that a server keeps for the next ones, are not taken for requests.

pub(crate) mod activity;
pub(crate) mod incoming;
pub(crate) mod machine;
pub(crate) mod outgoing;
pub(crate) mod stacks;
pub(crate) mod work;

use crate::analysis::ThreadSnapshot;
use crate::dump::view;
use crate::heap::HeapWalk;
use crate::memory::MemoryResult;
use crate::requests::incoming::{IncomingReader, IncomingRequest};
use crate::requests::outgoing::{OutgoingReader, OutgoingRequest};
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
        let mut incoming = IncomingReader::new(self.dump, &links, &threads);
        incoming.read();
        let mut outgoing = OutgoingReader::new(self.dump, &links, &threads);
        outgoing.read();
        let mut requests = OpenRequests {
            incoming: incoming.requests,
            outgoing: outgoing.requests,
            idle_connections: incoming.idle,
            heartbeat: incoming.heartbeat,
            is_truncated: links.is_full,
            walk: links.walk,
        };
        requests.is_truncated |= requests.incoming.len().max(requests.outgoing.len()) >= MAX_REQUESTS;
        requests.incoming.sort_by_key(|request| request.address);
        requests.outgoing.sort_by_key(|request| request.address);
        Ok(requests)
    }
}
