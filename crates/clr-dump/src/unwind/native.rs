//! Native code: images by address, and the caller's registers from their unwind information (`.eh_frame`).
//!
//! All registers that a callee preserves are followed, which managed frames above need, and frames of signal
//! handlers lead to the interrupted code.
//!
//! # Source
//! Linux Standard Base, *Exception Frames* (`.eh_frame_hdr`); System V ABI, *AMD64 Architecture Processor
//! Supplement*, 3.6.2, and *DWARF for the Arm 64-bit Architecture*, 4.1, for the numbers of registers; Linux
//! `arch/x86/include/uapi/asm/sigcontext.h`, `arch/arm64/include/uapi/asm/sigcontext.h`.

use std::sync::{Arc, Mutex, PoisonError};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, Expression, Format,
    LittleEndian, Location, RegisterRule, UnwindContext, UnwindSection, Value, Vendor,
};
use hashbrown::HashMap;

use crate::memory::address::Address;
use crate::memory::mapping::MappedFile;
use crate::memory::{Memory, MemoryResult, offset};
use crate::processor::Processor;
use crate::runtime::elf_image::ElfImage;
use crate::unwind::registers::{Register, Registers};
use crate::unwind::{FramePosition, UnwindError};

/// Maximum number of images to keep headers of.
const MAX_IMAGES: usize = 4096;
/// Maximum number of mappings of an image.
const MAX_MAPPINGS: usize = 64;
/// Maximum number of bytes of an entry of the unwind information.
const MAX_ENTRY_BYTES: u32 = 1 << 16;
/// Maximum number of operations of an expression.
const MAX_OPERATIONS: u32 = 1000;
/// Maximum number of entries of a search table.
const MAX_ENTRIES: u32 = 1 << 24;

/// A program or library in the memory of a process.
#[derive(Debug)]
#[non_exhaustive]
pub struct NativeImage {
    /// The path as the process sees it.
    pub path: Arc<str>,
    /// The address of its first byte.
    pub base: Address,
    /// The build id; empty if missing.
    pub build_id: Vec<u8>,
    /// The value that its own addresses are shifted by.
    pub bias: u64,
    table: Option<SearchTable>,
}

/// The images of a process, with or without a runtime. Their headers are read once.
///
/// ```no_run
/// use clr_dump::{Address, NativeImages};
///
/// // A core dump of any program, without a runtime.
/// let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
/// let images = NativeImages::new(core.files());
/// for thread in core.threads() {
///     let Some(registers) = &thread.registers else { continue };
///     let stack = images.stack(&core, registers);
///     println!("{}: {} frames, in {:?}", thread.tid, stack.frames.len(), images.at(&core, Address::new(registers.ip)));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NativeImages {
    files: Vec<MappedFile>,
    images: Mutex<HashMap<Address, Option<Arc<NativeImage>>>>,
}

/// The registers in the caller of a frame, and the caller's place: a signal has interrupted it at any
/// instruction.
pub(crate) type Caller = (Registers, FramePosition);

impl NativeImages {
    /// Uses the mapped files of a process.
    pub fn new(files: &[MappedFile]) -> Self {
        let mut files = files.to_vec();
        files.sort_by_key(|file| file.start);
        Self { files, images: Mutex::default() }
    }

    /// Returns the image that contains an address; `None` outside images, or if the memory lacks the headers.
    pub fn at(&self, memory: &dyn Memory, address: Address) -> Option<Arc<NativeImage>> {
        let next = self.files.partition_point(|file| file.start <= address);
        let before = self.files.get(..next)?;
        let file = before.last().filter(|file| address < file.end)?;
        // The first mapping has the headers.
        let mut mappings = before.iter().rev().take(MAX_MAPPINGS);
        let first = mappings.find(|mapping| mapping.file_offset == 0 && mapping.path == file.path)?;
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = images.get(&first.start) {
            return image.clone();
        }
        let image = NativeImage::read(memory, first).map(Arc::new);
        if images.len() < MAX_IMAGES {
            images.insert(first.start, image.clone());
        }
        image
    }

