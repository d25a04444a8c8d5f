//! The runtime of a NativeAOT program: its self-description, its code, and the tables with the names of types
//! and methods.
//!
//! # Source
//! dotnet/runtime `src/coreclr/nativeaot/Runtime/DebugHeader.cpp` (`DotNetRuntimeDebugHeader`),
//! `Runtime/RuntimeInstance.h`, `Runtime/TypeManager.h`, `Runtime/inc/ModuleHeaders.h`, `Runtime/thread.h`.

pub(crate) mod format;
pub(crate) mod names;
pub(crate) mod sections;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use crate::aot::names::AotNames;
use crate::aot::sections::Sections;
use crate::code::map::{Code, CodeOrigin};
use crate::contracts::Contracts;
use crate::error::Error;
use crate::memory::address::Address;
use crate::memory::mapping::MappedFile;
use crate::memory::{Memory, MemoryResult, PAGE, offset};
use crate::processor::Processor;
use crate::runtime::elf_image::ElfImage;
use crate::runtime::layout::{self, AllocationContext, ExceptionTracker, Heap, Layout, Thrown, described};
use crate::unwind::FunctionEntry;
use crate::unwind::native::{NativeFunction, NativeImages};

/// Maximum number of entries of the description.
const MAX_ENTRIES: u64 = 1024;
/// Maximum number of characters of a name in the description.
const MAX_NAME_LENGTH: u64 = 64;
/// The words of RuntimeInstance that are searched.
const INSTANCE_WORDS: u64 = 16;
/// Maximum number of programs with static fields of one thread.
const MAX_PROGRAMS: usize = 64;
/// Maximum number of bytes of an image.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes that the description begins with.
const COOKIE: [u8; 4] = *b"DNDH";
/// The major versions of the description: of .NET 8 and 9, and of 10.
const VERSIONS: [u16; 3] = [3, 4, NET_10];
const NET_10: u16 = 5;
/// The first word of the program's header.
const HEADER: [u8; 4] = *b"RTR\0";

/// The runtime in a program that was compiled ahead of time.
#[derive(Debug)]
pub(crate) struct NativeAot {
    /// The places of managed code.
    pub(crate) code: Range<u64>,
    /// The address of its TypeManager; zero if it was not found.
    manager: u64,
    /// The sections of the program's header; empty if their version is unknown.
    pub(crate) sections: Sections,
    names: OnceLock<Option<Arc<AotNames>>>,
}

/// The runtime's self-description.
struct Description {
    /// Offsets by the names of types and fields.
    fields: HashMap<(String, String), u32>,
    /// The places of the values of global variables, keyed by name.
    globals: HashMap<String, u64>,
    heap: Heap,
    /// True for the version of .NET 10, which does not state all that differs.
    is_net_10: bool,
}

/// A runtime as its description has it.
pub(crate) struct Described {
    pub(crate) layout: Layout,
    /// The addresses of variables, in the order of the layout.
    pub(crate) slots: Vec<u64>,
    pub(crate) native_aot: NativeAot,
    /// True if names are known in this version.
    pub(crate) is_measured: bool,
}

/// The form of a runtime's description.
pub(crate) enum Source {
    /// `DotNetRuntimeDebugHeader` at an address: .NET 8 to 10.
    Header(u64),
    /// Data contracts: .NET 11 and later.
    Contracts(Box<Contracts>),
}

/// Finds a `DotNetRuntimeDebugHeader` that is not exported, in the variables of an image.
pub(crate) fn find_header(memory: &dyn Memory, image: &ElfImage) -> Option<u64> {
    /// Maximum number of bytes to search.
    const MAX_DATA: u64 = 1 << 20;
    let (start, size) = image.data?;
    let end = offset(start, size.min(MAX_DATA));
    // It is aligned to words.
    let mut page = start.checked_next_multiple_of(8)?;
    while page < end {
        let next = (page | (PAGE - 1)).saturating_add(1).min(end);
        // A core dump may lack a page.
        let bytes = memory.bytes(page, usize::try_from(next.saturating_sub(page)).ok()?).unwrap_or_default();
        let mut words = (page..).step_by(8).zip(bytes.as_chunks::<8>().0);
        if let Some((at, _)) = words.find(|(_, word)| word.starts_with(&COOKIE) && word.ends_with(&[0; 2])) {
            return Some(at);
        }
        page = next;
    }
    None
}

