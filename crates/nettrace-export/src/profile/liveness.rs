//! Facts about allocations that may still be in use.

use std::fmt::Write as _;
use std::time::Duration;

use clr_activity::LiveObjectCounts;
use clr_events::NativeAllocationEnd;

use crate::units;

/// Known and unknown facts about the allocations of a profile of
/// [`Metric::LiveAlloc`](crate::Metric::LiveAlloc).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Liveness {
    /// The collections that objects were followed through, and the objects that are not followed.
    pub counts: LiveObjectCounts,
    /// Allocated bytes that no collection of their generation has reached: whether they are in use is
    /// unknown, and the profile leaves them out.
    pub not_collected: u64,
}

impl Liveness {
    /// Returns the reasons for which the profile is uncertain, as a sentence; `None` without any. `lost` is
    /// the number of events that the recording has lost.
    ///
    /// ```
    /// let liveness = nettrace_export::Liveness::default();
    /// assert_eq!(liveness.doubt(0), None);
    /// let doubt = liveness.doubt(7).ok_or("a doubt")?;
    /// assert_eq!(doubt, "the objects in use are uncertain: 7 events were lost");
    /// # Ok::<(), &str>(())
    /// ```
    pub fn doubt(&self, lost: u64) -> Option<String> {
        let LiveObjectCounts { missing_collections, left_out, .. } = self.counts;
        let reasons = [
            (lost, "event was lost", "events were lost"),
            (
                missing_collections,
                "collection is without a report of what survived",
                "collections are without a report of what survived",
            ),
            (
                left_out,
                "sampled object beyond the limit was not followed",
                "sampled objects beyond the limit were not followed",
            ),
        ];
        let reasons = reasons.iter().filter(|(count, ..)| *count > 0);
        let reasons: Vec<_> = reasons.map(|(count, one, many)| units::counted(*count, one, many)).collect();
        (!reasons.is_empty()).then(|| format!("the objects in use are uncertain: {}", reasons.join("; ")))
    }

    /// Returns the collections that the profile is based on, and the bytes that it leaves out, as a sentence.
    pub fn basis(&self) -> String {
        let LiveObjectCounts { collections, full_collections, dead, .. } = self.counts;
        if collections == 0 {
            return "no collection with a report of what survived ended while this was recorded".to_owned();
        }
        let mut text = format!(
            "in use after {} ({} of all generations), in which {} died",
            units::counted(collections, "collection", "collections"),
            units::count(full_collections),
            units::counted(dead, "sampled object", "sampled objects"),
        );
        if full_collections == 0 {
            text.push_str(
                "; without one of all generations, objects that are no longer used may be among them",
            );
        }
        if self.not_collected > 0 {
            let bytes = units::bytes(self.not_collected);
            let _ = write!(text, "; {bytes} that no collection has reached yet are left out");
        }
        text
    }
}

/// Followed and unknown allocations of a profile of
/// [`Metric::NativeAlloc`](crate::Metric::NativeAlloc).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeLiveness {
    /// Allocations that were followed.
    pub allocations: u64,
    /// The allocations among them that were freed.
    pub freed: u64,
    /// Allocations beyond the limit of this reader.
    pub left_out: u64,
    /// The counts of the probes at their end; `None` if the recording ends before.
    pub end: Option<NativeAllocationEnd>,
}

impl NativeLiveness {
    /// Adds the end of the probes of a process.
    pub(crate) fn add_end(&mut self, end: &NativeAllocationEnd) {
        let Some(sum) = &mut self.end else {
            self.end = Some(*end);
            return;
        };
        for (sum, count) in [
            (&mut sum.hits, end.hits),
            (&mut sum.cost_ns, end.cost_ns),
            (&mut sum.cpu_ns, end.cpu_ns),
            (&mut sum.lost_allocations, end.lost_allocations),
            (&mut sum.lost_frees, end.lost_frees),
            (&mut sum.left_out, end.left_out),
        ] {
            *sum = sum.saturating_add(count);
        }
        sum.interval = sum.interval.max(end.interval);
        sum.duration_ns = sum.duration_ns.max(end.duration_ns);
        sum.is_beyond_limit |= end.is_beyond_limit;
    }

    /// Returns the reasons for which the profile is uncertain, as a sentence; `None` without any. `lost` is
    /// the number of events that the recording has lost.
    ///
    /// ```
    /// let liveness = nettrace_export::NativeLiveness::default();
    /// let doubt = liveness.doubt(7).ok_or("a doubt")?;
    /// assert!(doubt.starts_with("the native allocations in use are uncertain: 7 events were lost"));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn doubt(&self, lost: u64) -> Option<String> {
        let end = self.end.unwrap_or_default();
        // The records among them are named below.
        let records = end.lost_allocations.saturating_add(end.lost_frees);
        let lost = lost.saturating_sub(records);
        let left_out = self.left_out.saturating_add(end.left_out);
        let counted =
            |count: u64, one: &str, many: &str| (count > 0).then(|| units::counted(count, one, many));
        let frees =
            counted(end.lost_frees, "record of freed memory was lost", "records of freed memory were lost");
        let reasons = [
            counted(lost, "event was lost", "events were lost"),
            frees.map(|frees| format!("{frees}, which looks as if it were in use")),
            counted(
                end.lost_allocations,
                "record of an allocation was lost",
                "records of allocations were lost",
            ),
            counted(
                left_out,
                "allocation beyond the limit was not followed",
                "allocations beyond the limit were not followed",
            ),
            end.is_beyond_limit.then(|| {
                let time = units::time(Duration::from_nanos(end.duration_ns));
                format!("the probes were removed after {time} because of their cost: what was freed later is not known")
            }),
            self.end.is_none().then(|| "the recording ends before its probes".to_owned()),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty())
            .then(|| format!("the native allocations in use are uncertain: {}", reasons.join("; ")))
    }

    /// Returns what the profile is based on, as a sentence.
    pub fn basis(&self) -> String {
        let followed = units::counted(self.allocations, "allocation", "allocations");
        let mut text = format!("of {followed} that were followed, {} were freed", units::count(self.freed));
        let Some(end) = self.end else { return text };
        if end.interval > 1 {
            let bytes = units::bytes(end.interval);
            let _ = write!(text, "; one of less than {bytes} represents {bytes}");
        }
        let _ = write!(
            text,
            "; {} of probed functions cost {}",
            units::counted(end.hits, "call", "calls"),
            units::time(Duration::from_nanos(end.cost_ns))
        );
        text
    }
}
