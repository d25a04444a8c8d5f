//! Names of values and of bits.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use crate::macros::value_names;

value_names! {
    "Bits of `AppDomainFlagsMap`.",
    AppDomainFlags, APP_DOMAIN_FLAGS, "AppDomainFlagsMap", Bits;
    DEFAULT = 0x1, "Default";
    EXECUTABLE = 0x2, "Executable";
    SHARED = 0x4, "Shared";
}

value_names! {
    "Bits of `AssemblyFlagsMap`.",
    AssemblyFlags, ASSEMBLY_FLAGS, "AssemblyFlagsMap", Bits;
    DOMAIN_NEUTRAL = 0x1, "DomainNeutral";
    DYNAMIC = 0x2, "Dynamic";
    NATIVE = 0x4, "Native";
    COLLECTIBLE = 0x8, "Collectible";
    READY_TO_RUN = 0x10, "ReadyToRun";
}

value_names! {
    "A value of `ContentionFlagsMap`.",
    ContentionFlags, CONTENTION_FLAGS, "ContentionFlagsMap", Values;
    MANAGED = 0, "Managed";
    NATIVE = 1, "Native";
}

value_names! {
    "A value of `ExceptionClauseTypeMap`.",
    ExceptionClauseType, EXCEPTION_CLAUSE_TYPE, "ExceptionClauseTypeMap", Values;
    NONE = 0, "None";
    FILTER = 1, "Filter";
    FINALLY = 2, "Finally";
    FAULT = 3, "Fault";
}

value_names! {
    "Bits of `ExceptionThrownFlagsMap`.",
    ExceptionThrownFlags, EXCEPTION_THROWN_FLAGS, "ExceptionThrownFlagsMap", Bits;
    HAS_INNER_EXCEPTION = 0x1, "HasInnerException";
    NESTED = 0x2, "Nested";
    RE_THROWN = 0x4, "ReThrown";
    CORRUPTED_STATE = 0x8, "CorruptedState";
    CLS_COMPLIANT = 0x10, "CLSCompliant";
}

value_names! {
    "A value of `GCAllocationKindMap`.",
    GcAllocationKind, GC_ALLOCATION_KIND, "GCAllocationKindMap", Values;
    SMALL = 0, "Small";
    LARGE = 1, "Large";
    PINNED = 2, "Pinned";
}

value_names! {
    "A value of `GCBucketKindMap`.",
    GcBucketKind, GC_BUCKET_KIND, "GCBucketKindMap", Values;
    FL_ITEM = 0, "FLItem";
    PLUG = 1, "Plug";
}

value_names! {
    "A value of `GCEventTypeMap`.",
    GcEventType, GC_EVENT_TYPE, "GCEventTypeMap", Values;
    START = 0, "Start";
    END = 5, "End";
    PRE_STOP_WORLD = 6, "PreStopWorld";
    POST_STOP_WORLD = 7, "PostStopWorld";
    PRE_START_WORLD = 8, "PreStartWorld";
    POST_START_WORLD = 9, "PostStartWorld";
    PRE_STOP_WORLD_LOCKED = 10, "PreStopWorldLocked";
    POST_START_WORLD_UNLOCKED = 11, "PostStartWorldUnlocked";
}

value_names! {
    "A value of `GCHandleKindMap`.",
    GcHandleKind, GC_HANDLE_KIND, "GCHandleKindMap", Values;
    WEAK_SHORT = 0, "WeakShort";
    WEAK_LONG = 1, "WeakLong";
    STRONG = 2, "Strong";
    PINNED = 3, "Pinned";
    VARIABLE = 4, "Variable";
    REF_COUNTED = 5, "RefCounted";
    DEPENDENT = 6, "Dependent";
    ASYNC_PINNED = 7, "AsyncPinned";
    SIZED_REF = 8, "SizedRef";
}

value_names! {
    "A value of `GCHandleTypeMap`.",
    GcHandleType, GC_HANDLE_TYPE, "GCHandleTypeMap", Values;
    WEAK = 0, "Weak";
    WEAK_TRACK_RESURRECTION = 1, "WeakTrackResurrection";
    NORMAL = 2, "Normal";
    PINNED = 3, "Pinned";
}

