//! The layouts of the versions, as they were measured.

use super::{
    AllocationContext, CodeRanges, Exception, ExceptionTracker, FrameKind, FrameKinds, HandleTables, Heap,
    InstanceTable, Layout, MadeMetadata, Module, MonitorOwner, NibbleMap, Pointers, ReadyToRun,
    SavedRegisters, SlotForm, Slots, StaticFields, Thread, ThreadStore, Thrown, TypeForm, Types,
};
use crate::code::debug_info::{BoundsForm, DebugInfoForm, Patchpoints};
use crate::processor::Processor;

/// The flag of types with references in their objects, for most versions.
const CONTAINS_POINTERS: u32 = 0x0100_0000;

/// TransitionBlock on x86-64, where the registers with arguments precede the others.
const TRANSITION_BLOCK: SavedRegisters = SavedRegisters { preserved: 48, return_address: 96, size: 104 };
/// HijackArgs before .NET 10: the registers with the result precede the others.
const HIJACK_ARGS: SavedRegisters = SavedRegisters { preserved: 16, return_address: 64, size: 72 };

/// PatchpointInfo: saved registers, the number of local variables, and five offsets.
const PATCHPOINTS_8: Patchpoints = Patchpoints { locals: 8, size: 32 };
/// The address of the replaced code is before the number.
const PATCHPOINTS_10: Patchpoints = Patchpoints { locals: 16, size: 40 };

/// Measured on 3.1.23 with the symbols of its `libcoreclr.so` (`.symtab`): the addresses in the table, and
/// the instructions of the functions that use a field, such as `MethodTable::GetModule`.
pub(crate) const NET_3_1: Layout = Layout {
    major: 3,
    processor: Processor::X86_64,
    slots: Slots {
        count: 177,
        added: None,
        form: SlotForm::Relative,
        range_map: 0,
        thread_store: 16,
        heap_type: 33,
        gc_data: 34,
        string_type: 56,
        exception_type: 61,
        free_type: 68,
        sync_table: 94,
        sync_cache: 95,
    },
    thread_store: ThreadStore { first: 168, count: Some(192) },
    thread: Thread {
        state: Some(8),
        mode: Some(12),
        frame: 16,
        managed_id: Some(36),
        link: 256,
        link_target: 256,
        os_id: 456,
        allocation_context: AllocationContext::Thread(88),
        object_handle: Some(464),
        blocking_item: Some(1208),
        last_thrown: Some(504),
        exception_tracker: 520,
        static_fields: None,
        static_modules: Some(1080),
    },
    module: Module {
        // PEFile, PEImage, the characters of its path.
        path: Pointers { first: 16, others: &[8, 16] },
        // PEFile, PEImage, the layout that is used, its base.
        base: Pointers { first: 16, others: &[8, 88, 8] },
        defined_types: 696,
        referenced_types: 728,
        instances: Some(InstanceTable::WarmBuckets(1024)),
        made_metadata: Some(MadeMetadata::Buffer(1656)),
        ready_to_run: Some(ReadyToRun { info: 1216, entry_points: 352 }),
        // Assembly, LoaderAllocator, its handle, the object.
        loader_allocator: &[48, 64, 680, 0],
        native_loader_allocator: &[48, 64],
    },
    types: Types {
        form: TypeForm::ShortRow,
        contains_pointers: CONTAINS_POINTERS,
        optional_fields: 0,
        canonical_mark: 2,
        kind: 52,
        rank: 56,
        static_fields: StaticFields::DomainLocalModule(1304),
    },
    method_row_bits: 14,
    exception_tracker: ExceptionTracker { previous: 8, thrown: Thrown::Handle(64) },
    exception: Exception { has_return_addresses: true, ..Exception::of_coreclr(116) },
    heap: Heap::Fixed { generations: 4, first_segment: 56, generation_table: 344 },
    handle_tables: HandleTables { segments: 208, next: 1992, data_block: 11 },
    first_unused_entry: 188,
    monitor_owner: MonitorOwner::Thread,
    thin_lock_owner_bits: 10,
    code_ranges: CodeRanges::List,
    nibble_map: NibbleMap::Linear,
    debug_info: Some(DebugInfoForm { patchpoints: None, bounds: BoundsForm::Nibbles }),
    gc_info: Some(2),
    frames: FrameKinds {
        inlined_call: FrameKind::Vtable { slot: 153 },
        inlined_call_registers: 32,
        fault: Some(FrameKind::Vtable { slot: 144 }),
        transition_block: TRANSITION_BLOCK,
        hijack_args: HIJACK_ARGS,
        has_helpers: true,
    },
};

