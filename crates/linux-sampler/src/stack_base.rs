//! Completion of stacks if the chain of frame pointers ends before the thread's entry point.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::maps::{Mapping, ProcessMaps};
use crate::native_unwind::{Process, read_stack, word};
use crate::record::{Registers, ThreadKey};
use crate::runtime_code::FramePosition;

/// Maximum number of bytes of a stack to search for the last frame of a chain.
const MAX_STACK_SIZE: usize = 1 << 20;

/// Maximum number of frames from the end of a chain to the root.
const MAX_FRAMES: usize = 64;

/// Maximum number of known threads.
const MAX_THREADS: usize = 1024;

/// The samples of a thread after a search without result that are left as they are.
const PAUSE: u32 = 256;

/// Files with functions that start threads: a chain that ends in one of them has reached the root.
const STARTS: [&str; 5] = ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl"];

/// Continues chains to the root by unwind information.
///
/// Code that began a stack may be without frame pointers, like the host of .NET Core 3.1 that calls the
/// runtime: the kernel's chain ends there, too far from the stack pointer for a copy. That end of the stack
/// does not change while its frames run, so it is read from the memory of the process. The last two frames of
/// the chain are found there by the link from one to the other.
#[derive(Debug, Default)]
pub(crate) struct StackBases {
    /// The memory of the process; `None` if it may not be read.
    memory: OnceCell<Option<File>>,
    threads: HashMap<i32, StackBase>,
    /// The bytes of a stack that are compared.
    now: Vec<u8>,
}

/// The outermost frames of a thread's stack.
#[derive(Debug)]
struct StackBase {
    /// The last two return addresses of the chains that it continues.
    tail: (u64, u64),
    /// The address of the first frame's link, and the bytes from there on that lead to the root.
    start: u64,
    bytes: Vec<u8>,
    /// The return addresses after the chain. Without any, `pause` samples are not searched.
    frames: Vec<u64>,
    pause: u32,
}

impl StackBases {
    /// Returns the return addresses after a chain that ends with `tail`; empty if they are not known.
    pub(crate) fn frames_after(
        &mut self,
        process: &mut Process,
        ThreadKey { pid, tid }: ThreadKey,
        maps: &ProcessMaps,
        tail: (u64, u64),
        sp: u64,
    ) -> &[u64] {
        let is_open =
            maps.at(tail.1.wrapping_sub(1)).is_some_and(|last| !is_start(last) && process.load(pid, last));
        if !is_open {
            return &[];
        }
        let memory = self.memory.get_or_init(|| File::open(format!("/proc/{pid}/mem")).ok());
        let Some(memory) = memory else { return &[] };
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) {
            self.threads.clear();
        }
        let now = &mut self.now;
        let is_known = self.threads.get_mut(&tid).is_some_and(|known| known.still_holds(tail, memory, now));
        if !is_known {
            self.threads.insert(tid, StackBase::find(process, pid, maps, tail, sp, memory));
        }
        self.threads.get(&tid).map_or(&[], |base| &base.frames)
    }
}

fn is_start(mapping: &Mapping) -> bool {
    let file = mapping.name.rsplit('/').next().unwrap_or_default();
    STARTS.iter().any(|start| file.starts_with(start))
}

impl StackBase {
    /// Returns true if it continues these chains, and the stack, which is read into `now`, has not changed.
    fn still_holds(&mut self, tail: (u64, u64), memory: &File, now: &mut Vec<u8>) -> bool {
        if self.tail != tail {
            return false;
        }
        if self.frames.is_empty() {
            self.pause = self.pause.saturating_sub(1);
            return self.pause > 0;
        }
        now.resize(self.bytes.len(), 0);
        memory.read_exact_at(now, self.start).is_ok() && *now == self.bytes
    }

    /// Searches a stack from the stack pointer of a sample on.
    fn find(
        process: &mut Process,
        pid: i32,
        maps: &ProcessMaps,
        tail: (u64, u64),
        sp: u64,
        memory: &File,
    ) -> Self {
        let nothing = Self { tail, start: 0, bytes: Vec::new(), frames: Vec::new(), pause: PAUSE };
        let start = sp & !7;
        let Ok(stack) = read_stack(memory, start, MAX_STACK_SIZE) else { return nothing };
        let read = |at: u64| word(&stack, start, at);
        // The frame that returns to the last but one, and its link to the frame that returns to the last.
        let link = (start..start.saturating_add(stack.len() as u64)).step_by(8).find(|&frame| {
            read(frame.saturating_add(8)) == Some(tail.0)
                && read(frame)
                    .is_some_and(|next| next > frame && read(next.saturating_add(8)) == Some(tail.1))
        });
        let Some((link, last)) = link.and_then(|link| Some((link, read(link)?))) else { return nothing };
        let Some(fp) = read(last) else { return nothing };
        let mut registers = Registers { ip: tail.1, sp: last.saturating_add(16), fp, lr: 0 };
        let (mut frames, mut end) = (Vec::new(), last.saturating_add(16));
        while frames.len() < MAX_FRAMES {
            let here = maps.at(registers.ip.wrapping_sub(1));
            if !here.is_some_and(|mapping| process.load(pid, mapping)) {
                break;
            }
            let mut noted = |at: u64| {
                end = end.max(at.saturating_add(8));
                read(at)
            };
            let caller = process.caller(&registers, FramePosition::Caller, &mut noted);
            let Some(caller) = caller.filter(|caller| caller.sp > registers.sp) else { break };
            if maps.at(caller.ip.wrapping_sub(1)).is_none() {
                break;
            }
            frames.push(caller.ip);
            registers = caller;
        }
        let range = usize::try_from(link - start).ok().zip(usize::try_from(end - start).ok());
        let Some(bytes) = range.and_then(|(from, to)| stack.get(from..to)) else { return nothing };
        Self { tail, start: link, bytes: bytes.to_vec(), frames, pause: PAUSE }
    }
}