value_names! {
    "A value of `GCReasonMap`.",
    GcReason, GC_REASON, "GCReasonMap", Values;
    ALLOC_SMALL = 0, "AllocSmall";
    INDUCED = 1, "Induced";
    LOW_MEMORY = 2, "LowMemory";
    EMPTY = 3, "Empty";
    ALLOC_LARGE = 4, "AllocLarge";
    OUT_OF_SPACE_SMALL_OBJECT_HEAP = 5, "OutOfSpaceSmallObjectHeap";
    OUT_OF_SPACE_LARGE_OBJECT_HEAP = 6, "OutOfSpaceLargeObjectHeap";
    INDUCED_NO_FORCE = 7, "InducedNoForce";
    STRESS = 8, "Stress";
    INDUCED_LOW_MEMORY = 9, "InducedLowMemory";
}

value_names! {
    "Bits of `GCRootCCWFlagsMap`.",
    GcRootCcwFlags, GC_ROOT_CCW_FLAGS, "GCRootCCWFlagsMap", Bits;
    STRONG = 0x1, "Strong";
    PEGGED = 0x2, "Pegged";
}

value_names! {
    "Bits of `GCRootFlagsMap`.",
    GcRootFlags, GC_ROOT_FLAGS, "GCRootFlagsMap", Bits;
    PINNING = 0x1, "Pinning";
    WEAK_REF = 0x2, "WeakRef";
    INTERIOR = 0x4, "Interior";
    REF_COUNTED = 0x8, "RefCounted";
}

value_names! {
    "A value of `GCRootKindMap`.",
    GcRootKind, GC_ROOT_KIND, "GCRootKindMap", Values;
    STACK = 0, "Stack";
    FINALIZER = 1, "Finalizer";
    HANDLE = 2, "Handle";
    OLDER = 3, "Older";
    SIZED_REF = 4, "SizedRef";
    OVERFLOW = 5, "Overflow";
    DEPENDENT_HANDLE = 6, "DependentHandle";
    NEW_FQ = 7, "NewFQ";
    STEAL = 8, "Steal";
    BGC = 9, "BGC";
}

value_names! {
    "Bits of `GCRootStaticVarFlagsMap`.",
    GcRootStaticVarFlags, GC_ROOT_STATIC_VAR_FLAGS, "GCRootStaticVarFlagsMap", Bits;
    THREAD_LOCAL = 0x1, "ThreadLocal";
}

value_names! {
    "A value of `GCRootTypeMap`.",
    GcRootType, GC_ROOT_TYPE, "GCRootTypeMap", Values;
    EXTERNAL = 0, "External";
    STACK = 1, "Stack";
    FINALIZER_QUEUE = 2, "FinalizerQueue";
    STATIC = 3, "Static";
    THREAD_STATIC = 4, "ThreadStatic";
    CONTEXT_STATIC = 5, "ContextStatic";
    GC_HANDLE = 6, "GCHandle";
    JIT = 7, "Jit";
    THREADING = 8, "Threading";
    DOMAIN = 9, "Domain";
    REFLECTION = 10, "Reflection";
    MARSHAL = 11, "Marshal";
    THREAD_POOL = 12, "ThreadPool";
    DEBUGGER = 13, "Debugger";
    HANDLE = 14, "Handle";
    EPHEMERON = 15, "Ephemeron";
    TOGGLE_REF = 16, "ToggleRef";
}

value_names! {
    "A value of `GCSegmentTypeMap`.",
    GcSegmentType, GC_SEGMENT_TYPE, "GCSegmentTypeMap", Values;
    SMALL_OBJECT_HEAP = 0, "SmallObjectHeap";
    LARGE_OBJECT_HEAP = 1, "LargeObjectHeap";
    READ_ONLY_HEAP = 2, "ReadOnlyHeap";
    PINNED_HEAP = 3, "PinnedHeap";
}

