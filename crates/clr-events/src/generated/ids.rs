//! Ids of events, by provider.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

/// Events of `Microsoft-Windows-DotNETRuntime`.
pub mod runtime {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";
    /// A collection begins. `GC/Start`.
    pub const GC_START: u32 = 1;
    /// A collection has ended. `GC/Stop`.
    pub const GC_STOP: u32 = 2;
    /// Threads run again. `GC/RestartEEStop`.
    pub const GC_RESTART_STOP: u32 = 3;
    /// Sizes of the generations after a collection, and what was promoted. `GC/HeapStats`.
    pub const GC_HEAP_STATS: u32 = 4;
    /// The collector has got a segment or region. `GC/CreateSegment`.
    pub const GC_CREATE_SEGMENT: u32 = 5;
    /// The collector has given a segment or region back. `GC/FreeSegment`.
    pub const GC_FREE_SEGMENT: u32 = 6;
    /// Threads are about to be let go. `GC/RestartEEStart`.
    pub const GC_RESTART_START: u32 = 7;
    /// All threads are suspended. `GC/SuspendEEStop`.
    pub const GC_SUSPEND_STOP: u32 = 8;
    /// Threads are about to be suspended. `GC/SuspendEEStart`.
    pub const GC_SUSPEND_START: u32 = 9;
    /// About 100 KB were allocated since the last of these; the object that crossed the line. `GC/AllocationTick`.
    pub const ALLOCATION_TICK: u32 = 10;
    /// The thread of background collections was created. `GC/CreateConcurrentThread`.
    pub const GC_CREATE_CONCURRENT_THREAD: u32 = 11;
    /// The thread of background collections has ended. `GC/TerminateConcurrentThread`.
    pub const GC_TERMINATE_CONCURRENT_THREAD: u32 = 12;
    /// The finalizer thread has run them. `GC/FinalizersStop`.
    pub const GC_FINALIZERS_STOP: u32 = 13;
    /// The finalizer thread begins to run finalizers. `GC/FinalizersStart`.
    pub const GC_FINALIZERS_START: u32 = 14;
    /// Names of types that other events refer to. `Type/BulkType`.
    pub const BULK_TYPE: u32 = 15;
    /// Roots of the heap. `GC/BulkRootEdge`.
    pub const GC_BULK_ROOT_EDGE: u32 = 16;
    /// Dependent handles. `GC/BulkRootConditionalWeakTableElementEdge`.
    pub const GC_BULK_ROOT_CONDITIONAL_WEAK_TABLE_ELEMENT_EDGE: u32 = 17;
    /// Objects of the heap. `GC/BulkNode`.
    pub const GC_BULK_NODE: u32 = 18;
    /// References of the objects of the heap, in the objects' order. `GC/BulkEdge`.
    pub const GC_BULK_EDGE: u32 = 19;
    /// Allocations of one type, sampled every 10 ms or so.
    pub const SAMPLED_OBJECT_ALLOCATION_HIGH: u32 = 20;
    /// Objects that stay where they are. `GC/BulkSurvivingObjectRanges`.
    pub const GC_BULK_SURVIVING_OBJECT_RANGES: u32 = 21;
    /// Objects that move. `GC/BulkMovedObjectRanges`.
    pub const GC_BULK_MOVED_OBJECT_RANGES: u32 = 22;
    /// The address range of a generation. `GC/GenerationRange`.
    pub const GC_GENERATION_RANGE: u32 = 23;
    /// A heap has marked from the stacks. `GC/MarkStackRoots`.
    pub const GC_MARK_STACK_ROOTS: u32 = 25;
    /// A heap has marked from the finalizer queue. `GC/MarkFinalizeQueueRoots`.
    pub const GC_MARK_FINALIZE_QUEUE_ROOTS: u32 = 26;
    /// A heap has marked from the handles. `GC/MarkHandles`.
    pub const GC_MARK_HANDLES: u32 = 27;
    /// A heap has marked from older generations. `GC/MarkCards`.
    pub const GC_MARK_CARDS: u32 = 28;
    /// An object is finalized. `GC/FinalizeObject`.
    pub const GC_FINALIZE_OBJECT: u32 = 29;
    /// A handle was created. `GC/SetGCHandle`.
    pub const GC_SET_HANDLE: u32 = 30;
    /// A handle was given back. `GC/DestoryGCHandle`.
    pub const GC_DESTROY_HANDLE: u32 = 31;
    /// Allocations of one type, sampled every 200 ms or so.
    pub const SAMPLED_OBJECT_ALLOCATION_LOW: u32 = 32;
    /// An object was pinned during a collection. `GC/PinObjectAtGCTime`.
    pub const GC_PIN_OBJECT: u32 = 33;
    /// Something asked for a collection. `GC/Triggered`.
    pub const GC_TRIGGERED: u32 = 35;
    /// COM callable wrappers that are roots. `GC/BulkRootCCW`.
    pub const GC_BULK_ROOT_CCW: u32 = 36;
    /// Runtime callable wrappers. `GC/BulkRCW`.
    pub const GC_BULK_RCW: u32 = 37;
    /// Static fields that are roots. `GC/BulkRootStaticVar`.
    pub const GC_BULK_ROOT_STATIC_VAR: u32 = 38;
    /// An event that the collector defines as it goes. `GC/DynamicTraceEvent`.
    pub const GC_DYNAMIC: u32 = 39;
    /// `win:Start` of task `WorkerThreadCreation`.
    pub const WORKER_THREAD_CREATION_START: u32 = 40;
    /// `win:Stop` of task `WorkerThreadCreation`.
    pub const WORKER_THREAD_CREATION_STOP: u32 = 41;
    /// `win:Start` of task `WorkerThreadRetirement`.
    pub const WORKER_THREAD_RETIREMENT_START: u32 = 42;
    /// `win:Stop` of task `WorkerThreadRetirement`.
    pub const WORKER_THREAD_RETIREMENT_STOP: u32 = 43;
    /// `IOThreadCreation/Start`.
    pub const IO_THREAD_CREATION_START: u32 = 44;
    /// `IOThreadCreation/Stop`.
    pub const IO_THREAD_CREATION_STOP: u32 = 45;
    /// `IOThreadRetirement/Start`.
    pub const IO_THREAD_RETIREMENT_START: u32 = 46;
    /// `IOThreadRetirement/Stop`.
    pub const IO_THREAD_RETIREMENT_STOP: u32 = 47;
    /// `win:Start` of task `ThreadpoolSuspension`.
    pub const THREADPOOL_SUSPENSION_START: u32 = 48;
    /// `win:Stop` of task `ThreadpoolSuspension`.
    pub const THREADPOOL_SUSPENSION_STOP: u32 = 49;
    /// A worker thread of the pool begins. `ThreadPoolWorkerThread/Start`.
    pub const THREAD_POOL_WORKER_THREAD_START: u32 = 50;
    /// A worker thread of the pool ends. `ThreadPoolWorkerThread/Stop`.
    pub const THREAD_POOL_WORKER_THREAD_STOP: u32 = 51;
    /// A worker thread of the pool is set aside. `ThreadPoolWorkerThreadRetirement/Start`.
    pub const THREAD_POOL_WORKER_THREAD_RETIREMENT_START: u32 = 52;
    /// A worker thread of the pool is back. `ThreadPoolWorkerThreadRetirement/Stop`.
    pub const THREAD_POOL_WORKER_THREAD_RETIREMENT_STOP: u32 = 53;
    /// Work items a second, as the pool measures them. `ThreadPoolWorkerThreadAdjustment/Sample`.
    pub const THREAD_POOL_WORKER_THREAD_ADJUSTMENT_SAMPLE: u32 = 54;
    /// The pool changes how many threads it wants. `ThreadPoolWorkerThreadAdjustment/Adjustment`.
    pub const THREAD_POOL_WORKER_THREAD_ADJUSTMENT_ADJUSTMENT: u32 = 55;
    /// The results of the pool's hill climbing. `ThreadPoolWorkerThreadAdjustment/Stats`.
    pub const THREAD_POOL_WORKER_THREAD_ADJUSTMENT_STATS: u32 = 56;
    /// A worker thread of the pool waits for work. `ThreadPoolWorkerThread/Wait`.
    pub const THREAD_POOL_WORKER_THREAD_WAIT: u32 = 57;
    /// The duration of the processor's pause instruction. `YieldProcessorMeasurement`.
    pub const YIELD_PROCESSOR_MEASUREMENT: u32 = 58;
    /// The pool's limits. `ThreadPoolMinMaxThreads`.
    pub const THREAD_POOL_MIN_MAX_THREADS: u32 = 59;
    /// The number of threads of the pool that work. `ThreadPoolWorkingThreadCount/Start`.
    pub const THREAD_POOL_WORKING_THREAD_COUNT: u32 = 60;
    /// Work is handed to the pool. `ThreadPool/Enqueue`.
    pub const THREAD_POOL_ENQUEUE: u32 = 61;
    /// A thread of the pool takes work. `ThreadPool/Dequeue`.
    pub const THREAD_POOL_DEQUEUE: u32 = 62;
    /// An I/O completion is handed to the pool. `ThreadPool/IOEnqueue`.
    pub const THREAD_POOL_IO_ENQUEUE: u32 = 63;
    /// A thread of the pool takes an I/O completion. `ThreadPool/IODequeue`.
    pub const THREAD_POOL_IO_DEQUEUE: u32 = 64;
    /// An overlapped operation is prepared. `ThreadPool/IOPack`.
    pub const THREAD_POOL_IO_PACK: u32 = 65;
    /// A thread is being created. `Thread/Creating`.
    pub const THREAD_CREATING: u32 = 70;
    /// A new thread runs. `Thread/Running`.
    pub const THREAD_RUNNING: u32 = 71;
    /// The method that a method's id stands for. `Method/MethodDetails`.
    pub const METHOD_DETAILS: u32 = 72;
    /// A type is being loaded. `TypeLoad/Start`.
    pub const TYPE_LOAD_START: u32 = 73;
    /// A type has been loaded. `TypeLoad/Stop`.
    pub const TYPE_LOAD_STOP: u32 = 74;
    /// An exception was thrown. `Exception/Start`.
    pub const EXCEPTION_START: u32 = 80;
    /// A thread waits for a lock. `Contention/Start`.
    pub const CONTENTION_START: u32 = 81;
    /// `ClrStack/Walk`.
    pub const CLR_STACK_WALK: u32 = 82;
    /// `AppDomainResourceManagement/MemAllocated`.
    pub const APP_DOMAIN_RESOURCE_MANAGEMENT_MEM_ALLOCATED: u32 = 83;
    /// `AppDomainResourceManagement/MemSurvived`.
    pub const APP_DOMAIN_RESOURCE_MANAGEMENT_MEM_SURVIVED: u32 = 84;
    /// A managed thread was created. `AppDomainResourceManagement/ThreadCreated`.
    pub const THREAD_CREATED: u32 = 85;
    /// A managed thread has ended. `AppDomainResourceManagement/ThreadTerminated`.
    pub const THREAD_TERMINATED: u32 = 86;
    /// `AppDomainResourceManagement/DomainEnter`.
    pub const APP_DOMAIN_RESOURCE_MANAGEMENT_DOMAIN_ENTER: u32 = 87;
    /// `ILStub/StubGenerated`.
    pub const IL_STUB_STUB_GENERATED: u32 = 88;
    /// `ILStub/StubCacheHit`.
    pub const IL_STUB_STUB_CACHE_HIT: u32 = 89;
    /// A lock was created. `Contention/LockCreated`.
    pub const CONTENTION_LOCK_CREATED: u32 = 90;
    /// A thread has got the lock that it waited for. `Contention/Stop`.
    pub const CONTENTION_STOP: u32 = 91;
    /// `Method/DCStartCompleteV2`.
    pub const METHOD_DC_START_COMPLETE_V2: u32 = 135;
    /// `Method/DCStopCompleteV2`.
    pub const METHOD_DC_STOP_COMPLETE_V2: u32 = 136;
    /// `Method/DCStartV2`.
    pub const METHOD_DC_START_V2: u32 = 137;
    /// `Method/DCStopV2`.
    pub const METHOD_DC_STOP_V2: u32 = 138;
    /// `Method/DCStartVerboseV2`.
    pub const METHOD_DC_START_VERBOSE_V2: u32 = 139;
    /// `Method/DCStopVerboseV2`.
    pub const METHOD_DC_STOP_VERBOSE_V2: u32 = 140;
    /// Code of a method was loaded. `Method/Load`.
    pub const METHOD_LOAD: u32 = 141;
    /// Code of a method was unloaded. `Method/Unload`.
    pub const METHOD_UNLOAD: u32 = 142;
    /// Code of a method was loaded, with its name. `Method/LoadVerbose`.
    pub const METHOD_LOAD_VERBOSE: u32 = 143;
    /// Code of a method was unloaded, with its name. `Method/UnloadVerbose`.
    pub const METHOD_UNLOAD_VERBOSE: u32 = 144;
    /// A method is being compiled. `Method/JittingStarted`.
    pub const METHOD_JITTING_STARTED: u32 = 145;
    /// Memory for a method's code. `Method/MemoryAllocatedForJitCode`.
    pub const METHOD_MEMORY_ALLOCATED_FOR_JIT_CODE: u32 = 146;
    /// `Loader/ModuleDCStartV2`.
    pub const LOADER_MODULE_DC_START_V2: u32 = 149;
    /// `Loader/ModuleDCStopV2`.
    pub const LOADER_MODULE_DC_STOP_V2: u32 = 150;
    /// A module was loaded into an application domain. `Loader/DomainModuleLoad`.
    pub const DOMAIN_MODULE_LOAD: u32 = 151;
    /// A module was loaded. `Loader/ModuleLoad`.
    pub const MODULE_LOAD: u32 = 152;
    /// A module was unloaded. `Loader/ModuleUnload`.
    pub const MODULE_UNLOAD: u32 = 153;
    /// An assembly was loaded. `Loader/AssemblyLoad`.
    pub const ASSEMBLY_LOAD: u32 = 154;
    /// An assembly was unloaded. `Loader/AssemblyUnload`.
    pub const ASSEMBLY_UNLOAD: u32 = 155;
    /// An application domain was created. `Loader/AppDomainLoad`.
    pub const APP_DOMAIN_LOAD: u32 = 156;
    /// An application domain has ended. `Loader/AppDomainUnload`.
    pub const APP_DOMAIN_UNLOAD: u32 = 157;
    /// `ModuleRangeLoad` of task `CLRPerfTrack`.
    pub const MODULE_RANGE_LOAD: u32 = 158;
    /// Precompiled code of a method was found. `Method/R2RGetEntryPoint`.
    pub const R2R_GET_ENTRY_POINT: u32 = 159;
    /// Precompiled code of a method is being looked for. `Method/R2RGetEntryPointStart`.
    pub const R2R_GET_ENTRY_POINT_START: u32 = 160;
    /// `StrongNameVerification/Start`.
    pub const STRONG_NAME_VERIFICATION_START: u32 = 181;
    /// `StrongNameVerification/Stop`.
    pub const STRONG_NAME_VERIFICATION_STOP: u32 = 182;
    /// `AuthenticodeVerification/Start`.
    pub const AUTHENTICODE_VERIFICATION_START: u32 = 183;
    /// `AuthenticodeVerification/Stop`.
    pub const AUTHENTICODE_VERIFICATION_STOP: u32 = 184;
    /// A call was inlined. `Method/InliningSucceeded`.
    pub const METHOD_INLINING_SUCCEEDED: u32 = 185;
    /// `Method/InliningFailedAnsi`.
    pub const METHOD_INLINING_FAILED_ANSI: u32 = 186;
    /// Which runtime this is. `Runtime/Start`.
    pub const RUNTIME_START: u32 = 187;
    /// A call became a tail call. `Method/TailCallSucceeded`.
    pub const METHOD_TAIL_CALL_SUCCEEDED: u32 = 188;
    /// A tail call was not made; older form of the event.
    pub const METHOD_TAIL_CALL_FAILED_ANSI: u32 = 189;
    /// Which code came from which IL. `Method/ILToNativeMap`.
    pub const METHOD_IL_TO_NATIVE_MAP: u32 = 190;
    /// A call did not become a tail call, and why. `JitTailCallFailed` of task `CLRMethod`.
    pub const METHOD_TAIL_CALL_FAILED: u32 = 191;
    /// A call was not inlined, and why. `Method/InliningFailed`.
    pub const METHOD_INLINING_FAILED: u32 = 192;
    /// `IncreaseMemoryPressure` of task `GarbageCollection`.
    pub const INCREASE_MEMORY_PRESSURE: u32 = 200;
    /// `DecreaseMemoryPressure` of task `GarbageCollection`.
    pub const DECREASE_MEMORY_PRESSURE: u32 = 201;
    /// The bytes that a heap promoted by one kind of root. `GC/MarkWithType`.
    pub const GC_MARK_WITH_TYPE: u32 = 202;
    /// The threads of a server collection wait for one another. `GC/Join`.
    pub const GC_JOIN: u32 = 203;
    /// The work of one heap in a collection, with its reasons. `GC/PerHeapHistory`.
    pub const GC_PER_HEAP_HISTORY: u32 = 204;
    /// The decisions for all heaps in a collection. `GC/GlobalHeapHistory`.
    pub const GC_GLOBAL_HEAP_HISTORY: u32 = 205;
    /// `GC/GenAwareBegin`.
    pub const GC_GEN_AWARE_BEGIN: u32 = 206;
    /// `GC/GenAwareEnd`.
    pub const GC_GEN_AWARE_END: u32 = 207;
    /// Times of compacting the large object heap. `GC/LOHCompact`.
    pub const GC_LOH_COMPACT: u32 = 208;
    /// Free-list items and plugs by size. `GC/FitBucketInfo`.
    pub const GC_FIT_BUCKET_INFO: u32 = 209;
    /// `win:Start` of task `DebugIPCEvent`.
    pub const DEBUG_IPC_EVENT_START: u32 = 240;
    /// `win:Stop` of task `DebugIPCEvent`.
    pub const DEBUG_IPC_EVENT_STOP: u32 = 241;
    /// `win:Start` of task `DebugExceptionProcessing`.
    pub const DEBUG_EXCEPTION_PROCESSING_START: u32 = 242;
    /// `win:Stop` of task `DebugExceptionProcessing`.
    pub const DEBUG_EXCEPTION_PROCESSING_STOP: u32 = 243;
    /// A catch block is entered. `ExceptionCatch/Start`.
    pub const EXCEPTION_CATCH_START: u32 = 250;
    /// A catch block is left. `ExceptionCatch/Stop`.
    pub const EXCEPTION_CATCH_STOP: u32 = 251;
    /// A finally block is entered. `ExceptionFinally/Start`.
    pub const EXCEPTION_FINALLY_START: u32 = 252;
    /// A finally block is left. `ExceptionFinally/Stop`.
    pub const EXCEPTION_FINALLY_STOP: u32 = 253;
    /// A filter is entered. `ExceptionFilter/Start`.
    pub const EXCEPTION_FILTER_START: u32 = 254;
    /// A filter is left. `ExceptionFilter/Stop`.
    pub const EXCEPTION_FILTER_STOP: u32 = 255;
    /// An exception was handled. `Exception/Stop`.
    pub const EXCEPTION_STOP: u32 = 256;
    /// `CodeSymbols/Start`.
    pub const CODE_SYMBOLS_START: u32 = 260;
    /// `EventSourceEvent`.
    pub const EVENT_SOURCE_EVENT: u32 = 270;
    /// The settings of tiered compilation. `TieredCompilation/Settings`.
    pub const TIERED_COMPILATION_SETTINGS: u32 = 280;
    /// Compiling again waits, since new methods are being called. `TieredCompilation/Pause`.
    pub const TIERED_COMPILATION_PAUSE: u32 = 281;
    /// Compiling again goes on. `TieredCompilation/Resume`.
    pub const TIERED_COMPILATION_RESUME: u32 = 282;
    /// The background thread begins to compile methods again. `TieredCompilation/BackgroundJitStart`.
    pub const TIERED_COMPILATION_BACKGROUND_JIT_START: u32 = 283;
    /// The background thread has compiled methods again. `TieredCompilation/BackgroundJitStop`.
    pub const TIERED_COMPILATION_BACKGROUND_JIT_STOP: u32 = 284;
    /// The loader looks for an assembly. `AssemblyLoader/Start`.
    pub const ASSEMBLY_LOADER_START: u32 = 290;
    /// The loader has done looking. `AssemblyLoader/Stop`.
    pub const ASSEMBLY_LOADER_STOP: u32 = 291;
    /// One stage of looking for an assembly. `AssemblyLoader/ResolutionAttempted`.
    pub const ASSEMBLY_LOADER_RESOLUTION_ATTEMPTED: u32 = 292;
    /// `AssemblyLoader/AssemblyLoadContextResolvingHandlerInvoked`.
    pub const ASSEMBLY_LOADER_ASSEMBLY_LOAD_CONTEXT_RESOLVING_HANDLER_INVOKED: u32 = 293;
    /// `AssemblyLoader/AppDomainAssemblyResolveHandlerInvoked`.
    pub const ASSEMBLY_LOADER_APP_DOMAIN_ASSEMBLY_RESOLVE_HANDLER_INVOKED: u32 = 294;
    /// `AssemblyLoader/AssemblyLoadFromResolveHandlerInvoked`.
    pub const ASSEMBLY_LOADER_ASSEMBLY_LOAD_FROM_RESOLVE_HANDLER_INVOKED: u32 = 295;
    /// A path where an assembly could have been. `AssemblyLoader/KnownPathProbed`.
    pub const ASSEMBLY_LOADER_KNOWN_PATH_PROBED: u32 = 296;
    /// `JitInstrumentationData/InstrumentationData`.
    pub const JIT_INSTRUMENTATION_DATA_INSTRUMENTATION_DATA: u32 = 297;
    /// `JitInstrumentationDataVerbose/InstrumentationData`.
    pub const JIT_INSTRUMENTATION_DATA_VERBOSE_INSTRUMENTATION_DATA: u32 = 298;
    /// `Profiler` of task `Profiler`.
    pub const PROFILER: u32 = 299;
    /// `ExecutionCheckpoint/ExecutionCheckpoint`.
    pub const EXECUTION_CHECKPOINT_EXECUTION_CHECKPOINT: u32 = 300;
    /// A thread waits for a handle. `WaitHandleWait/Start`.
    pub const WAIT_HANDLE_WAIT_START: u32 = 301;
    /// A thread has done waiting for a handle. `WaitHandleWait/Stop`.
    pub const WAIT_HANDLE_WAIT_STOP: u32 = 302;
    /// An allocation that was drawn at random, each byte with the same chance (.NET 10). `AllocationSampling`.
    pub const ALLOCATION_SAMPLED: u32 = 303;
}

