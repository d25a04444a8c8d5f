//! Unwinding by the unwind information of a process's images, and the words of stacks that it reads.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use framehop::{CacheNative, FrameAddress, Module, UnwindRegsNative, Unwinder as _, UnwinderNative};

use crate::image::{Image, UnwindSections};
use crate::maps::Mapping;
use crate::record::Registers;
use crate::runtime_code::FramePosition;

/// Maximum number of mappings of a process to keep unwind information of; code in others is assumed to keep
/// frame pointers.
const MAX_IMAGES: usize = 4096;

/// Limits on the unwind information in memory. Code in images beyond them is assumed to keep frame pointers.
#[derive(Debug)]
pub(crate) struct UnwindLimits {
    /// Maximum number of bytes of an image.
    max_image_bytes: u64,
    /// Maximum number of bytes of all images.
    max_bytes: u64,
    /// The information that was read, and its bytes.
    read: Mutex<Vec<(Weak<[u8]>, u64)>>,
}

impl Default for UnwindLimits {
    fn default() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }
}

impl UnwindLimits {
    pub(crate) const fn new(max_image_bytes: u64, max_bytes: u64) -> Self {
        Self { max_image_bytes, max_bytes, read: Mutex::new(Vec::new()) }
    }

    /// Returns the unwind information of an image.
    fn sections(&self, image: &Image) -> Result<UnwindSections, UnwindInformation> {
        if self.max_bytes == u64::MAX {
            return Ok(image.unwind_sections());
        }
        let size = image.unread_unwind_bytes();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.retain(|(bytes, _)| bytes.strong_count() > 0);
        let all = read.iter().fold(size, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if size > self.max_image_bytes || all > self.max_bytes {
            return Err(UnwindInformation::Refused);
        }
        let sections = image.unwind_sections();
        if size > 0 {
            read.extend(sections.eh_frame.as_ref().map(|bytes| (Arc::downgrade(bytes), size)));
        }
        Ok(sections)
    }
}

/// The unwind information of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnwindInformation {
    Loaded,
    /// There is no room for it.
    Refused,
    /// It is not an image, or has none.
    Missing,
}

/// The unwind information of a process.
pub(crate) struct Process {
    limits: Arc<UnwindLimits>,
    unwinder: UnwinderNative<Arc<[u8]>, framehop::MayAllocateDuringUnwind>,
    cache: CacheNative<framehop::MayAllocateDuringUnwind>,
    /// The unwind information of mappings, by first address.
    mappings: HashMap<u64, UnwindInformation>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("mappings", &self.mappings.len()).finish_non_exhaustive()
    }
}

impl Process {
    pub(crate) fn new(limits: &Arc<UnwindLimits>) -> Self {
        Self {
            limits: Arc::clone(limits),
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            mappings: HashMap::new(),
        }
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

    /// Loads the unwind information of a mapping. Returns true if the mapping has any.
    pub(crate) fn load(&mut self, pid: i32, mapping: &Mapping) -> bool {
        if let Some(&known) = self.mappings.get(&mapping.start) {
            return known == UnwindInformation::Loaded;
        }
        let is_full = self.mappings.len() >= MAX_IMAGES;
        let module = if is_full { Err(UnwindInformation::Missing) } else { self.module(pid, mapping) };
        let found = match module {
            Ok(module) => {
                self.unwinder.add_module(module);
                UnwindInformation::Loaded
            }
            Err(missing) => missing,
        };
        self.mappings.insert(mapping.start, found);
        found == UnwindInformation::Loaded
    }

    /// Returns true if a mapping is of an image whose unwind information is beyond the limits.
    pub(crate) fn is_refused(&self, mapping: &Mapping) -> bool {
        self.mappings.get(&mapping.start) == Some(&UnwindInformation::Refused)
    }

    fn module(&self, pid: i32, mapping: &Mapping) -> Result<Module<Arc<[u8]>>, UnwindInformation> {
        let missing = UnwindInformation::Missing;
        let image = mapping.image(pid).ok_or(missing)?;
        let own = mapping.address_in(image, mapping.start).ok_or(missing)?;
        let sections = self.limits.sections(image)?;
        if sections.eh_frame.is_none() {
            return Err(missing);
        }
        let base = mapping.start.wrapping_sub(own);
        Ok(Module::new(mapping.name.to_string(), mapping.start..mapping.end, base, sections))
    }
}

/// The word at an address of a stack. The copied bytes begin at the stack pointer.
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

/// Reads up to `most` bytes of a stack from the stack pointer on, while they are mapped.
pub(crate) fn read_stack(memory: &File, sp: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut stack = vec![0; most];
    let mut filled = 0;
    while let Some(rest) = stack.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match memory.read_at(rest, sp.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if filled == 0 => return Err(error),
            Err(_) => break,
        }
    }
    stack.truncate(filled);
    Ok(stack)
}
