//! Any bytes as messages. Whole and in pieces they give the same messages or the same error; a decoded value
//! encodes to bytes that decode to the same value; a value decoded in place encodes to the same bytes.
//!
//! The last byte seeds the lengths of the pieces.

#![no_main]

use dipc_wire::{
    Advertise, CollectTracing2, CollectTracing5, Command, CommandId, Decode, Encode, Encoder, EndpointName,
    Environment, EventExtension, Feed, FilteredProviderConfig, GenerateCoreDump3, Items, Message,
    MessageReader, PortConfig, ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3,
    ProcessInfo3Reply, ProviderConfig, Request, ResumeRuntime, ServerError, SetEnvironmentVariable,
    StopTracing, StreamingSession, TracepointSet, UserEventsProviderConfig, UserEventsSession, Utf16,
    decode_reply, encode_ok, encode_server_error, parse_port_configs,
};
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| dipc_fuzz::bounded(data.len(), || check(data)));

fn check(data: &[u8]) {
    let Some((&seed, bytes)) = data.split_last() else { return };
    let (messages, failed) = read(bytes, |left| left);
    let mut state = u32::from(seed);
    let in_pieces = read(bytes, |left| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        left.min((state >> 16) as usize % 40)
    });
    assert_eq!((&messages, failed), (&in_pieces.0, in_pieces.1));

    for message in &messages {
        check_request(message);
        check_reply::<ProcessInfo1>(message);
        check_reply::<ProcessInfo2>(message);
        check_reply::<ProcessInfo3>(message);
        check_reply::<ProcessEnvironment>(message);
        check_reply::<ResumeRuntime>(message);
        check_reply::<StopTracing>(message);
    }
    if let Ok(extension) = EventExtension::from_bytes(bytes) {
        assert!(extension.metadata.is_none_or(|metadata| metadata.len() < bytes.len()));
    }
    if let Ok(environment) = <Environment>::from_bytes(bytes) {
        let (reply, again) = environment.to_bytes().expect("a received value can be sent");
        assert_eq!(reply.incoming_bytes as usize, again.len());
        assert_eq!(Environment::from_bytes(&again), Ok(environment));
    }
    if let Ok(advertise) = Advertise::from_bytes(bytes) {
        assert_eq!(advertise.to_bytes().as_deref(), Ok(&bytes[..Advertise::LEN]));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_text(text);
    }
}

/// Checks that a value parsed from text is printed as text that parses to the same value.
fn check_text(text: &str) {
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

/// Returns the messages in `bytes`, and whether they end in an error. `piece` chooses the length of each
/// piece from the number of bytes left.
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

/// Returns the only message in `bytes`.
fn read_one(bytes: &[u8]) -> Message {
    match MessageReader::new().feed(bytes) {
        Ok(Feed::Message { message, used }) if used == bytes.len() => message,
        other => panic!("the encoded bytes are not one message: {other:?}"),
    }
}

/// Checks that a message, and the request in it, survive a round trip.
fn check_request(message: &Message) {
    assert_eq!(&read_one(&message.to_bytes().expect("a received message fits")), message);
    check_in_place(message);
    if let Ok(request) = Request::decode(message) {
        let again = read_one(&request.to_bytes().expect("a received request can be sent"));
        assert_eq!(again.header.command, message.header.command);
        assert_eq!(Request::decode(&again), Ok(request));
    }
}

/// Decodes the payload in place, as several types.
fn check_in_place(message: &Message) {
    type Ids<'a> = Items<'a, u32>;
    type Sets<'a> = Items<'a, TracepointSet<Utf16<'a>, Ids<'a>>>;
    type Traced<'a> = Items<'a, UserEventsProviderConfig<Utf16<'a>, Ids<'a>, Sets<'a>>>;
    type Filtered<'a> = Items<'a, FilteredProviderConfig<Utf16<'a>, Ids<'a>>>;
    type Session<'a> = CollectTracing5<StreamingSession<Filtered<'a>>, UserEventsSession<Traced<'a>>>;
    check_borrowed::<Session<'_>, CollectTracing5>(message);
    check_borrowed::<CollectTracing2<Items<'_, ProviderConfig<Utf16<'_>>>>, CollectTracing2>(message);
    check_borrowed::<GenerateCoreDump3<Utf16<'_>>, GenerateCoreDump3>(message);
    check_borrowed::<SetEnvironmentVariable<Utf16<'_>, Utf16<'_>>, SetEnvironmentVariable>(message);
    check_borrowed::<ProcessInfo3Reply<Utf16<'_>>, ProcessInfo3Reply>(message);
}

/// Checks that `B`, which borrows, and `O`, which does not, decode from the same payloads, and that `B`
/// encodes to the same bytes, except booleans, which may be any number but 0.
fn check_borrowed<'a, B: Decode<'a> + Encode, O: Decode<'a> + Encode + Debug + PartialEq>(
    message: &'a Message,
) {
    let (borrowed, owned) = (message.decode::<B>(), message.decode::<O>());
    assert_eq!(borrowed.is_ok(), owned.is_ok());
    let (Ok(borrowed), Ok(owned)) = (borrowed, owned) else { return };
    let mut encoder = Encoder::new();
    encoder.put(&borrowed, "payload").expect("a received value can be sent");
    let again = Message::new(message.header.command, encoder.into_bytes()).expect("it is no longer");
    let differ = |(at, (a, b)): (usize, (&u8, &u8))| (a != b && (*a != 1 || *b < 2)).then_some(at);
    assert_eq!(again.payload.iter().zip(&message.payload).enumerate().find_map(differ), None);
    let mut encoder = Encoder::new();
    encoder.put(&owned, "payload").expect("a received value can be sent");
    assert!(encoder.len() <= again.payload.len());
}

/// Decodes the message as the reply to a `C`, as it is, as OK and as Error.
fn check_reply<C: Command>(message: &Message)
where
    C::Reply: Debug + PartialEq,
{
    let _ = decode_reply::<C>(message);
    let mut ok = message.clone();
    ok.header.command = CommandId::OK;
    if let Ok(Ok(reply)) = decode_reply::<C>(&ok) {
        // A received reply always fits: a lone surrogate and its replacement character both take one unit.
        let again = read_one(&encode_ok(&reply).expect("a received reply can be sent"));
        assert_eq!(decode_reply::<C>(&again), Ok(Ok(reply)));
    }
    if let Ok(error) = message.decode::<ServerError>() {
        let bytes = encode_server_error(&error).expect("a received error can be sent");
        assert_eq!(read_one(&bytes).decode(), Ok(error));
    }
}
