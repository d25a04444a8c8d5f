//! Copies of core dumps without the contents of the program's strings and buffers.
//!
//! A copy has only what the analysis of this crate reads: the runtime's structures, the objects without the
//! characters of strings and the elements of arrays of numbers, the addresses on stacks. All other memory is
//! zero. So native memory cannot leak unexpected copies of strings.

mod heap;

use std::io;
use std::ops::Range;

use self::heap::read_heap;
use crate::copy::kept::{CHUNK, Kept, Recorder};
use crate::dump::Dump;
use crate::error::Error;
use crate::heap::Amount;
use crate::heap::gc_root::stack_range;
use crate::heap::regions::HeapLayout;
use crate::memory::copy_note;
use crate::memory::core_file::{CoreFile, STRIPPED, STRIPPED_OF_NUMBERS};
use crate::memory::{Memory, offset};
use crate::processor::Processor;
use crate::runtime::Runtime;
use crate::runtime::module::Module;
use crate::types::Types;

/// Words of registers and stacks below this are kept: they are not addresses, and too small to contain a
/// string.
const SMALL: u64 = 1 << 16;
/// Maximum number of bytes of notes to read.
const MAX_NOTES: u64 = 256 << 20;

/// A copy of a core dump that is to be written.
///
/// ```no_run
/// use clr_dump::{CoreFile, StrippedCore};
/// use std::io::{Seek as _, SeekFrom, Write as _};
///
/// let core = CoreFile::open(std::fs::File::open("core")?)?;
/// let stripped = StrippedCore::new(&core)?;
/// println!("without {} strings", stripped.contents().strings.objects);
/// let mut copy = std::fs::File::create("core.stripped")?;
/// stripped.write(|at, bytes| {
///     copy.seek(SeekFrom::Start(at))?;
///     copy.write_all(bytes)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StrippedCore<'c> {
    core: &'c CoreFile,
    kept: Kept,
    contents: Contents,
    numbers: Numbers,
}

/// The numbers of the program in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Kept,
    /// Removes all numbers except lengths, counts, addresses, and numbers that the views of threads, locks
    /// and async methods read.
    Removed,
}

/// The contents of the heap of a core dump that a copy does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// True if the core dump has a heap.
    pub has_heap: bool,
    /// Strings, with the bytes of their objects.
    pub strings: Amount,
    /// Arrays of numbers, characters and structures without references, with the bytes of their objects.
    pub buffers: Amount,
    /// Free memory between objects, which has the contents of former objects.
    pub free: Amount,
}

/// The amounts of a written copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenCopy {
    /// Bytes of memory that equal the original.
    pub kept_bytes: u64,
    /// Bytes of memory that are zero in place of the original's.
    pub removed_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

impl<'c> StrippedCore<'c> {
    /// Reads all data that the analysis of a core dump reads, to determine the contents of a copy.
    ///
    /// # Errors
    /// As [`Runtime::find`]: if a core dump cannot be analyzed, the contents that its copy needs are unknown.
    pub fn new(core: &'c CoreFile) -> Result<Self, Error> {
        Self::read(core, Numbers::Kept)
    }

