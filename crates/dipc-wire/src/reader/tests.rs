use super::{Feed, MessageReader};
use crate::{CommandId, CommandSet, DecodeError, HResult, Header, Message, encode_error};
use alloc::vec;
use alloc::vec::Vec;

#[test]
fn messages_in_a_row_are_read_one_by_one() {
    let first = encode_error(HResult::FAIL);
    let second = Message::new(CommandId { set: CommandSet(9), id: 1 }, vec![1, 2, 3]).unwrap();
    let bytes = [first.clone(), second.to_bytes().unwrap()].concat();
    let mut reader = MessageReader::new();
    let Ok(Feed::Message { message, used }) = reader.feed(&bytes) else { panic!("no first message") };
    assert_eq!((message.header.command, used), (CommandId::ERROR, first.len()));
    let again = reader.feed(&bytes[used..]);
    assert_eq!(again, Ok(Feed::Message { message: second, used: 23 }));
}

#[test]
fn a_wrong_magic_is_noticed_at_its_first_wrong_byte() {
    let mut reader = MessageReader::new();
    assert_eq!(reader.feed(b"DOTNET_IPC_V"), Ok(Feed::NeedMore(8)));
    let error = reader.feed(b"2").unwrap_err();
    assert_eq!(error, DecodeError::WrongMagic { expected: "DOTNET_IPC_V1", found: "DOTNET_IPC_V2".into() });
    assert!(reader.feed(b"\0").is_err(), "an error is final");
    let error = MessageReader::new().feed(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert_eq!(error, DecodeError::WrongMagic { expected: "DOTNET_IPC_V1", found: "HTTP/1.1 400 B".into() });
}

#[test]
fn a_size_smaller_than_the_header_is_an_error() {
    for size in 0..20_u16 {
        let mut bytes = encode_error(HResult::FAIL);
        bytes[14..16].copy_from_slice(&size.to_le_bytes());
        assert_eq!(MessageReader::new().feed(&bytes), Err(DecodeError::WrongSize { size }));
    }
}

#[test]
fn an_empty_feed_changes_nothing() {
    let mut reader = MessageReader::new();
    assert_eq!(reader.feed(&[]), Ok(Feed::NeedMore(20)));
    assert!(!reader.is_within_message());
    reader.feed(b"DOT").unwrap();
    assert_eq!(reader.feed(&[]), Ok(Feed::NeedMore(17)));
    assert!(reader.is_within_message());
}

#[test]
fn an_unknown_message_survives_with_its_reserved_field() {
    let header =
        Header { size: 22, command: CommandId { set: CommandSet(0xab), id: 0xcd }, reserved: 0x1234 };
    let message = Message { header, payload: vec![5, 6] };
    let bytes: Vec<u8> = message.to_bytes().unwrap();
    assert_eq!(MessageReader::new().feed(&bytes), Ok(Feed::Message { message, used: 22 }));
}
