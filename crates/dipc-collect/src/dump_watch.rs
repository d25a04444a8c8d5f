//! A watch for createdump while a stream is silent: a process that is being dumped sends nothing, and its
//! createdump may hang.

use std::time::{Duration, Instant};

use dipc_transport::ProcessState;

use crate::observer::Note;

/// The silence before the first look at the process, and the time between two looks.
const SILENCE: Duration = Duration::from_secs(5);
/// The time after which a running createdump is reported. Heaps of some gigabytes take less.
pub const CREATEDUMP_LIMIT: Duration = Duration::from_secs(120);

/// The watch over a process with a silent stream.
#[derive(Debug)]
pub(crate) struct DumpWatch {
    pid: Option<u32>,
    next_look: Option<Instant>,
    /// The observed createdump, and the time of its first observation.
    seen: Option<(u32, Instant)>,
    is_reported: bool,
}

impl DumpWatch {
    pub(crate) const fn new(pid: Option<u32>) -> Self {
        Self { pid, next_look: None, seen: None, is_reported: false }
    }

    /// Records that the stream goes on.
    pub(crate) const fn end_silence(&mut self) {
        self.next_look = None;
        self.seen = None;
    }

    /// Looks at the silent process from time to time. Returns a note, once, for a createdump that has run for
    /// longer than the limit.
    pub(crate) fn look(&mut self) -> Option<Note> {
        let pid = self.pid.filter(|_| !self.is_reported)?;
        let now = Instant::now();
        let due = *self.next_look.get_or_insert(now + SILENCE);
        if now < due {
            return None;
        }
        self.next_look = Some(now + SILENCE);
        let Ok(ProcessState::Dumping { createdump }) = dipc_transport::process_state(pid) else {
            return None;
        };
        if !self.has_passed_limit(createdump, now) {
            return None;
        }
        self.is_reported = true;
        Some(Note::CreatedumpRuns { pid, createdump, limit: CREATEDUMP_LIMIT })
    }

    /// Returns true if this createdump has run for longer than the limit.
    fn has_passed_limit(&mut self, createdump: u32, now: Instant) -> bool {
        let (known, since) = *self.seen.get_or_insert((createdump, now));
        if known != createdump {
            self.seen = Some((createdump, now));
            return false;
        }
        now.saturating_duration_since(since) >= CREATEDUMP_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_createdump_is_reported_once_it_has_run_for_longer_than_the_limit() {
        let mut watch = DumpWatch::new(Some(7));
        let start = Instant::now();
        let mut passed =
            |createdump, seconds| watch.has_passed_limit(createdump, start + Duration::from_secs(seconds));
        assert!(!passed(8, 0) && !passed(8, 119));
        // The time of another createdump starts anew.
        assert!(!passed(9, 130) && !passed(9, 240));
        assert!(passed(9, 250));
        watch.end_silence();
        assert!(!watch.has_passed_limit(9, start + Duration::from_secs(300)));
    }
}
