//! Events of `System.Diagnostics.Metrics`, the provider that reports the Meters of a process.

use std::time::Duration;

use nettrace::{DateTime, Event, Utf16, Value};

/// The provider that reports Meters.
pub const METRICS_PROVIDER: &str = "System.Diagnostics.Metrics";

/// Maximum number of quantiles and buckets of a histogram to keep. Runtimes send three quantiles, and at most
/// the requested number of buckets.
const MAX_PARTS: usize = 4096;

/// An event of [`METRICS_PROVIDER`].
///
/// # Source
/// `MetricsEventSource.cs` of dotnet/runtime, and the events of 8.0, 9.0 and 10.0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MeterEvent<'a> {
    /// The session that the event answers; `SHARED` for the session that clients share. Empty if the event
    /// does not name a session.
    pub session: Utf16<'a>,
    /// The content.
    pub kind: MeterEventKind<'a>,
}

/// The content of a [`MeterEvent`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MeterEventKind<'a> {
    /// The value of an instrument for an interval.
    Value(MeterValue<'a>),
    /// From now on the session has an instrument's values.
    InstrumentBegin(Instrument<'a>),
    /// From now on the session no longer has them.
    InstrumentEnd(Instrument<'a>),
    /// The process has this instrument. Sent for each instrument if keyword 4 is enabled.
    InstrumentPublished(Instrument<'a>),
    /// All instruments that existed at the session's start have been listed.
    EnumerationComplete,
    /// The values of an interval follow.
    CollectionStart(Interval),
    /// All values of the interval have been sent.
    CollectionStop(Interval),
    /// The session reached a limit, had a fault, or was refused.
    Notice(MeterNotice<'a>),
}

/// The time over which values were collected, by the process's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Interval {
    /// The start of the interval.
    pub start: Option<DateTime>,
    /// The end of the interval.
    pub end: Option<DateTime>,
}

impl Interval {
    /// Returns the interval's length; `None` if the event lacks it.
    pub fn duration(&self) -> Option<Duration> {
        let (Some(DateTime::FileTime(start)), Some(DateTime::FileTime(end))) = (self.start, self.end) else {
            return None;
        };
        let ticks = u64::try_from(end.checked_sub(start)?).ok()?;
        Some(Duration::from_nanos(ticks.checked_mul(100)?))
    }
}

/// An instrument of a Meter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Instrument<'a> {
    /// The name of the instrument's Meter.
    pub meter: Utf16<'a>,
    /// The Meter's version; may be empty.
    pub meter_version: Utf16<'a>,
    /// The name of the instrument.
    pub name: Utf16<'a>,
    /// The class of the instrument, as ``Counter`1``; empty in values.
    pub instrument_type: Utf16<'a>,
    /// The unit; may be empty.
    pub unit: Utf16<'a>,
    /// The description; may be empty.
    pub description: Utf16<'a>,
    /// The instrument's own tags, `key=value` separated by commas (8.0 and later).
    pub instrument_tags: Utf16<'a>,
    /// The Meter's tags.
    pub meter_tags: Utf16<'a>,
    /// The instrument's number in the process (9.0 and later), which distinguishes Meters with the same name.
    /// 0 if nothing listens to the instrument.
    pub id: Option<i32>,
}

/// The value of an instrument, of one interval and one set of tags.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MeterValue<'a> {
    /// The instrument, without the facts that only [`MeterEventKind::InstrumentBegin`] has.
    pub instrument: Instrument<'a>,
    /// The tags, `key=value` separated by commas. Nothing in them is escaped.
    pub tags: Utf16<'a>,
    /// The measurement.
    pub measurement: MeterMeasurement,
}

/// The measurement of a [`MeterValue`]. `None`: the runtime sent an empty number, as it does without a
/// measurement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MeterMeasurement {
    /// From a Counter, or an ObservableCounter.
    Counter {
        /// The growth in the interval; not divided by it.
        increment: Option<f64>,
        /// The total: since listening began, or the instrument's own for an observable one. `None` before
        /// 8.0.
        total: Option<f64>,
    },
    /// From an UpDownCounter, or an ObservableUpDownCounter.
    UpDownCounter {
        /// The change in the interval; not divided by it.
        change: Option<f64>,
        /// The value. `None` before 8.0.
        value: Option<f64>,
    },
    /// From a Gauge, or an ObservableGauge.
    Gauge {
        /// The last value.
        value: Option<f64>,
    },
    /// From a Histogram.
    Histogram {
        /// Quantiles of the interval, each with its value: 0.5, 0.95 and 0.99. Empty if nothing was measured.
        quantiles: Vec<(f64, f64)>,
        /// The number of measurements in the interval (8.0 and later).
        count: Option<i32>,
        /// The sum of the measurements in the interval (8.0 and later).
        sum: Option<f64>,
    },
    /// From a Histogram for which exponential buckets were requested (10.0 and later).
    ExponentialHistogram(ExponentialHistogram),
}

