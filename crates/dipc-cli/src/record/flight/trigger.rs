//! The reasons for snapshots: which are accepted, and when they take effect.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The settings of snapshots.
#[derive(Debug, Clone, Default)]
pub(crate) struct TriggerSettings {
    pub(crate) condition: Option<clr_conditions::Condition>,
    /// The time that is still recorded after the reason.
    pub(crate) after: Duration,
    /// Minimum time between two snapshots caused by the condition.
    pub(crate) interval: Duration,
    /// The number of snapshots after which the recording ends.
    pub(crate) most: Option<usize>,
}

/// A reason that is waiting for its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) text: String,
    due: Instant,
    /// The time, in milliseconds since 1970, up to which the snapshot should have events; `None` if it
    /// already has the event that caused it.
    horizon: Option<i64>,
}

/// Maximum wait for events up to the horizon. Runtimes send their events every 100 ms; an idle one sends
/// nothing.
const FLUSH: Duration = Duration::from_secs(1);

/// The part of the stream that has arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    /// The time of the newest event, in milliseconds since 1970.
    pub(super) newest: Option<i64>,
    /// True if the stream is silent: the runtime has sent a whole batch.
    pub(super) is_silent: bool,
}

/// The reasons so far.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    waiting: Option<Reason>,
    /// The number of snapshots that were begun and have not failed, and the time of the last.
    pub(super) count: usize,
    last: Option<Instant>,
    /// The number of matches since then that caused no snapshot.
    suppressed: u64,
}

impl Reason {
    fn is_ready(&self, now: Instant, arrival: Arrival) -> bool {
        let has_arrived = self.lag(arrival).is_none() && arrival.is_silent;
        self.due <= now && (self.horizon.is_none() || has_arrived || self.due + FLUSH <= now)
    }

    /// The milliseconds by which the newest event is older than the horizon; `None` if it is not, or if
    /// either is unknown.
    fn lag(&self, arrival: Arrival) -> Option<i64> {
        let lag = self.horizon?.saturating_sub(arrival.newest?);
        (lag > 0).then_some(lag)
    }
}

/// The time after `after`, in milliseconds since 1970.
fn unix_milliseconds(after: Duration) -> Option<i64> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.saturating_add(after);
    i64::try_from(time.as_millis()).ok()
}

/// The origin of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user; no interval delays these requests.
    User,
    Condition,
}

impl Triggers {
    /// Adds a reason. A reason that arrives while another is waiting is ignored, as is a condition that is
    /// met again too early.
    pub(super) fn add(&mut self, text: String, origin: Origin, settings: &TriggerSettings, now: Instant) {
        let is_over = settings.most.is_some_and(|most| self.count >= most);
        let is_early = origin == Origin::Condition
            && self.last.is_some_and(|last| now.saturating_duration_since(last) < settings.interval);
        if is_over || is_early || self.waiting.is_some() {
            self.suppressed += 1;
            return;
        }
        let is_met_before = origin == Origin::Condition && settings.after.is_zero();
        let horizon = if is_met_before { None } else { unix_milliseconds(settings.after) };
        self.waiting = Some(Reason { text, due: now + settings.after, horizon });
    }

    /// Takes the reason that is due, or, at the end of the stream, the waiting one. Its snapshot begins.
    ///
    /// If events up to a time are wanted, the reason waits until the runtime has sent them.
    pub(super) fn take(&mut self, is_end: bool, now: Instant, arrival: Arrival) -> Option<Reason> {
        let mut reason = self.waiting.take_if(|reason| is_end || reason.is_ready(now, arrival))?;
        if !is_end && let Some(age) = reason.lag(arrival) {
            reason.text = format!("{}; the newest event is {age} ms older", reason.text);
        }
        self.count += 1;
        self.last = Some(now);
        Some(reason)
    }

    /// Records that a snapshot could not be written.
    pub(super) const fn fail(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Returns the number of matches since the last call that caused no snapshot.
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
        let arrival = Arrival { newest: Some(i64::MAX), is_silent: true };
        triggers.add("a".into(), Origin::Condition, &settings, start);
        triggers.add("b".into(), Origin::Condition, &settings, start);
        assert_eq!(triggers.take(false, start, arrival), None, "there is a second more to record");
        assert_eq!(triggers.take(false, start + SECOND, arrival).unwrap().text, "a");
        assert_eq!(triggers.take_suppressed(), 1);
        triggers.add("c".into(), Origin::Condition, &settings, start + 5 * SECOND);
        assert_eq!((triggers.take(true, start + 5 * SECOND, arrival), triggers.take_suppressed()), (None, 1));
        triggers.add("d".into(), Origin::User, &settings, start + 6 * SECOND);
        assert_eq!(triggers.take(true, start + 6 * SECOND, arrival).unwrap().text, "d");
        triggers.add("e".into(), Origin::Condition, &settings, start + 20 * SECOND);
        assert!(triggers.take(true, start + 20 * SECOND, arrival).is_some());
    }

    #[test]
    fn writes_at_most_the_requested_number() {
        let settings = TriggerSettings { most: Some(1), ..TriggerSettings::default() };
        let now = Instant::now();
        let arrival = Arrival { newest: Some(i64::MAX), is_silent: true };
        let mut triggers = Triggers::default();
        triggers.add("a".into(), Origin::User, &settings, now);
        assert!(triggers.take(false, now, arrival).is_some());
        triggers.add("b".into(), Origin::User, &settings, now);
        assert_eq!((triggers.take(true, now, arrival), triggers.count), (None, 1));
    }

    #[test]
    fn a_request_waits_for_unsent_events() {
        let settings = TriggerSettings::default();
        let start = Instant::now();
        let mut triggers = Triggers::default();
        triggers.add("asked for".into(), Origin::User, &settings, start);
        let old = Arrival { newest: Some(1000), is_silent: true };
        let arriving = Arrival { newest: Some(i64::MAX), is_silent: false };
        assert_eq!(triggers.take(false, start, old), None, "a batch may be on its way");
        assert_eq!(triggers.take(false, start, arriving), None, "the rest of the batch is on its way");
        let whole = Arrival { is_silent: true, ..arriving };
        assert_eq!(triggers.take(false, start, whole).unwrap().text, "asked for");
        // An idle runtime sends nothing; the snapshot states up to when it has events.
        triggers.add("asked for".into(), Origin::User, &settings, start);
        let text = triggers.take(false, start + FLUSH, old).unwrap().text;
        assert!(text.starts_with("asked for; the newest event is ") && text.ends_with(" ms older"), "{text}");
        // The event that met the condition has already arrived.
        triggers.add("met".into(), Origin::Condition, &settings, start + FLUSH);
        assert_eq!(triggers.take(false, start + FLUSH, old).unwrap().text, "met");
    }
}
