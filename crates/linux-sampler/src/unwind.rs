//! Stacks of programs: the kernel's chain by frame pointers, completed by unwind information where code has
//! no frame pointer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::maps::{ProcessMaps, Processes};
use crate::native_unwind::{Process, UnwindLimits, word};
use crate::record::{Registers, Sample, ThreadKey};
use crate::runtime_code::{FramePosition, RuntimeUnwinder, SampledFrame};
use crate::stack_base::StackBases;

/// Maximum number of frames to unwind within the copied bytes.
const MAX_STEPS: usize = 256;

/// Finds the frames of code without frame pointers by unwind information.
///
/// The kernel follows frame pointers, and most code of .NET keeps them: the JIT's, the runtime's,
/// NativeAOT's. C libraries do not: a leaf there hides its caller, and a wait there ends the chain after one
/// frame. Small methods of a JIT compiler do not either, and hide the caller at any place in a stack.
///
/// Frames are therefore unwound within the copied bytes of the stack: by the unwind information of the image,
/// by a [`RuntimeUnwinder`] in code outside images, and by frame pointers elsewhere. The chain continues
/// where the copy ends; where code without frame pointers ends it before the root, the rest is unwound in the
/// memory of the process.
#[derive(Debug, Default)]
pub struct Unwinder {
    limits: Arc<UnwindLimits>,
    processes: HashMap<i32, Process>,
    bases: HashMap<i32, StackBases>,
    runtime: Option<Box<dyn RuntimeUnwinder>>,
}

impl Unwinder {
    /// Creates an unwinder without any images.
    pub fn new() -> Self {
        Self::default()
    }

    /// With an unwinder for code outside images.
    #[must_use]
    pub fn with_runtime_unwinder(self, runtime: Box<dyn RuntimeUnwinder>) -> Self {
        Self { runtime: Some(runtime), ..self }
    }

    /// With limits on the unwind information in memory, in bytes: of an image, and of all images. Code in
    /// images beyond them is assumed to keep frame pointers.
    #[must_use]
    pub fn with_limits(self, max_image_bytes: u64, max_bytes: u64) -> Self {
        Self { limits: Arc::new(UnwindLimits::new(max_image_bytes, max_bytes)), ..self }
    }

    /// Removes a process: it has ended, or runs another program.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.bases.remove(&pid);
        if let Some(runtime) = &mut self.runtime {
            runtime.forget(pid);
        }
    }

    /// Removes the processes for which `is_kept` returns false.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(i32) -> bool) {
        let known: HashSet<i32> = self.processes.keys().chain(self.bases.keys()).copied().collect();
        known.into_iter().filter(|pid| !is_kept(*pid)).for_each(|pid| self.forget(pid));
    }

    /// The unwind information of a process, and the unwinder for code outside images.
    pub(crate) fn process_and_runtime(
        &mut self,
        pid: i32,
    ) -> (&mut Process, Option<&mut Box<dyn RuntimeUnwinder>>) {
        (self.processes.entry(pid).or_insert_with(|| Process::new(&self.limits)), self.runtime.as_mut())
    }

    /// Puts the frames of a thread's sample into `frames`, leaf first: all but the first are return
    /// addresses.
    ///
    /// The addresses are the chain's if the code keeps frame pointers. Addresses outside executable memory at
    /// the root's end are cut.
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
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(&self.limits));
            let bases = self.bases.entry(pid).or_default();
            frames.extend_from_slice(bases.frames_after(process, thread, maps, (before, last), registers.sp));
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
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(&self.limits));
        let pointers = copy.frame_pointers(sampled.fp, chain.len());
        let mut registers = sampled;
        let mut position = FramePosition::Innermost;
        let mut by_frame_pointers = false;
        frames.push(registers.ip);
        // The number of frames of the chain up to the last frame that was unwound as well.
        let mut met = 1;
        let mut here = maps.at(lookup_address(registers.ip, position));
        for _ in 0..MAX_STEPS {
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
                let is_native = mapping.is_kernels_own() || process.is_refused(mapping);
                let runtime = self.runtime.as_mut().filter(|_| !is_native);
                let caller = runtime.and_then(|runtime| runtime.caller(pid, &frame));
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
        // The frame with the pointer at `index` was called from the entry after it. Frames after the last
        // match do not have a frame pointer: the chain goes on with their callers.
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
        // A return address can be past the end of a function that ends with a call.
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
