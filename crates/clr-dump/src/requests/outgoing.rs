//! Requests that `HttpClient` has sent, or is to send.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Net.Http/src/System/Net/Http/HttpClient.cs`, `HttpRequestMessage.cs`,
//! `SocketsHttpHandler/HttpConnection.cs`, `ConnectionPool/HttpConnectionPool.cs`, `Http2Connection.cs`.
//! Measured on 9.0.1.

use hashbrown::HashMap;

use crate::heap::known_object::KnownContent;
use crate::memory::address::Address;
use crate::requests::MAX_REQUESTS;
use crate::requests::activity::{self, RequestStart, TraceIds};
use crate::requests::property::{known, reference, text};
use crate::requests::reader::RequestReader;
use crate::requests::work::RequestWork;

/// The namespace of the client's methods.
const HTTP: &str = "System.Net.Http.";
const REQUEST: &str = "System.Net.Http.HttpRequestMessage";
const RESPONSE: &str = "System.Net.Http.HttpResponseMessage";
const ACTIVITY: &str = "System.Diagnostics.Activity";
/// Maximum number of characters of a URL.
const MAX_URL: u32 = 256;
/// The parts of names of methods in which each state is, the one that is reached last first.
const STATES: [(OutgoingState, &[&str]); 4] = [
    (OutgoingState::ReadingResponse, &["HttpContent+<LoadIntoBuffer", "ReadStream+<"]),
    (OutgoingState::Sending, &["+<SendRequestContent", "+<SendRequestBody", "+<SendContent"]),
    (
        OutgoingState::WaitingForResponse,
        &["HttpConnection+<SendAsync", "Http2Connection+", "Http3RequestStream+", "Http3Connection+"],
    ),
    (
        OutgoingState::WaitingForConnection,
        &["HttpConnectionPool+<SendWithVersionDetectionAndRetry", "HttpConnectionPool+<SendWithRetry"],
    ),
];

/// A request of `HttpClient`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutgoingRequest {
    /// The address of the `HttpRequestMessage`.
    pub address: Address,
    /// The version of HTTP that the program asks for, such as `1.1` or `2.0`; `None` if unknown.
    pub version: Option<String>,
    /// The method, such as `GET`.
    pub method: Option<String>,
    /// The URL: its first 256 characters.
    pub url: Option<String>,
    /// The state.
    pub state: OutgoingState,
    /// The start; `None` of a request without activity and timeout.
    pub started: Option<RequestStart>,
    /// The ids of its activity; `None` without one.
    pub trace: Option<TraceIds>,
    /// The work on it, and the methods that wait for it.
    pub work: RequestWork,
}

/// The state of a request of `HttpClient`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutgoingState {
    /// A handler of the program works on it, or the state is unknown.
    Handler,
    /// It waits for a connection: a new one, or one that others use.
    WaitingForConnection,
    /// Its content is being sent.
    Sending,
    /// It was sent, and the response has not begun.
    WaitingForResponse,
    /// The response has begun, and its content is read.
    ReadingResponse,
}

/// The methods and threads that work on a request.
#[derive(Default)]
struct Parts {
    /// The indexes of the methods.
    methods: Vec<usize>,
    activity: Option<Address>,
    timeout: Option<RequestStart>,
    thread: Option<u64>,
    /// The types of the methods on the thread's stack.
    types: Vec<String>,
}

impl RequestReader<'_, '_> {
    /// Reads the requests of `HttpClient`.
    pub(super) fn outgoing(&mut self) -> Vec<OutgoingRequest> {
        let mut parts: HashMap<Address, Parts> = HashMap::new();
        self.find_methods(&mut parts);
        self.find_threads(&mut parts);
        parts.into_iter().map(|(request, parts)| self.outgoing_request(request, parts)).collect()
    }

    /// Finds the requests of the client's methods that have not ended.
    fn find_methods(&mut self, parts: &mut HashMap<Address, Parts>) {
        let methods: Vec<_> = self.methods(HTTP).collect();
        for (index, node) in methods {
            let variables = self.variables(node);
            let Some(request) = self.request_of(&variables) else { continue };
            if parts.len() >= MAX_REQUESTS && !parts.contains_key(&request) {
                continue;
            }
            let parts = parts.entry(request).or_default();
            parts.methods.push(index);
            for (_, object) in &variables {
                if self.is_a(*object, ACTIVITY) {
                    parts.activity = Some(*object);
                } else if parts.timeout.is_none() {
                    parts.timeout = activity::timeout_start(self.dump, *object);
                }
            }
        }
    }

    /// The request among the objects that a method has, or that of a response among them.
    fn request_of(&self, variables: &[(String, Address)]) -> Option<Address> {
        let find = |type_name: &str| {
            variables.iter().map(|(_, object)| *object).find(|object| self.is_a(*object, type_name))
        };
        find(REQUEST).or_else(|| reference(self.dump, find(RESPONSE)?, "_requestMessage"))
    }

