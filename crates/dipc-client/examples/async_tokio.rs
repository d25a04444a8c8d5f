//! A session under an async runtime, with the layers that do no I/O: `dipc-wire` for the messages, `nettrace`
//! for the events, and no other crate of ours. Counts the events of a process for some seconds, as they
//! arrive: `cargo run --example async_tokio -- SOCKET PROVIDER SECONDS`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dipc_wire::{
    CollectTracing2, Command, Feed, Format, Keywords, Level, MessageReader, ProviderConfig, StopTracing,
    decode_reply,
};
use nettrace::Decoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Maximum time for a runtime to answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Error> {
    run(std::env::args().skip(1).collect(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: Vec<String>, out: &mut dyn Write) -> Result<(), Error> {
    let Ok([socket, provider, seconds]) = <[String; 3]>::try_from(arguments) else {
        return Err("usage: async_tokio SOCKET PROVIDER SECONDS".into());
    };
    let duration = Duration::try_from_secs_f64(seconds.parse()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counts = runtime.block_on(count(socket.into(), provider, duration))?;
    for (name, count) in counts {
        writeln!(out, "{count:>8} {name}")?;
    }
    Ok(())
}

async fn count(
    socket: PathBuf,
    provider: String,
    duration: Duration,
) -> Result<BTreeMap<String, u64>, Error> {
    let provider = ProviderConfig {
        keywords: Keywords::ALL,
        level: Level::VERBOSE,
        name: provider,
        arguments: String::new(),
    };
    let (format, request_rundown, providers) = (Format::NETTRACE, false, vec![provider]);
    let request = CollectTracing2 { buffer_mb: 64, format, request_rundown, providers };
    let (session, mut stream, beginning) = timeout(PATIENCE, ask(&socket, &request)).await??;

    // The answer to the stop arrives after the end of the stream, so both are awaited concurrently.
    let stop = tokio::spawn(async move {
        sleep(duration).await;
        timeout(PATIENCE, ask(&socket, &StopTracing { session })).await??;
        Ok::<_, Error>(())
    });

    let mut counts = BTreeMap::new();
    let mut decoder = Decoder::new();
    decoder.feed(&beginning);
    let mut chunk = vec![0; 1 << 16];
    loop {
        while let Some(event) = decoder.next()? {
            // The runtime's own events have only numbers.
            let name = if event.name().is_empty() { event.id().to_string() } else { event.name().to_owned() };
            *counts.entry(format!("{}/{name}", event.provider())).or_default() += 1;
        }
        match timeout(duration + PATIENCE, stream.read(&mut chunk)).await?? {
            0 => break,
            received => decoder.feed(&chunk[..received]),
        }
    }
    stop.await??;
    Ok(counts)
}

/// Sends a command on a connection of its own; returns the answer, the connection, and the bytes after the
/// answer.
async fn ask<C: Command>(socket: &Path, command: &C) -> Result<(C::Reply, Stream, Vec<u8>), Error> {
    let mut stream = connect(socket).await?;
    stream.write_all(&command.to_bytes()?).await?;
    let (mut reader, mut chunk) = (MessageReader::new(), [0; 4096]);
    loop {
        let received = stream.read(&mut chunk).await?;
        if received == 0 {
            return Err("the runtime closed the connection without an answer".into());
        }
        if let Feed::Message { message, used } = reader.feed(&chunk[..received])? {
            let reply = decode_reply::<C>(&message)??;
            return Ok((reply, stream, chunk[used..received].to_vec()));
        }
    }
}

#[cfg(unix)]
type Stream = tokio::net::UnixStream;
#[cfg(windows)]
type Stream = tokio::net::windows::named_pipe::NamedPipeClient;

#[cfg(unix)]
async fn connect(socket: &Path) -> std::io::Result<Stream> {
    Stream::connect(socket).await
}

#[cfg(windows)]
async fn connect(pipe: &Path) -> std::io::Result<Stream> {
    tokio::net::windows::named_pipe::ClientOptions::new().open(pipe)
}
