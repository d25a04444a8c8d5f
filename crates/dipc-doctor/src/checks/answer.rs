//! Whether it answers, and what keeps it from that.

use dipc_transport::{Error as TransportError, ProcessState};

use crate::facts::{Answer, Facts, Process};
use crate::finding::{Check, Finding};
use dipc_client::Error;

pub(super) fn state(facts: &Facts, process: &Process) -> Option<Finding> {
    let state = process.state.as_ref().filter(|state| state.is_unresponsive())?;
    let seen = format!("it {state}");
    let finding = if process.has_answered() {
        Finding::warning(Check::State, seen)
    } else {
        Finding::problem(Check::State, seen).because("meanwhile it answers nobody")
    };
    Some(match (state, state.help()) {
        (ProcessState::Stopped, _) => finding.fix(format!("continue it: kill -CONT {}", facts.pid)),
        (_, Some(help)) => finding.fix(help),
        (_, None) => finding,
    })
}

pub(super) fn answer(process: &Process) -> Option<Finding> {
    let problem = |seen: String| Finding::problem(Check::Answer, seen);
    Some(match &process.answer {
        Answer::NotAsked => return None,
        Answer::Answered { info, after } => {
            let milliseconds = after.as_secs_f64() * 1000.0;
            let what = match info {
                Some(info) => format!("{} in {milliseconds:.1} ms", info.command),
                None => format!("in {milliseconds:.1} ms that it does not know the question"),
            };
            Finding::ok(Check::Answer, format!("it answered {what}"))
        }
        Answer::Failed(error) if error.is_deadline() => {
            let explained = process.state.as_ref().is_some_and(ProcessState::is_unresponsive);
            let finding = problem(error.to_string());
            if explained { finding.fix("see state") } else { busy(process, finding) }
        }
        Answer::Failed(Error::Transport(error @ TransportError::PeerMismatch { .. })) => {
            problem(error.to_string())
                .because(
                    "another process listens on its socket: it inherited it, or planted one; nothing was \
                sent to it",
                )
                .fix("find out what that process is; end it, and start this one again")
        }
        Answer::Failed(Error::Transport(error @ TransportError::Stale { .. })) => problem(error.to_string())
            .because("the part of the runtime that listened has ended, or the file is not its own")
            .fix("start the process again"),
        Answer::Failed(error) => {
            let finding = problem(error.to_string());
            match error.help() {
                Some(help) => finding.fix(help),
                None => finding,
            }
        }
    })
}

/// It runs, lets us in and says nothing.
fn busy(process: &Process, finding: Finding) -> Finding {
    let path = process.endpoint.as_ref().map(|endpoint| &endpoint.path);
    let name = path.ok().and_then(|path| path.file_name());
    let connections =
        process.sockets.iter().filter(|socket| !socket.listens && socket.path.file_name() == name).count();
    match connections {
        0 => finding
            .because(
                "the runtime does not get to its diagnostic port: its machine is overloaded, \
                or its memory is being collected or swapped",
            )
            .fix("try again with a longer --timeout"),
        _ => finding
            .because(format!(
                "the runtime serves one client at a time; {connections} other connection{} to its \
                    socket {} open, and one that says nothing, or a command that takes long, holds \
                    up all others",
                if connections == 1 { "" } else { "s" },
                if connections == 1 { "is" } else { "are" },
            ))
            .fix("end the other client (another dipc, dotnet-trace, dotnet-monitor), or wait for it"),
    }
}
