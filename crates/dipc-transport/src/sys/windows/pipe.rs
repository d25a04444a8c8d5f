use std::io;
use std::mem;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_IO_PENDING, ERROR_MORE_DATA, ERROR_NO_DATA, ERROR_PIPE_CONNECTED,
    ERROR_PIPE_NOT_CONNECTED, HANDLE,
};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, DisconnectNamedPipe, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId,
    PeekNamedPipe,
};
use windows_sys::core::BOOL;

use super::event::{Event, Woken};
use crate::cancel::{Canceller, Interruption};
use crate::{Deadline, PeerCredentials};

/// Maximum size of a single write. The system copies bytes that the reader does not take at once, and a
/// cancelled write takes all of them back.
const WRITE_LIMIT: u32 = 64 << 10;

/// One end of a named pipe that was opened for overlapped operations.
#[derive(Debug)]
pub(crate) struct Pipe {
    handle: OwnedHandle,
    end: End,
    done: Event,
    cancel: Arc<Event>,
    canceller: Canceller,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

impl Pipe {
    pub(super) fn new(handle: OwnedHandle, end: End) -> io::Result<Self> {
        let cancel = Arc::new(Event::auto_reset()?);
        let canceller = Canceller::new(cancel.clone());
        Ok(Self { handle, end, done: Event::manual_reset()?, cancel, canceller })
    }