/// Reads the runtime that `source` describes in the image of `file`; `files` has all of its mapped parts.
pub(crate) fn read(
    memory: &dyn Memory,
    source: &Source,
    file: &MappedFile,
    files: &[MappedFile],
    processor: Processor,
) -> Result<Described, Error> {
    let wrong =
        |what: &'static str| Error::WrongLayout { version: "NativeAOT".to_owned(), what: what.into() };
    let description = match source {
        Source::Header(header) => Description::of_header(memory, *header)?,
        Source::Contracts(contracts) => Description::of_contracts(contracts, processor)
            .map_err(|what| Error::WrongLayout { version: "NativeAOT".to_owned(), what: what.into() })?,
    };
    let mut layout = description.layout().ok_or_else(|| wrong("its description of itself lacks fields"))?;
    layout.processor = processor;
    let slots = description.slots(memory, &layout).ok_or_else(|| wrong("its description lacks variables"))?;
    let (native_aot, is_measured) = description
        .find_program(memory, file, image_end(file, files))
        .map_err(Error::missing("the runtime's RuntimeInstance"))?
        .ok_or_else(|| wrong("its code was not found"))?;
    Ok(Described { layout, slots, native_aot, is_measured })
}

/// The fields of data contracts, and their names in `DotNetRuntimeDebugHeader`.
const CONTRACT_FIELDS: [(&str, &str, &str, &str); 6] = [
    ("ExInfo", "PreviousNestedInfo", "ExInfo", "m_pPrevExInfo"),
    ("ExInfo", "ThrownObject", "ExInfo", "m_exception"),
    ("Thread", "ExceptionTracker", THREAD, "m_pExInfoStackHead"),
    ("Thread", "LinkNext", THREAD, "m_pNext"),
    ("Thread", "OSId", THREAD, "m_threadId"),
    ("ThreadStore", "FirstThreadLink", "ThreadStore", "m_ThreadList"),
];

/// The type of threads from .NET 9 on.
const THREAD: &str = "RuntimeThreadLocals";

impl Description {
    fn of_header(memory: &dyn Memory, header: u64) -> Result<Self, Error> {
        let wrong =
            |what: &'static str| Error::WrongLayout { version: "NativeAOT".to_owned(), what: what.into() };
        let missing = Error::missing("the runtime's description of itself");
        if memory.array(header).map_err(missing)? != COOKIE {
            return Err(wrong("it has no description of itself"));
        }
        let version = memory.u16(offset(header, 4)).ok().filter(|version| VERSIONS.contains(version));
        if version.is_none() || memory.u32(offset(header, 8)) != Ok(1) {
            return Err(wrong("its description of itself is of another version"));
        }
        let missing = Error::missing("the runtime's description of itself");
        let mut description = Self::read(memory, header).map_err(missing)?;
        description.is_net_10 = version == Some(NET_10);
        if description.fields.is_empty() {
            return Err(wrong("its description of itself is empty: it had not started"));
        }
        Ok(description)
    }

    /// Takes the facts of data contracts. An error names what they lack, or what is another than readers have
    /// as a constant.
    fn of_contracts(contracts: &Contracts, processor: Processor) -> Result<Self, String> {
        let lacking = |of: &str, field: &str| format!("its description of its data lacks {of}.{field}");
        let mut description =
            Self { fields: HashMap::new(), globals: HashMap::new(), heap: Heap::Described, is_net_10: false };
        let offset = |of: &str, field: &str| {
            let at = contracts.offset(of, field).and_then(|at| u32::try_from(at).ok());
            at.ok_or_else(|| lacking(of, field))
        };
        let mut put = |of: &str, field: &str, at| {
            description.fields.insert((of.to_owned(), field.to_owned()), at);
        };
        for (of, field, old, old_field) in CONTRACT_FIELDS {
            put(old, old_field, offset(of, field)?);
        }
        let context = offset("Thread", "AllocContext")?;
        let inner = offset("EEAllocContext", "GCAllocationContext")?;
        put(THREAD, "m_rgbAllocContextBuffer", context.saturating_add(inner));
        put(THREAD, "m_pTransitionFrame", offset("Thread", "TransitionFrame")?);
        let names =
            [("RuntimeInstance", "g_pTheRuntimeInstance"), ("FreeObjectMethodTable", "g_pFreeObjectEEType")];
        for (name, old) in names.into_iter().chain([("ThreadStore", "ThreadStore")]) {
            let address = contracts.pointer(name).ok_or_else(|| lacking("globals", name))?;
            description.globals.insert(old.to_owned(), address.get());
        }
        description.heap = described::collector(contracts, processor)?.map_or(Heap::Described, Heap::Stated);
        Ok(description)
    }