    /// Returns the caller of a frame of native code; `None` at the root of the stack.
    pub(crate) fn unwind(
        &self,
        memory: &dyn Memory,
        registers: &Registers,
        position: FramePosition,
    ) -> Result<Option<Caller>, UnwindError> {
        if let Some(interrupted) = interrupted(memory, registers) {
            return Ok(Some((interrupted, FramePosition::Innermost)));
        }
        let address = position.lookup_address(Address::new(registers.ip));
        let image = self.at(memory, address).ok_or(UnwindError::NotInImage)?;
        let table = image.table.as_ref().ok_or(UnwindError::NoInformation)?;
        let entry = table.find(memory, address.get())?.ok_or(UnwindError::NoInformation)?;
        Entry::read(memory, entry)?.unwind(memory, registers, address.get())
    }

    /// Returns the function that contains an address; `None` outside known functions.
    pub(crate) fn function(&self, memory: &dyn Memory, address: u64) -> Option<NativeFunction> {
        let image = self.at(memory, Address::new(address))?;
        let entry = image.table.as_ref()?.find(memory, address).ok()??;
        let function = Entry::read(memory, entry).ok()?.function(entry)?;
        (function.begin <= address && address < function.end).then_some(function)
    }
}

/// A function of an image, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NativeFunction {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The address of its unwind information.
    pub(crate) entry: u64,
    /// The address of the data that its language has about it.
    pub(crate) language_data: Option<u64>,
}

impl NativeImage {
    fn read(memory: &dyn Memory, file: &MappedFile) -> Option<Self> {
        let image = ElfImage::read(memory, file.start.get()).ok()??;
        Some(Self {
            path: Arc::clone(&file.path),
            base: file.start,
            table: image.unwind_table.and_then(|at| SearchTable::read(memory, at).ok().flatten()),
            build_id: image.build_id.unwrap_or_default(),
            bias: image.bias,
        })
    }

    /// The name of its file.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The search table of an image's unwind information, sorted by the functions' addresses.
#[derive(Debug)]
struct SearchTable {
    /// The address that entries are relative to.
    header: u64,
    count: u32,
}

impl SearchTable {
    /// Reads the header; `None` if it is of another form than linkers write.
    fn read(memory: &dyn Memory, header: u64) -> MemoryResult<Option<Self>> {
        // Version 1; 4 bytes each: relative to the field, a number, relative to the header.
        if memory.array(header)? != [1, 0x1b, 0x03, 0x3b] {
            return Ok(None);
        }
        let count = memory.u32(offset(header, 8))?.min(MAX_ENTRIES);
        Ok(Some(Self { header, count }))
    }

    /// The function and the address of the unwind information of an entry.
    fn entry(&self, memory: &dyn Memory, index: u32) -> MemoryResult<[u64; 2]> {
        let at = offset(self.header, u64::from(index).wrapping_mul(8).wrapping_add(12));
        let from_header = |word: u32| self.header.wrapping_add_signed(word.cast_signed().into());
        Ok([from_header(memory.u32(at)?), from_header(memory.u32(offset(at, 4))?)])
    }

    /// Returns the address of the unwind information of the last function that begins at or before an
    /// address.
    fn find(&self, memory: &dyn Memory, address: u64) -> MemoryResult<Option<u64>> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(None) };
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            let [function, _] = self.entry(memory, middle)?;
            if function <= address {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        let [function, entry] = self.entry(memory, low)?;
        Ok((function <= address).then_some(entry))
    }
}

/// The unwind information of a function, and the part that it shares with others, copied together.
struct Entry {
    bytes: Vec<u8>,
    /// The offset of the function's own part.
    own: usize,
    bases: BaseAddresses,
}

type Bytes<'b> = EndianSlice<'b, LittleEndian>;

const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// Converts an error of the reader of unwind information.
fn unwind_error(error: gimli::Error) -> UnwindError {
    match error {
        gimli::Error::NoUnwindInfoForAddress => UnwindError::NoInformation,
        _ => UnwindError::Damaged,
    }
}

impl Entry {
    /// Copies the entry at an address: only these bytes of `.eh_frame` have to be in the memory.
    fn read(memory: &dyn Memory, at: u64) -> Result<Self, UnwindError> {
        let pointer_at = offset(at, 4);
        let pointer = memory.u32(pointer_at)?;
        let mut bytes = record(memory, pointer_at.wrapping_sub(pointer.into()))?;
        let own = bytes.len();
        let function = record(memory, at)?;
        // The distance to the shared part, which is before it now.
        let distance = u32::try_from(own.saturating_add(4)).map_err(|_| UnwindError::Damaged)?;
        bytes.extend(function.get(..4).ok_or(UnwindError::Damaged)?);
        bytes.extend(distance.to_le_bytes());
        bytes.extend(function.get(8..).ok_or(UnwindError::Damaged)?);
        // Addresses are relative to their own place.
        let start = at.wrapping_sub(u64::try_from(own).map_err(|_| UnwindError::Damaged)?);
        Ok(Self { bytes, own, bases: BaseAddresses::default().set_eh_frame(start) })
    }

