//! The places of the data of each version of the runtime: facts of its sources, by version, and of its
//! builds, by build id. All offsets are in bytes.
//!
//! A layout holds for all builds of a major version: the sources of a release branch keep their structures.
//! The .NET Core 3.1 layout is used for its only known build, which does not export its table of variables.
//! [`Runtime::find`](crate::Runtime::find) checks each against the memory before it is used.
//!
//! # Source
//! dotnet/runtime `src/coreclr/inc/dacvars.h` (slots), `vm/threads.h`, `vm/codeman.h`, `vm/method.hpp`,
//! `vm/ceeload.h`; for 3.1 dotnet/coreclr `src/inc/dacvars.h` and `src/vm`. Offsets measured on the builds of
//! [`BUILDS`], on x86-64 Linux, and on 10.0.9 for arm64.

pub(crate) mod described;
mod versions;

pub(crate) use self::versions::{DESCRIBED, NATIVE_AOT, NET_3_1, NET_8, NET_9, NET_10, NET_10_ARM64};
use crate::code::debug_info::DebugInfoForm;
use crate::processor::Processor;

/// A build of the runtime, which the build id of `libcoreclr.so` identifies.
#[derive(Debug)]
pub(crate) struct Build {
    /// The build id of `libcoreclr.so`, or of the single file that has the runtime.
    pub(crate) id: [u8; 20],
    pub(crate) version: &'static str,
    /// The address of `g_dacTable` relative to the image.
    pub(crate) dac_table: u64,
    /// The number of its entries.
    pub(crate) variables: usize,
    pub(crate) layout: &'static Layout,
}

/// The known builds.
pub(crate) const BUILDS: [Build; 4] = [
    Build {
        id: [
            0x36, 0xbd, 0x33, 0x59, 0x43, 0x8f, 0xe9, 0x29, 0x89, 0x22, 0x29, 0x8f, 0xa1, 0xbe, 0x6f, 0x2b,
            0x97, 0xc9, 0x9c, 0x21,
        ],
        version: "3.1.23",
        dac_table: 0x76_9d08,
        variables: 177,
        layout: &NET_3_1,
    },
    Build {
        id: [
            0x4d, 0x49, 0xe2, 0x62, 0x21, 0xed, 0x94, 0xf6, 0x79, 0x57, 0x8d, 0x35, 0x82, 0xbf, 0x70, 0xba,
            0x0f, 0x8b, 0xc4, 0x30,
        ],
        version: "8.0.28",
        dac_table: 0xa8_dee8,
        variables: 157,
        layout: &NET_8,
    },
    Build {
        id: [
            0x0c, 0x36, 0x71, 0xdf, 0xdd, 0x0d, 0xf3, 0x38, 0x51, 0xab, 0x26, 0x6b, 0x9d, 0x8b, 0x96, 0x61,
            0x01, 0x48, 0x94, 0x96,
        ],
        version: "9.0.1",
        dac_table: 0x72_5128,
        variables: 158,
        layout: &NET_9,
    },
    Build {
        id: [
            0x75, 0x42, 0xd5, 0xf9, 0xa4, 0xa4, 0x63, 0x0a, 0x66, 0xa4, 0xdb, 0x82, 0x09, 0x23, 0x48, 0x4f,
            0x32, 0x92, 0x1f, 0x35,
        ],
        version: "10.0.5",
        dac_table: 0xb7_57a0,
        variables: 128,
        layout: &NET_10,
    },
];

/// The layout of a major version on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) major: u32,
    pub(crate) processor: Processor,
    pub(crate) slots: Slots,
    pub(crate) thread_store: ThreadStore,
    pub(crate) thread: Thread,
    pub(crate) module: Module,
    pub(crate) types: Types,
    /// The number of low bits of a method's row that its MethodDesc has; its chunk has the others.
    pub(crate) method_row_bits: u32,
    pub(crate) exception_tracker: ExceptionTracker,
    /// The fields of `System.Exception`.
    pub(crate) exception: Exception,
    pub(crate) heap: Heap,
    pub(crate) handle_tables: HandleTables,
    /// The offset of the index of the first entry of the sync table that was never used in SyncBlockCache.
    pub(crate) first_unused_entry: u64,
    pub(crate) monitor_owner: MonitorOwner,
    /// The number of bits of a thin lock's holder; the recursion bits follow.
    pub(crate) thin_lock_owner_bits: u32,
    pub(crate) code_ranges: CodeRanges,
    pub(crate) nibble_map: NibbleMap,
    /// The form of the maps from JIT-compiled code to IL; `None` where it was not measured.
    pub(crate) debug_info: Option<DebugInfoForm>,
    /// The version of the GCInfo of JIT-compiled code; `None` if it is not read.
    pub(crate) gc_info: Option<u32>,
    pub(crate) frames: FrameKinds,
}

