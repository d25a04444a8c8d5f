//! Payloads with typed fields.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use nettrace::Utf16;
use nettrace::raw::ReadResult;
use uuid::Uuid;

use crate::generated::enums::*;
use crate::list::{Element, List};
use crate::provider::Provider;
use crate::reader::{PayloadView, Reader};

/// An event of the runtime, by its meaning.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ClrEvent<'a> {
    /// A collection begins.
    ///
    /// * `GC/Start`: event 1 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcStart(GcStart),
    /// A collection has ended.
    ///
    /// * `GC/Stop`: event 2 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcStop(GcStop),
    /// Sizes of the generations after a collection, and what was promoted.
    ///
    /// * `GC/HeapStats`: event 4 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcHeapStats(GcHeapStats),
    /// The collector has got a segment or region.
    ///
    /// * `GC/CreateSegment`: event 5 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcCreateSegment(GcCreateSegment),
    /// The collector has given a segment or region back.
    ///
    /// * `GC/FreeSegment`: event 6 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcFreeSegment(GcFreeSegment),
    /// Threads are about to be suspended.
    ///
    /// * `GC/SuspendEEStart`: event 9 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcSuspendStart(GcSuspendStart),
    /// All threads are suspended.
    ///
    /// * `GC/SuspendEEStop`: event 8 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcSuspendStop(Instance),
    /// Threads are about to be let go.
    ///
    /// * `GC/RestartEEStart`: event 7 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcRestartStart(Instance),
    /// Threads run again.
    ///
    /// * `GC/RestartEEStop`: event 3 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcRestartStop(Instance),
    /// About 100 KB were allocated since the last of these; the object that crossed the line.
    ///
    /// * `GC/AllocationTick`: event 10 of `Microsoft-Windows-DotNETRuntime`, from version 2.
    AllocationTick(AllocationTick<'a>),
    /// An allocation that was drawn at random, each byte with the same chance (.NET 10).
    ///
    /// * `AllocationSampling`: event 303 of `Microsoft-Windows-DotNETRuntime`.
    AllocationSampled(AllocationSampled<'a>),
    /// Allocations of one type, sampled by a profiler's settings.
    ///
    /// * `GC/SampledObjectAllocation`: event 20 of `Microsoft-Windows-DotNETRuntime`.
    /// * `GC/SampledObjectAllocation`: event 32 of `Microsoft-Windows-DotNETRuntime`.
    SampledObjectAllocation(SampledObjectAllocation),
    /// The thread of background collections was created.
    ///
    /// * `GC/CreateConcurrentThread`: event 11 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcCreateConcurrentThread(Instance),
    /// The thread of background collections has ended.
    ///
    /// * `GC/TerminateConcurrentThread`: event 12 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcTerminateConcurrentThread(Instance),
    /// The finalizer thread begins to run finalizers.
    ///
    /// * `GC/FinalizersStart`: event 14 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcFinalizersStart(Instance),
    /// The finalizer thread has run them.
    ///
    /// * `GC/FinalizersStop`: event 13 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    GcFinalizersStop(GcFinalizersStop),
    /// An object is finalized.
    ///
    /// * `GC/FinalizeObject`: event 29 of `Microsoft-Windows-DotNETRuntime`.
    GcFinalizeObject(GcFinalizeObject),
    /// Something asked for a collection.
    ///
    /// * `GC/Triggered`: event 35 of `Microsoft-Windows-DotNETRuntime`.
    GcTriggered(GcTriggered),
    /// A heap has marked from the stacks.
    ///
    /// * `GC/MarkStackRoots`: event 25 of `Microsoft-Windows-DotNETRuntime`.
    GcMarkStackRoots(GcMarked),
    /// A heap has marked from the finalizer queue.
    ///
    /// * `GC/MarkFinalizeQueueRoots`: event 26 of `Microsoft-Windows-DotNETRuntime`.
    GcMarkFinalizeQueueRoots(GcMarked),
    /// A heap has marked from the handles.
    ///
    /// * `GC/MarkHandles`: event 27 of `Microsoft-Windows-DotNETRuntime`.
    GcMarkHandles(GcMarked),
    /// A heap has marked from older generations.
    ///
    /// * `GC/MarkCards`: event 28 of `Microsoft-Windows-DotNETRuntime`.
    GcMarkCards(GcMarked),
    /// The bytes that a heap promoted by one kind of root.
    ///
    /// * `GC/MarkWithType`: event 202 of `Microsoft-Windows-DotNETRuntime`.
    GcMarkWithType(GcMarkWithType),
    /// The threads of a server collection wait for one another.
    ///
    /// * `GC/Join`: event 203 of `Microsoft-Windows-DotNETRuntime`, from version 2.
    GcJoin(GcJoin),
    /// The work of one heap in a collection, with its reasons.
    ///
    /// * `GC/PerHeapHistory`: event 204 of `Microsoft-Windows-DotNETRuntime`, from version 3.
    GcPerHeapHistory(GcPerHeapHistory<'a>),
    /// The decisions for all heaps in a collection.
    ///
    /// * `GC/GlobalHeapHistory`: event 205 of `Microsoft-Windows-DotNETRuntime`, from version 2.
    GcGlobalHeapHistory(GcGlobalHeapHistory<'a>),
    /// Times of compacting the large object heap.
    ///
    /// * `GC/LOHCompact`: event 208 of `Microsoft-Windows-DotNETRuntime`.
    GcLohCompact(GcLohCompact<'a>),
    /// Free-list items and plugs by size.
    ///
    /// * `GC/FitBucketInfo`: event 209 of `Microsoft-Windows-DotNETRuntime`.
    GcFitBucketInfo(GcFitBucketInfo<'a>),
    /// An event that the collector defines as it goes.
    ///
    /// * `GC/DynamicTraceEvent`: event 39 of `Microsoft-Windows-DotNETRuntime`.
    GcDynamic(GcDynamic<'a>),
    /// A handle was created.
    ///
    /// * `GC/SetGCHandle`: event 30 of `Microsoft-Windows-DotNETRuntime`.
    GcSetHandle(GcSetHandle),
    /// A handle was given back.
    ///
    /// * `GC/DestoryGCHandle`: event 31 of `Microsoft-Windows-DotNETRuntime`.
    GcDestroyHandle(GcDestroyHandle),
    /// An object was pinned during a collection.
    ///
    /// * `GC/PinObjectAtGCTime`: event 33 of `Microsoft-Windows-DotNETRuntime`.
    GcPinObject(GcPinObject<'a>),
    /// The address range of a generation.
    ///
    /// * `GC/GenerationRange`: event 23 of `Microsoft-Windows-DotNETRuntime`.
    GcGenerationRange(GcGenerationRange),
    /// Objects of the heap.
    ///
    /// * `GC/BulkNode`: event 18 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkNode(GcBulkNode<'a>),
    /// References of the objects of the heap, in the objects' order.
    ///
    /// * `GC/BulkEdge`: event 19 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkEdge(GcBulkEdge<'a>),
    /// Roots of the heap.
    ///
    /// * `GC/BulkRootEdge`: event 16 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkRootEdge(GcBulkRootEdge<'a>),
    /// Dependent handles.
    ///
    /// * `GC/BulkRootConditionalWeakTableElementEdge`: event 17 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkRootConditionalWeakTableElementEdge(GcBulkRootConditionalWeakTableElementEdge<'a>),
    /// Static fields that are roots.
    ///
    /// * `GC/BulkRootStaticVar`: event 38 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkRootStaticVar(GcBulkRootStaticVar<'a>),
    /// COM callable wrappers that are roots.
    ///
    /// * `GC/BulkRootCCW`: event 36 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkRootCcw(GcBulkRootCcw<'a>),
    /// Runtime callable wrappers.
    ///
    /// * `GC/BulkRCW`: event 37 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkRcw(GcBulkRcw<'a>),
    /// Objects that stay where they are.
    ///
    /// * `GC/BulkSurvivingObjectRanges`: event 21 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkSurvivingObjectRanges(GcBulkSurvivingObjectRanges<'a>),
    /// Objects that move.
    ///
    /// * `GC/BulkMovedObjectRanges`: event 22 of `Microsoft-Windows-DotNETRuntime`.
    GcBulkMovedObjectRanges(GcBulkMovedObjectRanges<'a>),
    /// The collector's settings.
    ///
    /// * `GC/SettingsRundown`: event 10 of `Microsoft-Windows-DotNETRuntimeRundown`.
    GcSettingsRundown(GcSettingsRundown),
    /// Names of types that other events refer to.
    ///
    /// * `Type/BulkType`: event 15 of `Microsoft-Windows-DotNETRuntime`.
    BulkType(BulkType<'a>),
    /// A type is being loaded.
    ///
    /// * `TypeLoad/Start`: event 73 of `Microsoft-Windows-DotNETRuntime`.
    TypeLoadStart(TypeLoadStart),
    /// A type has been loaded.
    ///
    /// * `TypeLoad/Stop`: event 74 of `Microsoft-Windows-DotNETRuntime`.
    TypeLoadStop(TypeLoadStop<'a>),
    /// An exception was thrown.
    ///
    /// * `Exception/Start`: event 80 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    ExceptionStart(ExceptionStart<'a>),
    /// An exception was handled.
    ///
    /// * `Exception/Stop`: event 256 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionStop(Nothing),
    /// A catch block is entered.
    ///
    /// * `ExceptionCatch/Start`: event 250 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionCatchStart(ExceptionHandler<'a>),
    /// A catch block is left.
    ///
    /// * `ExceptionCatch/Stop`: event 251 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionCatchStop(Nothing),
    /// A finally block is entered.
    ///
    /// * `ExceptionFinally/Start`: event 252 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionFinallyStart(ExceptionHandler<'a>),
    /// A finally block is left.
    ///
    /// * `ExceptionFinally/Stop`: event 253 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionFinallyStop(Nothing),
    /// A filter is entered.
    ///
    /// * `ExceptionFilter/Start`: event 254 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionFilterStart(ExceptionHandler<'a>),
    /// A filter is left.
    ///
    /// * `ExceptionFilter/Stop`: event 255 of `Microsoft-Windows-DotNETRuntime`.
    ExceptionFilterStop(Nothing),
    /// A thread waits for a lock.
    ///
    /// * `Contention/Start`: event 81 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    ContentionStart(ContentionStart),
    /// A thread has got the lock that it waited for.
    ///
    /// * `Contention/Stop`: event 91 of `Microsoft-Windows-DotNETRuntime`.
    ContentionStop(ContentionStop),
    /// A lock was created.
    ///
    /// * `Contention/LockCreated`: event 90 of `Microsoft-Windows-DotNETRuntime`.
    ContentionLockCreated(ContentionLockCreated),
    /// A thread waits for a handle.
    ///
    /// * `WaitHandleWait/Start`: event 301 of `Microsoft-Windows-DotNETRuntime`.
    WaitHandleWaitStart(WaitHandleWaitStart),
    /// A thread has done waiting for a handle.
    ///
    /// * `WaitHandleWait/Stop`: event 302 of `Microsoft-Windows-DotNETRuntime`.
    WaitHandleWaitStop(Instance),
    /// A worker thread of the pool begins.
    ///
    /// * `ThreadPoolWorkerThread/Start`: event 50 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadStart(ThreadPoolWorkerThread),
    /// A worker thread of the pool ends.
    ///
    /// * `ThreadPoolWorkerThread/Stop`: event 51 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadStop(ThreadPoolWorkerThread),
    /// A worker thread of the pool waits for work.
    ///
    /// * `ThreadPoolWorkerThread/Wait`: event 57 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadWait(ThreadPoolWorkerThread),
    /// A worker thread of the pool is set aside.
    ///
    /// * `ThreadPoolWorkerThreadRetirement/Start`: event 52 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadRetirementStart(ThreadPoolWorkerThread),
    /// A worker thread of the pool is back.
    ///
    /// * `ThreadPoolWorkerThreadRetirement/Stop`: event 53 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadRetirementStop(ThreadPoolWorkerThread),
    /// Work items a second, as the pool measures them.
    ///
    /// * `ThreadPoolWorkerThreadAdjustment/Sample`: event 54 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadAdjustmentSample(ThreadPoolWorkerThreadAdjustmentSample),
    /// The pool changes how many threads it wants.
    ///
    /// * `ThreadPoolWorkerThreadAdjustment/Adjustment`: event 55 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadAdjustmentAdjustment(ThreadPoolWorkerThreadAdjustmentAdjustment),
    /// The results of the pool's hill climbing.
    ///
    /// * `ThreadPoolWorkerThreadAdjustment/Stats`: event 56 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkerThreadAdjustmentStats(ThreadPoolWorkerThreadAdjustmentStats),
    /// The pool's limits.
    ///
    /// * `ThreadPoolMinMaxThreads`: event 59 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolMinMaxThreads(ThreadPoolMinMaxThreads),
    /// The number of threads of the pool that work.
    ///
    /// * `ThreadPoolWorkingThreadCount/Start`: event 60 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolWorkingThreadCount(ThreadPoolWorkingThreadCount),
    /// Work is handed to the pool.
    ///
    /// * `ThreadPool/Enqueue`: event 61 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolEnqueue(ThreadPoolWork),
    /// A thread of the pool takes work.
    ///
    /// * `ThreadPool/Dequeue`: event 62 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolDequeue(ThreadPoolWork),
    /// An I/O completion is handed to the pool.
    ///
    /// * `ThreadPool/IOEnqueue`: event 63 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolIoEnqueue(ThreadPoolIoEnqueue),
    /// A thread of the pool takes an I/O completion.
    ///
    /// * `ThreadPool/IODequeue`: event 64 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolIoDequeue(ThreadPoolIo),
    /// An overlapped operation is prepared.
    ///
    /// * `ThreadPool/IOPack`: event 65 of `Microsoft-Windows-DotNETRuntime`.
    ThreadPoolIoPack(ThreadPoolIo),
    /// The duration of the processor's pause instruction.
    ///
    /// * `YieldProcessorMeasurement`: event 58 of `Microsoft-Windows-DotNETRuntime`.
    YieldProcessorMeasurement(YieldProcessorMeasurement),
    /// A thread is being created.
    ///
    /// * `Thread/Creating`: event 70 of `Microsoft-Windows-DotNETRuntime`.
    ThreadCreating(ThreadId),
    /// A new thread runs.
    ///
    /// * `Thread/Running`: event 71 of `Microsoft-Windows-DotNETRuntime`.
    ThreadRunning(ThreadId),
    /// A managed thread was created.
    ///
    /// * `AppDomainResourceManagement/ThreadCreated`: event 85 of `Microsoft-Windows-DotNETRuntime`.
    ThreadCreated(ThreadCreated),
    /// A managed thread has ended.
    ///
    /// * `AppDomainResourceManagement/ThreadTerminated`: event 86 of `Microsoft-Windows-DotNETRuntime`.
    ThreadTerminated(ThreadTerminated),
    /// A managed thread that lives.
    ///
    /// * `Loader/ThreadDCStop`: event 159 of `Microsoft-Windows-DotNETRuntimeRundown`.
    ThreadDcStop(ThreadCreated),
    /// Code of a method was loaded.
    ///
    /// * `Method/Load`: event 141 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    MethodLoad(MethodRange),
    /// Code of a method was unloaded.
    ///
    /// * `Method/Unload`: event 142 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    MethodUnload(MethodRange),
    /// Code that was there when the session began.
    ///
    /// * `Method/DCStart`: event 141 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    MethodDcStart(MethodRange),
    /// Code that was there when the session ended.
    ///
    /// * `Method/DCStop`: event 142 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    MethodDcStop(MethodRange),
    /// Code of a method was loaded, with its name.
    ///
    /// * `Method/LoadVerbose`: event 143 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    MethodLoadVerbose(MethodCode<'a>),
    /// Code of a method was unloaded, with its name.
    ///
    /// * `Method/UnloadVerbose`: event 144 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    MethodUnloadVerbose(MethodCode<'a>),
    /// Code that was there when the session began, with its name.
    ///
    /// * `Method/DCStartVerbose`: event 143 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    MethodDcStartVerbose(MethodCode<'a>),
    /// Code that was there when the session ended, with its name.
    ///
    /// * `Method/DCStopVerbose`: event 144 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    MethodDcStopVerbose(MethodCode<'a>),
    /// A method is being compiled.
    ///
    /// * `Method/JittingStarted`: event 145 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    MethodJittingStarted(MethodJittingStarted<'a>),
    /// Memory for a method's code.
    ///
    /// * `Method/MemoryAllocatedForJitCode`: event 146 of `Microsoft-Windows-DotNETRuntime`.
    MethodMemoryAllocatedForJitCode(MethodMemoryAllocatedForJitCode),
    /// The method that a method's id stands for.
    ///
    /// * `Method/MethodDetails`: event 72 of `Microsoft-Windows-DotNETRuntime`.
    MethodDetails(MethodDetails<'a>),
    /// Which code came from which IL.
    ///
    /// * `Method/ILToNativeMap`: event 190 of `Microsoft-Windows-DotNETRuntime`.
    MethodIlToNativeMap(IlToNativeMap<'a>),
    /// Which code came from which IL, of code that was there when the session began.
    ///
    /// * `Method/ILToNativeMapDCStart`: event 149 of `Microsoft-Windows-DotNETRuntimeRundown`.
    MethodIlToNativeMapDcStart(IlToNativeMap<'a>),
    /// Which code came from which IL, of code that was there when the session ended.
    ///
    /// * `Method/ILToNativeMapDCStop`: event 150 of `Microsoft-Windows-DotNETRuntimeRundown`.
    MethodIlToNativeMapDcStop(IlToNativeMap<'a>),
    /// A call was inlined.
    ///
    /// * `Method/InliningSucceeded`: event 185 of `Microsoft-Windows-DotNETRuntime`.
    MethodInliningSucceeded(MethodInliningSucceeded<'a>),
    /// A call was not inlined, and why.
    ///
    /// * `Method/InliningFailed`: event 192 of `Microsoft-Windows-DotNETRuntime`.
    MethodInliningFailed(MethodInliningFailed<'a>),
    /// A call became a tail call.
    ///
    /// * `Method/TailCallSucceeded`: event 188 of `Microsoft-Windows-DotNETRuntime`.
    MethodTailCallSucceeded(MethodTailCallSucceeded<'a>),
    /// A call did not become a tail call, and why.
    ///
    /// * `MethodTailCallFailed`: event 191 of `Microsoft-Windows-DotNETRuntime`.
    MethodTailCallFailed(MethodTailCallFailed<'a>),
    /// Precompiled code of a method is being looked for.
    ///
    /// * `Method/R2RGetEntryPointStart`: event 160 of `Microsoft-Windows-DotNETRuntime`.
    R2RGetEntryPointStart(R2RGetEntryPointStart),
    /// Precompiled code of a method was found.
    ///
    /// * `Method/R2RGetEntryPoint`: event 159 of `Microsoft-Windows-DotNETRuntime`.
    R2RGetEntryPoint(R2RGetEntryPoint<'a>),
    /// A module was loaded.
    ///
    /// * `Loader/ModuleLoad`: event 152 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    ModuleLoad(Module<'a>),
    /// A module was unloaded.
    ///
    /// * `Loader/ModuleUnload`: event 153 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    ModuleUnload(Module<'a>),
    /// A module that was there when the session began.
    ///
    /// * `Loader/ModuleDCStart`: event 153 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    ModuleDcStart(Module<'a>),
    /// A module that was there when the session ended.
    ///
    /// * `Loader/ModuleDCStop`: event 154 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    ModuleDcStop(Module<'a>),
    /// A module was loaded into an application domain.
    ///
    /// * `Loader/DomainModuleLoad`: event 151 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    DomainModuleLoad(DomainModule<'a>),
    /// A module of an application domain when the session began.
    ///
    /// * `Loader/DomainModuleDCStart`: event 151 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    DomainModuleDcStart(DomainModule<'a>),
    /// A module of an application domain when the session ended.
    ///
    /// * `Loader/DomainModuleDCStop`: event 152 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    DomainModuleDcStop(DomainModule<'a>),
    /// An assembly was loaded.
    ///
    /// * `Loader/AssemblyLoad`: event 154 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    AssemblyLoad(Assembly<'a>),
    /// An assembly was unloaded.
    ///
    /// * `Loader/AssemblyUnload`: event 155 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    AssemblyUnload(Assembly<'a>),
    /// An assembly that was there when the session began.
    ///
    /// * `Loader/AssemblyDCStart`: event 155 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    AssemblyDcStart(Assembly<'a>),
    /// An assembly that was there when the session ended.
    ///
    /// * `Loader/AssemblyDCStop`: event 156 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    AssemblyDcStop(Assembly<'a>),
    /// An application domain was created.
    ///
    /// * `Loader/AppDomainLoad`: event 156 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    AppDomainLoad(AppDomain<'a>),
    /// An application domain has ended.
    ///
    /// * `Loader/AppDomainUnload`: event 157 of `Microsoft-Windows-DotNETRuntime`, from version 1.
    AppDomainUnload(AppDomain<'a>),
    /// An application domain that was there when the session began.
    ///
    /// * `Loader/AppDomainDCStart`: event 157 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    AppDomainDcStart(AppDomain<'a>),
    /// An application domain that was there when the session ended.
    ///
    /// * `Loader/AppDomainDCStop`: event 158 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
    AppDomainDcStop(AppDomain<'a>),
    /// The loader looks for an assembly.
    ///
    /// * `AssemblyLoader/Start`: event 290 of `Microsoft-Windows-DotNETRuntime`.
    AssemblyLoaderStart(AssemblyLoaderStart<'a>),
    /// The loader has done looking.
    ///
    /// * `AssemblyLoader/Stop`: event 291 of `Microsoft-Windows-DotNETRuntime`.
    AssemblyLoaderStop(AssemblyLoaderStop<'a>),
    /// One stage of looking for an assembly.
    ///
    /// * `AssemblyLoader/ResolutionAttempted`: event 292 of `Microsoft-Windows-DotNETRuntime`.
    AssemblyLoaderResolutionAttempted(AssemblyLoaderResolutionAttempted<'a>),
    /// A path where an assembly could have been.
    ///
    /// * `AssemblyLoader/KnownPathProbed`: event 296 of `Microsoft-Windows-DotNETRuntime`.
    AssemblyLoaderKnownPathProbed(AssemblyLoaderKnownPathProbed<'a>),
    /// The settings of tiered compilation.
    ///
    /// * `TieredCompilation/Settings`: event 280 of `Microsoft-Windows-DotNETRuntime`.
    TieredCompilationSettings(TieredCompilationSettings),
    /// The settings of tiered compilation when the session began.
    ///
    /// * `TieredCompilationRundown/SettingsDCStart`: event 280 of `Microsoft-Windows-DotNETRuntimeRundown`.
    TieredCompilationSettingsDcStart(TieredCompilationSettings),
    /// Compiling again waits, since new methods are being called.
    ///
    /// * `TieredCompilation/Pause`: event 281 of `Microsoft-Windows-DotNETRuntime`.
    TieredCompilationPause(Instance),
    /// Compiling again goes on.
    ///
    /// * `TieredCompilation/Resume`: event 282 of `Microsoft-Windows-DotNETRuntime`.
    TieredCompilationResume(TieredCompilationResume),
    /// The background thread begins to compile methods again.
    ///
    /// * `TieredCompilation/BackgroundJitStart`: event 283 of `Microsoft-Windows-DotNETRuntime`.
    TieredCompilationBackgroundJitStart(TieredCompilationBackgroundJitStart),
    /// The background thread has compiled methods again.
    ///
    /// * `TieredCompilation/BackgroundJitStop`: event 284 of `Microsoft-Windows-DotNETRuntime`.
    TieredCompilationBackgroundJitStop(TieredCompilationBackgroundJitStop),
    /// Which runtime this is.
    ///
    /// * `Runtime/Start`: event 187 of `Microsoft-Windows-DotNETRuntime`.
    RuntimeStart(RuntimeStart<'a>),
    /// Which runtime this is, told with the rundown.
    ///
    /// * `Runtime/Start`: event 187 of `Microsoft-Windows-DotNETRuntimeRundown`.
    RuntimeDcStart(RuntimeStart<'a>),
    /// The stack of a thread, and whether it ran managed code.
    ///
    /// * `Thread/Sample`: event 0 of `Microsoft-DotNETCore-SampleProfiler`.
    ThreadSample(ThreadSample),
    /// A process that was there when the recording began.
    ///
    /// * `ExistingProcess`: event 0 of `Universal.System`.
    ExistingProcess(Process<'a>),
    /// A process was created.
    ///
    /// * `ProcessCreate`: event 1 of `Universal.System`.
    ProcessCreate(Process<'a>),
    /// A process has ended.
    ///
    /// * `ProcessExit`: event 2 of `Universal.System`.
    ProcessExit(Nothing),
    /// A file is mapped into a process.
    ///
    /// * `ProcessMapping`: event 3 of `Universal.System`.
    ProcessMapping(ProcessMapping<'a>),
    /// A name for a range of addresses.
    ///
    /// * `ProcessSymbol`: event 4 of `Universal.System`.
    ProcessSymbol(ProcessSymbol<'a>),
    /// The description of the file of mappings, in JSON.
    ///
    /// * `ProcessMappingMetadata`: event 5 of `Universal.System`.
    ProcessMappingMetadata(ProcessMappingMetadata<'a>),
}

impl<'a> ClrEvent<'a> {
    /// Reads the payload of an event; `None` for an event, or an old version of it, that has no view.
    pub(crate) fn read(provider: Provider, id: u16, version: u8, reader: &mut Reader<'a>) -> Option<ReadResult<Self>> {
        Some(match (provider, id) {
            (Provider::Runtime, 1) if version >= 1 => GcStart::read(reader, version).map(Self::GcStart),
            (Provider::Runtime, 2) if version >= 1 => GcStop::read(reader, version).map(Self::GcStop),
            (Provider::Runtime, 4) if version >= 1 => GcHeapStats::read(reader, version).map(Self::GcHeapStats),
            (Provider::Runtime, 5) if version >= 1 => GcCreateSegment::read(reader, version).map(Self::GcCreateSegment),
            (Provider::Runtime, 6) if version >= 1 => GcFreeSegment::read(reader, version).map(Self::GcFreeSegment),
            (Provider::Runtime, 9) if version >= 1 => GcSuspendStart::read(reader, version).map(Self::GcSuspendStart),
            (Provider::Runtime, 8) if version >= 1 => Instance::read(reader, version).map(Self::GcSuspendStop),
            (Provider::Runtime, 7) if version >= 1 => Instance::read(reader, version).map(Self::GcRestartStart),
            (Provider::Runtime, 3) if version >= 1 => Instance::read(reader, version).map(Self::GcRestartStop),
            (Provider::Runtime, 10) if version >= 2 => AllocationTick::read(reader, version).map(Self::AllocationTick),
            (Provider::Runtime, 303) => AllocationSampled::read(reader, version).map(Self::AllocationSampled),
            (Provider::Runtime, 20) => SampledObjectAllocation::read(reader, version).map(Self::SampledObjectAllocation),
            (Provider::Runtime, 32) => SampledObjectAllocation::read(reader, version).map(Self::SampledObjectAllocation),
            (Provider::Runtime, 11) if version >= 1 => Instance::read(reader, version).map(Self::GcCreateConcurrentThread),
            (Provider::Runtime, 12) if version >= 1 => Instance::read(reader, version).map(Self::GcTerminateConcurrentThread),
            (Provider::Runtime, 14) if version >= 1 => Instance::read(reader, version).map(Self::GcFinalizersStart),
            (Provider::Runtime, 13) if version >= 1 => GcFinalizersStop::read(reader, version).map(Self::GcFinalizersStop),
            (Provider::Runtime, 29) => GcFinalizeObject::read(reader, version).map(Self::GcFinalizeObject),
            (Provider::Runtime, 35) => GcTriggered::read(reader, version).map(Self::GcTriggered),
            (Provider::Runtime, 25) => GcMarked::read(reader, version).map(Self::GcMarkStackRoots),
            (Provider::Runtime, 26) => GcMarked::read(reader, version).map(Self::GcMarkFinalizeQueueRoots),
            (Provider::Runtime, 27) => GcMarked::read(reader, version).map(Self::GcMarkHandles),
            (Provider::Runtime, 28) => GcMarked::read(reader, version).map(Self::GcMarkCards),
            (Provider::Runtime, 202) => GcMarkWithType::read(reader, version).map(Self::GcMarkWithType),
            (Provider::Runtime, 203) if version >= 2 => GcJoin::read(reader, version).map(Self::GcJoin),
            (Provider::Runtime, 204) if version >= 3 => GcPerHeapHistory::read(reader, version).map(Self::GcPerHeapHistory),
            (Provider::Runtime, 205) if version >= 2 => GcGlobalHeapHistory::read(reader, version).map(Self::GcGlobalHeapHistory),
            (Provider::Runtime, 208) => GcLohCompact::read(reader, version).map(Self::GcLohCompact),
            (Provider::Runtime, 209) => GcFitBucketInfo::read(reader, version).map(Self::GcFitBucketInfo),
            (Provider::Runtime, 39) => GcDynamic::read(reader, version).map(Self::GcDynamic),
            (Provider::Runtime, 30) => GcSetHandle::read(reader, version).map(Self::GcSetHandle),
            (Provider::Runtime, 31) => GcDestroyHandle::read(reader, version).map(Self::GcDestroyHandle),
            (Provider::Runtime, 33) => GcPinObject::read(reader, version).map(Self::GcPinObject),
            (Provider::Runtime, 23) => GcGenerationRange::read(reader, version).map(Self::GcGenerationRange),
            (Provider::Runtime, 18) => GcBulkNode::read(reader, version).map(Self::GcBulkNode),
            (Provider::Runtime, 19) => GcBulkEdge::read(reader, version).map(Self::GcBulkEdge),
            (Provider::Runtime, 16) => GcBulkRootEdge::read(reader, version).map(Self::GcBulkRootEdge),
            (Provider::Runtime, 17) => GcBulkRootConditionalWeakTableElementEdge::read(reader, version).map(Self::GcBulkRootConditionalWeakTableElementEdge),
            (Provider::Runtime, 38) => GcBulkRootStaticVar::read(reader, version).map(Self::GcBulkRootStaticVar),
            (Provider::Runtime, 36) => GcBulkRootCcw::read(reader, version).map(Self::GcBulkRootCcw),
            (Provider::Runtime, 37) => GcBulkRcw::read(reader, version).map(Self::GcBulkRcw),
            (Provider::Runtime, 21) => GcBulkSurvivingObjectRanges::read(reader, version).map(Self::GcBulkSurvivingObjectRanges),
            (Provider::Runtime, 22) => GcBulkMovedObjectRanges::read(reader, version).map(Self::GcBulkMovedObjectRanges),
            (Provider::Rundown, 10) => GcSettingsRundown::read(reader, version).map(Self::GcSettingsRundown),
            (Provider::Runtime, 15) => BulkType::read(reader, version).map(Self::BulkType),
            (Provider::Runtime, 73) => TypeLoadStart::read(reader, version).map(Self::TypeLoadStart),
            (Provider::Runtime, 74) => TypeLoadStop::read(reader, version).map(Self::TypeLoadStop),
            (Provider::Runtime, 80) if version >= 1 => ExceptionStart::read(reader, version).map(Self::ExceptionStart),
            (Provider::Runtime, 256) => Nothing::read(reader, version).map(Self::ExceptionStop),
            (Provider::Runtime, 250) => ExceptionHandler::read(reader, version).map(Self::ExceptionCatchStart),
            (Provider::Runtime, 251) => Nothing::read(reader, version).map(Self::ExceptionCatchStop),
            (Provider::Runtime, 252) => ExceptionHandler::read(reader, version).map(Self::ExceptionFinallyStart),
            (Provider::Runtime, 253) => Nothing::read(reader, version).map(Self::ExceptionFinallyStop),
            (Provider::Runtime, 254) => ExceptionHandler::read(reader, version).map(Self::ExceptionFilterStart),
            (Provider::Runtime, 255) => Nothing::read(reader, version).map(Self::ExceptionFilterStop),
            (Provider::Runtime, 81) if version >= 1 => ContentionStart::read(reader, version).map(Self::ContentionStart),
            (Provider::Runtime, 91) => ContentionStop::read(reader, version).map(Self::ContentionStop),
            (Provider::Runtime, 90) => ContentionLockCreated::read(reader, version).map(Self::ContentionLockCreated),
            (Provider::Runtime, 301) => WaitHandleWaitStart::read(reader, version).map(Self::WaitHandleWaitStart),
            (Provider::Runtime, 302) => Instance::read(reader, version).map(Self::WaitHandleWaitStop),
            (Provider::Runtime, 50) => ThreadPoolWorkerThread::read(reader, version).map(Self::ThreadPoolWorkerThreadStart),
            (Provider::Runtime, 51) => ThreadPoolWorkerThread::read(reader, version).map(Self::ThreadPoolWorkerThreadStop),
            (Provider::Runtime, 57) => ThreadPoolWorkerThread::read(reader, version).map(Self::ThreadPoolWorkerThreadWait),
            (Provider::Runtime, 52) => ThreadPoolWorkerThread::read(reader, version).map(Self::ThreadPoolWorkerThreadRetirementStart),
            (Provider::Runtime, 53) => ThreadPoolWorkerThread::read(reader, version).map(Self::ThreadPoolWorkerThreadRetirementStop),
            (Provider::Runtime, 54) => ThreadPoolWorkerThreadAdjustmentSample::read(reader, version).map(Self::ThreadPoolWorkerThreadAdjustmentSample),
            (Provider::Runtime, 55) => ThreadPoolWorkerThreadAdjustmentAdjustment::read(reader, version).map(Self::ThreadPoolWorkerThreadAdjustmentAdjustment),
            (Provider::Runtime, 56) => ThreadPoolWorkerThreadAdjustmentStats::read(reader, version).map(Self::ThreadPoolWorkerThreadAdjustmentStats),
            (Provider::Runtime, 59) => ThreadPoolMinMaxThreads::read(reader, version).map(Self::ThreadPoolMinMaxThreads),
            (Provider::Runtime, 60) => ThreadPoolWorkingThreadCount::read(reader, version).map(Self::ThreadPoolWorkingThreadCount),
            (Provider::Runtime, 61) => ThreadPoolWork::read(reader, version).map(Self::ThreadPoolEnqueue),
            (Provider::Runtime, 62) => ThreadPoolWork::read(reader, version).map(Self::ThreadPoolDequeue),
            (Provider::Runtime, 63) => ThreadPoolIoEnqueue::read(reader, version).map(Self::ThreadPoolIoEnqueue),
            (Provider::Runtime, 64) => ThreadPoolIo::read(reader, version).map(Self::ThreadPoolIoDequeue),
            (Provider::Runtime, 65) => ThreadPoolIo::read(reader, version).map(Self::ThreadPoolIoPack),
            (Provider::Runtime, 58) => YieldProcessorMeasurement::read(reader, version).map(Self::YieldProcessorMeasurement),
            (Provider::Runtime, 70) => ThreadId::read(reader, version).map(Self::ThreadCreating),
            (Provider::Runtime, 71) => ThreadId::read(reader, version).map(Self::ThreadRunning),
            (Provider::Runtime, 85) => ThreadCreated::read(reader, version).map(Self::ThreadCreated),
            (Provider::Runtime, 86) => ThreadTerminated::read(reader, version).map(Self::ThreadTerminated),
            (Provider::Rundown, 159) => ThreadCreated::read(reader, version).map(Self::ThreadDcStop),
            (Provider::Runtime, 141) if version >= 1 => MethodRange::read(reader, version).map(Self::MethodLoad),
            (Provider::Runtime, 142) if version >= 1 => MethodRange::read(reader, version).map(Self::MethodUnload),
            (Provider::Rundown, 141) if version >= 1 => MethodRange::read(reader, version).map(Self::MethodDcStart),
            (Provider::Rundown, 142) if version >= 1 => MethodRange::read(reader, version).map(Self::MethodDcStop),
            (Provider::Runtime, 143) if version >= 1 => MethodCode::read(reader, version).map(Self::MethodLoadVerbose),
            (Provider::Runtime, 144) if version >= 1 => MethodCode::read(reader, version).map(Self::MethodUnloadVerbose),
            (Provider::Rundown, 143) if version >= 1 => MethodCode::read(reader, version).map(Self::MethodDcStartVerbose),
            (Provider::Rundown, 144) if version >= 1 => MethodCode::read(reader, version).map(Self::MethodDcStopVerbose),
            (Provider::Runtime, 145) if version >= 1 => MethodJittingStarted::read(reader, version).map(Self::MethodJittingStarted),
            (Provider::Runtime, 146) => MethodMemoryAllocatedForJitCode::read(reader, version).map(Self::MethodMemoryAllocatedForJitCode),
            (Provider::Runtime, 72) => MethodDetails::read(reader, version).map(Self::MethodDetails),
            (Provider::Runtime, 190) => IlToNativeMap::read(reader, version).map(Self::MethodIlToNativeMap),
            (Provider::Rundown, 149) => IlToNativeMap::read(reader, version).map(Self::MethodIlToNativeMapDcStart),
            (Provider::Rundown, 150) => IlToNativeMap::read(reader, version).map(Self::MethodIlToNativeMapDcStop),
            (Provider::Runtime, 185) => MethodInliningSucceeded::read(reader, version).map(Self::MethodInliningSucceeded),
            (Provider::Runtime, 192) => MethodInliningFailed::read(reader, version).map(Self::MethodInliningFailed),
            (Provider::Runtime, 188) => MethodTailCallSucceeded::read(reader, version).map(Self::MethodTailCallSucceeded),
            (Provider::Runtime, 191) => MethodTailCallFailed::read(reader, version).map(Self::MethodTailCallFailed),
            (Provider::Runtime, 160) => R2RGetEntryPointStart::read(reader, version).map(Self::R2RGetEntryPointStart),
            (Provider::Runtime, 159) => R2RGetEntryPoint::read(reader, version).map(Self::R2RGetEntryPoint),
            (Provider::Runtime, 152) if version >= 1 => Module::read(reader, version).map(Self::ModuleLoad),
            (Provider::Runtime, 153) if version >= 1 => Module::read(reader, version).map(Self::ModuleUnload),
            (Provider::Rundown, 153) if version >= 1 => Module::read(reader, version).map(Self::ModuleDcStart),
            (Provider::Rundown, 154) if version >= 1 => Module::read(reader, version).map(Self::ModuleDcStop),
            (Provider::Runtime, 151) if version >= 1 => DomainModule::read(reader, version).map(Self::DomainModuleLoad),
            (Provider::Rundown, 151) if version >= 1 => DomainModule::read(reader, version).map(Self::DomainModuleDcStart),
            (Provider::Rundown, 152) if version >= 1 => DomainModule::read(reader, version).map(Self::DomainModuleDcStop),
            (Provider::Runtime, 154) if version >= 1 => Assembly::read(reader, version).map(Self::AssemblyLoad),
            (Provider::Runtime, 155) if version >= 1 => Assembly::read(reader, version).map(Self::AssemblyUnload),
            (Provider::Rundown, 155) if version >= 1 => Assembly::read(reader, version).map(Self::AssemblyDcStart),
            (Provider::Rundown, 156) if version >= 1 => Assembly::read(reader, version).map(Self::AssemblyDcStop),
            (Provider::Runtime, 156) if version >= 1 => AppDomain::read(reader, version).map(Self::AppDomainLoad),
            (Provider::Runtime, 157) if version >= 1 => AppDomain::read(reader, version).map(Self::AppDomainUnload),
            (Provider::Rundown, 157) if version >= 1 => AppDomain::read(reader, version).map(Self::AppDomainDcStart),
            (Provider::Rundown, 158) if version >= 1 => AppDomain::read(reader, version).map(Self::AppDomainDcStop),
            (Provider::Runtime, 290) => AssemblyLoaderStart::read(reader, version).map(Self::AssemblyLoaderStart),
            (Provider::Runtime, 291) => AssemblyLoaderStop::read(reader, version).map(Self::AssemblyLoaderStop),
            (Provider::Runtime, 292) => AssemblyLoaderResolutionAttempted::read(reader, version).map(Self::AssemblyLoaderResolutionAttempted),
            (Provider::Runtime, 296) => AssemblyLoaderKnownPathProbed::read(reader, version).map(Self::AssemblyLoaderKnownPathProbed),
            (Provider::Runtime, 280) => TieredCompilationSettings::read(reader, version).map(Self::TieredCompilationSettings),
            (Provider::Rundown, 280) => TieredCompilationSettings::read(reader, version).map(Self::TieredCompilationSettingsDcStart),
            (Provider::Runtime, 281) => Instance::read(reader, version).map(Self::TieredCompilationPause),
            (Provider::Runtime, 282) => TieredCompilationResume::read(reader, version).map(Self::TieredCompilationResume),
            (Provider::Runtime, 283) => TieredCompilationBackgroundJitStart::read(reader, version).map(Self::TieredCompilationBackgroundJitStart),
            (Provider::Runtime, 284) => TieredCompilationBackgroundJitStop::read(reader, version).map(Self::TieredCompilationBackgroundJitStop),
            (Provider::Runtime, 187) => RuntimeStart::read(reader, version).map(Self::RuntimeStart),
            (Provider::Rundown, 187) => RuntimeStart::read(reader, version).map(Self::RuntimeDcStart),
            (Provider::SampleProfiler, 0) => ThreadSample::read(reader, version).map(Self::ThreadSample),
            (Provider::UniversalSystem, 0) => Process::read(reader, version).map(Self::ExistingProcess),
            (Provider::UniversalSystem, 1) => Process::read(reader, version).map(Self::ProcessCreate),
            (Provider::UniversalSystem, 2) => Nothing::read(reader, version).map(Self::ProcessExit),
            (Provider::UniversalSystem, 3) => ProcessMapping::read(reader, version).map(Self::ProcessMapping),
            (Provider::UniversalSystem, 4) => ProcessSymbol::read(reader, version).map(Self::ProcessSymbol),
            (Provider::UniversalSystem, 5) => ProcessMappingMetadata::read(reader, version).map(Self::ProcessMappingMetadata),
            _ => return None,
        })
    }
}

/// The payload of:
///
/// * `AllocationSampling`: event 303 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AllocationSampled<'a> {
    /// The heap that the object is in: small, large or pinned objects.
    pub allocation_kind: GcAllocationKind,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The full name of the type.
    pub type_name: Utf16<'a>,
    /// The address of the object.
    pub address: u64,
    /// Bytes of the object.
    pub object_size: u64,
    /// The offset of the drawn byte in the object.
    pub sampled_byte_offset: u64,
}

impl<'a> PayloadView<'a> for AllocationSampled<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let allocation_kind = GcAllocationKind(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let type_id = r.address()?;
        r.field_done();
        let type_name = r.utf16()?;
        r.field_done();
        let address = r.address()?;
        r.field_done();
        let object_size = r.u64()?;
        r.field_done();
        let sampled_byte_offset = r.u64()?;
        r.field_done();
        Ok(Self { allocation_kind, clr_instance_id, type_id, type_name, address, object_size, sampled_byte_offset })
    }
}

/// The payload of:
///
/// * `GC/AllocationTick`: event 10 of `Microsoft-Windows-DotNETRuntime`, from version 2.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AllocationTick<'a> {
    /// Bytes allocated since the last of these events, in 32 bits.
    pub allocation_amount: u32,
    /// The heap that the object is in: small, large or pinned objects.
    pub allocation_kind: GcAllocationKind,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Bytes allocated since the last of these events.
    pub allocation_amount64: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The full name of the type.
    pub type_name: Utf16<'a>,
    /// The number of the heap.
    pub heap_index: u32,
    /// The address of the object. From version 3 on.
    pub address: Option<u64>,
    /// Bytes of the object. From version 4 on.
    pub object_size: Option<u64>,
}

impl<'a> PayloadView<'a> for AllocationTick<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let allocation_amount = r.u32()?;
        r.field_done();
        let allocation_kind = GcAllocationKind(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let allocation_amount64 = r.u64()?;
        r.field_done();
        let type_id = r.address()?;
        r.field_done();
        let type_name = r.utf16()?;
        r.field_done();
        let heap_index = r.u32()?;
        r.field_done();
        let address = if version < 3 { None } else { Some(r.address()?) };
        r.field_done();
        let object_size = if version < 4 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { allocation_amount, allocation_kind, clr_instance_id, allocation_amount64, type_id, type_name, heap_index, address, object_size })
    }
}

/// The payload of:
///
/// * `Loader/AppDomainLoad`: event 156 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/AppDomainUnload`: event 157 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/AppDomainDCStart`: event 157 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Loader/AppDomainDCStop`: event 158 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AppDomain<'a> {
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// Properties of the application domain.
    pub app_domain_flags: AppDomainFlags,
    /// The name of the application domain.
    pub app_domain_name: Utf16<'a>,
    /// The number of the application domain in order of creation.
    pub app_domain_index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for AppDomain<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let app_domain_id = r.u64()?;
        r.field_done();
        let app_domain_flags = AppDomainFlags(r.u32()?);
        r.field_done();
        let app_domain_name = r.utf16()?;
        r.field_done();
        let app_domain_index = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { app_domain_id, app_domain_flags, app_domain_name, app_domain_index, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Loader/AssemblyLoad`: event 154 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/AssemblyUnload`: event 155 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/AssemblyDCStart`: event 155 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Loader/AssemblyDCStop`: event 156 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Assembly<'a> {
    /// The runtime's number for the assembly.
    pub assembly_id: u64,
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// The runtime's number for how the assembly was bound.
    pub binding_id: u64,
    /// Properties of the assembly.
    pub assembly_flags: AssemblyFlags,
    /// The full name of the assembly: name, version, culture, public key token.
    pub fully_qualified_assembly_name: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for Assembly<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let assembly_id = r.u64()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let binding_id = r.u64()?;
        r.field_done();
        let assembly_flags = AssemblyFlags(r.u32()?);
        r.field_done();
        let fully_qualified_assembly_name = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { assembly_id, app_domain_id, binding_id, assembly_flags, fully_qualified_assembly_name, clr_instance_id })
    }
}

/// The payload of:
///
/// * `AssemblyLoader/KnownPathProbed`: event 296 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AssemblyLoaderKnownPathProbed<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The path that was probed.
    pub file_path: Utf16<'a>,
    /// The list that the path comes from.
    pub source: KnownPathSource,
    /// The HRESULT of the probe; 0 if the file was there.
    pub result: i32,
}

impl<'a> PayloadView<'a> for AssemblyLoaderKnownPathProbed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let file_path = r.utf16()?;
        r.field_done();
        let source = KnownPathSource(u32::from(r.u16()?));
        r.field_done();
        let result = r.i32()?;
        r.field_done();
        Ok(Self { clr_instance_id, file_path, source, result })
    }
}

/// The payload of:
///
/// * `AssemblyLoader/ResolutionAttempted`: event 292 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AssemblyLoaderResolutionAttempted<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The full name of the assembly that is looked for.
    pub assembly_name: Utf16<'a>,
    /// The stage of the search.
    pub stage: ResolutionAttemptedStage,
    /// The name of the load context that is asked.
    pub assembly_load_context: Utf16<'a>,
    /// The outcome of the stage.
    pub result: ResolutionAttemptedResult,
    /// The full name of the assembly that was found; empty for none.
    pub result_assembly_name: Utf16<'a>,
    /// The path of the assembly that was found; empty for none.
    pub result_assembly_path: Utf16<'a>,
    /// The reason why the stage failed; empty if it did not.
    pub error_message: Utf16<'a>,
}

impl<'a> PayloadView<'a> for AssemblyLoaderResolutionAttempted<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let assembly_name = r.utf16()?;
        r.field_done();
        let stage = ResolutionAttemptedStage(u32::from(r.u16()?));
        r.field_done();
        let assembly_load_context = r.utf16()?;
        r.field_done();
        let result = ResolutionAttemptedResult(u32::from(r.u16()?));
        r.field_done();
        let result_assembly_name = r.utf16()?;
        r.field_done();
        let result_assembly_path = r.utf16()?;
        r.field_done();
        let error_message = r.utf16()?;
        r.field_done();
        Ok(Self { clr_instance_id, assembly_name, stage, assembly_load_context, result, result_assembly_name, result_assembly_path, error_message })
    }
}

/// The payload of:
///
/// * `AssemblyLoader/Start`: event 290 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AssemblyLoaderStart<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The full name of the assembly that is looked for.
    pub assembly_name: Utf16<'a>,
    /// The path of the assembly that is looked for; empty if it is looked for by name.
    pub assembly_path: Utf16<'a>,
    /// The full name of the assembly that refers to it.
    pub requesting_assembly: Utf16<'a>,
    /// The name of the load context that is asked.
    pub assembly_load_context: Utf16<'a>,
    /// The load context of the assembly that refers to it.
    pub requesting_assembly_load_context: Utf16<'a>,
}

impl<'a> PayloadView<'a> for AssemblyLoaderStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let assembly_name = r.utf16()?;
        r.field_done();
        let assembly_path = r.utf16()?;
        r.field_done();
        let requesting_assembly = r.utf16()?;
        r.field_done();
        let assembly_load_context = r.utf16()?;
        r.field_done();
        let requesting_assembly_load_context = r.utf16()?;
        r.field_done();
        Ok(Self { clr_instance_id, assembly_name, assembly_path, requesting_assembly, assembly_load_context, requesting_assembly_load_context })
    }
}

/// The payload of:
///
/// * `AssemblyLoader/Stop`: event 291 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AssemblyLoaderStop<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The full name of the assembly that is looked for.
    pub assembly_name: Utf16<'a>,
    /// The path of the assembly that is looked for; empty if it is looked for by name.
    pub assembly_path: Utf16<'a>,
    /// The full name of the assembly that refers to it.
    pub requesting_assembly: Utf16<'a>,
    /// The name of the load context that is asked.
    pub assembly_load_context: Utf16<'a>,
    /// The load context of the assembly that refers to it.
    pub requesting_assembly_load_context: Utf16<'a>,
    /// Whether the assembly was found.
    pub success: bool,
    /// The full name of the assembly that was found; empty for none.
    pub result_assembly_name: Utf16<'a>,
    /// The path of the assembly that was found; empty for none.
    pub result_assembly_path: Utf16<'a>,
    /// Whether the answer was there from an earlier search.
    pub cached: bool,
}

impl<'a> PayloadView<'a> for AssemblyLoaderStop<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let assembly_name = r.utf16()?;
        r.field_done();
        let assembly_path = r.utf16()?;
        r.field_done();
        let requesting_assembly = r.utf16()?;
        r.field_done();
        let assembly_load_context = r.utf16()?;
        r.field_done();
        let requesting_assembly_load_context = r.utf16()?;
        r.field_done();
        let success = r.bool32()?;
        r.field_done();
        let result_assembly_name = r.utf16()?;
        r.field_done();
        let result_assembly_path = r.utf16()?;
        r.field_done();
        let cached = r.bool32()?;
        r.field_done();
        Ok(Self { clr_instance_id, assembly_name, assembly_path, requesting_assembly, assembly_load_context, requesting_assembly_load_context, success, result_assembly_name, result_assembly_path, cached })
    }
}

/// One element of [`BulkType`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BulkTypeRow<'a> {
    /// The address of the type's method table.
    pub type_id: u64,
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The token of the type in the metadata of its module.
    pub type_name_id: u32,
    /// Properties, as bits.
    pub flags: TypeFlags,
    /// The `CorElementType` of the type.
    pub cor_element_type: u8,
    /// The name.
    pub name: Utf16<'a>,
    /// The type arguments, by their method tables' addresses.
    pub type_parameters: List<'a, u64>,
}

impl<'a> Element<'a> for BulkTypeRow<'a> {
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let type_id = r.u64()?;
        let module_id = r.u64()?;
        let type_name_id = r.u32()?;
        let flags = TypeFlags(r.u32()?);
        let cor_element_type = r.u8()?;
        let name = r.utf16()?;
        let count = r.u32()?;
        let type_parameters = List::read(r, count)?;
        Ok(Self { type_id, module_id, type_name_id, flags, cor_element_type, name, type_parameters })
    }
}

/// The payload of:
///
/// * `Type/BulkType`: event 15 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BulkType<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, BulkTypeRow<'a>>,
}

impl<'a> PayloadView<'a> for BulkType<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `Contention/LockCreated`: event 90 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ContentionLockCreated {
    /// The runtime's number for the lock.
    pub lock_id: u64,
    /// The address of the object that is waited for.
    pub associated_object_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ContentionLockCreated {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let lock_id = r.address()?;
        r.field_done();
        let associated_object_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { lock_id, associated_object_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Contention/Start`: event 81 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ContentionStart {
    /// Whether the lock is of managed or of native code.
    pub contention_flags: ContentionFlags,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The runtime's number for the lock. From version 2 on.
    pub lock_id: Option<u64>,
    /// The address of the object that is waited for. From version 2 on.
    pub associated_object_id: Option<u64>,
    /// The operating system's number for the thread that holds the lock. From version 2 on.
    pub lock_owner_thread_id: Option<u64>,
}

impl<'a> PayloadView<'a> for ContentionStart {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let contention_flags = ContentionFlags(u32::from(r.u8()?));
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let lock_id = if version < 2 { None } else { Some(r.address()?) };
        r.field_done();
        let associated_object_id = if version < 2 { None } else { Some(r.address()?) };
        r.field_done();
        let lock_owner_thread_id = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { contention_flags, clr_instance_id, lock_id, associated_object_id, lock_owner_thread_id })
    }
}

/// The payload of:
///
/// * `Contention/Stop`: event 91 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ContentionStop {
    /// Whether the lock is of managed or of native code.
    pub contention_flags: ContentionFlags,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The length of the wait, in nanoseconds. From version 1 on.
    pub duration_ns: Option<f64>,
}

impl<'a> PayloadView<'a> for ContentionStop {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let contention_flags = ContentionFlags(u32::from(r.u8()?));
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let duration_ns = if version < 1 { None } else { Some(r.f64()?) };
        r.field_done();
        Ok(Self { contention_flags, clr_instance_id, duration_ns })
    }
}

/// The payload of:
///
/// * `Loader/DomainModuleLoad`: event 151 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/DomainModuleDCStart`: event 151 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Loader/DomainModuleDCStop`: event 152 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DomainModule<'a> {
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The runtime's number for the assembly.
    pub assembly_id: u64,
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// Properties of the module.
    pub module_flags: ModuleFlags,
    /// Reserved.
    pub reserved1: u32,
    /// The path of the module.
    pub module_il_path: Utf16<'a>,
    /// The path of the module's native image; empty without one.
    pub module_native_path: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for DomainModule<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let module_id = r.u64()?;
        r.field_done();
        let assembly_id = r.u64()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let module_flags = ModuleFlags(r.u32()?);
        r.field_done();
        let reserved1 = r.u32()?;
        r.field_done();
        let module_il_path = r.utf16()?;
        r.field_done();
        let module_native_path = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { module_id, assembly_id, app_domain_id, module_flags, reserved1, module_il_path, module_native_path, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ExceptionCatch/Start`: event 250 of `Microsoft-Windows-DotNETRuntime`.
/// * `ExceptionFinally/Start`: event 252 of `Microsoft-Windows-DotNETRuntime`.
/// * `ExceptionFilter/Start`: event 254 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ExceptionHandler<'a> {
    /// The address of the handler.
    pub entry_eip: u64,
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The name of the method.
    pub method_name: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ExceptionHandler<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let entry_eip = r.u64()?;
        r.field_done();
        let method_id = r.u64()?;
        r.field_done();
        let method_name = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { entry_eip, method_id, method_name, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Exception/Start`: event 80 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ExceptionStart<'a> {
    /// The full name of the exception's type.
    pub exception_type: Utf16<'a>,
    /// The message of the exception.
    pub exception_message: Utf16<'a>,
    /// The address of the instruction that threw.
    pub exception_eip: u64,
    /// The HRESULT of the exception.
    pub exception_hresult: u32,
    /// Properties of the exception.
    pub exception_flags: ExceptionThrownFlags,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ExceptionStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let exception_type = r.utf16()?;
        r.field_done();
        let exception_message = r.utf16()?;
        r.field_done();
        let exception_eip = r.address()?;
        r.field_done();
        let exception_hresult = r.u32()?;
        r.field_done();
        let exception_flags = ExceptionThrownFlags(u32::from(r.u16()?));
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { exception_type, exception_message, exception_eip, exception_hresult, exception_flags, clr_instance_id })
    }
}

/// One element of [`GcBulkEdge`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkEdgeRow {
    /// The address of the object that is referred to.
    pub value: u64,
    /// Always 0.
    pub referencing_field_id: u32,
}

impl<'a> Element<'a> for GcBulkEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((8, 12));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let value = r.address()?;
        let referencing_field_id = r.u32()?;
        Ok(Self { value, referencing_field_id })
    }
}

/// The payload of:
///
/// * `GC/BulkEdge`: event 19 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkEdge<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkEdgeRow>,
}

impl<'a> PayloadView<'a> for GcBulkEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkMovedObjectRanges`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkMovedObjectRangesRow {
    /// The address that the objects move from.
    pub old_range_base: u64,
    /// The address that the objects move to.
    pub new_range_base: u64,
    /// The length of the range, in bytes.
    pub range_length: u64,
}

impl<'a> Element<'a> for GcBulkMovedObjectRangesRow {
    const SIZES: Option<(usize, usize)> = Some((16, 24));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let old_range_base = r.address()?;
        let new_range_base = r.address()?;
        let range_length = r.u64()?;
        Ok(Self { old_range_base, new_range_base, range_length })
    }
}

/// The payload of:
///
/// * `GC/BulkMovedObjectRanges`: event 22 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkMovedObjectRanges<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkMovedObjectRangesRow>,
}

impl<'a> PayloadView<'a> for GcBulkMovedObjectRanges<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkNode`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkNodeRow {
    /// The address of the object.
    pub address: u64,
    /// Bytes of the object.
    pub size: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// References that the object holds.
    pub edge_count: u64,
}

impl<'a> Element<'a> for GcBulkNodeRow {
    const SIZES: Option<(usize, usize)> = Some((28, 32));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let address = r.address()?;
        let size = r.u64()?;
        let type_id = r.u64()?;
        let edge_count = r.u64()?;
        Ok(Self { address, size, type_id, edge_count })
    }
}

/// The payload of:
///
/// * `GC/BulkNode`: event 18 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkNode<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkNodeRow>,
}

impl<'a> PayloadView<'a> for GcBulkNode<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRcw`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRcwRow {
    /// The address of the object.
    pub object_id: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The address of the `IUnknown`.
    pub iunknown: u64,
    /// The address of the virtual table.
    pub vtable: u64,
    /// References that hold the wrapper.
    pub ref_count: u32,
    /// Properties, as bits.
    pub flags: u32,
}

impl<'a> Element<'a> for GcBulkRcwRow {
    const SIZES: Option<(usize, usize)> = Some((40, 40));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let object_id = r.u64()?;
        let type_id = r.u64()?;
        let iunknown = r.u64()?;
        let vtable = r.u64()?;
        let ref_count = r.u32()?;
        let flags = r.u32()?;
        Ok(Self { object_id, type_id, iunknown, vtable, ref_count, flags })
    }
}

/// The payload of:
///
/// * `GC/BulkRCW`: event 37 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRcw<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkRcwRow>,
}

impl<'a> PayloadView<'a> for GcBulkRcw<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootCcw`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootCcwRow {
    /// The address of the root.
    pub gc_root_id: u64,
    /// The address of the object.
    pub object_id: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The address of the `IUnknown`.
    pub iunknown: u64,
    /// References that hold the wrapper.
    pub ref_count: u32,
    /// References that hold the wrapper while it is pegged.
    pub pegged_ref_count: u32,
    /// Properties, as bits.
    pub flags: GcRootCcwFlags,
}

impl<'a> Element<'a> for GcBulkRootCcwRow {
    const SIZES: Option<(usize, usize)> = Some((44, 44));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let gc_root_id = r.u64()?;
        let object_id = r.u64()?;
        let type_id = r.u64()?;
        let iunknown = r.u64()?;
        let ref_count = r.u32()?;
        let pegged_ref_count = r.u32()?;
        let flags = GcRootCcwFlags(r.u32()?);
        Ok(Self { gc_root_id, object_id, type_id, iunknown, ref_count, pegged_ref_count, flags })
    }
}

/// The payload of:
///
/// * `GC/BulkRootCCW`: event 36 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootCcw<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkRootCcwRow>,
}

impl<'a> PayloadView<'a> for GcBulkRootCcw<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootConditionalWeakTableElementEdge`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootConditionalWeakTableElementEdgeRow {
    /// The address of the key object.
    pub gc_key_node_id: u64,
    /// The address of the value object.
    pub gc_value_node_id: u64,
    /// The address of the root.
    pub gc_root_id: u64,
}

impl<'a> Element<'a> for GcBulkRootConditionalWeakTableElementEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((12, 24));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let gc_key_node_id = r.address()?;
        let gc_value_node_id = r.address()?;
        let gc_root_id = r.address()?;
        Ok(Self { gc_key_node_id, gc_value_node_id, gc_root_id })
    }
}

/// The payload of:
///
/// * `GC/BulkRootConditionalWeakTableElementEdge`: event 17 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootConditionalWeakTableElementEdge<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkRootConditionalWeakTableElementEdgeRow>,
}

impl<'a> PayloadView<'a> for GcBulkRootConditionalWeakTableElementEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootEdge`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootEdgeRow {
    /// The address of the object that the root holds.
    pub rooted_node_address: u64,
    /// The kind of root.
    pub gc_root_kind: GcRootKind,
    /// Properties of the root.
    pub gc_root_flag: GcRootFlags,
    /// The address of the root.
    pub gc_root_id: u64,
}

impl<'a> Element<'a> for GcBulkRootEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((13, 21));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let rooted_node_address = r.address()?;
        let gc_root_kind = GcRootKind(u32::from(r.u8()?));
        let gc_root_flag = GcRootFlags(r.u32()?);
        let gc_root_id = r.address()?;
        Ok(Self { rooted_node_address, gc_root_kind, gc_root_flag, gc_root_id })
    }
}

/// The payload of:
///
/// * `GC/BulkRootEdge`: event 16 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootEdge<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkRootEdgeRow>,
}

impl<'a> PayloadView<'a> for GcBulkRootEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootStaticVar`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootStaticVarRow<'a> {
    /// The address of the root.
    pub gc_root_id: u64,
    /// The address of the object.
    pub object_id: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// Properties, as bits.
    pub flags: GcRootStaticVarFlags,
    /// The name of the static field.
    pub field_name: Utf16<'a>,
}

impl<'a> Element<'a> for GcBulkRootStaticVarRow<'a> {
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let gc_root_id = r.u64()?;
        let object_id = r.u64()?;
        let type_id = r.u64()?;
        let flags = GcRootStaticVarFlags(r.u32()?);
        let field_name = r.utf16()?;
        Ok(Self { gc_root_id, object_id, type_id, flags, field_name })
    }
}

/// The payload of:
///
/// * `GC/BulkRootStaticVar`: event 38 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkRootStaticVar<'a> {
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkRootStaticVarRow<'a>>,
}

impl<'a> PayloadView<'a> for GcBulkRootStaticVar<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { app_domain_id, clr_instance_id, values })
    }
}

