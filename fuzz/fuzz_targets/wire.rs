//! Any bytes, whole and in pieces, are the same messages or the same failure; what decodes encodes to what decodes to the same, and what was
//! decoded in place encodes to the same bytes.
//!
//! The last byte says how the rest is cut into pieces.

#![no_main]

use dipc_wire::{
    Advertise, CollectTracing2, CollectTracing5, Command, CommandId, Decode, Encode, Encoder, EndpointName,
    Environment, Feed, FilteredProviderConfig, GenerateCoreDump3, Items, Message, MessageReader, PortConfig,
    ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3, ProcessInfo3Reply, ProviderConfig, Request,
    ResumeRuntime, ServerError, SetEnvironmentVariable, StopTracing, StreamingSession, TracepointSet,
    UserEventsProviderConfig, UserEventsSession, Utf16, decode_reply, encode_ok, encode_server_error,
    parse_port_configs,
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
    if let Ok(environment) = <Environment>::from_bytes(bytes) {
        let (reply, again) = environment.to_bytes().expect("what was received can be sent");
        assert_eq!(reply.incoming_bytes as usize, again.len());
        assert_eq!(Environment::from_bytes(&again), Ok(environment));
    }
    if let Ok(advertise) = Advertise::from_bytes(bytes) {
        assert_eq!(advertise.to_bytes().as_deref(), Ok(&bytes[..Advertise::LEN]));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        names(text);
    }
});

/// What is read from text prints as what is read as the same.
fn names(text: &str) {
    if let Ok(name) = text.parse::<EndpointName>() {
        assert_eq!(name.to_string(), text);
    }
    if let Ok(port) = text.parse::<PortConfig>() {
        assert_eq!(port.to_string().parse(), Ok(port));
    }
    for port in parse_port_configs(text).into_iter().flatten() {
        assert_eq!(port.to_string().parse(), Ok(port));
    }
}

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
    in_place(message);
    if let Ok(request) = Request::decode(message) {
        let again = read_one(&request.to_bytes().expect("a received request can be sent"));
        assert_eq!(again.header.command, message.header.command);
        assert_eq!(Request::decode(&again), Ok(request));
    }
}

/// The payload as messages of each shape, without copying.
fn in_place(message: &Message) {
    type Ids<'a> = Items<'a, u32>;
    type Sets<'a> = Items<'a, TracepointSet<Utf16<'a>, Ids<'a>>>;
    type Traced<'a> = Items<'a, UserEventsProviderConfig<Utf16<'a>, Ids<'a>, Sets<'a>>>;
    type Filtered<'a> = Items<'a, FilteredProviderConfig<Utf16<'a>, Ids<'a>>>;
    type Session<'a> = CollectTracing5<StreamingSession<Filtered<'a>>, UserEventsSession<Traced<'a>>>;
    same::<Session<'_>, CollectTracing5>(message);
    same::<CollectTracing2<Items<'_, ProviderConfig<Utf16<'_>>>>, CollectTracing2>(message);
    same::<GenerateCoreDump3<Utf16<'_>>, GenerateCoreDump3>(message);
    same::<SetEnvironmentVariable<Utf16<'_>, Utf16<'_>>, SetEnvironmentVariable>(message);
    same::<ProcessInfo3Reply<Utf16<'_>>, ProcessInfo3Reply>(message);
}

/// A `B`, which borrows, and an `O`, which does not, are read from the same payloads, and the `B` encodes to its very bytes, but for
/// booleans, which are any number but 0.
fn same<'a, B: Decode<'a> + Encode, O: Decode<'a> + Encode + Debug + PartialEq>(message: &'a Message) {
    let (borrowed, owned) = (message.decode::<B>(), message.decode::<O>());
    assert_eq!(borrowed.is_ok(), owned.is_ok());
    let (Ok(borrowed), Ok(owned)) = (borrowed, owned) else { return };
    let mut encoder = Encoder::new();
    encoder.put(&borrowed, "payload").expect("what was received can be sent");
    let again = Message::new(message.header.command, encoder.into_bytes()).expect("it is no longer");
    let differ = |(at, (a, b)): (usize, (&u8, &u8))| (a != b && (*a != 1 || *b < 2)).then_some(at);
    assert_eq!(again.payload.iter().zip(&message.payload).enumerate().find_map(differ), None);
    let mut encoder = Encoder::new();
    encoder.put(&owned, "payload").expect("what was received can be sent");
    assert!(encoder.len() <= again.payload.len());
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
    if let Ok(error) = message.decode::<ServerError>() {
        let bytes = encode_server_error(&error).expect("a received error can be sent");
        assert_eq!(read_one(&bytes).decode(), Ok(error));
    }
}