/// Indexes into `g_dacTable`, a table of addresses of global variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The number of all slots.
    pub(crate) count: usize,
    /// The index of a variable that only later builds have: it is left out.
    pub(crate) added: Option<usize>,
    pub(crate) form: SlotForm,
    pub(crate) range_map: usize,
    pub(crate) thread_store: usize,
    pub(crate) heap_type: usize,
    pub(crate) gc_data: usize,
    pub(crate) string_type: usize,
    pub(crate) exception_type: usize,
    pub(crate) free_type: usize,
    pub(crate) sync_table: usize,
    pub(crate) sync_cache: usize,
}

impl Slots {
    /// Maximum number of entries of a table.
    const MAX_ENTRIES: usize = 1024;

    /// The number of entries of a table of `size` bytes.
    pub(crate) fn entries(&self, size: u64) -> usize {
        let entries = usize::try_from(size).ok().and_then(|size| size.checked_div(self.form.size()));
        entries.unwrap_or_default().min(Self::MAX_ENTRIES)
    }

    /// Leaves the slots of the table of a build that are known; false if the table's slots are unknown.
    pub(crate) fn leave_known(&self, table: &mut Vec<u64>) -> bool {
        if let Some(added) = self.added.filter(|added| *added < table.len())
            && table.len() == self.count.saturating_add(1)
        {
            table.remove(added);
        }
        table.len() == self.count
    }
}

/// The form of the entries of `g_dacTable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotForm {
    /// Addresses of eight bytes.
    Addresses,
    /// Addresses of four bytes, relative to the image.
    Relative,
}

impl SlotForm {
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Addresses => 8,
            Self::Relative => 4,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadStore {
    /// The offset of the list's first link; the counts follow.
    pub(crate) first: u64,
    /// The offset of the number of threads, where it is counted.
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread {
    /// The offset of the state; `None` where its bits are others.
    pub(crate) state: Option<u64>,
    /// The offset of the mode; `None` where a thread without an explicit frame is cooperative.
    pub(crate) mode: Option<u64>,
    /// The offset of the pointer to the innermost explicit frame.
    pub(crate) frame: u64,
    pub(crate) managed_id: Option<u64>,
    /// The offset of the link to the next thread.
    pub(crate) link: u64,
    /// The offset that links point to.
    pub(crate) link_target: u64,
    pub(crate) os_id: u64,
    pub(crate) allocation_context: AllocationContext,
    /// The offset of the handle of the managed object.
    pub(crate) object_handle: Option<u64>,
    /// The offset of the list of monitors that it waits for.
    pub(crate) blocking_item: Option<u64>,
    /// The offset of the handle of the last thrown exception.
    pub(crate) last_thrown: Option<u64>,
    /// The offset of the pointer to the exceptions that are being handled.
    pub(crate) exception_tracker: u64,
    /// The offset of the pointer to ThreadLocalData, which has the thread's static fields, or to a list of
    /// objects that have them (NativeAOT); `None` where they are in arrays that handles hold.
    pub(crate) static_fields: Option<u64>,
    /// The offset of ThreadLocalBlock, which has an array with the thread's static fields of each module, and
    /// its length; `None` in versions without it.
    pub(crate) static_modules: Option<u64>,
}

/// The place of a thread's allocation context, which starts with its pointer and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationContext {
    /// Inline in Thread, at this offset.
    Thread(u64),
    /// In RuntimeThreadLocals, to which Thread has a pointer.
    RuntimeThreadLocals {
        /// The offset of the pointer in Thread.
        pointer: u64,
        /// The offset of the context in RuntimeThreadLocals.
        context: u64,
    },
}

/// The structures of exceptions that are being handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExceptionTracker {
    /// The offset of the pointer to the previous exception's tracker.
    pub(crate) previous: u64,
    /// The exception.
    pub(crate) thrown: Thrown,
}

/// The place of the exception in an exception tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thrown {
    /// The offset of its handle.
    Handle(u64),
    /// The offset of the reference to it.
    Object(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Module {
    /// The pointers that lead to the path.
    pub(crate) path: Pointers,
    /// The pointers that lead to the image.
    pub(crate) base: Pointers,
    /// The offset of the map from rows of defined types to their MethodTables.
    pub(crate) defined_types: u64,
    /// The offset of the map from rows of referenced types.
    pub(crate) referenced_types: u64,
    /// The table of constructed types; `None` in versions without it.
    pub(crate) instances: Option<InstanceTable>,
    /// The metadata of a module that was made in memory.
    pub(crate) made_metadata: Option<MadeMetadata>,
    /// The methods of an image that was compiled ahead of time; `None` if their place is unknown.
    pub(crate) ready_to_run: Option<ReadyToRun>,
    /// The offsets of the pointers that lead to the managed LoaderAllocator of a module that can be unloaded;
    /// none where nothing is read of it.
    pub(crate) loader_allocator: &'static [u64],
    /// The offsets of the pointers that lead to the runtime's own LoaderAllocator of a module; none where
    /// that is unknown.
    pub(crate) native_loader_allocator: &'static [u64],
}

/// The offsets of pointers that lead from a structure to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointers {
    /// The offset of the first pointer.
    pub(crate) first: u64,
    /// The offsets of the others, each in the structure that the one before it leads to.
    pub(crate) others: &'static [u64],
}

