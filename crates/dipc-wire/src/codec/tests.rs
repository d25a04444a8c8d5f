use super::{Decoder, Encoder, Items, Utf16};
use crate::{
    CollectTracing1, CollectTracing5, Command as _, CommandId, DecodeError, EncodeError, Environment,
    EventFilter, MAX_PAYLOAD_LEN, Message, ProviderConfig, Request, SetEnvironmentVariable, TracepointConfig,
    TracepointSet,
};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use uuid::uuid;

/// Returns a string on the wire: the count, then the units.
fn string(count: u32, units: &[u16]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.u32(count);
    for unit in units {
        encoder.u16(*unit);
    }
    encoder.into_bytes()
}

fn decode_string(bytes: &[u8]) -> Result<String, DecodeError> {
    Decoder::new(bytes).take("text")
}

#[test]
fn both_forms_of_the_empty_string_are_read_and_the_short_one_is_written() {
    assert_eq!(decode_string(&string(0, &[])).unwrap(), "");
    assert_eq!(decode_string(&string(1, &[0])).unwrap(), "");
    let mut encoder = Encoder::new();
    encoder.put("", "text").unwrap();
    assert_eq!(encoder.into_bytes(), [0, 0, 0, 0]);
}

#[test]
fn counts_are_of_utf_16_units_and_not_of_characters() {
    let mut encoder = Encoder::new();
    encoder.put("ü🌍", "text").unwrap();
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
    assert_eq!(decoder.take::<String>("text").unwrap(), "a");
    assert_eq!(decoder.rest(), [7], "units after the NUL still belong to the string");
}

#[test]
fn a_string_without_nul_is_an_error() {
    let bytes = string(2, &[u16::from(b'a'), u16::from(b'b')]);
    assert_eq!(decode_string(&bytes), Err(DecodeError::MissingNul { field: "text", offset: 0 }));
}

#[test]
fn a_string_with_nul_inside_is_not_sent() {
    let mut encoder = Encoder::new();
    let error = encoder.put("ab\0c", "text").unwrap_err();
    assert_eq!(error, EncodeError::InteriorNul { field: "text", index: 2 });
    let trailing = encoder.put("ab\0", "text").unwrap_err();
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
    let error = <Environment>::from_bytes(&[0xff; 4]).unwrap_err();
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

    if cfg!(miri) {
        // Encoding that many characters takes minutes.
        return;
    }
    let mut provider = ProviderConfig { name: "Provider".into(), ..ProviderConfig::default() };
    provider.arguments = "x".repeat(40_000);
    let command = CollectTracing1 { buffer_mb: 1, providers: vec![provider], ..CollectTracing1::default() };
    assert!(matches!(command.to_bytes(), Err(EncodeError::PayloadTooLarge { len: 80_052 })));
}

fn encoded(value: &impl super::Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.put(value, "value").unwrap();
    encoder.into_bytes()
}

#[test]
fn a_borrowed_string_reads_like_an_owned_one_and_keeps_its_bytes() {
    let units: Vec<u16> = "a\u{1f30d}\n".encode_utf16().chain([0, 7, 0]).collect();
    for bytes in [string(0, &[]), string(1, &[0]), string(7, &units), string(2, &[0xd83c, 0])] {
        let owned = decode_string(&bytes).unwrap();
        let text: Utf16<'_> = Decoder::new(&bytes).take("text").unwrap();
        assert_eq!(text, owned.as_str());
        assert_eq!(text.to_string(), owned);
        assert_eq!(format!("{text:?}"), format!("{owned:?}"));
        assert_eq!(text.is_empty(), owned.is_empty());
        assert_eq!(encoded(&text), bytes);
    }
    let bytes = string(2, &[u16::from(b'a'), u16::from(b'b')]);
    let error = Decoder::new(&bytes).take::<Utf16<'_>>("text").unwrap_err();
    assert_eq!(error, DecodeError::MissingNul { field: "text", offset: 0 });
}

