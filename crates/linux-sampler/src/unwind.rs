//! Stacks of programs: the kernel's chain by frame pointers, completed by unwind information where code has
//! no frame pointer.

use std::collections::HashMap;

use framehop::{CacheNative, FrameAddress, Module, UnwindRegsNative, Unwinder as _, UnwinderNative};

use crate::maps::{Mapping, ProcessMaps, Processes};
use crate::record::{Registers, Sample, ThreadKey};
use crate::root::Roots;
use crate::runtime_code::{FramePosition, RuntimeUnwinder, SampledFrame};

/// The most frames that are unwound within the copied bytes.
const MOST_STEPS: usize = 256;

/// The most mappings of a process whose unwind information is kept; code in others is assumed to keep frame
/// pointers.
const MOST_IMAGES: usize = 4096;

/// Finds the frames of code without frame pointers by unwind information.
///
/// The kernel follows frame pointers, and most code of .NET keeps them: the JIT's, the runtime's,
/// NativeAOT's. C libraries do not: a leaf there hides its caller, and a wait there ends the chain after one
/// frame. Small methods of a JIT compiler do not either, and hide the caller wherever they stand in a stack.
///
/// Frames are therefore unwound within the copied bytes of the stack: by the unwind information of the image,
/// by a [`RuntimeUnwinder`] in code outside images, and by frame pointers elsewhere. The chain continues where
/// the copy ends; where code without frame pointers ends it before the root, the rest is unwound in the memory
/// of the process.
#[derive(Debug, Default)]
pub struct Unwinder {
    processes: HashMap<i32, Process>,
    roots: HashMap<i32, Roots>,
    runtime: Option<Box<dyn RuntimeUnwinder>>,
}

pub(crate) struct Process {
    unwinder: UnwinderNative<Vec<u8>, framehop::MayAllocateDuringUnwind>,
    cache: CacheNative<framehop::MayAllocateDuringUnwind>,
    /// Whether a mapping has unwind information, by its first address.
    mappings: HashMap<u64, bool>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("mappings", &self.mappings.len()).finish_non_exhaustive()
    }
}

impl Unwinder {
    /// Creates an unwinder without any images.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses an unwinder for code outside images.
    pub fn set_runtime_unwinder(&mut self, runtime: Box<dyn RuntimeUnwinder>) {
        self.runtime = Some(runtime);
    }

    /// Removes a process: it has ended, or runs another program.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.roots.remove(&pid);
        if let Some(runtime) = &mut self.runtime {
            runtime.forget(pid);
        }
    }

    /// The unwind information of a process.
    pub(crate) fn process(&mut self, pid: i32) -> &mut Process {
        self.processes.entry(pid).or_insert_with(Process::new)
    }

    /// Puts the frames of a thread's sample into `frames`, leaf first: all but the first are return
    /// addresses.
    ///
    /// The addresses are the chain's where the code keeps frame pointers. Addresses outside executable memory
    /// at the root's end are cut.
    pub fn user_stack(
        &mut self,
        thread: ThreadKey,
        sample: &Sample<'_>,
        processes: &mut Processes,
        frames: &mut Vec<u64>,
    ) {
        frames.clear();
        let pid = thread.pid;
        let maps = processes.of(pid);
        let chain: Vec<u64> = sample.user_frames().collect();
        match sample.registers {
            Some(registers) if !sample.stack.is_empty() => {
                let copy = StackCopy { start: registers.sp, bytes: sample.stack };
                self.unwind(pid, maps, registers, copy, &chain, frames);
            }
            _ => frames.extend_from_slice(&chain),
        }
        while frames.len() > 1 && frames.last().is_some_and(|&frame| maps.at(frame.wrapping_sub(1)).is_none())
        {
            frames.pop();
        }
        if let (&[.., before, last], Some(registers)) = (frames.as_slice(), sample.registers) {
            let process = self.processes.entry(pid).or_insert_with(Process::new);
            let roots = self.roots.entry(pid).or_default();
            frames.extend_from_slice(roots.after(process, thread, maps, (before, last), registers.sp));
        }
    }

    /// Unwinds within the copied bytes, then takes the rest of the chain.
    fn unwind(
        &mut self,
        pid: i32,
        maps: &ProcessMaps,
        sampled: Registers,
        copy: StackCopy<'_>,
        chain: &[u64],
        frames: &mut Vec<u64>,
    ) {
        let process = self.processes.entry(pid).or_insert_with(Process::new);
        let pointers = copy.frame_pointers(sampled.fp, chain.len());
        let mut registers = sampled;
        let mut position = FramePosition::Innermost;
        let mut by_frame_pointers = false;
        frames.push(registers.ip);
        // The frames of the chain up to the last one that was unwound as well.
        let mut met = 1;
        let mut here = maps.at(lookup_address(registers.ip, position));
        for _ in 0..MOST_STEPS {
            let Some(mapping) = here else { break };
            let caller = if process.load(pid, mapping) {
                if by_frame_pointers {
                    copy.caller(&registers)
                } else {
                    process.caller(&registers, position, &mut |at| copy.word(at))
                }
            } else {
                // Code outside images, as the JIT's. Native code that it was called from keeps frame
                // pointers.
                by_frame_pointers = true;
                let frame = SampledFrame { registers, position, stack_start: copy.start, stack: copy.bytes };
                let caller = self.runtime.as_mut().and_then(|runtime| runtime.caller(pid, &frame));
                caller.or_else(|| copy.caller(&registers))
            };
            // A leaf on aarch64 can have its return address in a register, and no frame.
            let in_register = cfg!(target_arch = "aarch64") && position == FramePosition::Innermost;
            let caller =
                caller.filter(|caller| caller.sp > registers.sp || in_register && caller.sp == registers.sp);
            let Some(caller) = caller else { break };
            here = maps.at(lookup_address(caller.ip, FramePosition::Caller));
            if here.is_none() {
                break;
            }
            frames.push(caller.ip);
            registers = caller;
            position = FramePosition::Caller;
            let later = chain.get(met..).unwrap_or_default();
            if let Some(at) = later.iter().position(|&frame| frame == caller.ip) {
                met = met.saturating_add(at).saturating_add(1);
            }
            if by_frame_pointers && self.runtime.is_none() && pointers.contains(&registers.fp) {
                // The chain has all that follows.
                break;
            }
        }
        // The frame with the pointer at `index` was called from the entry after it. Frames after the last one
        // that was met have no frame pointer: the chain goes on with their callers.
        let rest = pointers.iter().position(|&pointer| pointer == registers.fp);
        let rest = rest.map(|index| index.saturating_add(1));
        let rest = rest.or((met > 1 || frames.len() == 1).then_some(met));
        frames.extend_from_slice(rest.and_then(|rest| chain.get(rest..)).unwrap_or_default());
        if frames.len() < chain.len() {
            frames.clear();
            frames.extend_from_slice(chain);
        }
    }
}