impl Pointers {
    /// A single pointer.
    pub(crate) const fn to(first: u64) -> Self {
        Self { first, others: &[] }
    }
}

/// The offset in Module of the pointer to the metadata of a module that was made in memory. It is a copy that
/// the runtime makes when a type is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MadeMetadata {
    /// A size of four bytes, and the metadata.
    Sized(u64),
    /// SBuffer: the size, and at 16 a pointer to the metadata.
    Buffer(u64),
}

/// The offset in Module of the pointer to its table of constructed types. The table's entries are in chains,
/// each with a type and the next entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstanceTable {
    /// The array of buckets begins with its length.
    Buckets(u64),
    /// The table stores the numbers of buckets and entries.
    WarmBuckets(u64),
}

/// MethodTable and EEClass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) form: TypeForm,
    /// The flag of types with references in their objects.
    pub(crate) contains_pointers: u32,
    /// The flag of types with optional fields of their own, of NativeAOT 8; zero elsewhere.
    pub(crate) optional_fields: u32,
    /// The bit that marks the canonical MethodTable in the place of the class.
    pub(crate) canonical_mark: u64,
    /// The offset of the kind of a type's values in EEClass.
    pub(crate) kind: u64,
    /// The offset of the number of an array's dimensions in EEClass.
    pub(crate) rank: u64,
    pub(crate) static_fields: StaticFields,
}

/// The way from a MethodTable to the static fields of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StaticFields {
    /// Unknown.
    Unknown,
    /// Two pointers before the auxiliary data of the MethodTable.
    Auxiliary,
    /// DomainLocalModule, to which Module has a pointer at this offset.
    DomainLocalModule(u64),
}

/// The places of a type's row and module in its MethodTable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeForm {
    /// The row is the upper three bytes of the flags at 8. The module is at 24.
    RowInFlags,
    /// The row has two bytes at 10. The module that loaded the type is at 24; a different defining module is
    /// in one of the optional fields.
    ShortRow,
    /// No rows: a map leads from types to their names.
    NativeAot,
}

/// Offsets of fields of an object of `System.Exception`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) message: u64,
    pub(crate) inner: u64,
    /// The array of the frames that it passed.
    pub(crate) stack_trace: u64,
    /// The error code.
    pub(crate) hresult: u64,
    /// The number of frames, where the array has nothing but their return addresses.
    pub(crate) frame_count: Option<u64>,
    /// True if the addresses of frames follow a call. Later runtimes have set them back into it.
    pub(crate) has_return_addresses: bool,
}

impl Exception {
    /// The fields of all runtimes that compile methods while they run: only the place of the error code
    /// differs.
    const fn of_coreclr(hresult: u64) -> Self {
        Self {
            message: 16,
            inner: 32,
            stack_trace: 48,
            hresult,
            frame_count: None,
            has_return_addresses: false,
        }
    }
}

/// The collector's description of its heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heap {
    /// The description has the offsets of fields.
    Described,
    /// The contract GC of the runtime's description states variables and offsets.
    Stated(Collector),
    /// The version determines the offsets of fields.
    Fixed {
        /// The number of generations, including the large object heap.
        generations: u64,
        /// The offset of the first segment in a generation, after the allocation context.
        first_segment: u64,
        /// The offset of the generations in a heap of a server's collector; its end, its ephemeral segment
        /// and its queue of objects with finalizers precede them.
        generation_table: u64,
    },
}

/// Facts of a collector that the runtime's description states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collector {
    /// Bytes of a generation.
    pub(crate) generation_size: u64,
    /// The number of generations, including the large and pinned object heaps.
    pub(crate) generations: u64,
    /// The offset of the allocation context in a generation.
    pub(crate) context: u64,
    /// The offset of the first segment in a generation.
    pub(crate) first_segment: u64,
    /// The offsets in a heap of a server's collector: of its end, its ephemeral segment, its queue of
    /// objects with finalizers, and its generations.
    pub(crate) heap_fields: [u64; 4],
    pub(crate) handle_tables: HandleTables,
    /// The places of variables in `GcDacVars`, and their addresses.
    pub(crate) variables: [(u64, u64); 6],
}

/// The runtime's map of ranges of managed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeRanges {
    /// A tree by parts of the address.
    Tree,
    /// A list.
    List,
    /// No map: the code is a part of the program's image.
    None,
}

