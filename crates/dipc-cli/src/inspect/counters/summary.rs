//! The values of each series over a recording, as a table.

use clr_counters::{Aspect, Sample, Series};

use crate::render::table::{Align, Columns, heading};
use crate::render::units;

/// The values of each series over a recording.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    rows: Vec<SeriesSummary>,
}

/// The values of one series.
#[derive(Debug)]
struct SeriesSummary {
    series: Series,
    shown: Vec<AspectSummary>,
}

/// The values over time of one number of a series.
#[derive(Debug)]
struct AspectSummary {
    aspect: Aspect,
    count: u64,
    /// The count of values that are numbers: the runtime sends NaN if it measured nothing.
    measured: u64,
    sum: f64,
    min: f64,
    max: f64,
    last: f64,
}

impl Summary {
    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        let index = sample.id.0 as usize;
        // Series arrive in the order of their numbers, except that a series with a first value that was held
        // back may arrive later.
        while self.rows.len() <= index {
            self.rows.push(SeriesSummary { series: sample.series.clone(), shown: Vec::new() });
        }
        let Some(row) = self.rows.get_mut(index) else { return };
        if row.shown.is_empty() {
            row.series = sample.series.clone();
            row.shown = sample.series.aspects().iter().map(|aspect| AspectSummary::new(*aspect)).collect();
        }
        for shown in &mut row.shown {
            if let Some(number) = sample.number(shown.aspect) {
                shown.add(number);
            }
        }
    }

    /// The table, with a group for each provider.
    pub(crate) fn table(mut self) -> String {
        use Align::{Left, Right};
        self.rows.retain(|row| !row.shown.is_empty());
        let key = |row: &SeriesSummary| {
            (row.series.provider.clone(), row.series.name.clone(), row.series.tags.clone())
        };
        self.rows.sort_by_cached_key(key);
        let mut text = String::new();
        for group in self.rows.chunk_by(|one, other| one.series.provider == other.series.provider) {
            if !text.is_empty() {
                text.push('\n');
            }
            let provider = group.first().map_or("", |row| &*row.series.provider);
            text.push_str(&heading(&crate::render::escape::escape_controls(provider)));
            let mut columns = Columns::new([
                ("LAST", Right),
                ("MEAN", Right),
                ("LEAST", Right),
                ("MOST", Right),
                ("VALUES", Right),
                ("COUNTER", Left),
            ]);
            for row in group {
                for shown in row.shown.iter().filter(|shown| shown.count > 0) {
                    let unit = &row.series.unit_of(shown.aspect);
                    columns.row([
                        units::quantity(shown.last, unit),
                        units::quantity(shown.mean(), unit),
                        units::quantity(shown.min, unit),
                        units::quantity(shown.max, unit),
                        units::count(shown.count),
                        label(&row.series, shown.aspect),
                    ]);
                }
            }
            text.push_str(&columns.fitted(&["VALUES", "LEAST"]));
        }
        text
    }
}

/// The name of a series' number with its tags: `http.server.request.duration p95 http.route=/`.
pub(crate) fn label(series: &Series, aspect: Aspect) -> String {
    let label = series.label(aspect);
    if series.tags.is_empty() { label } else { format!("{label} {}", series.tags) }
}

impl AspectSummary {
    const fn new(aspect: Aspect) -> Self {
        Self { aspect, count: 0, measured: 0, sum: 0.0, min: f64::NAN, max: f64::NAN, last: f64::NAN }
    }

    fn add(&mut self, number: f64) {
        self.count += 1;
        self.last = number;
        if !number.is_nan() {
            self.measured += 1;
            self.sum += number;
        }
        // Of a number and NaN, `min` and `max` return the number.
        self.min = self.min.min(number);
        self.max = self.max.max(number);
    }

    /// The mean of the measured values; NaN without any.
    #[allow(clippy::cast_precision_loss, reason = "a mean for people")]
    fn mean(&self) -> f64 {
        self.sum / self.measured as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(numbers: &[f64]) -> AspectSummary {
        let mut shown = AspectSummary::new(Aspect::Value);
        for number in numbers {
            shown.add(*number);
        }
        shown
    }

    #[test]
    fn intervals_without_a_measurement_change_no_mean() {
        let measured = shown(&[f64::NAN, 4.0, f64::NAN, 2.0]);
        assert_eq!((measured.mean(), measured.min, measured.max), (3.0, 2.0, 4.0));
        assert_eq!((measured.last, measured.count), (2.0, 4));
        let never = shown(&[f64::NAN, f64::NAN]);
        assert!([never.mean(), never.min, never.max, never.last].iter().all(|number| number.is_nan()));
    }
}