/// A histogram with exponential buckets: bucket `i` in OpenTelemetry's numbering counts the measurements
/// above `b^i`, up to `b^(i + 1)`, with `b = 2^(2^-scale)`. Measurements below 0 are not counted.
///
/// ```
/// use clr_counters::ExponentialHistogram;
///
/// let mut histogram = ExponentialHistogram::default();
/// // One measurement above 2, up to 4, and two above 4, up to 8.
/// (histogram.max, histogram.count, histogram.buckets) = (8.0, 3, vec![1, 2]);
/// assert_eq!((histogram.offset(), histogram.upper_bound(1)), (Some(1), 4.0));
/// assert_eq!((histogram.quantile(0.2), histogram.quantile(0.5)), (Some(4.0), Some(8.0)));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ExponentialHistogram {
    /// The resolution, -11 to 20.
    pub scale: i32,
    /// The sum of all measurements.
    pub sum: f64,
    /// The number of all measurements.
    pub count: i64,
    /// The number of measurements equal to 0.
    pub zero_count: i64,
    /// Minimum measurement.
    pub min: f64,
    /// Maximum measurement.
    pub max: f64,
    /// The counts of the buckets, the last of which has the largest measurement. Runtimes do not send the
    /// index of the first one: see [`offset`](Self::offset).
    pub buckets: Vec<i64>,
}

impl ExponentialHistogram {
    /// Returns the index of the first bucket, which follows from the largest measurement; `None` if there are
    /// no buckets.
    pub fn offset(&self) -> Option<i64> {
        if self.buckets.is_empty() || !(self.max > 0.0 && self.max.is_finite()) {
            return None;
        }
        // A bucket includes its upper bound, and excludes its lower one.
        #[allow(clippy::cast_possible_truncation, reason = "scales are 20 at most: below 2^31")]
        let last = (self.max.log2() * f64::from(self.scale).exp2()).ceil() as i64;
        last.checked_sub(i64::try_from(self.buckets.len()).ok()?)
    }

    /// Returns the buckets at this scale, or at the histogram's own if that is smaller; `None` if there are
    /// no buckets, or no runtime uses the scale.
    pub fn buckets_at(&self, scale: i32) -> Option<ExponentialBuckets> {
        if !(MIN_SCALE..=MAX_SCALE).contains(&self.scale) {
            return None;
        }
        let scale = scale.clamp(MIN_SCALE, self.scale);
        let shift = u32::try_from(self.scale.checked_sub(scale)?).ok()?;
        let offset = self.offset()?;
        let first = offset >> shift;
        let mut counts = Vec::<u64>::new();
        for (index, count) in (offset..).zip(&self.buckets) {
            let place = usize::try_from((index >> shift).checked_sub(first)?).ok()?;
            if counts.len() <= place {
                counts.resize(place.checked_add(1)?, 0);
            }
            let sum = counts.get_mut(place)?;
            *sum = sum.saturating_add(u64::try_from(*count).unwrap_or_default());
        }
        Some(ExponentialBuckets { scale, offset: first, counts })
    }

