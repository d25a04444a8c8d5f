//! Requests that Kestrel, the server of ASP.NET Core, has received.
//!
//! # Source
//! dotnet/aspnetcore `src/Servers/Kestrel/Core/src/Internal/Http/HttpProtocol.cs`, `Http1Connection.cs`,
//! `Http2/Http2Stream.cs`, `Infrastructure/TimeoutControl.cs`;
//! `src/Hosting/Hosting/src/Internal/HostingApplication.cs`. Measured on 9.0.1.

use hashbrown::HashSet;

use crate::awaits::graph::{AwaitKind, AwaitLinks};
use crate::awaits::machine::{Machine, Machines};
use crate::dump::Dump;
use crate::memory::address::Address;
use crate::requests::MAX_REQUESTS;
use crate::requests::activity::{self, RequestStart, TraceIds};
use crate::requests::machine::{constant, number, reference, text};
use crate::requests::stacks::{OnStack, ThreadObjects};
use crate::requests::work::RequestWork;

/// The type of all requests.
const HTTP_PROTOCOL: &str = "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol";
/// The beginning of the name of the state machine that serves a connection or a stream.
const PROCESS_REQUESTS: &str =
    "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol+<ProcessRequests>d__";
/// The parts of Kestrel's names in which a handler reads the body of a request.
const BODY_READERS: [&str; 3] = ["MessageBody", "Http.HttpRequestStream", "Http.HttpRequestPipeReader"];
/// The parts of Kestrel's names in which a handler writes a response.
const WRITERS: [&str; 4] =
    ["OutputProducer", "Http.HttpResponseStream", "Http.HttpResponsePipeWriter", "PipeFlusher"];
/// The status of a connection without a request.
const PENDING: &str = "RequestPending";
const KESTREL: &str = "Microsoft.AspNetCore.Server.Kestrel.";

/// A request that a server has received.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IncomingRequest {
    /// The address of the server's object: a connection of HTTP/1, or a stream.
    pub address: Address,
    /// The version of HTTP, such as `1.1` or `2`; `None` if not read yet.
    pub version: Option<&'static str>,
    /// The method, such as `GET`; `None` if not read yet.
    pub method: Option<String>,
    /// The path and query, as the client sent them: the first 256 characters. `None` if not read yet.
    pub target: Option<String>,
    /// The state.
    pub state: IncomingState,
    /// The start; `None` if the server has not recorded it, as it does without an activity and counters.
    pub started: Option<RequestStart>,
    /// The ids of its activity; `None` without one.
    pub trace: Option<TraceIds>,
    /// The work on it.
    pub work: RequestWork,
}

/// The state of a request that a server has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncomingState {
    /// The client has not sent all of its headers.
    Reading,
    /// A handler runs or awaits something.
    Handler,
    /// A handler waits for the client to send the body.
    ReadingBody,
    /// The response has begun, and a handler runs or awaits something.
    Responding,
    /// A handler waits for the client to take the response.
    Writing,
}

/// The reader of incoming requests.
pub(super) struct IncomingReader<'r, 'm> {
    dump: &'r Dump<'m>,
    links: &'r AwaitLinks,
    threads: &'r ThreadObjects<'r>,
    machines: Machines<'r, 'm>,
    seen: HashSet<Address>,
    pub(super) requests: Vec<IncomingRequest>,
    pub(super) idle: u64,
    pub(super) heartbeat: Option<u64>,
}

impl<'r, 'm> IncomingReader<'r, 'm> {
    pub(super) fn new(dump: &'r Dump<'m>, links: &'r AwaitLinks, threads: &'r ThreadObjects<'r>) -> Self {
        Self {
            dump,
            links,
            threads,
            machines: Machines::new(dump),
            seen: HashSet::new(),
            requests: Vec::new(),
            idle: 0,
            heartbeat: None,
        }
    }

    /// Reads all requests.
    pub(super) fn read(&mut self) {
        for (index, node) in self.links.nodes.iter().enumerate() {
            let AwaitKind::Method { state_machine: Some(of), .. } = node.kind else { continue };
            let name = self.dump.types().name(of);
            if name.is_some_and(|name| name.starts_with(PROCESS_REQUESTS))
                && let Some(machine) = self.machines.of(node)
                && let Some(request) = self.machines.this(&machine)
            {
                self.add(request, RequestWork::of(self.links, index), Some(&machine));
            }
        }
        // The first request of a connection can run before its methods have awaited anything.
        let threads = self.threads;
        for thread in threads.with_type(PROCESS_REQUESTS) {
            let mut requests = threads.objects(thread).iter().filter(|object| self.is_request(**object));
            if let (Some(request), None) = (requests.next(), requests.next()) {
                let work =
                    RequestWork { thread: Some(thread.id()), is_running: true, ..RequestWork::default() };
                self.add(*request, work, None);
            }
        }
    }

    /// Returns true if an object is a connection of HTTP/1 or a stream.
    fn is_request(&self, object: Address) -> bool {
        let types = self.dump.types();
        let bases = self.dump.heap().type_of(object).map(|of| types.type_and_bases(of)).unwrap_or_default();
        bases.iter().any(|of| types.name(*of).as_deref() == Some(HTTP_PROTOCOL))
    }

