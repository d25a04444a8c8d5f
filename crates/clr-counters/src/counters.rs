//! Samples from events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use nettrace::{Event, Metadata, RelativeTime, Source, TimeOrder};

use crate::event_counter::EventCounter;
use crate::meter::{Instrument, METRICS_PROVIDER, MeterEvent, MeterEventKind, MeterNotice, SharedSettings};
use crate::process_map::ProcessMap;
use crate::sample::{Measurement, Sample};
use crate::selection::Selection;
use crate::series::{Series, SeriesId, SeriesTable};

/// The time for which EventCounters wait for a Meter of the same name, as in dotnet-counters.
const HOLD: Duration = Duration::from_secs(1);

/// Maximum time that runtimes keep an event before they write it into the stream.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of values that wait for a Meter of the same name.
const MAX_HELD: usize = 100_000;

/// Maximum number of notices to keep.
const MAX_NOTICES: usize = 100;

/// Maximum number of unselected names to keep.
const MAX_UNSELECTED: usize = 100;

/// Maximum number of providers of processes for which Meters and EventCounters are distinguished.
const MAX_PROVIDERS: usize = 10_000;

/// Maximum number of sessions of Meters with known intervals.
const MAX_SESSIONS: usize = 10_000;

/// Typed samples from a stream of events, for EventCounters and Meters alike.
///
/// A name that is both an EventSource and a Meter of a process reports twice. As in dotnet-counters, the
/// Meter takes precedence from the first event that shows that it reports a chosen instrument; until then its
/// EventCounters are held, for one second at most.
///
/// Events have to be added in time order. The number of series bounds the memory.
///
/// ```no_run
/// use clr_counters::{Aspect, Counters, Selection};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut counters = Counters::new(Selection::everything());
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
/// counters.read_all(&mut events, |sample| {
///     println!("{} {:?}", sample.series.name, sample.number(Aspect::Value));
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Counters {
    selection: Selection,
    /// The session of Meters to take events from; all if `None`.
    session: Option<String>,
    series: SeriesTable,
    providers: ProcessMap<ProviderState>,
    /// Values of EventCounters that are held for a Meter, oldest first.
    held: VecDeque<Held>,
    /// The interval of the current values of each session of Meters.
    meter_intervals: ProcessMap<Option<Duration>>,
    notices: Vec<Notice>,
    notice_count: u64,
    unselected: BTreeMap<String, BTreeSet<String>>,
    unselected_count: usize,
    texts: Texts,
}

/// Texts of the current event, kept for their memory.
#[derive(Debug, Default)]
struct Texts {
    provider: String,
    name: String,
    session: String,
}

/// The state of a provider's name in a process.
#[derive(Debug)]
struct ProviderState {
    /// The time of its first value.
    first: RelativeTime,
    /// True if a Meter of this name reports a chosen instrument.
    is_meter: bool,
}

/// A value that is held.
#[derive(Debug)]
struct Held {
    process_id: Option<u64>,
    provider: String,
    value: TimedValue,
}

#[derive(Debug)]
struct TimedValue {
    time: RelativeTime,
    id: SeriesId,
    interval: Option<Duration>,
    nominal_interval: Option<Duration>,
    measurement: Measurement,
}

/// A limit or a fault in a session of Meters, or its refusal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The runtime's own error, which ends the session.
    Error(String),
    /// The program's callback for an observable instrument failed.
    CallbackError(String),
    /// Time series beyond the requested number are left out.
    TimeSeriesLimit,
    /// Histograms beyond the requested number are left out.
    HistogramLimit,
    /// Another session, of this name, holds the Meters of the process.
    OtherSession(String),
    /// The shared session has other settings than this client requested.
    OtherSettings {
        /// The client that was refused.
        client: String,
        /// The session's settings.
        expected: SharedSettings,
    },
}

impl Counters {
    /// The default of [`with_max_series`](Self::with_max_series).
    pub const DEFAULT_MAX_SERIES: usize = 100_000;

    /// Creates a state before the first event.
    pub fn new(selection: Selection) -> Self {
        Self {
            selection,
            session: None,
            series: SeriesTable::new(Self::DEFAULT_MAX_SERIES),
            providers: ProcessMap::new(MAX_PROVIDERS),
            held: VecDeque::new(),
            meter_intervals: ProcessMap::new(MAX_SESSIONS),
            notices: Vec::new(),
            notice_count: 0,
            unselected: BTreeMap::new(),
            unselected_count: 0,
            texts: Texts::default(),
        }
    }

    /// Keeps at most this many series; values of further series are [counted](Self::left_out).
    #[must_use]
    pub fn with_max_series(mut self, most: usize) -> Self {
        self.series = SeriesTable::new(most);
        self
    }