/// One element of [`GcBulkSurvivingObjectRanges`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkSurvivingObjectRangesRow {
    /// The address of the first object.
    pub range_base: u64,
    /// The length of the range, in bytes.
    pub range_length: u64,
}

impl<'a> Element<'a> for GcBulkSurvivingObjectRangesRow {
    const SIZES: Option<(usize, usize)> = Some((12, 16));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let range_base = r.address()?;
        let range_length = r.u64()?;
        Ok(Self { range_base, range_length })
    }
}

/// The payload of:
///
/// * `GC/BulkSurvivingObjectRanges`: event 21 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcBulkSurvivingObjectRanges<'a> {
    /// The number of this event among those of its kind in a collection.
    pub index: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcBulkSurvivingObjectRangesRow>,
}

impl<'a> PayloadView<'a> for GcBulkSurvivingObjectRanges<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `GC/CreateSegment`: event 5 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcCreateSegment {
    /// The address of the segment.
    pub address: u64,
    /// Bytes of the segment.
    pub size: u64,
    /// The generations that the segment is for.
    pub kind: GcSegmentType,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcCreateSegment {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let address = r.u64()?;
        r.field_done();
        let size = r.u64()?;
        r.field_done();
        let kind = GcSegmentType(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { address, size, kind, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/DestoryGCHandle`: event 31 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcDestroyHandle {
    /// The address of the handle.
    pub handle_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcDestroyHandle {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let handle_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { handle_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/DynamicTraceEvent`: event 39 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcDynamic<'a> {
    /// The name.
    pub name: Utf16<'a>,
    /// The data, whose layout the name stands for.
    pub data: &'a [u8],
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcDynamic<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let name = r.utf16()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let data = r.bytes(count)?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { name, data, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/FinalizeObject`: event 29 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcFinalizeObject {
    /// The address of the type's method table.
    pub type_id: u64,
    /// The address of the object.
    pub object_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcFinalizeObject {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let type_id = r.address()?;
        r.field_done();
        let object_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { type_id, object_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/FinalizersStop`: event 13 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcFinalizersStop {
    /// Finalizers that were run.
    pub count: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcFinalizersStop {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { count, clr_instance_id })
    }
}

/// One element of [`GcFitBucketInfo`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcFitBucketInfoRow {
    /// The number of the bucket.
    pub index: u16,
    /// Items in the bucket.
    pub count: u32,
    /// Bytes in the bucket.
    pub size: u64,
}

impl<'a> Element<'a> for GcFitBucketInfoRow {
    const SIZES: Option<(usize, usize)> = Some((12, 16));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let index = r.u16()?;
        r.pad16()?;
        let count = r.u32()?;
        let size = r.address()?;
        Ok(Self { index, count, size })
    }
}

/// The payload of:
///
/// * `GC/FitBucketInfo`: event 209 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcFitBucketInfo<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Whether the buckets are of free-list items or of plugs.
    pub bucket_kind: GcBucketKind,
    /// Bytes in all buckets.
    pub total_size: u64,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcFitBucketInfoRow>,
}

impl<'a> PayloadView<'a> for GcFitBucketInfo<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let bucket_kind = GcBucketKind(u32::from(r.u16()?));
        r.field_done();
        let total_size = r.u64()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, bucket_kind, total_size, values })
    }
}

