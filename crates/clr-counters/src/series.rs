//! The series that samples belong to: everything but time and value.

use std::fmt::Write as _;

use nettrace::Utf16;
use std::collections::HashMap;

use crate::aspect::Aspect;
use crate::event_counter::{EventCounter, EventCounterValue};
use crate::meter::{Instrument, MeterMeasurement, MeterValue};

/// A counter or an instrument, with one set of tags.
///
/// ```
/// use clr_counters::{Aspect, Kind, Series};
///
/// let mut series = Series::new("MyApp", "orders", Kind::Counter);
/// series.tags = "kind=web,region=eu".to_owned();
/// assert_eq!(series.tag_pairs(), [("kind", "web"), ("region", "eu")]);
/// assert!(series.aspects().contains(&Aspect::Rate) && series.kind.is_meter());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Series {
    /// The process, if a recording has several.
    pub process_id: Option<u64>,
    /// The EventSource, or the Meter.
    pub provider: String,
    /// The Meter's version; empty if missing, and for EventCounters.
    pub meter_version: String,
    /// The name that identifies the counter or instrument in programs.
    pub name: String,
    /// The display name of EventCounters; otherwise empty.
    pub display_name: String,
    /// The unit; may be empty.
    pub unit: String,
    /// The description of an instrument; may be empty.
    pub description: String,
    /// The tags of the values, `key=value` separated by commas: nothing in them is escaped. For EventCounters
    /// their metadata, `key:value`.
    pub tags: String,
    /// The instrument's own tags.
    pub instrument_tags: String,
    /// The Meter's tags.
    pub meter_tags: String,
    /// The instrument's number in the process (9.0 and later).
    pub instrument_id: Option<i32>,
    /// The instrument's class, as ``ObservableGauge`1``; empty if the recording does not state it, and for
    /// EventCounters.
    pub instrument_type: String,
    /// The kind of its values.
    pub kind: Kind,
    /// The time unit for displaying a rate, as `00:01:00`; only for EventCounters that are sums, otherwise
    /// empty.
    pub display_rate_time_scale: String,
}

impl Series {
    /// Creates a series without tags, with all other strings empty.
    pub fn new(provider: impl Into<String>, name: impl Into<String>, kind: Kind) -> Self {
        Self {
            process_id: None,
            provider: provider.into(),
            meter_version: String::new(),
            name: name.into(),
            display_name: String::new(),
            unit: String::new(),
            description: String::new(),
            tags: String::new(),
            instrument_tags: String::new(),
            meter_tags: String::new(),
            instrument_id: None,
            instrument_type: String::new(),
            kind,
            display_rate_time_scale: String::new(),
        }
    }
}

/// The kind of a series' values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// An EventCounter with a mean.
    Mean,
    /// An EventCounter with increments.
    Sum,
    /// A Counter, or an ObservableCounter.
    Counter,
    /// An UpDownCounter, or an ObservableUpDownCounter.
    UpDownCounter,
    /// A Gauge, or an ObservableGauge.
    Gauge,
    /// A Histogram.
    Histogram,
}

impl Kind {
    /// The name of the kind in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sum => "sum",
            Self::Counter => "counter",
            Self::UpDownCounter => "up_down_counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    /// Returns true if the series is of a Meter's instrument rather than an EventCounter.
    pub const fn is_meter(self) -> bool {
        !matches!(self, Self::Mean | Self::Sum)
    }

    pub(crate) const fn of(measurement: &MeterMeasurement) -> Self {
        match measurement {
            MeterMeasurement::Counter { .. } => Self::Counter,
            MeterMeasurement::UpDownCounter { .. } => Self::UpDownCounter,
            MeterMeasurement::Gauge { .. } => Self::Gauge,
            MeterMeasurement::Histogram { .. } | MeterMeasurement::ExponentialHistogram(_) => Self::Histogram,
        }
    }
}

impl Series {
    /// Returns true if the values go up and down although the kind declares that they only grow.
    ///
    /// .NET 9 and 10 declare two numbers of the thread pool as ObservableCounters; dotnet/runtime#112077.
    pub fn is_misdeclared_gauge(&self) -> bool {
        self.kind == Kind::Counter
            && self.provider == "System.Runtime"
            && matches!(&*self.name, "dotnet.thread_pool.thread.count" | "dotnet.thread_pool.queue.length")
    }

    /// Returns true if the program pushes the values instead of being polled for them. Such an instrument
    /// keeps its value through intervals without one.
    pub fn is_synchronous(&self) -> bool {
        !self.instrument_type.is_empty() && !self.instrument_type.starts_with("Observable")
    }

