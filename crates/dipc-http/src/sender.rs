//! The thread that sends requests of OTLP to a collector.

mod queue;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clr_counters::otlp::{self, Request};
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::{Endpoint, RequestError};

use queue::Queue;

/// The time limit for sending the remaining requests at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// A thread that sends requests of OTLP to a collector, one after another. Requests that fail temporarily are
/// sent again; those that wait have at most 16 MiB, beyond which the oldest are dropped.
pub struct OtlpSender {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The receiver of remarks of an [`OtlpSender`], from its thread and from those that send.
pub type SenderObserver = Box<dyn Fn(SenderNote<'_>) + Send + Sync>;

/// A remark about requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderNote<'a> {
    /// The oldest requests are dropped, because more than `max_bytes` wait. Noted once until the collector
    /// takes some again.
    Dropping {
        /// Maximum number of bytes that wait.
        max_bytes: usize,
    },
    /// A request failed, and the one before it did not.
    Failed {
        /// The reason, with text of the collector.
        reason: &'a str,
    },
    /// The collector takes requests again.
    Resumed,
    /// The collector took a request without some of its items.
    Rejected {
        /// The number of points, records, spans or profiles that it did not take; 0 for a remark.
        items: u64,
        /// The collector's reason.
        reason: &'a str,
    },
}

/// A number of requests, and of the points, records, spans or profiles in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a pair of numbers")]
pub struct RequestCount {
    /// The requests.
    pub requests: u64,
    /// The items in them.
    pub items: u64,
}

impl RequestCount {
    fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.items += request.points as u64;
    }
}

/// The state of a sender's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderTotals {
    /// The bytes of requests that wait to be sent.
    pub queued_bytes: u64,
    /// The requests that have arrived.
    pub sent: RequestCount,
    /// The requests that were dropped, or refused by the collector.
    pub dropped: RequestCount,
    /// The reason of the last failure.
    pub failure: Option<String>,
}

struct Shared {
    endpoint: Endpoint,
    headers: Vec<(HeaderName, HeaderValue)>,
    observer: SenderObserver,
    state: Mutex<State>,
    /// Notified of each new request, and of the end.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    is_ending: bool,
    /// True if it was reported that requests are dropped, since the collector last took one.
    is_dropping: bool,
    /// The reason of the last failure.
    failure: Option<String>,
}

impl State {
    /// Queues a request. Returns true if requests are dropped for it, once until the collector takes some
    /// again.
    fn add(&mut self, request: Request) -> bool {
        let dropped = self.queue.dropped;
        self.queue.add(request);
        self.queue.dropped != dropped && !std::mem::replace(&mut self.is_dropping, true)
    }

