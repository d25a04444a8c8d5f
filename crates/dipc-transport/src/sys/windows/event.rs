use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, SetEvent, WaitForMultipleObjects, WaitForSingleObject,
};

use crate::Deadline;
use crate::cancel::Wake;

/// An event object, which threads can wait for.
#[derive(Debug)]
pub(super) struct Event(OwnedHandle);

/// The result of a wait.
pub(super) enum Woken {
    First,
    Second,
    TimeOut,
}

impl Event {
    /// Creates an event that stays set until it is reset, as overlapped operations need it.
    pub(super) fn manual_reset() -> io::Result<Self> {
        Self::new(true)
    }

    /// Creates an event that is reset by the wait it ends.
    pub(super) fn auto_reset() -> io::Result<Self> {
        Self::new(false)
    }

    fn new(manual_reset: bool) -> io::Result<Self> {
        // SAFETY: null means default security and no name; nothing is borrowed.
        let handle = unsafe { CreateEventW(ptr::null(), manual_reset.into(), 0, ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just created this handle, it is valid, and it is not owned elsewhere.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// Waits until it is set or the deadline has passed.
    pub(super) fn wait(&self, deadline: Deadline) -> io::Result<()> {
        // SAFETY: the handle is open, being borrowed.
        match unsafe { WaitForSingleObject(self.raw(), milliseconds(deadline)) } {
            WAIT_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Waits for either of two events; returns the first if both are set.
    pub(super) fn wait_either(&self, other: &Self, deadline: Deadline) -> io::Result<Woken> {
        let handles = [self.raw(), other.raw()];
        // SAFETY: both handles are open, being borrowed, and the array holds as many as stated.
        let result = unsafe { WaitForMultipleObjects(2, handles.as_ptr(), 0, milliseconds(deadline)) };
        match result {
            WAIT_OBJECT_0 => Ok(Woken::First),
            WAIT_FAILED => Err(io::Error::last_os_error()),
            result if result == WAIT_OBJECT_0 + 1 => Ok(Woken::Second),
            _ => Ok(Woken::TimeOut),
        }
    }
}

impl Wake for Event {
    fn wake(&self) {
        // SAFETY: the handle is open, being borrowed. Setting an event of ours cannot fail.
        unsafe { SetEvent(self.raw()) };
    }
}

/// Returns the remaining time, rounded up so that a wait does not end before its deadline. A wait longer than
/// `u32` allows is repeated.
pub(super) fn milliseconds(deadline: Deadline) -> u32 {
    let Some(left) = deadline.remaining() else { return INFINITE };
    let rounded = left.saturating_add(Duration::from_nanos(999_999)).as_millis();
    u32::try_from(rounded).unwrap_or(INFINITE).min(INFINITE - 1)
}
