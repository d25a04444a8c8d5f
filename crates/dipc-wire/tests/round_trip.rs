//! Every value that can be sent is received as the same value, in both directions.

use dipc_wire::{
    Advertise, ApplyStartupHook, AttachProfiler, BufferMode, CollectTracing1, CollectTracing2,
    CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6, Command, CommandId, CommandSet,
    DecodeError, DisablePerfMap, DumpFlags, DumpType, EnablePerfMap, Environment, EnvironmentReply,
    EventFilter, Feed, FilteredProviderConfig, Format, GenerateCoreDump1, GenerateCoreDump2,
    GenerateCoreDump3, HResult, Keywords, Level, Message, MessageReader, PerfMapType, ProcessEnvironment,
    ProcessInfo1, ProcessInfo1Reply, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply,
    ProviderConfig, Request, ResumeRuntime, ServerError, SessionId, SetEnvironmentVariable, StartupProfiler,
    StopTracing, StreamingSession, StreamingSession6, TracepointConfig, TracepointSet,
    UserEventsProviderConfig, UserEventsSession, decode_reply, encode_error, encode_ok, encode_server_error,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::fmt::Debug;
use uuid::Uuid;

/// Strings that can be sent: all without NUL.
fn text() -> impl Strategy<Value = String> + Clone {
    any::<String>().prop_map(|text| text.replace('\0', "\u{fffd}"))
}

fn guid() -> impl Strategy<Value = Uuid> + Clone {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn keywords() -> impl Strategy<Value = Keywords> + Clone {
    any::<u64>().prop_map(Keywords)
}

fn ids() -> impl Strategy<Value = Vec<u32>> + Clone {
    vec(any::<u32>(), 0..5)
}

prop_compose! {
    fn provider()(
        keywords in keywords(), level in any::<u32>().prop_map(Level), name in text(), arguments in text(),
    ) -> ProviderConfig {
        ProviderConfig { keywords, level, name, arguments }
    }
}

prop_compose! {
    fn filtered()(provider in provider(), enable in any::<bool>(), ids in ids()) -> FilteredProviderConfig {
        FilteredProviderConfig { provider, filter: EventFilter { enable, ids } }
    }
}

prop_compose! {
    fn traced()(
        filtered in filtered(), default_tracepoint in text(), sets in vec((text(), ids()), 0..4),
    ) -> UserEventsProviderConfig {
        let FilteredProviderConfig { provider, filter } = filtered;
        let sets = sets.into_iter().map(|(tracepoint, ids)| TracepointSet { tracepoint, ids }).collect();
        UserEventsProviderConfig { provider, filter, tracepoints: TracepointConfig { default_tracepoint, sets } }
    }
}

prop_compose! {
    fn streaming()(
        buffer_mb in any::<u32>(),
        format in any::<u32>().prop_map(Format),
        rundown_keyword in keywords(),
        request_stackwalk in any::<bool>(),
        providers in vec(filtered(), 0..6),
    ) -> StreamingSession {
        StreamingSession { buffer_mb, format, rundown_keyword, request_stackwalk, providers }
    }
}

prop_compose! {
    fn user_events()(
        rundown_keyword in keywords(), providers in vec(traced(), 0..6),
    ) -> UserEventsSession {
        UserEventsSession { rundown_keyword, providers }
    }
}

fn collect() -> impl Strategy<Value = Request> {
    let limits = || (any::<u32>(), any::<u32>().prop_map(Format), vec(provider(), 0..8));
    let limits = || (limits(), keywords(), any::<bool>());
    prop_oneof![
        limits().prop_map(|((buffer_mb, format, providers), ..)| {
            CollectTracing1 { buffer_mb, format, providers }.into()
        }),
        limits().prop_map(|((buffer_mb, format, providers), _, request_rundown)| {
            CollectTracing2 { buffer_mb, format, request_rundown, providers }.into()
        }),
        limits().prop_map(|((buffer_mb, format, providers), keyword, request_rundown)| {
            let request_stackwalk = keyword.0 % 2 == 1;
            CollectTracing3 { buffer_mb, format, request_rundown, request_stackwalk, providers }.into()
        }),
        limits().prop_map(|((buffer_mb, format, providers), rundown_keyword, request_stackwalk)| {
            CollectTracing4 { buffer_mb, format, rundown_keyword, request_stackwalk, providers }.into()
        }),
        streaming().prop_map(|session| CollectTracing5::Streaming(session).into()),
        user_events().prop_map(|session| CollectTracing5::UserEvents(session).into()),
        (streaming(), any::<u32>()).prop_map(|(session, mode)| {
            CollectTracing6::Streaming(StreamingSession6 { session, buffer_mode: BufferMode(mode) }).into()
        }),
        user_events().prop_map(|session| CollectTracing6::UserEvents(session).into()),
        any::<u64>().prop_map(|id| StopTracing { session: SessionId(id) }.into()),
    ]
}

fn dump() -> impl Strategy<Value = Request> {
    (0..3, text(), any::<u32>().prop_map(DumpType), any::<u32>().prop_map(DumpFlags)).prop_map(
        |(form, path, dump_type, flags)| match form {
            0 => GenerateCoreDump1 { path, dump_type, flags }.into(),
            1 => GenerateCoreDump2 { path, dump_type, flags }.into(),
            _ => GenerateCoreDump3 { path, dump_type, flags }.into(),
        },
    )
}

fn profiler() -> impl Strategy<Value = Request> {
    prop_oneof![
        (guid(), text()).prop_map(|(profiler, path)| StartupProfiler { profiler, path }.into()),
        (any::<u32>(), guid(), text(), vec(any::<u8>(), 0..50)).prop_map(
            |(timeout_ms, profiler, path, client_data)| {
                AttachProfiler { timeout_ms, profiler, path, client_data }.into()
            }
        ),
    ]
}

fn process() -> impl Strategy<Value = Request> {
    prop_oneof![
        Just(ProcessInfo1.into()),
        Just(ProcessInfo2.into()),
        Just(ProcessInfo3.into()),
        Just(ProcessEnvironment.into()),
        Just(ResumeRuntime.into()),
        Just(DisablePerfMap.into()),
        any::<u32>().prop_map(|kind| EnablePerfMap { kind: PerfMapType(kind) }.into()),
        text().prop_map(|path| ApplyStartupHook { path }.into()),
        (text(), option::of(text())).prop_map(|(name, value)| SetEnvironmentVariable { name, value }.into()),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let unknown = (0x10..0xf0_u8, any::<u8>(), vec(any::<u8>(), 0..100));
    let unknown = unknown.prop_map(|(set, id, payload)| {
        let command = CommandId { set: CommandSet(set), id };
        Request::Unknown(Message::new(command, payload).unwrap())
    });
    prop_oneof![4 => collect(), 1 => dump(), 1 => profiler(), 2 => process(), 1 => unknown]
}

prop_compose! {
    fn info3()(
        version in any::<u32>(),
        process_id in any::<u64>(),
        cookie in any::<u128>(),
        (command_line, os, arch) in (text(), text(), text()),
        (managed_entrypoint_assembly, clr_version, runtime_identifier) in (text(), text(), text()),
    ) -> ProcessInfo3Reply {
        let mut first = ProcessInfo1Reply::new(process_id, Uuid::from_u128(cookie));
        (first.command_line, first.os, first.arch) = (command_line, os, arch);
        let second = ProcessInfo2Reply::new(first, managed_entrypoint_assembly, clr_version);
        // Version 0 does not have it on the wire.
        let runtime_identifier = if version == 0 { String::new() } else { runtime_identifier };
        let mut info = ProcessInfo3Reply::new(second, runtime_identifier);
        info.version = version;
        info
    }
}

/// Feeds the bytes in pieces of these lengths, then the rest, and gives the one message in them.
fn read_in_pieces(bytes: &[u8], lengths: &[usize]) -> Result<(Message, usize), DecodeError> {
    let mut reader = MessageReader::new();
    let mut done = 0;
    let mut lengths = lengths.iter();
    loop {
        let length = lengths.next().copied().unwrap_or(bytes.len());
        let piece = &bytes[done..bytes.len().min(done + length)];
        match reader.feed(piece)? {
            Feed::NeedMore(missing) => {
                done += piece.len();
                assert!(missing > 0 && done < bytes.len());
            }
            Feed::Message { message, used } => return Ok((message, done + used)),
        }
    }
}

/// Sends a reply to a `C` and receives it, followed by other bytes.
fn returns<C: Command>(reply: &C::Reply) -> Result<(), TestCaseError>
where
    C::Reply: Debug + Clone + PartialEq,
{
    let bytes = encode_ok(reply).unwrap();
    let followed = [bytes.as_slice(), b"Nettrace"].concat();
    let (message, used) = read_in_pieces(&followed, &[]).unwrap();
    prop_assert_eq!(used, bytes.len());
    prop_assert_eq!(decode_reply::<C>(&message).unwrap(), Ok(reply.clone()));
    Ok(())
}

mod random {
    use super::*;

    proptest! {
        #[test]
        fn requests(request in request(), lengths in vec(0..40_usize, 0..20)) {
            let bytes = request.to_bytes().unwrap();
            let (message, used) = read_in_pieces(&bytes, &lengths).unwrap();
            prop_assert_eq!(used, bytes.len());
            prop_assert_eq!(message.header.command, request.command());
            prop_assert_eq!(Request::decode(&message).unwrap(), request);
        }

        #[test]
        fn process_information(info in info3()) {
            returns::<ProcessInfo3>(&info)?;
            let ProcessInfo3Reply {
                process_id, runtime_cookie, command_line, os, arch, managed_entrypoint_assembly, clr_version, ..
            } = info;
            let mut first = ProcessInfo1Reply::new(process_id, runtime_cookie);
            (first.command_line, first.os, first.arch) = (command_line, os, arch);
            returns::<ProcessInfo1>(&first)?;
            returns::<ProcessInfo2>(&ProcessInfo2Reply::new(first, managed_entrypoint_assembly, clr_version))?;
        }

        #[test]
        fn numbers(id in any::<u64>(), code in any::<i32>(), incoming_bytes in any::<u32>(), future in any::<u16>()) {
            returns::<StopTracing>(&SessionId(id))?;
            returns::<CollectTracing4>(&SessionId(id))?;
            returns::<ResumeRuntime>(&HResult(code))?;
            let mut environment = EnvironmentReply::new(incoming_bytes);
            environment.future = future;
            returns::<ProcessEnvironment>(&environment)?;
        }

        #[test]
        fn environments(variables in vec(text(), 0..30)) {
            let environment = Environment(variables);
            let (reply, bytes) = environment.to_bytes().unwrap();
            prop_assert_eq!(reply.incoming_bytes as usize, bytes.len());
            prop_assert_eq!(<Environment>::from_bytes(&bytes).unwrap(), environment);
            for cut in 0..bytes.len() {
                prop_assert!(<Environment>::from_bytes(&bytes[..cut]).unwrap_err().is_incomplete());
            }
        }

        #[test]
        fn advertisements(cookie in guid(), process_id in any::<u64>(), future in any::<u16>()) {
            let mut advertise = Advertise::new(cookie, process_id);
            advertise.future = future;
            let bytes = advertise.to_bytes().unwrap();
            prop_assert_eq!(bytes.len(), Advertise::LEN);
            prop_assert_eq!(Advertise::from_bytes(&bytes), Ok(advertise));
        }

        #[test]
        fn errors_with_words(code in any::<i32>(), words in text(), extra in vec(any::<u8>(), 0..20)) {
            let detail = Some(words).filter(|words| !words.is_empty());
            // Without a detail, bytes that look like a string would be read as one.
            let extra = if detail.is_some() { extra } else { Vec::new() };
            let mut error = ServerError::new(HResult(code)).with_extra(extra);
            error.detail = detail;
            let (message, _) = read_in_pieces(&encode_server_error(&error).unwrap(), &[]).unwrap();
            prop_assert_eq!(decode_reply::<GenerateCoreDump3>(&message).unwrap(), Err(error));
        }

        #[test]
        fn errors(code in any::<i32>()) {
            let bytes = encode_error(HResult(code));
            prop_assert_eq!(bytes.len(), 24);
            let (message, _) = read_in_pieces(&bytes, &[]).unwrap();
            let error = decode_reply::<ProcessInfo1>(&message).unwrap().unwrap_err();
            prop_assert_eq!(error.hresult, HResult(code));
            prop_assert_eq!(error.detail, None);
            prop_assert_eq!(error.extra, [0; 0]);
        }

        #[test]
        fn anything_after_a_good_beginning_is_a_message_or_an_error(
            command in proptest::sample::select(CommandId::NAMED),
            size in any::<u16>(),
            payload in vec(prop_oneof![Just(0), 0..4_u8, any::<u8>()], 0..200),
        ) {
            let mut bytes = b"DOTNET_IPC_V1\0".to_vec();
            bytes.extend(size.to_le_bytes());
            bytes.extend([command.set.0, command.id, 0, 0]);
            bytes.extend(&payload);
            match MessageReader::new().feed(&bytes) {
                Err(_) => prop_assert!(size < 20),
                Ok(Feed::NeedMore(missing)) => prop_assert_eq!(missing, usize::from(size) - bytes.len()),
                Ok(Feed::Message { message, used }) => {
                    prop_assert_eq!(used, usize::from(size));
                    if let Ok(request) = Request::decode(&message) {
                        let again = request.to_bytes().unwrap();
                        let (message, _) = read_in_pieces(&again, &[]).unwrap();
                        prop_assert_eq!(Request::decode(&message).unwrap(), request);
                    }
                }
            }
        }
    }
}

#[test]
fn a_reply_may_have_fields_that_are_not_known_yet() {
    let mut info = ProcessInfo3Reply::<String>::default();
    (info.version, info.clr_version) = (2, "11.0.0".into());
    let mut message = match MessageReader::new().feed(&encode_ok(&info).unwrap()) {
        Ok(Feed::Message { message, .. }) => message,
        other => panic!("{other:?}"),
    };
    message.payload.extend(b"a later field");
    assert_eq!(decode_reply::<ProcessInfo3>(&message).unwrap(), Ok(info));
}

#[test]
fn a_request_is_not_a_reply() {
    let message = Message::new(CommandId::PROCESS_INFO_1, Vec::new()).unwrap();
    let error = decode_reply::<ProcessInfo1>(&message).unwrap_err();
    assert_eq!(error, DecodeError::NotAReply { found: CommandId::PROCESS_INFO_1 });
}

#[test]
fn an_error_reply_with_success_in_it_is_still_an_error() {
    let message = Message::new(CommandId::ERROR, vec![0; 4]).unwrap();
    let error = decode_reply::<ResumeRuntime>(&message).unwrap().unwrap_err();
    assert_eq!(error.hresult, HResult::OK);
}

#[test]
fn an_error_reply_of_the_documented_eight_bytes_is_read_too() {
    let message = Message::new(CommandId::ERROR, [0x8013_1384_u32.to_le_bytes(), [0; 4]].concat()).unwrap();
    let error = decode_reply::<ResumeRuntime>(&message).unwrap().unwrap_err();
    assert_eq!(error.hresult, HResult::BAD_ENCODING);
    assert_eq!((error.detail, error.extra), (None, vec![0; 4]));
    assert_eq!(error.hresult.to_string(), "0x80131384 (BAD_ENCODING)");
}
