//! Reasons for snapshots: which are followed, and when.

use std::time::{Duration, Instant};

/// The settings of snapshots.
#[derive(Debug, Clone, Default)]
pub(crate) struct TriggerSettings {
    pub(crate) condition: Option<clr_conditions::Condition>,
    /// The time that is still recorded behind the reason.
    pub(crate) after: Duration,
    /// The least time between two snapshots that the condition asks for.
    pub(crate) interval: Duration,
    /// Recording ends after so many.
    pub(crate) most: Option<usize>,
}

/// A reason that waits for its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) text: String,
    due: Instant,
}

/// The reasons so far.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    waiting: Option<Reason>,
    /// The number of snapshots that were begun and have not failed, and the time of the last.
    pub(super) count: usize,
    last: Option<Instant>,
    /// Matches since then that made none.
    suppressed: u64,
}

/// The origin of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Whom no interval holds up.
    User,
    Condition,
}

impl Triggers {
    /// Takes note of a reason. One that comes while another waits adds nothing, nor does a condition that is met again too early.
    pub(super) fn add(&mut self, text: String, origin: Origin, settings: &TriggerSettings, now: Instant) {
        let is_over = settings.most.is_some_and(|most| self.count >= most);
        let is_early = origin == Origin::Condition
            && self.last.is_some_and(|last| now.saturating_duration_since(last) < settings.interval);
        if is_over || is_early || self.waiting.is_some() {
            self.suppressed += 1;
            return;
        }
        self.waiting = Some(Reason { text, due: now + settings.after });
    }

    /// The reason whose time has come, or, at the end of the stream, the one that waits. The snapshot for it begins.
    pub(super) fn take(&mut self, is_end: bool, now: Instant) -> Option<Reason> {
        let reason = self.waiting.take_if(|reason| is_end || reason.due <= now)?;
        self.count += 1;
        self.last = Some(now);
        Some(reason)
    }

    /// Takes note that a snapshot could not be written.
    pub(super) const fn fail(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Matches that made no snapshot since the last call.
    pub(super) fn take_suppressed(&mut self) -> u64 {
        std::mem::take(&mut self.suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_condition_is_held_up_and_a_user_is_not() {
        let settings = TriggerSettings { after: SECOND, interval: 10 * SECOND, ..TriggerSettings::default() };
        let start = Instant::now();
        let mut triggers = Triggers::default();
        triggers.add("a".into(), Origin::Condition, &settings, start);
        triggers.add("b".into(), Origin::Condition, &settings, start);
        assert_eq!(triggers.take(false, start), None, "there is a second more to record");
        assert_eq!(triggers.take(false, start + SECOND).unwrap().text, "a");
        assert_eq!(triggers.take_suppressed(), 1);
        triggers.add("c".into(), Origin::Condition, &settings, start + 5 * SECOND);
        assert_eq!((triggers.take(true, start + 5 * SECOND), triggers.take_suppressed()), (None, 1));
        triggers.add("d".into(), Origin::User, &settings, start + 6 * SECOND);
        assert_eq!(triggers.take(true, start + 6 * SECOND).unwrap().text, "d");
        triggers.add("e".into(), Origin::Condition, &settings, start + 20 * SECOND);
        assert!(triggers.take(true, start + 20 * SECOND).is_some());
    }

    #[test]
    fn there_are_no_more_than_asked_for() {
        let settings = TriggerSettings { most: Some(1), ..TriggerSettings::default() };
        let now = Instant::now();
        let mut triggers = Triggers::default();
        triggers.add("a".into(), Origin::User, &settings, now);
        assert!(triggers.take(false, now).is_some());
        triggers.add("b".into(), Origin::User, &settings, now);
        assert_eq!((triggers.take(true, now), triggers.count), (None, 1));
    }
}
