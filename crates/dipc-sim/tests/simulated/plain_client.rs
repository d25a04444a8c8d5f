//! A client that sends one request and returns all received bytes, valid or not.

use dipc_sim::Runtime;
use dipc_transport::{Connection, Deadline, Error, PeerCheck};
use dipc_wire::{
    CollectTracing2, Command, DecodeError, Feed, Format, Keywords, Level, Message, MessageReader,
    ProviderConfig, ServerError, SessionId, StopTracing, decode_reply,
};
use std::time::Duration;

/// A deadline for bytes that are sure to arrive, on a busy machine.
pub(crate) fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

/// A deadline for bytes that must not arrive. A shorter one could hide a fault of the server, but cannot fail
/// without a fault.
pub(crate) fn moment() -> Deadline {
    Deadline::after(Duration::from_millis(150))
}

pub(crate) fn connect(runtime: &Runtime) -> Connection {
    let own = PeerCheck::Process { pid: std::process::id(), uid: effective_uid() };
    Connection::connect(&runtime.address(), own, patience()).unwrap()
}

/// Returns the user of this process.
fn effective_uid() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// A reply, and the connection with the bytes after the reply.
pub(crate) struct Answer {
    pub(crate) message: Message,
    pub(crate) connection: Connection,
    pub(crate) behind: Vec<u8>,
}

/// The reason for a missing reply.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    Decode(DecodeError),
    Transport(Error),
    /// The connection ended, after this many bytes.
    End(usize),
}

/// Sends bytes and reads a reply.
pub(crate) fn send(runtime: &Runtime, request: &[u8], deadline: Deadline) -> Result<Answer, NoAnswer> {
    Peer(connect(runtime)).send(request, deadline)
}

/// The client's side of a connection.
pub(crate) struct Peer(pub(crate) Connection);

impl Peer {
    pub(crate) fn send(self, request: &[u8], deadline: Deadline) -> Result<Answer, NoAnswer> {
        let Self(mut connection) = self;
        connection.write_all(request, deadline).map_err(NoAnswer::Transport)?;
        let mut reader = MessageReader::new();
        let mut buffer = [0; 1000];
        let mut total = 0;
        loop {
            let count = connection.read(&mut buffer, deadline).map_err(NoAnswer::Transport)?;
            if count == 0 {
                return Err(NoAnswer::End(total));
            }
            total += count;
            match reader.feed(&buffer[..count]).map_err(NoAnswer::Decode)? {
                Feed::NeedMore(_) => {}
                Feed::Message { message, used } => {
                    return Ok(Answer { message, connection, behind: buffer[used..count].to_vec() });
                }
            }
        }
    }
}

/// Sends a command and decodes its reply.
pub(crate) fn ask<C: Command>(runtime: &Runtime, command: &C) -> Result<C::Reply, ServerError> {
    let answer = send(runtime, &command.to_bytes().unwrap(), patience()).unwrap();
    decode_reply::<C>(&answer.message).unwrap()
}

impl Answer {
    /// Returns all bytes after the reply, up to the end of the connection.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        let mut buffer = [0; 8192];
        loop {
            match self.connection.read(&mut buffer, patience()) {
                Ok(0) => return self.behind,
                Ok(count) => self.behind.extend(&buffer[..count]),
                // A connection cut by a dying process may end either way.
                Err(error) if error.is_disconnected() => return self.behind,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns true if the other side has closed the connection, or closes it soon.
    pub(crate) fn is_closed(&mut self, deadline: Deadline) -> bool {
        match self.connection.read(&mut [0; 100], deadline) {
            Ok(0) => true,
            Ok(count) => panic!("{count} bytes behind the reply"),
            Err(error) if error.is_timeout() => false,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn collect() -> CollectTracing2 {
    let provider = ProviderConfig {
        keywords: Keywords(1),
        level: Level::INFORMATIONAL,
        name: "Microsoft-Windows-DotNETRuntime".into(),
        arguments: String::new(),
    };
    CollectTracing2 {
        buffer_mb: 64,
        format: Format::NETTRACE,
        request_rundown: true,
        providers: vec![provider],
    }
}

/// Starts a session, and reads only the bytes of its stream that arrived with the reply.
pub(crate) fn start_session(runtime: &Runtime) -> (SessionId, Answer) {
    let answer = send(runtime, &collect().to_bytes().unwrap(), patience()).unwrap();
    (decode_reply::<CollectTracing2>(&answer.message).unwrap().unwrap(), answer)
}

/// Stops a session while another thread reads its stream.
pub(crate) fn stop(runtime: &Runtime, id: SessionId) {
    assert_eq!(ask(runtime, &StopTracing { session: id }), Ok(id));
}

/// Returns pseudo-random bytes.
pub(crate) fn recording(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}
