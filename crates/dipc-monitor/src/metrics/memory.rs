//! The memory of a process by its owners, as series.

use std::time::Duration;

use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
use dipc_client::nettrace::RelativeTime;
use dipc_collect::memory::Subject;

use crate::owner_memory::OwnerSizes;

/// The provider of the series.
const PROVIDER: &str = "dipc";
/// The interval of the series: one that is no longer added ends after five of it.
const INTERVAL: Duration = Duration::from_secs(60);

/// Passes the sizes on as samples: eight series of a process.
pub(crate) fn add_memory(sizes: &OwnerSizes, now: Duration, mut add: impl FnMut(&Sample<'_>)) {
    // The series of a session are numbered from 0, and are fewer.
    let mut number = u32::MAX;
    let mut gauge = |name: &str, description: &str, tags: String, bytes: u64| {
        let mut series = Series::new(PROVIDER, name, Kind::Gauge);
        (series.unit, series.description, series.tags) = ("By".to_owned(), description.to_owned(), tags);
        #[allow(clippy::cast_precision_loss, reason = "no memory has 2^53 bytes")]
        let value = Some(bytes as f64);
        let measurement = Measurement::Meter(MeterMeasurement::Gauge { value });
        let time = RelativeTime::after_start(now);
        add(&Sample::new(time, SeriesId(number), &series, &measurement).with_interval(INTERVAL));
        number -= 1;
    };
    for subject in Subject::ALL {
        let tags = format!("owner={}", subject.id());
        let description = "Resident memory by owner; the sum is the resident memory.";
        gauge("dipc.process.memory", description, tags, sizes.subject(subject));
    }
    if let Some(free) = sizes.native_free {
        let description = "Resident memory that malloc keeps and has given to no one.";
        gauge("dipc.process.memory.native_heap.free", description, String::new(), free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_eight_series() {
        let sizes = OwnerSizes { subjects: [1, 2, 3, 4, 5, 6, 7], unattributed: 7, native_free: Some(1) };
        let mut samples = Vec::new();
        let mut add = |sizes: &OwnerSizes| {
            samples.clear();
            add_memory(sizes, Duration::ZERO, |sample| {
                samples.push((sample.id, sample.series.name.clone(), sample.series.tags.clone()));
            });
            samples.clone()
        };
        let all = add(&sizes);
        assert_eq!(all.len(), 8);
        assert_eq!(all[0].2, "owner=gc-heap");
        assert_eq!(all[6].2, "owner=unknown");
        assert_eq!(all[7].1, "dipc.process.memory.native_heap.free");
        let mut ids: Vec<_> = all.iter().map(|(id, ..)| *id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 8);
        // Without glibc it is not known what is free.
        assert_eq!(add(&OwnerSizes { native_free: None, ..sizes }), all[..7]);
    }
}