/// Measured on 8.0.28, the single file of a program: the runtime's own data compared with the program's known
/// behavior.
pub(crate) const NET_8: Layout = Layout {
    major: 8,
    processor: Processor::X86_64,
    slots: Slots {
        count: 156,
        added: Some(68),
        form: SlotForm::Addresses,
        range_map: 0,
        thread_store: 16,
        heap_type: 19,
        gc_data: 20,
        string_type: 43,
        exception_type: 47,
        free_type: 54,
        sync_table: 79,
        sync_cache: 80,
    },
    thread_store: ThreadStore { first: 160, count: Some(184) },
    thread: Thread {
        state: Some(8),
        mode: Some(12),
        frame: 16,
        managed_id: Some(32),
        link: 232,
        link_target: 232,
        os_id: 424,
        allocation_context: AllocationContext::Thread(88),
        object_handle: Some(432),
        blocking_item: Some(1192),
        last_thrown: Some(464),
        exception_tracker: 480,
        static_fields: None,
        static_modules: Some(1080),
    },
    module: Module {
        // PEAssembly, PEImage, the characters of its path.
        path: Pointers { first: 272, others: &[8, 16] },
        // PEAssembly, PEImage, the layout that is used, its base.
        base: Pointers { first: 272, others: &[8, 120, 8] },
        defined_types: 752,
        referenced_types: 8,
        instances: Some(InstanceTable::Buckets(968)),
        made_metadata: Some(MadeMetadata::Buffer(1688)),
        ready_to_run: Some(ReadyToRun { info: 1152, entry_points: 448 }),
        // LoaderAllocator, its handle, the object.
        loader_allocator: &[248, 976, 0],
        native_loader_allocator: &[248],
    },
    types: Types {
        form: TypeForm::ShortRow,
        contains_pointers: CONTAINS_POINTERS,
        optional_fields: 0,
        canonical_mark: 1,
        kind: 48,
        rank: 56,
        static_fields: StaticFields::DomainLocalModule(1224),
    },
    method_row_bits: 12,
    exception_tracker: ExceptionTracker { previous: 8, thrown: Thrown::Handle(64) },
    exception: Exception::of_coreclr(116),
    heap: Heap::Described,
    handle_tables: HandleTables { segments: 48, next: 1992, data_block: 11 },
    first_unused_entry: 180,
    monitor_owner: MonitorOwner::Thread,
    thin_lock_owner_bits: 16,
    code_ranges: CodeRanges::Tree,
    nibble_map: NibbleMap::Linear,
    debug_info: Some(DebugInfoForm { patchpoints: Some(PATCHPOINTS_8), bounds: BoundsForm::Nibbles }),
    gc_info: Some(2),
    frames: FrameKinds {
        inlined_call: FrameKind::Vtable { slot: 134 },
        inlined_call_registers: 32,
        fault: Some(FrameKind::Vtable { slot: 126 }),
        transition_block: TRANSITION_BLOCK,
        hijack_args: HIJACK_ARGS,
        has_helpers: true,
    },
};

/// MethodTable and EEClass in .NET 9 and 10.
const TYPES_9: Types = Types {
    form: TypeForm::RowInFlags,
    contains_pointers: CONTAINS_POINTERS,
    optional_fields: 0,
    canonical_mark: 1,
    kind: 48,
    rank: 72,
    static_fields: StaticFields::Auxiliary,
};

