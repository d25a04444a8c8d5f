//! The facts of a runtime's own description, which take the place of the facts of its version.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/datadescriptor/datadescriptor.inc` (names), `docs/design/datacontracts`
//! (contracts).

use super::{
    AllocationContext, CodeRanges, Collector, FrameKind, HandleTables, Heap, InstanceTable, Layout,
    MadeMetadata, NibbleMap, Pointers, ReadyToRun, Slots, Thrown,
};
use crate::contracts::Contracts;
use crate::memory::address::Address;
use crate::processor::Processor;

/// A field that a description can state, and its place in a layout.
struct Fact {
    of: &'static str,
    field: &'static str,
    put: fn(&mut Layout, u64),
    /// True if a layout without it is of no use.
    is_needed: bool,
}

const fn needed(of: &'static str, field: &'static str, put: fn(&mut Layout, u64)) -> Fact {
    Fact { of, field, put, is_needed: true }
}

const fn optional(of: &'static str, field: &'static str, put: fn(&mut Layout, u64)) -> Fact {
    Fact { of, field, put, is_needed: false }
}

/// The fields that have a place of their own in a layout.
const FACTS: &[Fact] = &[
    needed("ThreadStore", "FirstThreadLink", |layout, at| layout.thread_store.first = at),
    optional("ThreadStore", "ThreadCount", |layout, at| layout.thread_store.count = Some(at)),
    optional("Thread", "State", |layout, at| layout.thread.state = Some(at)),
    optional("Thread", "PreemptiveGCDisabled", |layout, at| layout.thread.mode = Some(at)),
    needed("Thread", "Frame", |layout, at| layout.thread.frame = at),
    optional("Thread", "Id", |layout, at| layout.thread.managed_id = Some(at)),
    needed("Thread", "LinkNext", |layout, at| {
        layout.thread.link = at;
        layout.thread.link_target = at;
    }),
    needed("Thread", "OSId", |layout, at| layout.thread.os_id = at),
    optional("Thread", "GCHandle", |layout, at| layout.thread.object_handle = Some(at)),
    // The name in .NET 11.
    optional("Thread", "ExposedObject", |layout, at| layout.thread.object_handle = Some(at)),
    optional("Thread", "LastThrownObject", |layout, at| layout.thread.last_thrown = Some(at)),
    needed("Thread", "ExceptionTracker", |layout, at| layout.thread.exception_tracker = at),
    optional("Thread", "ThreadLocalDataPtr", |layout, at| layout.thread.static_fields = Some(at)),
    needed("ExceptionInfo", "PreviousNestedInfo", |layout, at| layout.exception_tracker.previous = at),
    needed("Exception", "_message", |layout, at| layout.exception.message = at),
    needed("Exception", "_innerException", |layout, at| layout.exception.inner = at),
    needed("Exception", "_stackTrace", |layout, at| layout.exception.stack_trace = at),
    needed("Exception", "_HResult", |layout, at| layout.exception.hresult = at),
    needed("Module", "Path", |layout, at| layout.module.path = Pointers::to(at)),
    // The same, but for files in a bundle, which have a name and no path.
    optional("Module", "FileName", |layout, at| layout.module.path = Pointers::to(at)),
    needed("Module", "Base", |layout, at| layout.module.base = Pointers::to(at)),
    needed("Module", "TypeDefToMethodTableMap", |layout, at| layout.module.defined_types = at),
    needed("Module", "TypeRefToMethodTableMap", |layout, at| layout.module.referenced_types = at),
    optional("Module", "AvailableTypeParams", |layout, at| {
        layout.module.instances = Some(InstanceTable::Buckets(at));
    }),
    optional("Module", "DynamicMetadata", |layout, at| {
        layout.module.made_metadata = Some(MadeMetadata::Sized(at));
    }),
    needed("EEClass", "InternalCorElementType", |layout, at| layout.types.kind = at),
    needed("ArrayClass", "Rank", |layout, at| layout.types.rank = at),
    optional("InlinedCallFrame", "CallSiteSP", |layout, at| layout.frames.inlined_call_registers = at),
    optional("TransitionBlock", "CalleeSavedRegisters", |layout, at| {
        layout.frames.transition_block.preserved = at;
    }),
    optional("TransitionBlock", "ReturnAddress", |layout, at| {
        layout.frames.transition_block.return_address = at;
    }),
    optional("HijackArgs", "CalleeSavedRegisters", |layout, at| {
        layout.frames.hijack_args.preserved = at;
    }),
    // The name on arm64, of the first of them.
    optional("HijackArgs", "Fp", |layout, at| layout.frames.hijack_args.preserved = at),
];

