//! The objects of a heap in a stripped copy.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::{Contents, Numbers};
use crate::awaits::async_type::STATES;
use crate::copy::kept::{CHUNK, Recorder};
use crate::dump::Dump;
use crate::heap::{HeapObject, HeapVisitor};
use crate::memory::address::{Address, TypeHandle};
use crate::memory::core_file::CoreFile;
use crate::memory::{Memory, offset};
use crate::types::field::{Field, ValueKind};
use crate::types::names::{HAS_COMPONENT_SIZE, is_value};

/// The elements of arrays that are looked into for the types of their elements.
const ELEMENTS: u32 = 4;
/// The place of the type of an array's elements in the type.
const ELEMENT_TYPE: u64 = 48;
/// Maximum nesting depth of structures to inspect.
const MAX_DEPTH: u32 = 8;
/// Maximum number of methods that delegates call.
const MAX_METHODS: usize = 1 << 20;

/// Reads all data that the views of the heap read, and keeps the objects without their contents.
pub(super) fn read_heap(
    core: &CoreFile,
    recorder: &Recorder<'_>,
    names: &Dump<'_>,
    numbers: Numbers,
) -> Contents {
    // Small core dumps have parts of these.
    let _ = (names.heap().handles(), names.statics().objects());
    if let Ok(regions) = names.heap().regions() {
        let _ = (regions.finalizable(), regions.finalizer_queue());
    }
    let mut reader = HeapReader {
        core,
        recorder,
        names,
        numbers,
        shapes: HashMap::new(),
        parts: HashMap::new(),
        examples: Vec::new(),
        entries: HashSet::new(),
        contents: Contents::default(),
    };
    if !recorder.has_regions() {
        return Contents::default();
    }
    let Ok(walk) = names.heap().walk(&mut reader) else { return Contents::default() };
    let HeapReader { examples, mut contents, .. } = reader;
    (contents.has_heap, contents.free) = (true, walk.free);
    for object in &examples {
        names.types().name(object.type_handle);
        names.types().event_name(object.type_handle);
        names.types().module(object.type_handle);
        names.types().is_type(object.type_handle);
        let _ = names.heap().content(object, ELEMENTS);
    }
    let threads = names.runtime().threads(recorder).unwrap_or_default();
    for field in names.statics().fields(examples.iter().map(|object| object.type_handle), &threads) {
        names.types().name(field.type_handle);
        if numbers == Numbers::Removed && field.field.kind.size().is_some() {
            // The field stays zero: nothing else reads it.
            continue;
        }
        names.statics().value(&field);
        if field.thread.is_some() {
            // The field lies in an array of the heap.
            recorder.keep(field.address.get() & !7, 8);
        }
        names.heap().reference_at(field.address);
    }
    let _ = names.awaits().chains();
    contents
}

/// The part of an object that a copy keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    /// All, and the data that names the method that it calls.
    Delegate,
    /// All, and the array to which an exception's field of its stack leads.
    Exception,
    /// The first bytes.
    String,
    Buffer(u64),
}

/// Parts of an object that are kept or left out other than the rest of it: ranges from the first field or
/// element.
#[derive(Default)]
struct Parts {
    /// Fields of C# that are `fixed`, and `[InlineArray]`s.
    buffers: Vec<Range<u64>>,
    /// Numbers that stay in a copy without numbers.
    numbers: Vec<Range<u64>>,
    /// The bytes of an element of an array; 0 for other objects.
    element: u64,
    /// True if the memory does not say what the fields are: any of them can be a buffer.
    is_unknown: bool,
}

struct HeapReader<'r, 'm> {
    core: &'m CoreFile,
    recorder: &'r Recorder<'m>,
    names: &'r Dump<'r>,
    numbers: Numbers,
    shapes: HashMap<TypeHandle, Shape>,
    /// The parts of objects of a type, or of the elements of arrays of it; types without any are missing.
    parts: HashMap<TypeHandle, Parts>,
    /// The first object of each type.
    examples: Vec<HeapObject>,
    /// The addresses of code that delegates call.
    entries: HashSet<Address>,
    contents: Contents,
}

impl HeapReader<'_, '_> {
    fn shape(&mut self, object: &HeapObject) -> Shape {
        if let Some(shape) = self.shapes.get(&object.type_handle) {
            return *shape;
        }
        let memory: &dyn Memory = self.recorder;
        let flags = memory.u32(object.type_handle.get()).unwrap_or_default();
        let base = u64::from(memory.u32(object.type_handle.at(4)).unwrap_or_default());
        let shape = if flags & HAS_COMPONENT_SIZE == 0 {
            match self.names.types().derives_from_exception(object.type_handle) {
                Ok(true) => Shape::Exception,
                _ if self.is_delegate(object.type_handle) => Shape::Delegate,
                _ => Shape::Whole,
            }
        } else if !self.names.types().is_of_array(flags) {
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
            self.find_parts(object.type_handle, flags, base);
        }
        shape
    }

