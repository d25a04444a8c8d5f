//! Every message in `testdata/wire` decodes to the text next to it, in whatever pieces the bytes arrive, and
//! encodes to the same bytes.
//!
//! `DIPC_UPDATE_GOLDEN=1` rewrites the text files.

mod re_encoding;
mod text;

use dipc_wire::{DecodeError, Feed, Header, Message, MessageReader, Request};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads the files of a folder of `testdata/wire` with the given extension; there must be some.
fn captures(folder: &str, extension: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    assert!(!paths.is_empty(), "{} has no .{extension} files", folder.display());
    paths
        .into_iter()
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

/// Compares a decoded message with the text next to its input, or rewrites that text.
fn check_text(input: &Path, reading: &str) {
    let path = input.with_extension("txt");
    if std::env::var_os("DIPC_UPDATE_GOLDEN").is_some() {
        fs::write(&path, reading).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(reading, expected, "{}", path.display());
}

/// Returns the message at the beginning of `bytes`, and the bytes after it.
fn read_message(bytes: &[u8]) -> Result<(Message, &[u8]), DecodeError> {
    match MessageReader::new().feed(bytes)? {
        Feed::Message { message, used } => Ok((message, &bytes[used..])),
        Feed::NeedMore(missing) => panic!("{missing} bytes are missing"),
    }
}

/// Returns a reply as text; the file name begins with its command.
fn read_reply(path: &Path, bytes: &[u8]) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    text::reply(name.split('.').next().unwrap(), read_message(bytes))
}

#[test]
fn requests_decode_to_their_texts() {
    for (path, bytes) in captures("requests", "req") {
        let (message, rest) = read_message(&bytes).unwrap();
        assert!(rest.is_empty(), "{}", path.display());
        check_text(&path, &text::request(&Request::decode(&message).unwrap()));
    }
}

#[test]
fn replies_decode_to_their_texts() {
    for (path, bytes) in captures("replies", "reply") {
        check_text(&path, &read_reply(&path, &bytes));
    }
}

#[test]
fn requests_encode_to_the_captured_bytes() {
    for (path, bytes) in captures("requests", "req") {
        let (message, _) = read_message(&bytes).unwrap();
        assert_eq!(message.to_bytes().unwrap(), bytes, "raw, {}", path.display());
        assert_eq!(re_encoding::request(&message), bytes, "borrowed, {}", path.display());

        // As an owned value, an empty string loses the NUL that the official tools write, and nothing else
        // changes.
        let owned = Request::decode(&message).unwrap();
        let ours = owned.to_bytes().unwrap();
        assert_eq!(Request::decode(&read_message(&ours).unwrap().0).unwrap(), owned, "{}", path.display());
        let empty_strings = text::request(&owned).matches("arguments \"\"").count();
        assert_eq!(ours.len() + 2 * empty_strings, bytes.len(), "owned, {}", path.display());
    }
}

#[test]
fn replies_encode_to_the_captured_bytes() {
    let mut typed = 0;
    for (path, bytes) in captures("replies", "reply") {
        let Ok((message, rest)) = read_message(&bytes) else { continue };
        let name = path.file_name().unwrap().to_str().unwrap();
        let command = name.split('.').next().unwrap();
        let again = re_encoding::reply(command, &message, rest);
        assert_eq!(again, bytes, "{}", path.display());
        typed += 1;
    }
    assert!(typed > 0);
}

#[test]
fn replies_survive_as_raw_messages() {
    let mut whole = 0;
    for (path, bytes) in captures("replies", "reply") {
        if let Ok((message, rest)) = read_message(&bytes) {
            assert_eq!([&message.to_bytes().unwrap(), rest].concat(), bytes, "{}", path.display());
            whole += 1;
        }
    }
    assert!(whole > 0);
}

#[test]
fn a_message_cut_anywhere_needs_exactly_the_bytes_that_were_cut_off() {
    for (path, bytes) in captures("requests", "req").into_iter().chain(captures("replies", "reply")) {
        let Ok((message, _)) = read_message(&bytes) else { continue };
        let size = usize::from(message.header.size);
        for cut in 0..size {
            // Before the size has arrived, only the header is known to be needed.
            let whole = if cut < 20 { 20 } else { size };
            let feed = MessageReader::new().feed(&bytes[..cut]).unwrap();
            assert_eq!(feed, Feed::NeedMore(whole - cut), "{} cut at {cut}", path.display());
        }
    }
}

#[test]
fn a_message_split_anywhere_is_the_same_message() {
    for (path, bytes) in captures("requests", "req").into_iter().chain(captures("replies", "reply")) {
        // The stream begins in the same read as the reply.
        let bytes = [bytes.as_slice(), b"Nettrace"].concat();
        let Ok((message, rest)) = read_message(&bytes) else { continue };
        for split in 0..bytes.len() {
            let mut reader = MessageReader::new();
            let (first, second) = bytes.split_at(split);
            let (found, used) = match reader.feed(first).unwrap() {
                Feed::Message { message, used } => (message, used),
                Feed::NeedMore(_) => match reader.feed(second).unwrap() {
                    Feed::Message { message, used } => (message, split + used),
                    Feed::NeedMore(missing) => {
                        panic!("{} split at {split}: {missing} missing", path.display())
                    }
                },
            };
            assert_eq!(found, message, "{} split at {split}", path.display());
            assert_eq!(&bytes[used..], rest, "{} split at {split}", path.display());
            assert!(!reader.is_within_message());
        }
    }
}

#[test]
fn a_message_that_arrives_byte_by_byte_is_the_same_message() {
    for (path, bytes) in captures("requests", "req").into_iter().chain(captures("replies", "reply")) {
        let whole = read_message(&bytes).map(|(message, _)| message).ok();
        let mut reader = MessageReader::new();
        let mut feeds = bytes.chunks(1).map(|byte| reader.feed(byte));
        let found = feeds.find_map(|feed| match feed {
            Ok(Feed::NeedMore(_)) => None,
            Ok(Feed::Message { message, used: 1 }) => Some(Some(message)),
            Ok(other) => panic!("{}: {other:?}", path.display()),
            // The shown part of a wrong magic depends on how much has arrived.
            Err(_) => Some(None),
        });
        assert_eq!(found, Some(whole), "{}", path.display());
    }
}

#[test]
fn a_request_with_a_cut_payload_is_incomplete() {
    for (path, bytes) in captures("requests", "req") {
        let (message, _) = read_message(&bytes).unwrap();
        if matches!(Request::decode(&message), Ok(Request::Unknown(_))) {
            continue;
        }
        for cut in 0..message.payload.len() {
            let error = Request::decode(&with_payload(&message, cut)).unwrap_err();
            assert!(error.is_incomplete(), "{} cut at {cut}: {error}", path.display());
        }
    }
}

#[test]
fn a_reply_with_a_cut_payload_is_read_in_part_or_an_error() {
    for (path, bytes) in captures("replies", "reply") {
        let Ok((message, rest)) = read_message(&bytes) else { continue };
        let name = path.file_name().unwrap().to_str().unwrap();
        let command = name.split('.').next().unwrap();
        // Only the HRESULT of an error is required.
        let needed = if message.header.command.id == 0 { message.payload.len() } else { 4 };
        for cut in 0..message.payload.len() {
            let reading = text::reply(command, Ok((with_payload(&message, cut), rest)));
            assert_eq!(
                reading.starts_with("broken"),
                cut < needed,
                "{} cut at {cut}: {reading}",
                path.display()
            );
        }
        for cut in 0..rest.len() {
            let reading = text::reply(command, Ok((message.clone(), &rest[..cut])));
            assert!(reading.starts_with("broken"), "{} cut after {cut} bytes: {reading}", path.display());
        }
    }
}

/// Returns the message with the first `len` bytes of its payload.
fn with_payload(message: &Message, len: usize) -> Message {
    let size = u16::try_from(20 + len).unwrap();
    Message { header: Header { size, ..message.header }, payload: message.payload[..len].to_vec() }
}