    fn totals(&self) -> SenderTotals {
        SenderTotals {
            queued_bytes: self.queue.bytes() as u64,
            sent: self.queue.sent,
            dropped: self.queue.dropped,
            failure: self.failure.clone(),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OtlpSender {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread or its runtime cannot be started.
    pub fn start(
        endpoint: Endpoint,
        headers: Vec<(HeaderName, HeaderValue)>,
        observer: SenderObserver,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (state, changed) = (Mutex::default(), Notify::new());
        let shared = Arc::new(Shared { endpoint, headers, observer, state, changed });
        let of_thread = Arc::clone(&shared);
        let run = move || {
            runtime.block_on(of_thread.work());
            // A name lookup may take long.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(run)?;
        Ok(Self { shared, thread })
    }

    /// The collector's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    /// Queues a request for sending. Does not block.
    pub fn send(&self, request: Request) {
        let is_dropping = self.shared.state().add(request);
        if is_dropping {
            (self.shared.observer)(SenderNote::Dropping { max_bytes: queue::MAX_BYTES });
        }
        self.shared.changed.notify_one();
    }

    /// Returns what has become of the requests so far.
    pub fn totals(&self) -> SenderTotals {
        self.shared.state().totals()
    }

    /// Waits until all is sent, for five seconds at most, drops the rest, and returns the result.
    pub fn finish(self) -> SenderTotals {
        self.shared.state().is_ending = true;
        self.shared.changed.notify_one();
        // A panic of that thread was already printed.
        let _ = self.thread.join();
        let mut state = self.shared.state();
        state.queue.drop_all();
        state.totals()
    }
}

impl fmt::Debug for OtlpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSender").field("endpoint", &self.shared.endpoint).finish_non_exhaustive()
    }
}

/// A remark of the collector that took a request: the number of items without it, and the reason.
type Rejection = Option<(u64, String)>;

impl Shared {
    /// Sends requests until the end. A series of failures is noted when it begins and when it is over.
    async fn work(&self) {
        let mut is_failing = false;
        let mut end = None;
        loop {
            let (request, is_ending) = {
                let mut state = self.state();
                (state.queue.take(), state.is_ending)
            };
            let Some(request) = request else {
                if is_ending {
                    return;
                }
                self.changed.notified().await;
                continue;
            };
            if is_ending {
                let end = *end.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
                if Instant::now() >= end {
                    self.state().queue.put_back(request, None);
                    return;
                }
            }
            let outcome = self.send(&request, &mut end).await;
            if let Some(wait) = self.note(request, outcome, &mut is_failing) {
                self.pause(wait, end).await;
            }
        }
    }

    /// Records the outcome of a request, and returns the wait before it is sent again.
    fn note(
        &self,
        request: Request,
        outcome: Result<Rejection, RequestError>,
        is_failing: &mut bool,
    ) -> Option<Duration> {
        let was_failing = std::mem::replace(is_failing, outcome.is_err());
        let mut state = self.state();
        let (reason, wait) = match outcome {
            Ok(rejection) => {
                state.queue.succeed(&request);
                state.is_dropping = false;
                drop(state);
                if was_failing {
                    (self.observer)(SenderNote::Resumed);
                }
                if let Some((items, reason)) = rejection {
                    (self.observer)(SenderNote::Rejected { items, reason: &reason });
                }
                return None;
            }
            Err(RequestError::Refused { reason }) => {
                state.queue.refuse(&request);
                (reason, None)
            }
            Err(RequestError::Temporary { reason, wait }) => {
                let wait = state.queue.put_back(request, wait);
                (reason, Some(wait))
            }
        };
        state.failure = Some(reason.clone());
        drop(state);
        if !was_failing {
            (self.observer)(SenderNote::Failed { reason: &reason });
        }
        wait
    }

    /// Sends a request. After the end was requested, it shares the time limit of all remaining requests.
    async fn send(&self, request: &Request, end: &mut Option<Instant>) -> Result<Rejection, RequestError> {
        tokio::select! {
            outcome = self.endpoint.send("application/x-protobuf", &request.bytes, &self.headers) => {
                outcome.map(|answer| otlp::rejected_points(&answer))
            }
            () = self.until_end(end) => {
                Err(RequestError::Temporary { reason: "it does not answer".to_owned(), wait: None })
            }
        }
    }

    /// Waits before a request is sent again. A request to end cuts the wait short.
    async fn pause(&self, wait: Duration, end: Option<Instant>) {
        let _ = match end {
            Some(end) => tokio::time::timeout(wait, tokio::time::sleep_until(end)).await,
            None => tokio::time::timeout(wait, self.until_ending()).await,
        };
    }

    async fn until_ending(&self) {
        while !self.state().is_ending {
            self.changed.notified().await;
        }
    }

    /// Returns when the time for the last requests is over.
    async fn until_end(&self, end: &mut Option<Instant>) {
        self.until_ending().await;
        let end = *end.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
        tokio::time::sleep_until(end).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_requests_are_reported_once_until_the_collector_takes_some() {
        let mut state = State::default();
        let request = || Request::new(vec![0; 10 << 20], 10);
        let added: Vec<_> = (0..3).map(|_| state.add(request())).collect();
        assert_eq!(added, [false, true, false]);
        assert!(state.queue.bytes() <= queue::MAX_BYTES);
        assert_eq!(state.queue.dropped.items, 20);
        state.is_dropping = false;
        assert!(state.add(request()));
    }
}
