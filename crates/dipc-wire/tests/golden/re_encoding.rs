//! Messages decoded and encoded again, as the other side would send them.

use dipc_wire::{
    ApplyStartupHook, AttachProfiler, CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4,
    CollectTracing5, CollectTracing6, Command, CommandId, Decode, DisablePerfMap, EnablePerfMap, Encode,
    Environment, EnvironmentReply, FilteredProviderConfig, GenerateCoreDump1, GenerateCoreDump2,
    GenerateCoreDump3, HResult, Items, Message, ProcessEnvironment, ProcessInfo1, ProcessInfo1Reply,
    ProcessInfo2, ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply, ProviderConfig, ResumeRuntime,
    SessionId, SetEnvironmentVariable, StartupProfiler, StopTracing, StreamingSession, StreamingSession6,
    TracepointSet, UserEventsProviderConfig, UserEventsSession, Utf16, decode_reply_as, encode_error,
    encode_ok, encode_server_error,
};

type Ids<'a> = Items<'a, u32>;
type Providers<'a> = Items<'a, ProviderConfig<Utf16<'a>>>;
type Filtered<'a> = Items<'a, FilteredProviderConfig<Utf16<'a>, Ids<'a>>>;
type Tracepoints<'a> = Items<'a, TracepointSet<Utf16<'a>, Ids<'a>>>;
type UserEvents<'a> =
    UserEventsSession<Items<'a, UserEventsProviderConfig<Utf16<'a>, Ids<'a>, Tracepoints<'a>>>>;

/// Returns the bytes of a request that was decoded without copying.
pub(crate) fn request(message: &Message) -> Vec<u8> {
    match message.header.command {
        CommandId::GENERATE_CORE_DUMP_1 => borrowed::<GenerateCoreDump1<Utf16<'_>>>(message),
        CommandId::GENERATE_CORE_DUMP_2 => borrowed::<GenerateCoreDump2<Utf16<'_>>>(message),
        CommandId::GENERATE_CORE_DUMP_3 => borrowed::<GenerateCoreDump3<Utf16<'_>>>(message),
        CommandId::STOP_TRACING => borrowed::<StopTracing>(message),
        CommandId::COLLECT_TRACING_1 => borrowed::<CollectTracing1<Providers<'_>>>(message),
        CommandId::COLLECT_TRACING_2 => borrowed::<CollectTracing2<Providers<'_>>>(message),
        CommandId::COLLECT_TRACING_3 => borrowed::<CollectTracing3<Providers<'_>>>(message),
        CommandId::COLLECT_TRACING_4 => borrowed::<CollectTracing4<Providers<'_>>>(message),
        CommandId::COLLECT_TRACING_5 => {
            borrowed::<CollectTracing5<StreamingSession<Filtered<'_>>, UserEvents<'_>>>(message)
        }
        CommandId::COLLECT_TRACING_6 => {
            borrowed::<CollectTracing6<StreamingSession6<Filtered<'_>>, UserEvents<'_>>>(message)
        }
        CommandId::ATTACH_PROFILER => borrowed::<AttachProfiler<Utf16<'_>, &[u8]>>(message),
        CommandId::STARTUP_PROFILER => borrowed::<StartupProfiler<Utf16<'_>>>(message),
        CommandId::PROCESS_INFO_1 => borrowed::<ProcessInfo1>(message),
        CommandId::RESUME_RUNTIME => borrowed::<ResumeRuntime>(message),
        CommandId::PROCESS_ENVIRONMENT => borrowed::<ProcessEnvironment>(message),
        CommandId::SET_ENVIRONMENT_VARIABLE => {
            borrowed::<SetEnvironmentVariable<Utf16<'_>, Utf16<'_>>>(message)
        }
        CommandId::PROCESS_INFO_2 => borrowed::<ProcessInfo2>(message),
        CommandId::ENABLE_PERF_MAP => borrowed::<EnablePerfMap>(message),
        CommandId::DISABLE_PERF_MAP => borrowed::<DisablePerfMap>(message),
        CommandId::APPLY_STARTUP_HOOK => borrowed::<ApplyStartupHook<Utf16<'_>>>(message),
        CommandId::PROCESS_INFO_3 => borrowed::<ProcessInfo3>(message),
        other => panic!("no request is {other}"),
    }
}

fn borrowed<'a, C: Command + Decode<'a>>(message: &'a Message) -> Vec<u8> {
    assert_eq!(message.header.command, C::ID);
    message.decode::<C>().unwrap().to_bytes().unwrap()
}

/// Returns the bytes of the reply to the command of this name, and of the data after it.
pub(crate) fn reply(command: &str, message: &Message, rest: &[u8]) -> Vec<u8> {
    match command {
        "process-info-1" => again::<ProcessInfo1Reply<Utf16<'_>>>(message),
        "process-info-2" => again::<ProcessInfo2Reply<Utf16<'_>>>(message),
        "process-info-3" => again::<ProcessInfo3Reply<Utf16<'_>>>(message),
        "process-environment" => {
            let environment = Environment::<Items<'_, Utf16<'_>>>::from_bytes(rest).unwrap();
            let (announced, block) = environment.to_bytes().unwrap();
            assert_eq!(decode_reply_as(message).unwrap(), Ok(announced));
            [again::<EnvironmentReply>(message), block].concat()
        }
        "stop-tracing" => again::<SessionId>(message),
        collect if collect.starts_with("collect-tracing-") => again::<SessionId>(message),
        _ => again::<HResult>(message),
    }
}

fn again<'a, R: Decode<'a> + Encode>(message: &'a Message) -> Vec<u8> {
    match decode_reply_as::<R>(message).unwrap() {
        Ok(reply) => encode_ok(&reply).unwrap(),
        Err(error) if message.header.size == 24 => encode_error(error.hresult),
        Err(error) => encode_server_error(&error).unwrap(),
    }
}
