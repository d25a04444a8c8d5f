//! Streams of sessions: a recording, once or in a loop, or synthetic events.

mod block_index;
mod event_kinds;
mod looped;
mod object;
mod recording;
mod replay;
mod rewrite;
mod source;
mod synthetic;
mod ticks;

pub(crate) use recording::Recording;
pub(crate) use source::{Progress, Source};

use crate::error::Error;
use crate::speed::Speed;
use block_index::BlockIndex;
use dipc_wire::FilteredProviderConfig;
use looped::Looped;
use replay::Replay;
use std::sync::Arc;
use synthetic::Synthetic;

/// The rate of [`Fault::Flood`](crate::Fault::Flood) in events per second: more than can be written.
const FLOOD_RATE: u64 = 50_000_000;

/// The configured streams of a runtime.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamOptions {
    pub(crate) recording: Arc<Recording>,
    pub(crate) speed: Speed,
    /// True if a stream ends with the recording, instead of with the session.
    pub(crate) ends_with_recording: bool,
    /// True if the recording is played in a loop.
    pub(crate) looped: bool,
    /// Events per second, if they are synthetic.
    pub(crate) rate: Option<u64>,
}

/// The streams of a runtime, with a recording that can be played with the options.
#[derive(Clone, Debug)]
pub(crate) struct StreamConfig {
    options: StreamOptions,
    /// The positions of the recording's blocks, if it is played in a loop.
    index: Option<Arc<BlockIndex>>,
    /// The offset of the recording's part that is sent when a session is stopped.
    rundown_start: usize,
    process_id: u32,
}

impl StreamConfig {
    /// Checks that the recording can be played with the options.
    pub(crate) fn new(options: StreamOptions, process_id: u32) -> Result<Self, Error> {
        let index = if options.looped { Some(options.recording.index()?) } else { None };
        if let Speed::Recorded(_) = options.speed {
            options.recording.timeline()?;
        }
        let rundown_start = options.recording.rundown_start();
        Ok(Self { options, index, rundown_start, process_id })
    }

    /// Returns the stream of a session with these providers. `flood` produces more events than can be read.
    pub(crate) fn open(&self, providers: &[FilteredProviderConfig], flood: bool) -> Box<dyn Source> {
        let StreamOptions { speed, ends_with_recording, rate, .. } = self.options;
        let rate = if flood { Some(FLOOD_RATE) } else { rate };
        let recording = Arc::clone(&self.options.recording);
        match (rate, &self.index) {
            (Some(rate), _) => Box::new(Synthetic::new(rate, providers, self.process_id)),
            (None, Some(index)) => {
                Box::new(Looped::new(recording, Arc::clone(index), speed, self.rundown_start))
            }
            (None, None) => {
                let body_len = if ends_with_recording { None } else { Some(self.rundown_start) };
                Box::new(Replay::new(recording, speed, body_len))
            }
        }
    }
}
