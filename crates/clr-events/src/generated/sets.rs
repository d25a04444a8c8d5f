//! Sets of events, by subject.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use crate::event_set::EventSet;
use crate::generated::ids;
use crate::provider::Provider;

/// Allocated bytes, and the names of types that are told of by number.
pub static ALLOCATIONS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::ALLOCATION_TICK),
    (Provider::Runtime, ids::runtime::ALLOCATION_SAMPLED),
    (Provider::Runtime, ids::runtime::SAMPLED_OBJECT_ALLOCATION_HIGH),
    (Provider::Runtime, ids::runtime::SAMPLED_OBJECT_ALLOCATION_LOW),
    (Provider::Runtime, ids::runtime::BULK_TYPE),
]);

/// Allocated bytes with the name of a type.
pub static ALLOCATION_TICKS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::ALLOCATION_TICK),
    (Provider::Runtime, ids::runtime::ALLOCATION_SAMPLED),
]);

/// Methods, modules, mappings and symbols by address.
pub static CODE: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::METHOD_LOAD),
    (Provider::Runtime, ids::runtime::METHOD_UNLOAD),
    (Provider::Runtime, ids::runtime::METHOD_LOAD_VERBOSE),
    (Provider::Runtime, ids::runtime::METHOD_UNLOAD_VERBOSE),
    (Provider::Runtime, ids::runtime::MODULE_LOAD),
    (Provider::Runtime, ids::runtime::MODULE_UNLOAD),
    (Provider::Rundown, ids::rundown::METHOD_DC_START),
    (Provider::Rundown, ids::rundown::METHOD_DC_STOP),
    (Provider::Rundown, ids::rundown::METHOD_DC_START_VERBOSE),
    (Provider::Rundown, ids::rundown::METHOD_DC_STOP_VERBOSE),
    (Provider::Rundown, ids::rundown::MODULE_DC_START),
    (Provider::Rundown, ids::rundown::MODULE_DC_STOP),
    (Provider::UniversalSystem, ids::universal_system::PROCESS_MAPPING),
    (Provider::UniversalSystem, ids::universal_system::PROCESS_SYMBOL),
]);

/// Garbage collections: beginnings, ends, pauses and sizes.
pub static COLLECTIONS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::GC_START),
    (Provider::Runtime, ids::runtime::GC_STOP),
    (Provider::Runtime, ids::runtime::GC_HEAP_STATS),
    (Provider::Runtime, ids::runtime::GC_PER_HEAP_HISTORY),
    (Provider::Runtime, ids::runtime::GC_SUSPEND_START),
    (Provider::Runtime, ids::runtime::GC_SUSPEND_STOP),
    (Provider::Runtime, ids::runtime::GC_RESTART_STOP),
]);

/// Methods that are compiled, from their beginning to their code.
pub static COMPILATION: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::METHOD_JITTING_STARTED),
    (Provider::Runtime, ids::runtime::METHOD_LOAD_VERBOSE),
]);

/// Waits for locks.
pub static CONTENTION: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::CONTENTION_START),
    (Provider::Runtime, ids::runtime::CONTENTION_STOP),
]);

/// Exceptions that are thrown.
pub static EXCEPTIONS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::EXCEPTION_START),
]);

/// The IL that native code was made of.
pub static IL_MAPS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::METHOD_IL_TO_NATIVE_MAP),
    (Provider::Rundown, ids::rundown::METHOD_IL_TO_NATIVE_MAP_DC_START),
    (Provider::Rundown, ids::rundown::METHOD_IL_TO_NATIVE_MAP_DC_STOP),
]);

/// Allocated objects, and the collections that they are followed through.
pub static LIVE_ALLOCATIONS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::ALLOCATION_TICK),
    (Provider::Runtime, ids::runtime::ALLOCATION_SAMPLED),
    (Provider::Runtime, ids::runtime::GC_START),
    (Provider::Runtime, ids::runtime::GC_STOP),
    (Provider::Runtime, ids::runtime::GC_GENERATION_RANGE),
    (Provider::Runtime, ids::runtime::GC_BULK_SURVIVING_OBJECT_RANGES),
    (Provider::Runtime, ids::runtime::GC_BULK_MOVED_OBJECT_RANGES),
]);

/// Methods that are loaded and unloaded while the session lasts.
pub static METHODS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::METHOD_LOAD),
    (Provider::Runtime, ids::runtime::METHOD_UNLOAD),
    (Provider::Runtime, ids::runtime::METHOD_LOAD_VERBOSE),
    (Provider::Runtime, ids::runtime::METHOD_UNLOAD_VERBOSE),
]);