/// A variable that a description can state, and its slot.
struct Variable {
    name: &'static str,
    slot: fn(&Slots) -> usize,
    is_needed: bool,
}

/// The variables of the runtime.
const VARIABLES: [Variable; 6] = [
    Variable { name: "ThreadStore", slot: |slots| slots.thread_store, is_needed: true },
    Variable { name: "FreeObjectMethodTable", slot: |slots| slots.free_type, is_needed: true },
    Variable { name: "StringMethodTable", slot: |slots| slots.string_type, is_needed: true },
    Variable { name: "ExceptionMethodTable", slot: |slots| slots.exception_type, is_needed: true },
    Variable { name: "SyncTableEntries", slot: |slots| slots.sync_table, is_needed: false },
    Variable { name: "ExecutionManagerCodeRangeMapAddress", slot: |slots| slots.range_map, is_needed: true },
];

/// Fields that are taken with others, and that a description has to state.
const NEEDED: [(&str, &str); 4] = [
    ("ExceptionInfo", "ThrownObject"),
    ("InlinedCallFrame", "CallSiteSP"),
    ("RuntimeThreadLocals", "AllocContext"),
    ("Thread", "RuntimeThreadLocals"),
];

/// Offsets that readers have as constants. A description with others is of a runtime that they cannot read.
const CONSTANTS: &[(&str, &str, u64)] = &[
    ("Array", "m_NumComponents", 8),
    ("CodeHeapListNode", "HeaderMap", 40),
    ("CodeHeapListNode", "MapBase", 32),
    ("DynamicMetadata", "Data", 4),
    ("DynamicMetadata", "Size", 0),
    ("EEClass", "MethodTable", 16),
    ("EETypeHashTable", "Buckets", 16),
    ("EETypeHashTable", "VolatileEntryNextEntry", 8),
    ("EETypeHashTable", "VolatileEntryValue", 0),
    ("FaultingExceptionFrame", "TargetContext", 32),
    ("Frame", "Next", 8),
    ("FramedMethodFrame", "TransitionBlockPtr", 16),
    ("GCAllocContext", "Limit", 8),
    ("GCAllocContext", "Pointer", 0),
    ("HandleTableBucket", "Table", 0),
    ("HandleTableMap", "BucketsPtr", 0),
    ("HandleTableMap", "Next", 8),
    ("HijackFrame", "HijackArgsPtr", 32),
    ("HijackFrame", "ReturnAddress", 16),
    ("HeapSegment", "Allocated", 0),
    ("HeapSegment", "Committed", 8),
    ("HeapSegment", "Mem", 32),
    ("HeapSegment", "Next", 48),
    ("InFlightTLSData", "Next", 0),
    ("InFlightTLSData", "TLSData", 16),
    ("InFlightTLSData", "TlsIndex", 8),
    ("MethodDesc", "ChunkIndex", 2),
    ("MethodDesc", "Flags", 6),
    ("MethodDesc", "Flags3AndTokenRemainder", 0),
    ("MethodDescChunk", "FlagsAndTokenRange", 18),
    ("MethodDescChunk", "MethodTable", 0),
    ("MethodTable", "AuxiliaryData", 32),
    ("MethodTable", "BaseSize", 4),
    ("MethodTable", "EEClassOrCanonMT", 40),
    ("MethodTable", "MTFlags", 0),
    ("MethodTable", "MTFlags2", 8),
    ("MethodTable", "Module", 24),
    ("MethodTable", "ParentMethodTable", 16),
    ("MethodTable", "PerInstInfo", 48),
    ("ModuleLookupMap", "Count", 16),
    ("ModuleLookupMap", "Next", 0),
    ("ModuleLookupMap", "TableData", 8),
    ("Object", "m_pMethTab", 0),
    ("ParamTypeDesc", "TypeArg", 16),
    ("RangeSection", "Flags", 16),
    ("RangeSection", "HeapList", 40),
    ("RangeSection", "R2RModule", 32),
    ("RangeSection", "RangeBegin", 0),
    ("RangeSection", "RangeEndOpen", 8),
    ("RangeSectionFragment", "Next", 0),
    ("RangeSectionFragment", "RangeBegin", 8),
    ("RangeSectionFragment", "RangeEndOpen", 16),
    ("RangeSectionFragment", "RangeSection", 24),
    ("RealCodeHeader", "GCInfo", 16),
    ("RealCodeHeader", "MethodDesc", 24),
    ("RealCodeHeader", "NumUnwindInfos", 32),
    ("RealCodeHeader", "UnwindInfos", 36),
    ("RuntimeFunction", "BeginAddress", 0),
    ("String", "m_FirstChar", 12),
    ("String", "m_StringLength", 8),
    ("SyncTableEntry", "SyncBlock", 0),
    ("TableSegment", "RgUserData", 1680),
    ("TableSegment", "RgValue", 4096),
    ("ThreadLocalData", "CollectibleTlsArrayData", 16),
    ("ThreadLocalData", "CollectibleTlsDataCount", 4),
    ("ThreadLocalData", "InFlightData", 32),
    ("ThreadLocalData", "NonCollectibleTlsArrayData", 8),
    ("ThreadLocalData", "NonCollectibleTlsDataCount", 0),
    ("TypeDesc", "TypeAndFlags", 0),
];

