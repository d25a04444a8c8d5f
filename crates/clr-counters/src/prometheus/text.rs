//! Prometheus's text and OpenMetrics.

use std::fmt::Write as _;

use crate::meter::ExponentialHistogram;
use crate::point::PointValue;
use crate::prometheus::family::FamilyKind;
use crate::prometheus::own::OwnMetric;
use crate::prometheus::{Format, Metric};

/// Writes metrics, which are ordered by family, and then the program's own metrics.
pub(super) fn encode(metrics: &[Metric<'_>], own: &[OwnMetric], format: Format) -> String {
    let is_open_metrics = format == Format::OpenMetrics;
    let mut writer = Writer { text: String::new(), format, is_open_metrics };
    let mut family = None;
    for metric in metrics {
        if family != Some(&metric.family.name) {
            family = Some(&metric.family.name);
            let of = metric.family;
            writer.head(&of.name, of.kind, &of.unit, &of.help);
        }
        writer.metric(metric);
    }
    for family in own.chunk_by(|metric, next| metric.name == next.name) {
        let Some(first) = family.first() else { continue };
        writer.head(first.name, first.kind, "", first.help);
        let suffix = if first.kind == FamilyKind::Counter { "_total" } else { "" };
        let name = format!("{}{suffix}", first.name);
        for metric in family {
            let mut labels = String::new();
            if let Some((name, value)) = metric.label {
                add_label(&mut labels, name, value);
            }
            let value = metric.value;
            let value = if value.is_finite() { value.to_string() } else { number(value) };
            writer.line(&name, &labels, value);
        }
    }
    if is_open_metrics {
        writer.text.push_str("# EOF\n");
    }
    writer.text
}

struct Writer {
    text: String,
    format: Format,
    is_open_metrics: bool,
}

impl Writer {
    /// Writes the header of a family. Writing to a String cannot fail.
    fn head(&mut self, name: &str, kind: FamilyKind, unit: &str, help: &str) {
        // In the older format such a family has the name of its samples.
        let (suffix, kind) = match kind {
            FamilyKind::Counter if !self.is_open_metrics => ("_total", kind),
            FamilyKind::Info if !self.is_open_metrics => ("_info", FamilyKind::Gauge),
            kind => ("", kind),
        };
        let _ = write!(self.text, "# HELP {name}{suffix} ");
        escape(&mut self.text, help, self.is_open_metrics);
        let _ = writeln!(self.text, "\n# TYPE {name}{suffix} {}", kind.name());
        // Scrapers refuse everything if the unit is not a suffix of the name.
        let is_suffix = name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_'));
        if self.is_open_metrics && !unit.is_empty() && is_suffix {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    fn metric(&mut self, metric: &Metric<'_>) {
        let name = &metric.family.name;
        let mut labels = String::new();
        for (name, value) in metric.labels() {
            add_label(&mut labels, name, &value);
        }
        match metric.value {
            PointValue::Histogram { quantiles, count, sum } => {
                let format = self.format;
                for (quantile, value) in
                    quantiles.iter().filter(|(_, value)| format.can_have_quantile(*value))
                {
                    let mut labels = labels.clone();
                    add_label(&mut labels, "quantile", &number(*quantile));
                    self.line(name, &labels, number(*value * metric.factor));
                }
                if let Some(count) = count {
                    self.line(&format!("{name}_count"), &labels, count);
                }
                if let Some(sum) = sum.filter(|sum| format.can_have_sum(*sum)) {
                    self.line(&format!("{name}_sum"), &labels, number(sum * metric.factor));
                }
            }
            PointValue::Exponential(histogram) => self.histogram(name, &labels, histogram),
            PointValue::Counter { .. } | PointValue::UpDownCounter(_) | PointValue::Gauge(_) => {
                let Some(value) = metric.number() else { return };
                let suffix = match metric.family.kind {
                    FamilyKind::Counter => "_total",
                    FamilyKind::Info => "_info",
                    FamilyKind::Gauge | FamilyKind::Summary | FamilyKind::Histogram => "",
                };
                self.line(&format!("{name}{suffix}"), &labels, number(value));
            }
        }
    }

    /// Writes a histogram with a bucket for each power of two, or wider ones: these bounds stay the same when
    /// the scale changes.
    fn histogram(&mut self, name: &str, labels: &str, histogram: &ExponentialHistogram) {
        let mut below = u64::try_from(histogram.zero_count).unwrap_or_default();
        let mut buckets = Vec::new();
        if below > 0 {
            buckets.push((0.0, below));
        }
        if let Some(counted) = histogram.buckets_at(0) {
            for (bound, count) in counted.bounds() {
                below = below.saturating_add(count);
                buckets.push((bound, below));
            }
        }
        let count = u64::try_from(histogram.count).unwrap_or_default().max(below);
        buckets.retain(|(bound, _)| bound.is_finite());
        buckets.push((f64::INFINITY, count));
        let bucket_name = format!("{name}_bucket");
        for (bound, below) in buckets {
            let mut labels = labels.to_owned();
            add_label(&mut labels, "le", &number(bound));
            self.line(&bucket_name, &labels, below);
        }
        self.line(&format!("{name}_count"), labels, count);
        if self.format.can_have_sum(histogram.sum) {
            self.line(&format!("{name}_sum"), labels, number(histogram.sum));
        }
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name} {value}")
        } else {
            writeln!(self.text, "{name}{{{labels}}} {value}")
        };
    }
}

fn add_label(labels: &mut String, name: &str, value: &str) {
    if !labels.is_empty() {
        labels.push(',');
    }
    labels.push_str(name);
    labels.push_str("=\"");
    escape(labels, value, true);
    labels.push('"');
}

/// Appends a string with line feeds and backslashes escaped, and quotation marks if they would end it.
fn escape(text: &mut String, raw: &str, quotes: bool) {
    for character in raw.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\\' => text.push_str("\\\\"),
            '"' if quotes => text.push_str("\\\""),
            other => text.push(other),
        }
    }
}

/// Returns a number in the shortest form that reads back as the same number.
fn number(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        (if number > 0.0 { "+Inf" } else { "-Inf" }).to_owned()
    } else {
        format!("{number:?}")
    }
}