    /// The numbers of a sample that are displayed, the most informative first.
    pub fn aspects(&self) -> &'static [Aspect] {
        match self.kind {
            Kind::Counter if self.is_misdeclared_gauge() => &[Aspect::Value],
            Kind::Sum => &[Aspect::Rate],
            Kind::Counter => &[Aspect::Rate, Aspect::Value],
            Kind::Histogram => {
                &[Aspect::Quantile(500), Aspect::Quantile(950), Aspect::Quantile(990), Aspect::Rate]
            }
            _ => &[Aspect::Value],
        }
    }

    /// The name of an aspect of the series: `http.server.request.duration p95`.
    pub fn label(&self, aspect: Aspect) -> String {
        let name = if self.display_name.is_empty() { &self.name } else { &self.display_name };
        match aspect {
            Aspect::Value if self.kind == Kind::Counter && !self.is_misdeclared_gauge() => {
                format!("{name} total")
            }
            Aspect::Count => format!("{name} count"),
            Aspect::Rate if self.kind == Kind::Histogram => format!("{name} count"),
            Aspect::Sum => format!("{name} sum"),
            Aspect::Quantile(thousandths) => match (thousandths / 10, thousandths % 10) {
                (percent, 0) => format!("{name} p{percent}"),
                (percent, tenth) => format!("{name} p{percent}.{tenth}"),
            },
            Aspect::Value | Aspect::Rate => name.clone(),
        }
    }

    /// The unit of an aspect: the unit of the series, empty for counts, and the unit per second for rates:
    /// `By/s`.
    pub fn unit_of(&self, aspect: Aspect) -> String {
        let is_count = aspect == Aspect::Count || aspect == Aspect::Rate && self.kind == Kind::Histogram;
        let unit = if is_count { "" } else { &*self.unit };
        if aspect == Aspect::Rate { format!("{unit}/s") } else { unit.to_owned() }
    }

    /// The value tags as keys and values. A comma in a value looks like a separator between tags. A part
    /// without `=` continues the previous value, and so does a part of a Meter's tags with a key out of
    /// order: runtimes sort tags by key.
    pub fn tag_pairs(&self) -> Vec<(&str, &str)> {
        pairs(&self.tags, if self.kind.is_meter() { '=' } else { ':' })
    }

    /// The instrument's own tags as keys and values.
    pub fn instrument_tag_pairs(&self) -> Vec<(&str, &str)> {
        pairs(&self.instrument_tags, '=')
    }

    /// The Meter's tags as keys and values.
    pub fn meter_tag_pairs(&self) -> Vec<(&str, &str)> {
        pairs(&self.meter_tags, '=')
    }
}

/// Returns the keys and values of tags.
fn pairs(tags: &str, separator: char) -> Vec<(&str, &str)> {
    let mut pairs = Vec::<(&str, &str)>::new();
    let mut start = 0usize;
    // The metadata of EventCounters is in the program's order.
    let is_sorted = separator == '=';
    for part in tags.split(',') {
        let end = start.saturating_add(part.len());
        let follows = |key: &str, last: Option<&mut (&str, &str)>| match last {
            Some((last, _)) if is_sorted => key.encode_utf16().ge(last.encode_utf16()),
            _ => true,
        };
        let pair = part.split_once(separator).filter(|(key, _)| follows(key, pairs.last_mut()));
        match (pair, pairs.last_mut()) {
            (Some(pair), _) => pairs.push(pair),
            (None, Some((_, value))) => {
                let from = start.saturating_sub(value.len().saturating_add(1));
                *value = tags.get(from..end).unwrap_or(value);
            }
            (None, None) if part.is_empty() => {}
            (None, None) => pairs.push((part, "")),
        }
        start = end.saturating_add(1);
    }
    pairs
}

/// The number of a series in its [`Counters`](crate::Counters), from 0 in the order of their first values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub u32);

/// Maximum length of a kept string of a series, in bytes.
pub(crate) const MAX_TEXT_LENGTH: usize = 4096;

/// The series of a process or recording: at most a given number.
#[derive(Debug)]
pub(crate) struct SeriesTable {
    list: Vec<Series>,
    /// The number of each series, by identity.
    ids: HashMap<String, SeriesId>,
    /// The strings of instruments, by identity.
    instruments: HashMap<String, InstrumentTexts>,
    /// The current key, kept for its memory.
    key: String,
    most: usize,
    /// The number of values of series that were left out for lack of space.
    pub(crate) left_out: u64,
}

