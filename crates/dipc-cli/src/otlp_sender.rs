//! The thread that sends requests of OTLP to a collector.

mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clr_counters::otlp::{self, Request};
use dipc_monitor::OtlpTotals;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::exit::{Exit, Failure};
use crate::http::{Endpoint, Failed};
use crate::render::{messages, units};

use queue::Queue;

/// The time limit for sending the remaining requests at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// A thread that sends requests one after another.
pub(crate) struct Sender {
    items: &'static str,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
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
    /// Queues a request. Returns true if requests are dropped for it, once until the collector takes some again.
    fn add(&mut self, request: Request) -> bool {
        let dropped = self.queue.dropped;
        self.queue.add(request);
        self.queue.dropped != dropped && !std::mem::replace(&mut self.is_dropping, true)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    /// Starts the thread. `items` is the name of the requests' content: `points`.
    pub(crate) fn start(
        items: &'static str,
        endpoint: Endpoint,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, Failure> {
        let unstarted = |error| Failure::new(Exit::Failed, format_args!("start a thread: {error}"));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unstarted)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let run = move || {
            runtime.block_on(work(&of_thread, items, &endpoint, &headers));
            // A name lookup may take long.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(run).map_err(unstarted)?;
        Ok(Self { items, shared, thread })
    }

    /// Queues a request for sending.
    pub(crate) fn send(&self, request: Request) {
        let is_dropping = self.shared.state().add(request);
        if is_dropping {
            messages::warning(format_args!(
                "OTLP: the oldest {} are dropped: {} MB of requests wait for the collector",
                self.items,
                queue::MAX_BYTES >> 20
            ));
        }
        self.shared.changed.notify_one();
    }

    /// Returns what has become of the requests so far.
    pub(crate) fn totals(&self) -> OtlpTotals {
        let state = self.shared.state();
        OtlpTotals {
            queued_bytes: state.queue.bytes() as u64,
            sent_items: state.queue.sent.points,
            dropped_items: state.queue.dropped.points,
        }
    }

    /// Waits until all is sent, for [`LAST_REQUESTS`] at most, and reports the result. Fails if nothing
    /// arrived.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.shared.state().is_ending = true;
        self.shared.changed.notify_one();
        let _ = self.thread.join();
        let mut state = self.shared.state();
        state.queue.drop_all();
        let (sent, dropped) = (state.queue.sent, state.queue.dropped);
        let why = state.failure.take().unwrap_or_else(|| "there was no time".to_owned());
        let items = self.items;
        let (requests, points) = (units::count(sent.requests), units::count(sent.points));
        messages::note(format_args!("Pushed         : {points} {items} in {requests} requests"));
        if dropped.requests > 0 {
            let (requests, points) = (units::count(dropped.requests), units::count(dropped.points));
            let text = format!("{points} {items} in {requests} requests were dropped: {why}");
            if sent.requests == 0 {
                return Err(Failure::new(Exit::NotReachable, format_args!("OTLP: {text}")));
            }
            messages::warning(text);
        }
        Ok(())
    }
}

/// Sends requests until the end. A series of failures is reported when it begins and when it is over.
async fn work(shared: &Shared, items: &str, endpoint: &Endpoint, headers: &[(HeaderName, HeaderValue)]) {
    let mut is_failing = false;
    let mut end = None;
    loop {
        let (request, is_ending) = {
            let mut state = shared.state();
            (state.queue.take(), state.is_ending)
        };
        let Some(request) = request else {
            if is_ending {
                return;
            }
            shared.changed.notified().await;
            continue;
        };
        if is_ending {
            let end = *end.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
            if Instant::now() >= end {
                shared.state().queue.put_back(request, None);
                return;
            }
        }
        let outcome = send(shared, items, endpoint, headers, &request, &mut end).await;
        if let Some(wait) = note(shared, endpoint, request, outcome, &mut is_failing) {
            pause(shared, wait, end).await;
        }
    }
}

/// Records the outcome of a request, and returns the wait before it is sent again.
fn note(
    shared: &Shared,
    endpoint: &Endpoint,
    request: Request,
    outcome: Result<Option<String>, Failed>,
    is_failing: &mut bool,
) -> Option<Duration> {
    let mut state = shared.state();
    let was_failing = std::mem::replace(is_failing, outcome.is_err());
    let (reason, wait) = match outcome {
        Ok(remark) => {
            state.queue.succeed(&request);
            state.is_dropping = false;
            if was_failing {
                messages::note(format_args!("{endpoint}: it takes requests again"));
            }
            if let Some(remark) = remark {
                messages::warning(format_args!("{endpoint}: {remark}"));
            }
            return None;
        }
        Err(Failed::ForGood { reason }) => {
            state.queue.refuse(&request);
            (reason, None)
        }
        Err(Failed::ForNow { reason, wait }) => {
            let wait = state.queue.put_back(request, wait);
            (reason, Some(wait))
        }
    };
    if !was_failing {
        messages::warning(format_args!("{endpoint}: {reason}"));
    }
    state.failure = Some(reason);
    wait
}

/// Sends a request. After the end was requested, it shares the time limit of all remaining requests.
async fn send(
    shared: &Shared,
    items: &str,
    endpoint: &Endpoint,
    headers: &[(HeaderName, HeaderValue)],
    request: &Request,
    end: &mut Option<Instant>,
) -> Result<Option<String>, Failed> {
    tokio::select! {
        outcome = endpoint.send("application/x-protobuf", &request.bytes, headers) => outcome.map(|answer| {
            let rejected = otlp::rejected_points(&answer);
            rejected.map(|(points, why)| format!("{points} {items} were not taken: {why}"))
        }),
        () = until_end(shared, end) => {
            Err(Failed::ForNow { reason: "it does not answer".to_owned(), wait: None })
        }
    }
}

/// Waits before a request is sent again. A request to end cuts the wait short.
async fn pause(shared: &Shared, wait: Duration, end: Option<Instant>) {
    let _ = match end {
        Some(end) => tokio::time::timeout(wait, tokio::time::sleep_until(end)).await,
        None => tokio::time::timeout(wait, until_ending(shared)).await,
    };
}

async fn until_ending(shared: &Shared) {
    while !shared.state().is_ending {
        shared.changed.notified().await;
    }
}

/// Returns when the time for the last requests is over.
async fn until_end(shared: &Shared, end: &mut Option<Instant>) {
    until_ending(shared).await;
    let end = *end.get_or_insert_with(|| Instant::now() + LAST_REQUESTS);
    tokio::time::sleep_until(end).await;
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
        assert_eq!(state.queue.dropped.points, 20);
        state.is_dropping = false;
        assert!(state.add(request()));
    }
}