/// Sizes that readers have as constants.
const SIZES: [(&str, u64); 4] =
    [("Array", 16), ("DynamicStaticsInfo", 24), ("MethodDescChunk", 24), ("SyncTableEntry", 16)];

/// The newest versions of contracts that are known.
const NEWEST: [(&str, u32); 7] = [
    ("Exception", 1),
    ("ExecutionManager", 2),
    ("Loader", 1),
    ("Object", 1),
    ("RuntimeTypeSystem", 1),
    ("StackWalk", 1),
    ("Thread", 1),
];

/// The variables of every collector, and their places in `GcDacVars`.
const COLLECTOR: [(&str, u64); 2] = [("StructureInvalidCount", 21), ("HandleTableMap", 26)];
/// The variables of a workstation's collector.
const WORKSTATION: [(&str, u64); 4] = [
    ("GCHeapGenerationTable", 3),
    ("GCHeapEphemeralHeapSegment", 7),
    ("GCHeapAllocAllocated", 12),
    ("GCHeapFinalizeQueue", 15),
];
/// The variables of a server's collector, which has the others in each heap.
const SERVER: [(&str, u64); 2] = [("NumHeaps", 19), ("Heaps", 20)];
/// The fields of a server's heap, in the order of [`Collector::heap_fields`].
const HEAP_FIELDS: [&str; 4] = ["AllocAllocated", "EphemeralHeapSegment", "FinalizeQueue", "GenerationTable"];

/// Returns the facts of the contract GC; `None` if the description does not have it, or lacks a field of a
/// server's heaps. An error names what is missing or wrong.
pub(crate) fn collector(contracts: &Contracts, processor: Processor) -> Result<Option<Collector>, String> {
    check_constants(contracts, processor)?;
    if contracts.version("GC").is_none() {
        return Ok(None);
    }
    let lacking = |name: &str| format!("its description of its data lacks {name}");
    let offset =
        |of: &str, field: &str| contracts.offset(of, field).ok_or_else(|| lacking(&format!("{of}.{field}")));
    let stated = |name: &str| contracts.number(name).ok_or_else(|| lacking(name));
    let is_server = contracts.pointer("Heaps").is_some();
    let mut heap_fields = [0; HEAP_FIELDS.len()];
    if is_server {
        for (place, field) in heap_fields.iter_mut().zip(HEAP_FIELDS) {
            let Some(at) = contracts.offset("GCHeap", field) else { return Ok(None) };
            *place = at;
        }
    }
    let mut variables = [(u64::MAX, 0); 6];
    let of_kind: &[_] = if is_server { &SERVER } else { &WORKSTATION };
    for (variable, (name, place)) in variables.iter_mut().zip(COLLECTOR.iter().chain(of_kind)) {
        *variable = (*place, contracts.pointer(name).ok_or_else(|| lacking(name))?.get());
    }
    Ok(Some(Collector {
        generation_size: contracts.size("Generation").ok_or_else(|| lacking("Generation"))?,
        generations: stated("TotalGenerationCount")?,
        context: offset("Generation", "AllocationContext")?,
        first_segment: offset("Generation", "StartSegment")?,
        heap_fields,
        handle_tables: HandleTables {
            segments: offset("HandleTable", "SegmentList")?,
            next: offset("TableSegment", "NextSegment")?,
            // The last kind is of blocks of data.
            data_block: u8::try_from(stated("HandleMaxInternalTypes")?.saturating_sub(1)).unwrap_or(u8::MAX),
        },
        variables,
    }))
}