    /// Ignores values of Meters that another session requested.
    #[must_use]
    pub fn of_session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// Returns true if events of a kind may have values: others need not be added.
    pub fn needs(kind: &Metadata) -> bool {
        EventCounter::is_of(kind) || kind.provider() == METRICS_PROVIDER
    }

    /// Adds all remaining events, and passes all samples to `emit`: calls [`add`](Self::add) for each event,
    /// and then [`finish`](Self::finish).
    ///
    /// # Errors
    /// Errors of reading. The samples of all earlier events have been passed on.
    pub fn read_all<S: Source>(
        &mut self,
        events: &mut TimeOrder<S>,
        mut emit: impl FnMut(Sample<'_>),
    ) -> Result<(), nettrace::Error> {
        let outcome = events.for_each(|event| self.add(&event, &mut emit));
        self.finish(emit);
        outcome
    }

    /// Adds an event, and passes the samples that it completes to `emit`. Others wait for later events: after
    /// the last event call [`finish`](Self::finish).
    ///
    /// ```no_run
    /// use clr_counters::{Aspect, Counters, Selection};
    ///
    /// // Events of a live session, as they arrive.
    /// let mut counters = Counters::new(Selection::parse("System.Runtime[cpu-usage]")?);
    /// let mut events = nettrace::Reader::new(std::io::stdin().lock())?.in_time_order();
    /// while let Some(event) = events.next()? {
    ///     counters.add(&event, |sample| println!("{:?} %", sample.number(Aspect::Value)));
    /// }
    /// counters.finish(|sample| println!("{:?} %", sample.number(Aspect::Value)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add(&mut self, event: &Event<'_>, mut emit: impl FnMut(Sample<'_>)) {
        let time = event.relative_time();
        self.release(Some(time), &mut emit);
        if let Some(counter) = EventCounter::of(event) {
            self.add_counter(event, &counter, &mut emit);
        } else if let Some(meter_event) = MeterEvent::of(event) {
            self.add_meter_event(event.process_id(), time, meter_event, &mut emit);
        }
    }

