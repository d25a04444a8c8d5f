use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr;

use widestring::U16CStr;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    GetTokenInformation, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::connect::wide;

/// A security descriptor with access for the user of this process only.
#[derive(Debug)]
pub(super) struct OnlyThisUser(Local<core::ffi::c_void>);

/// Memory that a system function allocated.
#[derive(Debug)]
struct Local<T>(*mut T);

// SAFETY: the memory has one owner, and nothing writes to it after it was made.
unsafe impl<T> Send for Local<T> {}
// SAFETY: as above: it is only read.
unsafe impl<T> Sync for Local<T> {}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is the result of a function that requires freeing with this one, and is not
        // owned elsewhere.
        unsafe { LocalFree(self.0.cast()) };
    }
}

impl OnlyThisUser {
    pub(super) fn new() -> io::Result<Self> {
        // No inherited entries; all access, for one user.
        let text = wide(&format!("D:P(A;;GA;;;{})", current_user()?))?;
        let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
        // SAFETY: the text ends in NUL, and `descriptor` is a live pointer for the result; the size is not
        // requested.
        let ok = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        if ok == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(Local(descriptor)))
    }

    /// Returns the attributes for functions that create objects, valid while `self` is. The handle is not
    /// inherited.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        let length = u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or(0);
        SECURITY_ATTRIBUTES { nLength: length, lpSecurityDescriptor: self.0.0, bInheritHandle: 0 }
    }
}

/// Returns the SID of the user as text: `S-1-5-21-…`.
fn current_user() -> io::Result<String> {
    let mut token = ptr::null_mut();
    // SAFETY: the first argument is a constant that stands for this process, the last a live pointer for the
    // result.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just created this handle, it is valid, and it is not owned elsewhere.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // A SID has at most 68 bytes and follows the structure. `u64`, for the alignment of the pointer in it.
    let mut buffer = [0_u64; 32];
    let capacity = u32::try_from(size_of_val(&buffer)).unwrap_or(0);
    let mut length = 0;
    // SAFETY: the handle is open, and `capacity` bytes of the buffer are writable.
    let ok = unsafe {
        let raw = token.as_raw_handle();
        GetTokenInformation(raw, TokenUser, buffer.as_mut_ptr().cast(), capacity, &raw mut length)
    };
    if ok == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written a `TOKEN_USER` to the start of the buffer, which is aligned for it.
    let sid = unsafe { buffer.as_ptr().cast::<TOKEN_USER>().read() }.User.Sid;
    let mut text = ptr::null_mut();
    // SAFETY: the SID lies in the buffer, which still lives; `text` is a live pointer for the result.
    if unsafe { ConvertSidToStringSidW(sid, &raw mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let text = Local(text);
    // SAFETY: the function returns a NUL-terminated string; it is copied before `text` is freed.
    Ok(unsafe { U16CStr::from_ptr_str(text.0) }.to_string_lossy())
}
