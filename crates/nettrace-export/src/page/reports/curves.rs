//! Counters of a page as curves: the values of each, in bins of time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clr_counters::{Aspect, Counters, Kind, Sample, Selection, Series};
use nettrace::{Event, MetadataMap, RelativeTime};

use super::cut;
use crate::page::bins::BinWidth;
use crate::page::data::list;
use crate::page::text::text;

/// The number of curves.
const MAX_CURVES: usize = 64;
/// The points of a curve: its bins get wider before there are more.
const MAX_POINTS: usize = 600;
/// Maximum number of series to read.
const MAX_SERIES: usize = 4096;
/// Number of curves shown at first if a recording lacks all of [`FEATURED`].
const MIN_SHOWN: usize = 6;

/// A number of a counter that is shown before all others.
struct Featured {
    provider: &'static str,
    name: &'static str,
    /// A part of the tags.
    tag: &'static str,
    aspect: Aspect,
}

const fn featured(provider: &'static str, name: &'static str, aspect: Aspect) -> Featured {
    Featured { provider, name, tag: "", aspect }
}

const RUNTIME: &str = "System.Runtime";
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";

/// CPU, memory, thread pool, exceptions, requests: as EventCounters, and as instruments of .NET 9 and later.
/// The first curve of each is shown when the page opens.
const FEATURED: &[Featured] = &[
    featured(RUNTIME, "cpu-usage", Aspect::Value),
    Featured { tag: "cpu.mode=user", ..featured(RUNTIME, "dotnet.process.cpu.time", Aspect::Rate) },
    Featured { tag: "cpu.mode=system", ..featured(RUNTIME, "dotnet.process.cpu.time", Aspect::Rate) },
    featured(RUNTIME, "working-set", Aspect::Value),
    featured(RUNTIME, "dotnet.process.memory.working_set", Aspect::Value),
    featured(RUNTIME, "gc-heap-size", Aspect::Value),
    featured(RUNTIME, "dotnet.gc.last_collection.memory.committed_size", Aspect::Value),
    featured(RUNTIME, "threadpool-queue-length", Aspect::Value),
    featured(RUNTIME, "dotnet.thread_pool.queue.length", Aspect::Value),
    featured(RUNTIME, "threadpool-thread-count", Aspect::Value),
    featured(RUNTIME, "dotnet.thread_pool.thread.count", Aspect::Value),
    featured(RUNTIME, "exception-count", Aspect::Rate),
    featured(RUNTIME, "dotnet.exceptions", Aspect::Rate),
    featured(HOSTING, "requests-per-second", Aspect::Rate),
    featured(HOSTING, "http.server.request.duration", Aspect::Rate),
    featured(HOSTING, "current-requests", Aspect::Value),
    featured(HOSTING, "http.server.active_requests", Aspect::Value),
];

/// The counters of a recording.
#[derive(Debug)]
pub(super) struct Curves {
    /// True for kinds of events with values of counters.
    of_counters: MetadataMap<bool>,
    counters: Counters,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    /// The highest-ranking curves.
    curves: BTreeMap<Rank, Curve>,
    /// By series, a bit for each of its numbers that had a value.
    seen: Vec<u8>,
}

/// The order of curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// The place in [`FEATURED`]; one more for others, two more for totals, which only grow.
    group: usize,
    series: usize,
    /// The place in [`Series::aspects`].
    aspect: usize,
}

#[derive(Debug)]
struct Curve {
    process: Option<u64>,
    provider: String,
    name: String,
    unit: String,
    width: BinWidth,
    /// By bin.
    points: BTreeMap<u32, Point>,
}

/// The values of a bin, which has at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    count: u64,
    least: f64,
    most: f64,
    sum: f64,
}

impl Default for Curves {
    fn default() -> Self {
        Self {
            of_counters: MetadataMap::default(),
            counters: Counters::new(Selection::everything()).with_max_series(MAX_SERIES),
            found: Found::default(),
        }
    }
}

