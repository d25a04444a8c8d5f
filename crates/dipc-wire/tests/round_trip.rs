//! Every value that can be sent is received as the same value, in both directions.

use dipc_wire::{
    CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, Command, CommandId, CommandSet,
    DecodeError, Environment, EnvironmentReply, Feed, Format, HResult, Message, MessageReader,
    ProcessEnvironment, ProcessInfo1, ProcessInfo1Reply, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3,
    ProcessInfo3Reply, ProviderConfig, Request, ResumeRuntime, SessionId, StopTracing, decode_reply,
    encode_error, encode_ok,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;

/// Strings that can be sent: any but those with NUL.
fn text() -> impl Strategy<Value = String> + Clone {
    any::<String>().prop_map(|text| text.replace('\0', "�"))
}

fn format() -> impl Strategy<Value = Format> + Clone {
    prop_oneof![Just(Format::NETPERF), Just(Format::NETTRACE), any::<u32>().prop_map(Format)]
}

fn providers() -> impl Strategy<Value = Vec<ProviderConfig>> + Clone {
    let provider = (any::<u64>(), any::<u32>(), text(), text())
        .prop_map(|(keywords, level, name, arguments)| ProviderConfig { keywords, level, name, arguments });
    vec(provider, 0..8)
}

fn request() -> impl Strategy<Value = Request> {
    let collect = (any::<u32>(), format(), any::<u64>(), any::<bool>(), providers());
    let unknown = (0x10..0xf0_u8, any::<u8>(), vec(any::<u8>(), 0..100));
    prop_oneof![
        Just(ProcessInfo1.into()),
        Just(ProcessInfo2.into()),
        Just(ProcessInfo3.into()),
        Just(ProcessEnvironment.into()),
        Just(ResumeRuntime.into()),
        any::<u64>().prop_map(|id| StopTracing(SessionId(id)).into()),
        collect.clone().prop_map(|(buffer_mb, format, _, _, providers)| {
            CollectTracing1 { buffer_mb, format, providers }.into()
        }),
        collect.clone().prop_map(|(buffer_mb, format, _, request_rundown, providers)| {
            CollectTracing2 { buffer_mb, format, request_rundown, providers }.into()
        }),
        collect.clone().prop_map(|(buffer_mb, format, keyword, request_stackwalk, providers)| {
            let request_rundown = keyword % 2 == 1;
            CollectTracing3 { buffer_mb, format, request_rundown, request_stackwalk, providers }.into()
        }),
        collect.prop_map(|(buffer_mb, format, rundown_keyword, request_stackwalk, providers)| {
            CollectTracing4 { buffer_mb, format, rundown_keyword, request_stackwalk, providers }.into()
        }),
        unknown.prop_map(|(set, id, payload)| {
            let command = CommandId { set: CommandSet(set), id };
            Request::Unknown(Message::new(command, payload).unwrap())
        }),
    ]
}

prop_compose! {
    fn info3()(
        version in any::<u32>(),
        process_id in any::<u64>(),
        cookie in any::<u128>(),
        (command_line, os, arch) in (text(), text(), text()),
        (managed_entrypoint_assembly, clr_version, runtime_identifier) in (text(), text(), text()),
    ) -> ProcessInfo3Reply {
        ProcessInfo3Reply {
            version,
            process_id,
            runtime_cookie: uuid::Uuid::from_u128(cookie),
            command_line,
            os,
            arch,
            managed_entrypoint_assembly,
            clr_version,
            // Version 0 does not have it on the wire.
            runtime_identifier: if version == 0 { String::new() } else { runtime_identifier },
        }
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

/// Sends a reply to a `C` and receives it, with other bytes behind it.
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
        let second = ProcessInfo2Reply {
            process_id,
            runtime_cookie,
            command_line,
            os,
            arch,
            managed_entrypoint_assembly,
            clr_version,
        };
        returns::<ProcessInfo2>(&second)?;
        let ProcessInfo2Reply { process_id, runtime_cookie, command_line, os, arch, .. } = second;
        returns::<ProcessInfo1>(&ProcessInfo1Reply { process_id, runtime_cookie, command_line, os, arch })?;
    }

    #[test]
    fn numbers(id in any::<u64>(), code in any::<i32>(), incoming_bytes in any::<u32>(), future in any::<u16>()) {
        returns::<StopTracing>(&SessionId(id))?;
        returns::<CollectTracing4>(&SessionId(id))?;
        returns::<ResumeRuntime>(&HResult(code))?;
        returns::<ProcessEnvironment>(&EnvironmentReply { incoming_bytes, future })?;
    }

    #[test]
    fn environments(variables in vec(text(), 0..30)) {
        let environment = Environment(variables);
        let (reply, bytes) = environment.encode().unwrap();
        prop_assert_eq!(reply.incoming_bytes as usize, bytes.len());
        prop_assert_eq!(Environment::decode(&bytes).unwrap(), environment);
        for cut in 0..bytes.len() {
            prop_assert!(Environment::decode(&bytes[..cut]).unwrap_err().is_incomplete());
        }
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
        size in any::<u16>(), set in 0..6_u8, id in 0..10_u8, payload in vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = b"DOTNET_IPC_V1\0".to_vec();
        bytes.extend(size.to_le_bytes());
        bytes.extend([set, id, 0, 0]);
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

#[test]
fn a_reply_may_have_fields_that_are_not_known_yet() {
    let info = ProcessInfo3Reply { version: 2, clr_version: "11.0.0".into(), ..Default::default() };
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
