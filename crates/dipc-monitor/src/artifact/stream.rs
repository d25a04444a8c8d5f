//! The stream of a session that one artifact has for itself.

use std::time::Duration;

use dipc_client::{LiveReader, Session, SessionConfig};
use dipc_collect::stream::{self, Ending, Limits, StreamEnd};
use dipc_collect::{StopSignal, live_stream, session};

use super::ArtifactError;
use crate::live_session::MAX_DELAY;
use crate::process::Watched;

pub(super) use dipc_collect::stream::Piece;

/// Starts the session, unless the collection is cancelled before the runtime answers.
pub(super) fn start(
    process: &Watched,
    config: &SessionConfig,
    stop: &StopSignal,
) -> Result<Session, ArtifactError> {
    Ok(session::start(process.target(), config, || stop.is_cancelled(), &mut ())?)
}

/// Reads the stream until it ends. After the time, or when it is asked to, the session is stopped and its
/// rest read. `take` returns true once it has enough, which stops the session as well.
///
/// # Errors
/// If the runtime or `take` fails; [`ArtifactError::Cancelled`]. The session is stopped in any case.
pub(super) fn read(
    session: Session,
    duration: Option<Duration>,
    stop: &StopSignal,
    take: impl FnMut(Piece<'_>) -> Result<bool, ArtifactError>,
) -> Result<(), ArtifactError> {
    let limits = Limits::new(stop.clone()).with_duration(duration);
    require_end(stream::read(session, &limits, take)?)
}

/// Passes the events of a stream to `read` until it ends, like [`read`], and returns their reader. `read` is
/// called whenever there are events, and at the end, and returns true once it has enough.
///
/// # Errors
/// If the runtime or `read` fails; [`ArtifactError::Cancelled`]. The session is stopped in any case.
pub(super) fn read_events(
    session: Session,
    duration: Option<Duration>,
    stop: &StopSignal,
    read: impl FnMut(&mut LiveReader) -> Result<bool, ArtifactError>,
) -> Result<LiveReader, ArtifactError> {
    let limits = Limits::new(stop.clone()).with_duration(duration);
    let (reader, end) = live_stream::read(session, LiveReader::new(MAX_DELAY), &limits, &mut (), read)?;
    require_end(end)?;
    Ok(reader)
}

/// Refuses a stream that did not end by itself or because it was stopped.
pub(super) fn require_end(end: StreamEnd) -> Result<(), ArtifactError> {
    match end.ending {
        Ending::Whole { .. } | Ending::Cut(None) => Ok(()),
        Ending::Cut(Some(error)) | Ending::Unstopped(error) => Err(error.into()),
        Ending::Abandoned => Err(ArtifactError::Cancelled),
        _ => Err(ArtifactError::Failed("the stopped session does not end".to_owned())),
    }
}
