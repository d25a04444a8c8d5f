//! What the stream of a session consists of: a recording, once or over and over, or events that are made up.

mod cursor;
mod kinds;
mod layout;
mod looped;
mod object;
mod recording;
mod replay;
mod rows;
mod synthetic;

pub(crate) use recording::Recording;

use crate::answer::SessionRequest;
use crate::client::{Client, Step};
use crate::fault::Fault;
use crate::session::Session;
use crate::{Error, Speed};
use dipc_transport::Deadline;
use layout::Layout;
use looped::Looped;
use replay::Replay;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use synthetic::Synthetic;

/// How often a stream that has nothing to send looks whether its session was stopped.
pub(crate) const STOP_POLL: Duration = Duration::from_millis(10);
/// About as much is made at once.
const CHUNK: usize = 64 * 1024;
/// The rate of [`Fault::Flood`]: more than can be made, let alone read.
const FLOOD: u64 = 50_000_000;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// A time in a clock's ticks as ticks of another clock; both clocks' ticks a second are given.
fn convert(ticks: u64, frequency: u64, other: u64) -> u64 {
    let product = u128::from(ticks).saturating_mul(other.into());
    let converted = product.checked_div(frequency.into()).unwrap_or(u128::MAX);
    u64::try_from(converted).unwrap_or(u64::MAX)
}

/// What the streams of a runtime are made of.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    pub(crate) recording: Arc<Recording>,
    pub(crate) speed: Speed,
    /// Whether a stream ends with the recording, instead of with the session.
    pub(crate) ends_with_recording: bool,
    /// Where the blocks of a recording lie that is played over and over.
    layout: Option<Arc<Layout>>,
    /// How much of the recording comes before a session is stopped, in bytes.
    body: usize,
    /// Events a second, where they are made up.
    pub(crate) rate: Option<u64>,
    pub(crate) process_id: u32,
}

impl Material {
    /// Looks whether the recording can be played in this way.
    pub(crate) fn new(
        recording: Arc<Recording>,
        speed: Speed,
        ends_with_recording: bool,
        loops: bool,
        rate: Option<u64>,
        process_id: u32,
    ) -> Result<Self, Error> {
        let layout = if loops { Some(recording.layout()?) } else { None };
        if let Speed::Recorded(_) = speed {
            recording.timeline()?;
        }
        let body = recording.tail();
        Ok(Self { recording, speed, ends_with_recording, layout, body, rate, process_id })
    }

    fn source(&self, asked: &SessionRequest, floods: bool) -> Source {
        let rate = if floods { Some(FLOOD) } else { self.rate };
        let recording = || Arc::clone(&self.recording);
        match (rate, &self.layout) {
            (Some(rate), _) => Source::Synthetic(Synthetic::new(rate, asked, self.process_id)),
            (None, Some(layout)) => {
                Source::Looped(Looped::new(recording(), Arc::clone(layout), self.speed, self.body))
            }
            (None, None) => {
                let body = if self.ends_with_recording { None } else { Some(self.body) };
                Source::Replay(Replay::new(recording(), self.speed, body))
            }
        }
    }
}

/// Where the bytes of one stream come from.
enum Source {
    Replay(Replay),
    Looped(Looped),
    Synthetic(Synthetic),
}

/// How a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// With the bytes that were added.
    Bytes,
    /// With others that are not due yet.
    Later,
    /// Not before the session is stopped.
    Idle,
    /// Not at all.
    End,
}

impl Source {
    /// Adds what is due to `out`, at most about [`CHUNK`].
    fn next(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Next {
        match self {
            Self::Replay(replay) => replay.next(elapsed, stopped, out),
            Self::Looped(looped) => looped.next(elapsed, stopped, out),
            Self::Synthetic(synthetic) => synthetic.next(elapsed, stopped, out),
        }
    }
}

impl Client<'_> {
    /// Sends a session's stream until it ends.
    pub(crate) fn stream(&mut self, session: &Session<'_>, asked: &SessionRequest) -> Step {
        let mut source = self.behaviour().material.source(asked, self.faults().contains(&Fault::Flood));
        let started = Instant::now();
        let mut sent = 0_usize;
        let mut out = Vec::new();
        loop {
            out.clear();
            match source.next(started.elapsed(), session.is_stopped(), &mut out) {
                Next::Bytes => {
                    let step = self.send_stream(&mut out, sent)?;
                    if step.is_break() {
                        return Ok(step);
                    }
                    sent = sent.saturating_add(out.len());
                }
                Next::Idle if self.cut().is_some() => return Ok(self.cut_stream()),
                Next::Later | Next::Idle => {
                    if self.wait(Deadline::after(STOP_POLL))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Next::End => return Ok(ControlFlow::Break(())),
            }
        }
    }

    /// Sends the bytes that follow the first `offset` of the stream, spoilt by the faults.
    fn send_stream(&mut self, bytes: &mut [u8], offset: usize) -> Step {
        for fault in self.faults() {
            if let Fault::DamageInStream { after } = *fault {
                let damaged = after..after.saturating_add(Fault::DAMAGED_BYTES);
                for (byte, place) in bytes.iter_mut().zip(offset..) {
                    if damaged.contains(&place) {
                        *byte = !*byte;
                    }
                }
            }
        }
        let left = self.cut().map(|after| after.saturating_sub(offset));
        match left.and_then(|left| bytes.get(..left)) {
            Some(last) => {
                self.send(last)?;
                Ok(self.cut_stream())
            }
            None => self.send(bytes).map(ControlFlow::Continue),
        }
    }

    /// After how many bytes a fault cuts the stream.
    fn cut(&self) -> Option<usize> {
        self.faults().iter().find_map(|fault| match *fault {
            Fault::CloseInStream { after } | Fault::DieInTheMiddle { after } => Some(after),
            _ => None,
        })
    }

    fn cut_stream(&mut self) -> ControlFlow<()> {
        if self.faults().iter().any(|fault| matches!(fault, Fault::DieInTheMiddle { .. })) {
            self.server().die();
        }
        ControlFlow::Break(())
    }
}
