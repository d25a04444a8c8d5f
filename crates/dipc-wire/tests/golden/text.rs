//! Messages as the plain text next to the captures.

use dipc_wire::{
    CollectTracing6, Command, DecodeError, Environment, Message, ProcessEnvironment, ProcessInfo1,
    ProcessInfo2, ProcessInfo3, ProviderConfig, Request, ResumeRuntime, StopTracing, StreamingSession6,
    decode_reply,
};
use std::fmt::Write as _;

/// Prints a request, one value a line.
pub(crate) fn request(request: &Request) -> String {
    let mut text = request.command().to_string();
    text.push('\n');
    match request {
        Request::ProcessInfo3(_)
        | Request::ProcessEnvironment(_)
        | Request::ResumeRuntime(_)
        | Request::DisablePerfMap(_) => {}
        Request::StopTracing(stop) => writeln!(text, "session {}", stop.session).unwrap(),
        Request::CollectTracing2(c) => {
            writeln!(text, "buffer_mb {}\nformat {}", c.buffer_mb, c.format).unwrap();
            writeln!(text, "request_rundown {}", c.request_rundown).unwrap();
            c.providers.iter().for_each(|config| provider(&mut text, config));
        }
        Request::CollectTracing4(c) => {
            writeln!(text, "buffer_mb {}\nformat {}", c.buffer_mb, c.format).unwrap();
            writeln!(text, "rundown_keyword {:#x}", c.rundown_keyword).unwrap();
            writeln!(text, "request_stackwalk {}", c.request_stackwalk).unwrap();
            c.providers.iter().for_each(|config| provider(&mut text, config));
        }
        Request::CollectTracing6(CollectTracing6::Streaming(StreamingSession6 {
            session: s,
            buffer_mode,
        })) => {
            writeln!(text, "session streaming\nbuffer_mb {}\nformat {}", s.buffer_mb, s.format).unwrap();
            writeln!(text, "rundown_keyword {:#x}", s.rundown_keyword).unwrap();
            writeln!(text, "request_stackwalk {}", s.request_stackwalk).unwrap();
            for config in &s.providers {
                provider(&mut text, &config.provider);
                writeln!(text, "filter enable {} ids {:?}", config.filter.enable, config.filter.ids).unwrap();
            }
            writeln!(text, "buffer_mode {buffer_mode}").unwrap();
        }
        Request::SetEnvironmentVariable(set) => {
            strings(&mut text, &[("name", &set.name)]);
            match &set.value {
                None => text.push_str("value none\n"),
                Some(value) => strings(&mut text, &[("value", value)]),
            }
        }
        Request::EnablePerfMap(enable) => writeln!(text, "kind {}", enable.kind).unwrap(),
        Request::AttachProfiler(attach) => {
            writeln!(text, "timeout_ms {}\nprofiler {}", attach.timeout_ms, attach.profiler).unwrap();
            strings(&mut text, &[("path", &attach.path)]);
            writeln!(text, "client_data {}", hex(&attach.client_data)).unwrap();
        }
        Request::StartupProfiler(startup) => {
            writeln!(text, "profiler {}", startup.profiler).unwrap();
            strings(&mut text, &[("path", &startup.path)]);
        }
        Request::GenerateCoreDump3(dump) => {
            strings(&mut text, &[("path", &dump.path)]);
            writeln!(text, "dump_type {}\nflags {}", dump.dump_type, dump.flags.0).unwrap();
        }
        other => panic!("no capture has {other:?} so far: say here how it is shown"),
    }
    text
}

fn provider(text: &mut String, config: &ProviderConfig) {
    let ProviderConfig { keywords, level, name, arguments } = config;
    writeln!(text, "provider {name:?} keywords {keywords:#x} level {} arguments {arguments:?}", level.0)
        .unwrap();
}

/// Prints the reply to the command of this name and the data after it, one value a line; `broken` if it
/// cannot be decoded.
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
            for variable in <Environment>::from_bytes(rest)?.0 {
                writeln!(text, "variable {variable:?}").unwrap();
            }
            Ok(())
        }),
        "stop-tracing" => show::<StopTracing>(&message, session),
        // Only a session id can follow a CollectTracing, and only an HRESULT the others.
        collect if collect.starts_with("collect-tracing-") => show::<StopTracing>(&message, session),
        _ => show::<ResumeRuntime>(&message, |text, hresult| {
            writeln!(text, "hresult {hresult}").unwrap();
            Ok(())
        }),
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
fn session(text: &mut String, id: dipc_wire::SessionId) -> Result<(), DecodeError> {
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
