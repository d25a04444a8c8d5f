//! Messages as the plain text that stands beside the captures.

use dipc_wire::{
    CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, Command, CommandId, DecodeError,
    Environment, Message, ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3, ProviderConfig,
    Request, ResumeRuntime, SessionId, StopTracing, decode_reply,
};
use std::fmt::Write as _;

/// A request, one value a line.
pub(crate) fn request(request: &Request) -> String {
    let mut text = String::new();
    match request {
        Request::ProcessInfo3(_) => text.push_str("ProcessInfo3\n"),
        Request::ResumeRuntime(_) => text.push_str("ResumeRuntime\n"),
        Request::StopTracing(stop) => writeln!(text, "StopTracing\nsession {}", stop.0).unwrap(),
        Request::CollectTracing2(c) => {
            writeln!(text, "CollectTracing2\nbuffer_mb {}\nformat {}", c.buffer_mb, c.format).unwrap();
            writeln!(text, "request_rundown {}", c.request_rundown).unwrap();
            providers(&mut text, &c.providers);
        }
        Request::CollectTracing4(c) => {
            writeln!(text, "CollectTracing4\nbuffer_mb {}\nformat {}", c.buffer_mb, c.format).unwrap();
            writeln!(text, "rundown_keyword {:#x}", c.rundown_keyword).unwrap();
            writeln!(text, "request_stackwalk {}", c.request_stackwalk).unwrap();
            providers(&mut text, &c.providers);
        }
        Request::Unknown(message) => {
            writeln!(text, "unknown: {}\npayload {}", message.header.command, hex(&message.payload)).unwrap();
        }
        other => panic!("no capture has {other:?} so far: say here how it is shown"),
    }
    text
}

fn providers(text: &mut String, providers: &[ProviderConfig]) {
    for provider in providers {
        let ProviderConfig { keywords, level, name, arguments } = provider;
        writeln!(text, "provider {name:?} keywords {keywords:#x} level {level} arguments {arguments:?}")
            .unwrap();
    }
}

/// The reply to the command of this name and what follows it, one value a line; `broken` if it cannot be read.
pub(crate) fn reply(command: &str, read: Result<(Message, &[u8]), DecodeError>) -> String {
    let shown = read.and_then(|(message, rest)| match command {
        "process-info-1" => show::<ProcessInfo1>(&message, |text, info| {
            writeln!(text, "process_id {}\nruntime_cookie {}", info.process_id, info.runtime_cookie).unwrap();
            strings(text, &[("command_line", &info.command_line), ("os", &info.os), ("arch", &info.arch)]);
            Ok(())
        }),
        "process-info-2" => show::<ProcessInfo2>(&message, |text, info| {
            writeln!(text, "process_id {}\nruntime_cookie {}", info.process_id, info.runtime_cookie).unwrap();
            strings(
                text,
                &[
                    ("command_line", &info.command_line),
                    ("os", &info.os),
                    ("arch", &info.arch),
                    ("managed_entrypoint_assembly", &info.managed_entrypoint_assembly),
                    ("clr_version", &info.clr_version),
                ],
            );
            Ok(())
        }),
        "process-info-3" => show::<ProcessInfo3>(&message, |text, info| {
            writeln!(text, "version {}", info.version).unwrap();
            writeln!(text, "process_id {}\nruntime_cookie {}", info.process_id, info.runtime_cookie).unwrap();
            strings(
                text,
                &[
                    ("command_line", &info.command_line),
                    ("os", &info.os),
                    ("arch", &info.arch),
                    ("managed_entrypoint_assembly", &info.managed_entrypoint_assembly),
                    ("clr_version", &info.clr_version),
                    ("runtime_identifier", &info.runtime_identifier),
                ],
            );
            Ok(())
        }),
        "process-environment" => show::<ProcessEnvironment>(&message, |text, announced| {
            writeln!(text, "incoming_bytes {}\nfuture {}", announced.incoming_bytes, announced.future)
                .unwrap();
            assert!(
                rest.len() <= announced.incoming_bytes as usize,
                "more bytes follow than the reply announced"
            );
            for variable in Environment::decode(rest)?.0 {
                writeln!(text, "variable {variable:?}").unwrap();
            }
            Ok(())
        }),
        "resume-runtime" => show::<ResumeRuntime>(&message, |text, hresult| {
            writeln!(text, "hresult {hresult}").unwrap();
            Ok(())
        }),
        "collect-tracing-1" => show::<CollectTracing1>(&message, session),
        "collect-tracing-2" => show::<CollectTracing2>(&message, session),
        "collect-tracing-3" => show::<CollectTracing3>(&message, session),
        "collect-tracing-4" => show::<CollectTracing4>(&message, session),
        "stop-tracing" => show::<StopTracing>(&message, session),
        // Only errors are captured of these, and those look alike whatever the command was.
        "generate-core-dump-3" | "unknown-command" | "wrong-magic" => {
            assert_eq!(message.header.command, CommandId::ERROR);
            show::<ResumeRuntime>(&message, |_, _| unreachable!("an error has no reply"))
        }
        other => panic!("no reading of the reply to {other:?}"),
    });
    shown.unwrap_or_else(|error| format!("broken: {error}\n"))
}

/// Shows a reply: `OK` and what `details` writes, or `Error` and what the error holds.
fn show<C: Command>(
    message: &Message,
    details: impl FnOnce(&mut String, C::Reply) -> Result<(), DecodeError>,
) -> Result<String, DecodeError> {
    match decode_reply::<C>(message)? {
        Ok(reply) => {
            let mut text = String::from("OK\n");
            details(&mut text, reply)?;
            Ok(text)
        }
        Err(error) => {
            let mut text = format!("Error\nhresult {}\n", error.hresult);
            if let Some(detail) = &error.detail {
                writeln!(text, "detail {detail:?}").unwrap();
            }
            if !error.extra.is_empty() {
                writeln!(text, "extra {}", hex(&error.extra)).unwrap();
            }
            Ok(text)
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one of the shapes that `show` takes")]
fn session(text: &mut String, id: SessionId) -> Result<(), DecodeError> {
    writeln!(text, "session {id}").unwrap();
    Ok(())
}

fn strings(text: &mut String, named: &[(&str, &str)]) {
    for (name, value) in named {
        writeln!(text, "{name} {value:?}").unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
