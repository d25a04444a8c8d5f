//! A recording, byte for byte.

use super::{CHUNK, Next, Recording};
use crate::speed::{Speed, scaled};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Replay {
    recording: Arc<Recording>,
    speed: Speed,
    /// What comes before the session is stopped, in bytes; `None` if the stream ends with the recording.
    body: Option<usize>,
    sent: usize,
}

impl Replay {
    pub(super) fn new(recording: Arc<Recording>, speed: Speed, body: Option<usize>) -> Self {
        Self { recording, speed, body, sent: 0 }
    }

    pub(super) fn next(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Next {
        let bytes = self.recording.bytes();
        let body = self.body.unwrap_or(bytes.len());
        let due = if stopped { bytes.len() } else { self.due(elapsed).min(body) };
        let until = due.min(self.sent.saturating_add(CHUNK));
        let chunk = bytes.get(self.sent..until).unwrap_or_default();
        if !chunk.is_empty() {
            out.extend_from_slice(chunk);
            self.sent = until;
            return Next::Bytes;
        }
        match () {
            () if self.sent < body && !stopped => Next::Later,
            () if stopped || self.body.is_none() => Next::End,
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
