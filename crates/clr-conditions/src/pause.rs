//! Pauses for garbage collections.

use std::time::Duration;

use clr_events::ClrEvent;
use clr_events::enums::GcSuspendEeReason;
use nettrace::{Event, RelativeTime, ThreadId};

/// Suspensions that are open at once; older ones have lost their end.
const MOST: usize = 64;

/// The suspensions for garbage collections that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    open: Vec<(ThreadId, RelativeTime)>,
}

impl Pauses {
    /// Takes an event. The duration of the pause that it ends, from the request to stand still on.
    pub(crate) fn add(&mut self, event: &Event<'_>) -> Option<Duration> {
        let thread = event.thread_id();
        match ClrEvent::of(event).ok()?? {
            ClrEvent::GcSuspendStart(suspend) => {
                self.end(thread);
                let is_collection = matches!(
                    suspend.reason,
                    GcSuspendEeReason::SUSPEND_FOR_GC | GcSuspendEeReason::SUSPEND_FOR_GC_PREP
                );
                if is_collection {
                    if self.open.len() >= MOST {
                        self.open.remove(0);
                    }
                    self.open.push((thread, event.relative_time()));
                }
                None
            }
            ClrEvent::GcRestartStop(_) => {
                let start = self.end(thread)?;
                Some(event.relative_time().saturating_duration_since(start))
            }
            _ => None,
        }
    }

    fn end(&mut self, thread: ThreadId) -> Option<RelativeTime> {
        let place = self.open.iter().position(|(open, _)| *open == thread)?;
        Some(self.open.remove(place).1)
    }
}
