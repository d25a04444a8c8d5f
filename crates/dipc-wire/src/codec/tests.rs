use super::{Decoder, Encoder};
use crate::{
    CollectTracing1, Command as _, CommandId, DecodeError, EncodeError, Environment, MAX_PAYLOAD_LEN,
    Message, ProviderConfig, Request,
};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use uuid::uuid;

/// A string on the wire: the count, then the units.
fn string(count: u32, units: &[u16]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.u32(count);
    for unit in units {
        encoder.u16(*unit);
    }
    encoder.into_bytes()
}

fn decode_string(bytes: &[u8]) -> Result<String, DecodeError> {
    Decoder::new(bytes).string("text")
}

#[test]
fn both_forms_of_the_empty_string_are_read_and_the_short_one_is_written() {
    assert_eq!(decode_string(&string(0, &[])).unwrap(), "");
    assert_eq!(decode_string(&string(1, &[0])).unwrap(), "");
    let mut encoder = Encoder::new();
    encoder.string("", "text").unwrap();
    assert_eq!(encoder.into_bytes(), [0, 0, 0, 0]);
}

#[test]
fn counts_are_of_utf_16_units_and_not_of_characters() {
    let mut encoder = Encoder::new();
    encoder.string("ü🌍", "text").unwrap();
    assert_eq!(encoder.into_bytes(), [4, 0, 0, 0, 0xfc, 0, 0x3c, 0xd8, 0x0d, 0xdf, 0, 0]);
}

#[test]
fn a_surrogate_alone_becomes_the_replacement_character() {
    let units = [u16::from(b'a'), 0xd83c, u16::from(b'b'), 0xdf0d, 0];
    assert_eq!(decode_string(&string(5, &units)).unwrap(), "a\u{fffd}b\u{fffd}");
}

#[test]
fn a_string_ends_at_its_first_nul() {
    let units = [u16::from(b'a'), 0, u16::from(b'b'), 0];
    let bytes = [string(4, &units), vec![7]].concat();
    let mut decoder = Decoder::new(&bytes);
    assert_eq!(decoder.string("text").unwrap(), "a");
    assert_eq!(decoder.rest(), [7], "what stands behind the NUL still belongs to the string");
}

#[test]
fn a_string_without_nul_is_an_error() {
    let bytes = string(2, &[u16::from(b'a'), u16::from(b'b')]);
    assert_eq!(decode_string(&bytes), Err(DecodeError::MissingNul { field: "text", offset: 0 }));
}

#[test]
fn a_string_with_nul_inside_is_not_sent() {
    let mut encoder = Encoder::new();
    let error = encoder.string("ab\0c", "text").unwrap_err();
    assert_eq!(error, EncodeError::InteriorNul { field: "text", index: 2 });
    let trailing = encoder.string("ab\0", "text").unwrap_err();
    assert_eq!(trailing, EncodeError::InteriorNul { field: "text", index: 2 });
}

#[test]
fn a_hostile_count_is_refused_before_anything_is_allocated() {
    for count in [2, 0x4000_0000, u32::MAX] {
        let bytes = string(count, &[0]);
        let error = decode_string(&bytes).unwrap_err();
        assert_eq!(error, DecodeError::CountTooLarge { field: "text", offset: 0, count, left: 2 });
    }
    let mut encoder = Encoder::new();
    for word in [8, 1, u32::MAX] {
        encoder.u32(word);
    }
    let message = Message::new(CommandId::COLLECT_TRACING_1, encoder.into_bytes()).unwrap();
    let error = Request::decode(&message).unwrap_err();
    assert!(matches!(error, DecodeError::CountTooLarge { field: "providers", offset: 28, left: 0, .. }));
    let error = Environment::decode(&[0xff; 4]).unwrap_err();
    assert!(matches!(error, DecodeError::CountTooLarge { field: "environment", .. }));
}

#[test]
fn errors_count_offsets_from_the_beginning_of_the_message() {
    let message = Message::new(CommandId::STOP_TRACING, vec![1, 2]).unwrap();
    let error = Request::decode(&message).unwrap_err();
    assert_eq!(error, DecodeError::UnexpectedEnd { field: "session id", offset: 20, needed: 8, left: 2 });
}

#[test]
fn guids_are_mixed_endian() {
    let bytes =
        [0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00];
    let guid = uuid!("123e4567-e89b-12d3-a456-426614174000");
    assert_eq!(Decoder::new(&bytes).guid("cookie").unwrap(), guid);
    let mut encoder = Encoder::new();
    encoder.guid(guid);
    assert_eq!(encoder.into_bytes(), bytes);
}

#[test]
fn a_payload_of_the_greatest_length_is_sent_and_one_byte_more_is_an_error() {
    let message = Message::new(CommandId::OK, vec![0; MAX_PAYLOAD_LEN]).unwrap();
    assert_eq!(message.header.size, u16::MAX);
    assert_eq!(message.to_bytes().unwrap().len(), usize::from(u16::MAX));
    let len = MAX_PAYLOAD_LEN + 1;
    assert_eq!(Message::new(CommandId::OK, vec![0; len]), Err(EncodeError::PayloadTooLarge { len }));

    let mut provider = ProviderConfig { name: "Provider".into(), ..ProviderConfig::default() };
    provider.arguments = "x".repeat(40_000);
    let command = CollectTracing1 { buffer_mb: 1, providers: vec![provider], ..CollectTracing1::default() };
    assert!(matches!(command.to_bytes(), Err(EncodeError::PayloadTooLarge { len: 80_052 })));
}