impl Curves {
    #[inline]
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let has_values = || Counters::needs(event.metadata());
        if self.of_counters.get_or_insert_with(event.metadata_index(), has_values) {
            self.take_in(event);
        }
    }

    #[inline(never)]
    fn take_in(&mut self, event: &Event<'_>) {
        let Self { counters, found, .. } = self;
        counters.add(event, |sample| found.add(&sample));
    }

    pub(super) fn finish(&mut self) {
        let Self { counters, found, .. } = self;
        counters.finish(|sample| found.add(&sample));
    }

    /// Returns true if no counter had a value.
    pub(super) fn is_empty(&self) -> bool {
        self.found.curves.is_empty()
    }

    /// Writes the curves in their order, each in bins that are not narrower than the page's; the number of
    /// curves including the omitted ones; and the number of values of series that were not read.
    pub(super) fn write(&self, width: BinWidth, out: &mut dyn Write) -> io::Result<()> {
        let Found { curves, seen } = &self.found;
        let count: u32 = seen.iter().map(|aspects| aspects.count_ones()).sum();
        write!(out, ",\"curveCount\":{count},\"curveValuesLeftOut\":{}", self.counters.left_out())?;
        let shown = self.found.shown();
        let first = curves.values().next().and_then(|curve| curve.process);
        let has_processes = curves.values().any(|curve| curve.process != first);
        list(out, "curves", curves.iter(), |out, (rank, curve)| {
            write!(out, "{{\"provider\":")?;
            text(out, &curve.provider)?;
            write!(out, ",\"name\":")?;
            match curve.process.filter(|_| has_processes) {
                Some(process) => text(out, &format!("{} (process {process})", curve.name))?,
                None => text(out, &curve.name)?,
            }
            write!(out, ",\"unit\":")?;
            text(out, &curve.unit)?;
            let width = width.max(curve.width);
            write!(out, ",\"shown\":{},\"binNs\":{}", shown.contains(rank), width.nanoseconds())?;
            curve.write_points(width, out)?;
            out.write_all(b"}")
        })
    }
}

impl Found {
    fn add(&mut self, sample: &Sample<'_>) {
        let series = sample.id.0 as usize;
        for (place, aspect) in sample.series.aspects().iter().enumerate() {
            // The runtime sends NaN if it measured nothing.
            let Some(value) = sample.number(*aspect).filter(|value| value.is_finite()) else { continue };
            if self.seen.len() <= series {
                self.seen.resize(series + 1, 0);
            }
            if let Some(seen) = self.seen.get_mut(series) {
                *seen |= 1 << place;
            }
            let rank = Rank { group: group(sample.series, *aspect), series, aspect: place };
            if !self.curves.contains_key(&rank) && !self.make_room(rank) {
                continue;
            }
            let curve = self.curves.entry(rank).or_insert_with(|| Curve::new(sample.series, *aspect));
            curve.add(sample.time, Point { count: 1, least: value, most: value, sum: value });
        }
    }

    /// Returns true if there is room for a curve, which may evict the last one. The evicted curve does not
    /// return: the limit of ranks only falls.
    fn make_room(&mut self, rank: Rank) -> bool {
        if self.curves.len() < MAX_CURVES {
            return true;
        }
        let is_before = self.curves.last_key_value().is_some_and(|(last, _)| rank < *last);
        if is_before {
            self.curves.pop_last();
        }
        is_before
    }

    /// Returns the curves that are shown at first.
    fn shown(&self) -> Vec<Rank> {
        let mut shown: Vec<_> =
            self.curves.keys().filter(|rank| rank.group < FEATURED.len()).copied().collect();
        shown.dedup_by_key(|rank| rank.group);
        if shown.is_empty() {
            shown.extend(self.curves.keys().take(MIN_SHOWN));
        }
        shown
    }
}