/// Fails if the description has another offset than readers have as a constant, with the name of the field.
fn check_constants(contracts: &Contracts, processor: Processor) -> Result<(), String> {
    for (of, field, constant) in CONSTANTS {
        if let Some(at) = contracts.offset(of, field)
            && at != *constant
        {
            return Err(format!("{of}.{field} is at {at}, and not at {constant}"));
        }
    }
    for (of, constant) in SIZES.into_iter().chain([("RuntimeFunction", processor.function_entry())]) {
        if let Some(size) = contracts.size(of)
            && size != constant
        {
            return Err(format!("{of} has {size} bytes, and not {constant}"));
        }
    }
    Ok(())
}

impl Layout {
    /// Takes the facts that a description states. Returns an error that names the field with an offset that
    /// readers have as a constant, if it is another one there.
    pub(crate) fn describe(&mut self, contracts: &Contracts) -> Result<(), String> {
        // Includes the constants.
        if let Some(collector) = collector(contracts, self.processor)? {
            self.heap = Heap::Stated(collector);
            self.handle_tables = collector.handle_tables;
        }
        for fact in FACTS {
            if let Some(at) = contracts.offset(fact.of, fact.field) {
                (fact.put)(self, at);
            }
        }
        self.describe_forms(contracts);
        Ok(())
    }

    /// Takes the facts that are more than the offset of a field.
    fn describe_forms(&mut self, contracts: &Contracts) {
        let offset = |of, field| contracts.offset(of, field);
        let frames = &mut self.frames;
        for (name, saved) in
            [("TransitionBlock", &mut frames.transition_block), ("HijackArgs", &mut frames.hijack_args)]
        {
            saved.size = contracts.size(name).unwrap_or(saved.size);
        }
        if let Some(pointer) = offset("Thread", "RuntimeThreadLocals")
            && let Some(context) = offset("RuntimeThreadLocals", "AllocContext")
        {
            // The collector's own context is the whole of it before .NET 10.
            let inner = offset("EEAllocContext", "GCAllocationContext").unwrap_or_default();
            let context = context.saturating_add(inner);
            self.thread.allocation_context = AllocationContext::RuntimeThreadLocals { pointer, context };
        }
        if let Some(at) = offset("ExceptionInfo", "ThrownObject") {
            // .NET 11, with its other form of descriptors, has the reference itself.
            let is_handle = contracts.descriptors().first().is_none_or(|first| first.version == 0);
            self.exception_tracker.thrown = if is_handle { Thrown::Handle(at) } else { Thrown::Object(at) };
        }
        if let Some(info) = offset("Module", "ReadyToRunInfo")
            && let Some(map) = offset("ReadyToRunInfo", "EntryPointToMethodDescMap")
            && let Some(buckets) = offset("HashMap", "Buckets")
        {
            let entry_points = map.saturating_add(buckets);
            self.module.ready_to_run = Some(ReadyToRun { info, entry_points });
        }
        if let Some(bits) = contracts.number("MethodDescTokenRemainderBitCount")
            && let Some(bits) = u32::try_from(bits).ok().filter(|bits| (1..=24).contains(bits))
        {
            self.method_row_bits = bits;
        }
        if let Some(version) = contracts.number("GCInfoVersion") {
            self.gc_info = u32::try_from(version).ok();
        }
        if let Some(identifier) = contracts.number("InlinedCallFrameIdentifier") {
            self.frames.inlined_call = FrameKind::Identifier(identifier);
        }
        if let Some(identifier) = contracts.number("FaultingExceptionFrameIdentifier") {
            self.frames.fault = Some(FrameKind::Identifier(identifier));
        }
        if let Some(version) = contracts.version("ExecutionManager").and_then(number) {
            self.code_ranges = CodeRanges::Tree;
            self.nibble_map = if version < 2 { NibbleMap::Linear } else { NibbleMap::WithPointers };
        }
    }
}

