use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::OwnedHandle;
use std::time::{Duration, Instant};

use widestring::U16CString;
use windows_sys::Win32::Foundation::{ERROR_PIPE_BUSY, ERROR_SEM_TIMEOUT};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_OVERLAPPED, SECURITY_IDENTIFICATION};
use windows_sys::Win32::System::Pipes::WaitNamedPipeW;

use super::pipe::{End, Pipe, has_code};
use super::stream::Stream;
use crate::{Address, Deadline, Error, Operation, PeerCheck};

/// Maximum wait for a busy pipe before its existence is checked again.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn connect(address: &Address, check: PeerCheck, deadline: Deadline) -> Result<Stream, Error> {
    match address {
        Address::Pipe(_) => {
            let handle = open(address, check, deadline)?;
            let pipe = Pipe::new(handle, End::Client).map_err(|reason| connect_error(reason, address))?;
            Ok(Stream::Pipe(pipe))
        }
        Address::Tcp(_) | Address::Unix(_) => {
            Err(Error::Unsupported { operation: Operation::Connect, address: address.clone() })
        }
    }
}

/// Repeats the attempt while all instances of the pipe are busy.
fn open(address: &Address, check: PeerCheck, deadline: Deadline) -> Result<OwnedHandle, Error> {
    let path = address.to_string();
    let name = wide(&path).map_err(|reason| connect_error(reason, address))?;
    let started = Instant::now();
    loop {
        let error = match OpenOptions::new()
            .read(true)
            .write(true)
            .share_mode(0)
            .custom_flags(FILE_FLAG_OVERLAPPED)
            // A planted server may identify this user, but not impersonate it.
            .security_qos_flags(SECURITY_IDENTIFICATION)
            .open(&path)
        {
            Ok(file) => return Ok(file.into()),
            Err(error) => error,
        };
        if !has_code(&error, ERROR_PIPE_BUSY) {
            return Err(connect_error(error, address));
        }
        if deadline.is_over() {
            let (operation, after) = (Operation::Connect, started.elapsed());
            return Err(Error::timed_out(operation, address.clone(), after, check.pid()));
        }
        wait_for_instance(&name, deadline.min(Deadline::after(BUSY_PAUSE)));
    }
}

/// Returns whether a pipe of this name exists, without connecting to it.
pub(crate) fn pipe_exists(name: &str) -> bool {
    wide(&Address::Pipe(name.to_owned()).to_string()).is_ok_and(|name| exists(&name))
}

pub(super) fn exists(name: &U16CString) -> bool {
    wait_for_instance(name, Deadline::after(Duration::ZERO))
        || has_code(&io::Error::last_os_error(), ERROR_SEM_TIMEOUT)
}

/// Waits until the deadline for a free instance, and returns true if an instance is free.
fn wait_for_instance(name: &U16CString, deadline: Deadline) -> bool {
    // 0 would mean a server-defined time.
    let milliseconds = super::event::milliseconds(deadline).max(1);
    // SAFETY: the name ends in NUL and lives until the call returns.
    unsafe { WaitNamedPipeW(name.as_ptr(), milliseconds) != 0 }
}

pub(super) fn wide(text: &str) -> io::Result<U16CString> {
    U16CString::from_str(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

fn connect_error(reason: io::Error, address: &Address) -> Error {
    let address = address.clone();
    let operation = Operation::Connect;
    match reason.kind() {
        io::ErrorKind::NotFound => Error::NoSocket { address },
        io::ErrorKind::PermissionDenied => {
            Error::PermissionDenied { operation, path: address.to_string().into() }
        }
        _ => Error::Io { operation, address, reason },
    }
}
