use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use mio::Interest;
use mio::net::TcpListener;
use widestring::U16CString;
use windows_sys::Win32::Foundation::{ERROR_PIPE_BUSY, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE,
    PIPE_UNLIMITED_INSTANCES, PIPE_WAIT,
};

use super::connect::{exists, wide};
use super::pipe::{End, Pipe, has_code};
use super::security::OnlyThisUser;
use super::stream::Stream;
use crate::cancel::{Canceller, Interruption};
use crate::readiness::Readiness;
use crate::{Address, Deadline, Error, Operation, TcpAddress};

/// The size of the system's buffer for each direction, as in a runtime's pipe.
const BUFFER: u32 = 16 << 10;

/// A listener with its means of waiting for clients.
#[derive(Debug)]
pub(crate) enum Acceptor {
    Pipe(PipeServer),
    Tcp { listener: TcpListener, readiness: Readiness },
}

/// A named pipe: its instance for the next client.
#[derive(Debug)]
pub(crate) struct PipeServer {
    name: U16CString,
    security: OnlyThisUser,
    next: Pipe,
}

impl Acceptor {
    /// Listens, and returns the bound address as well: TCP port 0 is replaced by the port that the system
    /// chose.
    pub(crate) fn bind(address: &Address) -> Result<(Self, Address), Error> {
        let operation = Operation::Listen;
        match address {
            Address::Pipe(_) => match PipeServer::bind(&address.to_string()) {
                Ok(server) => Ok((Self::Pipe(server), address.clone())),
                Err(reason) => Err(listen_error(reason, address)),
            },
            Address::Tcp(tcp) => Self::bind_tcp(*tcp).map_err(|reason| listen_error(reason, address)),
            Address::Unix(_) => Err(Error::Unsupported { operation, address: address.clone() }),
        }
    }

    fn bind_tcp(address: TcpAddress) -> io::Result<(Self, Address)> {
        let mut listener = TcpListener::bind(address.socket_address())?;
        let bound = Address::Tcp(TcpAddress::anywhere(listener.local_addr()?));
        let readiness = Readiness::new(&mut listener, Interest::READABLE)?;
        Ok((Self::Tcp { listener, readiness }, bound))
    }

    pub(crate) fn accept(&mut self, deadline: Deadline) -> Result<Stream, Interruption> {
        match self {
            Self::Pipe(server) => server.accept(deadline).map(Stream::Pipe),
            Self::Tcp { listener, readiness } => {
                let mut stream = readiness.retry(deadline, || {
                    loop {
                        let (stream, _) = listener.accept()?;
                        // It fails for a client that has already disconnected; others may be waiting in the
                        // queue.
                        if stream.set_nodelay(true).is_ok() {
                            return Ok(stream);
                        }
                    }
                })?;
                let readiness = Readiness::new(&mut stream, Interest::READABLE | Interest::WRITABLE)
                    .map_err(Interruption::Failed)?;
                Ok(Stream::Tcp { stream, readiness })
            }
        }
    }

    pub(crate) fn canceller(&self) -> Canceller {
        match self {
            Self::Pipe(server) => server.next.canceller(),
            Self::Tcp { readiness, .. } => readiness.canceller(),
        }
    }
}

impl PipeServer {
    fn bind(path: &str) -> io::Result<Self> {
        let name = wide(path)?;
        // The flag below checks it as well, and without a race, but Wine ignores it.
        if exists(&name) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let security = OnlyThisUser::new()?;
        let next = Pipe::new(instance(&name, &security, FILE_FLAG_FIRST_PIPE_INSTANCE)?, End::Server)?;
        Ok(Self { name, security, next })
    }

    fn accept(&mut self, deadline: Deadline) -> Result<Pipe, Interruption> {
        self.next.await_client(deadline)?;
        // Before the old instance is returned, so that the name is never free for others.
        let handle = instance(&self.name, &self.security, 0).map_err(Interruption::Failed)?;
        self.next.hand_over(handle).map_err(Interruption::Failed)
    }
}

/// Creates an instance of the pipe, for one client of this machine and this user.
fn instance(name: &U16CString, security: &OnlyThisUser, flags: u32) -> io::Result<OwnedHandle> {
    let mode = PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS;
    let access = PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | flags;
    let attributes = security.attributes();
    // SAFETY: the name ends in NUL, and the attributes point to a descriptor that `security` keeps; both live
    // until the call returns.
    let handle = unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            access,
            mode,
            PIPE_UNLIMITED_INSTANCES,
            BUFFER,
            BUFFER,
            0,
            &raw const attributes,
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just created this handle, it is valid, and it is not owned elsewhere.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Converts an error. "Access denied" means that another process has the first instance of the name.
fn listen_error(reason: io::Error, address: &Address) -> Error {
    let address = address.clone();
    match reason.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Error::InUse { address },
        _ if has_code(&reason, ERROR_PIPE_BUSY) => Error::InUse { address },
        _ => Error::Io { operation: Operation::Listen, address, reason },
    }
}
