//! Any bytes, whole and in pieces, are the same messages or the same failure; what decodes encodes to what decodes to the same.
//!
//! The last byte says how the rest is cut into pieces.

#![no_main]

use dipc_wire::{
    Command, CommandId, Environment, Feed, Message, MessageReader, Payload, ProcessEnvironment, ProcessInfo1,
    ProcessInfo2, ProcessInfo3, Request, ResumeRuntime, ServerError, StopTracing, decode_reply, encode_ok,
};
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| {
    let Some((&seed, bytes)) = data.split_last() else { return };
    let (messages, failed) = read(bytes, |left| left);
    let mut state = u32::from(seed);
    let in_pieces = read(bytes, |left| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        left.min((state >> 16) as usize % 40)
    });
    assert_eq!((&messages, failed), (&in_pieces.0, in_pieces.1));

    for message in &messages {
        request(message);
        reply::<ProcessInfo1>(message);
        reply::<ProcessInfo2>(message);
        reply::<ProcessInfo3>(message);
        reply::<ProcessEnvironment>(message);
        reply::<ResumeRuntime>(message);
        reply::<StopTracing>(message);
    }
    if let Ok(environment) = Environment::decode(bytes) {
        let (reply, again) = environment.encode().expect("what was received can be sent");
        assert_eq!(reply.incoming_bytes as usize, again.len());
        assert_eq!(Environment::decode(&again), Ok(environment));
    }
});

/// The messages in `bytes`, fed in pieces whose lengths `piece` chooses from what is left, and whether they ended in an error.
fn read(bytes: &[u8], mut piece: impl FnMut(usize) -> usize) -> (Vec<Message>, bool) {
    let mut reader = MessageReader::new();
    let mut messages = Vec::new();
    let mut rest = bytes;
    loop {
        let fed = &rest[..piece(rest.len())];
        match reader.feed(fed) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return (messages, true);
            }
            Ok(Feed::NeedMore(missing)) => {
                assert!(missing > 0 && missing <= 65_535);
                rest = &rest[fed.len()..];
                if rest.is_empty() {
                    return (messages, false);
                }
            }
            Ok(Feed::Message { message, used }) => {
                assert!(used <= fed.len());
                rest = &rest[used..];
                messages.push(message);
            }
        }
    }
}

/// The one message in `bytes`.
fn read_one(bytes: &[u8]) -> Message {
    match MessageReader::new().feed(bytes) {
        Ok(Feed::Message { message, used }) if used == bytes.len() => message,
        other => panic!("what was encoded is not one message: {other:?}"),
    }
}

fn request(message: &Message) {
    assert_eq!(&read_one(&message.to_bytes().expect("a received message fits")), message);
    if let Ok(request) = Request::decode(message) {
        let again = read_one(&request.to_bytes().expect("a received request can be sent"));
        assert_eq!(again.header.command, message.header.command);
        assert_eq!(Request::decode(&again), Ok(request));
    }
}

/// Reads the message as the reply to a `C`, under OK and under Error too, so that every payload is tried as each.
fn reply<C: Command>(message: &Message)
where
    C::Reply: Debug + PartialEq,
{
    let _ = decode_reply::<C>(message);
    let mut ok = message.clone();
    ok.header.command = CommandId::OK;
    if let Ok(Ok(reply)) = decode_reply::<C>(&ok) {
        // A lone surrogate takes one unit and its replacement character one too: what was received always fits.
        let again = read_one(&encode_ok(&reply).expect("a received reply can be sent"));
        assert_eq!(decode_reply::<C>(&again), Ok(Ok(reply)));
    }
    if let Ok(error) = ServerError::decode(&mut message.decoder()) {
        let mut encoder = dipc_wire::Encoder::new();
        error.encode(&mut encoder).expect("a received error can be sent");
        let bytes = encoder.into_bytes();
        assert_eq!(ServerError::decode(&mut dipc_wire::Decoder::new(&bytes)), Ok(error));
    }
}
