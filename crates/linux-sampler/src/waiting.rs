//! Threads that do not run: the function of the kernel that they wait in, and their stacks.

use std::fs::{self, File};
use std::io;

use framehop::FrameAddress;

use crate::maps::{ProcessMaps, Processes};
use crate::native_unwind::{Process, frame_pointer, native_registers, read_stack, stack_pointer, word};
use crate::record::Registers;
use crate::runtime_code::{FramePosition, SampledFrame};
use crate::unwind::Unwinder;

/// Maximum number of bytes of a stack to read.
const MAX_STACK_SIZE: usize = 256 << 10;

/// The bytes that are searched for a frame, where no register has its address.
const SEARCHED: u64 = 16 << 10;

/// Minimum number of frames that must follow a found frame.
const MIN_LINKS: usize = 2;

/// Maximum number of frames of a stack.
const MAX_STEPS: usize = 512;

/// The activity of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadActivity {
    /// The thread runs, or waits for a processor.
    Running,
    /// The thread waits in the kernel.
    Waiting(ThreadWait),
}

/// A wait of a thread in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadWait {
    /// The number of the system call; `None` for a wait outside one, as for a page.
    pub system_call: Option<u64>,
    /// The function of the kernel that waits; `None` if the kernel does not state it.
    pub function: Option<String>,
    /// The names of the kernel's functions, leaf first; only root may read them.
    pub kernel_frames: Vec<String>,
    sp: u64,
    ip: u64,
}

/// Returns the activity of a thread.
///
/// ```no_run
/// use linux_sampler::{Processes, ThreadActivity, Unwinder, thread_activity};
///
/// for tid in linux_sampler::threads(4711)? {
///     if let ThreadActivity::Waiting(wait) = thread_activity(4711, tid)? {
///         let mut frames = Vec::new();
///         Unwinder::new().waiting_stack(4711, &wait, &mut Processes::new(), &mut frames)?;
///         println!("{tid} waits in {:?} below {frames:x?}", wait.function);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the thread has ended, or this process may not look into it: that needs the rights of a debugger.
///
/// # Source
/// `proc_pid_syscall(5)`, `proc_pid_wchan(5)`, `proc_pid_stack(5)`.
pub fn thread_activity(pid: i32, tid: i32) -> io::Result<ThreadActivity> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}"));
    let Some((system_call, sp, ip)) = parse_system_call(&read("syscall")?) else {
        return Ok(ThreadActivity::Running);
    };
    let function = read("wchan").ok().filter(|name| !matches!(name.trim(), "" | "0"));
    let kernel_frames = read("stack").map(|text| parse_stack(&text)).unwrap_or_default();
    Ok(ThreadActivity::Waiting(ThreadWait { system_call, function, kernel_frames, sp, ip }))
}

/// Reads `NUMBER ARGUMENTS… SP PC`; `None` for `running`.
fn parse_system_call(text: &str) -> Option<(Option<u64>, u64, u64)> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let hex = |field: &str| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok();
    let [number, .., sp, ip] = fields[..] else { return None };
    Some((number.parse().ok(), hex(sp)?, hex(ip)?))
}