    fn section(&self) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        // The default is the size of the reader's own addresses.
        section.set_address_size(ENCODING.address_size);
        // Only code of arm64 has operations of a vendor: for signed return addresses.
        section.set_vendor(Vendor::AArch64);
        section
    }

    fn function(&self, at: u64) -> Option<NativeFunction> {
        let section = self.section();
        let entry = section.fde_from_offset(&self.bases, self.own.into(), EhFrame::cie_from_offset).ok()?;
        let language_data = match entry.lsda() {
            Some(gimli::Pointer::Direct(at)) => Some(at),
            _ => None,
        };
        let begin = entry.initial_address();
        Some(NativeFunction { begin, end: begin.saturating_add(entry.len()), entry: at, language_data })
    }

    fn unwind(
        &self,
        memory: &dyn Memory,
        registers: &Registers,
        address: u64,
    ) -> Result<Option<Caller>, UnwindError> {
        let section = self.section();
        let entry = section
            .fde_from_offset(&self.bases, self.own.into(), EhFrame::cie_from_offset)
            .map_err(unwind_error)?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&section, &self.bases, &mut context, address)
            .map_err(unwind_error)?;
        let frame = Frame { memory, registers, section: &section };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                frame.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => {
                frame.evaluate(&expression.get(&section).map_err(unwind_error)?, None)?
            }
        };
        let processor = registers.processor();
        let ip = match row.register(entry.cie().return_address_register()) {
            // A function that calls no other leaves it in its register.
            None if processor == Processor::Aarch64 => {
                Some(registers.get(Register::LR).ok_or(UnwindError::UnknownRegister)?)
            }
            rule => frame.saved(rule.as_ref(), cfa)?,
        };
        let Some(ip) = ip.map(|ip| processor.return_address(ip)).filter(|ip| *ip != 0) else {
            return Ok(None);
        };
        let mut caller = Registers::of(processor, ip, cfa);
        for (number, register) in (0..).zip(dwarf_order(processor)) {
            let value = match row.register(gimli::Register(number)) {
                // The stack pointer is the frame's address, and other registers are kept or lost by
                // convention.
                None if matches!(register, Register::RSP | Register::SP) => None,
                None if is_preserved(register) => registers.get(register),
                None => None,
                // A register's value may be missing even if others are present.
                rule => frame.saved(rule.as_ref(), cfa).unwrap_or_default(),
            };
            if let Some(value) = value {
                caller.set(register, value);
            }
        }
        let is_signal = entry.is_signal_trampoline();
        let position = if is_signal { FramePosition::Innermost } else { FramePosition::Caller };
        Ok(Some((caller, position)))
    }
}

/// Reads an entry with its length.
fn record(memory: &dyn Memory, at: u64) -> Result<Vec<u8>, UnwindError> {
    let length = memory.u32(at)?;
    if length == 0 || length > MAX_ENTRY_BYTES {
        return Err(UnwindError::Damaged);
    }
    let size = usize::try_from(length).map_err(|_| UnwindError::Damaged)?.saturating_add(4);
    Ok(memory.bytes(at, size)?)
}