/// Events of `Microsoft-Windows-DotNETRuntimeRundown`.
pub mod rundown {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    /// `ClrStack/Walk`.
    pub const CLR_STACK_WALK: u32 = 0;
    /// The collector's settings. `GC/SettingsRundown`.
    pub const GC_SETTINGS_RUNDOWN: u32 = 10;
    /// Code that was there when the session began. `Method/DCStart`.
    pub const METHOD_DC_START: u32 = 141;
    /// Code that was there when the session ended. `Method/DCStop`.
    pub const METHOD_DC_STOP: u32 = 142;
    /// Code that was there when the session began, with its name. `Method/DCStartVerbose`.
    pub const METHOD_DC_START_VERBOSE: u32 = 143;
    /// Code that was there when the session ended, with its name. `Method/DCStopVerbose`.
    pub const METHOD_DC_STOP_VERBOSE: u32 = 144;
    /// `Method/DCStartComplete`.
    pub const METHOD_DC_START_COMPLETE: u32 = 145;
    /// `Method/DCStopComplete`.
    pub const METHOD_DC_STOP_COMPLETE: u32 = 146;
    /// `Method/DCStartInit`.
    pub const METHOD_DC_START_INIT: u32 = 147;
    /// `Method/DCStopInit`.
    pub const METHOD_DC_STOP_INIT: u32 = 148;
    /// Which code came from which IL, of code that was there when the session began. `Method/ILToNativeMapDCStart`.
    pub const METHOD_IL_TO_NATIVE_MAP_DC_START: u32 = 149;
    /// Which code came from which IL, of code that was there when the session ended. `Method/ILToNativeMapDCStop`.
    pub const METHOD_IL_TO_NATIVE_MAP_DC_STOP: u32 = 150;
    /// A module of an application domain when the session began. `Loader/DomainModuleDCStart`.
    pub const DOMAIN_MODULE_DC_START: u32 = 151;
    /// A module of an application domain when the session ended. `Loader/DomainModuleDCStop`.
    pub const DOMAIN_MODULE_DC_STOP: u32 = 152;
    /// A module that was there when the session began. `Loader/ModuleDCStart`.
    pub const MODULE_DC_START: u32 = 153;
    /// A module that was there when the session ended. `Loader/ModuleDCStop`.
    pub const MODULE_DC_STOP: u32 = 154;
    /// An assembly that was there when the session began. `Loader/AssemblyDCStart`.
    pub const ASSEMBLY_DC_START: u32 = 155;
    /// An assembly that was there when the session ended. `Loader/AssemblyDCStop`.
    pub const ASSEMBLY_DC_STOP: u32 = 156;
    /// An application domain that was there when the session began. `Loader/AppDomainDCStart`.
    pub const APP_DOMAIN_DC_START: u32 = 157;
    /// An application domain that was there when the session ended. `Loader/AppDomainDCStop`.
    pub const APP_DOMAIN_DC_STOP: u32 = 158;
    /// A managed thread that lives. `Loader/ThreadDCStop`.
    pub const THREAD_DC_STOP: u32 = 159;
    /// `ModuleRangeDCStart` of task `CLRPerfTrackRundown`.
    pub const MODULE_RANGE_DC_START: u32 = 160;
    /// `ModuleRangeDCEnd` of task `CLRPerfTrackRundown`.
    pub const MODULE_RANGE_DC_END: u32 = 161;
    /// Which runtime this is, told with the rundown. `Runtime/Start`.
    pub const RUNTIME_DC_START: u32 = 187;
    /// The settings of tiered compilation when the session began. `TieredCompilationRundown/SettingsDCStart`.
    pub const TIERED_COMPILATION_SETTINGS_DC_START: u32 = 280;
    /// `ExecutionCheckpointRundown/ExecutionCheckpointDCEnd`.
    pub const EXECUTION_CHECKPOINT_RUNDOWN_EXECUTION_CHECKPOINT_DC_END: u32 = 300;
}

