//! Requests that Kestrel, the server of ASP.NET Core, has received.
//!
//! # Source
//! dotnet/aspnetcore `src/Servers/Kestrel/Core/src/Internal/Http/HttpProtocol.cs`, `Http1Connection.cs`,
//! `Http2/Http2Stream.cs`, `Infrastructure/TimeoutControl.cs`;
//! `src/Hosting/Hosting/src/Internal/HostingApplication.cs`. Measured on 9.0.1.

use hashbrown::HashSet;

use crate::dump::Dump;
use crate::memory::address::Address;
use crate::requests::MAX_REQUESTS;
use crate::requests::activity::{self, RequestStart, TraceIds};
use crate::requests::property::{constant, number, reference, text};
use crate::requests::reader::RequestReader;
use crate::requests::stacks::OnStack;
use crate::requests::work::RequestWork;

/// The type of all requests.
const HTTP_PROTOCOL: &str = "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol";
/// The beginning of the name of the state machine that serves a connection or a stream.
const PROCESS_REQUESTS: &str =
    "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol+<ProcessRequests>d__";
/// The host's data for a request.
const CONTEXT: &str = "Microsoft.AspNetCore.Hosting.HostingApplication+Context";
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

/// The requests that a server has received.
#[derive(Default)]
pub(super) struct IncomingRequests {
    pub(super) requests: Vec<IncomingRequest>,
    pub(super) idle: u64,
    pub(super) heartbeat: Option<u64>,
    seen: HashSet<Address>,
}

impl RequestReader<'_, '_> {
    /// Reads the requests that a server has received.
    pub(super) fn incoming(&mut self) -> IncomingRequests {
        let mut found = IncomingRequests::default();
        let methods: Vec<_> = self.methods(PROCESS_REQUESTS).collect();
        for (index, node) in methods {
            let variables = self.variables(node);
            let request = variables.iter().find(|(_, object)| self.is_a(*object, HTTP_PROTOCOL));
            if let Some((_, request)) = request {
                self.add_incoming(&mut found, *request, RequestWork::of(self.links, index), &variables);
            }
        }
        // The first request of a connection can run before its methods have awaited anything.
        let threads = self.threads;
        for thread in threads.with_type(HTTP_PROTOCOL) {
            let objects = threads.objects(thread).iter();
            let mut requests = objects.filter(|object| self.is_a(**object, HTTP_PROTOCOL));
            if let (Some(request), None) = (requests.next(), requests.next()) {
                let work =
                    RequestWork { thread: Some(thread.id()), is_running: true, ..RequestWork::default() };
                self.add_incoming(&mut found, *request, work, &[]);
            }
        }
        found
    }

    /// Adds the request of a connection or stream, unless it has none.
    fn add_incoming(
        &self,
        found: &mut IncomingRequests,
        request: Address,
        mut work: RequestWork,
        variables: &[(String, Address)],
    ) {
        if found.requests.len() >= MAX_REQUESTS || !found.seen.insert(request) {
            return;
        }
        let dump = self.dump;
        found.heartbeat = found.heartbeat.max(heartbeat(dump, request));
        if work.is_running && work.thread.is_none() {
            work.thread = self.incoming_thread(request, &work);
        }
        let version = version(constant(dump, request, "_httpVersion").as_deref());
        // A stream is made for its request, and reads it at once.
        let is_stream = matches!(version, Some("2" | "3"));
        let status = constant(dump, request, "_requestProcessingStatus");
        let status = status.as_deref().filter(|status| !is_stream || *status != PENDING);
        let Some(state) = self.incoming_state(status, &work) else {
            found.idle = found.idle.saturating_add(1);
            return;
        };
        // That of the last request is kept until the headers are read.
        let context = (state != IncomingState::Reading).then(|| self.context(request, variables)).flatten();
        let activity = context.and_then(|context| activity_of(dump, context));
        let started = activity.and_then(|activity| activity::start(dump, activity)).or_else(|| {
            let timestamp = number(dump, context?, "StartTimestamp")?;
            activity::stopwatch_start(timestamp)
        });
        found.requests.push(IncomingRequest {
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
    fn incoming_thread(&self, request: Address, work: &RequestWork) -> Option<u64> {
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
    fn incoming_state(&self, status: Option<&str>, work: &RequestWork) -> Option<IncomingState> {
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
    fn context(&self, request: Address, variables: &[(String, Address)]) -> Option<Address> {
        let heap = self.dump.heap();
        let is_context = |(name, object): &&(String, Address)| {
            name.starts_with("<context>") || heap.type_name(*object).as_deref() == Some(CONTEXT)
        };
        if let Some((_, context)) = variables.iter().find(is_context) {
            return Some(*context);
        }
        let fields = self.dump.types().fields(heap.type_of(request)?);
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
