//! Facts about allocations that may still be in use.

use std::fmt::Write as _;

use clr_activity::LiveObjectCounts;

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
    /// Returns the reasons for which the profile is uncertain, as a sentence; `None` without any. `lost` is the
    /// number of events that the recording has lost.
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