/// Events of `Microsoft-Windows-DotNETRuntimePrivate`.
pub mod private {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-Windows-DotNETRuntimePrivate";
    /// `GC/Decision`.
    pub const GC_DECISION: u32 = 1;
    /// `GC/Settings`.
    pub const GC_SETTINGS: u32 = 2;
    /// `GC/Optimized`.
    pub const GC_OPTIMIZED: u32 = 3;
    /// `GC/PerHeapHistory`.
    pub const GC_PER_HEAP_HISTORY: u32 = 4;
    /// `GC/GlobalHeapHistory`.
    pub const GC_GLOBAL_HEAP_HISTORY: u32 = 5;
    /// `GC/Join`.
    pub const GC_JOIN: u32 = 6;
    /// `GC/MarkStackRoots`.
    pub const GC_MARK_STACK_ROOTS: u32 = 7;
    /// `GC/MarkFinalizeQueueRoots`.
    pub const GC_MARK_FINALIZE_QUEUE_ROOTS: u32 = 8;
    /// `GC/MarkHandles`.
    pub const GC_MARK_HANDLES: u32 = 9;
    /// `GC/MarkCards`.
    pub const GC_MARK_CARDS: u32 = 10;
    /// `GC/BGCStart`.
    pub const GC_BGC_START: u32 = 11;
    /// `GC/BGC1stNonCondStop`.
    pub const GC_BGC1ST_NON_COND_STOP: u32 = 12;
    /// `GC/BGC1stConStop`.
    pub const GC_BGC1ST_CON_STOP: u32 = 13;
    /// `GC/BGC2ndNonConStart`.
    pub const GC_BGC2ND_NON_CON_START: u32 = 14;
    /// `GC/BGC2ndNonConStop`.
    pub const GC_BGC2ND_NON_CON_STOP: u32 = 15;
    /// `GC/BGC2ndConStart`.
    pub const GC_BGC2ND_CON_START: u32 = 16;
    /// `GC/BGC2ndConStop`.
    pub const GC_BGC2ND_CON_STOP: u32 = 17;
    /// `GC/BGCPlanStop`.
    pub const GC_BGC_PLAN_STOP: u32 = 18;
    /// `GC/BGCSweepStop`.
    pub const GC_BGC_SWEEP_STOP: u32 = 19;
    /// `GC/BGCDrainMark`.
    pub const GC_BGC_DRAIN_MARK: u32 = 20;
    /// `GC/BGCRevisit`.
    pub const GC_BGC_REVISIT: u32 = 21;
    /// `GC/BGCOverflow`.
    pub const GC_BGC_OVERFLOW: u32 = 22;
    /// `GC/BGCAllocWaitStart`.
    pub const GC_BGC_ALLOC_WAIT_START: u32 = 23;
    /// `GC/BGCAllocWaitStop`.
    pub const GC_BGC_ALLOC_WAIT_STOP: u32 = 24;
    /// `GC/FullNotify`.
    pub const GC_FULL_NOTIFY: u32 = 25;
    /// `BGC1stSweepEnd` of task `GarbageCollectionPrivate`.
    pub const BGC1ST_SWEEP_END: u32 = 26;
    /// `Startup/EEStartupStart`.
    pub const STARTUP_EE_STARTUP_START: u32 = 80;
    /// `Startup/EEStartupStop`.
    pub const STARTUP_EE_STARTUP_STOP: u32 = 81;
    /// `Startup/EEConfigSetupStart`.
    pub const STARTUP_EE_CONFIG_SETUP_START: u32 = 82;
    /// `Startup/EEConfigSetupStop`.
    pub const STARTUP_EE_CONFIG_SETUP_STOP: u32 = 83;
    /// `Startup/LoadSystemBasesStart`.
    pub const STARTUP_LOAD_SYSTEM_BASES_START: u32 = 84;
    /// `Startup/LoadSystemBasesStop`.
    pub const STARTUP_LOAD_SYSTEM_BASES_STOP: u32 = 85;
    /// `Startup/ExecExeStart`.
    pub const STARTUP_EXEC_EXE_START: u32 = 86;
    /// `Startup/ExecExeStop`.
    pub const STARTUP_EXEC_EXE_STOP: u32 = 87;
    /// `Startup/MainStart`.
    pub const STARTUP_MAIN_START: u32 = 88;
    /// `Startup/MainStop`.
    pub const STARTUP_MAIN_STOP: u32 = 89;
    /// `Startup/ApplyPolicyStart`.
    pub const STARTUP_APPLY_POLICY_START: u32 = 90;
    /// `Startup/ApplyPolicyStop`.
    pub const STARTUP_APPLY_POLICY_STOP: u32 = 91;
    /// `Startup/LdLibShFolderStart`.
    pub const STARTUP_LD_LIB_SH_FOLDER_START: u32 = 92;
    /// `Startup/LdLibShFolderStop`.
    pub const STARTUP_LD_LIB_SH_FOLDER_STOP: u32 = 93;
    /// `Startup/PrestubWorkerStart`.
    pub const STARTUP_PRESTUB_WORKER_START: u32 = 94;
    /// `Startup/PrestubWorkerStop`.
    pub const STARTUP_PRESTUB_WORKER_STOP: u32 = 95;
    /// `Startup/GetInstallationStart`.
    pub const STARTUP_GET_INSTALLATION_START: u32 = 96;
    /// `Startup/GetInstallationStop`.
    pub const STARTUP_GET_INSTALLATION_STOP: u32 = 97;
    /// `Startup/OpenHModuleStart`.
    pub const STARTUP_OPEN_H_MODULE_START: u32 = 98;
    /// `Startup/OpenHModuleStop`.
    pub const STARTUP_OPEN_H_MODULE_STOP: u32 = 99;
    /// `Startup/ExplicitBindStart`.
    pub const STARTUP_EXPLICIT_BIND_START: u32 = 100;
    /// `Startup/ExplicitBindStop`.
    pub const STARTUP_EXPLICIT_BIND_STOP: u32 = 101;
    /// `Startup/ParseXmlStart`.
    pub const STARTUP_PARSE_XML_START: u32 = 102;
    /// `Startup/ParseXmlStop`.
    pub const STARTUP_PARSE_XML_STOP: u32 = 103;
    /// `Startup/InitDefaultDomainStart`.
    pub const STARTUP_INIT_DEFAULT_DOMAIN_START: u32 = 104;
    /// `Startup/InitDefaultDomainStop`.
    pub const STARTUP_INIT_DEFAULT_DOMAIN_STOP: u32 = 105;
    /// `Startup/InitSecurityStart`.
    pub const STARTUP_INIT_SECURITY_START: u32 = 106;
    /// `Startup/InitSecurityStop`.
    pub const STARTUP_INIT_SECURITY_STOP: u32 = 107;
    /// `Startup/AllowBindingRedirsStart`.
    pub const STARTUP_ALLOW_BINDING_REDIRS_START: u32 = 108;
    /// `Startup/AllowBindingRedirsStop`.
    pub const STARTUP_ALLOW_BINDING_REDIRS_STOP: u32 = 109;
    /// `Startup/EEConfigSyncStart`.
    pub const STARTUP_EE_CONFIG_SYNC_START: u32 = 110;
    /// `Startup/EEConfigSyncStop`.
    pub const STARTUP_EE_CONFIG_SYNC_STOP: u32 = 111;
    /// `Startup/BindingStart`.
    pub const STARTUP_BINDING_START: u32 = 112;
    /// `Startup/BindingStop`.
    pub const STARTUP_BINDING_STOP: u32 = 113;
    /// `Startup/LoaderCatchCallStart`.
    pub const STARTUP_LOADER_CATCH_CALL_START: u32 = 114;
    /// `Startup/LoaderCatchCallStop`.
    pub const STARTUP_LOADER_CATCH_CALL_STOP: u32 = 115;
    /// `Startup/FusionInitStart`.
    pub const STARTUP_FUSION_INIT_START: u32 = 116;
    /// `Startup/FusionInitStop`.
    pub const STARTUP_FUSION_INIT_STOP: u32 = 117;
    /// `Startup/FusionAppCtxStart`.
    pub const STARTUP_FUSION_APP_CTX_START: u32 = 118;
    /// `Startup/FusionAppCtxStop`.
    pub const STARTUP_FUSION_APP_CTX_STOP: u32 = 119;
    /// `Startup/Fusion2EEStart`.
    pub const STARTUP_FUSION2_EE_START: u32 = 120;
    /// `Startup/Fusion2EEStop`.
    pub const STARTUP_FUSION2_EE_STOP: u32 = 121;
    /// `Startup/SecurityCatchCallStart`.
    pub const STARTUP_SECURITY_CATCH_CALL_START: u32 = 122;
    /// `Startup/SecurityCatchCallStop`.
    pub const STARTUP_SECURITY_CATCH_CALL_STOP: u32 = 123;
    /// `ClrStack/Walk`.
    pub const CLR_STACK_WALK: u32 = 151;
    /// `ClrPerfTrack/ModuleRangeLoad`.
    pub const CLR_PERF_TRACK_MODULE_RANGE_LOAD: u32 = 158;
    /// `Binding/PolicyPhaseStart`.
    pub const BINDING_POLICY_PHASE_START: u32 = 159;
    /// `Binding/PolicyPhaseStop`.
    pub const BINDING_POLICY_PHASE_STOP: u32 = 160;
    /// `Binding/NgenPhaseStart`.
    pub const BINDING_NGEN_PHASE_START: u32 = 161;
    /// `Binding/NgenPhaseStop`.
    pub const BINDING_NGEN_PHASE_STOP: u32 = 162;
    /// `Binding/LoopupAndProbingPhaseStart`.
    pub const BINDING_LOOPUP_AND_PROBING_PHASE_START: u32 = 163;
    /// `Binding/LookupAndProbingPhaseStop`.
    pub const BINDING_LOOKUP_AND_PROBING_PHASE_STOP: u32 = 164;
    /// `Binding/LoaderPhaseStart`.
    pub const BINDING_LOADER_PHASE_START: u32 = 165;
    /// `Binding/LoaderPhaseStop`.
    pub const BINDING_LOADER_PHASE_STOP: u32 = 166;
    /// `Binding/PhaseStart`.
    pub const BINDING_PHASE_START: u32 = 167;
    /// `Binding/PhaseStop`.
    pub const BINDING_PHASE_STOP: u32 = 168;
    /// `Binding/DownloadPhaseStart`.
    pub const BINDING_DOWNLOAD_PHASE_START: u32 = 169;
    /// `Binding/DownloadPhaseStop`.
    pub const BINDING_DOWNLOAD_PHASE_STOP: u32 = 170;
    /// `Binding/LoaderAssemblyInitPhaseStart`.
    pub const BINDING_LOADER_ASSEMBLY_INIT_PHASE_START: u32 = 171;
    /// `Binding/LoaderAssemblyInitPhaseStop`.
    pub const BINDING_LOADER_ASSEMBLY_INIT_PHASE_STOP: u32 = 172;
    /// `Binding/LoaderMappingPhaseStart`.
    pub const BINDING_LOADER_MAPPING_PHASE_START: u32 = 173;
    /// `Binding/LoaderMappingPhaseStop`.
    pub const BINDING_LOADER_MAPPING_PHASE_STOP: u32 = 174;
    /// `Binding/LoaderDeliverEventPhaseStart`.
    pub const BINDING_LOADER_DELIVER_EVENT_PHASE_START: u32 = 175;
    /// `Binding/LoaderDeliverEventsPhaseStop`.
    pub const BINDING_LOADER_DELIVER_EVENTS_PHASE_STOP: u32 = 176;
    /// `EvidenceGeneration/EvidenceGenerated`.
    pub const EVIDENCE_GENERATION_EVIDENCE_GENERATED: u32 = 177;
    /// `Transparency/ModuleTransparencyComputationStart`.
    pub const TRANSPARENCY_MODULE_TRANSPARENCY_COMPUTATION_START: u32 = 178;
    /// `Transparency/ModuleTransparencyComputationStop`.
    pub const TRANSPARENCY_MODULE_TRANSPARENCY_COMPUTATION_STOP: u32 = 179;
    /// `Transparency/TypeTransparencyComputationStart`.
    pub const TRANSPARENCY_TYPE_TRANSPARENCY_COMPUTATION_START: u32 = 180;
    /// `Transparency/TypeTransparencyComputationStop`.
    pub const TRANSPARENCY_TYPE_TRANSPARENCY_COMPUTATION_STOP: u32 = 181;
    /// `Transparency/MethodTransparencyComputationStart`.
    pub const TRANSPARENCY_METHOD_TRANSPARENCY_COMPUTATION_START: u32 = 182;
    /// `Transparency/MethodTransparencyComputationStop`.
    pub const TRANSPARENCY_METHOD_TRANSPARENCY_COMPUTATION_STOP: u32 = 183;
    /// `Transparency/FieldTransparencyComputationStart`.
    pub const TRANSPARENCY_FIELD_TRANSPARENCY_COMPUTATION_START: u32 = 184;
    /// `Transparency/FieldTransparencyComputationStop`.
    pub const TRANSPARENCY_FIELD_TRANSPARENCY_COMPUTATION_STOP: u32 = 185;
    /// `Transparency/TokenTransparencyComputationStart`.
    pub const TRANSPARENCY_TOKEN_TRANSPARENCY_COMPUTATION_START: u32 = 186;
    /// `Transparency/TokenTransparencyComputationStop`.
    pub const TRANSPARENCY_TOKEN_TRANSPARENCY_COMPUTATION_STOP: u32 = 187;
    /// `NgenBinder/NgenBind`.
    pub const NGEN_BINDER_NGEN_BIND: u32 = 188;
    /// `JittedMethodRichDebugInfo` of task `CLRMethodPrivate`.
    pub const JITTED_METHOD_RICH_DEBUG_INFO: u32 = 189;
    /// `FailFast`.
    pub const FAIL_FAST: u32 = 191;
    /// `GC/FinalizeObject`.
    pub const GC_FINALIZE_OBJECT: u32 = 192;
    /// `GC/CCWRefCountChangeAnsi`.
    pub const GC_CCW_REF_COUNT_CHANGE_ANSI: u32 = 193;
    /// `GC/SetGCHandle`.
    pub const GC_SET_GC_HANDLE: u32 = 194;
    /// `GC/DestroyGCHandle`.
    pub const GC_DESTROY_GC_HANDLE: u32 = 195;
    /// `Binding/FusionMessage`.
    pub const BINDING_FUSION_MESSAGE: u32 = 196;
    /// `FusionErrorCode` of task `Binding`.
    pub const FUSION_ERROR_CODE: u32 = 197;
    /// `GC/PinPlugAtGCTime`.
    pub const GC_PIN_PLUG_AT_GC_TIME: u32 = 199;
    /// `GC/CCWRefCountChange`.
    pub const GC_CCW_REF_COUNT_CHANGE: u32 = 200;
    /// `ClrMulticoreJit/Common`.
    pub const CLR_MULTICORE_JIT_COMMON: u32 = 201;
    /// `ClrMulticoreJit/MethodCodeReturned`.
    pub const CLR_MULTICORE_JIT_METHOD_CODE_RETURNED: u32 = 202;
    /// `LoaderHeap/AllocRequest`.
    pub const LOADER_HEAP_ALLOC_REQUEST: u32 = 310;
    /// `ClrDynamicTypeUsage/IInspectableRuntimeClassName`.
    pub const CLR_DYNAMIC_TYPE_USAGE_I_INSPECTABLE_RUNTIME_CLASS_NAME: u32 = 400;
    /// `ClrDynamicTypeUsage/WinRTUnbox`.
    pub const CLR_DYNAMIC_TYPE_USAGE_WIN_RT_UNBOX: u32 = 401;
    /// `ClrDynamicTypeUsage/CreateRCW`.
    pub const CLR_DYNAMIC_TYPE_USAGE_CREATE_RCW: u32 = 402;
    /// `ClrDynamicTypeUsage/RCWVariance`.
    pub const CLR_DYNAMIC_TYPE_USAGE_RCW_VARIANCE: u32 = 403;
    /// `ClrDynamicTypeUsage/RCWIEnumerableCasting`.
    pub const CLR_DYNAMIC_TYPE_USAGE_RCWI_ENUMERABLE_CASTING: u32 = 404;
    /// `ClrDynamicTypeUsage/CreateCCW`.
    pub const CLR_DYNAMIC_TYPE_USAGE_CREATE_CCW: u32 = 405;
    /// `ClrDynamicTypeUsage/CCWVariance`.
    pub const CLR_DYNAMIC_TYPE_USAGE_CCW_VARIANCE: u32 = 406;
    /// `ClrDynamicTypeUsage/ObjectVariantMarshallingToNative`.
    pub const CLR_DYNAMIC_TYPE_USAGE_OBJECT_VARIANT_MARSHALLING_TO_NATIVE: u32 = 407;
    /// `ClrDynamicTypeUsage/GetTypeFromGUID`.
    pub const CLR_DYNAMIC_TYPE_USAGE_GET_TYPE_FROM_GUID: u32 = 408;
    /// `ClrDynamicTypeUsage/GetTypeFromProgID`.
    pub const CLR_DYNAMIC_TYPE_USAGE_GET_TYPE_FROM_PROG_ID: u32 = 409;
    /// `ClrDynamicTypeUsage/ConvertToCallbackEtw`.
    pub const CLR_DYNAMIC_TYPE_USAGE_CONVERT_TO_CALLBACK_ETW: u32 = 410;
    /// `ClrDynamicTypeUsage/BeginCreateManagedReference`.
    pub const CLR_DYNAMIC_TYPE_USAGE_BEGIN_CREATE_MANAGED_REFERENCE: u32 = 411;
    /// `ClrDynamicTypeUsage/EndCreateManagedReference`.
    pub const CLR_DYNAMIC_TYPE_USAGE_END_CREATE_MANAGED_REFERENCE: u32 = 412;
    /// `ClrDynamicTypeUsage/ObjectVariantMarshallingToManaged`.
    pub const CLR_DYNAMIC_TYPE_USAGE_OBJECT_VARIANT_MARSHALLING_TO_MANAGED: u32 = 413;
}

