//! A test of a tool that records a process which dies: a fault ends it after 1000 bytes of the stream.

use dipc_sim::{Fault, Runtime, Version};
use dipc_transport::{Connection, Deadline, PeerCheck};
use dipc_wire::{
    CollectTracing2, Command as _, Feed, MessageReader, ProviderConfig, ServerError, decode_reply,
};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    // Any bytes serve as a recording: they are sent unchanged.
    let recording: Vec<u8> =
        b"Nettrace\x14\0\0\0!FastSerialization.1".iter().copied().cycle().take(5000).collect();
    let runtime = Runtime::builder()
        .version(Version::NET9)
        .replay(recording)
        .fault(Fault::DieInTheMiddle { after: 1000 })
        .start_in(folder.path())?;

    // The tool under test: this one counts bytes.
    let received = record(&runtime)?;
    println!("{received} bytes came before the end");
    assert_eq!(received, 1000);
    assert!(runtime.has_died());
    Ok(())
}

fn record(runtime: &Runtime) -> Result<usize, Box<dyn Error>> {
    let deadline = Deadline::after(Duration::from_secs(10));
    let mut connection = Connection::connect(&runtime.address(), PeerCheck::Any, deadline)?;
    let provider: ProviderConfig =
        ProviderConfig { name: "Microsoft-Windows-DotNETRuntime".into(), ..Default::default() };
    let request = CollectTracing2 { buffer_mb: 256, providers: vec![provider], ..Default::default() };
    connection.write_all(&request.to_bytes()?, deadline)?;

    let mut reader = MessageReader::new();
    let mut reply: Option<Result<_, ServerError>> = None;
    let mut stream = 0;
    let mut buffer = [0; 4096];
    loop {
        let count = match connection.read(&mut buffer, deadline) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.is_disconnected() => break,
            Err(error) => return Err(error.into()),
        };
        if reply.is_some() {
            stream += count;
        } else if let Feed::Message { message, used } = reader.feed(&buffer[..count])? {
            reply = Some(decode_reply::<CollectTracing2>(&message)?);
            stream += count - used;
        }
    }
    let session = reply.ok_or("no reply came")??;
    println!("session {session} has ended");
    Ok(stream)
}

#[test]
fn runs() {
    main().unwrap();
}