    /// Like [`new`](Self::new), for a copy that also removes the program's numbers in fields, boxes,
    /// elements, static fields and on stacks. It keeps lengths, counts of the framework's collections,
    /// addresses, states of async methods, and the fields of exceptions, delegates and the framework's
    /// threads, locks, tasks and timers.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn without_numbers(core: &'c CoreFile) -> Result<Self, Error> {
        Self::read(core, Numbers::Removed)
    }

    fn read(core: &'c CoreFile, numbers: Numbers) -> Result<Self, Error> {
        let mut recorder = Recorder::new(core);
        let (regions, string_type) = {
            let runtime = Runtime::find(&recorder, core.files())?;
            let layout = HeapLayout::read(&recorder, &runtime).unwrap_or_default();
            let regions = layout.regions.iter().map(|region| region.start..region.end);
            let string_type = runtime.string_type(&recorder);
            (present(core, regions.collect()), string_type.unwrap_or_default().get())
        };
        recorder.set_regions(regions, string_type);
        let contents = {
            let runtime = Runtime::find(&recorder, core.files())?;
            let names = Dump::new(&recorder, &runtime);
            read_threads(core, &recorder, &names, numbers);
            let contents = read_heap(core, &recorder, &names, numbers);
            for module in names.types().modules() {
                drop_texts(&recorder, names.types(), &module);
            }
            contents
        };
        let kept = recorder.into_kept();
        if kept.is_full {
            return Err(Error::TooLarge);
        }
        Ok(Self { core, kept, contents, numbers })
    }

    /// The contents that the copy does not have.
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes the copy: each part at the same offset as in the original. Parts that are zero are not written.
    ///
    /// # Errors
    /// If reading or writing the files fails.
    pub fn write(
        &self,
        mut write_at: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<WrittenCopy, Error> {
        let read = |error| Error::Io { what: "core dump".to_owned(), error };
        let written = |error| Error::Write { error };
        let file = self.core.file();
        let mut copy = WrittenCopy { file_bytes: file.size(), ..WrittenCopy::default() };
        for range in self.core.headers() {
            let bytes = file.bytes(range.start, range.end.saturating_sub(range.start)).map_err(read)?;
            write_at(range.start, &bytes).map_err(written)?;
        }
        for range in self.core.notes() {
            let size = range.end.saturating_sub(range.start).min(MAX_NOTES);
            let mut bytes = file.bytes(range.start, size).map_err(read)?;
            strip_notes(&mut bytes, self.core, self.numbers);
            write_at(range.start, &bytes).map_err(written)?;
        }
        for address in self.kept.addresses() {
            for (start, size) in self.core.present(address, CHUNK) {
                let Some(at) = self.core.file_offset(start) else { continue };
                let mut bytes = file.bytes(at, size).map_err(read)?;
                copy.kept_bytes = copy.kept_bytes.saturating_add(self.kept.mask(start, &mut bytes));
                for (at, page) in (at..).step_by(4096).zip(bytes.chunks(4096)) {
                    if page.iter().any(|byte| *byte != 0) {
                        write_at(at, page).map_err(written)?;
                    }
                }
            }
        }
        copy.removed_bytes = self.core.memory_bytes().saturating_sub(copy.kept_bytes);
        Ok(copy)
    }
}

/// Returns the regions of a heap; none if the core dump lacks most of it: small ones have a few objects,
/// which are read one by one.
fn present(core: &CoreFile, regions: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let size = |range: &Range<u64>| range.end.saturating_sub(range.start);
    let all = regions.iter().map(size).fold(0, u64::saturating_add);
    let of_file = regions.iter().flat_map(|range| core.present(range.start, size(range)));
    let there = of_file.map(|(_, bytes)| bytes).fold(0, u64::saturating_add);
    if there < all / 2 { Vec::new() } else { regions }
}

/// Reads all data that the views of threads, stacks, exceptions and monitors read, and the addresses on
/// stacks.
fn read_threads(core: &CoreFile, recorder: &Recorder<'_>, names: &Dump<'_>, numbers: Numbers) {
    let runtime = names.runtime();
    let managed = runtime.threads(recorder).unwrap_or_default();
    for thread in core.threads() {
        let is_known = managed.iter().any(|other| other.os_id == u64::from(thread.tid));
        if let Some(registers) = thread.registers.as_ref().filter(|_| !is_known) {
            for frame in &runtime.native_stack(recorder, registers).frames {
                runtime.native_image(recorder, frame.position.lookup_address(frame.ip));
            }
        }
    }
    for thread in &managed {
        let registers = core.registers(thread.os_id);
        let stack = runtime.stack(recorder, thread, registers);
        for frame in &stack.frames {
            match &frame.code {
                Some(managed) => {
                    names.types().method(managed);
                    names.types().il_offset(managed, frame.position.lookup_address(frame.ip));
                    names.types().touch(frame);
                }
                None => drop(runtime.native_image(recorder, frame.position.lookup_address(frame.ip))),
            }
        }
        let _ = runtime.thread_name(recorder, thread);
        let _ = names.locks().waits(thread);
        let _ = names.statics().thread_object(thread);
        for (_, chain) in names.exceptions().of_thread(thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                names.exceptions().method(frame);
                names.exceptions().il_offset(frame);
            }
        }
        keep_addresses(core, recorder, stack_range(thread, &stack, registers), numbers);
    }
    names.locks().monitors();
    for module in names.types().modules() {
        for entry in names.types().debug_entries(&module) {
            // The id of the PDB, without the path of its build.
            let _ = names.memory().array::<PDB_ID>(entry.address.get());
        }
    }
}

/// The number of bytes of the id of a PDB, with the signature before it and the age after it.
const PDB_ID: usize = 24;