#[test]
fn borrowed_items_match_an_owned_array_and_end_where_it_ends() {
    let sets = vec![
        TracepointSet { tracepoint: String::from("Low"), ids: vec![1, 2, 3] },
        TracepointSet { tracepoint: String::new(), ids: vec![] },
    ];
    let bytes = [encoded(&sets), vec![9]].concat();
    let mut decoder = Decoder::new(&bytes);
    let items: Items<'_, TracepointSet<Utf16<'_>, Items<'_, u32>>> = decoder.take("sets").unwrap();
    assert_eq!(decoder.rest(), [9]);
    assert_eq!((items.len(), items.is_empty()), (2, false));
    for (item, set) in items.iter().zip(&sets) {
        assert_eq!(item.tracepoint, set.tracepoint.as_str());
        assert_eq!(item.ids.iter().collect::<Vec<_>>(), set.ids);
    }
    assert_eq!(items.iter().count(), 2);
    assert_eq!([encoded(&items), vec![9]].concat(), bytes);
}

#[test]
fn an_array_that_is_cut_is_incomplete_wherever_it_is_cut() {
    let bytes = encoded(&vec![String::from("a"), String::from("bc")]);
    for len in 0..bytes.len() {
        let cut = bytes.get(..len).unwrap();
        let error = Decoder::new(cut).take::<Items<'_, Utf16<'_>>>("names").unwrap_err();
        assert!(error.is_incomplete(), "{len}: {error}");
    }
}

#[test]
fn no_value_and_an_empty_value_differ() {
    let set = |value: Option<&str>| encoded(&SetEnvironmentVariable { name: "A", value });
    let name = string(2, &[u16::from(b'A'), 0]);
    assert_eq!(set(None), [name.clone(), string(0, &[])].concat());
    assert_eq!(set(Some("")), [name, string(1, &[0])].concat());
    for value in [None, Some(String::new()), Some(String::from("b"))] {
        let bytes = set(value.as_deref());
        let read: SetEnvironmentVariable = Decoder::new(&bytes).take("payload").unwrap();
        assert_eq!(read, SetEnvironmentVariable { name: String::from("A"), value });
    }
}

/// Compares with the examples of "event_filter serialization" and the last of "tracepoint_config
/// serialization" in the protocol's text.
#[test]
fn filters_and_tracepoints_are_written_as_in_the_text() {
    let filter = |enable, ids: &[u32]| encoded(&EventFilter { enable, ids });
    assert_eq!(filter(false, &[]), [0, 0, 0, 0, 0]);
    assert_eq!(filter(false, &[4, 5]), [0, 2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(filter(true, &[]), [1, 0, 0, 0, 0]);
    assert_eq!(filter(true, &[1, 2, 3]), [1, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);

    let low = TracepointSet { tracepoint: "LowEvents", ids: (1..=9).collect::<Vec<u32>>() };
    let bytes = encoded(&TracepointConfig { default_tracepoint: "", sets: vec![low] });
    let mut expected = vec![0, 0, 0, 0, 1, 0, 0, 0, 10, 0, 0, 0];
    expected.extend(b"L\0o\0w\0E\0v\0e\0n\0t\0s\0\0\0\x09\0\0\0");
    expected.extend((1..=9).flat_map(|id| [id, 0, 0, 0]));
    assert_eq!(bytes, expected);
    assert_eq!(bytes.len(), 72, "the text's last offset");
}

#[test]
fn a_session_of_an_unknown_type_is_named() {
    let message = Message::new(CommandId::COLLECT_TRACING_5, vec![2, 0, 0, 0, 1, 2, 3]).unwrap();
    let error = message.decode::<CollectTracing5>().unwrap_err();
    assert_eq!(error, DecodeError::UnknownSessionType { offset: 20, found: 2 });
    assert!(!error.is_incomplete());
}
