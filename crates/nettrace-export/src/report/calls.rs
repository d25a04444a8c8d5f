//! Calls by HTTP, and the phases in which their time goes.

use std::cmp::Reverse;
use std::time::Duration;

use hashbrown::HashMap;
use nettrace::{Event, Metadata, RelativeTime};
use uuid::Uuid;

use crate::report::span_name::call_name;
use crate::report::user_caller::UserCallerName;

/// Calls of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRow {
    /// The name of their row in the [report of requests](super::SpanRow::name).
    pub name: String,
    /// The number of calls that began.
    pub count: u64,
    /// Their time, up to the end of the recording.
    pub total: Duration,
    /// The part without a connection: in the queue of the connection pool, or connecting.
    pub without_connection: Duration,
    /// The part from the headers of the request to those of the answer, and its content if it is not
    /// buffered.
    pub answer: Duration,
    /// The user's method that began most of them, if it was looked up.
    pub from: Option<UserCallerName>,
}

/// The calls of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallsReport {
    /// By name, the longest sum of times first.
    pub rows: Vec<CallRow>,
    /// The time of all lookups of names together.
    pub resolving: Duration,
    /// The time of all attempts to connect together. They serve the connection pool, not single calls.
    pub connecting: Duration,
    /// The time of all TLS handshakes together.
    pub handshaking: Duration,
}

/// Gathers calls by `HttpClient`: `System.Net.Http` with the activities of `TplEventSource` (keyword 0x80);
/// `System.Net.NameResolution`, `System.Net.Sockets` and `System.Net.Security`. .NET 5 or later.
///
/// # Memory
/// Bounded: 65,536 calls that have not ended, 2,048 names. Further ones are left out.
#[derive(Debug, Default)]
pub struct Calls {
    open: HashMap<(Option<u64>, Uuid), OpenCall>,
    rows: HashMap<String, CallRow>,
    resolving: Overlap,
    connecting: Overlap,
    handshaking: Overlap,
    start: RelativeTime,
    end: RelativeTime,
}

/// A call that has not ended.
#[derive(Debug)]
struct OpenCall {
    name: String,
    start: RelativeTime,
    /// The time at which its request was sent.
    sent: Option<RelativeTime>,
    /// The time at which its answer was there.
    answered: Option<RelativeTime>,
}

const MAX_OPEN: usize = 1 << 16;
const MAX_ROWS: usize = 1 << 11;

/// The kind of an event of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Stop,
    /// The call itself has a connection.
    LeftQueue,
    /// A part of the call begins: its headers are sent.
    Sent,
    /// A part of the call begins: the content of the answer is read.
    Answered,
}

impl Kind {
    /// # Source
    /// `HttpTelemetry.cs` of dotnet/runtime.
    const fn of(id: u32) -> Option<Self> {
        match id {
            1 => Some(Self::Start),
            2 => Some(Self::Stop),
            6 => Some(Self::LeftQueue),
            7 => Some(Self::Sent),
            13 => Some(Self::Answered),
            _ => None,
        }
    }
}

impl Calls {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        match kind.provider() {
            "System.Net.Http" => Kind::of(kind.event_id()).is_some(),
            "System.Net.NameResolution" | "System.Net.Sockets" | "System.Net.Security" => {
                matches!(kind.event_id(), 1 | 2)
            }
            _ => false,
        }
    }

    /// Adds an event, which may be of any kind, in time order.
    pub fn add(&mut self, event: &Event<'_>) {
        let overlap = match event.provider() {
            "System.Net.Http" => return self.add_http(event),
            "System.Net.NameResolution" => &mut self.resolving,
            "System.Net.Sockets" => &mut self.connecting,
            "System.Net.Security" => &mut self.handshaking,
            _ => return,
        };
        match event.metadata().event_id() {
            1 => overlap.begin(event.relative_time()),
            2 => overlap.end(event.relative_time(), self.start),
            _ => {}
        }
    }

    fn add_http(&mut self, event: &Event<'_>) {
        let Some(kind) = Kind::of(event.metadata().event_id()) else { return };
        let (process, now) = (event.process_id(), event.relative_time().max(RelativeTime::START));
        // Parts of a call have activities of their own, within the call's.
        let is_part = matches!(kind, Kind::Sent | Kind::Answered);
        let Some(activity) = (if is_part { event.related_activity() } else { event.activity() }) else {
            return;
        };
        let key = (process, activity);
        match kind {
            Kind::Start if self.open.len() < MAX_OPEN => {
                let Some(name) = call_name(event) else { return };
                self.open.insert(key, OpenCall { name, start: now, sent: None, answered: None });
            }
            Kind::Start => {}
            Kind::LeftQueue | Kind::Sent => {
                if let Some(call) = self.open.get_mut(&key) {
                    call.sent.get_or_insert(now);
                }
            }
            Kind::Answered => {
                if let Some(call) = self.open.get_mut(&key) {
                    call.answered.get_or_insert(now);
                }
            }
            Kind::Stop => {
                if let Some(call) = self.open.remove(&key) {
                    self.count(call, now);
                }
            }
        }
    }

    fn count(&mut self, call: OpenCall, end: RelativeTime) {
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&call.name) {
            return;
        }
        let row = self
            .rows
            .entry(call.name)
            .or_insert_with_key(|name| CallRow { name: name.clone(), ..CallRow::default() });
        let sent = call.sent.unwrap_or(end);
        let add = |sum: &mut Duration, from: RelativeTime, to: RelativeTime| {
            *sum = sum.saturating_add(to.saturating_duration_since(from));
        };
        row.count = row.count.saturating_add(1);
        add(&mut row.total, call.start, end);
        add(&mut row.without_connection, call.start, sent);
        add(&mut row.answer, sent, call.answered.unwrap_or(end));
    }

    /// With this time range.
    #[must_use]
    pub fn with_range(self, start: RelativeTime, end: RelativeTime) -> Self {
        Self { start, end, ..self }
    }

    /// Returns the report. Calls that have not ended count up to the end of the [range](Self::with_range).
    pub fn finish(mut self) -> CallsReport {
        let end = self.end;
        for call in std::mem::take(&mut self.open).into_values() {
            self.count(call, end);
        }
        let mut rows: Vec<_> = self.rows.into_values().collect();
        rows.sort_by(|a, b| Reverse(a.total).cmp(&Reverse(b.total)).then_with(|| a.name.cmp(&b.name)));
        CallsReport {
            rows,
            resolving: self.resolving.total(end),
            connecting: self.connecting.total(end),
            handshaking: self.handshaking.total(end),
        }
    }
}

/// The sum of the times of operations with starts and ends that are not paired.
#[derive(Debug, Default)]
struct Overlap {
    open: u64,
    since: RelativeTime,
    total: Duration,
}

impl Overlap {
    fn begin(&mut self, now: RelativeTime) {
        self.advance(now);
        self.open = self.open.saturating_add(1);
    }

    fn end(&mut self, now: RelativeTime, start: RelativeTime) {
        self.advance(now);
        if self.open == 0 {
            // It began before the recording.
            self.total = self.total.saturating_add(now.saturating_duration_since(start));
        }
        self.open = self.open.saturating_sub(1);
    }

    fn advance(&mut self, now: RelativeTime) {
        let open = u32::try_from(self.open).unwrap_or(u32::MAX);
        let passed = now.saturating_duration_since(self.since).saturating_mul(open);
        self.total = self.total.saturating_add(passed);
        self.since = self.since.max(now);
    }

    fn total(mut self, end: RelativeTime) -> Duration {
        self.advance(end);
        self.total
    }
}
