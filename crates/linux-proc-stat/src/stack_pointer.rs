//! `/proc/PID/task/TID/syscall`: the stack pointers of threads that wait.

use std::io;
use std::time::Instant;

use crate::file::{ids, process_folder, read};

/// Maximum number of threads.
const MAX_THREADS: usize = 20_000;
/// The number of attempts to find a thread waiting.
const ATTEMPTS: usize = 3;

/// The registers of a thread that waits in the kernel.
///
/// ```
/// use linux_proc_stat::WaitingThread;
///
/// let line = b"202 0x7f01 0x80 0x2 0x0 0x0 0x0 0x7ffd2000 0x7f3000\n";
/// let thread = WaitingThread::parse(line).ok_or("it runs")?;
/// assert_eq!((thread.system_call, thread.stack_pointer), (Some(202), 0x7ffd_2000));
/// assert_eq!(WaitingThread::parse(b"running\n"), None);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingThread {
    /// The number of the system call; `None` for a wait outside one, as for a page.
    pub system_call: Option<u64>,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The instruction pointer.
    pub instruction_pointer: u64,
}

impl WaitingThread {
    /// Parses the file; `None` for a thread that runs.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let hexadecimal = |field: &str| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok();
        let number = fields.next()?;
        let instruction_pointer = hexadecimal(fields.next_back()?)?;
        let stack_pointer = hexadecimal(fields.next_back()?)?;
        Some(Self { system_call: number.parse().ok(), stack_pointer, instruction_pointer })
    }
}

/// A thread with its stack pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadStackPointer {
    /// The thread, in the reader's pid namespace.
    pub tid: u32,
    /// The name, at most 15 bytes, with replacements for bytes that are not UTF-8.
    pub name: String,
    /// The stack pointer; `None` while the thread runs.
    pub stack_pointer: Option<u64>,
}

impl ThreadStackPointer {
    /// A thread with a stack pointer from another source, such as a core dump.
    pub const fn new(tid: u32, name: String, stack_pointer: Option<u64>) -> Self {
        Self { tid, name, stack_pointer }
    }

    /// Reads the stack pointers of the threads of a process, until `end` at most, up to 20,000 threads. The
    /// threads run on meanwhile.
    ///
    /// # Errors
    /// If the list of the threads cannot be read: the process has ended, or is not visible.
    pub fn of_process(pid: u32, end: Option<Instant>) -> io::Result<Vec<Self>> {
        let folder = process_folder(pid).join("task");
        let mut threads = Vec::new();
        for tid in ids(&folder)?.into_iter().take(MAX_THREADS) {
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let folder = folder.join(tid.to_string());
            // A thread without a name has just ended.
            let Ok(name) = read(&folder.join("comm")) else { continue };
            let look = || WaitingThread::parse(&read(&folder.join("syscall")).ok()?);
            let waiting = (0..ATTEMPTS).find_map(|_| look());
            threads.push(Self {
                tid,
                name: String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned(),
                stack_pointer: waiting.map(|thread| thread.stack_pointer),
            });
        }
        Ok(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_of_waiting_threads_are_left_out() {
        let sp = |text: &[u8]| WaitingThread::parse(text).map(|thread| thread.stack_pointer);
        assert_eq!(sp(b"-1 0x7ffd1000 0x7f2000"), Some(0x7ffd_1000));
        for text in [
            &b""[..],
            b"running",
            b"0x1 0x2",
            b"1 2 3",
            b"7 0x1 zz",
            b"\xff 0x1 0x2",
            b"1 0xffffffffffffffff1 0x2",
        ] {
            assert_eq!(sp(text), None, "{text:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_that_wait_have_a_stack_pointer() {
        use std::sync::mpsc;

        let (sender, receiver) = mpsc::channel::<()>();
        let body = move || receiver.recv().is_err();
        let thread = std::thread::Builder::new().name("waits".into()).spawn(body).unwrap();
        let waits = || {
            let threads = ThreadStackPointer::of_process(std::process::id(), None).unwrap();
            threads.iter().any(|thread| thread.name == "waits" && thread.stack_pointer.is_some())
        };
        while !waits() {
            std::thread::yield_now();
        }
        drop(sender);
        assert!(thread.join().unwrap());
    }
}