    /// Adds the request of a connection or stream, unless it has none.
    fn add(&mut self, request: Address, mut work: RequestWork, machine: Option<&Machine>) {
        if self.requests.len() >= MAX_REQUESTS || !self.seen.insert(request) {
            return;
        }
        let dump = self.dump;
        self.heartbeat = self.heartbeat.max(heartbeat(dump, request));
        if work.is_running && work.thread.is_none() {
            work.thread = self.thread(request, &work);
        }
        let version = version(constant(dump, request, "_httpVersion").as_deref());
        // A stream is made for its request, and reads it at once.
        let is_stream = matches!(version, Some("2" | "3"));
        let status = constant(dump, request, "_requestProcessingStatus");
        let status = status.as_deref().filter(|status| !is_stream || *status != PENDING);
        let Some(state) = self.state(status, &work) else {
            self.idle = self.idle.saturating_add(1);
            return;
        };
        // That of the last request is kept until the headers are read.
        let context = (state != IncomingState::Reading).then(|| self.context(request, machine)).flatten();
        let activity = context.and_then(|context| activity_of(dump, context));
        let started = activity.and_then(|activity| activity::start(dump, activity)).or_else(|| {
            let timestamp = number(dump, context?, "StartTimestamp")?;
            activity::stopwatch_start(timestamp)
        });
        self.requests.push(IncomingRequest {
            address: request,
            version,
            method: method(dump, request),
            target: text(dump, request, "RawTarget"),
            state,
            started,
            trace: activity.and_then(|activity| TraceIds::read(dump, activity)),
            work,
        });
    }

    /// The thread that runs the innermost method of a chain.
    fn thread(&self, request: Address, work: &RequestWork) -> Option<u64> {
        let innermost = work.chain.first()?;
        let types = work.types(self.dump);
        let name = types.first()?;
        // The type arguments of the methods on a stack can be shared ones.
        let name = name.split('[').next().unwrap_or_default();
        let objects = [innermost.address, request];
        let objects = if work.chain.len() == 1 { &objects[..] } else { &objects[..1] };
        self.threads.running(objects, name).map(OnStack::id)
    }

    /// The state; `None` of a connection without a request.
    fn state(&self, status: Option<&str>, work: &RequestWork) -> Option<IncomingState> {
        match status {
            Some(PENDING) => return None,
            Some("ParsingRequestLine" | "ParsingHeaders") => return Some(IncomingState::Reading),
            _ => {}
        }
        let types = work.types(self.dump);
        let mut of_server = types.iter().filter(|name| name.starts_with(KESTREL));
        let innermost = of_server.next().map_or("", |name| name);
        let is_any = |parts: &[&str]| parts.iter().any(|part| innermost.contains(part));
        Some(match status {
            _ if is_any(&BODY_READERS) => IncomingState::ReadingBody,
            _ if is_any(&WRITERS) => IncomingState::Writing,
            Some("HeadersCommitted" | "HeadersFlushed") => IncomingState::Responding,
            _ => IncomingState::Handler,
        })
    }

    /// The data that the host has for a request.
    fn context(&mut self, request: Address, machine: Option<&Machine>) -> Option<Address> {
        let is_context = |(name, _): &(String, Address)| name.starts_with("<context>");
        let of_machine = machine.and_then(|of| self.machines.references(of).into_iter().find(is_context));
        if let Some((_, context)) = of_machine {
            return Some(context);
        }
        let fields = self.dump.types().fields(self.dump.heap().type_of(request)?);
        let field = fields.iter().find(|field| field.name.contains("HostContext"))?;
        reference(self.dump, request, &field.name)
    }
}

/// The activity of a request: in a feature, or in the context of older versions.
fn activity_of(dump: &Dump<'_>, context: Address) -> Option<Address> {
    const ACTIVITY: &str = "Activity";
    match reference(dump, context, "HttpActivityFeature") {
        Some(feature) => reference(dump, feature, ACTIVITY),
        None => reference(dump, context, ACTIVITY),
    }
}

/// The method: a known one, or the text of another.
fn method(dump: &Dump<'_>, request: Address) -> Option<String> {
    match constant(dump, request, "Method")?.as_str() {
        "None" => None,
        "Custom" => text(dump, request, "_methodText"),
        known => Some(known.to_uppercase()),
    }
}

fn version(name: Option<&str>) -> Option<&'static str> {
    match name? {
        "Http10" => Some("1.0"),
        "Http11" => Some("1.1"),
        "Http2" => Some("2"),
        "Http3" => Some("3"),
        _ => None,
    }
}

/// The time at which the server looked at the timeouts of a connection last, in the milliseconds of
/// `Environment.TickCount64`.
fn heartbeat(dump: &Dump<'_>, request: Address) -> Option<u64> {
    let context = reference(dump, request, "_context")?;
    let control = reference(dump, context, "TimeoutControl")?;
    let last = number(dump, control, "_lastTimestamp").filter(|last| *last != 0)?;
    Some(last / 1_000_000)
}