/// The number of a contract's version, such as `1` or `c1`.
fn number(version: &str) -> Option<u32> {
    version.trim_start_matches(|first: char| first.is_ascii_lowercase()).parse().ok()
}

/// The slots of the variables that a description states, and their addresses.
pub(crate) fn variables(contracts: &Contracts, slots: &Slots) -> Vec<(usize, Address)> {
    let of = |variable: &Variable| Some(((variable.slot)(slots), contracts.pointer(variable.name)?));
    VARIABLES.iter().filter_map(of).collect()
}

/// Returns the name of a fact that a description lacks, and without which it cannot be read alone; `None` if
/// it has all of them.
pub(crate) fn lacking(contracts: &Contracts) -> Option<String> {
    let needed = FACTS.iter().filter(|fact| fact.is_needed).map(|fact| (fact.of, fact.field));
    for (of, field) in needed.chain(NEEDED) {
        if contracts.offset(of, field).is_none() {
            return Some(format!("{of}.{field}"));
        }
    }
    let mut needed = VARIABLES.iter().filter(|variable| variable.is_needed);
    if let Some(variable) = needed.find(|variable| contracts.pointer(variable.name).is_none()) {
        return Some(variable.name.to_owned());
    }
    contracts.version("ExecutionManager").is_none().then(|| "ExecutionManager".to_owned())
}

/// The contracts in versions that are newer than the known ones, with the version that they are read as.
pub(crate) fn newer(contracts: &Contracts) -> Vec<String> {
    let of = |(contract, known): &(&str, u32)| {
        let version = contracts.version(contract)?;
        let is_newer = number(version).is_none_or(|number| number > *known);
        is_newer.then(|| format!("contract {contract} {version}, read as {known}"))
    };
    NEWEST.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::SYMBOL;
    use crate::memory::core_file::CoreFile;
    use crate::memory::{Memory, MemoryResult, Missing};
    use crate::runtime::Runtime;
    use crate::runtime::elf_image::ElfImage;

    /// A core dump without the header of the description.
    struct Undescribed(CoreFile, u64);

    impl Memory for Undescribed {
        fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
            if address == self.1 { Err(Missing { address }) } else { self.0.read(address, buffer) }
        }
    }

    /// Every fact that a runtime states is the one that was measured for its version.
    #[test]
    fn descriptions_state_what_was_measured() {
        for core in ["cores/deadlock-10.core.xz", "cores/deadlock-10-arm64.core.xz"] {
            check_measured(CoreFile::open(testdata::bytes(core)).unwrap());
        }
    }

    fn check_measured(core: CoreFile) {
        let files = core.files().to_vec();
        let described = Runtime::find(&core, &files).unwrap();
        let image = ElfImage::read(&core, described.base().get()).unwrap().unwrap();
        let header = image.symbol(&core, SYMBOL).unwrap().unwrap().address;
        let measured = Runtime::find(&Undescribed(core, header), &files).unwrap();
        assert!(described.is_described() && !measured.is_described());
        let lines = |runtime: &Runtime| -> Vec<String> {
            let facts = format!("{:#?}", runtime.layout);
            let slots =
                (0..runtime.layout.slots.count).map(|slot| format!("{slot}: {:#x}", runtime.slot(slot)));
            facts.lines().map(str::to_owned).chain(slots).collect()
        };
        let (described, measured) = (lines(&described), lines(&measured));
        let differences: Vec<_> =
            measured.iter().zip(&described).filter(|(one, other)| one != other).collect();
        assert!(differences.is_empty() && measured.len() == described.len(), "{differences:#?}");
    }

    #[test]
    fn versions_are_numbers_with_or_without_a_letter() {
        assert_eq!(["1", "c2", "n10", "2x", ""].map(number), [Some(1), Some(2), Some(10), None, None]);
    }
}
