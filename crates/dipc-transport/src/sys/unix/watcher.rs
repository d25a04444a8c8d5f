use std::io;
use std::sync::Arc;

use mio::event::{Event, Source};
use mio::{Events, Interest, Poll, Token, Waker};

use super::stream::Socket;
use crate::Deadline;
use crate::cancel::Canceller;

/// A poll of many sockets for bytes to read.
#[derive(Debug)]
pub(crate) struct Watcher {
    poll: Poll,
    events: Events,
    canceller: Canceller,
}

const CANCEL: Token = Token(usize::MAX);

/// The number of events that one system call returns.
const AT_ONCE: usize = 256;

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let canceller = Canceller::new(Arc::new(Waker::new(poll.registry(), CANCEL)?));
        Ok(Self { poll, events: Events::with_capacity(AT_ONCE), canceller })
    }

    pub(crate) fn add(&mut self, token: usize, socket: &mut Socket) -> io::Result<()> {
        socket.register(self.poll.registry(), Token(token), Interest::READABLE)
    }

    pub(crate) fn remove(&mut self, _token: usize, socket: &mut Socket) {
        // It fails only for a socket that is not watched.
        let _ = socket.deregister(self.poll.registry());
    }

    /// Waits until bytes can be read, the deadline passes or the wait is cancelled. A signal ends the wait
    /// early.
    pub(crate) fn wait(&mut self, deadline: Deadline, ready: &mut Vec<usize>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, deadline.remaining()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let tokens = self.events.iter().map(Event::token).filter(|&token| token != CANCEL);
        ready.extend(tokens.map(|Token(token)| token));
        Ok(())
    }

    pub(crate) fn canceller(&self) -> &Canceller {
        &self.canceller
    }
}