    /// Returns the upper bound of a bucket.
    pub fn upper_bound(&self, bucket: i64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "numbers of buckets are below 2^31")]
        let exponent = bucket.saturating_add(1) as f64 / f64::from(self.scale).exp2();
        exponent.exp2()
    }

    /// Returns the upper bound of the bucket that contains a quantile between 0 and 1; `None` if nothing was
    /// measured.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a rank among counts")]
        let rank = quantile * self.count as f64;
        let mut seen = self.zero_count;
        #[allow(clippy::cast_precision_loss, reason = "a rank among counts")]
        let is_reached = |seen: i64| seen > 0 && seen as f64 >= rank;
        if is_reached(seen) {
            return Some(0.0);
        }
        let mut bucket = self.offset()?;
        for count in &self.buckets {
            seen = seen.saturating_add(*count);
            if is_reached(seen) {
                return Some(self.upper_bound(bucket).min(self.max));
            }
            bucket = bucket.saturating_add(1);
        }
        None
    }
}

/// The scales that runtimes use.
const MIN_SCALE: i32 = -11;
const MAX_SCALE: i32 = 20;

/// The buckets of an [`ExponentialHistogram`] at some scale.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExponentialBuckets {
    /// The scale.
    pub scale: i32,
    /// The index of the first bucket.
    pub offset: i64,
    /// The counts.
    pub counts: Vec<u64>,
}

impl ExponentialBuckets {
    /// Returns the upper bounds of the buckets with their counts.
    pub fn bounds(&self) -> impl Iterator<Item = (f64, u64)> {
        let per_power = f64::from(self.scale).exp2();
        (self.offset..).zip(&self.counts).map(move |(index, count)| {
            #[allow(clippy::cast_precision_loss, reason = "below 2^31")]
            let bound = (index.saturating_add(1) as f64 / per_power).exp2();
            (bound, *count)
        })
    }
}

/// A limit that a session reached, a fault, or a refusal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MeterNotice<'a> {
    /// The runtime has a fault, and ends the session.
    Error {
        /// The message.
        message: Utf16<'a>,
    },
    /// The program's callback for an observable instrument failed.
    CallbackError {
        /// The message.
        message: Utf16<'a>,
    },
    /// The session has reached the requested number of time series; further time series are left out.
    TimeSeriesLimit,
    /// The session has reached the requested number of histograms; further histograms are left out.
    HistogramLimit,
    /// Another session holds the Meters of the process: this one receives nothing.
    OtherSession {
        /// The session that holds them.
        running: Utf16<'a>,
    },
    /// The shared session runs with other settings than this client requested: the client receives nothing.
    OtherSettings {
        /// The client that was refused.
        client: Utf16<'a>,
        /// The settings of the session.
        expected: SharedSettings,
    },
}

/// The settings on which all clients of the shared session have to agree. `None`: not sent, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SharedSettings {
    /// Maximum number of histograms.
    pub max_histograms: Option<u32>,
    /// Maximum number of time series.
    pub max_time_series: Option<u32>,
    /// The interval in seconds.
    pub refresh_interval: Option<f64>,
}

impl SharedSettings {
    /// Returns the settings of the shared session if the event refuses this client, which requested others.
    pub fn of_refusal(event: &Event<'_>, client: &str) -> Option<Self> {
        if event.id() != OTHER_SETTINGS {
            return None;
        }
        match MeterEvent::of(event)?.kind {
            MeterEventKind::Notice(MeterNotice::OtherSettings { client: refused, expected })
                if refused.chars().eq(client.chars()) =>
            {
                Some(expected)
            }
            _ => None,
        }
    }
}

/// The id of the event that refuses a client of the shared session.
const OTHER_SETTINGS: u32 = 17;

