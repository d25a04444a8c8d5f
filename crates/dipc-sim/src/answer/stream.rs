//! The stream of a session, with its faults.

use crate::client::{Client, Step};
use crate::fault::Fault;
use crate::session::Session;
use crate::stream::Progress;
use dipc_transport::Deadline;
use dipc_wire::FilteredProviderConfig;
use std::ops::ControlFlow;
use std::time::Instant;

impl Client<'_> {
    /// Sends a session's stream until it ends.
    pub(super) fn send_stream(
        &mut self,
        session: &Session<'_>,
        providers: &[FilteredProviderConfig],
    ) -> Step {
        let flood = self.faults().contains(&Fault::Flood);
        let mut source = self.config().stream.open(providers, flood);
        let started = Instant::now();
        let mut sent = 0_usize;
        let mut chunk = Vec::new();
        loop {
            chunk.clear();
            match source.next_chunk(started.elapsed(), session.is_stopped(), &mut chunk) {
                Progress::Written => {
                    let step = self.send_chunk(&mut chunk, sent)?;
                    if step.is_break() {
                        return Ok(step);
                    }
                    sent = sent.saturating_add(chunk.len());
                }
                Progress::AwaitingStop if self.stream_limit().is_some() => return Ok(self.cut_stream()),
                Progress::Pending | Progress::AwaitingStop => {
                    if self.wait(Deadline::after(Session::STOP_POLL))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Progress::Ended => return Ok(ControlFlow::Break(())),
            }
        }
    }

    /// Sends the bytes at `offset` of the stream, damaged and cut by the faults.
    fn send_chunk(&mut self, bytes: &mut [u8], offset: usize) -> Step {
        for fault in self.faults() {
            if let Fault::DamageInStream { after } = *fault {
                let damaged = after..after.saturating_add(Fault::DAMAGED_BYTES);
                for (byte, position) in bytes.iter_mut().zip(offset..) {
                    if damaged.contains(&position) {
                        *byte = !*byte;
                    }
                }
            }
        }
        let left = self.stream_limit().map(|limit| limit.saturating_sub(offset));
        match left.and_then(|left| bytes.get(..left)) {
            Some(last) => {
                self.send(last)?;
                Ok(self.cut_stream())
            }
            None => self.send(bytes).map(ControlFlow::Continue),
        }
    }

    /// Returns the length at which a fault cuts the stream.
    fn stream_limit(&self) -> Option<usize> {
        self.faults().iter().find_map(|fault| match *fault {
            Fault::CloseInStream { after } | Fault::DieInTheMiddle { after } => Some(after),
            _ => None,
        })
    }

    /// Ends the stream, and the process if the fault says so.
    fn cut_stream(&mut self) -> ControlFlow<()> {
        if self.faults().iter().any(|fault| matches!(fault, Fault::DieInTheMiddle { .. })) {
            return self.die();
        }
        ControlFlow::Break(())
    }
}
