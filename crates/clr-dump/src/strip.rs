//! Copies of core dumps without what a program had in its texts and buffers.
//!
//! A copy has only what the analysis of this crate reads: the runtime's structures, the objects without the
//! characters of strings and the elements of arrays of numbers, the addresses on stacks. All other memory is
//! zero. So no native memory can have copies of texts that nobody thought of.

use std::io;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use crate::copy_note;
use crate::core_file::{CoreFile, STRIPPED};
use crate::error::Error;
use crate::field::{Field, ValueKind};
use crate::heap::{Amount, HeapObject, HeapVisitor};
use crate::kept::{CHUNK, Kept, Recorder};
use crate::memory::{Memory, offset};
use crate::names::{HAS_COMPONENT_SIZE, Names};
use crate::regions::HeapLayout;
use crate::root::stack_range;
use crate::runtime::Runtime;

/// The elements of arrays that are looked into for the types of their elements.
const ELEMENTS: u32 = 4;
/// Words of registers and stacks below this are kept: they are no addresses, and too small to have a text.
const SMALL: u64 = 1 << 16;
/// The place of the type of an array's elements in the type.
const ELEMENT_TYPE: u64 = 48;
/// Maximum nesting depth of structures to inspect.
const MAX_DEPTH: u32 = 8;
/// Maximum number of methods that delegates call.
const MAX_METHODS: usize = 1 << 20;
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
    /// Free memory between objects, which has the contents of former ones.
    pub free: Amount,
}

/// The amounts of a written copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenCopy {
    /// Bytes of memory that are those of the original.
    pub kept_bytes: u64,
    /// Bytes of memory that are zero in place of the original's.
    pub removed_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

impl<'c> StrippedCore<'c> {
    /// Reads all that the analysis of a core dump reads, to know what a copy keeps.
    ///
    /// # Errors
    /// As [`Runtime::find`]: of a core dump that cannot be analyzed, it is not known what its copy has to
    /// have.
    pub fn new(core: &'c CoreFile) -> Result<Self, Error> {
        let mut recorder = Recorder::new(core);
        let (regions, string_type) = {
            let runtime = Runtime::find(&recorder, core.files())?;
            let layout = HeapLayout::read(&recorder, &runtime).unwrap_or_default();
            let regions = layout.regions.iter().map(|region| region.start..region.end);
            let string_type = runtime.string_type(&recorder);
            (present(core, regions.collect()), string_type.unwrap_or_default())
        };
        recorder.set_regions(regions, string_type);
        let contents = {
            let runtime = Runtime::find(&recorder, core.files())?;
            let names = Names::new(&recorder, &runtime);
            read_threads(core, &recorder, &names);
            let contents = read_heap(&recorder, &names);
            for module in names.known_modules() {
                drop_texts(&recorder, &module);
            }
            contents
        };
        let kept = recorder.into_kept();
        if kept.is_full {
            return Err(Error::TooLarge);
        }
        Ok(Self { core, kept, contents })
    }

    /// The contents that the copy does not have.
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes the copy: each part at the same offset as in the original. Parts that are zero are not written.
    ///
    /// # Errors
    /// Those of the files.
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
            strip_notes(&mut bytes, self.core);
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

/// Reads what the views of threads, stacks, exceptions and monitors read, and the addresses on stacks.
fn read_threads(core: &CoreFile, recorder: &Recorder<'_>, names: &Names<'_>) {
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
                Some(managed) => drop(names.method(managed)),
                None => drop(runtime.native_image(recorder, frame.position.lookup_address(frame.ip))),
            }
        }
        let _ = runtime.thread_name(recorder, thread);
        let _ = runtime.monitor_waits(recorder, thread);
        let _ = names.thread_static_array(thread);
        for (_, chain) in names.thread_exceptions(thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                names.exception_method(frame);
            }
        }
        keep_addresses(core, recorder, stack_range(thread, &stack, registers));
    }
    runtime.monitors(recorder);
    names.known_modules();
}

/// Keeps the words of a stack that are addresses of memory.
fn keep_addresses(core: &CoreFile, recorder: &Recorder<'_>, range: Option<Range<u64>>) {
    let Some(range) = range else { return };
    let memory: &dyn Memory = core;
    let mut at = range.start & !7;
    while at < range.end {
        let Ok(word) = memory.u64(at) else { break };
        if core.present(word, 1).next().is_some() {
            recorder.keep(at, 8);
        }
        at = at.saturating_add(8);
    }
}

