//! Values of EventCounters.

use std::time::Duration;

use nettrace::{Event, Fields, Metadata, Utf16, Value};

/// One interval's value of an EventCounter of any class: EventCounter, PollingCounter,
/// IncrementingEventCounter or IncrementingPollingCounter.
///
/// # Source
/// `CounterPayload` and `IncrementingCounterPayload` of dotnet/runtime's `System.Diagnostics.Tracing`: the
/// one field `Payload` of an event named `EventCounters`, of the counter's own provider.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct EventCounter<'a> {
    /// The name that identifies it in programs.
    pub name: Utf16<'a>,
    /// The display name; may be empty.
    pub display_name: Utf16<'a>,
    /// The display unit; may be empty.
    pub display_units: Utf16<'a>,
    /// `key:value` pairs, separated by commas.
    pub metadata: Utf16<'a>,
    /// The actual time since the previous value.
    pub interval: Option<Duration>,
    /// The interval in force, which is the smallest that any session requested.
    pub series: Option<Duration>,
    /// The time unit for displaying the rate of a sum, as `00:01:00`; may be empty.
    pub display_rate_time_scale: Utf16<'a>,
    /// The measurement.
    pub value: EventCounterValue,
}

/// The measurement of an [`EventCounter`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "the runtime has had these two since EventCounters exist, and adds to Meters alone"
)]
pub enum EventCounterValue {
    /// Statistics of the measurements of an interval: `CounterType` is `Mean`.
    Mean {
        /// The mean; 0 if nothing was measured.
        mean: f64,
        /// The standard deviation.
        standard_deviation: f64,
        /// The number of measurements.
        count: i32,
        /// Minimum measurement.
        min: f64,
        /// Maximum measurement.
        max: f64,
    },
    /// The growth of a total: `CounterType` is `Sum`.
    Sum {
        /// The growth in the interval; not divided by it.
        increment: f64,
    },
}

impl<'a> EventCounter<'a> {
    /// Returns true if events of a kind have values.
    pub(crate) fn is_of(kind: &Metadata) -> bool {
        kind.name() == "EventCounters"
    }

    /// Decodes the value in an event; `None` for an event without a value.
    ///
    /// Events are recognised by name and fields: ids vary from process to process.
    ///
    /// ```no_run
    /// use clr_counters::{EventCounter, EventCounterValue};
    ///
    /// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// while let Some(event) = events.next()? {
    ///     let Some(counter) = EventCounter::of(&event) else { continue };
    ///     if let EventCounterValue::Mean { mean, .. } = counter.value {
    ///         println!("{} {mean} {}", counter.name, counter.display_units);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(event: &Event<'a>) -> Option<Self> {
        if !Self::is_of(event.metadata()) {
            return None;
        }
        let Ok((_, Value::Object(mut outer))) = event.fields().next()? else { return None };
        match outer.next()?.ok()? {
            ("Payload", Value::Object(payload)) => Self::decode(payload),
            _ => None,
        }
    }

    fn decode(payload: Fields<'a>) -> Option<Self> {
        let mut counter = Self {
            name: Utf16::default(),
            display_name: Utf16::default(),
            display_units: Utf16::default(),
            metadata: Utf16::default(),
            interval: None,
            series: None,
            display_rate_time_scale: Utf16::default(),
            value: EventCounterValue::Sum { increment: 0.0 },
        };
        let (mut mean, mut standard_deviation, mut count) = (None, 0.0, 0);
        let (mut min, mut max) = (0.0, 0.0);
        let mut increment = None;
        for field in payload {
            match field.ok()? {
                ("Name", Value::String(text)) => counter.name = text,
                ("DisplayName", Value::String(text)) => counter.display_name = text,
                ("DisplayUnits", Value::String(text)) => counter.display_units = text,
                ("Metadata", Value::String(text)) => counter.metadata = text,
                ("DisplayRateTimeScale", Value::String(text)) => counter.display_rate_time_scale = text,
                ("IntervalSec", Value::F32(seconds)) => {
                    counter.interval = Duration::try_from_secs_f32(seconds).ok();
                }
                ("Series", Value::String(text)) => counter.series = interval_of_series(text),
                ("Mean", Value::F64(number)) => mean = Some(number),
                ("StandardDeviation", Value::F64(number)) => standard_deviation = number,
                ("Count", Value::I32(number)) => count = number,
                ("Min", Value::F64(number)) => min = number,
                ("Max", Value::F64(number)) => max = number,
                ("Increment", Value::F64(number)) => increment = Some(number),
                _ => {}
            }
        }
        counter.value = match (mean, increment) {
            (Some(mean), _) => EventCounterValue::Mean { mean, standard_deviation, count, min, max },
            (None, Some(increment)) => EventCounterValue::Sum { increment },
            (None, None) => return None,
        };
        Some(counter)
    }
}

/// Returns the interval that `Interval=1000` states, in milliseconds.
fn interval_of_series(text: Utf16<'_>) -> Option<Duration> {
    let mut chars = text.chars();
    if !"Interval=".chars().all(|expected| chars.next() == Some(expected)) {
        return None;
    }
    let mut milliseconds = 0u64;
    for digit in chars {
        let digit = digit.to_digit(10)?;
        milliseconds = milliseconds.checked_mul(10)?.checked_add(digit.into())?;
    }
    Some(Duration::from_millis(milliseconds))
}