value_names! {
    "A value of `GCSuspendEEReasonMap`.",
    GcSuspendEeReason, GC_SUSPEND_EE_REASON, "GCSuspendEEReasonMap", Values;
    SUSPEND_OTHER = 0, "SuspendOther";
    SUSPEND_FOR_GC = 1, "SuspendForGC";
    SUSPEND_FOR_APP_DOMAIN_SHUTDOWN = 2, "SuspendForAppDomainShutdown";
    SUSPEND_FOR_CODE_PITCHING = 3, "SuspendForCodePitching";
    SUSPEND_FOR_SHUTDOWN = 4, "SuspendForShutdown";
    SUSPEND_FOR_DEBUGGER = 5, "SuspendForDebugger";
    SUSPEND_FOR_GC_PREP = 6, "SuspendForGCPrep";
    SUSPEND_FOR_DEBUGGER_SWEEP = 7, "SuspendForDebuggerSweep";
}

value_names! {
    "A value of `GCTypeMap`.",
    GcType, GC_TYPE, "GCTypeMap", Values;
    NON_CONCURRENT_GC = 0, "NonConcurrentGC";
    BACKGROUND_GC = 1, "BackgroundGC";
    FOREGROUND_GC = 2, "ForegroundGC";
}

value_names! {
    "Bits of `ILStubGeneratedFlagsMap`.",
    IlStubGeneratedFlags, IL_STUB_GENERATED_FLAGS, "ILStubGeneratedFlagsMap", Bits;
    REVERSE_INTEROP = 0x1, "ReverseInterop";
    COM_INTEROP = 0x2, "ComInterop";
    N_GENED_STUB = 0x4, "NGenedStub";
    DELEGATE = 0x8, "Delegate";
    VAR_ARG = 0x10, "VarArg";
    UNMANAGED_CALLEE = 0x20, "UnmanagedCallee";
    STRUCT_MARSHAL = 0x40, "StructMarshal";
}

value_names! {
    "A value of `JitCodeBufferTypeMap`.",
    JitCodeBufferType, JIT_CODE_BUFFER_TYPE, "JitCodeBufferTypeMap", Values;
    METHOD = 0, "Method";
    METHOD_TRAMPOLINE = 1, "MethodTrampoline";
    UNBOX_TRAMPOLINE = 2, "UnboxTrampoline";
    IMT_TRAMPOLINE = 3, "IMTTrampoline";
    GENERICS_TRAMPOLINE = 4, "GenericsTrampoline";
    SPECIFIC_TRAMPOLINE = 5, "SpecificTrampoline";
    HELPER = 6, "Helper";
}

value_names! {
    "A value of `KnownPathSourceMap`.",
    KnownPathSource, KNOWN_PATH_SOURCE, "KnownPathSourceMap", Values;
    APPLICATION_ASSEMBLIES = 0, "ApplicationAssemblies";
    UNUSED = 1, "Unused";
    APP_PATHS = 2, "AppPaths";
    PLATFORM_RESOURCE_ROOTS = 3, "PlatformResourceRoots";
    SATELLITE_SUBDIRECTORY = 4, "SatelliteSubdirectory";
}

value_names! {
    "Bits of `MethodFlagsMap`.",
    MethodFlags, METHOD_FLAGS, "MethodFlagsMap", Bits;
    DYNAMIC = 0x1, "Dynamic";
    GENERIC = 0x2, "Generic";
    HAS_SHARED_GENERIC_CODE = 0x4, "HasSharedGenericCode";
    JITTED = 0x8, "Jitted";
    JIT_HELPER = 0x10, "JitHelper";
    PROFILER_REJECTED_PRECOMPILED_CODE = 0x20, "ProfilerRejectedPrecompiledCode";
    READY_TO_RUN_REJECTED_PRECOMPILED_CODE = 0x40, "ReadyToRunRejectedPrecompiledCode";
}

value_names! {
    "Bits of `ModuleFlagsMap`.",
    ModuleFlags, MODULE_FLAGS, "ModuleFlagsMap", Bits;
    DOMAIN_NEUTRAL = 0x1, "DomainNeutral";
    NATIVE = 0x2, "Native";
    DYNAMIC = 0x4, "Dynamic";
    MANIFEST = 0x8, "Manifest";
    IBC_OPTIMIZED = 0x10, "IbcOptimized";
    READY_TO_RUN_MODULE = 0x20, "ReadyToRunModule";
    PARTIAL_READY_TO_RUN_MODULE = 0x40, "PartialReadyToRunModule";
}