    fn find_parts(&mut self, type_handle: TypeHandle, flags: u32, base: u64) {
        let memory: &dyn Memory = self.recorder;
        let (of, size, element) = if flags & HAS_COMPONENT_SIZE == 0 {
            (type_handle, base.saturating_sub(16), 0)
        } else {
            let element = u64::from(flags & 0xffff);
            (memory.type_handle(type_handle.at(ELEMENT_TYPE)).unwrap_or_default(), element, element)
        };
        // Arrays of references have a word for each.
        let mut parts = Parts { element, ..Parts::default() };
        if element == 0 || element > 8 {
            self.add_parts(of, 0..size, MAX_DEPTH, &mut parts);
        }
        if parts.is_unknown || !parts.buffers.is_empty() || !parts.numbers.is_empty() {
            self.parts.insert(type_handle, parts);
        }
    }

    /// Adds the parts in the fields of a type, which are at `place`.
    fn add_parts(&self, of: TypeHandle, place: Range<u64>, depth: u32, parts: &mut Parts) {
        if self.is_inline_array(of) {
            parts.buffers.push(place);
            return;
        }
        parts.is_unknown |= !self.has_fields(of);
        let fields = self.names.types().fields(of);
        for field in &fields {
            let start = place.start.saturating_add(field.offset.into());
            let after = fields.iter().map(|other| other.offset).filter(|other| *other > field.offset).min();
            // Up to the next field: bytes between them are padding.
            let end = after.map_or(place.end, |after| place.start.saturating_add(after.into()));
            if self.is_fixed_buffer(field) {
                parts.buffers.push(start..end);
            } else if field.kind == ValueKind::STRUCTURE {
                match field.value_type.zip(depth.checked_sub(1)) {
                    Some((of, depth)) => self.add_parts(of, start..end, depth, parts),
                    None => parts.is_unknown = true,
                }
            } else if let Some(size) = field.kind.size()
                && self.numbers == Numbers::Removed
                && self.is_needed(field)
            {
                parts.numbers.push(start..start.saturating_add(size.into()));
            }
        }
    }

    /// Returns true if the memory has the descriptions of the fields of a type and of its base types.
    /// Programs that were compiled ahead of time have none.
    fn has_fields(&self, of: TypeHandle) -> bool {
        let types = self.names.types();
        let all = types.type_and_bases(of);
        let is_whole = all.last().is_some_and(|last| types.base_type(*last).is_ok_and(TypeHandle::is_null));
        is_whole && !self.names.runtime().is_native_aot() && all.iter().all(|of| types.describes_fields(*of))
    }

    /// Returns true for an `[InlineArray]` of numbers, characters or structures without references.
    fn is_inline_array(&self, type_handle: TypeHandle) -> bool {
        let memory: &dyn Memory = self.recorder;
        let flags = memory.u32(type_handle.get()).unwrap_or(u32::MAX);
        is_value(flags)
            && flags & self.contains_pointers() == 0
            && self.names.heap().inline_array_length(type_handle).is_some()
    }

    /// Compilers make a structure for each `fixed` field, with its first element alone:
    /// `<Name>e__FixedBuffer`, and Mono's `<Name>__FixedBuffer0`.
    fn is_fixed_buffer(&self, field: &Field) -> bool {
        let is_of = |name: &str| name.contains("__FixedBuffer");
        field.kind == ValueKind::STRUCTURE
            && (field.type_text.as_deref().is_some_and(is_of)
                || field.value_type.and_then(|of| self.names.types().name(of)).as_deref().is_some_and(is_of))
    }

    /// Returns true for a field that a copy without numbers keeps: a count of the framework's collections, a
    /// state of an async method, or a field that the views of threads, exceptions, locks and async methods
    /// read.
    fn is_needed(&self, field: &Field) -> bool {
        const COUNTS: [&str; 4] = ["_size", "_count", "m_size", "m_count"];
        if STATES.contains(&&*field.name) {
            return true;
        }
        let Some(of) = self.names.types().name(field.declaring_type) else { return false };
        // A field of a generic type can have a value of the program's.
        let is_named = match &*of {
            "System.Exception" | "System.Delegate" | "System.MulticastDelegate" => true,
            of if of.starts_with("System.Collections.") => COUNTS.contains(&&*field.name),
            of => of.starts_with("System.Threading.") && !of.contains('`'),
        };
        let module = || self.names.types().module(field.declaring_type);
        is_named && module().is_some_and(|module| module.file_name().starts_with("System."))
    }