/// The payload of:
///
/// * `GC/FreeSegment`: event 6 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcFreeSegment {
    /// The address of the segment.
    pub address: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcFreeSegment {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let address = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { address, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/GenerationRange`: event 23 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcGenerationRange {
    /// The generation.
    pub generation: u8,
    /// The address that the generation begins at.
    pub range_start: u64,
    /// Bytes that the generation uses.
    pub range_used_length: u64,
    /// Bytes reserved for the generation.
    pub range_reserved_length: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcGenerationRange {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let generation = r.u8()?;
        r.field_done();
        let range_start = r.address()?;
        r.field_done();
        let range_used_length = r.u64()?;
        r.field_done();
        let range_reserved_length = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { generation, range_start, range_used_length, range_reserved_length, clr_instance_id })
    }
}

/// One element of [`GcGlobalHeapHistory`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcGlobalHeapHistoryRow {
    /// The length of a phase of the collection, in microseconds.
    pub time: u32,
}

impl<'a> Element<'a> for GcGlobalHeapHistoryRow {
    const SIZES: Option<(usize, usize)> = Some((4, 4));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let time = r.u32()?;
        Ok(Self { time })
    }
}

/// The payload of:
///
/// * `GC/GlobalHeapHistory`: event 205 of `Microsoft-Windows-DotNETRuntime`, from version 2.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcGlobalHeapHistory<'a> {
    /// The budget of generation 0, in bytes.
    pub final_youngest_desired: u64,
    /// Heaps.
    pub num_heaps: i32,
    /// The oldest generation that is collected.
    pub condemned_generation: u32,
    /// The number of times that the budget of generation 0 was reduced.
    pub gen0_reduction_count: u32,
    /// The reason.
    pub reason: u32,
    /// The mechanisms of the collection, as bits.
    pub global_mechanisms: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The latency mode of the collector.
    pub pause_mode: u32,
    /// The load of the machine's memory, in percent.
    pub memory_pressure: u32,
    /// Reasons for the generation that was collected, as bits. From version 3 on.
    pub condemn_reasons0: Option<u32>,
    /// Further reasons for the generation that was collected, as bits. From version 3 on.
    pub condemn_reasons1: Option<u32>,
    /// The elements, in the order of the payload. From version 4 on.
    pub values: Option<List<'a, GcGlobalHeapHistoryRow>>,
}

impl<'a> PayloadView<'a> for GcGlobalHeapHistory<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let final_youngest_desired = r.u64()?;
        r.field_done();
        let num_heaps = r.i32()?;
        r.field_done();
        let condemned_generation = r.u32()?;
        r.field_done();
        let gen0_reduction_count = r.u32()?;
        r.field_done();
        let reason = r.u32()?;
        r.field_done();
        let global_mechanisms = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let pause_mode = r.u32()?;
        r.field_done();
        let memory_pressure = r.u32()?;
        r.field_done();
        let condemn_reasons0 = if version < 3 { None } else { Some(r.u32()?) };
        r.field_done();
        let condemn_reasons1 = if version < 3 { None } else { Some(r.u32()?) };
        r.field_done();
        let count = if version < 4 { 0 } else { r.u32()? };
        r.field_done();
        let values = if version < 4 { None } else { Some(List::read(r, count)?) };
        r.field_done();
        Ok(Self { final_youngest_desired, num_heaps, condemned_generation, gen0_reduction_count, reason, global_mechanisms, clr_instance_id, pause_mode, memory_pressure, condemn_reasons0, condemn_reasons1, values })
    }
}

/// The payload of:
///
/// * `GC/HeapStats`: event 4 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcHeapStats {
    /// Bytes in generation 0 after the collection.
    pub generation_size0: u64,
    /// Bytes promoted from generation 0.
    pub total_promoted_size0: u64,
    /// Bytes in generation 1 after the collection.
    pub generation_size1: u64,
    /// Bytes promoted from generation 1.
    pub total_promoted_size1: u64,
    /// Bytes in generation 2 after the collection.
    pub generation_size2: u64,
    /// Bytes that survived in generation 2.
    pub total_promoted_size2: u64,
    /// Bytes in the large object heap after the collection.
    pub generation_size3: u64,
    /// Bytes that survived in the large object heap.
    pub total_promoted_size3: u64,
    /// Bytes of objects that live on only for their finalizers.
    pub finalization_promoted_size: u64,
    /// Objects that live on only for their finalizers.
    pub finalization_promoted_count: u64,
    /// Pinned objects.
    pub pinned_object_count: u32,
    /// Sync blocks in use.
    pub sink_block_count: u32,
    /// Handles.
    pub gc_handle_count: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Bytes in the pinned object heap after the collection. From version 2 on.
    pub generation_size4: Option<u64>,
    /// Bytes that survived in the pinned object heap. From version 2 on.
    pub total_promoted_size4: Option<u64>,
}

impl<'a> PayloadView<'a> for GcHeapStats {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let generation_size0 = r.u64()?;
        r.field_done();
        let total_promoted_size0 = r.u64()?;
        r.field_done();
        let generation_size1 = r.u64()?;
        r.field_done();
        let total_promoted_size1 = r.u64()?;
        r.field_done();
        let generation_size2 = r.u64()?;
        r.field_done();
        let total_promoted_size2 = r.u64()?;
        r.field_done();
        let generation_size3 = r.u64()?;
        r.field_done();
        let total_promoted_size3 = r.u64()?;
        r.field_done();
        let finalization_promoted_size = r.u64()?;
        r.field_done();
        let finalization_promoted_count = r.u64()?;
        r.field_done();
        let pinned_object_count = r.u32()?;
        r.field_done();
        let sink_block_count = r.u32()?;
        r.field_done();
        let gc_handle_count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let generation_size4 = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        let total_promoted_size4 = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { generation_size0, total_promoted_size0, generation_size1, total_promoted_size1, generation_size2, total_promoted_size2, generation_size3, total_promoted_size3, finalization_promoted_size, finalization_promoted_count, pinned_object_count, sink_block_count, gc_handle_count, clr_instance_id, generation_size4, total_promoted_size4 })
    }
}

/// The payload of:
///
/// * `GC/Join`: event 203 of `Microsoft-Windows-DotNETRuntime`, from version 2.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcJoin {
    /// The number of the heap.
    pub heap: u32,
    /// Whether the join begins (0) or ends (1).
    pub join_time: u32,
    /// The kind of join: last, join, restart, first.
    pub join_type: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The number of the join within the collection.
    pub join_id: u32,
}

impl<'a> PayloadView<'a> for GcJoin {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let heap = r.u32()?;
        r.field_done();
        let join_time = r.u32()?;
        r.field_done();
        let join_type = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let join_id = r.u32()?;
        r.field_done();
        Ok(Self { heap, join_time, join_type, clr_instance_id, join_id })
    }
}

/// One element of [`GcLohCompact`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcLohCompactRow {
    /// The time that planning took, in microseconds.
    pub time_plan: u32,
    /// The time that compacting took, in microseconds.
    pub time_compact: u32,
    /// The time that relocating took, in microseconds.
    pub time_relocate: u32,
    /// References that were looked at.
    pub total_refs: u64,
    /// References that were null.
    pub zero_refs: u64,
}

impl<'a> Element<'a> for GcLohCompactRow {
    const SIZES: Option<(usize, usize)> = Some((20, 32));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let time_plan = r.u32()?;
        let time_compact = r.u32()?;
        let time_relocate = r.u32()?;
        r.padword()?;
        let total_refs = r.address()?;
        let zero_refs = r.address()?;
        Ok(Self { time_plan, time_compact, time_relocate, total_refs, zero_refs })
    }
}

/// The payload of:
///
/// * `GC/LOHCompact`: event 208 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcLohCompact<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcLohCompactRow>,
}

impl<'a> PayloadView<'a> for GcLohCompact<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `GC/MarkWithType`: event 202 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcMarkWithType {
    /// The number of the heap.
    pub heap_num: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The kind of root.
    pub kind: GcRootKind,
    /// Bytes promoted.
    pub bytes: u64,
}

impl<'a> PayloadView<'a> for GcMarkWithType {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let heap_num = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let kind = GcRootKind(r.u32()?);
        r.field_done();
        let bytes = r.u64()?;
        r.field_done();
        Ok(Self { heap_num, clr_instance_id, kind, bytes })
    }
}

/// The payload of:
///
/// * `GC/MarkStackRoots`: event 25 of `Microsoft-Windows-DotNETRuntime`.
/// * `GC/MarkFinalizeQueueRoots`: event 26 of `Microsoft-Windows-DotNETRuntime`.
/// * `GC/MarkHandles`: event 27 of `Microsoft-Windows-DotNETRuntime`.
/// * `GC/MarkCards`: event 28 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcMarked {
    /// The number of the heap.
    pub heap_num: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcMarked {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let heap_num = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { heap_num, clr_instance_id })
    }
}

/// One element of [`GcPerHeapHistory`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcPerHeapHistoryRow {
    /// Bytes in the generation before the collection.
    pub size_before: u64,
    /// Bytes in free-list items before the collection.
    pub free_list_before: u64,
    /// Bytes in free objects too small for the free list, before the collection.
    pub free_obj_before: u64,
    /// Bytes in the generation after the collection.
    pub size_after: u64,
    /// Bytes in free-list items after the collection.
    pub free_list_after: u64,
    /// Bytes in free objects too small for the free list, after the collection.
    pub free_obj_after: u64,
    /// Bytes that survived into the generation.
    pub survived_in: u64,
    /// Bytes that survived pinned.
    pub pinned_surv: u64,
    /// Bytes that survived and are not pinned.
    pub none_pinned_surv: u64,
    /// The budget of the generation until its next collection, in bytes.
    pub new_allocation: u64,
}

impl<'a> Element<'a> for GcPerHeapHistoryRow {
    const SIZES: Option<(usize, usize)> = Some((40, 80));
    fn read(r: &mut Reader<'a>) -> ReadResult<Self> {
        let size_before = r.address()?;
        let free_list_before = r.address()?;
        let free_obj_before = r.address()?;
        let size_after = r.address()?;
        let free_list_after = r.address()?;
        let free_obj_after = r.address()?;
        let survived_in = r.address()?;
        let pinned_surv = r.address()?;
        let none_pinned_surv = r.address()?;
        let new_allocation = r.address()?;
        Ok(Self { size_before, free_list_before, free_obj_before, size_after, free_list_after, free_obj_after, survived_in, pinned_surv, none_pinned_surv, new_allocation })
    }
}

/// The payload of:
///
/// * `GC/PerHeapHistory`: event 204 of `Microsoft-Windows-DotNETRuntime`, from version 3.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcPerHeapHistory<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Bytes allocated from free-list items.
    pub free_list_allocated: u64,
    /// Bytes of free-list items that were too small to allocate from.
    pub free_list_rejected: u64,
    /// Bytes allocated at the end of a segment.
    pub end_of_seg_allocated: u64,
    /// Bytes allocated in the generation that is collected, for objects that are moved.
    pub condemned_allocated: u64,
    /// Bytes allocated for pinned objects.
    pub pinned_allocated: u64,
    /// Bytes of pinned objects that the allocator passed.
    pub pinned_allocated_advance: u64,
    /// The share of free-list memory that could be allocated from, in percent.
    pub running_free_list_efficiency: u32,
    /// Reasons for the generation that was collected, as bits.
    pub condemn_reasons0: u32,
    /// Further reasons for the generation that was collected, as bits.
    pub condemn_reasons1: u32,
    /// Whether the heap was compacted and why, as bits.
    pub compact_mechanisms: u32,
    /// The mechanisms that expanded the heap, as bits.
    pub expand_mechanisms: u32,
    /// The number of the heap.
    pub heap_index: u32,
    /// Bytes committed for generation 0 beyond its need.
    pub extra_gen0_commit: u64,
    /// The elements, in the order of the payload.
    pub values: List<'a, GcPerHeapHistoryRow>,
}

impl<'a> PayloadView<'a> for GcPerHeapHistory<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let free_list_allocated = r.address()?;
        r.field_done();
        let free_list_rejected = r.address()?;
        r.field_done();
        let end_of_seg_allocated = r.address()?;
        r.field_done();
        let condemned_allocated = r.address()?;
        r.field_done();
        let pinned_allocated = r.address()?;
        r.field_done();
        let pinned_allocated_advance = r.address()?;
        r.field_done();
        let running_free_list_efficiency = r.u32()?;
        r.field_done();
        let condemn_reasons0 = r.u32()?;
        r.field_done();
        let condemn_reasons1 = r.u32()?;
        r.field_done();
        let compact_mechanisms = r.u32()?;
        r.field_done();
        let expand_mechanisms = r.u32()?;
        r.field_done();
        let heap_index = r.u32()?;
        r.field_done();
        let extra_gen0_commit = r.address()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let values = List::read(r, count)?;
        r.field_done();
        Ok(Self { clr_instance_id, free_list_allocated, free_list_rejected, end_of_seg_allocated, condemned_allocated, pinned_allocated, pinned_allocated_advance, running_free_list_efficiency, condemn_reasons0, condemn_reasons1, compact_mechanisms, expand_mechanisms, heap_index, extra_gen0_commit, values })
    }
}

/// The payload of:
///
/// * `GC/PinObjectAtGCTime`: event 33 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcPinObject<'a> {
    /// The address of the handle.
    pub handle_id: u64,
    /// The address of the object.
    pub object_id: u64,
    /// Bytes of the object.
    pub object_size: u64,
    /// The full name of the type.
    pub type_name: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcPinObject<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let handle_id = r.address()?;
        r.field_done();
        let object_id = r.address()?;
        r.field_done();
        let object_size = r.u64()?;
        r.field_done();
        let type_name = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { handle_id, object_id, object_size, type_name, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/SetGCHandle`: event 30 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcSetHandle {
    /// The address of the handle.
    pub handle_id: u64,
    /// The address of the object.
    pub object_id: u64,
    /// The kind of handle.
    pub kind: GcHandleKind,
    /// The generation.
    pub generation: u32,
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcSetHandle {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let handle_id = r.address()?;
        r.field_done();
        let object_id = r.address()?;
        r.field_done();
        let kind = GcHandleKind(r.u32()?);
        r.field_done();
        let generation = r.u32()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { handle_id, object_id, kind, generation, app_domain_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/SettingsRundown`: event 10 of `Microsoft-Windows-DotNETRuntimeRundown`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcSettingsRundown {
    /// The limit of the heap, in bytes; 0 for none.
    pub hard_limit: u64,
    /// The size from which objects are large, in bytes.
    pub loh_threshold: u64,
    /// The memory that the collector takes the machine to have, in bytes.
    pub physical_memory_config: u64,
    /// The configured least budget of generation 0, in bytes.
    pub gen0_min_budget_config: u64,
    /// The configured largest budget of generation 0, in bytes.
    pub gen0_max_budget_config: u64,
    /// The configured load of the machine's memory, in percent, that counts as high.
    pub high_mem_percent_config: u32,
    /// Settings, as bits.
    pub bit_settings: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcSettingsRundown {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let hard_limit = r.u64()?;
        r.field_done();
        let loh_threshold = r.u64()?;
        r.field_done();
        let physical_memory_config = r.u64()?;
        r.field_done();
        let gen0_min_budget_config = r.u64()?;
        r.field_done();
        let gen0_max_budget_config = r.u64()?;
        r.field_done();
        let high_mem_percent_config = r.u32()?;
        r.field_done();
        let bit_settings = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { hard_limit, loh_threshold, physical_memory_config, gen0_min_budget_config, gen0_max_budget_config, high_mem_percent_config, bit_settings, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/Start`: event 1 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcStart {
    /// The number of the collection: the n-th since the process began.
    pub count: u32,
    /// The oldest generation that is collected.
    pub depth: u32,
    /// The reason.
    pub reason: GcReason,
    /// Whether the collection is blocking, in the background, or during one in the background.
    pub kind: GcType,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The number that whoever asked for the collection gave it; 0 for none. From version 2 on.
    pub client_sequence_number: Option<u64>,
}

impl<'a> PayloadView<'a> for GcStart {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let depth = r.u32()?;
        r.field_done();
        let reason = GcReason(r.u32()?);
        r.field_done();
        let kind = GcType(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let client_sequence_number = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { count, depth, reason, kind, clr_instance_id, client_sequence_number })
    }
}

/// The payload of:
///
/// * `GC/Stop`: event 2 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcStop {
    /// The number of the collection: the n-th since the process began.
    pub count: u32,
    /// The oldest generation that is collected.
    pub depth: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcStop {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let depth = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { count, depth, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/SuspendEEStart`: event 9 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcSuspendStart {
    /// The reason.
    pub reason: GcSuspendEeReason,
    /// The number of the collection that the suspension is for.
    pub count: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcSuspendStart {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let reason = GcSuspendEeReason(r.u32()?);
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { reason, count, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/Triggered`: event 35 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GcTriggered {
    /// The reason.
    pub reason: GcReason,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for GcTriggered {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let reason = GcReason(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { reason, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/ILToNativeMap`: event 190 of `Microsoft-Windows-DotNETRuntime`.
/// * `Method/ILToNativeMapDCStart`: event 149 of `Microsoft-Windows-DotNETRuntimeRundown`.
/// * `Method/ILToNativeMapDCStop`: event 150 of `Microsoft-Windows-DotNETRuntimeRundown`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct IlToNativeMap<'a> {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The number of the method's replacement by a profiler; 0 for none.
    pub rejit_id: u64,
    /// The part of the method that the map is of.
    pub method_extent: u8,
    /// Offsets in the IL, in bytes, each beside one of `native_offsets`; the highest values stand for prolog, epilog and no IL.
    pub il_offsets: List<'a, u32>,
    /// Offsets in the code, in bytes.
    pub native_offsets: List<'a, u32>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The version of the IL. From version 1 on.
    pub il_version_id: Option<u64>,
}

impl<'a> PayloadView<'a> for IlToNativeMap<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let rejit_id = r.u64()?;
        r.field_done();
        let method_extent = r.u8()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let il_offsets = List::read(r, count)?;
        r.field_done();
        let native_offsets = List::read(r, count)?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let il_version_id = if version < 1 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { method_id, rejit_id, method_extent, il_offsets, native_offsets, clr_instance_id, il_version_id })
    }
}

/// The payload of:
///
/// * `GC/SuspendEEStop`: event 8 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `GC/RestartEEStart`: event 7 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `GC/RestartEEStop`: event 3 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `GC/CreateConcurrentThread`: event 11 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `GC/TerminateConcurrentThread`: event 12 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `GC/FinalizersStart`: event 14 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `WaitHandleWait/Stop`: event 302 of `Microsoft-Windows-DotNETRuntime`.
/// * `TieredCompilation/Pause`: event 281 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Instance {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for Instance {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/LoadVerbose`: event 143 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Method/UnloadVerbose`: event 144 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Method/DCStartVerbose`: event 143 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Method/DCStopVerbose`: event 144 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodCode<'a> {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The address of the code.
    pub method_start_address: u64,
    /// Bytes of code.
    pub method_size: u32,
    /// The token of the method in the metadata of its module.
    pub method_token: u32,
    /// Properties of the method and its code.
    pub method_flags: MethodFlags,
    /// Namespace and type of the method.
    pub method_namespace: Utf16<'a>,
    /// The name of the method.
    pub method_name: Utf16<'a>,
    /// The signature of the method.
    pub method_signature: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The number of the method's replacement by a profiler; 0 for none. From version 2 on.
    pub rejit_id: Option<u64>,
}

impl<'a> PayloadView<'a> for MethodCode<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let module_id = r.u64()?;
        r.field_done();
        let method_start_address = r.u64()?;
        r.field_done();
        let method_size = r.u32()?;
        r.field_done();
        let method_token = r.u32()?;
        r.field_done();
        let method_flags = MethodFlags(r.u32()?);
        r.field_done();
        let method_namespace = r.utf16()?;
        r.field_done();
        let method_name = r.utf16()?;
        r.field_done();
        let method_signature = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let rejit_id = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { method_id, module_id, method_start_address, method_size, method_token, method_flags, method_namespace, method_name, method_signature, clr_instance_id, rejit_id })
    }
}

/// The payload of:
///
/// * `Method/MethodDetails`: event 72 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodDetails<'a> {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The token of the method in the metadata of its module.
    pub method_token: u32,
    /// The runtime's number for the module that the method was loaded for.
    pub loader_module_id: u64,
    /// The type arguments, by their method tables' addresses.
    pub type_parameters: List<'a, u64>,
}

impl<'a> PayloadView<'a> for MethodDetails<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let type_id = r.u64()?;
        r.field_done();
        let method_token = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let loader_module_id = r.u64()?;
        r.field_done();
        let type_parameters = List::read(r, count)?;
        r.field_done();
        Ok(Self { method_id, type_id, method_token, loader_module_id, type_parameters })
    }
}

/// The payload of:
///
/// * `Method/InliningFailed`: event 192 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodInliningFailed<'a> {
    /// Namespace and type of the method that is compiled.
    pub method_being_compiled_namespace: Utf16<'a>,
    /// The name of the method that is compiled.
    pub method_being_compiled_name: Utf16<'a>,
    /// The signature of the method that is compiled.
    pub method_being_compiled_name_signature: Utf16<'a>,
    /// Namespace and type of the method that it is inlined into.
    pub inliner_namespace: Utf16<'a>,
    /// The name of the method that it is inlined into.
    pub inliner_name: Utf16<'a>,
    /// The signature of the method that it is inlined into.
    pub inliner_name_signature: Utf16<'a>,
    /// Namespace and type of the method that is inlined.
    pub inlinee_namespace: Utf16<'a>,
    /// The name of the method that is inlined.
    pub inlinee_name: Utf16<'a>,
    /// The signature of the method that is inlined.
    pub inlinee_name_signature: Utf16<'a>,
    /// Whether the method is never to be inlined.
    pub fail_always: bool,
    /// The reason, in the runtime's words.
    pub fail_reason: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodInliningFailed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_being_compiled_namespace = r.utf16()?;
        r.field_done();
        let method_being_compiled_name = r.utf16()?;
        r.field_done();
        let method_being_compiled_name_signature = r.utf16()?;
        r.field_done();
        let inliner_namespace = r.utf16()?;
        r.field_done();
        let inliner_name = r.utf16()?;
        r.field_done();
        let inliner_name_signature = r.utf16()?;
        r.field_done();
        let inlinee_namespace = r.utf16()?;
        r.field_done();
        let inlinee_name = r.utf16()?;
        r.field_done();
        let inlinee_name_signature = r.utf16()?;
        r.field_done();
        let fail_always = r.bool32()?;
        r.field_done();
        let fail_reason = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_being_compiled_namespace, method_being_compiled_name, method_being_compiled_name_signature, inliner_namespace, inliner_name, inliner_name_signature, inlinee_namespace, inlinee_name, inlinee_name_signature, fail_always, fail_reason, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/InliningSucceeded`: event 185 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodInliningSucceeded<'a> {
    /// Namespace and type of the method that is compiled.
    pub method_being_compiled_namespace: Utf16<'a>,
    /// The name of the method that is compiled.
    pub method_being_compiled_name: Utf16<'a>,
    /// The signature of the method that is compiled.
    pub method_being_compiled_name_signature: Utf16<'a>,
    /// Namespace and type of the method that it is inlined into.
    pub inliner_namespace: Utf16<'a>,
    /// The name of the method that it is inlined into.
    pub inliner_name: Utf16<'a>,
    /// The signature of the method that it is inlined into.
    pub inliner_name_signature: Utf16<'a>,
    /// Namespace and type of the method that is inlined.
    pub inlinee_namespace: Utf16<'a>,
    /// The name of the method that is inlined.
    pub inlinee_name: Utf16<'a>,
    /// The signature of the method that is inlined.
    pub inlinee_name_signature: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodInliningSucceeded<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_being_compiled_namespace = r.utf16()?;
        r.field_done();
        let method_being_compiled_name = r.utf16()?;
        r.field_done();
        let method_being_compiled_name_signature = r.utf16()?;
        r.field_done();
        let inliner_namespace = r.utf16()?;
        r.field_done();
        let inliner_name = r.utf16()?;
        r.field_done();
        let inliner_name_signature = r.utf16()?;
        r.field_done();
        let inlinee_namespace = r.utf16()?;
        r.field_done();
        let inlinee_name = r.utf16()?;
        r.field_done();
        let inlinee_name_signature = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_being_compiled_namespace, method_being_compiled_name, method_being_compiled_name_signature, inliner_namespace, inliner_name, inliner_name_signature, inlinee_namespace, inlinee_name, inlinee_name_signature, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/JittingStarted`: event 145 of `Microsoft-Windows-DotNETRuntime`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodJittingStarted<'a> {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The token of the method in the metadata of its module.
    pub method_token: u32,
    /// Bytes of IL.
    pub method_il_size: u32,
    /// Namespace and type of the method.
    pub method_namespace: Utf16<'a>,
    /// The name of the method.
    pub method_name: Utf16<'a>,
    /// The signature of the method.
    pub method_signature: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodJittingStarted<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let module_id = r.u64()?;
        r.field_done();
        let method_token = r.u32()?;
        r.field_done();
        let method_il_size = r.u32()?;
        r.field_done();
        let method_namespace = r.utf16()?;
        r.field_done();
        let method_name = r.utf16()?;
        r.field_done();
        let method_signature = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_id, module_id, method_token, method_il_size, method_namespace, method_name, method_signature, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/MemoryAllocatedForJitCode`: event 146 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodMemoryAllocatedForJitCode {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The runtime's number for the module.
    pub module_id: u64,
    /// Bytes asked for hot code.
    pub jit_hot_code_request_size: u64,
    /// Bytes asked for read-only data.
    pub jit_ro_data_request_size: u64,
    /// Bytes allocated for the code.
    pub allocated_size_for_jit_code: u64,
    /// The flags that the memory was asked for with.
    pub jit_alloc_flag: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodMemoryAllocatedForJitCode {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let module_id = r.u64()?;
        r.field_done();
        let jit_hot_code_request_size = r.u64()?;
        r.field_done();
        let jit_ro_data_request_size = r.u64()?;
        r.field_done();
        let allocated_size_for_jit_code = r.u64()?;
        r.field_done();
        let jit_alloc_flag = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_id, module_id, jit_hot_code_request_size, jit_ro_data_request_size, allocated_size_for_jit_code, jit_alloc_flag, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/Load`: event 141 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Method/Unload`: event 142 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Method/DCStart`: event 141 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Method/DCStop`: event 142 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodRange {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The address of the code.
    pub method_start_address: u64,
    /// Bytes of code.
    pub method_size: u32,
    /// The token of the method in the metadata of its module.
    pub method_token: u32,
    /// Properties of the method and its code.
    pub method_flags: MethodFlags,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The number of the method's replacement by a profiler; 0 for none. From version 2 on.
    pub rejit_id: Option<u64>,
}

impl<'a> PayloadView<'a> for MethodRange {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let module_id = r.u64()?;
        r.field_done();
        let method_start_address = r.u64()?;
        r.field_done();
        let method_size = r.u32()?;
        r.field_done();
        let method_token = r.u32()?;
        r.field_done();
        let method_flags = MethodFlags(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let rejit_id = if version < 2 { None } else { Some(r.u64()?) };
        r.field_done();
        Ok(Self { method_id, module_id, method_start_address, method_size, method_token, method_flags, clr_instance_id, rejit_id })
    }
}

/// The payload of:
///
/// * `MethodTailCallFailed`: event 191 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodTailCallFailed<'a> {
    /// Namespace and type of the method that is compiled.
    pub method_being_compiled_namespace: Utf16<'a>,
    /// The name of the method that is compiled.
    pub method_being_compiled_name: Utf16<'a>,
    /// The signature of the method that is compiled.
    pub method_being_compiled_name_signature: Utf16<'a>,
    /// Namespace and type of the method that calls.
    pub caller_namespace: Utf16<'a>,
    /// The name of the method that calls.
    pub caller_name: Utf16<'a>,
    /// The signature of the method that calls.
    pub caller_name_signature: Utf16<'a>,
    /// Namespace and type of the method that is called.
    pub callee_namespace: Utf16<'a>,
    /// The name of the method that is called.
    pub callee_name: Utf16<'a>,
    /// The signature of the method that is called.
    pub callee_name_signature: Utf16<'a>,
    /// Whether the IL asks for a tail call.
    pub tail_prefix: bool,
    /// The reason, in the runtime's words.
    pub fail_reason: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodTailCallFailed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_being_compiled_namespace = r.utf16()?;
        r.field_done();
        let method_being_compiled_name = r.utf16()?;
        r.field_done();
        let method_being_compiled_name_signature = r.utf16()?;
        r.field_done();
        let caller_namespace = r.utf16()?;
        r.field_done();
        let caller_name = r.utf16()?;
        r.field_done();
        let caller_name_signature = r.utf16()?;
        r.field_done();
        let callee_namespace = r.utf16()?;
        r.field_done();
        let callee_name = r.utf16()?;
        r.field_done();
        let callee_name_signature = r.utf16()?;
        r.field_done();
        let tail_prefix = r.bool32()?;
        r.field_done();
        let fail_reason = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_being_compiled_namespace, method_being_compiled_name, method_being_compiled_name_signature, caller_namespace, caller_name, caller_name_signature, callee_namespace, callee_name, callee_name_signature, tail_prefix, fail_reason, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/TailCallSucceeded`: event 188 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodTailCallSucceeded<'a> {
    /// Namespace and type of the method that is compiled.
    pub method_being_compiled_namespace: Utf16<'a>,
    /// The name of the method that is compiled.
    pub method_being_compiled_name: Utf16<'a>,
    /// The signature of the method that is compiled.
    pub method_being_compiled_name_signature: Utf16<'a>,
    /// Namespace and type of the method that calls.
    pub caller_namespace: Utf16<'a>,
    /// The name of the method that calls.
    pub caller_name: Utf16<'a>,
    /// The signature of the method that calls.
    pub caller_name_signature: Utf16<'a>,
    /// Namespace and type of the method that is called.
    pub callee_namespace: Utf16<'a>,
    /// The name of the method that is called.
    pub callee_name: Utf16<'a>,
    /// The signature of the method that is called.
    pub callee_name_signature: Utf16<'a>,
    /// Whether the IL asks for a tail call.
    pub tail_prefix: bool,
    /// The kind of tail call.
    pub tail_call_type: TailCallType,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for MethodTailCallSucceeded<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_being_compiled_namespace = r.utf16()?;
        r.field_done();
        let method_being_compiled_name = r.utf16()?;
        r.field_done();
        let method_being_compiled_name_signature = r.utf16()?;
        r.field_done();
        let caller_namespace = r.utf16()?;
        r.field_done();
        let caller_name = r.utf16()?;
        r.field_done();
        let caller_name_signature = r.utf16()?;
        r.field_done();
        let callee_namespace = r.utf16()?;
        r.field_done();
        let callee_name = r.utf16()?;
        r.field_done();
        let callee_name_signature = r.utf16()?;
        r.field_done();
        let tail_prefix = r.bool32()?;
        r.field_done();
        let tail_call_type = TailCallType(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_being_compiled_namespace, method_being_compiled_name, method_being_compiled_name_signature, caller_namespace, caller_name, caller_name_signature, callee_namespace, callee_name, callee_name_signature, tail_prefix, tail_call_type, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Loader/ModuleLoad`: event 152 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/ModuleUnload`: event 153 of `Microsoft-Windows-DotNETRuntime`, from version 1.
/// * `Loader/ModuleDCStart`: event 153 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
/// * `Loader/ModuleDCStop`: event 154 of `Microsoft-Windows-DotNETRuntimeRundown`, from version 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Module<'a> {
    /// The runtime's number for the module.
    pub module_id: u64,
    /// The runtime's number for the assembly.
    pub assembly_id: u64,
    /// Properties of the module.
    pub module_flags: ModuleFlags,
    /// Reserved.
    pub reserved1: u32,
    /// The path of the module.
    pub module_il_path: Utf16<'a>,
    /// The path of the module's native image; empty without one.
    pub module_native_path: Utf16<'a>,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The GUID of the portable PDB. From version 2 on.
    pub managed_pdb_signature: Option<Uuid>,
    /// The age of the portable PDB. From version 2 on.
    pub managed_pdb_age: Option<u32>,
    /// The path that the portable PDB was built as. From version 2 on.
    pub managed_pdb_build_path: Option<Utf16<'a>>,
    /// The GUID of the native image's PDB. From version 2 on.
    pub native_pdb_signature: Option<Uuid>,
    /// The age of the native image's PDB. From version 2 on.
    pub native_pdb_age: Option<u32>,
    /// The path that the native image's PDB was built as. From version 2 on.
    pub native_pdb_build_path: Option<Utf16<'a>>,
    /// The build id of the native image. From version 3 on.
    pub native_build_id: Option<Utf16<'a>>,
}

impl<'a> PayloadView<'a> for Module<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> ReadResult<Self> {
        let module_id = r.u64()?;
        r.field_done();
        let assembly_id = r.u64()?;
        r.field_done();
        let module_flags = ModuleFlags(r.u32()?);
        r.field_done();
        let reserved1 = r.u32()?;
        r.field_done();
        let module_il_path = r.utf16()?;
        r.field_done();
        let module_native_path = r.utf16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let managed_pdb_signature = if version < 2 { None } else { Some(r.guid()?) };
        r.field_done();
        let managed_pdb_age = if version < 2 { None } else { Some(r.u32()?) };
        r.field_done();
        let managed_pdb_build_path = if version < 2 { None } else { Some(r.utf16()?) };
        r.field_done();
        let native_pdb_signature = if version < 2 { None } else { Some(r.guid()?) };
        r.field_done();
        let native_pdb_age = if version < 2 { None } else { Some(r.u32()?) };
        r.field_done();
        let native_pdb_build_path = if version < 2 { None } else { Some(r.utf16()?) };
        r.field_done();
        let native_build_id = if version < 3 { None } else { Some(r.utf16()?) };
        r.field_done();
        Ok(Self { module_id, assembly_id, module_flags, reserved1, module_il_path, module_native_path, clr_instance_id, managed_pdb_signature, managed_pdb_age, managed_pdb_build_path, native_pdb_signature, native_pdb_age, native_pdb_build_path, native_build_id })
    }
}

/// The payload of:
///
/// * `Exception/Stop`: event 256 of `Microsoft-Windows-DotNETRuntime`.
/// * `ExceptionCatch/Stop`: event 251 of `Microsoft-Windows-DotNETRuntime`.
/// * `ExceptionFinally/Stop`: event 253 of `Microsoft-Windows-DotNETRuntime`.
/// * `ExceptionFilter/Stop`: event 255 of `Microsoft-Windows-DotNETRuntime`.
/// * `ProcessExit`: event 2 of `Universal.System`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Nothing;

impl<'a> PayloadView<'a> for Nothing {
    fn read(_: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        Ok(Self)
    }
}

/// The payload of:
///
/// * `ExistingProcess`: event 0 of `Universal.System`.
/// * `ProcessCreate`: event 1 of `Universal.System`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Process<'a> {
    /// The number of the process within its namespace.
    pub namespace_id: u64,
    /// The name.
    pub name: &'a [u8],
    /// The name of the namespace.
    pub namespace_name: &'a [u8],
}

impl<'a> PayloadView<'a> for Process<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let namespace_id = r.varuint()?;
        r.field_done();
        let name = r.counted_utf8()?;
        r.field_done();
        let namespace_name = r.counted_utf8()?;
        r.field_done();
        Ok(Self { namespace_id, name, namespace_name })
    }
}

/// The payload of:
///
/// * `ProcessMapping`: event 3 of `Universal.System`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProcessMapping<'a> {
    /// The number that other events refer to it by.
    pub id: u64,
    /// The first address of the range.
    pub start_address: u64,
    /// The last address of the range.
    pub end_address: u64,
    /// The offset in the file that the mapping begins at, in bytes.
    pub file_offset: u64,
    /// The path of the file.
    pub file_name: &'a [u8],
    /// The number of the mapping's metadata.
    pub metadata_id: u64,
}

impl<'a> PayloadView<'a> for ProcessMapping<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let id = r.varuint()?;
        r.field_done();
        let start_address = r.varuint()?;
        r.field_done();
        let end_address = r.varuint()?;
        r.field_done();
        let file_offset = r.varuint()?;
        r.field_done();
        let file_name = r.counted_utf8()?;
        r.field_done();
        let metadata_id = r.varuint()?;
        r.field_done();
        Ok(Self { id, start_address, end_address, file_offset, file_name, metadata_id })
    }
}

/// The payload of:
///
/// * `ProcessMappingMetadata`: event 5 of `Universal.System`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProcessMappingMetadata<'a> {
    /// The number that other events refer to it by.
    pub id: u64,
    /// The symbols' source, in JSON.
    pub symbol_metadata: &'a [u8],
    /// The version of the file, in JSON.
    pub version_metadata: &'a [u8],
}

impl<'a> PayloadView<'a> for ProcessMappingMetadata<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let id = r.varuint()?;
        r.field_done();
        let symbol_metadata = r.counted_utf8()?;
        r.field_done();
        let version_metadata = r.counted_utf8()?;
        r.field_done();
        Ok(Self { id, symbol_metadata, version_metadata })
    }
}

/// The payload of:
///
/// * `ProcessSymbol`: event 4 of `Universal.System`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProcessSymbol<'a> {
    /// The number that other events refer to it by.
    pub id: u64,
    /// The number of the mapping that the symbol lies in.
    pub mapping_id: u64,
    /// The first address of the range.
    pub start_address: u64,
    /// The last address of the range.
    pub end_address: u64,
    /// The name.
    pub name: &'a [u8],
}

impl<'a> PayloadView<'a> for ProcessSymbol<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let id = r.varuint()?;
        r.field_done();
        let mapping_id = r.varuint()?;
        r.field_done();
        let start_address = r.varuint()?;
        r.field_done();
        let end_address = r.varuint()?;
        r.field_done();
        let name = r.counted_utf8()?;
        r.field_done();
        Ok(Self { id, mapping_id, start_address, end_address, name })
    }
}

/// The payload of:
///
/// * `Method/R2RGetEntryPoint`: event 159 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct R2RGetEntryPoint<'a> {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// Namespace and type of the method.
    pub method_namespace: Utf16<'a>,
    /// The name of the method.
    pub method_name: Utf16<'a>,
    /// The signature of the method.
    pub method_signature: Utf16<'a>,
    /// The address of the method's precompiled code.
    pub entry_point: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for R2RGetEntryPoint<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let method_namespace = r.utf16()?;
        r.field_done();
        let method_name = r.utf16()?;
        r.field_done();
        let method_signature = r.utf16()?;
        r.field_done();
        let entry_point = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_id, method_namespace, method_name, method_signature, entry_point, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/R2RGetEntryPointStart`: event 160 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct R2RGetEntryPointStart {
    /// The runtime's number for the method.
    pub method_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for R2RGetEntryPointStart {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Runtime/Start`: event 187 of `Microsoft-Windows-DotNETRuntime`.
/// * `Runtime/Start`: event 187 of `Microsoft-Windows-DotNETRuntimeRundown`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RuntimeStart<'a> {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The kind of runtime.
    pub sku: RuntimeSku,
    /// The first number of the class library's version.
    pub bcl_major_version: u16,
    /// The second number of the class library's version.
    pub bcl_minor_version: u16,
    /// The third number of the class library's version.
    pub bcl_build_number: u16,
    /// The fourth number of the class library's version.
    pub bcl_qfe_number: u16,
    /// The first number of the runtime's version.
    pub vm_major_version: u16,
    /// The second number of the runtime's version.
    pub vm_minor_version: u16,
    /// The third number of the runtime's version.
    pub vm_build_number: u16,
    /// The fourth number of the runtime's version.
    pub vm_qfe_number: u16,
    /// Settings that the runtime was started with.
    pub startup_flags: StartupFlags,
    /// The way in which the runtime was started.
    pub startup_mode: StartupMode,
    /// The command line of the process.
    pub command_line: Utf16<'a>,
    /// The class that a runtime was started for over COM.
    pub com_object_guid: Uuid,
    /// The path of the runtime.
    pub runtime_dll_path: Utf16<'a>,
}

impl<'a> PayloadView<'a> for RuntimeStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let sku = RuntimeSku(u32::from(r.u16()?));
        r.field_done();
        let bcl_major_version = r.u16()?;
        r.field_done();
        let bcl_minor_version = r.u16()?;
        r.field_done();
        let bcl_build_number = r.u16()?;
        r.field_done();
        let bcl_qfe_number = r.u16()?;
        r.field_done();
        let vm_major_version = r.u16()?;
        r.field_done();
        let vm_minor_version = r.u16()?;
        r.field_done();
        let vm_build_number = r.u16()?;
        r.field_done();
        let vm_qfe_number = r.u16()?;
        r.field_done();
        let startup_flags = StartupFlags(r.u32()?);
        r.field_done();
        let startup_mode = StartupMode(u32::from(r.u8()?));
        r.field_done();
        let command_line = r.utf16()?;
        r.field_done();
        let com_object_guid = r.guid()?;
        r.field_done();
        let runtime_dll_path = r.utf16()?;
        r.field_done();
        Ok(Self { clr_instance_id, sku, bcl_major_version, bcl_minor_version, bcl_build_number, bcl_qfe_number, vm_major_version, vm_minor_version, vm_build_number, vm_qfe_number, startup_flags, startup_mode, command_line, com_object_guid, runtime_dll_path })
    }
}

/// The payload of:
///
/// * `GC/SampledObjectAllocation`: event 20 of `Microsoft-Windows-DotNETRuntime`.
/// * `GC/SampledObjectAllocation`: event 32 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SampledObjectAllocation {
    /// The address of the object.
    pub address: u64,
    /// The address of the type's method table.
    pub type_id: u64,
    /// Objects that the sample stands for.
    pub object_count_for_type_sample: u32,
    /// Bytes that the sample stands for.
    pub total_size_for_type_sample: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for SampledObjectAllocation {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let address = r.address()?;
        r.field_done();
        let type_id = r.address()?;
        r.field_done();
        let object_count_for_type_sample = r.u32()?;
        r.field_done();
        let total_size_for_type_sample = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { address, type_id, object_count_for_type_sample, total_size_for_type_sample, clr_instance_id })
    }
}

/// The payload of:
///
/// * `AppDomainResourceManagement/ThreadCreated`: event 85 of `Microsoft-Windows-DotNETRuntime`.
/// * `Loader/ThreadDCStop`: event 159 of `Microsoft-Windows-DotNETRuntimeRundown`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadCreated {
    /// The address of the runtime's thread object.
    pub managed_thread_id: u64,
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// Properties, as bits.
    pub flags: ThreadFlags,
    /// The managed thread id.
    pub managed_thread_index: u32,
    /// The operating system's number for the thread.
    pub os_thread_id: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadCreated {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let managed_thread_id = r.u64()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let flags = ThreadFlags(r.u32()?);
        r.field_done();
        let managed_thread_index = r.u32()?;
        r.field_done();
        let os_thread_id = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { managed_thread_id, app_domain_id, flags, managed_thread_index, os_thread_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Thread/Creating`: event 70 of `Microsoft-Windows-DotNETRuntime`.
/// * `Thread/Running`: event 71 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadId {
    /// The runtime's number for the thread.
    pub id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadId {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPool/IODequeue`: event 64 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPool/IOPack`: event 65 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolIo {
    /// The address of the `NATIVE_OVERLAPPED`.
    pub native_overlapped: u64,
    /// The address of the `OVERLAPPED`.
    pub overlapped: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolIo {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let native_overlapped = r.address()?;
        r.field_done();
        let overlapped = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { native_overlapped, overlapped, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPool/IOEnqueue`: event 63 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolIoEnqueue {
    /// The address of the `NATIVE_OVERLAPPED`.
    pub native_overlapped: u64,
    /// The address of the `OVERLAPPED`.
    pub overlapped: u64,
    /// Whether the work may be taken from the queue more than once.
    pub multi_dequeues: bool,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolIoEnqueue {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let native_overlapped = r.address()?;
        r.field_done();
        let overlapped = r.address()?;
        r.field_done();
        let multi_dequeues = r.bool32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { native_overlapped, overlapped, multi_dequeues, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolMinMaxThreads`: event 59 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolMinMaxThreads {
    /// The least worker threads that the pool keeps.
    pub min_worker_threads: u16,
    /// The most worker threads that the pool may have.
    pub max_worker_threads: u16,
    /// The least I/O threads that the pool keeps.
    pub min_io_completion_threads: u16,
    /// The most I/O threads that the pool may have.
    pub max_io_completion_threads: u16,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolMinMaxThreads {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let min_worker_threads = r.u16()?;
        r.field_done();
        let max_worker_threads = r.u16()?;
        r.field_done();
        let min_io_completion_threads = r.u16()?;
        r.field_done();
        let max_io_completion_threads = r.u16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { min_worker_threads, max_worker_threads, min_io_completion_threads, max_io_completion_threads, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPool/Enqueue`: event 61 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPool/Dequeue`: event 62 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWork {
    /// The number of the piece of work.
    pub work_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWork {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let work_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { work_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThread/Start`: event 50 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPoolWorkerThread/Stop`: event 51 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPoolWorkerThread/Wait`: event 57 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPoolWorkerThreadRetirement/Start`: event 52 of `Microsoft-Windows-DotNETRuntime`.
/// * `ThreadPoolWorkerThreadRetirement/Stop`: event 53 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWorkerThread {
    /// Worker threads that work or look for work.
    pub active_worker_thread_count: u32,
    /// Worker threads that are set aside; always 0 since .NET 6.
    pub retired_worker_thread_count: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWorkerThread {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let active_worker_thread_count = r.u32()?;
        r.field_done();
        let retired_worker_thread_count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { active_worker_thread_count, retired_worker_thread_count, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThreadAdjustment/Adjustment`: event 55 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWorkerThreadAdjustmentAdjustment {
    /// Work items a second, on average.
    pub average_throughput: f64,
    /// Worker threads that the pool wants from now on.
    pub new_worker_thread_count: u32,
    /// The reason.
    pub reason: ThreadAdjustmentReason,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWorkerThreadAdjustmentAdjustment {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let average_throughput = r.f64()?;
        r.field_done();
        let new_worker_thread_count = r.u32()?;
        r.field_done();
        let reason = ThreadAdjustmentReason(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { average_throughput, new_worker_thread_count, reason, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThreadAdjustment/Sample`: event 54 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWorkerThreadAdjustmentSample {
    /// Work items a second.
    pub throughput: f64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWorkerThreadAdjustmentSample {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let throughput = r.f64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { throughput, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThreadAdjustment/Stats`: event 56 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWorkerThreadAdjustmentStats {
    /// The length of the measurement, in seconds.
    pub duration: f64,
    /// Work items a second.
    pub throughput: f64,
    /// The wave in the number of threads.
    pub thread_wave: f64,
    /// The wave in the throughput.
    pub throughput_wave: f64,
    /// The error of the throughput, in work items a second.
    pub throughput_error_estimate: f64,
    /// The average error of the throughput, in work items a second.
    pub average_throughput_error_estimate: f64,
    /// The ratio of the waves in throughput and threads.
    pub throughput_ratio: f64,
    /// The confidence of the pool in the wave in the throughput: 0 to 1.
    pub confidence: f64,
    /// The number of threads that the pool tends to.
    pub new_control_setting: f64,
    /// The height of the next wave, in threads.
    pub new_thread_wave_magnitude: u16,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWorkerThreadAdjustmentStats {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let duration = r.f64()?;
        r.field_done();
        let throughput = r.f64()?;
        r.field_done();
        let thread_wave = r.f64()?;
        r.field_done();
        let throughput_wave = r.f64()?;
        r.field_done();
        let throughput_error_estimate = r.f64()?;
        r.field_done();
        let average_throughput_error_estimate = r.f64()?;
        r.field_done();
        let throughput_ratio = r.f64()?;
        r.field_done();
        let confidence = r.f64()?;
        r.field_done();
        let new_control_setting = r.f64()?;
        r.field_done();
        let new_thread_wave_magnitude = r.u16()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { duration, throughput, thread_wave, throughput_wave, throughput_error_estimate, average_throughput_error_estimate, throughput_ratio, confidence, new_control_setting, new_thread_wave_magnitude, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkingThreadCount/Start`: event 60 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadPoolWorkingThreadCount {
    /// Threads that work.
    pub count: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadPoolWorkingThreadCount {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { count, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Thread/Sample`: event 0 of `Microsoft-DotNETCore-SampleProfiler`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadSample {
    /// Whether the thread ran managed code.
    pub kind: ThreadSampleType,
}

impl<'a> PayloadView<'a> for ThreadSample {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let kind = ThreadSampleType(r.u32()?);
        r.field_done();
        Ok(Self { kind })
    }
}

/// The payload of:
///
/// * `AppDomainResourceManagement/ThreadTerminated`: event 86 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ThreadTerminated {
    /// The address of the runtime's thread object.
    pub managed_thread_id: u64,
    /// The runtime's number for the application domain.
    pub app_domain_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for ThreadTerminated {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let managed_thread_id = r.u64()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { managed_thread_id, app_domain_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `TieredCompilation/BackgroundJitStart`: event 283 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TieredCompilationBackgroundJitStart {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Methods that wait to be compiled again.
    pub pending_method_count: u32,
}

impl<'a> PayloadView<'a> for TieredCompilationBackgroundJitStart {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let pending_method_count = r.u32()?;
        r.field_done();
        Ok(Self { clr_instance_id, pending_method_count })
    }
}

/// The payload of:
///
/// * `TieredCompilation/BackgroundJitStop`: event 284 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TieredCompilationBackgroundJitStop {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Methods that wait to be compiled again.
    pub pending_method_count: u32,
    /// Methods that were compiled.
    pub jitted_method_count: u32,
}

impl<'a> PayloadView<'a> for TieredCompilationBackgroundJitStop {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let pending_method_count = r.u32()?;
        r.field_done();
        let jitted_method_count = r.u32()?;
        r.field_done();
        Ok(Self { clr_instance_id, pending_method_count, jitted_method_count })
    }
}

/// The payload of:
///
/// * `TieredCompilation/Resume`: event 282 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TieredCompilationResume {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Methods that were called for the first time since the timer began.
    pub new_method_count: u32,
}

impl<'a> PayloadView<'a> for TieredCompilationResume {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let new_method_count = r.u32()?;
        r.field_done();
        Ok(Self { clr_instance_id, new_method_count })
    }
}

/// The payload of:
///
/// * `TieredCompilation/Settings`: event 280 of `Microsoft-Windows-DotNETRuntime`.
/// * `TieredCompilationRundown/SettingsDCStart`: event 280 of `Microsoft-Windows-DotNETRuntimeRundown`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TieredCompilationSettings {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Properties, as bits.
    pub flags: TieredCompilationSettingsFlags,
}

impl<'a> PayloadView<'a> for TieredCompilationSettings {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let flags = TieredCompilationSettingsFlags(r.u32()?);
        r.field_done();
        Ok(Self { clr_instance_id, flags })
    }
}

/// The payload of:
///
/// * `TypeLoad/Start`: event 73 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TypeLoadStart {
    /// The number that start and stop of a load have in common.
    pub type_load_start_id: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for TypeLoadStart {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let type_load_start_id = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { type_load_start_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `TypeLoad/Stop`: event 74 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TypeLoadStop<'a> {
    /// The number that start and stop of a load have in common.
    pub type_load_start_id: u32,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// The level to which the type was loaded.
    pub load_level: u16,
    /// The address of the type's method table.
    pub type_id: u64,
    /// The full name of the type.
    pub type_name: Utf16<'a>,
}

impl<'a> PayloadView<'a> for TypeLoadStop<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let type_load_start_id = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let load_level = r.u16()?;
        r.field_done();
        let type_id = r.u64()?;
        r.field_done();
        let type_name = r.utf16()?;
        r.field_done();
        Ok(Self { type_load_start_id, clr_instance_id, load_level, type_id, type_name })
    }
}

/// The payload of:
///
/// * `WaitHandleWait/Start`: event 301 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WaitHandleWaitStart {
    /// The kind of wait.
    pub wait_source: WaitHandleWaitSource,
    /// The address of the object that is waited for.
    pub associated_object_id: u64,
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
}

impl<'a> PayloadView<'a> for WaitHandleWaitStart {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let wait_source = WaitHandleWaitSource(u32::from(r.u8()?));
        r.field_done();
        let associated_object_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { wait_source, associated_object_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `YieldProcessorMeasurement`: event 58 of `Microsoft-Windows-DotNETRuntime`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct YieldProcessorMeasurement {
    /// The number of the runtime within the process.
    pub clr_instance_id: u16,
    /// Nanoseconds that a pause instruction took in this measurement.
    pub ns_per_yield: f64,
    /// Nanoseconds that the runtime counts for a pause instruction.
    pub established_ns_per_yield: f64,
}

impl<'a> PayloadView<'a> for YieldProcessorMeasurement {
    fn read(r: &mut Reader<'a>, _: u8) -> ReadResult<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let ns_per_yield = r.f64()?;
        r.field_done();
        let established_ns_per_yield = r.f64()?;
        r.field_done();
        Ok(Self { clr_instance_id, ns_per_yield, established_ns_per_yield })
    }
}