/// Reads what the views of the heap read, and keeps the objects without their contents.
fn read_heap(recorder: &Recorder<'_>, names: &Names<'_>) -> Contents {
    // Small core dumps have parts of these.
    let _ = (names.handles(), names.finalizable(), names.static_field_objects());
    let mut reader = HeapReader {
        recorder,
        names,
        shapes: HashMap::new(),
        inline_buffers: HashMap::new(),
        examples: Vec::new(),
        entries: HashSet::new(),
        contents: Contents::default(),
    };
    if !recorder.has_regions() {
        return Contents::default();
    }
    let Ok(walk) = names.walk_heap(&mut reader) else { return Contents::default() };
    let HeapReader { examples, mut contents, .. } = reader;
    (contents.has_heap, contents.free) = (true, walk.free);
    for object in &examples {
        names.type_name(object.type_handle);
        names.event_type_name(object.type_handle);
        names.type_module(object.type_handle);
        names.is_type(object.type_handle);
        let _ = names.content(object, ELEMENTS);
    }
    let threads = names.runtime().threads(recorder).unwrap_or_default();
    for field in names.static_fields(examples.iter().map(|object| object.type_handle), &threads) {
        names.static_value(&field);
        if field.thread.is_some() {
            // It lies in an array of the heap.
            recorder.keep(field.address & !7, 8);
        }
        names.reference_at(field.address);
        names.type_name(field.type_handle);
    }
    let _ = names.await_chains();
    contents
}

/// The part of an object that a copy keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    /// All, and what names the method that it calls.
    Delegate,
    /// All, and the array to which an exception's field of its stack leads.
    Exception,
    /// The first bytes.
    String,
    Buffer(u64),
}

/// Buffers that are part of an object: fields of C# that are `fixed`.
struct InlineBuffers {
    /// Their places, from the first field or element.
    places: Vec<Range<u64>>,
    /// The bytes of an element of an array; 0 for other objects.
    element: u64,
}

struct HeapReader<'r, 'm> {
    recorder: &'r Recorder<'m>,
    names: &'r Names<'r>,
    shapes: HashMap<u64, Shape>,
    /// The `fixed` buffers in objects of a type, or in the elements of arrays of it; types without any are missing.
    inline_buffers: HashMap<u64, InlineBuffers>,
    /// The first object of each type.
    examples: Vec<HeapObject>,
    /// The addresses of code that delegates call.
    entries: HashSet<u64>,
    contents: Contents,
}

impl HeapReader<'_, '_> {
    fn shape(&mut self, object: &HeapObject) -> Shape {
        if let Some(shape) = self.shapes.get(&object.type_handle) {
            return *shape;
        }
        let memory: &dyn Memory = self.recorder;
        let flags = memory.u32(object.type_handle).unwrap_or_default();
        let base = u64::from(memory.u32(offset(object.type_handle, 4)).unwrap_or_default());
        let shape = if flags & HAS_COMPONENT_SIZE == 0 {
            match self.names.derives_from_exception(object.type_handle) {
                Ok(true) => Shape::Exception,
                _ if self.is_delegate(object.type_handle) => Shape::Delegate,
                _ => Shape::Whole,
            }
        } else if !self.names.is_of_array(flags) {
            Shape::String
        } else if flags & self.contains_pointers() == 0 {
            // The header, the type, the length, and the bounds of several dimensions.
            Shape::Buffer(base)
        } else {
            Shape::Whole
        };
        self.examples.push(*object);
        self.shapes.insert(object.type_handle, shape);
        if !matches!(shape, Shape::String | Shape::Buffer(_)) {
            self.find_inline_buffers(object.type_handle, flags, base);
        }
        shape
    }

    fn find_inline_buffers(&mut self, type_handle: u64, flags: u32, base: u64) {
        let memory: &dyn Memory = self.recorder;
        let (of, size, element) = if flags & HAS_COMPONENT_SIZE == 0 {
            (type_handle, base.saturating_sub(16), 0)
        } else {
            let element = u64::from(flags & 0xffff);
            (memory.u64(offset(type_handle, ELEMENT_TYPE)).unwrap_or_default(), element, element)
        };
        // Arrays of references have a word for each.
        let mut places = Vec::new();
        if element == 0 || element > 8 {
            self.add_inline_buffers(of, 0..size, MAX_DEPTH, &mut places);
        }
        if !places.is_empty() {
            self.inline_buffers.insert(type_handle, InlineBuffers { places, element });
        }
    }

    /// Adds the places of the buffers in the fields of a type, which are at `place`.
    fn add_inline_buffers(&self, of: u64, place: Range<u64>, depth: u32, places: &mut Vec<Range<u64>>) {
        let fields = self.names.fields(of);
        for field in &fields {
            let start = place.start.saturating_add(field.offset.into());
            let after = fields.iter().map(|other| other.offset).filter(|other| *other > field.offset).min();
            // Up to the next field: what is between them is no one's.
            let end = after.map_or(place.end, |after| place.start.saturating_add(after.into()));
            if self.is_inline_buffer(field) {
                places.push(start..end);
            } else if let (ValueKind::STRUCTURE, Some(of), Some(depth)) =
                (field.kind, field.value_type, depth.checked_sub(1))
            {
                self.add_inline_buffers(of, start..end, depth, places);
            }
        }
    }

