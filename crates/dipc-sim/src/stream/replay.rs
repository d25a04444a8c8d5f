//! The stream of a recording, byte for byte.

use super::recording::Recording;
use super::source::{CHUNK_LEN, Progress, Source};
use crate::speed::{Speed, scale};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Replay {
    recording: Arc<Recording>,
    speed: Speed,
    /// The bytes sent before the session is stopped; `None` if the stream ends with the recording.
    body_len: Option<usize>,
    sent: usize,
}

impl Replay {
    pub(super) fn new(recording: Arc<Recording>, speed: Speed, body_len: Option<usize>) -> Self {
        Self { recording, speed, body_len, sent: 0 }
    }

    /// Returns the length of the recording's part that is due after `elapsed`.
    fn bytes_due(&self, elapsed: Duration) -> usize {
        let len = self.recording.bytes().len();
        match self.speed {
            Speed::Recorded(factor) => match self.recording.timeline() {
                Ok(timeline) => timeline.bytes_due(scale(elapsed, factor)),
                Err(_) => len,
            },
            speed => speed.bytes_due(len, elapsed),
        }
    }
}

impl Source for Replay {
    fn next_chunk(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Progress {
        let bytes = self.recording.bytes();
        let body_len = self.body_len.unwrap_or(bytes.len());
        let due = if stopped { bytes.len() } else { self.bytes_due(elapsed).min(body_len) };
        let until = due.min(self.sent.saturating_add(CHUNK_LEN));
        let chunk = bytes.get(self.sent..until).unwrap_or_default();
        if !chunk.is_empty() {
            out.extend_from_slice(chunk);
            self.sent = until;
            return Progress::Written;
        }
        if stopped {
            Progress::Ended
        } else if self.sent < body_len {
            Progress::Pending
        } else if self.body_len.is_none() {
            Progress::Ended
        } else {
            Progress::AwaitingStop
        }
    }
}
