//! A recording, byte for byte.

use super::{CHUNK, Next, Recording};
use crate::speed::{Speed, scaled};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Replay {
    recording: Arc<Recording>,
    speed: Speed,
    ends_with_recording: bool,
    /// What comes before the session is stopped.
    body: usize,
    sent: usize,
}

impl Replay {
    pub(super) fn new(recording: Arc<Recording>, speed: Speed, ends_with_recording: bool) -> Self {
        let body = if ends_with_recording { recording.bytes().len() } else { recording.tail() };
        Self { recording, speed, ends_with_recording, body, sent: 0 }
    }

    pub(super) fn next(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Next {
        let bytes = self.recording.bytes();
        let due = if stopped { bytes.len() } else { self.due(elapsed).min(self.body) };
        let until = due.min(self.sent.saturating_add(CHUNK));
        let chunk = bytes.get(self.sent..until).unwrap_or_default();
        if !chunk.is_empty() {
            out.extend_from_slice(chunk);
            self.sent = until;
            return Next::Bytes;
        }
        match () {
            () if self.sent < self.body && !stopped => Next::Later,
            () if stopped || self.ends_with_recording => Next::End,
            () => Next::Idle,
        }
    }

    fn due(&self, elapsed: Duration) -> usize {
        let len = self.recording.bytes().len();
        match self.speed {
            Speed::Recorded(factor) => match self.recording.timeline() {
                Ok(timeline) => timeline.due(scaled(elapsed, factor)),
                Err(_) => len,
            },
            speed => speed.due(len, elapsed),
        }
    }
}
