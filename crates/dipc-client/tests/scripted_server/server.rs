//! A server that follows a script.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dipc_client::dipc_transport::{Connection, Listener};
use dipc_client::dipc_wire::{CommandId, Feed, HResult, Message, MessageReader, Request, encode_error};
use dipc_client::{Canceller, Deadline, SessionId, Target, Timeouts};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that uses all of it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const SHORT: Duration = Duration::from_millis(50);
pub(crate) const ID: SessionId = SessionId(0x7f00_dead_0000);

pub(crate) fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

/// A listening thread that passes each request to a script, with its connection.
pub(crate) struct Server {
    folder: TempDir,
    seen: Receiver<CommandId>,
    canceller: Canceller,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(mut script: impl FnMut(Request, Connection) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut listener = Listener::bind(folder.path().join("socket")).unwrap();
        let canceller = listener.canceller();
        let (sender, seen) = channel();
        let thread = thread::spawn(move || {
            while let Ok(mut connection) = listener.accept(Deadline::never()) {
                let Some(message) = receive(&mut connection) else { continue };
                let request = Request::decode(&message).unwrap();
                sender.send(request.command()).unwrap();
                script(request, connection);
            }
        });
        Self { folder, seen, canceller, thread: Some(thread) }
    }

    /// Answers every command with the same bytes.
    pub(crate) fn answering(bytes: Vec<u8>) -> Self {
        Self::start(move |_, mut connection| connection.write_all(&bytes, patient()).unwrap())
    }

    pub(crate) fn target(&self) -> Target {
        Target::from_path(self.folder.path().join("socket"))
    }

    pub(crate) fn target_with(&self, timeouts: Timeouts) -> Target {
        self.target().with_timeouts(timeouts)
    }

    /// Asserts that exactly these commands have arrived so far.
    pub(crate) fn assert_seen(&self, expected: &[CommandId]) {
        assert_eq!(self.seen.try_iter().collect::<Vec<_>>(), expected);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.canceller.cancel();
        let result = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(result, Some(Ok(()))), "the server failed");
        }
    }
}

/// Receives a whole command; `None` from a client that only checked who listens.
fn receive(connection: &mut Connection) -> Option<Message> {
    let (mut reader, mut buffer) = (MessageReader::new(), [0; 4096]);
    loop {
        let count = connection.read(&mut buffer, patient()).unwrap();
        if count == 0 {
            assert!(!reader.is_within_message(), "a client sends whole commands");
            return None;
        }
        if let Feed::Message { message, used } = reader.feed(&buffer[..count]).unwrap() {
            assert_eq!(used, count, "a client sends nothing behind its command");
            return Some(message);
        }
    }
}

pub(crate) fn reply(connection: &mut Connection, bytes: &[u8]) {
    connection.write_all(bytes, patient()).unwrap();
}

pub(crate) fn refuse(connection: &mut Connection) {
    reply(connection, &encode_error(HResult::UNKNOWN_COMMAND));
}

/// The requests that a server receives if it agrees to everything.
pub(crate) fn sent_by(act: impl FnOnce(&Target), reply_with: Vec<u8>) -> Vec<Request> {
    let (sender, receiver) = channel();
    let server = Server::start(move |request, mut connection| {
        sender.send(request).unwrap();
        reply(&mut connection, &reply_with);
    });
    act(&server.target());
    drop(server);
    receiver.iter().collect()
}