fn group(series: &Series, aspect: Aspect) -> usize {
    let is_featured = |featured: &Featured| {
        featured.name == series.name
            && featured.provider == series.provider
            && featured.aspect == aspect
            && series.tags.contains(featured.tag)
    };
    let is_total = series.kind == Kind::Counter && aspect == Aspect::Value && !series.is_misdeclared_gauge();
    FEATURED.iter().position(is_featured).unwrap_or(FEATURED.len() + usize::from(is_total))
}

impl Curve {
    fn new(series: &Series, aspect: Aspect) -> Self {
        let mut name = series.label(aspect);
        if !series.tags.is_empty() {
            name = format!("{name} {}", series.tags);
        }
        Self {
            process: series.process_id,
            provider: cut(&series.provider),
            name: cut(&name),
            unit: cut(&series.unit_of(aspect)),
            width: BinWidth::default(),
            points: BTreeMap::new(),
        }
    }

    fn add(&mut self, time: RelativeTime, point: Point) {
        add_to(&mut self.points, self.width.bin(time), point);
        while self.points.len() > MAX_POINTS {
            let width = self.width.wider();
            self.points = self.in_bins(width);
            self.width = width;
        }
    }

    fn in_bins(&self, width: BinWidth) -> BTreeMap<u32, Point> {
        let factor = width.count_of(self.width);
        let mut points = BTreeMap::new();
        for (bin, point) in &self.points {
            add_to(&mut points, bin / factor, *point);
        }
        points
    }

    /// Writes for each bin its distance from the one before and the number of its values; then the value
    /// itself if there is one, otherwise the least, the largest, and the sum.
    fn write_points(&self, width: BinWidth, out: &mut dyn Write) -> io::Result<()> {
        let mut before = 0;
        list(out, "points", self.in_bins(width).into_iter(), |out, (bin, point)| {
            write!(out, "{},{}", bin - before, point.count)?;
            before = bin;
            let Point { count, least, most, sum } = point;
            let values = if count == 1 { &[least][..] } else { &[least, most, sum] };
            for value in values {
                out.write_all(b",")?;
                serde_json::to_writer(&mut *out, value)?;
            }
            Ok(())
        })
    }
}

fn add_to(points: &mut BTreeMap<u32, Point>, bin: u32, added: Point) {
    let add = |point: &mut Point| {
        point.count = point.count.saturating_add(added.count);
        point.least = point.least.min(added.least);
        point.most = point.most.max(added.most);
        // JSON lacks infinity.
        point.sum = (point.sum + added.sum).clamp(f64::MIN, f64::MAX);
    };
    points.entry(bin).and_modify(add).or_insert(added);
}

#[cfg(test)]
mod tests {
    use super::*;

    use clr_counters::{EventCounterValue, Measurement, SeriesId};
    use serde_json::Value;

    fn mean(mean: f64) -> Measurement {
        let (standard_deviation, count) = (0.0, 1);
        Measurement::EventCounter(EventCounterValue::Mean {
            mean,
            standard_deviation,
            count,
            min: mean,
            max: mean,
        })
    }

    fn add(curves: &mut Curves, id: u32, name: &str, milliseconds: i64, value: f64) {
        let series = Series::new(RUNTIME, name, Kind::Mean);
        let time = RelativeTime::from_nanos(milliseconds * 1_000_000);
        curves.found.add(&Sample::new(time, SeriesId(id), &series, &mean(value)));
    }

    fn written(curves: &Curves, width: BinWidth) -> Value {
        let mut out = b"{\"x\":0".to_vec();
        curves.write(width, &mut out).unwrap();
        out.push(b'}');
        serde_json::from_slice(&out).unwrap()
    }

