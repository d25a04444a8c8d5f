//! The answer to a request, and the reason for a missing one.

use std::sync::Arc;

use dipc_client::Error;
use dipc_transport::{Error as TransportError, ProcessState};

use crate::facts::{Answer, Facts, Process};
use crate::{AnswerEvidence, Check, Evidence, Finding, Fix, TimeoutReason};

pub(super) fn state(facts: &Facts, process: &Process) -> Option<Finding> {
    let state = process.state.as_ref().filter(|state| state.is_unresponsive())?;
    let evidence = Evidence::State(state.clone());
    let finding =
        if process.has_answered() { Finding::warning(evidence) } else { Finding::problem(evidence) };
    Some(match (state, state.help()) {
        (ProcessState::Stopped, _) => finding.with_fix(Fix::Continue { pid: facts.pid }),
        (_, Some(help)) => finding.with_fix(Fix::Advice(help)),
        (_, None) => finding,
    })
}

pub(super) fn answer(process: &Process) -> Option<Finding> {
    let error = match &process.answer {
        Answer::NotAsked => return None,
        Answer::Answered { info, after } => {
            let command = info.as_ref().map(|info| info.command);
            let evidence = AnswerEvidence::Answered { command, after: *after };
            return Some(Finding::ok(Evidence::Answer(evidence)));
        }
        Answer::Refused { error, after } => {
            let evidence = AnswerEvidence::Refused { error: Arc::clone(error), after: *after };
            return Some(Finding::ok(Evidence::Answer(evidence)));
        }
        Answer::Failed(error) => error,
    };
    let (evidence, fix) = failure(process, error);
    Some(Finding { fix, ..Finding::problem(Evidence::Answer(evidence)) })
}

fn failure(process: &Process, error: &Arc<Error>) -> (AnswerEvidence, Option<Fix>) {
    let shared = Arc::clone(error);
    match &**error {
        error if error.is_deadline() => {
            let reason = timeout_reason(process);
            let fix = match reason {
                TimeoutReason::State => Fix::SeeCheck(Check::State),
                TimeoutReason::OtherClients { .. } => Fix::EndOtherClient,
                TimeoutReason::Overload => Fix::RetryLonger,
            };
            (AnswerEvidence::TimedOut { error: shared, reason }, Some(fix))
        }
        Error::Transport(TransportError::PeerMismatch { .. }) => {
            (AnswerEvidence::OtherProcess(shared), Some(Fix::EndOtherListener))
        }
        Error::Transport(TransportError::Stale { .. }) => {
            (AnswerEvidence::NoListener(shared), Some(Fix::Restart))
        }
        error => (AnswerEvidence::Failed(shared), error.help().map(Fix::Advice)),
    }
}

fn timeout_reason(process: &Process) -> TimeoutReason {
    if process.state.as_ref().is_some_and(ProcessState::is_unresponsive) {
        return TimeoutReason::State;
    }
    let path = process.endpoint.as_ref().map(|endpoint| &endpoint.path);
    let name = path.ok().and_then(|path| path.file_name());
    let connections =
        process.sockets.iter().filter(|socket| !socket.listens && socket.path.file_name() == name).count();
    match connections {
        0 => TimeoutReason::Overload,
        _ => TimeoutReason::OtherClients { connections },
    }
}
