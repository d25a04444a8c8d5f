use std::io::{self, Read, Write};

use mio::net::TcpStream;

use super::pipe::Pipe;
use crate::cancel::{Canceller, Interruption};
use crate::readiness::Readiness;
use crate::{Deadline, PeerCredentials};

/// A connection with its means of waiting.
#[derive(Debug)]
pub(crate) enum Stream {
    Pipe(Pipe),
    Tcp { stream: TcpStream, readiness: Readiness },
}

impl Stream {
    pub(crate) fn tcp(stream: TcpStream, readiness: Readiness) -> Self {
        Self::Tcp { stream, readiness }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Interruption> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer, deadline),
            Self::Tcp { stream, readiness } => readiness.retry(deadline, || stream.read(buffer)),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<usize, Interruption> {
        match self {
            Self::Pipe(pipe) => pipe.write(bytes, deadline),
            Self::Tcp { stream, readiness } => readiness.retry(deadline, || match stream.write(bytes)? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                count => Ok(count),
            }),
        }
    }

    pub(crate) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        match self {
            Self::Pipe(pipe) => pipe.peer_credentials(),
            Self::Tcp { .. } => Ok(PeerCredentials { pid: None, uid: None, gid: None }),
        }
    }

    pub(crate) fn canceller(&self) -> Canceller {
        match self {
            Self::Pipe(pipe) => pipe.canceller(),
            Self::Tcp { readiness, .. } => readiness.canceller(),
        }
    }

    pub(crate) fn renew_canceller(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.renew_canceller(),
            Self::Tcp { readiness, .. } => readiness.renew_canceller(),
        }
    }
}