    /// Each bin of a curve: its number, the number of values, and least, largest, sum.
    fn points(curve: &Value) -> Vec<(u64, u64, [f64; 3])> {
        let numbers = curve["points"].as_array().unwrap();
        let (mut at, mut bin, mut points) = (0, 0, Vec::new());
        while at < numbers.len() {
            bin += numbers[at].as_u64().unwrap();
            let count = numbers[at + 1].as_u64().unwrap();
            let places = if count == 1 { [2, 2, 2] } else { [2, 3, 4] };
            points.push((bin, count, places.map(|place| numbers[at + place].as_f64().unwrap())));
            at += places[2] + 1;
        }
        points
    }

    #[test]
    fn no_peak_of_a_long_curve_is_lost() {
        let mut curves = Curves::default();
        for second in 0..36_000u32 {
            let value = match second {
                12_345 => 99.5,
                23_456 => -3.0,
                _ => f64::from(second % 7),
            };
            add(&mut curves, 0, "cpu-usage", i64::from(second) * 1000, value);
        }
        let data = written(&curves, BinWidth::default());
        let curve = &data["curves"][0];
        let (points, width) = (points(curve), curve["binNs"].as_u64().unwrap());
        assert!(points.len() <= MAX_POINTS && points.len() > MAX_POINTS / 10, "{}", points.len());
        assert_eq!(points.iter().map(|(_, count, _)| count).sum::<u64>(), 36_000);
        let extreme = |second: u64| {
            let wanted = second * 1_000_000_000 / width;
            points.iter().find(|(bin, ..)| *bin == wanted).unwrap().2
        };
        assert_eq!((extreme(12_345)[1], extreme(23_456)[0]), (99.5, -3.0));
        let others = (0..36_000u32).filter(|second| ![12_345, 23_456].contains(second));
        let sum: f64 = others.map(|second| f64::from(second % 7)).sum();
        let shown: f64 = points.iter().map(|(.., values)| values[2]).sum();
        assert!((shown - (sum + 99.5 - 3.0)).abs() < 1e-6, "{shown} for {sum}");
    }

    #[test]
    fn featured_curves_are_kept_whenever_they_appear() {
        let mut curves = Curves::default();
        for round in 0..3 {
            for id in 0..200 {
                add(&mut curves, id, &format!("own-{id}"), round * 1000, f64::from(id));
            }
            add(&mut curves, 300, "gc-heap-size", round * 1000 + 1, 5.0);
            add(&mut curves, 301, "cpu-usage", round * 1000 + 2, f64::NAN);
            add(&mut curves, 302, "cpu-usage", round * 1000 + 2, 7.0);
        }
        let data = written(&curves, BinWidth::default());
        let all = data["curves"].as_array().unwrap();
        let names: Vec<_> = all.iter().map(|curve| curve["name"].as_str().unwrap()).collect();
        assert_eq!((all.len(), &data["curveCount"]), (MAX_CURVES, &202.into()));
        assert_eq!(names[..4], ["cpu-usage", "gc-heap-size", "own-0", "own-1"]);
        assert_eq!(names.last(), Some(&"own-61"));
        let shown: Vec<_> = all.iter().filter(|curve| curve["shown"] == true).collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(all.iter().all(|curve| points(curve).len() == 3), "none began anew");
    }

    #[test]
    fn points_are_in_the_bins_of_the_page_or_wider_ones() {
        let mut curves = Curves::default();
        for (milliseconds, value) in [(0, 1.5), (1, f64::MAX), (1, f64::MAX), (7, 0.1)] {
            add(&mut curves, 0, "own", milliseconds, value);
        }
        let of = |width: BinWidth| points(&written(&curves, width)["curves"][0]);
        let huge = f64::MAX;
        let one = |bin, value| (bin, 1, [value; 3]);
        assert_eq!(of(BinWidth::default()), [one(0, 1.5), (1, 2, [huge; 3]), one(7, 0.1)]);
        assert_eq!(of(BinWidth::default().wider()), [(0, 3, [1.5, huge, huge]), one(3, 0.1)]);
    }
}