/// The registers of x86-64 in the order of their DWARF numbers.
const X86_64_ORDER: [Register; 16] = [
    Register::RAX,
    Register::RDX,
    Register::RCX,
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::RSP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The register with a DWARF number; `None` if it is not followed.
fn dwarf_register(processor: Processor, number: u16) -> Option<Register> {
    match processor {
        Processor::X86_64 => X86_64_ORDER.get(usize::from(number)).copied(),
        Processor::Aarch64 => u8::try_from(number).ok().filter(|number| *number < 32).map(Register::x),
    }
}

/// The registers in the order of their DWARF numbers.
fn dwarf_order(processor: Processor) -> impl Iterator<Item = Register> {
    (0..).map_while(move |number| dwarf_register(processor, number))
}

/// Returns true if functions return with the value that the register had.
fn is_preserved(register: Register) -> bool {
    const PRESERVED: [Register; 6] =
        [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
    PRESERVED.contains(&register) || (19..30).map(Register::x).any(|preserved| preserved == register)
}

/// A frame during the computation of its caller's registers.
struct Frame<'f> {
    memory: &'f dyn Memory,
    registers: &'f Registers,
    section: &'f EhFrame<Bytes<'f>>,
}

impl Frame<'_> {
    fn register(&self, register: gimli::Register) -> Result<u64, UnwindError> {
        let register = dwarf_register(self.registers.processor(), register.0);
        let known = register.and_then(|register| self.registers.get(register));
        known.ok_or(UnwindError::UnknownRegister)
    }

    /// The value of a register in the caller; `None` if unknown.
    fn saved(&self, rule: Option<&RegisterRule<usize>>, cfa: u64) -> Result<Option<u64>, UnwindError> {
        let expression = |of: gimli::UnwindExpression<usize>| {
            self.evaluate(&of.get(self.section).map_err(unwind_error)?, Some(cfa))
        };
        let value = match rule {
            Some(RegisterRule::Offset(by)) => self.memory.u64(cfa.wrapping_add_signed(*by))?,
            Some(RegisterRule::ValOffset(by)) => cfa.wrapping_add_signed(*by),
            Some(RegisterRule::Register(register)) => self.register(*register)?,
            Some(RegisterRule::Expression(of)) => self.memory.u64(expression(*of)?)?,
            Some(RegisterRule::ValExpression(of)) => expression(*of)?,
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// Evaluates an expression; that of a register begins with the frame's address.
    fn evaluate(&self, expression: &Expression<Bytes<'_>>, initial: Option<u64>) -> Result<u64, UnwindError> {
        let mut evaluation: Evaluation<Bytes<'_>> = expression.evaluation(ENCODING);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(cfa) = initial {
            evaluation.set_initial_value(cfa);
        }
        let mut state = evaluation.evaluate().map_err(unwind_error)?;
        loop {
            let next = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?))
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let mut word = [0; 8];
                    let bytes = word.get_mut(..usize::from(size)).ok_or(UnwindError::Damaged)?;
                    self.memory.read(address, bytes)?;
                    evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(word)))
                }
                _ => return Err(UnwindError::Damaged),
            };
            state = next.map_err(unwind_error)?;
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Ok(address),
                _ => Err(UnwindError::Damaged),
            },
            _ => Err(UnwindError::Damaged),
        }
    }
}

/// The registers at the time of a signal, if the kernel put this frame below a signal handler: its code is
/// the system call that returns from the handler. C libraries need not have unwind information for it.
fn interrupted(memory: &dyn Memory, registers: &Registers) -> Option<Registers> {
    match registers.processor() {
        Processor::X86_64 => interrupted_x86_64(memory, registers),
        Processor::Aarch64 => interrupted_arm64(memory, registers),
    }
}

fn interrupted_x86_64(memory: &dyn Memory, registers: &Registers) -> Option<Registers> {
    // mov rax, 15; syscall
    const RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    /// The registers in the kernel's order, up to the stack pointer and the instruction pointer.
    const ORDER: [Register; 15] = [
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
        Register::RDI,
        Register::RSI,
        Register::RBP,
        Register::RBX,
        Register::RDX,
        Register::RAX,
        Register::RCX,
    ];
    if memory.array(registers.ip) != Ok(RETURN) {
        return None;
    }
    // The stack pointer is at the context: flags, link, stack (24 bytes), registers.
    let words: [u64; 17] = memory.words(offset(registers.sp, 40)).ok()?;
    let [.., sp, ip] = words;
    let interrupted = Registers::of(Processor::X86_64, ip, sp);
    Some(interrupted.with_all(ORDER.into_iter().zip(words)))
}

fn interrupted_arm64(memory: &dyn Memory, registers: &Registers) -> Option<Registers> {
    // mov x8, #139; svc #0
    const RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
    /// The offset of x0 from the stack pointer: the signal's information (128 bytes) and the context, with
    /// flags, link, stack, signals (168 bytes, aligned to 16) and the address of the fault.
    const X0: u64 = 312;
    if memory.array(registers.ip) != Ok(RETURN) {
        return None;
    }
    // x0 to x30, the stack pointer and the instruction pointer.
    let words: [u64; 33] = memory.words(offset(registers.sp, X0)).ok()?;
    let [.., sp, ip] = words;
    let interrupted = Registers::of(Processor::Aarch64, ip, sp);
    Some(interrupted.with_all((0..31).map(Register::x).zip(words)))
}
