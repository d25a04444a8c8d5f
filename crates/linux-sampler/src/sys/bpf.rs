//! Programs that the kernel runs at a probe, their tables, and the probes.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use super::{FLAG_FD_CLOEXEC, control};
use crate::attributes::{EventAttributes, halves};

/// Commands of `bpf`, in the kernel's numbers.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;

/// `BPF_PROG_TYPE_KPROBE`, the kind of programs at probes of the kernel and of programs.
const PROGRAM_KIND: u32 = 2;
/// The licences of the program. The kernel lends functions that read a program's memory, or write records,
/// only to those that it may be combined with.
const LICENSE: &CStr = c"Dual MIT/GPL";

const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// The kinds of tables, in the kernel's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MapKind {
    Hash = 1,
    /// Events by processor, which programs write records of.
    Events = 4,
    /// A row for each processor.
    ProcessorArray = 6,
}

/// The first fields of `bpf_attr`, as words of 8 bytes.
type Attributes = [u64; 16];

/// The number of a descriptor, which is not negative.
fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Passes attributes to the kernel. The addresses in them must be of memory that outlives the call, and that
/// the command may use.
unsafe fn bpf(command: libc::c_long, attributes: &Attributes) -> io::Result<libc::c_long> {
    let size = size_of::<Attributes>();
    // SAFETY: the kernel reads `size` bytes of the attributes; the caller vouches for the addresses in them.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just returned the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn address<T>(of: *const T) -> u64 {
    of.expose_provenance() as u64
}

/// Creates a table with rows of these sizes.
pub(crate) fn create_map(kind: MapKind, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    attributes[0] = halves(kind as u32, key);
    attributes[1] = halves(value, entries);
    // SAFETY: no address is passed.
    owned(unsafe { bpf(MAP_CREATE, &attributes) }?)
}

/// Puts a descriptor into a table of events.
pub(crate) fn set_event(map: BorrowedFd<'_>, index: u32, event: BorrowedFd<'_>) -> io::Result<()> {
    let value = number(event);
    let mut attributes = Attributes::default();
    attributes[0] = halves(number(map), 0);
    attributes[1] = address(&raw const index);
    attributes[2] = address(&raw const value);
    // SAFETY: key and value have 4 bytes, as the rows of tables of events, and outlive the call.
    unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(drop)
}

/// Returns the sum of a row of numbers over all processors, of which the machine can have `processors`.
pub(crate) fn sum(map: BorrowedFd<'_>, index: u32, processors: usize) -> io::Result<u64> {
    let mut values = vec![0_u64; processors];
    let mut attributes = Attributes::default();
    attributes[0] = halves(number(map), 0);
    attributes[1] = address(&raw const index);
    attributes[2] = address(values.as_mut_ptr());
    // SAFETY: the key has 4 bytes; the kernel writes 8 bytes for each possible processor, as many as there
    // are in `values`. Both outlive the call.
    unsafe { bpf(MAP_LOOKUP_ELEM, &attributes) }?;
    Ok(values.into_iter().fold(0, u64::saturating_add))
}

/// Has the kernel check and take a program.
pub(crate) fn load_program(instructions: &[u64]) -> io::Result<OwnedFd> {
    let count = u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attributes = Attributes::default();
    attributes[0] = halves(PROGRAM_KIND, count);
    attributes[1] = address(instructions.as_ptr());
    attributes[2] = address(LICENSE.as_ptr());
    // SAFETY: the kernel reads `count` instructions and the text, which outlive the call.
    owned(unsafe { bpf(PROG_LOAD, &attributes) }?)
}

/// The place of a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbePlace<'a> {
    /// The path of the file, which the kernel resolves now.
    pub(crate) path: &'a CStr,
    /// The offset of the instruction in it.
    pub(crate) offset: u64,
    /// True for the return of the function that begins there.
    pub(crate) at_return: bool,
}

/// Puts a probe into the memory of a thread's process, and runs a program there for each of its threads.
pub(crate) fn open_probe(
    kind: u32,
    place: ProbePlace<'_>,
    tid: i32,
    program: BorrowedFd<'_>,
) -> io::Result<OwnedFd> {
    let attributes =
        EventAttributes::of_probe(kind, place.at_return, address(place.path.as_ptr()), place.offset);
    let words = attributes.as_words();
    // SAFETY: the kernel reads the attributes, which state their own size, and the path in them; it keeps no
    // reference to either.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, words.as_ptr(), tid, -1, -1, FLAG_FD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = owned(fd)?;
    let program = libc::c_ulong::from(number(program));
    control(event.as_fd(), IOC_SET_BPF, program)?;
    Ok(event)
}

/// A function that begins with an instruction that the kernel simulates at a probe, and returns zero.
#[unsafe(naked)]
pub(crate) extern "C" fn simulated_function(_argument: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("push rbp", "pop rbp", "xor eax, eax", "ret");
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("nop", "mov x0, 0", "ret");
}

/// A function that begins with an instruction that the kernel runs in a place of its own, with a second
/// interrupt, and returns zero.
#[unsafe(naked)]
pub(crate) extern "C" fn stepped_function(_argument: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("test rdi, rdi", "xor eax, eax", "ret");
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x1, x1", "mov x0, 0", "ret");
}

/// The same as [`simulated_function`], but it returns its argument.
#[unsafe(naked)]
pub(crate) extern "C" fn returning_function(_argument: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("push rbp", "pop rbp", "mov rax, rdi", "ret");
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("nop", "nop", "ret");
}

/// The same as [`simulated_function`], at a place of its own.
#[unsafe(naked)]
pub(crate) extern "C" fn other_simulated_function(_argument: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("push rbp", "pop rbp", "nop", "xor eax, eax", "ret");
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("nop", "nop", "mov x0, 0", "ret");
}
