//! Garbage collection pauses, one by one.

use std::time::Duration;

use clr_events::ClrEvent;
use nettrace::{Event, RelativeTime};

use crate::suspension::Suspensions;

/// A garbage collection pause that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// The process; `None` if the recording does not state it.
    pub process: Option<u64>,
    /// The start: the request, or the end of an earlier suspension, if that is later.
    pub start: RelativeTime,
    /// The time from the start until all threads ran again.
    pub duration: Duration,
}

/// The pauses of all processes of a recording, by the events of their suspensions.
///
/// # Memory
/// Bounded: see [`Suspensions`].
///
/// ```no_run
/// use clr_activity::Pauses;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
/// let mut pauses = Pauses::default();
/// while let Some(event) = events.next()? {
///     if let Some(pause) = pauses.add(&event) {
///         println!("{pause:?}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Pauses(Suspensions<()>);

impl Pauses {
    /// Adds an event, and returns the pause that it ends.
    ///
    /// ```
    /// # let mut recording = nettrace_synth::clr::Recording::new();
    /// # recording.thread(7).at(5_000_000).suspend_begin(1).at(9_000_000).restart_end();
    /// # let recording = recording.bytes();
    /// use clr_activity::Pauses;
    ///
    /// let (mut pauses, mut found) = (Pauses::default(), Vec::new());
    /// let mut events = nettrace::SliceReader::new(&recording)?.in_time_order();
    /// events.for_each(|event| found.extend(pauses.add(&event)))?;
    /// assert_eq!(found.iter().map(|pause| pause.duration.as_millis()).collect::<Vec<_>>(), [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add(&mut self, event: &Event<'_>) -> Option<Pause> {
        let view = ClrEvent::of(event).ok()??;
        let now = event.relative_time().max(RelativeTime::START);
        let suspension = self.0.add((event, &view), now, || ())?;
        Some(Pause {
            process: suspension.process,
            start: suspension.start,
            duration: now.saturating_duration_since(suspension.start),
        })
    }
}