/// Events of `Microsoft-Windows-DotNETRuntimeStress`.
pub mod stress {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-Windows-DotNETRuntimeStress";
    /// `StressLog/Start`.
    pub const STRESS_LOG_START: u32 = 0;
    /// `ClrStack/Walk`.
    pub const CLR_STACK_WALK: u32 = 1;
}

/// Events of `Microsoft-DotNETRuntimeMonoProfiler`.
pub mod mono_profiler {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-DotNETRuntimeMonoProfiler";
    /// `ContextLoaded` of task `MonoProfiler`.
    pub const CONTEXT_LOADED: u32 = 1;
    /// `ContextUnloaded` of task `MonoProfiler`.
    pub const CONTEXT_UNLOADED: u32 = 2;
    /// `AppDomainLoading` of task `MonoProfiler`.
    pub const APP_DOMAIN_LOADING: u32 = 3;
    /// `AppDomainLoaded` of task `MonoProfiler`.
    pub const APP_DOMAIN_LOADED: u32 = 4;
    /// `AppDomainUnloading` of task `MonoProfiler`.
    pub const APP_DOMAIN_UNLOADING: u32 = 5;
    /// `AppDomainUnloaded` of task `MonoProfiler`.
    pub const APP_DOMAIN_UNLOADED: u32 = 6;
    /// `AppDomainName` of task `MonoProfiler`.
    pub const APP_DOMAIN_NAME: u32 = 7;
    /// `JitBegin` of task `MonoProfiler`.
    pub const JIT_BEGIN: u32 = 8;
    /// `JitFailed` of task `MonoProfiler`.
    pub const JIT_FAILED: u32 = 9;
    /// `JitDone` of task `MonoProfiler`.
    pub const JIT_DONE: u32 = 10;
    /// `JitChunkCreated` of task `MonoProfiler`.
    pub const JIT_CHUNK_CREATED: u32 = 11;
    /// `JitChunkDestroyed` of task `MonoProfiler`.
    pub const JIT_CHUNK_DESTROYED: u32 = 12;
    /// `JitCodeBuffer` of task `MonoProfiler`.
    pub const JIT_CODE_BUFFER: u32 = 13;
    /// `ClassLoading` of task `MonoProfiler`.
    pub const CLASS_LOADING: u32 = 14;
    /// `ClassFailed` of task `MonoProfiler`.
    pub const CLASS_FAILED: u32 = 15;
    /// `ClassLoaded` of task `MonoProfiler`.
    pub const CLASS_LOADED: u32 = 16;
    /// `VTableLoading` of task `MonoProfiler`.
    pub const V_TABLE_LOADING: u32 = 17;
    /// `VTableFailed` of task `MonoProfiler`.
    pub const V_TABLE_FAILED: u32 = 18;
    /// `VTableLoaded` of task `MonoProfiler`.
    pub const V_TABLE_LOADED: u32 = 19;
    /// `ModuleLoading` of task `MonoProfiler`.
    pub const MODULE_LOADING: u32 = 20;
    /// `ModuleFailed` of task `MonoProfiler`.
    pub const MODULE_FAILED: u32 = 21;
    /// `ModuleLoaded` of task `MonoProfiler`.
    pub const MODULE_LOADED: u32 = 22;
    /// `ModuleUnloading` of task `MonoProfiler`.
    pub const MODULE_UNLOADING: u32 = 23;
    /// `ModuleUnloaded` of task `MonoProfiler`.
    pub const MODULE_UNLOADED: u32 = 24;
    /// `AssemblyLoading` of task `MonoProfiler`.
    pub const ASSEMBLY_LOADING: u32 = 25;
    /// `AssemblyLoaded` of task `MonoProfiler`.
    pub const ASSEMBLY_LOADED: u32 = 26;
    /// `AssemblyUnloading` of task `MonoProfiler`.
    pub const ASSEMBLY_UNLOADING: u32 = 27;
    /// `AssemblyUnloaded` of task `MonoProfiler`.
    pub const ASSEMBLY_UNLOADED: u32 = 28;
    /// `MethodEnter` of task `MonoProfiler`.
    pub const METHOD_ENTER: u32 = 29;
    /// `MethodLeave` of task `MonoProfiler`.
    pub const METHOD_LEAVE: u32 = 30;
    /// `MethodTailCall` of task `MonoProfiler`.
    pub const METHOD_TAIL_CALL: u32 = 31;
    /// `MethodExceptionLeave` of task `MonoProfiler`.
    pub const METHOD_EXCEPTION_LEAVE: u32 = 32;
    /// `MethodFree` of task `MonoProfiler`.
    pub const METHOD_FREE: u32 = 33;
    /// `MethodBeginInvoke` of task `MonoProfiler`.
    pub const METHOD_BEGIN_INVOKE: u32 = 34;
    /// `MethodEndInvoke` of task `MonoProfiler`.
    pub const METHOD_END_INVOKE: u32 = 35;
    /// `ExceptionThrow` of task `MonoProfiler`.
    pub const EXCEPTION_THROW: u32 = 36;
    /// `ExceptionClause` of task `MonoProfiler`.
    pub const EXCEPTION_CLAUSE: u32 = 37;
    /// `GCEvent` of task `MonoProfiler`.
    pub const GC_EVENT: u32 = 38;
    /// `GCAllocation` of task `MonoProfiler`.
    pub const GC_ALLOCATION: u32 = 39;
    /// `GCMoves` of task `MonoProfiler`.
    pub const GC_MOVES: u32 = 40;
    /// `GCResize` of task `MonoProfiler`.
    pub const GC_RESIZE: u32 = 41;
    /// `GCHandleCreated` of task `MonoProfiler`.
    pub const GC_HANDLE_CREATED: u32 = 42;
    /// `GCHandleDeleted` of task `MonoProfiler`.
    pub const GC_HANDLE_DELETED: u32 = 43;
    /// `GCFinalizing` of task `MonoProfiler`.
    pub const GC_FINALIZING: u32 = 44;
    /// `GCFinalized` of task `MonoProfiler`.
    pub const GC_FINALIZED: u32 = 45;
    /// `GCFinalizingObject` of task `MonoProfiler`.
    pub const GC_FINALIZING_OBJECT: u32 = 46;
    /// `GCFinalizedObject` of task `MonoProfiler`.
    pub const GC_FINALIZED_OBJECT: u32 = 47;
    /// `GCRootRegister` of task `MonoProfiler`.
    pub const GC_ROOT_REGISTER: u32 = 48;
    /// `GCRootUnregister` of task `MonoProfiler`.
    pub const GC_ROOT_UNREGISTER: u32 = 49;
    /// `GCRoots` of task `MonoProfiler`.
    pub const GC_ROOTS: u32 = 50;
    /// `GCHeapDumpStart` of task `MonoProfiler`.
    pub const GC_HEAP_DUMP_START: u32 = 51;
    /// `GCHeapDumpStop` of task `MonoProfiler`.
    pub const GC_HEAP_DUMP_STOP: u32 = 52;
    /// `GCHeapDumpObjectReference` of task `MonoProfiler`.
    pub const GC_HEAP_DUMP_OBJECT_REFERENCE: u32 = 53;
    /// `MonitorContention` of task `MonoProfiler`.
    pub const MONITOR_CONTENTION: u32 = 54;
    /// `MonitorFailed` of task `MonoProfiler`.
    pub const MONITOR_FAILED: u32 = 55;
    /// `MonitorAquired` of task `MonoProfiler`.
    pub const MONITOR_AQUIRED: u32 = 56;
    /// `ThreadStarted` of task `MonoProfiler`.
    pub const THREAD_STARTED: u32 = 57;
    /// `ThreadStopping` of task `MonoProfiler`.
    pub const THREAD_STOPPING: u32 = 58;
    /// `ThreadStopped` of task `MonoProfiler`.
    pub const THREAD_STOPPED: u32 = 59;
    /// `ThreadExited` of task `MonoProfiler`.
    pub const THREAD_EXITED: u32 = 60;
    /// `ThreadName` of task `MonoProfiler`.
    pub const THREAD_NAME: u32 = 61;
    /// `JitDoneVerbose` of task `MonoProfiler`.
    pub const JIT_DONE_VERBOSE: u32 = 62;
    /// `GCHeapDumpVTableClassReference` of task `MonoProfiler`.
    pub const GC_HEAP_DUMP_V_TABLE_CLASS_REFERENCE: u32 = 63;
}

