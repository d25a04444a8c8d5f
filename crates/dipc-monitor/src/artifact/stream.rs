//! The stream of a session that one artifact has for itself.

use std::time::{Duration, Instant};

use dipc_client::{Deadline, Session};

use super::{ArtifactError, is_over};
use crate::stop::StopSignal;

/// The longest read between checks for the reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// The silence after which the runtime's batch counts as complete.
const PAUSE: Duration = Duration::from_millis(20);
/// The bytes read at once.
const CHUNK: usize = 64 << 10;
/// The longest silence of a stopped session.
const SILENCE: Duration = Duration::from_secs(30);
/// The time limit for a stopped session, however much it still sends.
const LONGEST_DRAIN: Duration = Duration::from_secs(15 * 60);

/// A piece of a stream.
pub(super) enum Piece<'b> {
    /// Bytes that have arrived.
    Bytes(&'b [u8]),
    /// Nothing has arrived for a moment.
    Pause,
}

/// Reads the stream until it ends. After the time, or when it is asked to, the session is stopped and its
/// rest read. `take` returns whether it has enough, which stops the session as well.
///
/// # Errors
/// Those of the runtime and of `take`; [`ArtifactError::Cancelled`]. The session is stopped in any case.
pub(super) fn read(
    mut session: Session,
    duration: Option<Duration>,
    stop: &StopSignal,
    mut take: impl FnMut(Piece<'_>) -> Result<bool, ArtifactError>,
) -> Result<(), ArtifactError> {
    let mut buffer = vec![0; CHUNK];
    let start = Instant::now();
    let mut stopped: Option<Instant> = None;
    let mut last_byte = start;
    let mut wait = TICK;
    let mut has_enough = false;
    loop {
        let left = duration.filter(|_| stopped.is_none()).map(|all| all.saturating_sub(start.elapsed()));
        let deadline = Deadline::after(left.map_or(wait, |left| left.min(wait)));
        match session.poll_read(&mut buffer, deadline)? {
            Some(0) => return Ok(()),
            Some(count) => {
                has_enough |= take(Piece::Bytes(buffer.get(..count).unwrap_or_default()))?;
                last_byte = Instant::now();
                wait = PAUSE;
            }
            None => {
                has_enough |= take(Piece::Pause)?;
                wait = TICK;
            }
        }
        if stop.is_cancelled() {
            return Err(ArtifactError::Cancelled);
        }
        match stopped {
            None if has_enough || stop.is_stopped() || is_over(start, duration) => {
                session.request_stop()?;
                stopped = Some(Instant::now());
                last_byte = Instant::now();
            }
            Some(since) if last_byte.elapsed() > SILENCE || since.elapsed() > LONGEST_DRAIN => {
                return Err(ArtifactError::Failed("the stopped session does not end".to_owned()));
            }
            _ => {}
        }
    }
}