const fn lookup_address(ip: u64, position: FramePosition) -> u64 {
    match position {
        FramePosition::Innermost => ip,
        // It can be past the end of a function that ends with a call.
        FramePosition::Caller => ip.wrapping_sub(1),
    }
}

/// The copied bytes of a stack.
#[derive(Debug, Clone, Copy)]
struct StackCopy<'a> {
    /// The stack pointer, where they begin.
    start: u64,
    bytes: &'a [u8],
}

impl StackCopy<'_> {
    fn word(self, address: u64) -> Option<u64> {
        word(self.bytes, self.start, address)
    }

    /// The caller of a frame that has its frame pointer set up.
    fn caller(self, registers: &Registers) -> Option<Registers> {
        let pointer = registers.fp;
        let caller = Registers {
            fp: self.word(pointer)?,
            ip: self.word(pointer.checked_add(8)?)?,
            sp: pointer.checked_add(16)?,
            lr: 0,
        };
        Some(caller)
    }

    /// The frame pointers that the kernel's chain of `most` frames followed, as far as they were copied.
    fn frame_pointers(self, first: u64, most: usize) -> Vec<u64> {
        std::iter::successors(Some(first), |&pointer| self.word(pointer).filter(|&next| next > pointer))
            .take(most)
            .collect()
    }
}

impl Process {
    fn new() -> Self {
        Self { unwinder: UnwinderNative::new(), cache: CacheNative::new(), mappings: HashMap::new() }
    }

    /// Unwinds one frame; `None` at the root, and an error if the frame cannot be unwound.
    pub(crate) fn step(
        &mut self,
        address: FrameAddress,
        state: &mut UnwindRegsNative,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<Option<u64>, ()> {
        self.unwinder.unwind_frame(address, state, &mut self.cache, read).map_err(drop)
    }

    /// The caller of a frame by the unwind information of its image.
    pub(crate) fn caller(
        &mut self,
        registers: &Registers,
        position: FramePosition,
        read: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let address = match position {
            FramePosition::Innermost => FrameAddress::from_instruction_pointer(registers.ip),
            FramePosition::Caller => FrameAddress::from_return_address(registers.ip)?,
        };
        let mut state = native_registers(*registers);
        let ip = self.step(address, &mut state, &mut |at| read(at).ok_or(())).ok()??;
        let (sp, fp, lr) = (stack_pointer(&state), frame_pointer(&state), link_register(&state));
        Some(Registers { ip, sp, fp, lr })
    }

    /// Loads the unwind information of a mapping. Returns whether there is any.
    pub(crate) fn load(&mut self, pid: i32, mapping: &Mapping) -> bool {
        if let Some(&known) = self.mappings.get(&mapping.start) {
            return known;
        }
        let module = if self.mappings.len() < MOST_IMAGES { module(pid, mapping) } else { None };
        let known = module.is_some();
        if let Some(module) = module {
            self.unwinder.add_module(module);
        }
        self.mappings.insert(mapping.start, known);
        known
    }
}

fn module(pid: i32, mapping: &Mapping) -> Option<Module<Vec<u8>>> {
    let image = mapping.image(pid)?;
    let own = mapping.address_in(image, mapping.start)?;
    let sections = image.unwind_sections().ok()?;
    sections.eh_frame.as_ref()?;
    let base = mapping.start.wrapping_sub(own);
    Some(Module::new(mapping.name.to_string(), mapping.start..mapping.end, base, sections))
}

/// The word at an address of a stack whose copied bytes begin at the stack pointer.
pub(crate) fn word(stack: &[u8], sp: u64, address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(sp)?).ok()?;
    let bytes = stack.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn native_registers(registers: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.ip, registers.sp, registers.fp)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.bp()
}

#[cfg(target_arch = "x86_64")]
const fn link_register(_: &UnwindRegsNative) -> u64 {
    0
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn native_registers(registers: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.lr, registers.sp, registers.fp)
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.fp()
}

#[cfg(target_arch = "aarch64")]
fn link_register(registers: &UnwindRegsNative) -> u64 {
    registers.lr()
}

pub(crate) fn stack_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.sp()
}
