//! Stacks of programs: the kernel's chain by frame pointers, completed by unwind information if the leaf has
//! no frame.

use std::collections::HashMap;

use framehop::{CacheNative, FrameAddress, Module, UnwindRegsNative, Unwinder as _, UnwinderNative};

use crate::image::Image;
use crate::maps::{Mapping, ProcessMaps, Processes};
use crate::record::{Registers, Sample};

/// The most frames that are unwound by unwind information before the chain continues.
const MOST_STEPS: usize = 128;

/// The most mappings of a process whose unwind information is kept; code in others is assumed to keep frame
/// pointers.
const MOST_IMAGES: usize = 4096;

/// Finds the frames of code without frame pointers by the unwind information of its image.
///
/// The kernel follows frame pointers, and most code of .NET keeps them: the JIT's, the runtime's,
/// NativeAOT's. C libraries do not. A leaf there hides its caller, and a wait there ends the chain after one
/// frame. Such a leaf is unwound with the copied bytes of the stack, until it reaches code from which the
/// chain can continue.
#[derive(Debug, Default)]
pub struct Unwinder {
    processes: HashMap<i32, Process>,
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

    /// Removes a process: it has ended, or runs another program.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// The unwind information of a process.
    pub(crate) fn process(&mut self, pid: i32) -> &mut Process {
        self.processes.entry(pid).or_insert_with(Process::new)
    }

    /// Puts the frames of a sample into `frames`, leaf first: all but the first are return addresses.
    ///
    /// The addresses are the chain's if the leaf has a frame. Addresses outside executable memory at the
    /// root's end are cut.
    pub fn user_stack(
        &mut self,
        pid: i32,
        sample: &Sample<'_>,
        processes: &mut Processes,
        frames: &mut Vec<u64>,
    ) {
        frames.clear();
        let maps = processes.of(pid);
        let chain: Vec<u64> = sample.user_frames().collect();
        match sample.registers {
            Some(registers) if !sample.stack.is_empty() => {
                self.mend(pid, maps, registers, sample.stack, &chain, frames);
            }
            _ => frames.extend_from_slice(&chain),
        }
        while frames.len() > 1 && frames.last().is_some_and(|&frame| maps.at(frame.wrapping_sub(1)).is_none())
        {
            frames.pop();
        }
    }

    /// Unwinds leaves without frames, then takes the rest of the chain.
    fn mend(
        &mut self,
        pid: i32,
        maps: &ProcessMaps,
        registers: Registers,
        stack: &[u8],
        chain: &[u64],
        frames: &mut Vec<u64>,
    ) {
        let process = self.process(pid);
        let mut address = FrameAddress::from_instruction_pointer(registers.ip);
        let mut state = native_registers(registers);
        let mut read = |at: u64| word(stack, registers.sp, at).ok_or(());
        frames.push(registers.ip);
        for _ in 0..MOST_STEPS {
            let Some(mapping) = maps.at(address.address_for_lookup()) else { break };
            if !process.load(pid, mapping) {
                // Code outside images: the JIT's. It keeps frame pointers.
                break;
            }
            let Ok(Some(caller)) =
                process.unwinder.unwind_frame(address, &mut state, &mut process.cache, &mut read)
            else {
                break;
            };
            let Some(next) = FrameAddress::from_return_address(caller) else { break };
            if maps.at(next.address_for_lookup()).is_none() {
                break;
            }
            if let Some(at) = chain.iter().position(|&frame| frame == caller) {
                frames.extend(chain.get(at..).unwrap_or_default());
                return;
            }
            frames.push(caller);
            address = next;
            let frame_pointer = frame_pointer(&state);
            if frame_pointer == registers.fp {
                // The chain begins with the frame of the leaf's caller. The return address of the unwound
                // frame is its second entry.
                let image_of_caller = maps.at(address.address_for_lookup());
                if !image_of_caller.is_some_and(|mapping| process.load(pid, mapping)) {
                    frames.extend(chain.get(1..).unwrap_or_default());
                    return;
                }
            }
        }
        // Unwinding neither met the chain nor reached the end: follow frame pointers from where it stopped,
        // within the copied bytes.
        if frames.len() > 1 {
            walk_frame_pointers(maps, frame_pointer(&state), &mut read, frames);
        }
        if frames.len() < chain.len() {
            frames.clear();
            frames.extend_from_slice(chain);
        }
    }
}

/// Follows frame pointers through copied bytes.
fn walk_frame_pointers(
    maps: &ProcessMaps,
    mut frame_pointer: u64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
    frames: &mut Vec<u64>,
) {
    for _ in 0..MOST_STEPS {
        let (Ok(next), Ok(caller)) = (read(frame_pointer), read(frame_pointer.wrapping_add(8))) else {
            return;
        };
        if maps.at(caller.wrapping_sub(1)).is_none() {
            return;
        }
        frames.push(caller);
        if next <= frame_pointer {
            return;
        }
        frame_pointer = next;
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
    let image = Image::open(pid, mapping).ok()?;
    let own = image.own_address(mapping, mapping.start)?;
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

#[cfg(target_arch = "aarch64")]
pub(crate) fn native_registers(registers: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.lr, registers.sp, registers.fp)
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.fp()
}

pub(crate) fn stack_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.sp()
}
