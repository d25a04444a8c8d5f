//! Starts a session over any kind of connection: this crate does no I/O, so the bytes can be read from a
//! blocking socket, an async runtime or, as here, from a function that plays the runtime.

use dipc_wire::{
    CollectTracing2, Command as _, Feed, Format, HResult, Keywords, Level, MessageReader, ProviderConfig,
    Request, SessionId, decode_reply, encode_error, encode_ok,
};
use std::error::Error;
use std::io::{Cursor, Read};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime_events = ProviderConfig {
        keywords: Keywords::EXCEPTION,
        level: Level::ERROR,
        name: "Microsoft-Windows-DotNETRuntime".into(),
        arguments: String::new(),
    };
    let request = CollectTracing2 {
        buffer_mb: 256,
        format: Format::NETTRACE,
        request_rundown: true,
        providers: vec![runtime_events],
    };
    let mut connection = Cursor::new(serve(&request.to_bytes()?)?);

    // The stream begins directly after the reply, perhaps in the same read: bytes that the reader did not use
    // belong to it.
    let mut reader = MessageReader::new();
    let mut chunk = [0; 32];
    let (reply, stream) = loop {
        let received = connection.read(&mut chunk)?;
        if received == 0 {
            return Err("the connection ended before the reply was whole".into());
        }
        match reader.feed(&chunk[..received])? {
            Feed::NeedMore(_) => {}
            Feed::Message { message, used } => break (message, chunk[used..received].to_vec()),
        }
    };
    let session = decode_reply::<CollectTracing2>(&reply)??;
    println!("session {session}, whose stream begins with {:?}", String::from_utf8_lossy(&stream));
    Ok(())
}

/// Returns the answer of a runtime, with the beginning of the stream that follows it.
fn serve(received: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let Feed::Message { message, .. } = MessageReader::new().feed(received)? else {
        return Err("the client's message is cut short".into());
    };
    Ok(match Request::decode(&message)? {
        Request::CollectTracing2(collect) if !collect.providers.is_empty() => {
            let mut sent = encode_ok(&SessionId(0x7f29_3c00_13b0))?;
            sent.extend(b"Nettrace\x14\0\0\0!FastSerialization.1");
            sent
        }
        Request::CollectTracing2(_) => encode_error(HResult::BAD_ENCODING),
        _ => encode_error(HResult::UNKNOWN_COMMAND),
    })
}

#[test]
fn runs() {
    main().unwrap();
}