/// Events of `Microsoft-DotNETCore-SampleProfiler`.
pub mod sample_profiler {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-DotNETCore-SampleProfiler";
    /// The stack of a thread, and whether it ran managed code. `Thread/Sample`.
    pub const THREAD_SAMPLE: u32 = 0;
}

/// Events of `Universal.System`.
pub mod universal_system {
    /// The name of the provider.
    pub const PROVIDER: &str = "Universal.System";
    /// A process that was there when the recording began. `ExistingProcess`.
    pub const EXISTING_PROCESS: u32 = 0;
    /// A process was created. `ProcessCreate`.
    pub const PROCESS_CREATE: u32 = 1;
    /// A process has ended. `ProcessExit`.
    pub const PROCESS_EXIT: u32 = 2;
    /// A file is mapped into a process. `ProcessMapping`.
    pub const PROCESS_MAPPING: u32 = 3;
    /// A name for a range of addresses. `ProcessSymbol`.
    pub const PROCESS_SYMBOL: u32 = 4;
    /// The description of the file of mappings, in JSON. `ProcessMappingMetadata`.
    pub const PROCESS_MAPPING_METADATA: u32 = 5;
}

/// Events of `Microsoft-DotNETCore-EventPipe`.
pub mod event_pipe {
    /// The name of the provider.
    pub const PROVIDER: &str = "Microsoft-DotNETCore-EventPipe";
    /// The command line of the process, its system and its architecture.
    pub const PROCESS_INFO: u32 = 1;
}

