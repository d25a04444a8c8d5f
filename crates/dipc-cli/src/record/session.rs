//! The start of a session.

use std::thread;
use std::time::Duration;

use dipc_client::{Error, PortRuntime, Session, SessionConfig, Target};
use dipc_collect::session::{self, StartError};

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::process::info::timeouts;
use crate::record::notes::Messages;
use crate::record::selection::Selection;
use crate::render::messages;

/// The time limit for asking whether there is a sampler. A recording does not depend on the answer.
const SAMPLER_TIMEOUT: Duration = Duration::from_secs(1);

/// Warns if samples are requested from a runtime without a sampler.
pub(crate) fn warn_without_sampler(target: &Target, selection: &Selection) {
    if !selection.samples_threads() {
        return;
    }
    match is_native_aot(target) {
        Ok(true) => {
            messages::warning(
                "the process is a NativeAOT program, which has no sampler: there will be no samples of its threads",
            );
            let help = "it has events of collections, allocations (--profile gc-verbose), exceptions, locks and EventSources, with stacks as addresses; dipc trace --cpu has the kernel sample its threads";
            if !messages::is_quiet() {
                messages::help(help);
            }
        }
        Ok(false) => {}
        Err(error) => messages::detail(error),
    }
}

/// Returns true if the process is a NativeAOT program, which lacks a sampler. Waits a second for the answer
/// at most.
pub(crate) fn is_native_aot(target: &Target) -> Result<bool, Error> {
    let timeouts = timeouts(target.timeouts().request.min(SAMPLER_TIMEOUT));
    target.clone().with_timeouts(timeouts).is_native_aot()
}

/// Starts the session, unless the user interrupts it, even while the runtime does not answer.
pub(crate) fn start_unless_interrupted(
    target: &Target,
    collect: &SessionConfig,
    interrupts: &Interrupts,
) -> Result<Session, Failure> {
    start_unless(target, collect, || interrupts.count() > 0)
}

/// Starts the session, unless `is_over` says that it is no longer wanted, even while the runtime does not
/// answer.
pub(crate) fn start_unless(
    target: &Target,
    collect: &SessionConfig,
    is_over: impl Fn() -> bool,
) -> Result<Session, Failure> {
    Ok(session::start(target, collect, is_over, &mut Messages)?)
}

/// The failure of a session that did not begin.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let StartError::Failed(error) = error else {
            return Self::new(Exit::Failed, "interrupted before the session began; nothing was recorded");
        };
        let is_refusal = matches!(error, Error::Refused { .. });
        let failure = Self::from(error);
        if is_refusal {
            return failure.with_help(
                "runtimes refuse more than 64 sessions at once, and arguments that they cannot use",
            );
        }
        failure
    }
}

/// Resumes a runtime that waits at its start for a tool to attach. The stream must be read meanwhile. If this
/// fails, a runtime that already runs, or is too old to wait, loses nothing.
pub(crate) fn resume(target: &Target) {
    let target = target.clone();
    thread::spawn(move || {
        if let Err(error) = target.resume() {
            messages::detail(error);
        }
    });
}

/// Resumes a runtime that has connected to the port of the watched one.
pub(crate) fn resume_other(runtime: &PortRuntime) {
    messages::detail(format_args!("Resumed another runtime at the port: {runtime:?}"));
    resume(&runtime.target());
}
