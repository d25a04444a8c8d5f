//! The start of a session, which its caller can give up.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use dipc_client::{Error, OptionalFeature, Rundown, Session, SessionConfig, Target};

use crate::observer::{Note, Observer};

/// Maximum wait between checks for the end.
const TICK: Duration = Duration::from_millis(50);
/// The time limit for the answer to a session request that was given up.
const ABANDON: Duration = Duration::from_millis(500);

/// The reason why a session did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The caller gave it up before the runtime answered.
    #[error("stopped before the session began")]
    Stopped,
    /// The runtime cannot be reached, or refused the session.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Starts a session, unless `is_over` says that it is no longer wanted, even while the runtime does not
/// answer. A session that begins after that is stopped.
///
/// If the runtime cannot choose the keywords of its rundown, none is requested for a configuration that needs
/// only a few of them ([`Note::RundownLeftOut`]).
///
/// # Errors
/// [`StartError`]
pub fn start(
    target: &Target,
    config: &SessionConfig,
    is_over: impl Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Session, StartError> {
    let (sender, answer) = mpsc::channel();
    let (target, config) = (target.clone(), config.clone());
    // A session without a receiver is dropped there, which stops it.
    let start = move || drop(sender.send(start_without_keywords(&target, config)));
    // Without a thread, the channel is closed.
    let _ = thread::Builder::new().name("session start".to_owned()).spawn(start);
    loop {
        match answer.recv_timeout(TICK) {
            Ok(started) => {
                let (session, is_rundown_left_out) = started?;
                if is_rundown_left_out {
                    observer.note(Note::RundownLeftOut);
                }
                return Ok(session);
            }
            Err(RecvTimeoutError::Timeout) if !is_over() => {}
            Err(_) => break,
        }
    }
    // A runtime that answers at all does so at once, and its session must not outlive this program.
    drop(answer.recv_timeout(ABANDON));
    Err(StartError::Stopped)
}

/// Starts the session, and returns true with it if its rundown was left out.
fn start_without_keywords(target: &Target, config: SessionConfig) -> Result<(Session, bool), Error> {
    match target.start_session(&config) {
        Err(Error::UnsupportedOption { feature: OptionalFeature::RundownKeyword, .. }) => {
            Ok((target.start_session(&config.with_rundown(Rundown::Off))?, true))
        }
        outcome => Ok((outcome?, false)),
    }
}