/// Events of `System.Diagnostics.Eventing.FrameworkEventSource`.
pub mod framework {
    /// The name of the provider.
    pub const PROVIDER: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
    /// An item is put into the thread pool's queue.
    pub const THREAD_POOL_ENQUEUE_WORK: u32 = 30;
    /// An item is taken from the thread pool's queue.
    pub const THREAD_POOL_DEQUEUE_WORK: u32 = 31;
    /// Work is handed to another thread, or to a timer.
    pub const THREAD_TRANSFER_SEND: u32 = 150;
    /// A thread takes work that another one, or a timer, had.
    pub const THREAD_TRANSFER_RECEIVE: u32 = 151;
}

/// Events of `System.Threading.Tasks.TplEventSource`.
pub mod tasks {
    /// The name of the provider.
    pub const PROVIDER: &str = "System.Threading.Tasks.TplEventSource";
    /// A task is handed to a scheduler.
    pub const TASK_SCHEDULED: u32 = 7;
    /// A task begins to run.
    pub const TASK_STARTED: u32 = 8;
    /// A task has run.
    pub const TASK_COMPLETED: u32 = 9;
    /// A wait for a task begins, by blocking or by an `await`.
    pub const TASK_WAIT_BEGIN: u32 = 10;
    /// A wait for a task ends.
    pub const TASK_WAIT_END: u32 = 11;
    /// The rest of a method behind an `await` is handed to a scheduler.
    pub const AWAIT_TASK_CONTINUATION_SCHEDULED: u32 = 12;
    /// The rest of a method behind an `await` has run.
    pub const TASK_WAIT_CONTINUATION_COMPLETE: u32 = 13;
    /// An asynchronous operation begins.
    pub const TRACE_OPERATION_START: u32 = 14;
    /// An asynchronous operation ends.
    pub const TRACE_OPERATION_STOP: u32 = 15;
    /// A relation between asynchronous operations.
    pub const TRACE_OPERATION_RELATION: u32 = 16;
    /// A thread begins with a part of an asynchronous operation.
    pub const TRACE_SYNCHRONOUS_WORK_START: u32 = 17;
    /// A thread ends a part of an asynchronous operation.
    pub const TRACE_SYNCHRONOUS_WORK_STOP: u32 = 18;
    /// The rest of a method behind an `await` begins to run.
    pub const TASK_WAIT_CONTINUATION_STARTED: u32 = 19;
}
