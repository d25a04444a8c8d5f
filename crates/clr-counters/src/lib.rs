//! EventCounters and Meters of .NET programs as one stream of typed samples.
//!
//! **Use it** to turn the events of EventCounters and Meters into numbers, and numbers into files,
//! Prometheus and OTLP. **Not for** other events, and the session itself: `dipc-client` starts it with the
//! providers of a `Selection`.
//!
//! Features: `dipc-wire` (requests as providers), `otlp` (messages), `protobuf` (Prometheus's, with native
//! histograms). Rust 1.89 or later.
//!
//! A process reports its counters as events: each EventSource reports its own EventCounters, and
//! `System.Diagnostics.Metrics` the Meters of the process. This crate takes the events of a recording or of a
//! live session and returns [`Sample`]s: the [`Series`], the time, and exactly the values that the runtime
//! sent. It opens no files, talks to no process and reads no clock.
//!
//! - [`Selection`] parses a list of counters as dotnet-counters does, and returns the providers that a
//!   session has to enable.
//! - [`Counters`] turns events into samples, with the rule for names that are both.
//! - [`Thinning`] combines samples into samples of a longer interval.
//! - [`MemoryCounters`] has the memory of a process and its heap.
//! - [`EventCounter`] and [`MeterEvent`] decode single events.
//! - [`dotnet_counters`] writes samples as dotnet-counters does, byte for byte.
//! - [`prometheus`] and, with feature `otlp`, `otlp` write the last state of each series as metrics.
//! - [`known`] lists the built-in counters of .NET.
//!
//! ```no_run
//! use clr_counters::{Aspect, Counters, Selection};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut counters = Counters::new(Selection::parse("System.Runtime,MyApp*[orders]")?);
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
//! counters.read_all(&mut events, |sample| {
//!     let value = sample.number(Aspect::Rate).or(sample.number(Aspect::Value));
//!     println!("{} {} {value:?}", sample.series.provider, sample.series.name);
//! })?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]

mod aspect;
mod comparison;
mod condition;
mod counters;
pub mod dotnet_counters;
mod event_counter;
pub mod known;
mod memory;
mod meter;
#[cfg(feature = "otlp")]
pub mod otlp;
mod point;
mod process_map;
pub mod prometheus;
mod sample;
mod selection;
mod series;
mod silence;
mod thinning;

pub use aspect::Aspect;
pub use comparison::Comparison;
pub use condition::{Condition, ConditionError, is_counter_of_dotnet};
pub use counters::{Counters, Notice};
pub use event_counter::{EventCounter, EventCounterValue};
pub use memory::{MemoryCounters, ProcessMemory};
pub use meter::{
    ExponentialBuckets, ExponentialHistogram, Instrument, Interval, METRICS_PROVIDER, MeterEvent,
    MeterEventKind, MeterMeasurement, MeterNotice, MeterValue, SharedSettings,
};
pub use point::ProcessKey;
pub use sample::{Measurement, Sample, value_text};
pub use selection::{ProviderRequest, SHARED_SESSION, Selection, SelectionError, SessionSettings};
pub use series::{Kind, Series, SeriesId};
pub use silence::{CounterSource, SilenceWatch};
pub use thinning::Thinning;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(
            Condition,
            Counters,
            ExponentialHistogram,
            prometheus::Exporter,
            Selection,
            Series,
            SilenceWatch,
            Thinning,
        )>();
    };
}
