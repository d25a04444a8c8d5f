//! The kernel's interface, and all unsafe code of this crate: opening events, their settings, the memory of
//! their buffers, the start of a process, and the requests to stop threads.

#![allow(unsafe_code)]

// The fuzz target has this file as a module by its path, whose modules are searched for beside it.
#[path = "sys/bpf.rs"]
pub(crate) mod bpf;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::attributes::EventAttributes;

/// The event is closed on `exec`.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// The process id is the descriptor of a cgroup's folder.
const FLAG_PID_CGROUP: libc::c_ulong = 4;

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
/// Direction and size are part of a request's number; an identifier has 8 bytes.
const IOC_ID: libc::c_ulong = 0x8008_2407;
/// Of `user_events_data`; the size in the number is that of a pointer.
const IOC_REGISTER: libc::c_ulong = 0xc008_2a00;
const IOC_UNREGISTER: libc::c_ulong = 0x4008_2a02;

/// The tasks for which events are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tasks<'a> {
    /// One thread.
    Thread(i32),
    /// All threads of the machine that run on a processor.
    All,
    /// The threads of a cgroup, by folder.
    Cgroup(BorrowedFd<'a>),
}

/// Opens an event of these tasks on a processor.
pub(crate) fn open_event(attributes: &EventAttributes, tasks: Tasks<'_>, cpu: i32) -> io::Result<OwnedFd> {
    let (id, flags) = match tasks {
        Tasks::Thread(tid) => (tid, FLAG_FD_CLOEXEC),
        Tasks::All => (-1, FLAG_FD_CLOEXEC),
        Tasks::Cgroup(folder) => (folder.as_raw_fd(), FLAG_FD_CLOEXEC | FLAG_PID_CGROUP),
    };
    let words = attributes.as_words();
    // SAFETY: the kernel reads the attributes, which state their own size, and keeps no reference to them.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, words.as_ptr(), id, cpu, -1, flags) };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has the process of a command send its number to `pids` before it runs the program, and wait for a byte
/// from `permission`. `writer` is the other end of that pipe. All are open until the command has been used,
/// once.
pub(crate) fn wait_before_exec(command: &mut Command, pids: RawFd, permission: RawFd, writer: RawFd) {
    let wait = move || {
        let mut byte = 0_u8;
        // SAFETY: the calls are allowed between fork and exec. Descriptors are copies of this process, valid
        // or refused by the kernel, and both buffers are local values of the stated lengths.
        let received = unsafe {
            let pid: [u8; 4] = libc::getpid().to_ne_bytes();
            libc::write(pids, pid.as_ptr().cast(), pid.len());
            // If the other process ends, no writer is left, and the wait is over.
            libc::close(writer);
            loop {
                let received = libc::read(permission, (&raw mut byte).cast(), 1);
                if received >= 0 || *libc::__errno_location() != libc::EINTR {
                    break received;
                }
            }
        };
        if received == 1 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ECANCELED)) }
    };
    // SAFETY: the closure allocates nothing, takes no locks and calls only functions that may be called
    // between fork and exec.
    unsafe { command.pre_exec(wait) };
}

fn control(event: BorrowedFd<'_>, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the requests passed to this function take a number, not a pointer.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, IOC_ENABLE, 0)
}

pub(crate) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, IOC_DISABLE, 0)
}

/// Redirects an event to the buffer of another event of the same processor.
pub(crate) fn set_output(event: BorrowedFd<'_>, buffer_of: BorrowedFd<'_>) -> io::Result<()> {
    let fd = libc::c_ulong::try_from(buffer_of.as_raw_fd()).unwrap_or(libc::c_ulong::MAX);
    control(event, IOC_SET_OUTPUT, fd)
}

/// Returns the identifier that the samples of an event carry.
pub(crate) fn event_id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the request writes the 8 bytes of `id`, which outlives the call.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ID as _, &raw mut id) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// A tracepoint of user_events that is registered for this program.
#[derive(Debug)]
pub(crate) struct RegisteredEvent {
    data: OwnedFd,
    /// The kernel sets its lowest bit while the tracepoint is used.
    enabled: Box<AtomicU64>,
}