pub(crate) const NET_9: Layout = Layout {
    major: 9,
    processor: Processor::X86_64,
    slots: Slots {
        count: 158,
        added: Some(71),
        form: SlotForm::Addresses,
        range_map: 0,
        thread_store: 16,
        heap_type: 19,
        gc_data: 20,
        string_type: 46,
        exception_type: 50,
        free_type: 57,
        sync_table: 82,
        sync_cache: 83,
    },
    thread_store: ThreadStore { first: 160, count: Some(184) },
    thread: Thread {
        state: Some(0),
        mode: Some(4),
        frame: 8,
        managed_id: Some(16),
        link: 112,
        link_target: 112,
        os_id: 296,
        allocation_context: AllocationContext::RuntimeThreadLocals { pointer: 32, context: 0 },
        object_handle: Some(304),
        blocking_item: Some(1032),
        last_thrown: Some(336),
        exception_tracker: 352,
        static_fields: Some(928),
        static_modules: None,
    },
    module: Module {
        path: Pointers::to(272),
        base: Pointers::to(288),
        defined_types: 624,
        referenced_types: 8,
        instances: Some(InstanceTable::Buckets(808)),
        made_metadata: Some(MadeMetadata::Sized(1120)),
        ready_to_run: Some(ReadyToRun { info: 984, entry_points: 448 }),
        loader_allocator: &[],
        native_loader_allocator: &[248],
    },
    types: TYPES_9,
    method_row_bits: 12,
    exception_tracker: ExceptionTracker { previous: 0, thrown: Thrown::Handle(8) },
    exception: Exception::of_coreclr(108),
    heap: Heap::Described,
    handle_tables: HandleTables { segments: 48, next: 1992, data_block: 11 },
    first_unused_entry: 180,
    monitor_owner: MonitorOwner::Thread,
    thin_lock_owner_bits: 16,
    code_ranges: CodeRanges::Tree,
    nibble_map: NibbleMap::Linear,
    debug_info: Some(DebugInfoForm { patchpoints: Some(PATCHPOINTS_8), bounds: BoundsForm::Nibbles }),
    gc_info: Some(3),
    frames: FrameKinds {
        inlined_call: FrameKind::Vtable { slot: 137 },
        inlined_call_registers: 24,
        fault: Some(FrameKind::Vtable { slot: 129 }),
        transition_block: TRANSITION_BLOCK,
        hijack_args: HIJACK_ARGS,
        has_helpers: true,
    },
};

/// Measured on 10.0.5; the methods of images that were compiled ahead of time, and the frames of faults, as
/// 10.0.12 describes them.
pub(crate) const NET_10: Layout = Layout {
    major: 10,
    processor: Processor::X86_64,
    slots: Slots {
        count: 128,
        added: Some(69),
        form: SlotForm::Addresses,
        range_map: 0,
        thread_store: 15,
        heap_type: 18,
        gc_data: 19,
        string_type: 45,
        exception_type: 49,
        free_type: 56,
        sync_table: 77,
        sync_cache: 78,
    },
    thread_store: ThreadStore { first: 88, count: Some(112) },
    thread: Thread {
        state: Some(0),
        mode: Some(4),
        frame: 8,
        managed_id: Some(16),
        link: 112,
        link_target: 112,
        os_id: 296,
        allocation_context: AllocationContext::RuntimeThreadLocals { pointer: 32, context: 8 },
        object_handle: Some(304),
        blocking_item: Some(672),
        last_thrown: Some(336),
        exception_tracker: 352,
        static_fields: Some(568),
        static_modules: None,
    },
    module: Module {
        path: Pointers::to(208),
        base: Pointers::to(224),
        defined_types: 416,
        referenced_types: 8,
        instances: Some(InstanceTable::Buckets(600)),
        made_metadata: Some(MadeMetadata::Sized(840)),
        ready_to_run: Some(ReadyToRun { info: 704, entry_points: 376 }),
        loader_allocator: &[],
        native_loader_allocator: &[176],
    },
    types: TYPES_9,
    method_row_bits: 12,
    exception_tracker: ExceptionTracker { previous: 0, thrown: Thrown::Handle(8) },
    exception: Exception::of_coreclr(108),
    heap: Heap::Described,
    handle_tables: HandleTables { segments: 56, next: 1998, data_block: 12 },
    first_unused_entry: 108,
    monitor_owner: MonitorOwner::ManagedId,
    thin_lock_owner_bits: 16,
    code_ranges: CodeRanges::Tree,
    nibble_map: NibbleMap::WithPointers,
    debug_info: Some(DebugInfoForm {
        patchpoints: Some(PATCHPOINTS_10),
        bounds: BoundsForm::Bits { of_source: 2 },
    }),
    gc_info: Some(4),
    frames: FrameKinds {
        inlined_call: FrameKind::Identifier(1),
        inlined_call_registers: 24,
        fault: Some(FrameKind::Identifier(4)),
        transition_block: TRANSITION_BLOCK,
        hijack_args: SavedRegisters { preserved: 24, return_address: 72, size: 80 },
        has_helpers: false,
    },
};