/// Reads lines of `[<0>] function+0x12/0x34 [module]`.
fn parse_stack(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.split_once("] ")?.1.split(['+', ' ']).next()?;
        (!name.is_empty() && !name.starts_with("0x")).then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

impl Unwinder {
    /// Puts the frames of a thread that waits into `frames`, leaf first: all but the first are return
    /// addresses. The thread may go on meanwhile; its stack then ends early.
    ///
    /// The kernel gives the stack pointer and the program counter, and not the frame pointer. Where unwind
    /// information needs that, the stack is searched for the next frame from which frame pointers lead on:
    /// callees that never saved it are then missing.
    ///
    /// # Errors
    /// If the memory of the process cannot be read.
    pub fn waiting_stack(
        &mut self,
        pid: i32,
        wait: &ThreadWait,
        processes: &mut Processes,
        frames: &mut Vec<u64>,
    ) -> io::Result<()> {
        frames.clear();
        let stack = read_stack(&File::open(format!("/proc/{pid}/mem"))?, wait.sp, MAX_STACK_SIZE)?;
        let maps = processes.of(pid);
        let (process, mut runtime) = self.process_and_runtime(pid);
        let runtime = |registers| {
            let frame = SampledFrame {
                registers,
                position: FramePosition::Caller,
                stack_start: wait.sp,
                stack: &stack,
            };
            runtime.as_mut()?.caller(pid, &frame)
        };
        unwind(pid, wait, &stack, maps, (process, runtime), frames);
        Ok(())
    }
}

/// Unwinds a stack: by the unwind information of images, by a `runtime` in code outside them, and by frame
/// pointers.
fn unwind(
    pid: i32,
    wait: &ThreadWait,
    stack: &[u8],
    maps: &ProcessMaps,
    (process, mut runtime): (&mut Process, impl FnMut(Registers) -> Option<Registers>),
    frames: &mut Vec<u64>,
) {
    let mut read = |at: u64| word(stack, wait.sp, at).ok_or(());
    let is_code = |address: u64| maps.at(address.wrapping_sub(1)).is_some();
    let mut address = FrameAddress::from_instruction_pointer(wait.ip);
    let mut state = native_registers(Registers { ip: wait.ip, sp: wait.sp, fp: 0, lr: 0 });
    frames.push(wait.ip);
    while frames.len() < MAX_STEPS {
        let sp = stack_pointer(&state);
        let has_information =
            maps.at(address.address_for_lookup()).is_some_and(|mapping| process.load(pid, mapping));
        let fp = frame_pointer(&state);
        let unwound = if has_information {
            process.step(address, &mut state, &mut read)
        } else if fp != 0 && frames.len() > 1 {
            // A small method without a frame pointer hides the method that called it.
            let ip = frames.last().copied().unwrap_or_default();
            let caller = runtime(Registers { ip, sp, fp, lr: 0 }).filter(|caller| caller.sp > sp);
            caller.filter(|caller| is_code(caller.ip)).map_or(Err(()), |caller| {
                state = native_registers(Registers { lr: caller.ip, ..caller });
                Ok(Some(caller.ip))
            })
        } else {
            Err(())
        };
        let caller = match unwound {
            Ok(Some(caller)) if is_code(caller) => caller,
            // The root. Without the frame pointer, code of the runtime looks like one.
            Ok(None) if frame_pointer(&state) != 0 => break,
            _ => {
                let stack = Stack { read: &mut read, is_code: &is_code, start: wait.sp };
                let Some((frame, next, caller)) = stack.frame_from(frame_pointer(&state), sp) else { break };
                state = native_registers(Registers {
                    ip: caller,
                    sp: frame.saturating_add(16),
                    fp: next,
                    lr: caller,
                });
                caller
            }
        };
        frames.push(caller);
        let Some(next) = FrameAddress::from_return_address(caller) else { break };
        address = next;
        if stack_pointer(&state) <= sp {
            break;
        }
    }
}

/// Copied bytes of a stack, in which frames are linked by frame pointers.
struct Stack<'s, R, C> {
    read: &'s mut R,
    is_code: &'s C,
    /// The address of the first byte.
    start: u64,
}

impl<R: FnMut(u64) -> Result<u64, ()>, C: Fn(u64) -> bool> Stack<'_, R, C> {
    /// Returns the address of a frame, the next frame pointer and the return address: from the frame pointer
    /// if it points to a frame, otherwise from the first frame above the stack pointer.
    fn frame_from(mut self, frame_pointer: u64, sp: u64) -> Option<(u64, u64, u64)> {
        if frame_pointer >= sp.max(self.start)
            && let Some((next, caller)) = self.link(frame_pointer)
        {
            return Some((frame_pointer, next, caller));
        }
        let end = sp.saturating_add(SEARCHED);
        let mut at = sp.next_multiple_of(8);
        while at < end {
            if self.leads_on(at) {
                let (next, caller) = self.link(at)?;
                return Some((at, next, caller));
            }
            at = at.saturating_add(8);
        }
        None
    }

    /// Returns the saved frame pointer and the return address of a frame.
    fn link(&mut self, frame: u64) -> Option<(u64, u64)> {
        let next = (self.read)(frame).ok()?;
        let caller = (self.read)(frame.checked_add(8)?).ok()?;
        (self.is_code)(caller).then_some((next, caller))
    }

    /// Returns true if enough frames follow.
    fn leads_on(&mut self, mut frame: u64) -> bool {
        for _ in 0..=MIN_LINKS {
            let Some((next, _)) = self.link(frame) else { return false };
            if next <= frame {
                return false;
            }
            frame = next;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_its_system_call_and_its_place() {
        let text = "202 0x7f 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f42ab\n";
        assert_eq!(parse_system_call(text), Some((Some(202), 0x7f_fd10, 0x7f_42ab)));
        assert_eq!(parse_system_call("-1 0x7ffd10 0x7f42ab\n"), Some((None, 0x7f_fd10, 0x7f_42ab)));
        assert_eq!(parse_system_call("running\n"), None);
        assert_eq!(parse_system_call(""), None);
    }

    #[test]
    fn functions_of_the_kernel_are_read_without_their_offsets() {
        let text = "[<0>] futex_wait_queue+0x63/0x90\n[<0>] nfs_wait+0x1/0x2 [nfs]\n[<0>] 0x0\n";
        assert_eq!(parse_stack(text), ["futex_wait_queue", "nfs_wait"]);
    }
}