impl RegisteredEvent {
    /// Registers a tracepoint by its declaration.
    pub(crate) fn new(data: BorrowedFd<'_>, declaration: &CStr) -> io::Result<Self> {
        let enabled = Box::new(AtomicU64::new(0));
        let (place, text) = (enabled.as_ptr() as u64, declaration.as_ptr() as u64);
        let mut request = [0_u8; 28];
        let parts: [(usize, &[u8]); 4] = [
            (0, &28_u32.to_ne_bytes()),
            // The lowest bit of 8 bytes.
            (4, &[0, 8]),
            (8, &place.to_ne_bytes()),
            (16, &text.to_ne_bytes()),
        ];
        for (at, bytes) in parts {
            request.iter_mut().skip(at).zip(bytes).for_each(|(to, byte)| *to = *byte);
        }
        let data = data.try_clone_to_owned()?;
        // SAFETY: the kernel reads the request and the declaration, and writes the last 4 bytes of the
        // request. It keeps the address of `enabled`, which is aligned and valid until it is unregistered.
        let result = unsafe { libc::ioctl(data.as_raw_fd(), IOC_REGISTER as _, request.as_mut_ptr()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { data, enabled })
    }
}

impl Drop for RegisteredEvent {
    fn drop(&mut self) {
        let place = self.enabled.as_ptr() as u64;
        // The size in the first four bytes, then the number of the bit.
        let request = [if cfg!(target_endian = "little") { 16 } else { 16 << 32 }, place];
        // SAFETY: the kernel reads the request, and no longer writes to `enabled` afterwards.
        let result = unsafe { libc::ioctl(self.data.as_raw_fd(), IOC_UNREGISTER as _, request.as_ptr()) };
        if result < 0 {
            // The kernel may still write there.
            Box::leak(std::mem::take(&mut self.enabled));
        }
    }
}

/// `NT_PRSTATUS`: the general registers.
pub(crate) const GENERAL_REGISTERS: libc::c_long = 1;
/// `NT_PRFPREG`: the floating-point registers.
pub(crate) const FLOATING_REGISTERS: libc::c_long = 2;

/// A request to the kernel about a thread. `address` and `data` are numbers.
fn trace(request: libc::c_uint, tid: i32, address: libc::c_long, data: libc::c_long) -> io::Result<()> {
    // SAFETY: the requests passed to this function take numbers, not pointers.
    let result = unsafe { libc::ptrace(request as _, tid, address, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes this thread the tracer of another, which runs on. `options` are the options of `PTRACE_SETOPTIONS`.
pub(crate) fn seize(tid: i32, options: i32) -> io::Result<()> {
    trace(libc::PTRACE_SEIZE, tid, 0, options.into())
}

/// Stops a traced thread.
pub(crate) fn interrupt(tid: i32) -> io::Result<()> {
    trace(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets a stopped thread run on with a signal, zero for none.
pub(crate) fn resume(tid: i32, signal: i32) -> io::Result<()> {
    trace(libc::PTRACE_CONT, tid, 0, signal.into())
}

/// Lets a thread stay in the stop of its process (`SIGSTOP`) until the process is continued.
pub(crate) fn listen(tid: i32) -> io::Result<()> {
    trace(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Ends the tracing of a stopped thread, which runs on with a signal, zero for none.
pub(crate) fn detach(tid: i32, signal: i32) -> io::Result<()> {
    trace(libc::PTRACE_DETACH, tid, 0, signal.into())
}

/// A report of a traced thread or child process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) tid: i32,
    /// The kind of the report (`CLD_STOPPED` and others).
    pub(crate) code: i32,
    /// The signal, with the event of the trace above it, or the exit status.
    pub(crate) status: i32,
}

impl Report {
    /// Returns the signal that ended the thread, if one did.
    pub(crate) fn killed_by(&self) -> Option<i32> {
        matches!(self.code, libc::CLD_KILLED | libc::CLD_DUMPED).then_some(self.status & 0x7f)
    }
}

/// Waits for a report of a thread, or of any that this thread traces. `options` are the options of `waitid`;
/// without `WNOHANG` the call waits.
///
/// # Errors
/// `ECHILD` if there is nothing to wait for.
pub(crate) fn report(of: Option<i32>, options: i32) -> io::Result<Option<Report>> {
    let (kind, id) = of.map_or((libc::P_ALL, 0), |tid| (libc::P_PID, tid.unsigned_abs()));
    // SAFETY: all bytes of a `siginfo_t` may be zero.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `info`, which outlives the call.
    if unsafe { libc::waitid(kind, id, &raw mut info, options) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: these fields are valid for reports of `waitid`, and zero without one.
    let (tid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok((tid != 0).then_some(Report { tid, code: info.si_code, status }))
}

/// Returns a set of registers of a stopped thread, as the kernel lays them out.
pub(crate) fn register_set(tid: i32, set: libc::c_long) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; 1024];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `iov_base`, and their number to `iov_len`; both
    // outlive the call.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGSET as _, tid, set, &raw mut part) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

/// Returns the `siginfo_t` of the signal for which a thread has stopped.
pub(crate) fn signal_info(tid: i32) -> io::Result<[u8; 128]> {
    let mut info = [0_u64; 16];
    const { assert!(size_of::<libc::siginfo_t>() == 128) };
    // SAFETY: the kernel writes a `siginfo_t`; `info` has its size, and the alignment of its pointers.
    let result = unsafe {
        libc::ptrace(libc::PTRACE_GETSIGINFO as _, tid, std::ptr::null_mut::<u8>(), info.as_mut_ptr())
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes = [0; 128];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(info) {
        *to = word.to_ne_bytes();
    }
    Ok(bytes)
}

/// Returns the time of the samples' clock, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Offsets of the control page's fields.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A buffer that the kernel writes records into, mapped into memory: a page with its positions, then the
/// data.
#[derive(Debug)]
pub(crate) struct Ring {
    map: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
    /// The position after the last byte that was read; positions only grow.
    tail: u64,
}

// SAFETY: the mapping belongs to this value alone, and the parts that the kernel changes are read by atomics
// or guarded by them.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the buffer of an event with `pages` pages of data, a power of two.
    pub(crate) fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let size = pages.checked_mul(page).filter(|size| size.is_power_of_two());
        let size = size.ok_or(io::ErrorKind::InvalidInput)?;
        let length = size.checked_add(page).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps with nothing.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { map, page, size, tail: 0 })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= self.page);
        // SAFETY: the control page is mapped for as long as `self`, the offset lies in it and is aligned, and
        // the kernel and this program access the field in one piece.
        #[allow(clippy::cast_ptr_alignment, reason = "mappings begin at a page")]
        unsafe {
            AtomicU64::from_ptr(self.map.as_ptr().add(offset).cast::<u64>())
        }
    }

    /// Unread bytes in the buffer.
    pub(crate) fn filled(&self) -> usize {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        usize::try_from(head.wrapping_sub(self.tail)).map_or(self.size, |filled| filled.min(self.size))
    }

    /// Appends the bytes of the buffer to `out`, and returns their space to the kernel. These are whole
    /// records.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        let filled = self.filled();
        if filled == 0 {
            return;
        }
        // The size is a power of two.
        #[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
        let start = (self.tail as usize) & (self.size - 1);
        let first = filled.min(self.size - start);
        out.reserve(filled);
        // SAFETY: both parts lie within the mapped data, and the kernel does not write between the tail and
        // the head that was read.
        let (first, second) = unsafe {
            let data = self.map.as_ptr().add(self.page);
            (
                std::slice::from_raw_parts(data.add(start), first),
                std::slice::from_raw_parts(data, filled - first),
            )
        };
        out.extend_from_slice(first);
        out.extend_from_slice(second);
        self.tail = self.tail.wrapping_add(filled as u64);
        self.position(DATA_TAIL).store(self.tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `map` made, and nothing borrows from it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.size + self.page) };
    }
}