/// Keeps the words of a stack that are addresses of memory. Registers that were saved there can have numbers.
fn keep_addresses(core: &CoreFile, recorder: &Recorder<'_>, range: Option<Range<u64>>, numbers: Numbers) {
    let Some(range) = range else { return };
    let memory: &dyn Memory = core;
    let mut at = range.start & !7;
    while at < range.end {
        let Ok(word) = memory.u64(at) else { break };
        if core.present(word, 1).next().is_some() {
            recorder.keep(at, 8);
        } else if numbers == Numbers::Removed && !core.is_mapped(word) {
            for (part, half) in [(at, word & u64::from(u32::MAX)), (offset(at, 4), word >> 32)] {
                if half >= SMALL {
                    recorder.leave_out(part, 4);
                }
            }
        }
        at = at.saturating_add(8);
    }
}

/// Keeps the metadata of a module, without the string literals of its code (`#US`).
fn drop_texts(recorder: &Recorder<'_>, types: Types<'_>, module: &Module) {
    let texts = types.metadata_bytes(module).and_then(user_strings);
    if let (Some(texts), Some((at, _))) = (texts, module.metadata_at) {
        let size = texts.end.saturating_sub(texts.start);
        recorder.leave_out(offset(at, texts.start), size);
    }
}

/// The range of the user string heap in metadata (ECMA-335 II.24.2.1).
fn user_strings(metadata: &[u8]) -> Option<Range<u64>> {
    let number = |at: usize| Some(u32::from_le_bytes(*metadata.get(at..)?.first_chunk()?));
    let mut at = 16_usize.checked_add(usize::try_from(number(12)?).ok()?)?.checked_add(4)?;
    let count = number(at.checked_sub(2)?)? >> 16;
    for _ in 0..count.min(64) {
        let (start, size) = (u64::from(number(at)?), u64::from(number(at.checked_add(4)?)?));
        let name = metadata.get(at.checked_add(8)?..)?;
        let length = name.iter().take(32).position(|byte| *byte == 0)?;
        if name.get(..length) == Some(b"#US") {
            return Some(start..start.saturating_add(size));
        }
        at = at.checked_add(8)?.checked_add(length.checked_add(1)?.next_multiple_of(4))?;
    }
    None
}

/// Removes contents of notes: floating-point registers, command lines, and unknown kinds.
fn strip_notes(bytes: &mut [u8], core: &CoreFile, numbers: Numbers) {
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk::<12>() {
        let field = |at: usize| {
            let number = header.get(at..).and_then(<[u8]>::first_chunk).copied().map(u32::from_le_bytes);
            usize::try_from(number.unwrap_or_default()).unwrap_or(usize::MAX)
        };
        let (name, size, kind) = (field(0), field(4), field(8));
        let start = 12_usize.saturating_add(name.saturating_add(3) & !3);
        let end = start.saturating_add(size);
        let next = start.saturating_add(size.saturating_add(3) & !3);
        let Some(content) = rest.get_mut(start..end) else {
            // Truncated.
            rest.fill(0);
            return;
        };
        match u32::try_from(kind).unwrap_or_default() {
            // NT_PRSTATUS
            1 => strip_registers(content, core, numbers),
            // NT_PRPSINFO
            3 => {
                let arguments = content.get_mut(56..).unwrap_or_default();
                arguments.fill(0);
                let mark = match numbers {
                    Numbers::Kept => STRIPPED,
                    Numbers::Removed => STRIPPED_OF_NUMBERS,
                };
                for (to, from) in arguments.iter_mut().take(79).zip(mark.bytes()) {
                    *to = from;
                }
            }
            // NT_AUXV, NT_FILE, and the description of a copy
            6 | 0x4649_4c45 | copy_note::KIND => {}
            // NT_SIGINFO: a queued signal has a value of the sender's.
            0x5349_4749 => content.get_mut(24..).unwrap_or_default().fill(0),
            _ => content.fill(0),
        }
        rest = rest.get_mut(next..).unwrap_or_default();
    }
}

/// Removes values of general registers that are neither addresses nor small; small ones, too, if numbers are.
fn strip_registers(status: &mut [u8], core: &CoreFile, numbers: Numbers) {
    let Some(processor) = core.processor() else { return status.get_mut(112..).unwrap_or_default().fill(0) };
    // The number of a system call, the instruction pointer, flags and segments follow on x86-64, the stack
    // pointer, the instruction pointer and flags on arm64. The last word says that there are numbers with
    // fractions.
    let (general, all) = match processor {
        Processor::X86_64 => (15, 27),
        Processor::Aarch64 => (31, 34),
    };
    for (index, word) in (0..all).zip(status.get_mut(112..).unwrap_or_default().as_chunks_mut::<8>().0) {
        let value = u64::from_le_bytes(*word);
        let is_small = value < SMALL && (numbers == Numbers::Kept || index >= general);
        if !is_small && core.present(value, 1).next().is_none() && !core.is_mapped(value) {
            word.fill(0);
        }
    }
}
