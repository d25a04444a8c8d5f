use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use widestring::U16CStr;
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};

/// A process of this machine.
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// The name of its program's file.
    pub(crate) program: String,
}

/// Returns all processes, by rising pid.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    // SAFETY: no pointers are involved.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just created this handle, it is valid, and it is not owned elsewhere.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let size = u32::try_from(size_of::<PROCESSENTRY32W>()).unwrap_or(0);
    let mut entry = PROCESSENTRY32W { dwSize: size, ..PROCESSENTRY32W::default() };
    let mut processes = Vec::new();
    // SAFETY: the handle is open, and `entry` is a live structure that states its own size.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let program = U16CStr::from_slice_truncate(&entry.szExeFile);
        let program = program.map(U16CStr::to_string_lossy).unwrap_or_default();
        processes.push(Process { pid: entry.th32ProcessID, program });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    processes.sort_unstable_by_key(|process| process.pid);
    Ok(processes)
}