/// The strings of an instrument that its values do not repeat.
#[derive(Debug, Default, Clone)]
struct InstrumentTexts {
    description: String,
    instrument_tags: String,
    meter_tags: String,
    instrument_type: String,
}

impl SeriesTable {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            list: Vec::new(),
            ids: HashMap::new(),
            instruments: HashMap::new(),
            key: String::new(),
            most,
            left_out: 0,
        }
    }

    pub(crate) fn get(&self, id: SeriesId) -> Option<&Series> {
        self.list.get(usize::try_from(id.0).ok()?)
    }

    pub(crate) fn list(&self) -> &[Series] {
        &self.list
    }

    /// Stores the strings that an instrument's values will not repeat.
    pub(crate) fn begin(&mut self, process_id: Option<u64>, instrument: &Instrument<'_>) {
        self.instrument_key(process_id, instrument);
        if self.instruments.len() >= self.most && !self.instruments.contains_key(&*self.key) {
            return;
        }
        let texts = InstrumentTexts {
            description: text(instrument.description),
            instrument_tags: text(instrument.instrument_tags),
            meter_tags: text(instrument.meter_tags),
            instrument_type: text(instrument.instrument_type),
        };
        self.instruments.insert(self.key.clone(), texts);
    }

    /// Writes the identity of an instrument: its number if the runtime has one, otherwise its names.
    fn instrument_key(&mut self, process_id: Option<u64>, instrument: &Instrument<'_>) {
        self.key.clear();
        let process_id = process_id.unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = match instrument.id {
            Some(id) if id != 0 => write!(self.key, "{process_id}\0#{id}"),
            _ => write!(
                self.key,
                "{process_id}\0{}\0{}\0{}",
                instrument.meter, instrument.meter_version, instrument.name
            ),
        };
    }

    /// Returns the series of an instrument's value; `None` if the limit is reached.
    pub(crate) fn of_value(&mut self, process_id: Option<u64>, value: &MeterValue<'_>) -> Option<SeriesId> {
        let instrument = &value.instrument;
        self.instrument_key(process_id, instrument);
        let instrument_key = self.key.len();
        let _ = write!(self.key, "\0{}", value.tags);
        if let Some(id) = self.ids.get(&*self.key) {
            return Some(*id);
        }
        let texts = self.key.get(..instrument_key).and_then(|key| self.instruments.get(key)).cloned();
        let InstrumentTexts { description, instrument_tags, meter_tags, instrument_type } =
            texts.unwrap_or_default();
        self.insert(Series {
            process_id,
            provider: text(instrument.meter),
            meter_version: text(instrument.meter_version),
            name: text(instrument.name),
            display_name: String::new(),
            unit: text(instrument.unit),
            description,
            tags: text(value.tags),
            instrument_tags,
            meter_tags,
            instrument_id: instrument.id,
            instrument_type,
            kind: Kind::of(&value.measurement),
            display_rate_time_scale: String::new(),
        })
    }

    /// Returns the series of an EventCounter; `None` if the limit is reached.
    pub(crate) fn of_counter(
        &mut self,
        process_id: Option<u64>,
        provider: &str,
        counter: &EventCounter<'_>,
    ) -> Option<SeriesId> {
        self.key.clear();
        let _ = write!(self.key, "{}\0{provider}\0@{}", process_id.unwrap_or_default(), counter.name);
        if let Some(id) = self.ids.get(&*self.key) {
            return Some(*id);
        }
        let kind = match counter.value {
            EventCounterValue::Mean { .. } => Kind::Mean,
            EventCounterValue::Sum { .. } => Kind::Sum,
        };
        self.insert(Series {
            process_id,
            provider: provider.to_string(),
            meter_version: String::new(),
            name: text(counter.name),
            display_name: text(counter.display_name),
            unit: text(counter.display_units),
            description: String::new(),
            tags: text(counter.metadata),
            instrument_tags: String::new(),
            meter_tags: String::new(),
            instrument_id: None,
            instrument_type: String::new(),
            kind,
            display_rate_time_scale: text(counter.display_rate_time_scale),
        })
    }

    fn insert(&mut self, series: Series) -> Option<SeriesId> {
        if self.list.len() >= self.most || self.key.len() > MAX_TEXT_LENGTH {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        let id = SeriesId(u32::try_from(self.list.len()).ok()?);
        self.list.push(series);
        self.ids.insert(self.key.clone(), id);
        Some(id)
    }
}

/// Returns a string, cut if it is unreasonably long.
fn text(text: Utf16<'_>) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        if kept.len() >= MAX_TEXT_LENGTH {
            break;
        }
        kept.push(character);
    }
    kept
}