    /// Compilers make a structure for each `fixed` field, with its first element alone: `<Name>e__FixedBuffer`, and
    /// Mono's `<Name>__FixedBuffer0`.
    fn is_inline_buffer(&self, field: &Field) -> bool {
        let is_of = |name: &str| name.contains("__FixedBuffer");
        field.kind == ValueKind::STRUCTURE
            && (field.type_text.as_deref().is_some_and(is_of)
                || field.value_type.and_then(|of| self.names.type_name(of)).as_deref().is_some_and(is_of))
    }

    /// Drops the `fixed` buffers of an object that was kept.
    fn drop_inline_buffers(&self, object: &HeapObject) {
        let Some(InlineBuffers { places, element }) = self.inline_buffers.get(&object.type_handle) else {
            return;
        };
        let memory: &dyn Memory = self.recorder;
        let (first, count) = if *element == 0 {
            (offset(object.address, 8), 1)
        } else {
            let base = u64::from(memory.u32(offset(object.type_handle, 4)).unwrap_or_default());
            (offset(object.address, base.saturating_sub(8)), object.length)
        };
        for index in 0..u64::from(count) {
            let start = offset(first, index.saturating_mul(*element));
            for place in places {
                self.recorder.leave_out(offset(start, place.start), place.end.saturating_sub(place.start));
            }
        }
    }

    fn contains_pointers(&self) -> u32 {
        self.names.runtime().layout.types.contains_pointers
    }

    fn is_delegate(&self, type_handle: u64) -> bool {
        let is_base = |of: &u64| self.names.type_name(*of).as_deref() == Some("System.Delegate");
        self.names.type_and_bases(type_handle).iter().any(is_base)
    }

    /// Keeps the array of the frames that an exception passed: addresses.
    fn keep_stack_trace(&self, exception: u64) {
        let memory: &dyn Memory = self.recorder;
        let array = |address: u64, has_references: bool| {
            let object = self.names.object_at(address)?;
            let flags = memory.u32(object.type_handle).ok()?;
            (self.names.is_of_array(flags) && (flags & self.contains_pointers() != 0) == has_references)
                .then_some(object)
        };
        let place = self.names.runtime().layout.exception.stack_trace;
        let Ok(of) = memory.u64(offset(exception, place)) else { return };
        let frames = match array(of, true) {
            Some(_) => memory.u64(offset(of, 16)).ok(),
            None => Some(of),
        };
        if let Some(frames) = frames.and_then(|frames| array(frames, false)) {
            self.recorder.keep(frames.address, frames.size);
        }
    }
}

impl HeapVisitor for HeapReader<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let before = object.address.wrapping_sub(8);
        match self.shape(object) {
            Shape::String => {
                self.contents.strings.add(object.size);
                self.recorder.keep(before, 20);
            }
            Shape::Buffer(base) => {
                self.contents.buffers.add(object.size);
                self.recorder.keep(before, base.max(20));
            }
            Shape::Whole => {
                self.recorder.keep(before, object.size);
                self.drop_inline_buffers(object);
            }
            Shape::Delegate => {
                self.recorder.keep(before, object.size);
                if let Some(entry) = self.names.delegate_entry(object.address)
                    && self.entries.len() < MAX_METHODS
                    && self.entries.insert(entry)
                {
                    self.names.delegate_method(object.address);
                }
            }
            Shape::Exception => {
                self.recorder.keep(before, object.size);
                self.drop_inline_buffers(object);
                self.keep_stack_trace(object.address);
            }
        }
    }

    fn free(&mut self, object: &HeapObject) {
        // The word before it, its type and its length.
        self.recorder.keep(object.address.wrapping_sub(8), 20);
    }

    // Their descriptions are read, which the copy has to have.
    fn wants_references(&self) -> bool {
        true
    }
}

/// Drops the texts of a module's code (`#US`).
fn drop_texts(recorder: &Recorder<'_>, module: &crate::module::Module) {
    let texts = module.metadata.as_deref().and_then(user_strings);
    if let Some(texts) = texts {
        let size = texts.end.saturating_sub(texts.start);
        recorder.leave_out(offset(module.metadata_at, texts.start), size);
    }
}

/// The range of the stream of texts in metadata (ECMA-335 II.24.2.1).
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

/// Removes contents of notes: of floating-point registers, of command lines, and of kinds that are not known.
fn strip_notes(bytes: &mut [u8], core: &CoreFile) {
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
            1 => strip_registers(content, core),
            // NT_PRPSINFO
            3 => {
                let arguments = content.get_mut(56..).unwrap_or_default();
                arguments.fill(0);
                for (to, from) in arguments.iter_mut().take(79).zip(STRIPPED.bytes()) {
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

/// Removes values of general registers that are neither addresses nor small.
fn strip_registers(status: &mut [u8], core: &CoreFile) {
    for (_, word) in (0..27).zip(status.get_mut(112..).unwrap_or_default().as_chunks_mut::<8>().0) {
        let value = u64::from_le_bytes(*word);
        if value >= SMALL && core.present(value, 1).next().is_none() && !core.is_mapped(value) {
            word.fill(0);
        }
    }
}