    fn read(memory: &dyn Memory, header: u64) -> MemoryResult<Self> {
        let [types, globals] = memory.words(offset(header, 16))?;
        let mut description =
            Self { fields: HashMap::new(), globals: HashMap::new(), heap: Heap::Described, is_net_10: false };
        if types == 0 || globals == 0 {
            return Ok(description);
        }
        for index in 0..MAX_ENTRIES {
            let at = offset(types, index.wrapping_mul(24));
            let [of, field] = memory.words(at)?;
            if of == 0 {
                break;
            }
            let names = (name(memory, of)?, name(memory, field)?);
            description.fields.insert(names, memory.u32(offset(at, 16))?);
        }
        for index in 0..MAX_ENTRIES {
            let at = offset(globals, index.wrapping_mul(16));
            match memory.u64(at)? {
                0 => break,
                of => description.globals.insert(name(memory, of)?, offset(at, 8)),
            };
        }
        Ok(description)
    }

    fn field(&self, of: &str, field: &str) -> Option<u64> {
        self.fields.get(&(of.to_owned(), field.to_owned())).map(|at| u64::from(*at))
    }

    /// The version's layout with the described offsets; `None` if an offset is missing.
    fn layout(&self) -> Option<Layout> {
        // The type had another name before .NET 9.
        let names = ["RuntimeThreadLocals", "ThreadBuffer"];
        let of = names.into_iter().find(|of| self.field(of, "m_pNext").is_some())?;
        let field = |name| self.field(of, name);
        let link = field("m_pNext")?;
        let mut layout = layout::NATIVE_AOT;
        if of == "ThreadBuffer" {
            layout.types.contains_pointers = 0x0020_0000;
            layout.types.optional_fields = 0x0100_0000;
        }
        layout.thread_store.first = self.field("ThreadStore", "m_ThreadList")?;
        layout.thread.link = link;
        // Two other pointers to frames lie between.
        layout.thread.frame = field("m_pTransitionFrame").or_else(|| link.checked_sub(24))?;
        layout.thread.os_id = field("m_threadId")?;
        // From .NET 10 on, it is in a context of the runtime's own.
        let context = || {
            field("m_eeAllocContext")?.checked_add(self.field("ee_alloc_context", "m_rgbAllocContextBuffer")?)
        };
        let context = field("m_rgbAllocContextBuffer").or_else(context)?;
        layout.thread.allocation_context = AllocationContext::Thread(context);
        layout.thread.exception_tracker = field("m_pExInfoStackHead")?;
        // The reference to static fields of modules that were loaded, and the list for the program's own
        // static fields, follow two words further; in .NET 10 three.
        let distance = if self.is_net_10 { 32 } else { 24 };
        layout.thread.static_fields = Some(layout.thread.exception_tracker.checked_add(distance)?);
        if self.is_net_10 {
            layout.handle_tables = layout::NET_10.handle_tables;
        }
        layout.exception_tracker = ExceptionTracker {
            previous: self.field("ExInfo", "m_pPrevExInfo")?,
            thrown: Thrown::Object(self.field("ExInfo", "m_exception")?),
        };
        layout.heap = self.heap;
        if let Heap::Stated(collector) = self.heap {
            layout.handle_tables = collector.handle_tables;
        }
        Some(layout)
    }

    /// The addresses of variables in the order of the layout; `None` if a variable is missing.
    fn slots(&self, memory: &dyn Memory, layout: &Layout) -> Option<Vec<u64>> {
        let place = |name: &str| self.globals.get(name).copied();
        let store = if let Some(store) = place("ThreadStore") {
            store
        } else {
            let instance = memory.u64(place("g_pTheRuntimeInstance")?).ok()?;
            offset(instance, self.field("RuntimeInstance", "m_pThreadStore")?)
        };
        let gc_data = match self.heap {
            Heap::Stated(_) => 0,
            _ => place("g_gcDacGlobals")?,
        };
        let known = [
            (layout.slots.thread_store, store),
            (layout.slots.gc_data, gc_data),
            (layout.slots.free_type, place("g_pFreeObjectEEType")?),
        ];
        let mut slots = vec![0; layout.slots.count];
        for (slot, address) in known {
            *slots.get_mut(slot)? = address;
        }
        Some(slots)
    }

