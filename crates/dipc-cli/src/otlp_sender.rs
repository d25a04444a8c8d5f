//! A sender of requests of OTLP, with messages.

use clr_counters::otlp::Request;
use dipc_http::{Endpoint, OtlpSender, SenderNote};
use dipc_monitor::OtlpTotals;
use hyper::header::{HeaderName, HeaderValue};

use crate::exit::{Exit, Failure};
use crate::render::{messages, units};

/// A thread that sends requests one after another.
pub(crate) struct Sender {
    items: &'static str,
    sender: OtlpSender,
}

impl Sender {
    /// Starts the thread. `items` is the name of the requests' content: `points`.
    pub(crate) fn start(
        items: &'static str,
        endpoint: Endpoint,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, Failure> {
        let shown = endpoint.to_string();
        let observer = Box::new(move |note: SenderNote<'_>| print(note, items, &shown));
        let sender = OtlpSender::start(endpoint, headers, observer)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("start a thread: {error}")))?;
        Ok(Self { items, sender })
    }

    /// Queues a request for sending.
    pub(crate) fn send(&self, request: Request) {
        self.sender.send(request);
    }

    /// Returns the queued, sent and dropped counts so far.
    pub(crate) fn totals(&self) -> OtlpTotals {
        let totals = self.sender.totals();
        OtlpTotals {
            queued_bytes: totals.queued_bytes,
            sent_items: totals.sent.items,
            dropped_items: totals.dropped.items,
        }
    }

    /// Waits until all is sent, for some seconds at most, and reports the result. Fails if nothing arrived.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let items = self.items;
        let totals = self.sender.finish();
        let (sent, dropped) = (totals.sent, totals.dropped);
        let why = totals.failure.unwrap_or_else(|| "there was no time".to_owned());
        let (requests, points) = (units::count(sent.requests), units::count(sent.items));
        messages::note(format_args!("Pushed         : {points} {items} in {requests} requests"));
        if dropped.requests > 0 {
            let (requests, points) = (units::count(dropped.requests), units::count(dropped.items));
            let text = format!("{points} {items} in {requests} requests were dropped: {why}");
            if sent.requests == 0 {
                return Err(Failure::new(Exit::NotReachable, format_args!("OTLP: {text}")));
            }
            messages::warning(text);
        }
        Ok(())
    }
}

/// Prints a remark about requests to the collector at `endpoint`.
fn print(note: SenderNote<'_>, items: &str, endpoint: &str) {
    match note {
        SenderNote::Dropping { max_bytes } => messages::warning(format_args!(
            "OTLP: the oldest {items} are dropped: {} MB of requests wait for the collector",
            max_bytes >> 20
        )),
        SenderNote::Failed { reason } => messages::warning(format_args!("{endpoint}: {reason}")),
        SenderNote::Resumed => messages::note(format_args!("{endpoint}: it takes requests again")),
        SenderNote::Rejected { items: count, reason } => {
            messages::warning(format_args!("{endpoint}: {count} {items} were not taken: {reason}"));
        }
        _ => {}
    }
}