/// Times for which the garbage collector stops all threads, and the collections that begin in them.
pub static PAUSES: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::GC_START),
    (Provider::Runtime, ids::runtime::GC_SUSPEND_START),
    (Provider::Runtime, ids::runtime::GC_SUSPEND_STOP),
    (Provider::Runtime, ids::runtime::GC_RESTART_STOP),
]);

/// Processes of a whole machine.
pub static PROCESSES: EventSet = EventSet::new(&[
    (Provider::UniversalSystem, ids::universal_system::EXISTING_PROCESS),
    (Provider::UniversalSystem, ids::universal_system::PROCESS_CREATE),
]);

/// The start of a runtime: assemblies, types, compiled and precompiled methods, exceptions.
pub static STARTUP: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::RUNTIME_START),
    (Provider::Runtime, ids::runtime::ASSEMBLY_LOAD),
    (Provider::Runtime, ids::runtime::ASSEMBLY_LOADER_START),
    (Provider::Runtime, ids::runtime::ASSEMBLY_LOADER_STOP),
    (Provider::Runtime, ids::runtime::METHOD_JITTING_STARTED),
    (Provider::Runtime, ids::runtime::METHOD_LOAD_VERBOSE),
    (Provider::Runtime, ids::runtime::R2R_GET_ENTRY_POINT),
    (Provider::Runtime, ids::runtime::TYPE_LOAD_START),
    (Provider::Runtime, ids::runtime::TYPE_LOAD_STOP),
    (Provider::Runtime, ids::runtime::EXCEPTION_START),
    (Provider::Rundown, ids::rundown::RUNTIME_DC_START),
]);

/// The thread pool: workers, limits, adjustments and work items.
pub static THREAD_POOL: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_START),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_STOP),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_WAIT),
    (Provider::Runtime, ids::runtime::THREAD_POOL_MIN_MAX_THREADS),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_ADJUSTMENT_ADJUSTMENT),
    (Provider::Runtime, ids::runtime::THREAD_POOL_ENQUEUE),
    (Provider::Runtime, ids::runtime::THREAD_POOL_DEQUEUE),
]);

/// Roles of threads: finalizers, the pool's threads, threads of collections.
pub static THREAD_ROLES: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::GC_FINALIZERS_START),
    (Provider::Runtime, ids::runtime::GC_FINALIZERS_STOP),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_START),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_ADJUSTMENT_SAMPLE),
    (Provider::Runtime, ids::runtime::THREAD_POOL_WORKER_THREAD_WAIT),
    (Provider::Runtime, ids::runtime::THREAD_POOL_IO_DEQUEUE),
    (Provider::Runtime, ids::runtime::THREAD_CREATED),
    (Provider::Runtime, ids::runtime::RUNTIME_START),
    (Provider::Runtime, ids::runtime::GC_MARK_WITH_TYPE),
    (Provider::Rundown, ids::rundown::THREAD_DC_STOP),
    (Provider::Rundown, ids::rundown::RUNTIME_DC_START),
    (Provider::Private, ids::private::GC_BGC_START),
    (Provider::Private, ids::private::GC_BGC1ST_NON_COND_STOP),
    (Provider::Private, ids::private::GC_BGC1ST_CON_STOP),
    (Provider::Private, ids::private::GC_BGC2ND_NON_CON_START),
    (Provider::Private, ids::private::GC_BGC2ND_NON_CON_STOP),
    (Provider::Private, ids::private::GC_BGC2ND_CON_START),
    (Provider::Private, ids::private::GC_BGC2ND_CON_STOP),
    (Provider::Private, ids::private::GC_BGC_PLAN_STOP),
    (Provider::Private, ids::private::GC_BGC_SWEEP_STOP),
    (Provider::Private, ids::private::GC_BGC_DRAIN_MARK),
    (Provider::Private, ids::private::GC_BGC_REVISIT),
    (Provider::Private, ids::private::GC_BGC_OVERFLOW),
]);

/// Stacks of managed threads.
pub static THREAD_SAMPLES: EventSet = EventSet::new(&[
    (Provider::SampleProfiler, ids::sample_profiler::THREAD_SAMPLE),
]);

/// Waits for handles.
pub static WAITS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::WAIT_HANDLE_WAIT_START),
    (Provider::Runtime, ids::runtime::WAIT_HANDLE_WAIT_STOP),
]);