    /// Finds the threads that work on requests, as those of `HttpClient.Send` do.
    fn find_threads(&self, parts: &mut HashMap<Address, Parts>) {
        for thread in self.threads.with_type(HTTP) {
            let objects = self.threads.objects(thread);
            let mut requests = objects.iter().filter(|object| self.is_a(**object, REQUEST));
            let (Some(request), None) = (requests.next(), requests.next()) else { continue };
            let runs = parts.get(request).is_none_or(|parts| self.is_running(parts));
            if runs && (parts.len() < MAX_REQUESTS || parts.contains_key(request)) {
                let parts = parts.entry(*request).or_default();
                parts.thread = Some(thread.id());
                parts.types = thread.types().map(ToOwned::to_owned).collect();
                let sources =
                    objects.iter().filter(|object| reference(self.dump, **object, "_timer").is_some());
                let mut starts = sources.filter_map(|source| activity::timeout_start(self.dump, *source));
                if let (None, Some(start), None) = (parts.timeout, starts.next(), starts.next()) {
                    parts.timeout = Some(start);
                }
            }
        }
    }

    fn is_running(&self, parts: &Parts) -> bool {
        let first = parts.methods.first();
        first.is_some_and(|method| RequestWork::of(self.links, *method).is_running)
    }

    fn outgoing_request(&self, request: Address, parts: Parts) -> OutgoingRequest {
        let dump = self.dump;
        // The outermost of its methods waits for the others.
        let waits_for = |of: usize| self.links.awaited.get(of).into_iter().flatten();
        let inner: Vec<usize> = parts.methods.iter().flat_map(|of| waits_for(*of)).copied().collect();
        let innermost = parts.methods.iter().find(|of| !waits_for(**of).any(|of| parts.methods.contains(of)));
        let outermost = parts.methods.iter().find(|of| !inner.contains(of)).or(innermost);
        let mut work = match outermost {
            Some(outermost) => RequestWork::of(self.links, *outermost).with_waiters(self.links, *outermost),
            None => RequestWork { is_running: true, ..RequestWork::default() },
        };
        work = self.with_waiting_thread(work);
        work.thread = parts.thread;
        let mut types: Vec<String> = work.types(dump).iter().map(ToString::to_string).collect();
        types.extend(parts.types);
        let url = reference(dump, request, "_requestUri");
        let method = reference(dump, request, "_method");
        let started = parts.activity.and_then(|activity| activity::start(dump, activity));
        OutgoingRequest {
            address: request,
            version: reference(dump, request, "_version").and_then(|of| self.known_text(of)),
            method: method.and_then(|method| text(dump, method, "_method")),
            url: url.and_then(|url| self.known_text(url)),
            state: state(&types),
            started: parts.timeout.or(started),
            trace: parts.activity.and_then(|activity| TraceIds::read(dump, activity)),
            work,
        }
    }

    /// The text of a URL or a version.
    fn known_text(&self, object: Address) -> Option<String> {
        match self.dump.heap().known_content(object, MAX_URL)? {
            KnownContent::Text { text, is_cut } => known(text, is_cut),
            _ => None,
        }
    }
}

/// The state by the methods that work on a request.
fn state(types: &[String]) -> OutgoingState {
    let is_any = |parts: &[&str]| {
        types
            .iter()
            .filter(|name| name.starts_with(HTTP))
            .any(|name| parts.iter().any(|part| name.contains(part)))
    };
    let found = STATES.iter().find(|(_, parts)| is_any(parts));
    found.map_or(OutgoingState::Handler, |(state, _)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_the_one_that_is_reached_last() {
        let names = |types: &[&str]| types.iter().map(|name| format!("{HTTP}{name}")).collect::<Vec<_>>();
        let pool = "HttpConnectionPool+<SendWithVersionDetectionAndRetryAsync>d__50";
        for (types, expected) in [
            (vec![], OutgoingState::Handler),
            (vec!["RedirectHandler+<SendAsync>d__4"], OutgoingState::Handler),
            (vec![pool], OutgoingState::WaitingForConnection),
            (vec!["HttpConnection+<SendAsync>d__57", pool], OutgoingState::WaitingForResponse),
            (
                vec![
                    "HttpConnection+<SendRequestContentAsync>d__61",
                    "HttpConnection+<SendAsync>d__57",
                    pool,
                ],
                OutgoingState::Sending,
            ),
            (
                vec!["HttpConnection+ContentLengthReadStream+<CompleteCopyToAsync>d__5"],
                OutgoingState::ReadingResponse,
            ),
        ] {
            assert_eq!(state(&names(&types)), expected, "{types:?}");
        }
        // Types of the program with such names say nothing.
        assert_eq!(state(&["Shop.HttpConnection+<SendAsync>d__1".to_owned()]), OutgoingState::Handler);
    }
}
