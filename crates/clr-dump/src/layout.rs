//! The places of the data of each version of the runtime: facts of its sources, by version, and of its
//! builds, by build id. All offsets are in bytes.
//!
//! A layout holds for all builds of a major version: the sources of a release branch keep their structures.
//! [`Runtime::find`](crate::Runtime::find) checks each against the memory before it is used.
//!
//! # Source
//! dotnet/runtime `src/coreclr/inc/dacvars.h` (slots), `vm/threads.h`, `vm/codeman.h`, `vm/method.hpp`,
//! `vm/ceeload.h`; offsets measured on the builds of [`BUILDS`], on x86-64 Linux.

/// A build of the runtime, which the build id of `libcoreclr.so` identifies.
#[derive(Debug)]
pub(crate) struct Build {
    /// The build id of `libcoreclr.so`, or of the single file that has the runtime.
    pub(crate) id: [u8; 20],
    pub(crate) version: &'static str,
    /// The address of `g_dacTable` relative to the image.
    pub(crate) dac_table: u64,
    pub(crate) layout: &'static Layout,
}

/// The known builds.
pub(crate) const BUILDS: [Build; 2] = [
    Build {
        id: [
            0x0c, 0x36, 0x71, 0xdf, 0xdd, 0x0d, 0xf3, 0x38, 0x51, 0xab, 0x26, 0x6b, 0x9d, 0x8b, 0x96, 0x61,
            0x01, 0x48, 0x94, 0x96,
        ],
        version: "9.0.1",
        dac_table: 0x72_5128,
        layout: &NET_9,
    },
    Build {
        id: [
            0x75, 0x42, 0xd5, 0xf9, 0xa4, 0xa4, 0x63, 0x0a, 0x66, 0xa4, 0xdb, 0x82, 0x09, 0x23, 0x48, 0x4f,
            0x32, 0x92, 0x1f, 0x35,
        ],
        version: "10.0.5",
        dac_table: 0xb7_57a0,
        layout: &NET_10,
    },
];

/// The layout of a major version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) major: u32,
    pub(crate) slots: Slots,
    pub(crate) thread_store: ThreadStore,
    pub(crate) thread: Thread,
    pub(crate) module: Module,
    /// The offset of the allocation context's pointer in RuntimeThreadLocals.
    pub(crate) allocation_context: u64,
    pub(crate) handle_tables: HandleTables,
    pub(crate) monitor_owner: MonitorOwner,
    pub(crate) nibble_map: NibbleMap,
    pub(crate) frames: FrameKinds,
}

/// Indexes of `g_dacTable`, whose entries are the addresses of global variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The number of all slots.
    pub(crate) count: usize,
    pub(crate) range_map: usize,
    pub(crate) thread_store: usize,
    pub(crate) heap_type: usize,
    pub(crate) gc_data: usize,
    pub(crate) string_type: usize,
    pub(crate) exception_type: usize,
    pub(crate) free_type: usize,
    pub(crate) sync_table: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ThreadStore {
    /// The offset of the list's first link; the counts follow.
    pub(crate) first: u64,
    /// The offset of the number of threads.
    pub(crate) count: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    /// The offset of the handle of the managed object.
    pub(crate) object_handle: u64,
    /// The offset of the list of monitors that it waits for.
    pub(crate) blocking_item: u64,
    /// The offset of the handle of the last thrown exception.
    pub(crate) last_thrown: u64,
    /// The offset of the pointer to the exceptions that are being handled.
    pub(crate) exception_tracker: u64,
    /// The offset of the pointer to ThreadLocalData, which has the thread's static fields.
    pub(crate) static_fields: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) path: u64,
    pub(crate) base: u64,
    /// The offset of the map from rows of defined types to their MethodTables.
    pub(crate) defined_types: u64,
    /// The methods of an image that was compiled ahead of time; `None` where their place is not known.
    pub(crate) ready_to_run: Option<ReadyToRun>,
}

/// The tables of handles, whose segments are packed structures.
#[derive(Debug, PartialEq, Eq)]
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
    /// Its managed id, of four bytes.
    ManagedId,
}

/// The form of the map from addresses to the starts of JIT-compiled methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NibbleMap {
    /// A nibble for each 32 bytes.
    Linear,
    /// The same, and words that lie inside a long method have the address of its start.
    WithPointers,
}

/// The explicit frames by which the runtime marks calls from managed to native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameKinds {
    /// InlinedCallFrame: a call of native code.
    pub(crate) inlined_call: FrameKind,
    /// FaultingExceptionFrame: a fault in managed code; `None` where it was not measured.
    pub(crate) fault: Option<FrameKind>,
    /// Whether there are frames of helper methods.
    pub(crate) has_helpers: bool,
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
}

pub(crate) const NET_9: Layout = Layout {
    major: 9,
    slots: Slots {
        count: 158,
        range_map: 0,
        thread_store: 16,
        heap_type: 19,
        gc_data: 20,
        string_type: 46,
        exception_type: 50,
        free_type: 57,
        sync_table: 82,
    },
    thread_store: ThreadStore { first: 160, count: 184 },
    thread: Thread {
        object_handle: 304,
        blocking_item: 1032,
        last_thrown: 336,
        exception_tracker: 352,
        static_fields: 928,
    },
    module: Module {
        path: 272,
        base: 288,
        defined_types: 624,
        ready_to_run: Some(ReadyToRun { info: 984, entry_points: 448 }),
    },
    allocation_context: 0,
    handle_tables: HandleTables { segments: 48, next: 1992, data_block: 11 },
    monitor_owner: MonitorOwner::Thread,
    nibble_map: NibbleMap::Linear,
    frames: FrameKinds {
        inlined_call: FrameKind::Vtable { slot: 137 },
        fault: Some(FrameKind::Vtable { slot: 129 }),
        has_helpers: true,
    },
};

pub(crate) const NET_10: Layout = Layout {
    major: 10,
    slots: Slots {
        count: 128,
        range_map: 0,
        thread_store: 15,
        heap_type: 18,
        gc_data: 19,
        string_type: 45,
        exception_type: 49,
        free_type: 56,
        sync_table: 77,
    },
    thread_store: ThreadStore { first: 88, count: 112 },
    thread: Thread {
        object_handle: 304,
        blocking_item: 672,
        last_thrown: 336,
        exception_tracker: 352,
        static_fields: 568,
    },
    module: Module { path: 208, base: 224, defined_types: 416, ready_to_run: None },
    allocation_context: 8,
    handle_tables: HandleTables { segments: 56, next: 1998, data_block: 12 },
    monitor_owner: MonitorOwner::ManagedId,
    nibble_map: NibbleMap::WithPointers,
    frames: FrameKinds { inlined_call: FrameKind::Identifier(1), fault: None, has_helpers: false },
};

/// The layout of a build.
pub(crate) fn build(build_id: &[u8]) -> Option<&'static Build> {
    BUILDS.iter().find(|build| build.id == *build_id)
}

/// The layout of a version, as `9.0.7`.
pub(crate) fn of_version(version: &str) -> Option<&'static Layout> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    [&NET_9, &NET_10].into_iter().find(|layout| layout.major == major)
}