value_names! {
    "Bits of `ModuleRangeIBCTypeMap`.",
    ModuleRangeIbcType, MODULE_RANGE_IBC_TYPE, "ModuleRangeIBCTypeMap", Bits;
    IBC_UNPROFILED_SECTION = 0x1, "IBCUnprofiledSection";
    IBC_PROFILED_SECTION = 0x2, "IBCProfiledSection";
}

value_names! {
    "A value of `ModuleRangeSectionTypeMap`.",
    ModuleRangeSectionType, MODULE_RANGE_SECTION_TYPE, "ModuleRangeSectionTypeMap", Values;
    MODULE_SECTION = 1, "ModuleSection";
    EE_TABLE_SECTION = 2, "EETableSection";
    WRITE_DATA_SECTION = 3, "WriteDataSection";
    WRITEABLE_DATA_SECTION = 4, "WriteableDataSection";
    DATA_SECTION = 5, "DataSection";
    RVA_STATICS_SECTION = 6, "RVAStaticsSection";
    EE_DATA_SECTION = 7, "EEDataSection";
    DELAY_LOAD_INFO_TABLE_EAGER_SECTION = 8, "DelayLoadInfoTableEagerSection";
    DELAY_LOAD_INFO_TABLE_SECTION = 9, "DelayLoadInfoTableSection";
    EE_READONLY_DATA = 10, "EEReadonlyData";
    READONLY_DATA = 11, "ReadonlyData";
    CLASS_SECTION = 12, "ClassSection";
    CROSS_DOMAIN_INFO_SECTION = 13, "CrossDomainInfoSection";
    METHOD_DESC_SECTION = 14, "MethodDescSection";
    METHOD_DESC_WRITEABLE_SECTION = 15, "MethodDescWriteableSection";
    EXCEPTION_SECTION = 16, "ExceptionSection";
    INSTRUMENT_SECTION = 17, "InstrumentSection";
    VIRTUAL_IMPORT_THUNK_SECTION = 18, "VirtualImportThunkSection";
    EXTERNAL_METHOD_THUNK_SECTION = 19, "ExternalMethodThunkSection";
    HELPER_TABLE_SECTION = 20, "HelperTableSection";
    METHOD_PRECODE_WRITEABLE_SECTION = 21, "MethodPrecodeWriteableSection";
    METHOD_PRECODE_WRITE_SECTION = 22, "MethodPrecodeWriteSection";
    METHOD_PRECODE_SECTION = 23, "MethodPrecodeSection";
    WIN32_RESOURCES_SECTION = 24, "Win32ResourcesSection";
    HEADER_SECTION = 25, "HeaderSection";
    METADATA_SECTION = 26, "MetadataSection";
    DELAY_LOAD_INFO_SECTION = 27, "DelayLoadInfoSection";
    IMPORT_TABLE_SECTION = 28, "ImportTableSection";
    CODE_SECTION = 29, "CodeSection";
    CODE_HEADER_SECTION = 30, "CodeHeaderSection";
    CODE_MANAGER_SECTION = 31, "CodeManagerSection";
    UNWIND_DATA_SECTION = 32, "UnwindDataSection";
    RUNTIME_FUNCTION_SECTION = 33, "RuntimeFunctionSection";
    STUBS_SECTION = 34, "StubsSection";
    STUB_DISPATCH_DATA_SECTION = 35, "StubDispatchDataSection";
    EXTERNAL_METHOD_DATA_SECTION = 36, "ExternalMethodDataSection";
    DELAY_LOAD_INFO_DELAY_LIST_SECTION = 37, "DelayLoadInfoDelayListSection";
    READONLY_SHARED_SECTION = 38, "ReadonlySharedSection";
    READONLY_SECTION = 39, "ReadonlySection";
    IL_SECTION = 40, "ILSection";
    GC_INFO_SECTION = 41, "GCInfoSection";
    IL_METADATA_SECTION = 42, "ILMetadataSection";
    RESOURCES_SECTION = 43, "ResourcesSection";
    COMPRESSED_MAPS_SECTION = 44, "CompressedMapsSection";
    DEBUG_SECTION = 45, "DebugSection";
    BASE_RELOCS_SECTION = 46, "BaseRelocsSection";
}