    /// Keeps an object, all of it or without numbers, and without its buffers.
    fn keep_object(&self, object: &HeapObject) {
        let start = object.address.get().wrapping_sub(8);
        let parts = self.parts.get(&object.type_handle);
        match self.numbers {
            Numbers::Kept if parts.is_none_or(|parts| !parts.is_unknown) => {
                self.recorder.keep(start, object.size);
            }
            _ => {
                // The header, the type, and the lengths of an array.
                let first = self.first_element(object).unwrap_or(object.address.at(8));
                self.recorder.keep(start, first.wrapping_sub(start));
                self.keep_addresses(first..offset(start, object.size));
            }
        }
        let Some(parts) = parts else { return };
        let (first, count) = match self.first_element(object) {
            Some(first) => (first, u64::from(object.length)),
            None => (object.address.at(8), 1),
        };
        for index in 0..count {
            let start = offset(first, index.saturating_mul(parts.element));
            let absolute =
                |part: &Range<u64>| (offset(start, part.start), part.end.saturating_sub(part.start));
            for (at, bytes) in parts.buffers.iter().map(absolute) {
                self.recorder.leave_out(at, bytes);
            }
            for (at, bytes) in parts.numbers.iter().map(absolute) {
                self.recorder.keep(at, bytes);
            }
        }
    }

    /// The address of the first element of an array; `None` for other objects.
    fn first_element(&self, object: &HeapObject) -> Option<u64> {
        let memory: &dyn Memory = self.recorder;
        let [flags, base] = [0, 4].map(|at| memory.u32(object.type_handle.at(at)).unwrap_or_default());
        (flags & HAS_COMPONENT_SIZE != 0).then(|| object.address.at(u64::from(base).saturating_sub(8)))
    }

    /// Keeps the words of a range that are addresses.
    fn keep_addresses(&self, range: Range<u64>) {
        let memory: &dyn Memory = self.core;
        let mut at = range.start;
        while at < range.end {
            let bytes = range.end.wrapping_sub(at).min(CHUNK);
            let block = memory.bytes(at, usize::try_from(bytes).unwrap_or_default()).unwrap_or_default();
            for (at, word) in (at..).step_by(8).zip(block.as_chunks::<8>().0) {
                let word = u64::from_le_bytes(*word);
                if word != 0 && (self.core.present(word, 1).next().is_some() || self.core.is_mapped(word)) {
                    self.recorder.keep(at, 8);
                }
            }
            at = at.saturating_add(CHUNK);
        }
    }

    fn contains_pointers(&self) -> u32 {
        self.names.runtime().layout.types.contains_pointers
    }

    fn is_delegate(&self, type_handle: TypeHandle) -> bool {
        let is_base = |of: &TypeHandle| self.names.types().name(*of).as_deref() == Some("System.Delegate");
        self.names.types().type_and_bases(type_handle).iter().any(is_base)
    }

    /// Keeps the array of the frames that an exception passed: addresses.
    fn keep_stack_trace(&self, exception: Address) {
        let memory: &dyn Memory = self.recorder;
        let array = |address: Address, has_references: bool| {
            let object = self.names.heap().object_at(address)?;
            let flags = memory.u32(object.type_handle.get()).ok()?;
            (self.names.types().is_of_array(flags)
                && (flags & self.contains_pointers() != 0) == has_references)
                .then_some(object)
        };
        let place = self.names.runtime().layout.exception.stack_trace;
        let Ok(of) = memory.pointer(exception.at(place)) else { return };
        let frames = match array(of, true) {
            Some(_) => memory.pointer(of.at(16)).ok(),
            None => Some(of),
        };
        if let Some(frames) = frames.and_then(|frames| array(frames, false)) {
            self.recorder.keep(frames.address.get(), frames.size);
        }
    }
}

impl HeapVisitor for HeapReader<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let before = object.address.get().wrapping_sub(8);
        match self.shape(object) {
            Shape::String => {
                self.contents.strings.add(object.size);
                self.recorder.keep(before, 20);
            }
            Shape::Buffer(base) => {
                self.contents.buffers.add(object.size);
                self.recorder.keep(before, base.max(20));
            }
            Shape::Whole => self.keep_object(object),
            Shape::Delegate => {
                self.keep_object(object);
                if let Some(entry) = self.names.heap().delegate_entry(object.address)
                    && self.entries.len() < MAX_METHODS
                    && self.entries.insert(entry)
                {
                    self.names.heap().delegate_method(object.address);
                }
            }
            Shape::Exception => {
                self.keep_object(object);
                // Programs that were compiled ahead of time do not have the names of fields.
                let code = self.names.runtime().layout.exception.hresult;
                self.recorder.keep(object.address.at(code), 4);
                self.keep_stack_trace(object.address);
            }
        }
    }

    fn free(&mut self, object: &HeapObject) {
        // The word before it, its type and its length.
        self.recorder.keep(object.address.get().wrapping_sub(8), 20);
    }

    // Their descriptions are read, which the copy has to have.
    fn wants_references(&self) -> bool {
        true
    }
}