    /// Finds the program's code and its header in RuntimeInstance. Its fields are not described: the code is
    /// a range of the image, and a list of modules leads to a header of the image. Returns whether the
    /// version of the header is known, too.
    fn find_program(
        &self,
        memory: &dyn Memory,
        file: &MappedFile,
        image_end: u64,
    ) -> MemoryResult<Option<(NativeAot, bool)>> {
        let Some(instance) = self.globals.get("g_pTheRuntimeInstance") else { return Ok(None) };
        let instance = memory.u64(*instance)?;
        let (mut code, mut module) = (None, None);
        for index in 0..INSTANCE_WORDS {
            let at = offset(instance, index.wrapping_mul(8));
            let word = memory.u64(at)?;
            let size = u64::from(memory.u32(offset(at, 8)).unwrap_or_default());
            let range = word..word.saturating_add(size);
            // The heap of the C library may lie close to the image, and RuntimeInstance has pointers into it.
            let is_in_image = range.start > file.start.get() && range.end <= image_end;
            if code.is_none() && size > 0 && is_in_image {
                code = Some(range);
            }
            module = module.or_else(|| module_of_list(memory, word, file.start.get()));
        }
        let Some(code) = code else { return Ok(None) };
        let (mut sections, mut is_measured) = (Sections::default(), false);
        let (manager, header) = module.unwrap_or_default();
        if header != 0 {
            (sections, is_measured) = Sections::read(memory, header)?;
        }
        Ok(Some((NativeAot { code, manager, sections, names: OnceLock::new() }, is_measured)))
    }
}

/// The end of an image's mapped parts, given the first part. The same file may be mapped elsewhere, too.
fn image_end(first: &MappedFile, files: &[MappedFile]) -> u64 {
    let is_part = |file: &&MappedFile| {
        file.path == first.path && file.end.get().wrapping_sub(first.start.get()) < MAX_BYTES
    };
    files.iter().filter(is_part).map(|part| part.end).max().unwrap_or(first.end).get()
}

/// The TypeManager and the header of the program, found through a list of modules: an entry has the next
/// entry and a TypeManager, which has the image and its header.
fn module_of_list(memory: &dyn Memory, entry: u64, image: u64) -> Option<(u64, u64)> {
    let [_, manager] = memory.words(entry).ok()?;
    let [of, header] = memory.words(manager).ok()?;
    (of == image && memory.array(header) == Ok(HEADER)).then_some((manager, header))
}

impl NativeAot {
    /// Returns the object that has the static fields of a thread that belong to the program, from the list of
    /// such objects; `None` if the thread lacks one.
    pub(crate) fn thread_statics(&self, memory: &dyn Memory, list: u64) -> MemoryResult<Option<u64>> {
        let mut entry = memory.u64(list)?;
        for _ in 0..MAX_PROGRAMS {
            if entry == 0 {
                break;
            }
            let [object, next, manager] = memory.words(entry)?;
            if manager == self.manager {
                return Ok(Some(object).filter(|object| *object != 0));
            }
            entry = next;
        }
        Ok(None)
    }

    /// Returns the code at an address; `None` if it is not managed.
    pub(crate) fn code_at(&self, memory: &dyn Memory, images: &NativeImages, address: u64) -> Option<Code> {
        if !self.code.contains(&address) {
            return None;
        }
        let function = images.function(memory, address)?;
        let method = method_start(memory, &function).unwrap_or(function.begin);
        let image_base = self.code.start;
        let entry = FunctionEntry { begin: function.begin, unwind_info: function.entry, image_base };
        Some(Code { origin: CodeOrigin::NativeAot { method: Address::new(method) }, function: entry })
    }

    /// The names of types and methods, which are read once; `None` if the memory lacks them.
    pub(crate) fn names(&self, memory: &dyn Memory) -> Option<&Arc<AotNames>> {
        self.names.get_or_init(|| AotNames::read(memory, &self.sections).map(Arc::new)).as_ref()
    }
}

/// The first instruction of the method that a function is a part of: the data of a handler leads to it.
fn method_start(memory: &dyn Memory, function: &NativeFunction) -> MemoryResult<u64> {
    /// The kind of a function: zero of a method's body.
    const KIND: u8 = 3;
    let Some(data) = function.language_data else { return Ok(function.begin) };
    let flags = memory.u8(data)?;
    if flags & KIND == 0 {
        return Ok(function.begin);
    }
    // The distance to the body's data precedes the distance to the body.
    let distance = memory.i32(offset(data, 5))?;
    Ok(function.begin.wrapping_add_signed(i64::from(distance).wrapping_neg()))
}