/// The strings and numbers of an event, by field name.
#[derive(Default)]
struct Parts<'a> {
    session: Utf16<'a>,
    instrument: Instrument<'a>,
    tags: Utf16<'a>,
    rate: Option<f64>,
    value: Option<f64>,
    last_value: Option<f64>,
    quantiles: Utf16<'a>,
    buckets: Utf16<'a>,
    message: Utf16<'a>,
    running: Utf16<'a>,
    client: Utf16<'a>,
    expected: SharedSettings,
    count: Option<i64>,
    sum: Option<f64>,
    histogram: ExponentialHistogram,
    start: Option<DateTime>,
    end: Option<DateTime>,
}

impl<'a> Parts<'a> {
    fn of(event: &Event<'a>) -> Self {
        let mut parts = Self::default();
        // Versions append fields, so fields before a damaged one still count.
        for (name, value) in event.fields().map_while(Result::ok) {
            match value {
                Value::String(text) => parts.text(name, text),
                Value::I32(number) => parts.number(name, number),
                Value::I64(number) => match name {
                    "count" => parts.count = Some(number),
                    "zeroCount" => parts.histogram.zero_count = number,
                    // V6 has no type for these 8-byte times: in a rewritten recording they are numbers.
                    "intervalStartTime" => parts.start = Some(DateTime::FileTime(number)),
                    "intervalEndTime" => parts.end = Some(DateTime::FileTime(number)),
                    _ => {}
                },
                Value::F64(number) => match name {
                    "sum" => parts.sum = Some(number),
                    "minimum" => parts.histogram.min = number,
                    "maximum" => parts.histogram.max = number,
                    _ => {}
                },
                Value::DateTime(time) => match name {
                    "intervalStartTime" => parts.start = Some(time),
                    "intervalEndTime" => parts.end = Some(time),
                    _ => {}
                },
                _ => {}
            }
        }
        parts
    }

    fn text(&mut self, name: &str, text: Utf16<'a>) {
        match name {
            "sessionId" => self.session = text,
            "meterName" => self.instrument.meter = text,
            "meterVersion" => self.instrument.meter_version = text,
            "instrumentName" => self.instrument.name = text,
            "instrumentType" => self.instrument.instrument_type = text,
            "unit" => self.instrument.unit = text,
            "description" => self.instrument.description = text,
            "instrumentTags" => self.instrument.instrument_tags = text,
            "meterTags" => self.instrument.meter_tags = text,
            "tags" => self.tags = text,
            "rate" => self.rate = number(text),
            "value" => self.value = number(text),
            "lastValue" => self.last_value = number(text),
            "quantiles" => self.quantiles = text,
            "buckets" => self.buckets = text,
            "errorMessage" => self.message = text,
            "runningSessionId" => self.running = text,
            "clientId" => self.client = text,
            "expectedMaxHistograms" => self.expected.max_histograms = whole_number(text),
            "expectedMaxTimeSeries" => self.expected.max_time_series = whole_number(text),
            "expectedRefreshInterval" => self.expected.refresh_interval = number(text),
            _ => {}
        }
    }

    fn number(&mut self, name: &str, number: i32) {
        match name {
            "instrumentId" => self.instrument.id = Some(number),
            "count" => self.count = Some(number.into()),
            "scale" => self.histogram.scale = number,
            _ => {}
        }
    }

    fn value(self, measurement: MeterMeasurement) -> MeterEventKind<'a> {
        MeterEventKind::Value(MeterValue { instrument: self.instrument, tags: self.tags, measurement })
    }
}

