//! A diagnostic port under an async runtime, with the layers that do no I/O: `dipc-wire` for the messages,
//! `nettrace` for the events, and no other crate of ours. Every runtime that connects is resumed, and its
//! events are counted for a moment: `cargo run --example async_port -- SOCKET PROVIDER`, and start programs
//! with `DOTNET_DiagnosticPorts=SOCKET`. It ends when no runtime has connected for a while.
//!
//! A runtime takes one command on each of its connections, and connects again for the next one. Its first
//! bytes on each are an Advertise message with a cookie, which identifies the connections of a runtime.
#![cfg(unix)]

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use dipc_wire::{
    Advertise, CollectTracing2, Command, Feed, Format, Keywords, Level, MessageReader, ProviderConfig,
    ResumeRuntime, StopTracing, decode_reply,
};
use nettrace::Decoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Maximum wait for a runtime.
const QUIET: Duration = Duration::from_secs(2);
/// Maximum time for a runtime to advertise itself, to answer, or to connect again.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which the events of each are counted.
const MOMENT: Duration = Duration::from_millis(500);
/// Maximum number of a runtime's connections that wait for a command. A runtime has one, and a new one before
/// the old one is closed.
const MAX_IDLE: usize = 4;

fn main() -> Result<(), Error> {
    run(std::env::args().skip(1).collect(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: Vec<String>, out: &mut dyn Write) -> Result<(), Error> {
    let Ok([socket, provider]) = <[String; 2]>::try_from(arguments) else {
        return Err("usage: async_port SOCKET PROVIDER".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (cookie, count) in runtime.block_on(serve(Path::new(&socket), &provider))? {
        writeln!(out, "{count:>8} events of {cookie}")?;
    }
    Ok(())
}

/// Serves the port until it has been quiet; returns the number of events of each runtime.
async fn serve(socket: &Path, provider: &str) -> Result<Vec<(Uuid, u64)>, Error> {
    let listener = UnixListener::bind(socket)?;
    let mut runtimes = HashMap::<Uuid, Sender<UnixStream>>::new();
    let (mut arriving, mut counting) = (JoinSet::new(), JoinSet::new());
    // The connections of completed runtimes.
    let mut idle = Vec::new();
    loop {
        tokio::select! {
            accepted = timeout(QUIET, listener.accept()) => {
                let Ok(accepted) = accepted else { break };
                // A silent client does not block others.
                arriving.spawn(timeout(PATIENCE, read_cookie(accepted?.0)));
            }
            Some(arrived) = arriving.join_next() => {
                let Ok(Ok(Ok((cookie, stream)))) = arrived else { continue };
                let connections = runtimes.entry(cookie).or_insert_with(|| {
                    let (sender, receiver) = mpsc::channel(MAX_IDLE);
                    let provider = provider.to_owned();
                    counting.spawn(async move { Ok::<_, Error>((cookie, count(receiver, provider).await?)) });
                    sender
                });
                if let Err(TrySendError::Closed(stream)) = connections.try_send(stream) {
                    // A runtime connects again at once after its connection is closed.
                    idle.push(stream);
                }
            }
        }
    }
    std::fs::remove_file(socket)?;
    // No more connections arrive: tasks that still wait for a connection end.
    drop(runtimes);
    counting.join_all().await.into_iter().collect()
}

async fn read_cookie(mut stream: UnixStream) -> Result<(Uuid, UnixStream), Error> {
    let mut bytes = [0; Advertise::LEN];
    stream.read_exact(&mut bytes).await?;
    Ok((Advertise::from_bytes(&bytes)?.runtime_cookie, stream))
}

/// Counts the events of a runtime for a moment, starting before its program begins.
async fn count(mut connections: Receiver<UnixStream>, provider: String) -> Result<u64, Error> {
    let provider = ProviderConfig {
        keywords: Keywords::ALL,
        level: Level::VERBOSE,
        name: provider,
        arguments: String::new(),
    };
    let (format, request_rundown, providers) = (Format::NETTRACE, false, vec![provider]);
    let request = CollectTracing2 { buffer_mb: 64, format, request_rundown, providers };
    let (session, mut stream, beginning) = ask(&mut connections, &request).await?;
    ask(&mut connections, &ResumeRuntime {}).await?;

    // The answer to the stop may arrive after the end of the stream, so both are awaited concurrently.
    let stop = tokio::spawn(async move {
        sleep(MOMENT).await;
        ask(&mut connections, &StopTracing { session }).await.map(drop)
    });
    let (mut count, mut decoder, mut chunk) = (0, Decoder::new(), vec![0; 1 << 16]);
    decoder.feed(&beginning);
    loop {
        while decoder.next()?.is_some() {
            count += 1;
        }
        match timeout(MOMENT + PATIENCE, stream.read(&mut chunk)).await?? {
            0 => break,
            received => decoder.feed(&chunk[..received]),
        }
    }
    stop.await??;
    Ok(count)
}

/// Sends a command on the next connection of the runtime; returns the answer, the connection, and the bytes
/// after the answer.
async fn ask<C: Command>(
    connections: &mut Receiver<UnixStream>,
    command: &C,
) -> Result<(C::Reply, UnixStream, Vec<u8>), Error> {
    let mut stream =
        timeout(PATIENCE, connections.recv()).await?.ok_or("the runtime did not connect again")?;
    stream.write_all(&command.to_bytes()?).await?;
    let (mut reader, mut chunk) = (MessageReader::new(), [0; 4096]);
    loop {
        let received = timeout(PATIENCE, stream.read(&mut chunk)).await??;
        if received == 0 {
            return Err("the runtime closed the connection without an answer".into());
        }
        if let Feed::Message { message, used } = reader.feed(&chunk[..received])? {
            let reply = decode_reply::<C>(&message)??;
            return Ok((reply, stream, chunk[used..received].to_vec()));
        }
    }
}