/// The handle tables. Their segments are packed structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandleTables {
    /// The offset of the pointer to the first segment in HandleTable.
    pub(crate) segments: u64,
    /// The offset of the pointer to the next segment in a segment; the pointer to the table follows.
    pub(crate) next: u64,
    /// The type of the blocks that have the second values of handles.
    pub(crate) data_block: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadyToRun {
    /// The offset of the pointer to ReadyToRunInfo in Module.
    pub(crate) info: u64,
    /// The offset of the pointer to the table of prepared methods in ReadyToRunInfo.
    pub(crate) entry_points: u64,
}

/// The holder of a monitor in a sync block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MonitorOwner {
    /// The address of its Thread.
    Thread,
    /// The managed id of the holder, in four bytes.
    ManagedId,
}

/// The form of the map from addresses to the starts of JIT-compiled methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NibbleMap {
    /// A nibble for each 32 bytes.
    Linear,
    /// Nibbles, except that words inside a long method have the address of its start.
    WithPointers,
}

/// The explicit frames that mark calls from managed to native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameKinds {
    /// InlinedCallFrame: a call of native code.
    pub(crate) inlined_call: FrameKind,
    /// The offset of its stack pointer; the return address and the frame pointer follow.
    pub(crate) inlined_call_registers: u64,
    /// FaultingExceptionFrame: a fault in managed code; `None` where it was not measured.
    pub(crate) fault: Option<FrameKind>,
    /// TransitionBlock: the registers of a managed caller, at its call of the runtime.
    pub(crate) transition_block: SavedRegisters,
    /// HijackArgs: the registers of a managed caller, at a replaced return address.
    pub(crate) hijack_args: SavedRegisters,
    /// True if there are frames of helper methods.
    pub(crate) has_helpers: bool,
}

/// A part of the stack with registers of a managed caller, which is next to the caller's own part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavedRegisters {
    /// The offset of the registers that a callee preserves.
    pub(crate) preserved: u64,
    /// The offset of the return address.
    pub(crate) return_address: u64,
    /// The number of bytes: the caller's stack pointer is at its end.
    pub(crate) size: u64,
}

/// The first word of explicit frames of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The vtable that a slot has.
    Vtable {
        /// The slot.
        slot: usize,
    },
    /// An identifier.
    Identifier(u64),
    /// No first word, because only one kind exists: NativeAOT's PInvokeTransitionFrame.
    Transition,
}

/// The layout of a build.
pub(crate) fn build(build_id: &[u8]) -> Option<&'static Build> {
    BUILDS.iter().find(|build| build.id == *build_id)
}

/// The layouts that hold for all builds of their version.
const VERSIONS: [&Layout; 4] = [&NET_8, &NET_9, &NET_10, &NET_10_ARM64];

/// The layout of a version, as `9.0.7`, on a processor.
pub(crate) fn of_version(version: &str, processor: Processor) -> Option<&'static Layout> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    VERSIONS.into_iter().find(|layout| layout.major == major && layout.processor == processor)
}

/// The layout of the version with a `g_dacTable` of `size` bytes on a processor.
pub(crate) fn of_table(size: u64, processor: Processor) -> Option<&'static Layout> {
    let is_known = |layout: &&Layout| {
        let slots = &layout.slots;
        let more = usize::from(slots.added.is_some());
        let counts = slots.count..=slots.count.saturating_add(more);
        layout.processor == processor && counts.contains(&slots.entries(size))
    };
    VERSIONS.into_iter().find(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_table_tells_versions_apart() {
        let major = |entries: u64| of_table(entries * 8, Processor::X86_64).map(|layout| layout.major);
        let found = [155, 156, 157, 158, 159, 160, 127, 128, 129, 130].map(major);
        let (eight, nine, ten) = (Some(8), Some(9), Some(10));
        assert_eq!(found, [None, eight, eight, nine, nine, None, None, ten, ten, None]);
        // Only one was measured.
        let of_arm64 = |entries: u64| of_table(entries * 8, Processor::Aarch64).map(|layout| layout.major);
        assert_eq!([156, 158, 128, 129].map(of_arm64), [None, None, ten, ten]);
    }

    #[test]
    fn a_variable_that_later_builds_have_is_left_out() {
        let mut table: Vec<u64> = (0..157).collect();
        assert!(NET_8.slots.leave_known(&mut table));
        assert_eq!((table[67], table[68], table[155]), (67, 69, 156));
        let mut table: Vec<u64> = (0..156).collect();
        assert!(NET_8.slots.leave_known(&mut table));
        assert_eq!(table[155], 155);
        assert!(!NET_8.slots.leave_known(&mut vec![0; 158]));
        assert!(!NET_3_1.slots.leave_known(&mut vec![0; 178]));
    }
}
