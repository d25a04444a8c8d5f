//! Metrics of the program that exports.

use crate::prometheus::family::FamilyKind;

/// A metric of the exporting program, in addition to the series of processes.
///
/// Only names that begin with `dipc_monitor_` are certain not to clash with a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnMetric {
    /// The name without `_total`.
    pub(super) name: &'static str,
    pub(super) kind: FamilyKind,
    pub(super) help: &'static str,
    pub(super) label: Option<(&'static str, &'static str)>,
    pub(super) value: f64,
}

impl OwnMetric {
    /// A value that goes up and down.
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, kind: FamilyKind::Gauge, help, label: None, value }
    }

    /// A total. `_total` is added to the name.
    pub const fn counter(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, kind: FamilyKind::Counter, help, label: None, value }
    }

    /// Returns the same metric with a label. Metrics of one name follow each other.
    #[must_use]
    pub const fn with_label(self, name: &'static str, value: &'static str) -> Self {
        Self { label: Some((name, value)), ..self }
    }
}
