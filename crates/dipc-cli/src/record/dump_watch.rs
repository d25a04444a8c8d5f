//! A recording whose process is being dumped: the runtime sends nothing meanwhile, and its createdump may hang.

use std::time::{Duration, Instant};

use dipc_transport::ProcessState;

use crate::render::{messages, units};

/// The silence after which the process is looked at, and the time between two looks.
const SILENCE: Duration = Duration::from_secs(5);
/// The time after which a createdump is named. A heap of some gigabytes takes less.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The watch over a process whose stream is silent.
#[derive(Debug)]
pub(super) struct DumpWatch {
    pid: Option<u32>,
    next_look: Option<Instant>,
    /// The createdump that was seen, and the time since when.
    seen: Option<(u32, Instant)>,
    is_named: bool,
}

impl DumpWatch {
    pub(super) const fn new(pid: Option<u32>) -> Self {
        Self { pid, next_look: None, seen: None, is_named: false }
    }

    /// Records that the stream goes on.
    pub(super) const fn end_silence(&mut self) {
        self.next_look = None;
        self.seen = None;
    }

    /// Looks at the silent process, from time to time. A createdump that has not ended after the limit is named, once.
    pub(super) fn look(&mut self) {
        let Some(pid) = self.pid.filter(|_| !self.is_named) else { return };
        let now = Instant::now();
        let due = *self.next_look.get_or_insert(now + SILENCE);
        if now < due {
            return;
        }
        self.next_look = Some(now + SILENCE);
        let Ok(ProcessState::Dumping { createdump }) = dipc_transport::process_state(pid) else { return };
        if self.has_passed_limit(createdump, now) {
            warn(pid, createdump);
            self.is_named = true;
        }
    }

    /// Returns whether this createdump has run for longer than the limit.
    fn has_passed_limit(&mut self, createdump: u32, now: Instant) -> bool {
        let (known, since) = *self.seen.get_or_insert((createdump, now));
        if known != createdump {
            self.seen = Some((createdump, now));
            return false;
        }
        now.saturating_duration_since(since) >= LIMIT
    }
}

/// Names the createdump of a process that has not ended within the limit.
pub(crate) fn warn(pid: u32, createdump: u32) {
    messages::warning(format_args!(
        "process {pid}: its createdump, process {createdump}, did not end within {}",
        units::time(LIMIT)
    ));
    messages::help(format_args!(
        "it may still write, or hang, as for a stack overflow: kill -KILL {createdump} ends it; a process that has crashed then ends without its dump"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_createdump_is_named_once_it_has_run_for_longer_than_the_limit() {
        let mut watch = DumpWatch::new(Some(7));
        let start = Instant::now();
        let mut passed =
            |createdump, seconds| watch.has_passed_limit(createdump, start + Duration::from_secs(seconds));
        assert!(!passed(8, 0) && !passed(8, 119));
        // Another one starts anew.
        assert!(!passed(9, 130) && !passed(9, 240));
        assert!(passed(9, 250));
        watch.end_silence();
        assert!(!watch.has_passed_limit(9, start + Duration::from_secs(300)));
    }
}
