//! A session that evaluates events as they arrive, and the wait before a failed session is started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dipc_client::{Deadline, Error, LiveReader, Session, SessionConfig, Target};

use crate::filtered_sources::{FilteredSession, FilteredSources};

/// The size of the runtime's buffer in MB: counters are few, and requests are reported one by one.
pub(crate) const BUFFER_MB: u32 = 16;
/// Maximum wait between checks of the clock and for changes.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// The time for the rest of a stopped session, or of a session after its process has ended.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);
/// Maximum time that an event waits for older events of other threads.
pub(crate) const MAX_DELAY: Duration = Duration::from_millis(200);
/// The silence after which a batch of events counts as complete.
const PAUSE: Duration = Duration::from_millis(20);

/// The numbers of events that runtimes dropped in the sessions of all processes, by purpose. Clones share the
/// numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostEvents {
    pub(crate) counters: Arc<AtomicU64>,
    pub(crate) export: Arc<AtomicU64>,
    pub(crate) rules: Arc<AtomicU64>,
    /// The values of counters that the monitor itself left out: of more series than it keeps.
    pub(crate) left_out_values: Arc<AtomicU64>,
}

/// A session, and the reader of its events.
pub(crate) struct LiveSession {
    session: Session,
    pub(crate) reader: LiveReader,
    /// The number that the losses of this session are added to.
    lost: Arc<AtomicU64>,
    /// The number of its losses that were added.
    counted: u64,
    buffer: Vec<u8>,
    wait: Duration,
    /// The session's place among the sessions with filters, which it leaves after its end.
    filtered: Option<FilteredSession>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Bytes arrived, and the reader has their events.
    Bytes,
    /// Nothing, for a moment: the reader has all events of the batch.
    Nothing,
    /// The end of the stream.
    End,
}

impl LiveSession {
    /// Starts a session, reading `chunk` bytes of its stream at once. The events that the runtime drops are
    /// added to `lost`.
    pub(crate) fn start(
        target: &Target,
        config: &SessionConfig,
        chunk: usize,
        lost: &Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        Ok(Self {
            session: target.start_session(config)?,
            reader: LiveReader::new(MAX_DELAY),
            lost: Arc::clone(lost),
            counted: 0,
            buffer: vec![0; chunk],
            wait: TICK,
            filtered: None,
        })
    }

    /// Starts a session that may use EventSources with filters.
    pub(crate) fn start_filtered(
        sources: &Arc<FilteredSources>,
        target: &Target,
        config: &SessionConfig,
        chunk: usize,
        lost: &Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let filtered = sources.enter(config);
        let mut session = Self::start(target, config, chunk, lost)?;
        session.filtered = Some(filtered);
        Ok(session)
    }

    /// Sends the filters of its EventSources again, which have fallen silent.
    pub(crate) fn renew_filters(&self) {
        if let Some(filtered) = &self.filtered {
            filtered.renew();
        }
    }

    /// Reads what has arrived, or waits for it, [`TICK`] at most.
    pub(crate) fn read(&mut self) -> Result<Arrived, Error> {
        self.count_losses();
        if let Some(filtered) = &self.filtered {
            filtered.tick();
        }
        match self.session.poll_read(&mut self.buffer, Deadline::after(self.wait))? {
            Some(0) => Ok(Arrived::End),
            Some(count) => {
                self.reader.feed(self.buffer.get(..count).unwrap_or_default());
                self.wait = PAUSE;
                Ok(Arrived::Bytes)
            }
            None => {
                self.reader.release();
                self.wait = TICK;
                Ok(Arrived::Nothing)
            }
        }
    }

    /// Stops the session, so that the runtime releases it, and reads its rest. `deliver` is called whenever
    /// there are events. Returns true if the runtime has stopped it.
    pub(crate) fn stop(&mut self, mut deliver: impl FnMut(&mut LiveReader)) -> bool {
        let deadline = Deadline::after(DRAIN);
        if self.session.request_stop().is_err() {
            return false;
        }
        while let Ok(count @ 1..) = self.session.read(&mut self.buffer, deadline) {
            self.reader.feed(self.buffer.get(..count).unwrap_or_default());
            deliver(&mut self.reader);
        }
        true
    }

    /// Adds the losses in the events that were read since the last call.
    fn count_losses(&mut self) {
        let lost = self.reader.events().loss().total();
        self.lost.fetch_add(lost.saturating_sub(self.counted), Ordering::Relaxed);
        self.counted = lost;
    }
}

impl Drop for LiveSession {
    fn drop(&mut self) {
        self.count_losses();
    }
}