/// Measured on 10.0.9, the single file of a program, and as it describes its data. Thread has 40 bytes more
/// than on x86-64 before its link, and the same order after it.
pub(crate) const NET_10_ARM64: Layout = Layout {
    processor: Processor::Aarch64,
    thread: Thread {
        link: 152,
        link_target: 152,
        os_id: 336,
        object_handle: Some(344),
        blocking_item: Some(712),
        last_thrown: Some(376),
        exception_tracker: 392,
        static_fields: Some(608),
        ..NET_10.thread
    },
    frames: FrameKinds {
        // x29, x30 and x19 to x28; the registers with arguments are after them.
        transition_block: SavedRegisters { preserved: 0, return_address: 8, size: 176 },
        hijack_args: SavedRegisters { preserved: 0, return_address: 8, size: 192 },
        ..NET_10.frames
    },
    ..NET_10
};

/// The forms of .NET 10 and later without offsets, for a runtime that is read by its description alone.
/// Offsets that it does not state are unknown; those that are zero here are stated by each such description.
pub(crate) const DESCRIBED: Layout = Layout {
    major: 0,
    processor: Processor::X86_64,
    slots: NATIVE_AOT.slots,
    thread_store: NATIVE_AOT.thread_store,
    thread: Thread {
        // Each description that is used alone states it.
        allocation_context: AllocationContext::RuntimeThreadLocals { pointer: 0, context: 0 },
        ..NATIVE_AOT.thread
    },
    module: NATIVE_AOT.module,
    types: Types { kind: 0, rank: 0, ..TYPES_9 },
    method_row_bits: 12,
    exception_tracker: NATIVE_AOT.exception_tracker,
    exception: Exception {
        message: 0,
        inner: 0,
        stack_trace: 0,
        hresult: 0,
        frame_count: None,
        has_return_addresses: false,
    },
    heap: Heap::Described,
    handle_tables: NATIVE_AOT.handle_tables,
    first_unused_entry: 0,
    monitor_owner: MonitorOwner::ManagedId,
    thin_lock_owner_bits: 16,
    code_ranges: CodeRanges::Tree,
    nibble_map: NibbleMap::WithPointers,
    debug_info: None,
    gc_info: None,
    frames: FrameKinds { inlined_call: FrameKind::Identifier(1), ..NATIVE_AOT.frames },
};

/// The parts that the runtime of a program that was compiled ahead of time does not describe itself. The
/// others are zero here, and filled in from its description.
///
/// Fields of exceptions were measured on 9.0.20.
pub(crate) const NATIVE_AOT: Layout = Layout {
    major: 0,
    processor: Processor::X86_64,
    slots: Slots {
        count: 9,
        added: None,
        form: SlotForm::Addresses,
        range_map: 0,
        thread_store: 1,
        heap_type: 2,
        gc_data: 3,
        string_type: 4,
        exception_type: 5,
        free_type: 6,
        sync_table: 7,
        sync_cache: 8,
    },
    thread_store: ThreadStore { first: 0, count: None },
    thread: Thread {
        state: None,
        mode: None,
        frame: 0,
        managed_id: None,
        link: 0,
        link_target: 0,
        os_id: 0,
        allocation_context: AllocationContext::Thread(0),
        object_handle: None,
        blocking_item: None,
        last_thrown: None,
        exception_tracker: 0,
        static_fields: None,
        static_modules: None,
    },
    module: Module {
        path: Pointers::to(0),
        base: Pointers::to(0),
        defined_types: 0,
        referenced_types: 0,
        instances: None,
        made_metadata: None,
        ready_to_run: None,
        loader_allocator: &[],
        native_loader_allocator: &[],
    },
    types: Types {
        form: TypeForm::NativeAot,
        contains_pointers: CONTAINS_POINTERS,
        optional_fields: 0,
        canonical_mark: 1,
        kind: 0,
        rank: 0,
        static_fields: StaticFields::Unknown,
    },
    method_row_bits: 12,
    exception_tracker: ExceptionTracker { previous: 0, thrown: Thrown::Object(0) },
    exception: Exception {
        message: 8,
        inner: 24,
        stack_trace: 64,
        hresult: 72,
        frame_count: Some(76),
        has_return_addresses: true,
    },
    heap: Heap::Described,
    handle_tables: HandleTables { segments: 48, next: 1992, data_block: 11 },
    first_unused_entry: 0,
    monitor_owner: MonitorOwner::ManagedId,
    thin_lock_owner_bits: 16,
    code_ranges: CodeRanges::None,
    nibble_map: NibbleMap::Linear,
    debug_info: None,
    gc_info: None,
    frames: FrameKinds {
        inlined_call: FrameKind::Transition,
        inlined_call_registers: 0,
        fault: None,
        transition_block: TRANSITION_BLOCK,
        hijack_args: HIJACK_ARGS,
        has_helpers: false,
    },
};