impl<'a> MeterEvent<'a> {
    /// Decodes an event of [`METRICS_PROVIDER`]; `None` if it is of another provider, or of a kind without
    /// information about Meters.
    ///
    /// ```no_run
    /// use clr_counters::{MeterEvent, MeterEventKind};
    ///
    /// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// while let Some(event) = events.next()? {
    ///     let kind = MeterEvent::of(&event).map(|event| event.kind);
    ///     if let Some(MeterEventKind::InstrumentPublished(instrument)) = kind {
    ///         println!("{instrument:?}");
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(event: &Event<'a>) -> Option<Self> {
        if event.provider() != METRICS_PROVIDER {
            return None;
        }
        let parts = Parts::of(event);
        let session = parts.session;
        let kind = match event.id() {
            2 => MeterEventKind::CollectionStart(Interval { start: parts.start, end: parts.end }),
            3 => MeterEventKind::CollectionStop(Interval { start: parts.start, end: parts.end }),
            4 => {
                let (increment, total) = (parts.rate, parts.value);
                parts.value(MeterMeasurement::Counter { increment, total })
            }
            5 => {
                let value = parts.last_value;
                parts.value(MeterMeasurement::Gauge { value })
            }
            6 => {
                let (count, sum) = (parts.count.and_then(|count| i32::try_from(count).ok()), parts.sum);
                let quantiles = quantiles(parts.quantiles);
                parts.value(MeterMeasurement::Histogram { quantiles, count, sum })
            }
            7 => MeterEventKind::InstrumentBegin(parts.instrument),
            8 => MeterEventKind::InstrumentEnd(parts.instrument),
            9 => MeterEventKind::Notice(MeterNotice::Error { message: parts.message }),
            10 => MeterEventKind::EnumerationComplete,
            11 => MeterEventKind::InstrumentPublished(parts.instrument),
            12 => MeterEventKind::Notice(MeterNotice::TimeSeriesLimit),
            13 => MeterEventKind::Notice(MeterNotice::HistogramLimit),
            14 => MeterEventKind::Notice(MeterNotice::CallbackError { message: parts.message }),
            15 => MeterEventKind::Notice(MeterNotice::OtherSession { running: parts.running }),
            16 => {
                let (change, value) = (parts.rate, parts.value);
                parts.value(MeterMeasurement::UpDownCounter { change, value })
            }
            OTHER_SETTINGS => MeterEventKind::Notice(MeterNotice::OtherSettings {
                client: parts.client,
                expected: parts.expected,
            }),
            19 => {
                let histogram = ExponentialHistogram {
                    sum: parts.sum.unwrap_or_default(),
                    count: parts.count.unwrap_or_default(),
                    buckets: buckets(parts.buckets),
                    ..parts.histogram.clone()
                };
                parts.value(MeterMeasurement::ExponentialHistogram(histogram))
            }
            _ => return None,
        };
        Some(Self { session, kind })
    }
}

/// Maximum length of a number in characters: sign, 17 digits, point and exponent are 24.
const MAX_NUMBER_LENGTH: usize = 32;

/// Parses a whole number.
fn whole_number(text: Utf16<'_>) -> Option<u32> {
    text.chars().take(MAX_NUMBER_LENGTH).collect::<String>().parse().ok()
}

/// Parses a number.
fn number(text: Utf16<'_>) -> Option<f64> {
    number_of(&text.chars().take(MAX_NUMBER_LENGTH).collect::<String>())
}

/// Parses a number. Runtimes before 9.0 write a comma if the process's culture does.
fn number_of(text: &str) -> Option<f64> {
    match text {
        "" => None,
        "NaN" => Some(f64::NAN),
        "Infinity" | "∞" => Some(f64::INFINITY),
        "-Infinity" | "-∞" => Some(f64::NEG_INFINITY),
        text => text.parse().or_else(|_| text.replace(',', ".").parse()).ok(),
    }
}

/// Parses the quantiles in `0.5=25;0.95=47;0.99=49`.
fn quantiles(text: Utf16<'_>) -> Vec<(f64, f64)> {
    let text = text.to_string();
    let pairs = text.split(';').filter_map(|pair| {
        let (quantile, value) = pair.split_once('=')?;
        Some((number_of(quantile)?, number_of(value)?))
    });
    pairs.take(MAX_PARTS).collect()
}

/// Parses the counts in `3, 0, 5`.
fn buckets(text: Utf16<'_>) -> Vec<i64> {
    text.to_string().split(',').map_while(|count| count.trim().parse().ok()).take(MAX_PARTS).collect()
}
