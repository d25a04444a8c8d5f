//! Families: the metrics with one name.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event_counter::EventCounterValue;
use crate::meter::MeterMeasurement;
use crate::prometheus::NameStyle;
use crate::prometheus::name::with_suffix;
use crate::sample::{Measurement, Sample};

/// The metrics with one name.
#[derive(Debug, PartialEq)]
pub(super) struct Family {
    /// The name without `_total`.
    pub(super) name: String,
    pub(super) kind: FamilyKind,
    /// The words of the unit, at the end of the name; may be empty.
    pub(super) unit: String,
    pub(super) help: String,
}

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    Gauge,
    Summary,
    Histogram,
    /// Labels alone. Formats without this type have a gauge.
    Info,
}

impl FamilyKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    /// The suffixes of its samples' names, after the family's name.
    const fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["", "_total", "_created"],
            Self::Gauge => &[""],
            Self::Info => &["", "_info"],
            Self::Summary => &["", "_count", "_sum", "_created"],
            Self::Histogram => &["", "_count", "_sum", "_bucket", "_created"],
        }
    }
}

/// Returns the type of the family that a sample's series belongs to.
pub(super) fn family_kind(style: NameStyle, sample: &Sample<'_>) -> FamilyKind {
    match sample.measurement {
        Measurement::Meter(MeterMeasurement::Histogram { .. }) => FamilyKind::Summary,
        Measurement::Meter(MeterMeasurement::ExponentialHistogram(_)) => FamilyKind::Histogram,
        _ if style == NameStyle::DotnetMonitor => FamilyKind::Gauge,
        Measurement::EventCounter(EventCounterValue::Sum { .. }) => FamilyKind::Counter,
        Measurement::Meter(MeterMeasurement::Counter { .. }) if !sample.series.is_misdeclared_gauge() => {
            FamilyKind::Counter
        }
        Measurement::EventCounter(_) | Measurement::Meter(_) => FamilyKind::Gauge,
    }
}

/// The parts of a family's name.
#[derive(Debug)]
pub(super) struct FamilyName {
    pub(super) base: String,
    /// The provider, which is prepended if the name is taken.
    pub(super) provider: String,
    pub(super) unit: String,
    pub(super) kind: FamilyKind,
}

/// The families, by all names of their samples.
#[derive(Debug, Default)]
pub(super) struct Families {
    by_name: HashMap<String, Arc<Family>>,
}

/// The number of names beyond which names of ended series are freed.
const MANY_NAMES: usize = 50_000;
/// Maximum length of a name.
const MAX_NAME_LENGTH: usize = 255;

/// The beginning of names that are reserved for the caller's own metrics.
const RESERVED_PREFIX: &str = "dipc_monitor_";
/// The names of the exporter's own metrics, which are last, and of `target_info`, which is first.
const RESERVED: [&str; 5] =
    ["dipc_series", "dipc_values_left_out", "dipc_values_left_out_total", "target", "target_info"];

/// Returns whether no series of a process can have the name.
fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED_PREFIX) || RESERVED.contains(&name)
}

impl Families {
    /// Returns the family for a name. If another family has samples with that name, a longer name is used;
    /// `None` if that is taken, too.
    pub(super) fn family(&mut self, name: &FamilyName, help: impl FnOnce() -> String) -> Option<Arc<Family>> {
        let prefixed = format!("{}_{}", name.provider, name.base);
        let of_kind = format!("{prefixed}_{}", name.kind.name());
        for base in [&name.base, &prefixed, &of_kind] {
            let stem = base.strip_suffix("_total").filter(|_| name.kind == FamilyKind::Counter);
            let mut full = with_suffix(stem.unwrap_or(base).to_owned(), &name.unit);
            if full.starts_with(|first: char| first.is_ascii_digit()) {
                full.insert(0, '_');
            }
            if full.is_empty() || full.len() > MAX_NAME_LENGTH {
                continue;
            }
            match self.by_name.get(&full) {
                Some(known) if known.name == full && known.kind == name.kind && known.unit == name.unit => {
                    return Some(Arc::clone(known));
                }
                Some(_) => {}
                None => {
                    let names: Vec<String> =
                        name.kind.suffixes().iter().map(|suffix| format!("{full}{suffix}")).collect();
                    if names.iter().any(|name| self.by_name.contains_key(name) || is_reserved(name)) {
                        continue;
                    }
                    self.make_room()?;
                    let family = Arc::new(Family {
                        name: full,
                        kind: name.kind,
                        unit: name.unit.clone(),
                        help: help(),
                    });
                    self.by_name.extend(names.into_iter().map(|name| (name, Arc::clone(&family))));
                    return Some(family);
                }
            }
        }
        None
    }

    /// Frees the names of families without series; `None` if too many have series.
    fn make_room(&mut self) -> Option<()> {
        if self.by_name.len() >= MANY_NAMES {
            self.by_name.retain(|_, family| Arc::strong_count(family) > family.kind.suffixes().len());
        }
        (self.by_name.len() < MANY_NAMES).then_some(())
    }
}