    /// Replaces this instance with a new instance, and returns the old one as a connection.
    pub(super) fn hand_over(&mut self, next: OwnedHandle) -> io::Result<Self> {
        Self::new(mem::replace(&mut self.handle, next), self.end)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Interruption> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let start = |handle, overlapped| {
            // SAFETY: the handle is open, `length` bytes of the buffer are writable, and `perform` returns
            // only when the operation has ended, so that buffer and `overlapped` outlive it. No count is
            // requested here.
            unsafe { ReadFile(handle, buffer.as_mut_ptr(), length, ptr::null_mut(), overlapped) }
        };
        match self.perform(deadline, start) {
            // A reader gets either error after the peer has closed, whether or not it disconnected before.
            Err(Interruption::Failed(error))
                if has_code(&error, ERROR_BROKEN_PIPE) || has_code(&error, ERROR_PIPE_NOT_CONNECTED) =>
            {
                Ok(0)
            }
            result => result,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<usize, Interruption> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(WRITE_LIMIT);
        let start = |handle, overlapped| {
            // SAFETY: the handle is open, `length` bytes are readable, and `perform` returns only when the
            // operation has ended, so that bytes and `overlapped` outlive it. No count is requested here.
            unsafe { WriteFile(handle, bytes.as_ptr(), length, ptr::null_mut(), overlapped) }
        };
        match self.perform(deadline, start) {
            Ok(0) if length > 0 => Err(Interruption::Failed(io::ErrorKind::WriteZero.into())),
            Err(Interruption::Failed(error))
                if [ERROR_BROKEN_PIPE, ERROR_PIPE_NOT_CONNECTED, ERROR_NO_DATA]
                    .iter()
                    .any(|&code| has_code(&error, code)) =>
            {
                Err(Interruption::Failed(io::ErrorKind::BrokenPipe.into()))
            }
            result => result,
        }
    }

    /// Waits until a client has opened this server's end.
    pub(super) fn await_client(&mut self, deadline: Deadline) -> Result<(), Interruption> {
        loop {
            let start = |handle, overlapped| {
                // SAFETY: the handle is open, and `perform` returns only when the operation has ended.
                unsafe { ConnectNamedPipe(handle, overlapped) }
            };
            match self.perform(deadline, start) {
                Err(Interruption::Failed(error)) if has_code(&error, ERROR_PIPE_CONNECTED) => return Ok(()),
                // The client has connected and already closed.
                Err(Interruption::Failed(error)) if has_code(&error, ERROR_NO_DATA) => {
                    // SAFETY: the handle is open.
                    unsafe { DisconnectNamedPipe(self.raw()) };
                }
                result => return result.map(|_| ()),
            }
        }
    }

    /// Starts one overlapped operation and waits for its end; at the deadline or on a cancel it is cancelled.
    ///
    /// Never returns before the system has released the buffers that `start` passed to it.
    fn perform(
        &self,
        deadline: Deadline,
        start: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
    ) -> Result<usize, Interruption> {
        if self.canceller.is_cancelled() {
            return Err(Interruption::Cancelled);
        }
        let started = Instant::now();
        let mut overlapped = OVERLAPPED { hEvent: self.done.raw(), ..OVERLAPPED::default() };
        let overlapped = &raw mut overlapped;
        if start(self.raw(), overlapped) == 0 {
            let error = io::Error::last_os_error();
            if has_code(&error, ERROR_MORE_DATA) {
                return self.result(overlapped).map_err(Interruption::Failed);
            }
            if !has_code(&error, ERROR_IO_PENDING) {
                return Err(Interruption::Failed(error));
            }
        }
        let Err(interruption) = self.wait(deadline, started) else {
            return self.result(overlapped).map_err(Interruption::Failed);
        };
        // SAFETY: the handle is open, and `overlapped` is the operation that was started on it. If it has
        // ended meanwhile nothing is cancelled, and its result is returned.
        unsafe { CancelIoEx(self.raw(), overlapped) };
        self.result(overlapped).map_err(|_| interruption)
    }

    fn wait(&self, deadline: Deadline, started: Instant) -> Result<(), Interruption> {
        loop {
            match self.done.wait_either(&self.cancel, deadline).map_err(Interruption::Failed)? {
                Woken::First => return Ok(()),
                Woken::Second if self.canceller.is_cancelled() => return Err(Interruption::Cancelled),
                Woken::TimeOut if deadline.is_over() => {
                    return Err(Interruption::TimedOut(started.elapsed()));
                }
                Woken::Second | Woken::TimeOut => {}
            }
        }
    }

    /// Waits for the end of an operation and returns the number of bytes that it moved.
    fn result(&self, overlapped: *mut OVERLAPPED) -> io::Result<usize> {
        let mut count = 0;
        // SAFETY: the handle is open, `overlapped` belongs to an operation that was started on it, and
        // `count` is a live integer.
        let ok = unsafe { GetOverlappedResult(self.raw(), overlapped, &raw mut count, 1) };
        if ok == 0 {
            let error = io::Error::last_os_error();
            if !has_code(&error, ERROR_MORE_DATA) {
                return Err(error);
            }
        }
        Ok(count as usize)
    }

    /// Returns whether bytes can be read (`false`: the peer has closed), without reading them.
    pub(super) fn has_bytes(&self) -> io::Result<bool> {
        let mut available = 0;
        let none = ptr::null_mut();
        // SAFETY: the handle is an open pipe's, `available` is a live integer, and nothing else is requested.
        let ok = unsafe { PeekNamedPipe(self.raw(), none, 0, none.cast(), &raw mut available, none.cast()) };
        if ok != 0 {
            return if available > 0 { Ok(true) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let error = io::Error::last_os_error();
        if has_code(&error, ERROR_BROKEN_PIPE) || has_code(&error, ERROR_PIPE_NOT_CONNECTED) {
            return Ok(false);
        }
        Err(error)
    }

    /// Returns the process of the peer. Windows does not number users.
    pub(super) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        let mut pid = 0;
        // SAFETY: the handle is an open pipe's, and `pid` is a live integer.
        let ok = unsafe {
            match self.end {
                End::Client => GetNamedPipeServerProcessId(self.raw(), &raw mut pid),
                End::Server => GetNamedPipeClientProcessId(self.raw(), &raw mut pid),
            }
        };
        if ok == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(PeerCredentials { pid: (pid != 0).then_some(pid), uid: None, gid: None })
    }

    pub(super) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    pub(super) fn renew_canceller(&mut self) {
        self.canceller = self.canceller.renewed();
    }

    fn raw(&self) -> HANDLE {
        self.handle.as_raw_handle()
    }
}

pub(super) fn has_code(error: &io::Error, code: u32) -> bool {
    error.raw_os_error().and_then(|raw| u32::try_from(raw).ok()) == Some(code)
}