    /// Passes the samples that are still held to `emit`.
    pub fn finish(&mut self, mut emit: impl FnMut(Sample<'_>)) {
        self.release(None, &mut emit);
    }

    /// The series with values, in the order of their first values.
    pub fn series(&self) -> &[Series] {
        self.series.list()
    }

    /// The number of values that were left out because there were too many series.
    pub const fn left_out(&self) -> u64 {
        self.series.left_out
    }

    /// The first hundred notices.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The number of notices.
    pub const fn notice_count(&self) -> u64 {
        self.notice_count
    }

    /// The names of unselected counters and instruments in the stream, by provider: the first hundred.
    pub const fn unselected(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.unselected
    }

    fn add_counter(
        &mut self,
        event: &Event<'_>,
        counter: &EventCounter<'_>,
        emit: &mut impl FnMut(Sample<'_>),
    ) {
        let (provider, time) = (event.provider(), event.relative_time());
        let process_id = event.process_id();
        write_text(&mut self.texts.name, counter.name);
        if !self.selection.has_event_counter(provider, &self.texts.name) {
            self.texts.provider.clear();
            self.texts.provider.push_str(provider);
            self.add_unselected();
            return;
        }
        let state = self.providers.get(process_id, provider);
        let (first, is_meter) = state.map_or((time, false), |state| (state.first, state.is_meter));
        if is_meter {
            return;
        }
        if state.is_none() {
            self.providers.set(process_id, provider, ProviderState { first: time, is_meter });
        }
        let Some(id) = self.series.of_counter(process_id, provider, counter) else { return };
        let value = TimedValue {
            time,
            id,
            interval: counter.interval,
            nominal_interval: counter.series,
            measurement: Measurement::EventCounter(counter.value),
        };
        let may_become_meter =
            time.saturating_duration_since(first) <= HOLD && self.selection.may_have_instruments(provider);
        if may_become_meter && self.held.len() < MAX_HELD {
            self.held.push_back(Held { process_id, provider: provider.to_owned(), value });
        } else {
            emit_value(&self.series, &value, emit);
        }
    }

    fn add_meter_event(
        &mut self,
        process_id: Option<u64>,
        time: RelativeTime,
        event: MeterEvent<'_>,
        emit: &mut impl FnMut(Sample<'_>),
    ) {
        let is_other = |wanted: &String| !event.session.chars().eq(wanted.chars());
        if self.session.as_ref().is_some_and(is_other) {
            return;
        }
        write_text(&mut self.texts.session, event.session);
        match event.kind {
            MeterEventKind::CollectionStart(interval) => {
                self.meter_intervals.set(process_id, &self.texts.session, interval.duration());
            }
            MeterEventKind::InstrumentBegin(instrument) => {
                if self.selects(&instrument) {
                    self.mark_meter(process_id, time);
                    self.series.begin(process_id, &instrument);
                }
            }
            MeterEventKind::Value(value) => {
                if !self.selects(&value.instrument) {
                    return;
                }
                self.mark_meter(process_id, time);
                if let Some(id) = self.series.of_value(process_id, &value) {
                    let interval = self.meter_intervals.get(process_id, &self.texts.session);
                    let interval = interval.copied().flatten();
                    let value = TimedValue {
                        time,
                        id,
                        interval,
                        nominal_interval: interval,
                        measurement: Measurement::Meter(value.measurement),
                    };
                    emit_value(&self.series, &value, emit);
                }
            }
            MeterEventKind::Notice(notice) => {
                self.notice_count = self.notice_count.saturating_add(1);
                if self.notices.len() < MAX_NOTICES {
                    self.notices.push(Notice::of(notice));
                }
            }
            MeterEventKind::InstrumentEnd(_)
            | MeterEventKind::InstrumentPublished(_)
            | MeterEventKind::EnumerationComplete
            | MeterEventKind::CollectionStop(_) => {}
        }
    }

    /// Returns true if an instrument is chosen; its Meter's name is in `texts` afterwards.
    fn selects(&mut self, instrument: &Instrument<'_>) -> bool {
        write_text(&mut self.texts.provider, instrument.meter);
        write_text(&mut self.texts.name, instrument.name);
        let is_selected = self.selection.has_instrument(&self.texts.provider, &self.texts.name);
        if !is_selected {
            self.add_unselected();
        }
        is_selected
    }

    /// Records the names in `texts` as an unselected counter's.
    fn add_unselected(&mut self) {
        let Texts { provider, name, .. } = &self.texts;
        let is_known = self.unselected.get(provider).is_some_and(|names| names.contains(name));
        if !is_known && self.unselected_count < MAX_UNSELECTED {
            self.unselected.entry(provider.clone()).or_default().insert(name.clone());
            self.unselected_count = self.unselected_count.saturating_add(1);
        }
    }

    /// Records that the provider in `texts` is a Meter that reports in the process.
    fn mark_meter(&mut self, process_id: Option<u64>, time: RelativeTime) {
        let provider = &*self.texts.provider;
        if let Some(state) = self.providers.get_mut(process_id, provider) {
            state.is_meter = true;
        } else {
            self.providers.set(process_id, provider, ProviderState { first: time, is_meter: true });
        }
    }

    /// Passes on the values that were held long enough when an event with this time arrives, or all; drops
    /// values that a Meter replaces.
    fn release(&mut self, time: Option<RelativeTime>, emit: &mut impl FnMut(Sample<'_>)) {
        while let Some(held) = self.held.front() {
            let state = self.providers.get(held.process_id, &held.provider);
            let is_meter = state.is_some_and(|state| state.is_meter);
            // The tool counts the time between two receipts; an event is received up to one flush interval
            // after it happened.
            let has_waited = state.is_none_or(|state| {
                time.is_none_or(|time| {
                    time.saturating_duration_since(state.first).saturating_add(FLUSH_INTERVAL) > HOLD
                })
            });
            if !is_meter && !has_waited {
                return;
            }
            let Some(held) = self.held.pop_front() else { return };
            if !is_meter {
                emit_value(&self.series, &held.value, emit);
            }
        }
    }
}

fn emit_value(series: &SeriesTable, value: &TimedValue, emit: &mut impl FnMut(Sample<'_>)) {
    let Some(of) = series.get(value.id) else { return };
    emit(Sample {
        time: value.time,
        id: value.id,
        series: of,
        interval: value.interval,
        nominal_interval: value.nominal_interval,
        measurement: &value.measurement,
    });
}

impl Notice {
    fn of(notice: MeterNotice<'_>) -> Self {
        // Strings are cut if the process chooses their length.
        let text = |text: nettrace::Utf16<'_>| text.chars().take(1000).collect::<String>();
        match notice {
            MeterNotice::Error { message } => Self::Error(text(message)),
            MeterNotice::CallbackError { message } => Self::CallbackError(text(message)),
            MeterNotice::TimeSeriesLimit => Self::TimeSeriesLimit,
            MeterNotice::HistogramLimit => Self::HistogramLimit,
            MeterNotice::OtherSession { running } => Self::OtherSession(text(running)),
            MeterNotice::OtherSettings { client, expected } => {
                Self::OtherSettings { client: text(client), expected }
            }
        }
    }
}

/// Replaces the content of a buffer with a string.
fn write_text(buffer: &mut String, text: nettrace::Utf16<'_>) {
    buffer.clear();
    buffer.extend(text.chars());
}