value_names! {
    "Bits of `ModuleRangeTypeMap`.",
    ModuleRangeType, MODULE_RANGE_TYPE, "ModuleRangeTypeMap", Bits;
    HOT_RANGE = 0x1, "HotRange";
    WARM_RANGE = 0x2, "WarmRange";
    COLD_RANGE = 0x4, "ColdRange";
    HOT_COLD_SORTED_RANGE = 0x8, "HotColdSortedRange";
}

value_names! {
    "A value of `ResolutionAttemptedResultMap`.",
    ResolutionAttemptedResult, RESOLUTION_ATTEMPTED_RESULT, "ResolutionAttemptedResultMap", Values;
    SUCCESS = 0, "Success";
    ASSEMBLY_NOT_FOUND = 1, "AssemblyNotFound";
    MISMATCHED_ASSEMBLY_NAME = 2, "MismatchedAssemblyName";
    INCOMPATIBLE_VERSION = 3, "IncompatibleVersion";
    FAILURE = 4, "Failure";
    EXCEPTION = 5, "Exception";
}

value_names! {
    "A value of `ResolutionAttemptedStageMap`.",
    ResolutionAttemptedStage, RESOLUTION_ATTEMPTED_STAGE, "ResolutionAttemptedStageMap", Values;
    FIND_IN_LOAD_CONTEXT = 0, "FindInLoadContext";
    ASSEMBLY_LOAD_CONTEXT_LOAD = 1, "AssemblyLoadContextLoad";
    APPLICATION_ASSEMBLIES = 2, "ApplicationAssemblies";
    DEFAULT_ASSEMBLY_LOAD_CONTEXT_FALLBACK = 3, "DefaultAssemblyLoadContextFallback";
    RESOLVE_SATELLITE_ASSEMBLY = 4, "ResolveSatelliteAssembly";
    ASSEMBLY_LOAD_CONTEXT_RESOLVING_EVENT = 5, "AssemblyLoadContextResolvingEvent";
    APP_DOMAIN_ASSEMBLY_RESOLVE_EVENT = 6, "AppDomainAssemblyResolveEvent";
}

value_names! {
    "Bits of `RuntimeSkuMap`.",
    RuntimeSku, RUNTIME_SKU, "RuntimeSkuMap", Bits;
    DESKTOP_CLR = 0x1, "DesktopClr";
    CORE_CLR = 0x2, "CoreClr";
    MONO = 0x4, "Mono";
}

value_names! {
    "Bits of `StartupFlagsMap`.",
    StartupFlags, STARTUP_FLAGS, "StartupFlagsMap", Bits;
    CONCURRENT_GC = 0x1, "CONCURRENT_GC";
    LOADER_OPTIMIZATION_SINGLE_DOMAIN = 0x2, "LOADER_OPTIMIZATION_SINGLE_DOMAIN";
    LOADER_OPTIMIZATION_MULTI_DOMAIN = 0x4, "LOADER_OPTIMIZATION_MULTI_DOMAIN";
    LOADER_SAFEMODE = 0x10, "LOADER_SAFEMODE";
    LOADER_SETPREFERENCE = 0x100, "LOADER_SETPREFERENCE";
    SERVER_GC = 0x1000, "SERVER_GC";
    HOARD_GC_VM = 0x2000, "HOARD_GC_VM";
    SINGLE_VERSION_HOSTING_INTERFACE = 0x4000, "SINGLE_VERSION_HOSTING_INTERFACE";
    LEGACY_IMPERSONATION = 0x10000, "LEGACY_IMPERSONATION";
    DISABLE_COMMITTHREADSTACK = 0x20000, "DISABLE_COMMITTHREADSTACK";
    ALWAYSFLOW_IMPERSONATION = 0x40000, "ALWAYSFLOW_IMPERSONATION";
    TRIM_GC_COMMIT = 0x80000, "TRIM_GC_COMMIT";
    ETW = 0x100000, "ETW";
    SERVER_BUILD = 0x200000, "SERVER_BUILD";
    ARM = 0x400000, "ARM";
}