/// Reads a name that ends with NUL.
fn name(memory: &dyn Memory, at: u64) -> MemoryResult<String> {
    let mut text = String::new();
    for index in 0..MAX_NAME_LENGTH {
        match memory.u8(offset(at, index))? {
            0 => break,
            byte => text.push(char::from(byte)),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    const IMAGE: u64 = 0x5000_0000;
    const HEAP: u64 = IMAGE + 0x9000;

    /// The C library's heap may be so close to the image that a pointer into it looks like a pointer into the
    /// image.
    #[test]
    fn a_pointer_to_the_heap_next_to_the_image_is_not_code() {
        let mut memory = TestMemory::default();
        let mut instance = [0; 17];
        instance[..5].copy_from_slice(&[HEAP + 0x100, HEAP + 0x200, IMAGE + 0x1100, 0x400, 0]);
        memory.put_words(HEAP, &instance).put_words(0x100, &[HEAP]);
        let file = MappedFile {
            start: Address::new(IMAGE),
            end: Address::new(IMAGE + 0x1000),
            file_offset: 0,
            path: "/a".into(),
        };
        let globals = HashMap::from([("g_pTheRuntimeInstance".to_owned(), 0x100)]);
        let heap = Heap::Described;
        let description = Description { fields: HashMap::new(), globals, heap, is_net_10: false };
        let (program, is_measured) =
            description.find_program(&memory, &file, IMAGE + 0x3000).unwrap().unwrap();
        assert_eq!((program.code, is_measured), (IMAGE + 0x1100..IMAGE + 0x1500, false));
    }

    /// A description in the form of .NET 10, in the variables of an image that does not export it.
    #[test]
    fn the_description_of_net_10_is_found_without_its_symbol() {
        const HEADER: u64 = 0x1_0000 + 0x1008;
        let mut memory = TestMemory::default();
        let mut texts = 0x5000;
        let mut text = |memory: &mut TestMemory, text: &str| {
            texts += 0x40;
            memory.put(texts, &[text.as_bytes(), &[0; 16]].concat());
            texts
        };
        let threads = "RuntimeThreadLocals";
        let fields = [
            ("ThreadStore", "m_ThreadList", 0),
            (threads, "m_pNext", 96),
            (threads, "m_eeAllocContext", 16),
            ("ee_alloc_context", "m_rgbAllocContextBuffer", 8),
            (threads, "m_threadId", 184),
            (threads, "m_pExInfoStackHead", 120),
            ("ExInfo", "m_pPrevExInfo", 0),
            ("ExInfo", "m_exception", 16),
        ];
        let mut words = Vec::new();
        for (of, field, at) in fields {
            words.extend([text(&mut memory, of), text(&mut memory, field), at]);
        }
        memory.put_words(0x3000, &[&words[..], &[0; 3]].concat());
        let global = [text(&mut memory, "g_gcDacGlobals"), 0x7000, 0];
        memory.put_words(0x4000, &global);
        let version = 5_u64 << 32 | u64::from(u32::from_le_bytes(COOKIE));
        let mut data: Vec<u64> = (0..0x400).map(|index| index << 48).collect();
        data[0x201..0x205].copy_from_slice(&[version, 1, 0x3000, 0x4000]);
        memory.put_words(0x1_0000, &data);
        let image = ElfImage {
            machine: 62,
            bias: 0,
            build_id: None,
            unwind_table: None,
            data: Some((0x1_0000, 0x2000)),
            end: 0x2_0000,
            dynamic: None,
        };
        assert_eq!(find_header(&memory, &image), Some(HEADER));
        assert_eq!(find_header(&memory, &ElfImage { data: Some((0x1_0000, 0x1000)), ..image }), None);
        let description = Description::of_header(&memory, HEADER).unwrap();
        let layout = description.layout().unwrap();
        assert_eq!((layout.thread.link, layout.thread.os_id, layout.thread.frame), (96, 184, 72));
        assert_eq!(layout.thread.allocation_context, AllocationContext::Thread(24));
        assert_eq!(layout.thread.static_fields, Some(152));
        assert_eq!(layout.handle_tables, layout::NET_10.handle_tables);
        assert_eq!(description.globals.get("g_gcDacGlobals"), Some(&0x4008));
        memory.put_words(HEADER, &[version + (1 << 32), 1]);
        let error = Description::of_header(&memory, HEADER).err().unwrap().to_string();
        assert!(error.contains("of another version"), "{error}");
    }

    /// A description in the form of .NET 11, with offsets of its own.
    const STATED: &str = r#"{"version":2,"types":{
        "Thread":{"OSId":200,"LinkNext":80,"ExceptionTracker":120,"AllocContext":16,"TransitionFrame":64},
        "ThreadStore":{"FirstThreadLink":8},"EEAllocContext":{"GCAllocationContext":24},
        "ExInfo":{"PreviousNestedInfo":40,"ThrownObject":48},"Generation":{"!":512,"AllocationContext":8,"StartSegment":72},
        "HandleTable":{"SegmentList":64},"TableSegment":{"NextSegment":2006}},
        "globals":{"ThreadStore":[[1],"pointer"],"RuntimeInstance":[[2],"pointer"],"FreeObjectMethodTable":[[3],"pointer"],
        "GCHeapGenerationTable":[[4],"pointer"],"GCHeapEphemeralHeapSegment":[[5],"pointer"],
        "GCHeapAllocAllocated":[[6],"pointer"],"GCHeapFinalizeQueue":[[7],"pointer"],
        "StructureInvalidCount":[[8],"pointer"],"HandleTableMap":[[9],"pointer"],
        "TotalGenerationCount":"0x5","HandleMaxInternalTypes":"0xd",
        "GCIdentifiers":["workstation, regions, background,","string"],"RuntimeFlavor":["NativeAot","string"]},
        "contracts":{"GC":"c1","Thread":"n1"}}"#;

    fn contracts(text: &str) -> Contracts {
        let mut memory = TestMemory::default();
        let size = u64::try_from(text.len()).unwrap();
        memory.put_words(0x100, &[0x0043_4144_4343_4e44, size << 32 | 1, 0x1000, 10, 0x200]);
        memory.put_words(0x200, &[0, 0x601, 0x602, 0x603, 0x604, 0x605, 0x606, 0x607, 0x608, 0x609]);
        memory.put(0x1000, text.as_bytes());
        Contracts::read(&memory, Address::new(0x100)).unwrap()
    }

    #[test]
    fn the_description_of_net_11_is_all_that_states_offsets() {
        let description = Description::of_contracts(&contracts(STATED), Processor::X86_64).unwrap();
        let layout = description.layout().unwrap();
        assert_eq!((layout.thread.link, layout.thread.os_id, layout.thread.frame), (80, 200, 64));
        assert_eq!((layout.thread_store.first, layout.thread.exception_tracker), (8, 120));
        assert_eq!(layout.thread.allocation_context, AllocationContext::Thread(40));
        let tracker = ExceptionTracker { previous: 40, thrown: Thrown::Object(48) };
        assert_eq!(layout.exception_tracker, tracker);
        let tables = layout.handle_tables;
        assert_eq!((tables.segments, tables.next, tables.data_block), (64, 2006, 12));
        let Heap::Stated(collector) = layout.heap else { panic!("{:?}", layout.heap) };
        assert_eq!((collector.generation_size, collector.generations), (512, 5));
        assert_eq!((collector.context, collector.first_segment), (8, 72));
        let variables = [(21, 0x608), (26, 0x609), (3, 0x604), (7, 0x605), (12, 0x606), (15, 0x607)];
        assert_eq!(collector.variables, variables);
        let slots = description.slots(&TestMemory::default(), &layout).unwrap();
        assert_eq!((slots[layout.slots.thread_store], slots[layout.slots.free_type]), (0x601, 0x603));
    }

    #[test]
    fn facts_that_net_11_does_not_state_are_named() {
        for (text, lacking) in [
            (r#""LinkNext":80,"#, "Thread.LinkNext"),
            (r#""GCAllocationContext":24"#, "EEAllocContext.GCAllocationContext"),
            (r#""RuntimeInstance":[[2],"pointer"],"#, "globals.RuntimeInstance"),
            (r#""HandleTableMap":[[9],"pointer"],"#, "HandleTableMap"),
            (r#""StartSegment":72"#, "Generation.StartSegment"),
            (r#""TotalGenerationCount":"0x5","#, "TotalGenerationCount"),
        ] {
            let stated = contracts(&STATED.replacen(text, "", 1));
            let error = Description::of_contracts(&stated, Processor::X86_64).err().unwrap();
            assert_eq!(error, format!("its description of its data lacks {lacking}"));
        }
    }
}
