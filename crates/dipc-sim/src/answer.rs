//! The answers of a runtime, one file per command set.

mod dump;
mod event_pipe;
mod process;
mod profiler;
mod stream;
mod user_events;

use crate::client::{Client, Step};
use crate::fault::Fault;
use crate::identity::Identity;
use crate::server::Server;
use crate::version::Quirk;
use dipc_transport::Deadline;
use dipc_wire::{CommandId, CommandSet, DecodeError, HResult, Message, Request, SessionId, encode_error};
use std::ops::ControlFlow;
use std::thread::Scope;

/// Answers the first message of a registered connection on a thread of its own, or, in a serial runtime,
/// before this returns. A session's stream has its own thread in any case.
pub(crate) fn answer_in_turn<'scope>(
    server: &'scope Server,
    scope: &'scope Scope<'scope, '_>,
    id: u64,
    client: Client<'scope>,
    received: Result<Message, DecodeError>,
) {
    let streams = received.as_ref().is_ok_and(|message| {
        let command = message.header.command;
        command.set == CommandSet::EVENT_PIPE && command != CommandId::STOP_TRACING
    });
    if server.config.serial && !streams {
        answer(client, received);
        server.unregister(id);
    } else {
        server.spawn(scope, id, move || answer(client, received));
    }
}

/// Answers the first message of a connection, and serves the client until it leaves. Errors of the connection
/// only end it: they cannot be reported to anyone.
pub(crate) fn answer(mut client: Client<'_>, received: Result<Message, DecodeError>) {
    let _ = match received {
        Ok(message) => answer_message(&mut client, &message),
        Err(DecodeError::WrongMagic { .. }) => client.refuse(HResult::UNKNOWN_MAGIC, false),
        Err(_) => client.refuse(HResult::BAD_ENCODING, false),
    };
}

fn answer_message(client: &mut Client<'_>, message: &Message) -> Step {
    let command = message.header.command;
    client.select_faults(command);
    let request = Request::decode(message);
    let recorded = request.as_ref().ok().cloned().unwrap_or(Request::Unknown(message.clone()));
    client.server().record_request(recorded);
    if apply_early_faults(client, command)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    if let Some(refusal) = client.config().version.refusal(command) {
        let stays_open = refusal == HResult::UNKNOWN_COMMAND
            && command.set == CommandSet::PROFILER
            && client.has(Quirk::StaysOpenAfterError);
        return client.refuse(refusal, stays_open);
    }
    match request {
        Ok(request) => answer_request(client, &request),
        Err(_) => answer_undecodable(client, message),
    }
}

/// Applies the faults that precede the answer or replace it.
fn apply_early_faults(client: &mut Client<'_>, command: CommandId) -> Step {
    for fault in client.faults().to_vec() {
        let step = match fault {
            Fault::NeverAnswer => client.wait(Deadline::never())?,
            Fault::NeverStop if command == CommandId::STOP_TRACING => client.wait(Deadline::never())?,
            Fault::AnswerLate(delay) => client.wait(Deadline::after(delay))?,
            Fault::Error(hresult) => {
                client.send(&encode_error(hresult))?;
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        if step.is_break() {
            return Ok(step);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Answers a request that the version supports.
fn answer_request(client: &mut Client<'_>, request: &Request) -> Step {
    let command = request.command();
    match request {
        Request::ProcessInfo1(_) => client.answer_process_info(Identity::reply_1),
        Request::ProcessInfo2(_) => client.answer_process_info(Identity::reply_2),
        Request::ProcessInfo3(_) => client.answer_process_info(Identity::reply_3),
        Request::ProcessEnvironment(_) => client.answer_process_environment(),
        Request::SetEnvironmentVariable(request) => client.set_environment_variable(request),
        Request::EnablePerfMap(request) => client.enable_perf_map(request.kind),
        Request::DisablePerfMap(_) => client.disable_perf_map(),
        Request::ApplyStartupHook(request) => client.apply_startup_hook(request),
        Request::ResumeRuntime(_) => client.resume_runtime(),
        Request::AttachProfiler(request) => client.attach_profiler(request),
        Request::StartupProfiler(request) => client.startup_profiler(request),
        Request::GenerateCoreDump1(c) => client.generate_core_dump(command, &c.path, c.dump_type, c.flags),
        Request::GenerateCoreDump2(c) => client.generate_core_dump(command, &c.path, c.dump_type, c.flags),
        Request::GenerateCoreDump3(c) => client.generate_core_dump(command, &c.path, c.dump_type, c.flags),
        Request::StopTracing(request) => client.stop_session(request.session),
        Request::CollectTracing1(_)
        | Request::CollectTracing2(_)
        | Request::CollectTracing3(_)
        | Request::CollectTracing4(_)
        | Request::CollectTracing5(_)
        | Request::CollectTracing6(_) => client.start_session(request),
        _ => client.refuse(HResult::UNKNOWN_COMMAND, false),
    }
}

/// Answers a request with a payload that cannot be decoded.
fn answer_undecodable(client: &mut Client<'_>, message: &Message) -> Step {
    match message.header.command {
        CommandId::STOP_TRACING => {
            // Runtimes do not check the length of the payload.
            let mut id = [0; 8];
            id.iter_mut().zip(&message.payload).for_each(|(to, from)| *to = *from);
            client.reply_ok(&SessionId(u64::from_le_bytes(id)))
        }
        CommandId::STARTUP_PROFILER => client.reply_result(HResult::OK),
        CommandId { set: CommandSet::EVENT_PIPE, .. } => client.refuse_bad_session(),
        CommandId { set: CommandSet::DUMP | CommandSet::PROCESS, .. }
            if client.has(Quirk::DiesOfBadPayload) =>
        {
            Ok(client.die())
        }
        _ => client.refuse(HResult::BAD_ENCODING, false),
    }
}
