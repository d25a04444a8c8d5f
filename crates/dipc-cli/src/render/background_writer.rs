//! Writing on a thread of its own.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use crate::exit::{Exit, Failure};
use crate::processors;
use crate::render::destination::Destination;

/// A destination written on another thread while the next data is produced: the system may take longer to
/// accept bytes than it takes to produce them. On a single processor, no thread is started.
#[derive(Debug)]
pub(crate) struct BackgroundWriter {
    /// The name of the destination.
    name: String,
    /// The destination, if no thread is used.
    direct: Option<Destination>,
    thread: Option<WritingThread>,
    /// An empty buffer.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct WritingThread {
    buffers: SyncSender<Vec<u8>>,
    /// Returned buffers, which have been written.
    written: Receiver<Vec<u8>>,
    thread: JoinHandle<(Destination, io::Result<()>)>,
}

/// Maximum number of buffers that wait to be written.
const WAITING: usize = 3;

impl BackgroundWriter {
    pub(crate) fn new(out: Destination) -> Result<Self, Failure> {
        let name = out.to_string();
        if processors::count() == 1 {
            return Ok(Self { name, direct: Some(out), thread: None, spare: Vec::new() });
        }
        let (buffers, to_write) = mpsc::sync_channel::<Vec<u8>>(WAITING);
        let (back, written) = mpsc::channel();
        let write = move || write_all(out, &to_write, &back);
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(write);
        let thread = thread.map_err(|error| {
            Failure::new(Exit::Failed, format_args!("write: {name}: no thread to write with: {error}"))
        })?;
        let thread = Some(WritingThread { buffers, written, thread });
        Ok(Self { name, direct: None, thread, spare: Vec::new() })
    }

    /// Returns a buffer, to be filled and [written](Self::write).
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let written = self.thread.as_ref().and_then(|thread| thread.written.try_recv().ok());
        written.unwrap_or_else(|| std::mem::take(&mut self.spare))
    }

    /// Queues bytes for writing. The failure may be that of earlier bytes.
    pub(crate) fn write(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        if let Some(out) = &mut self.direct {
            out.write_all(&bytes).map_err(|error| out.failed(&error))?;
            self.spare = bytes;
            return Ok(());
        }
        let is_sent = self.thread.as_ref().is_some_and(|thread| thread.buffers.send(bytes).is_ok());
        if is_sent { Ok(()) } else { self.stop().and(Err(self.ended())) }
    }

    /// Waits until all bytes are written. Returns the destination.
    pub(crate) fn finish(mut self) -> Result<Destination, Failure> {
        match self.direct.take() {
            Some(out) => Ok(out),
            None => self.stop(),
        }
    }

    fn stop(&mut self) -> Result<Destination, Failure> {
        let Some(WritingThread { buffers, thread, .. }) = self.thread.take() else {
            return Err(self.ended());
        };
        drop(buffers);
        match thread.join() {
            Ok((out, Ok(()))) => Ok(out),
            Ok((out, Err(error))) => Err(out.failed(&error)),
            Err(_) => Err(self.ended()),
        }
    }

    fn ended(&self) -> Failure {
        Failure::new(Exit::Failed, format_args!("write: {self}: stopped before its end"))
    }
}

/// Writes the queued buffers even if an error ends the work on the rest.
impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The name of the destination.
impl fmt::Display for BackgroundWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Writes incoming buffers until the last one, or until one cannot be written.
fn write_all(
    mut out: Destination,
    buffers: &Receiver<Vec<u8>>,
    back: &mpsc::Sender<Vec<u8>>,
) -> (Destination, io::Result<()>) {
    while let Ok(mut buffer) = buffers.recv() {
        if let Err(error) = out.write_all(&buffer) {
            return (out, Err(error));
        }
        buffer.clear();
        // The last buffer is not received.
        let _ = back.send(buffer);
    }
    (out, Ok(()))
}