value_names! {
    "Bits of `StartupModeMap`.",
    StartupMode, STARTUP_MODE, "StartupModeMap", Bits;
    MANAGED_EXE = 0x1, "ManagedExe";
    HOSTED_CLR = 0x2, "HostedClr";
    IJW_DLL = 0x4, "IjwDll";
    COM_ACTIVATED = 0x8, "ComActivated";
    OTHER = 0x10, "Other";
}

value_names! {
    "A value of `TailCallTypeMap`.",
    TailCallType, TAIL_CALL_TYPE, "TailCallTypeMap", Values;
    OPTIMIZED_TAIL_CALL = 0, "OptimizedTailCall";
    RECURSIVE_LOOP = 1, "RecursiveLoop";
    HELPER_ASSISTED_TAIL_CALL = 2, "HelperAssistedTailCall";
}

value_names! {
    "A value of `ThreadAdjustmentReasonMap`.",
    ThreadAdjustmentReason, THREAD_ADJUSTMENT_REASON, "ThreadAdjustmentReasonMap", Values;
    WARMUP = 0, "Warmup";
    INITIALIZING = 1, "Initializing";
    RANDOM_MOVE = 2, "RandomMove";
    CLIMBING_MOVE = 3, "ClimbingMove";
    CHANGE_POINT = 4, "ChangePoint";
    STABILIZING = 5, "Stabilizing";
    STARVATION = 6, "Starvation";
    THREAD_TIMED_OUT = 7, "ThreadTimedOut";
    COOPERATIVE_BLOCKING = 8, "CooperativeBlocking";
}

value_names! {
    "Bits of `ThreadFlagsMap`.",
    ThreadFlags, THREAD_FLAGS, "ThreadFlagsMap", Bits;
    GC_SPECIAL = 0x1, "GCSpecial";
    FINALIZER = 0x2, "Finalizer";
    THREAD_POOL_WORKER = 0x4, "ThreadPoolWorker";
}

value_names! {
    "A value of `ThreadSampleTypeMap`.",
    ThreadSampleType, THREAD_SAMPLE_TYPE, "ThreadSampleTypeMap", Values;
    ERROR = 0, "Error";
    EXTERNAL = 1, "External";
    MANAGED = 2, "Managed";
}

value_names! {
    "Bits of `TieredCompilationSettingsFlagsMap`.",
    TieredCompilationSettingsFlags, TIERED_COMPILATION_SETTINGS_FLAGS, "TieredCompilationSettingsFlagsMap", Bits;
    NONE = 0x0, "None";
    QUICK_JIT = 0x1, "QuickJit";
    QUICK_JIT_FOR_LOOPS = 0x2, "QuickJitForLoops";
    TIERED_PGO = 0x4, "TieredPGO";
    READY_TO_RUN = 0x8, "ReadyToRun";
}

value_names! {
    "Bits of `TypeFlagsMap`.",
    TypeFlags, TYPE_FLAGS, "TypeFlagsMap", Bits;
    DELEGATE = 0x1, "Delegate";
    FINALIZABLE = 0x2, "Finalizable";
    EXTERNALLY_IMPLEMENTED_COM_OBJECT = 0x4, "ExternallyImplementedCOMObject";
    ARRAY = 0x8, "Array";
    MODULE_BASE_ADDRESS = 0x10, "ModuleBaseAddress";
    ARRAY_RANK_BIT0 = 0x100, "ArrayRankBit0";
    ARRAY_RANK_BIT1 = 0x200, "ArrayRankBit1";
    ARRAY_RANK_BIT2 = 0x400, "ArrayRankBit2";
    ARRAY_RANK_BIT3 = 0x800, "ArrayRankBit3";
    ARRAY_RANK_BIT4 = 0x1000, "ArrayRankBit4";
    ARRAY_RANK_BIT5 = 0x2000, "ArrayRankBit5";
}

value_names! {
    "A value of `WaitHandleWaitSourceMap`.",
    WaitHandleWaitSource, WAIT_HANDLE_WAIT_SOURCE, "WaitHandleWaitSourceMap", Values;
    UNKNOWN = 0, "Unknown";
    MONITOR_WAIT = 1, "MonitorWait";
}
