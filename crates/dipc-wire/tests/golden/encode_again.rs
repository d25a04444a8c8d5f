//! Replies decoded and encoded again, as a server would send them.

use dipc_wire::{
    Command, CommandId, Environment, Message, Payload, ProcessEnvironment, ProcessInfo1, ProcessInfo2,
    ProcessInfo3, ResumeRuntime, StopTracing, decode_reply, encode_error, encode_ok,
};

/// The bytes of the reply to the command of this name, and of what follows it.
pub(crate) fn reply(command: &str, message: &Message, rest: &[u8]) -> Vec<u8> {
    match command {
        "process-info-1" => again::<ProcessInfo1>(message),
        "process-info-2" => again::<ProcessInfo2>(message),
        "process-info-3" => again::<ProcessInfo3>(message),
        "process-environment" => {
            let environment = Environment::decode(rest).unwrap();
            let (announced, block) = environment.encode().unwrap();
            assert_eq!(decode_reply::<ProcessEnvironment>(message).unwrap(), Ok(announced));
            [again::<ProcessEnvironment>(message), block].concat()
        }
        "resume-runtime" => again::<ResumeRuntime>(message),
        // The replies to the CollectTracing commands are alike: a session id or an error.
        _ => again::<StopTracing>(message),
    }
}

fn again<C: Command>(message: &Message) -> Vec<u8> {
    match decode_reply::<C>(message).unwrap() {
        Ok(reply) => encode_ok(&reply).unwrap(),
        Err(error) if message.header.size == 24 => encode_error(error.hresult),
        Err(error) => {
            let mut encoder = dipc_wire::Encoder::new();
            error.encode(&mut encoder).unwrap();
            Message::new(CommandId::ERROR, encoder.into_bytes()).unwrap().to_bytes().unwrap()
        }
    }
}
