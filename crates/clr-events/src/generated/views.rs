//! Payloads with typed fields.
//!
//! Made by `cargo xtask schemas` from `facts`: change these, not this file.

use nettrace::Utf16;
use uuid::Uuid;

use crate::generated::maps::*;
use crate::list::{List, Row};
use crate::provider::Provider;
use crate::reader::{Parsed, Reader};
use crate::view::Shape;

/// An event of the runtime, by what it tells.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ClrEvent<'a> {
    /// A collection begins.
    GcStart(GcStart),
    /// A collection has ended.
    GcStop(GcStop),
    /// Sizes of the generations after a collection, and what was promoted.
    GcHeapStats(GcHeapStats),
    /// The collector has got a segment or region.
    GcCreateSegment(GcCreateSegment),
    /// The collector has given a segment or region back.
    GcFreeSegment(GcFreeSegment),
    /// Threads are about to be suspended.
    GcSuspendStart(GcSuspendStart),
    /// All threads are suspended.
    GcSuspendStop(Instance),
    /// Threads are about to be let go.
    GcRestartStart(Instance),
    /// Threads run again.
    GcRestartStop(Instance),
    /// About 100 KB were allocated since the last of these; the object that crossed the line.
    AllocationTick(AllocationTick<'a>),
    /// An allocation that was drawn at random, each byte with the same chance (.NET 10).
    AllocationSampled(AllocationSampled<'a>),
    /// Allocations of one type, sampled by a profiler's settings.
    SampledObjectAllocation(SampledObjectAllocation),
    /// The thread of background collections was created.
    GcCreateConcurrentThread(Instance),
    /// The thread of background collections has ended.
    GcTerminateConcurrentThread(Instance),
    /// The finalizer thread begins to run finalizers.
    GcFinalizersStart(Instance),
    /// The finalizer thread has run them.
    GcFinalizersStop(GcFinalizersStop),
    /// An object is finalized.
    GcFinalizeObject(GcFinalizeObject),
    /// Something asked for a collection.
    GcTriggered(GcTriggered),
    /// A heap has marked from the stacks.
    GcMarkStackRoots(GcMarked),
    /// A heap has marked from the finalizer queue.
    GcMarkFinalizeQueueRoots(GcMarked),
    /// A heap has marked from the handles.
    GcMarkHandles(GcMarked),
    /// A heap has marked from older generations.
    GcMarkCards(GcMarked),
    /// How much a heap promoted by one kind of root.
    GcMarkWithType(GcMarkWithType),
    /// The threads of a server collection wait for one another.
    GcJoin(GcJoin),
    /// What one heap did in a collection, and why.
    GcPerHeapHistory(GcPerHeapHistory<'a>),
    /// What was decided for all heaps in a collection.
    GcGlobalHeapHistory(GcGlobalHeapHistory<'a>),
    /// Times of compacting the large object heap.
    GcLohCompact(GcLohCompact<'a>),
    /// Free-list items and plugs by size.
    GcFitBucketInfo(GcFitBucketInfo<'a>),
    /// An event that the collector defines as it goes.
    GcDynamic(GcDynamic<'a>),
    /// A handle was created.
    GcSetHandle(GcSetHandle),
    /// A handle was given back.
    GcDestroyHandle(GcDestroyHandle),
    /// An object was pinned during a collection.
    GcPinObject(GcPinObject<'a>),
    /// Where a generation lies.
    GcGenerationRange(GcGenerationRange),
    /// Objects of the heap.
    GcBulkNode(GcBulkNode<'a>),
    /// References of the objects of the heap, in the objects' order.
    GcBulkEdge(GcBulkEdge<'a>),
    /// Roots of the heap.
    GcBulkRootEdge(GcBulkRootEdge<'a>),
    /// Dependent handles.
    GcBulkRootConditionalWeakTableElementEdge(GcBulkRootConditionalWeakTableElementEdge<'a>),
    /// Static fields that are roots.
    GcBulkRootStaticVar(GcBulkRootStaticVar<'a>),
    /// COM callable wrappers that are roots.
    GcBulkRootCcw(GcBulkRootCcw<'a>),
    /// Runtime callable wrappers.
    GcBulkRcw(GcBulkRcw<'a>),
    /// Objects that stay where they are.
    GcBulkSurvivingObjectRanges(GcBulkSurvivingObjectRanges<'a>),
    /// Objects that move.
    GcBulkMovedObjectRanges(GcBulkMovedObjectRanges<'a>),
    /// The collector's settings.
    GcSettingsRundown(GcSettingsRundown),
    /// Names of types that other events refer to.
    BulkType(BulkType<'a>),
    /// A type is being loaded.
    TypeLoadStart(TypeLoadStart),
    /// A type has been loaded.
    TypeLoadStop(TypeLoadStop<'a>),
    /// An exception was thrown.
    ExceptionStart(ExceptionStart<'a>),
    /// An exception was handled.
    ExceptionStop(Nothing),
    /// A catch block is entered.
    ExceptionCatchStart(ExceptionHandler<'a>),
    /// A catch block is left.
    ExceptionCatchStop(Nothing),
    /// A finally block is entered.
    ExceptionFinallyStart(ExceptionHandler<'a>),
    /// A finally block is left.
    ExceptionFinallyStop(Nothing),
    /// A filter is entered.
    ExceptionFilterStart(ExceptionHandler<'a>),
    /// A filter is left.
    ExceptionFilterStop(Nothing),
    /// A thread waits for a lock.
    ContentionStart(ContentionStart),
    /// A thread has got the lock that it waited for.
    ContentionStop(ContentionStop),
    /// A lock was created.
    ContentionLockCreated(ContentionLockCreated),
    /// A thread waits for a handle.
    WaitHandleWaitStart(WaitHandleWaitStart),
    /// A thread has done waiting for a handle.
    WaitHandleWaitStop(Instance),
    /// A worker thread of the pool begins.
    ThreadPoolWorkerThreadStart(ThreadPoolWorkerThread),
    /// A worker thread of the pool ends.
    ThreadPoolWorkerThreadStop(ThreadPoolWorkerThread),
    /// A worker thread of the pool waits for work.
    ThreadPoolWorkerThreadWait(ThreadPoolWorkerThread),
    /// A worker thread of the pool is set aside.
    ThreadPoolWorkerThreadRetirementStart(ThreadPoolWorkerThread),
    /// A worker thread of the pool is back.
    ThreadPoolWorkerThreadRetirementStop(ThreadPoolWorkerThread),
    /// Work items a second, as the pool measures them.
    ThreadPoolWorkerThreadAdjustmentSample(ThreadPoolWorkerThreadAdjustmentSample),
    /// The pool changes how many threads it wants.
    ThreadPoolWorkerThreadAdjustmentAdjustment(ThreadPoolWorkerThreadAdjustmentAdjustment),
    /// What the pool's hill climbing computes.
    ThreadPoolWorkerThreadAdjustmentStats(ThreadPoolWorkerThreadAdjustmentStats),
    /// The pool's limits.
    ThreadPoolMinMaxThreads(ThreadPoolMinMaxThreads),
    /// How many threads of the pool work.
    ThreadPoolWorkingThreadCount(ThreadPoolWorkingThreadCount),
    /// Work is handed to the pool.
    ThreadPoolEnqueue(ThreadPoolWork),
    /// A thread of the pool takes work.
    ThreadPoolDequeue(ThreadPoolWork),
    /// An I/O completion is handed to the pool.
    ThreadPoolIoEnqueue(ThreadPoolIoEnqueue),
    /// A thread of the pool takes an I/O completion.
    ThreadPoolIoDequeue(ThreadPoolIo),
    /// An overlapped operation is prepared.
    ThreadPoolIoPack(ThreadPoolIo),
    /// How long the processor's pause takes.
    YieldProcessorMeasurement(YieldProcessorMeasurement),
    /// A thread is being created.
    ThreadCreating(ThreadId),
    /// A new thread runs.
    ThreadRunning(ThreadId),
    /// A managed thread was created.
    ThreadCreated(ThreadCreated),
    /// A managed thread has ended.
    ThreadTerminated(ThreadTerminated),
    /// A managed thread that lives.
    ThreadDcStop(ThreadCreated),
    /// Code of a method was loaded.
    MethodLoad(MethodRange),
    /// Code of a method was unloaded.
    MethodUnload(MethodRange),
    /// Code that was there when the session began.
    MethodDcStart(MethodRange),
    /// Code that was there when the session ended.
    MethodDcStop(MethodRange),
    /// Code of a method was loaded, with its name.
    MethodLoadVerbose(MethodCode<'a>),
    /// Code of a method was unloaded, with its name.
    MethodUnloadVerbose(MethodCode<'a>),
    /// Code that was there when the session began, with its name.
    MethodDcStartVerbose(MethodCode<'a>),
    /// Code that was there when the session ended, with its name.
    MethodDcStopVerbose(MethodCode<'a>),
    /// A method is being compiled.
    MethodJittingStarted(MethodJittingStarted<'a>),
    /// Memory for a method's code.
    MethodMemoryAllocatedForJitCode(MethodMemoryAllocatedForJitCode),
    /// What a method's id stands for.
    MethodDetails(MethodDetails<'a>),
    /// Which code came from which IL.
    MethodIlToNativeMap(IlToNativeMap<'a>),
    /// Which code came from which IL, of code that was there when the session began.
    MethodIlToNativeMapDcStart(IlToNativeMap<'a>),
    /// Which code came from which IL, of code that was there when the session ended.
    MethodIlToNativeMapDcStop(IlToNativeMap<'a>),
    /// A call was inlined.
    MethodInliningSucceeded(MethodInliningSucceeded<'a>),
    /// A call was not inlined, and why.
    MethodInliningFailed(MethodInliningFailed<'a>),
    /// A call became a tail call.
    MethodTailCallSucceeded(MethodTailCallSucceeded<'a>),
    /// A call did not become a tail call, and why.
    MethodTailCallFailed(MethodTailCallFailed<'a>),
    /// Precompiled code of a method is being looked for.
    R2RGetEntryPointStart(R2RGetEntryPointStart),
    /// Precompiled code of a method was found.
    R2RGetEntryPoint(R2RGetEntryPoint<'a>),
    /// A module was loaded.
    ModuleLoad(Module<'a>),
    /// A module was unloaded.
    ModuleUnload(Module<'a>),
    /// A module that was there when the session began.
    ModuleDcStart(Module<'a>),
    /// A module that was there when the session ended.
    ModuleDcStop(Module<'a>),
    /// A module was loaded into an application domain.
    DomainModuleLoad(DomainModule<'a>),
    /// A module of an application domain when the session began.
    DomainModuleDcStart(DomainModule<'a>),
    /// A module of an application domain when the session ended.
    DomainModuleDcStop(DomainModule<'a>),
    /// An assembly was loaded.
    AssemblyLoad(Assembly<'a>),
    /// An assembly was unloaded.
    AssemblyUnload(Assembly<'a>),
    /// An assembly that was there when the session began.
    AssemblyDcStart(Assembly<'a>),
    /// An assembly that was there when the session ended.
    AssemblyDcStop(Assembly<'a>),
    /// An application domain was created.
    AppDomainLoad(AppDomain<'a>),
    /// An application domain has ended.
    AppDomainUnload(AppDomain<'a>),
    /// An application domain that was there when the session began.
    AppDomainDcStart(AppDomain<'a>),
    /// An application domain that was there when the session ended.
    AppDomainDcStop(AppDomain<'a>),
    /// The loader looks for an assembly.
    AssemblyLoaderStart(AssemblyLoaderStart<'a>),
    /// The loader has done looking.
    AssemblyLoaderStop(AssemblyLoaderStop<'a>),
    /// One stage of looking for an assembly.
    AssemblyLoaderResolutionAttempted(AssemblyLoaderResolutionAttempted<'a>),
    /// A path where an assembly could have been.
    AssemblyLoaderKnownPathProbed(AssemblyLoaderKnownPathProbed<'a>),
    /// How tiered compilation is set.
    TieredCompilationSettings(TieredCompilationSettings),
    /// How tiered compilation was set when the session began.
    TieredCompilationSettingsDcStart(TieredCompilationSettings),
    /// Compiling again waits, since new methods are being called.
    TieredCompilationPause(Instance),
    /// Compiling again goes on.
    TieredCompilationResume(TieredCompilationResume),
    /// The background thread begins to compile methods again.
    TieredCompilationBackgroundJitStart(TieredCompilationBackgroundJitStart),
    /// The background thread has compiled methods again.
    TieredCompilationBackgroundJitStop(TieredCompilationBackgroundJitStop),
    /// Which runtime this is.
    RuntimeStart(RuntimeStart<'a>),
    /// Which runtime this is, told with the rundown.
    RuntimeDcStart(RuntimeStart<'a>),
    /// The stack of a thread, and whether it ran managed code.
    ThreadSample(ThreadSample),
    /// A process that was there when the recording began.
    ExistingProcess(Process<'a>),
    /// A process was created.
    ProcessCreate(Process<'a>),
    /// A process has ended.
    ProcessExit(Nothing),
    /// A file is mapped into a process.
    ProcessMapping(ProcessMapping<'a>),
    /// A name for a range of addresses.
    ProcessSymbol(ProcessSymbol<'a>),
    /// What the file of mappings is, in JSON.
    ProcessMappingMetadata(ProcessMappingMetadata<'a>),
}

impl<'a> ClrEvent<'a> {
    /// Reads the payload of an event; `None` for an event, or an old version of it, that has no view.
    pub(crate) fn read(provider: Provider, id: u16, version: u8, reader: &mut Reader<'a>) -> Option<Parsed<Self>> {
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
/// * `AllocationSampling`: Runtime event 303, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct AllocationSampled<'a> {
    pub allocation_kind: GcAllocationKind,
    pub clr_instance_id: u16,
    pub type_id: u64,
    pub type_name: Utf16<'a>,
    pub address: u64,
    pub object_size: u64,
    pub sampled_byte_offset: u64,
}

impl<'a> Shape<'a> for AllocationSampled<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/AllocationTick`: Runtime event 10, from version 2.
#[derive(Debug, Clone, Copy)]
pub struct AllocationTick<'a> {
    pub allocation_amount: u32,
    pub allocation_kind: GcAllocationKind,
    pub clr_instance_id: u16,
    pub allocation_amount64: u64,
    pub type_id: u64,
    pub type_name: Utf16<'a>,
    pub heap_index: u32,
    pub address: Option<u64>,
    pub object_size: Option<u64>,
}

impl<'a> Shape<'a> for AllocationTick<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `Loader/AppDomainLoad`: Runtime event 156, from version 1.
/// * `Loader/AppDomainUnload`: Runtime event 157, from version 1.
/// * `Loader/AppDomainDCStart`: Rundown event 157, from version 1.
/// * `Loader/AppDomainDCStop`: Rundown event 158, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct AppDomain<'a> {
    pub app_domain_id: u64,
    pub app_domain_flags: AppDomainFlags,
    pub app_domain_name: Utf16<'a>,
    pub app_domain_index: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for AppDomain<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Loader/AssemblyLoad`: Runtime event 154, from version 1.
/// * `Loader/AssemblyUnload`: Runtime event 155, from version 1.
/// * `Loader/AssemblyDCStart`: Rundown event 155, from version 1.
/// * `Loader/AssemblyDCStop`: Rundown event 156, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct Assembly<'a> {
    pub assembly_id: u64,
    pub app_domain_id: u64,
    pub binding_id: u64,
    pub assembly_flags: AssemblyFlags,
    pub fully_qualified_assembly_name: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for Assembly<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `AssemblyLoader/KnownPathProbed`: Runtime event 296, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyLoaderKnownPathProbed<'a> {
    pub clr_instance_id: u16,
    pub file_path: Utf16<'a>,
    pub source: KnownPathSource,
    pub result: i32,
}

impl<'a> Shape<'a> for AssemblyLoaderKnownPathProbed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `AssemblyLoader/ResolutionAttempted`: Runtime event 292, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyLoaderResolutionAttempted<'a> {
    pub clr_instance_id: u16,
    pub assembly_name: Utf16<'a>,
    pub stage: ResolutionAttemptedStage,
    pub assembly_load_context: Utf16<'a>,
    pub result: ResolutionAttemptedResult,
    pub result_assembly_name: Utf16<'a>,
    pub result_assembly_path: Utf16<'a>,
    pub error_message: Utf16<'a>,
}

impl<'a> Shape<'a> for AssemblyLoaderResolutionAttempted<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `AssemblyLoader/Start`: Runtime event 290, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyLoaderStart<'a> {
    pub clr_instance_id: u16,
    pub assembly_name: Utf16<'a>,
    pub assembly_path: Utf16<'a>,
    pub requesting_assembly: Utf16<'a>,
    pub assembly_load_context: Utf16<'a>,
    pub requesting_assembly_load_context: Utf16<'a>,
}

impl<'a> Shape<'a> for AssemblyLoaderStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `AssemblyLoader/Stop`: Runtime event 291, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyLoaderStop<'a> {
    pub clr_instance_id: u16,
    pub assembly_name: Utf16<'a>,
    pub assembly_path: Utf16<'a>,
    pub requesting_assembly: Utf16<'a>,
    pub assembly_load_context: Utf16<'a>,
    pub requesting_assembly_load_context: Utf16<'a>,
    pub success: bool,
    pub result_assembly_name: Utf16<'a>,
    pub result_assembly_path: Utf16<'a>,
    pub cached: bool,
}

impl<'a> Shape<'a> for AssemblyLoaderStop<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
pub struct BulkTypeRow<'a> {
    pub type_id: u64,
    pub module_id: u64,
    pub type_name_id: u32,
    pub flags: TypeFlags,
    pub cor_element_type: u8,
    pub name: Utf16<'a>,
    pub type_parameters: List<'a, u64>,
}

impl<'a> Row<'a> for BulkTypeRow<'a> {
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let type_id = r.u64()?;
        let module_id = r.u64()?;
        let type_name_id = r.u32()?;
        let flags = TypeFlags(r.u32()?);
        let cor_element_type = r.u8()?;
        let name = r.utf16()?;
        let count = r.u32()?;
        let type_parameters = r.list(u64::from(count))?;
        Ok(Self { type_id, module_id, type_name_id, flags, cor_element_type, name, type_parameters })
    }
}

/// The payload of:
///
/// * `Type/BulkType`: Runtime event 15, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct BulkType<'a> {
    pub clr_instance_id: u16,
    pub values: List<'a, BulkTypeRow<'a>>,
}

impl<'a> Shape<'a> for BulkType<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `Contention/LockCreated`: Runtime event 90, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ContentionLockCreated {
    pub lock_id: u64,
    pub associated_object_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ContentionLockCreated {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Contention/Start`: Runtime event 81, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct ContentionStart {
    pub contention_flags: ContentionFlags,
    pub clr_instance_id: u16,
    pub lock_id: Option<u64>,
    pub associated_object_id: Option<u64>,
    pub lock_owner_thread_id: Option<u64>,
}

impl<'a> Shape<'a> for ContentionStart {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `Contention/Stop`: Runtime event 91, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ContentionStop {
    pub contention_flags: ContentionFlags,
    pub clr_instance_id: u16,
    pub duration_ns: Option<f64>,
}

impl<'a> Shape<'a> for ContentionStop {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `Loader/DomainModuleLoad`: Runtime event 151, from version 1.
/// * `Loader/DomainModuleDCStart`: Rundown event 151, from version 1.
/// * `Loader/DomainModuleDCStop`: Rundown event 152, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct DomainModule<'a> {
    pub module_id: u64,
    pub assembly_id: u64,
    pub app_domain_id: u64,
    pub module_flags: ModuleFlags,
    pub reserved1: u32,
    pub module_il_path: Utf16<'a>,
    pub module_native_path: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for DomainModule<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ExceptionCatch/Start`: Runtime event 250, from version 0.
/// * `ExceptionFinally/Start`: Runtime event 252, from version 0.
/// * `ExceptionFilter/Start`: Runtime event 254, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ExceptionHandler<'a> {
    pub entry_eip: u64,
    pub method_id: u64,
    pub method_name: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ExceptionHandler<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Exception/Start`: Runtime event 80, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct ExceptionStart<'a> {
    pub exception_type: Utf16<'a>,
    pub exception_message: Utf16<'a>,
    pub exception_eip: u64,
    pub exception_hresult: u32,
    pub exception_flags: ExceptionThrownFlags,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ExceptionStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
pub struct GcBulkEdgeRow {
    pub value: u64,
    pub referencing_field_id: u32,
}

impl<'a> Row<'a> for GcBulkEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((8, 12));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let value = r.address()?;
        let referencing_field_id = r.u32()?;
        Ok(Self { value, referencing_field_id })
    }
}

/// The payload of:
///
/// * `GC/BulkEdge`: Runtime event 19, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkEdge<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkEdgeRow>,
}

impl<'a> Shape<'a> for GcBulkEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkMovedObjectRanges`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkMovedObjectRangesRow {
    pub old_range_base: u64,
    pub new_range_base: u64,
    pub range_length: u64,
}

impl<'a> Row<'a> for GcBulkMovedObjectRangesRow {
    const SIZES: Option<(usize, usize)> = Some((16, 24));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let old_range_base = r.address()?;
        let new_range_base = r.address()?;
        let range_length = r.u64()?;
        Ok(Self { old_range_base, new_range_base, range_length })
    }
}

/// The payload of:
///
/// * `GC/BulkMovedObjectRanges`: Runtime event 22, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkMovedObjectRanges<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkMovedObjectRangesRow>,
}

impl<'a> Shape<'a> for GcBulkMovedObjectRanges<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkNode`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkNodeRow {
    pub address: u64,
    pub size: u64,
    pub type_id: u64,
    pub edge_count: u64,
}

impl<'a> Row<'a> for GcBulkNodeRow {
    const SIZES: Option<(usize, usize)> = Some((28, 32));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let address = r.address()?;
        let size = r.u64()?;
        let type_id = r.u64()?;
        let edge_count = r.u64()?;
        Ok(Self { address, size, type_id, edge_count })
    }
}

/// The payload of:
///
/// * `GC/BulkNode`: Runtime event 18, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkNode<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkNodeRow>,
}

impl<'a> Shape<'a> for GcBulkNode<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRcw`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRcwRow {
    pub object_id: u64,
    pub type_id: u64,
    pub iunknown: u64,
    pub vtable: u64,
    pub ref_count: u32,
    pub flags: u32,
}

impl<'a> Row<'a> for GcBulkRcwRow {
    const SIZES: Option<(usize, usize)> = Some((40, 40));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
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
/// * `GC/BulkRCW`: Runtime event 37, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRcw<'a> {
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkRcwRow>,
}

impl<'a> Shape<'a> for GcBulkRcw<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootCcw`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootCcwRow {
    pub gc_root_id: u64,
    pub object_id: u64,
    pub type_id: u64,
    pub iunknown: u64,
    pub ref_count: u32,
    pub pegged_ref_count: u32,
    pub flags: GcRootCcwFlags,
}

impl<'a> Row<'a> for GcBulkRootCcwRow {
    const SIZES: Option<(usize, usize)> = Some((44, 44));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
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
/// * `GC/BulkRootCCW`: Runtime event 36, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootCcw<'a> {
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkRootCcwRow>,
}

impl<'a> Shape<'a> for GcBulkRootCcw<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootConditionalWeakTableElementEdge`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootConditionalWeakTableElementEdgeRow {
    pub gc_key_node_id: u64,
    pub gc_value_node_id: u64,
    pub gc_root_id: u64,
}

impl<'a> Row<'a> for GcBulkRootConditionalWeakTableElementEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((12, 24));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let gc_key_node_id = r.address()?;
        let gc_value_node_id = r.address()?;
        let gc_root_id = r.address()?;
        Ok(Self { gc_key_node_id, gc_value_node_id, gc_root_id })
    }
}

/// The payload of:
///
/// * `GC/BulkRootConditionalWeakTableElementEdge`: Runtime event 17, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootConditionalWeakTableElementEdge<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkRootConditionalWeakTableElementEdgeRow>,
}

impl<'a> Shape<'a> for GcBulkRootConditionalWeakTableElementEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootEdge`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootEdgeRow {
    pub rooted_node_address: u64,
    pub gc_root_kind: GcRootKind,
    pub gc_root_flag: GcRootFlags,
    pub gc_root_id: u64,
}

impl<'a> Row<'a> for GcBulkRootEdgeRow {
    const SIZES: Option<(usize, usize)> = Some((13, 21));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let rooted_node_address = r.address()?;
        let gc_root_kind = GcRootKind(u32::from(r.u8()?));
        let gc_root_flag = GcRootFlags(r.u32()?);
        let gc_root_id = r.address()?;
        Ok(Self { rooted_node_address, gc_root_kind, gc_root_flag, gc_root_id })
    }
}

/// The payload of:
///
/// * `GC/BulkRootEdge`: Runtime event 16, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootEdge<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkRootEdgeRow>,
}

impl<'a> Shape<'a> for GcBulkRootEdge<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// One element of [`GcBulkRootStaticVar`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootStaticVarRow<'a> {
    pub gc_root_id: u64,
    pub object_id: u64,
    pub type_id: u64,
    pub flags: GcRootStaticVarFlags,
    pub field_name: Utf16<'a>,
}

impl<'a> Row<'a> for GcBulkRootStaticVarRow<'a> {
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
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
/// * `GC/BulkRootStaticVar`: Runtime event 38, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkRootStaticVar<'a> {
    pub app_domain_id: u64,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkRootStaticVarRow<'a>>,
}

impl<'a> Shape<'a> for GcBulkRootStaticVar<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let app_domain_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { app_domain_id, clr_instance_id, values })
    }
}

/// One element of [`GcBulkSurvivingObjectRanges`].
#[derive(Debug, Clone, Copy)]
pub struct GcBulkSurvivingObjectRangesRow {
    pub range_base: u64,
    pub range_length: u64,
}

impl<'a> Row<'a> for GcBulkSurvivingObjectRangesRow {
    const SIZES: Option<(usize, usize)> = Some((12, 16));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let range_base = r.address()?;
        let range_length = r.u64()?;
        Ok(Self { range_base, range_length })
    }
}

/// The payload of:
///
/// * `GC/BulkSurvivingObjectRanges`: Runtime event 21, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcBulkSurvivingObjectRanges<'a> {
    pub index: u32,
    pub clr_instance_id: u16,
    pub values: List<'a, GcBulkSurvivingObjectRangesRow>,
}

impl<'a> Shape<'a> for GcBulkSurvivingObjectRanges<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let index = r.u32()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { index, clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `GC/CreateSegment`: Runtime event 5, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcCreateSegment {
    pub address: u64,
    pub size: u64,
    pub kind: GcSegmentType,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcCreateSegment {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/DestoryGCHandle`: Runtime event 31, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcDestroyHandle {
    pub handle_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcDestroyHandle {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let handle_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { handle_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/DynamicTraceEvent`: Runtime event 39, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcDynamic<'a> {
    pub name: Utf16<'a>,
    pub data: &'a [u8],
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcDynamic<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let name = r.utf16()?;
        r.field_done();
        let count = r.u32()?;
        r.field_done();
        let data = r.bytes(u64::from(count))?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { name, data, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/FinalizeObject`: Runtime event 29, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcFinalizeObject {
    pub type_id: u64,
    pub object_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcFinalizeObject {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/FinalizersStop`: Runtime event 13, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcFinalizersStop {
    pub count: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcFinalizersStop {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { count, clr_instance_id })
    }
}

/// One element of [`GcFitBucketInfo`].
#[derive(Debug, Clone, Copy)]
pub struct GcFitBucketInfoRow {
    pub index: u16,
    pub count: u32,
    pub size: u64,
}

impl<'a> Row<'a> for GcFitBucketInfoRow {
    const SIZES: Option<(usize, usize)> = Some((12, 16));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let index = r.u16()?;
        r.pad16()?;
        let count = r.u32()?;
        let size = r.address()?;
        Ok(Self { index, count, size })
    }
}

/// The payload of:
///
/// * `GC/FitBucketInfo`: Runtime event 209, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcFitBucketInfo<'a> {
    pub clr_instance_id: u16,
    pub bucket_kind: GcBucketKind,
    pub total_size: u64,
    pub values: List<'a, GcFitBucketInfoRow>,
}

impl<'a> Shape<'a> for GcFitBucketInfo<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let bucket_kind = GcBucketKind(u32::from(r.u16()?));
        r.field_done();
        let total_size = r.u64()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, bucket_kind, total_size, values })
    }
}

/// The payload of:
///
/// * `GC/FreeSegment`: Runtime event 6, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcFreeSegment {
    pub address: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcFreeSegment {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let address = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { address, clr_instance_id })
    }
}

/// The payload of:
///
/// * `GC/GenerationRange`: Runtime event 23, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcGenerationRange {
    pub generation: u8,
    pub range_start: u64,
    pub range_used_length: u64,
    pub range_reserved_length: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcGenerationRange {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
pub struct GcGlobalHeapHistoryRow {
    pub time: u32,
}

impl<'a> Row<'a> for GcGlobalHeapHistoryRow {
    const SIZES: Option<(usize, usize)> = Some((4, 4));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
        let time = r.u32()?;
        Ok(Self { time })
    }
}

/// The payload of:
///
/// * `GC/GlobalHeapHistory`: Runtime event 205, from version 2.
#[derive(Debug, Clone, Copy)]
pub struct GcGlobalHeapHistory<'a> {
    pub final_youngest_desired: u64,
    pub num_heaps: i32,
    pub condemned_generation: u32,
    pub gen0_reduction_count: u32,
    pub reason: u32,
    pub global_mechanisms: u32,
    pub clr_instance_id: u16,
    pub pause_mode: u32,
    pub memory_pressure: u32,
    pub condemn_reasons0: Option<u32>,
    pub condemn_reasons1: Option<u32>,
    pub values: Option<List<'a, GcGlobalHeapHistoryRow>>,
}

impl<'a> Shape<'a> for GcGlobalHeapHistory<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
        let values = if version < 4 { None } else { Some(r.list(u64::from(count))?) };
        r.field_done();
        Ok(Self { final_youngest_desired, num_heaps, condemned_generation, gen0_reduction_count, reason, global_mechanisms, clr_instance_id, pause_mode, memory_pressure, condemn_reasons0, condemn_reasons1, values })
    }
}

/// The payload of:
///
/// * `GC/HeapStats`: Runtime event 4, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcHeapStats {
    pub generation_size0: u64,
    pub total_promoted_size0: u64,
    pub generation_size1: u64,
    pub total_promoted_size1: u64,
    pub generation_size2: u64,
    pub total_promoted_size2: u64,
    pub generation_size3: u64,
    pub total_promoted_size3: u64,
    pub finalization_promoted_size: u64,
    pub finalization_promoted_count: u64,
    pub pinned_object_count: u32,
    pub sink_block_count: u32,
    pub gc_handle_count: u32,
    pub clr_instance_id: u16,
    pub generation_size4: Option<u64>,
    pub total_promoted_size4: Option<u64>,
}

impl<'a> Shape<'a> for GcHeapStats {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `GC/Join`: Runtime event 203, from version 2.
#[derive(Debug, Clone, Copy)]
pub struct GcJoin {
    pub heap: u32,
    pub join_time: u32,
    pub join_type: u32,
    pub clr_instance_id: u16,
    pub join_id: u32,
}

impl<'a> Shape<'a> for GcJoin {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
pub struct GcLohCompactRow {
    pub time_plan: u32,
    pub time_compact: u32,
    pub time_relocate: u32,
    pub total_refs: u64,
    pub zero_refs: u64,
}

impl<'a> Row<'a> for GcLohCompactRow {
    const SIZES: Option<(usize, usize)> = Some((20, 32));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
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
/// * `GC/LOHCompact`: Runtime event 208, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcLohCompact<'a> {
    pub clr_instance_id: u16,
    pub values: List<'a, GcLohCompactRow>,
}

impl<'a> Shape<'a> for GcLohCompact<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, values })
    }
}

/// The payload of:
///
/// * `GC/MarkWithType`: Runtime event 202, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcMarkWithType {
    pub heap_num: u32,
    pub clr_instance_id: u16,
    pub kind: GcRootKind,
    pub bytes: u64,
}

impl<'a> Shape<'a> for GcMarkWithType {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/MarkStackRoots`: Runtime event 25, from version 0.
/// * `GC/MarkFinalizeQueueRoots`: Runtime event 26, from version 0.
/// * `GC/MarkHandles`: Runtime event 27, from version 0.
/// * `GC/MarkCards`: Runtime event 28, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcMarked {
    pub heap_num: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcMarked {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let heap_num = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { heap_num, clr_instance_id })
    }
}

/// One element of [`GcPerHeapHistory`].
#[derive(Debug, Clone, Copy)]
pub struct GcPerHeapHistoryRow {
    pub size_before: u64,
    pub free_list_before: u64,
    pub free_obj_before: u64,
    pub size_after: u64,
    pub free_list_after: u64,
    pub free_obj_after: u64,
    pub survived_in: u64,
    pub pinned_surv: u64,
    pub none_pinned_surv: u64,
    pub new_allocation: u64,
}

impl<'a> Row<'a> for GcPerHeapHistoryRow {
    const SIZES: Option<(usize, usize)> = Some((40, 80));
    fn read(r: &mut Reader<'a>) -> Parsed<Self> {
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
/// * `GC/PerHeapHistory`: Runtime event 204, from version 3.
#[derive(Debug, Clone, Copy)]
pub struct GcPerHeapHistory<'a> {
    pub clr_instance_id: u16,
    pub free_list_allocated: u64,
    pub free_list_rejected: u64,
    pub end_of_seg_allocated: u64,
    pub condemned_allocated: u64,
    pub pinned_allocated: u64,
    pub pinned_allocated_advance: u64,
    pub running_free_list_efficiency: u32,
    pub condemn_reasons0: u32,
    pub condemn_reasons1: u32,
    pub compact_mechanisms: u32,
    pub expand_mechanisms: u32,
    pub heap_index: u32,
    pub extra_gen0_commit: u64,
    pub values: List<'a, GcPerHeapHistoryRow>,
}

impl<'a> Shape<'a> for GcPerHeapHistory<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
        let values = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { clr_instance_id, free_list_allocated, free_list_rejected, end_of_seg_allocated, condemned_allocated, pinned_allocated, pinned_allocated_advance, running_free_list_efficiency, condemn_reasons0, condemn_reasons1, compact_mechanisms, expand_mechanisms, heap_index, extra_gen0_commit, values })
    }
}

/// The payload of:
///
/// * `GC/PinObjectAtGCTime`: Runtime event 33, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcPinObject<'a> {
    pub handle_id: u64,
    pub object_id: u64,
    pub object_size: u64,
    pub type_name: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcPinObject<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/SetGCHandle`: Runtime event 30, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcSetHandle {
    pub handle_id: u64,
    pub object_id: u64,
    pub kind: GcHandleKind,
    pub generation: u32,
    pub app_domain_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcSetHandle {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/SettingsRundown`: Rundown event 10, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcSettingsRundown {
    pub hard_limit: u64,
    pub loh_threshold: u64,
    pub physical_memory_config: u64,
    pub gen0_min_budget_config: u64,
    pub gen0_max_budget_config: u64,
    pub high_mem_percent_config: u32,
    pub bit_settings: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcSettingsRundown {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/Start`: Runtime event 1, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcStart {
    pub count: u32,
    pub depth: u32,
    pub reason: GcReason,
    pub kind: GcType,
    pub clr_instance_id: u16,
    pub client_sequence_number: Option<u64>,
}

impl<'a> Shape<'a> for GcStart {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `GC/Stop`: Runtime event 2, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcStop {
    pub count: u32,
    pub depth: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcStop {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/SuspendEEStart`: Runtime event 9, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct GcSuspendStart {
    pub reason: GcSuspendEeReason,
    pub count: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcSuspendStart {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/Triggered`: Runtime event 35, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct GcTriggered {
    pub reason: GcReason,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for GcTriggered {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let reason = GcReason(r.u32()?);
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { reason, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/ILToNativeMap`: Runtime event 190, from version 0.
/// * `Method/ILToNativeMapDCStart`: Rundown event 149, from version 0.
/// * `Method/ILToNativeMapDCStop`: Rundown event 150, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct IlToNativeMap<'a> {
    pub method_id: u64,
    pub rejit_id: u64,
    pub method_extent: u8,
    pub il_offsets: List<'a, u32>,
    pub native_offsets: List<'a, u32>,
    pub clr_instance_id: u16,
    pub il_version_id: Option<u64>,
}

impl<'a> Shape<'a> for IlToNativeMap<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let rejit_id = r.u64()?;
        r.field_done();
        let method_extent = r.u8()?;
        r.field_done();
        let count = r.u16()?;
        r.field_done();
        let il_offsets = r.list(u64::from(count))?;
        r.field_done();
        let native_offsets = r.list(u64::from(count))?;
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
/// * `GC/SuspendEEStop`: Runtime event 8, from version 1.
/// * `GC/RestartEEStart`: Runtime event 7, from version 1.
/// * `GC/RestartEEStop`: Runtime event 3, from version 1.
/// * `GC/CreateConcurrentThread`: Runtime event 11, from version 1.
/// * `GC/TerminateConcurrentThread`: Runtime event 12, from version 1.
/// * `GC/FinalizersStart`: Runtime event 14, from version 1.
/// * `WaitHandleWait/Stop`: Runtime event 302, from version 0.
/// * `TieredCompilation/Pause`: Runtime event 281, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct Instance {
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for Instance {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { clr_instance_id })
    }
}

/// The payload of:
///
/// * `Method/LoadVerbose`: Runtime event 143, from version 1.
/// * `Method/UnloadVerbose`: Runtime event 144, from version 1.
/// * `Method/DCStartVerbose`: Rundown event 143, from version 1.
/// * `Method/DCStopVerbose`: Rundown event 144, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct MethodCode<'a> {
    pub method_id: u64,
    pub module_id: u64,
    pub method_start_address: u64,
    pub method_size: u32,
    pub method_token: u32,
    pub method_flags: MethodFlags,
    pub method_namespace: Utf16<'a>,
    pub method_name: Utf16<'a>,
    pub method_signature: Utf16<'a>,
    pub clr_instance_id: u16,
    pub rejit_id: Option<u64>,
}

impl<'a> Shape<'a> for MethodCode<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `Method/MethodDetails`: Runtime event 72, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodDetails<'a> {
    pub method_id: u64,
    pub type_id: u64,
    pub method_token: u32,
    pub loader_module_id: u64,
    pub type_parameters: List<'a, u64>,
}

impl<'a> Shape<'a> for MethodDetails<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
        let type_parameters = r.list(u64::from(count))?;
        r.field_done();
        Ok(Self { method_id, type_id, method_token, loader_module_id, type_parameters })
    }
}

/// The payload of:
///
/// * `Method/InliningFailed`: Runtime event 192, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodInliningFailed<'a> {
    pub method_being_compiled_namespace: Utf16<'a>,
    pub method_being_compiled_name: Utf16<'a>,
    pub method_being_compiled_name_signature: Utf16<'a>,
    pub inliner_namespace: Utf16<'a>,
    pub inliner_name: Utf16<'a>,
    pub inliner_name_signature: Utf16<'a>,
    pub inlinee_namespace: Utf16<'a>,
    pub inlinee_name: Utf16<'a>,
    pub inlinee_name_signature: Utf16<'a>,
    pub fail_always: bool,
    pub fail_reason: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodInliningFailed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/InliningSucceeded`: Runtime event 185, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodInliningSucceeded<'a> {
    pub method_being_compiled_namespace: Utf16<'a>,
    pub method_being_compiled_name: Utf16<'a>,
    pub method_being_compiled_name_signature: Utf16<'a>,
    pub inliner_namespace: Utf16<'a>,
    pub inliner_name: Utf16<'a>,
    pub inliner_name_signature: Utf16<'a>,
    pub inlinee_namespace: Utf16<'a>,
    pub inlinee_name: Utf16<'a>,
    pub inlinee_name_signature: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodInliningSucceeded<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/JittingStarted`: Runtime event 145, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct MethodJittingStarted<'a> {
    pub method_id: u64,
    pub module_id: u64,
    pub method_token: u32,
    pub method_il_size: u32,
    pub method_namespace: Utf16<'a>,
    pub method_name: Utf16<'a>,
    pub method_signature: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodJittingStarted<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/MemoryAllocatedForJitCode`: Runtime event 146, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodMemoryAllocatedForJitCode {
    pub method_id: u64,
    pub module_id: u64,
    pub jit_hot_code_request_size: u64,
    pub jit_ro_data_request_size: u64,
    pub allocated_size_for_jit_code: u64,
    pub jit_alloc_flag: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodMemoryAllocatedForJitCode {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/Load`: Runtime event 141, from version 1.
/// * `Method/Unload`: Runtime event 142, from version 1.
/// * `Method/DCStart`: Rundown event 141, from version 1.
/// * `Method/DCStop`: Rundown event 142, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct MethodRange {
    pub method_id: u64,
    pub module_id: u64,
    pub method_start_address: u64,
    pub method_size: u32,
    pub method_token: u32,
    pub method_flags: MethodFlags,
    pub clr_instance_id: u16,
    pub rejit_id: Option<u64>,
}

impl<'a> Shape<'a> for MethodRange {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `MethodTailCallFailed`: Runtime event 191, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodTailCallFailed<'a> {
    pub method_being_compiled_namespace: Utf16<'a>,
    pub method_being_compiled_name: Utf16<'a>,
    pub method_being_compiled_name_signature: Utf16<'a>,
    pub caller_namespace: Utf16<'a>,
    pub caller_name: Utf16<'a>,
    pub caller_name_signature: Utf16<'a>,
    pub callee_namespace: Utf16<'a>,
    pub callee_name: Utf16<'a>,
    pub callee_name_signature: Utf16<'a>,
    pub tail_prefix: bool,
    pub fail_reason: Utf16<'a>,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodTailCallFailed<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/TailCallSucceeded`: Runtime event 188, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodTailCallSucceeded<'a> {
    pub method_being_compiled_namespace: Utf16<'a>,
    pub method_being_compiled_name: Utf16<'a>,
    pub method_being_compiled_name_signature: Utf16<'a>,
    pub caller_namespace: Utf16<'a>,
    pub caller_name: Utf16<'a>,
    pub caller_name_signature: Utf16<'a>,
    pub callee_namespace: Utf16<'a>,
    pub callee_name: Utf16<'a>,
    pub callee_name_signature: Utf16<'a>,
    pub tail_prefix: bool,
    pub tail_call_type: TailCallType,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for MethodTailCallSucceeded<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Loader/ModuleLoad`: Runtime event 152, from version 1.
/// * `Loader/ModuleUnload`: Runtime event 153, from version 1.
/// * `Loader/ModuleDCStart`: Rundown event 153, from version 1.
/// * `Loader/ModuleDCStop`: Rundown event 154, from version 1.
#[derive(Debug, Clone, Copy)]
pub struct Module<'a> {
    pub module_id: u64,
    pub assembly_id: u64,
    pub module_flags: ModuleFlags,
    pub reserved1: u32,
    pub module_il_path: Utf16<'a>,
    pub module_native_path: Utf16<'a>,
    pub clr_instance_id: u16,
    pub managed_pdb_signature: Option<Uuid>,
    pub managed_pdb_age: Option<u32>,
    pub managed_pdb_build_path: Option<Utf16<'a>>,
    pub native_pdb_signature: Option<Uuid>,
    pub native_pdb_age: Option<u32>,
    pub native_pdb_build_path: Option<Utf16<'a>>,
    pub native_build_id: Option<Utf16<'a>>,
}

impl<'a> Shape<'a> for Module<'a> {
    fn read(r: &mut Reader<'a>, version: u8) -> Parsed<Self> {
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
/// * `Exception/Stop`: Runtime event 256, from version 0.
/// * `ExceptionCatch/Stop`: Runtime event 251, from version 0.
/// * `ExceptionFinally/Stop`: Runtime event 253, from version 0.
/// * `ExceptionFilter/Stop`: Runtime event 255, from version 0.
/// * `ProcessExit`: UniversalSystem event 2, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl<'a> Shape<'a> for Nothing {
    fn read(_: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        Ok(Self)
    }
}

/// The payload of:
///
/// * `ExistingProcess`: UniversalSystem event 0, from version 0.
/// * `ProcessCreate`: UniversalSystem event 1, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    pub namespace_id: u64,
    pub name: &'a [u8],
    pub namespace_name: &'a [u8],
}

impl<'a> Shape<'a> for Process<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ProcessMapping`: UniversalSystem event 3, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMapping<'a> {
    pub id: u64,
    pub start_address: u64,
    pub end_address: u64,
    pub file_offset: u64,
    pub file_name: &'a [u8],
    pub metadata_id: u64,
}

impl<'a> Shape<'a> for ProcessMapping<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ProcessMappingMetadata`: UniversalSystem event 5, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMappingMetadata<'a> {
    pub id: u64,
    pub symbol_metadata: &'a [u8],
    pub version_metadata: &'a [u8],
}

impl<'a> Shape<'a> for ProcessMappingMetadata<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ProcessSymbol`: UniversalSystem event 4, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ProcessSymbol<'a> {
    pub id: u64,
    pub mapping_id: u64,
    pub start_address: u64,
    pub end_address: u64,
    pub name: &'a [u8],
}

impl<'a> Shape<'a> for ProcessSymbol<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/R2RGetEntryPoint`: Runtime event 159, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct R2RGetEntryPoint<'a> {
    pub method_id: u64,
    pub method_namespace: Utf16<'a>,
    pub method_name: Utf16<'a>,
    pub method_signature: Utf16<'a>,
    pub entry_point: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for R2RGetEntryPoint<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Method/R2RGetEntryPointStart`: Runtime event 160, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct R2RGetEntryPointStart {
    pub method_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for R2RGetEntryPointStart {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let method_id = r.u64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { method_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Runtime/Start`: Runtime event 187, from version 0.
/// * `Runtime/Start`: Rundown event 187, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeStart<'a> {
    pub clr_instance_id: u16,
    pub sku: RuntimeSku,
    pub bcl_major_version: u16,
    pub bcl_minor_version: u16,
    pub bcl_build_number: u16,
    pub bcl_qfe_number: u16,
    pub vm_major_version: u16,
    pub vm_minor_version: u16,
    pub vm_build_number: u16,
    pub vm_qfe_number: u16,
    pub startup_flags: StartupFlags,
    pub startup_mode: StartupMode,
    pub command_line: Utf16<'a>,
    pub com_object_guid: Uuid,
    pub runtime_dll_path: Utf16<'a>,
}

impl<'a> Shape<'a> for RuntimeStart<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `GC/SampledObjectAllocation`: Runtime event 20, from version 0.
/// * `GC/SampledObjectAllocation`: Runtime event 32, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct SampledObjectAllocation {
    pub address: u64,
    pub type_id: u64,
    pub object_count_for_type_sample: u32,
    pub total_size_for_type_sample: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for SampledObjectAllocation {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `AppDomainResourceManagement/ThreadCreated`: Runtime event 85, from version 0.
/// * `Loader/ThreadDCStop`: Rundown event 159, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCreated {
    pub managed_thread_id: u64,
    pub app_domain_id: u64,
    pub flags: ThreadFlags,
    pub managed_thread_index: u32,
    pub os_thread_id: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadCreated {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `Thread/Creating`: Runtime event 70, from version 0.
/// * `Thread/Running`: Runtime event 71, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadId {
    pub id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadId {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPool/IODequeue`: Runtime event 64, from version 0.
/// * `ThreadPool/IOPack`: Runtime event 65, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolIo {
    pub native_overlapped: u64,
    pub overlapped: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolIo {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPool/IOEnqueue`: Runtime event 63, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolIoEnqueue {
    pub native_overlapped: u64,
    pub overlapped: u64,
    pub multi_dequeues: bool,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolIoEnqueue {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPoolMinMaxThreads`: Runtime event 59, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolMinMaxThreads {
    pub min_worker_threads: u16,
    pub max_worker_threads: u16,
    pub min_io_completion_threads: u16,
    pub max_io_completion_threads: u16,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolMinMaxThreads {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPool/Enqueue`: Runtime event 61, from version 0.
/// * `ThreadPool/Dequeue`: Runtime event 62, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWork {
    pub work_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWork {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let work_id = r.address()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { work_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThread/Start`: Runtime event 50, from version 0.
/// * `ThreadPoolWorkerThread/Stop`: Runtime event 51, from version 0.
/// * `ThreadPoolWorkerThread/Wait`: Runtime event 57, from version 0.
/// * `ThreadPoolWorkerThreadRetirement/Start`: Runtime event 52, from version 0.
/// * `ThreadPoolWorkerThreadRetirement/Stop`: Runtime event 53, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWorkerThread {
    pub active_worker_thread_count: u32,
    pub retired_worker_thread_count: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWorkerThread {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPoolWorkerThreadAdjustment/Adjustment`: Runtime event 55, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWorkerThreadAdjustmentAdjustment {
    pub average_throughput: f64,
    pub new_worker_thread_count: u32,
    pub reason: ThreadAdjustmentReason,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWorkerThreadAdjustmentAdjustment {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPoolWorkerThreadAdjustment/Sample`: Runtime event 54, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWorkerThreadAdjustmentSample {
    pub throughput: f64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWorkerThreadAdjustmentSample {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let throughput = r.f64()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { throughput, clr_instance_id })
    }
}

/// The payload of:
///
/// * `ThreadPoolWorkerThreadAdjustment/Stats`: Runtime event 56, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWorkerThreadAdjustmentStats {
    pub duration: f64,
    pub throughput: f64,
    pub thread_wave: f64,
    pub throughput_wave: f64,
    pub throughput_error_estimate: f64,
    pub average_throughput_error_estimate: f64,
    pub throughput_ratio: f64,
    pub confidence: f64,
    pub new_control_setting: f64,
    pub new_thread_wave_magnitude: u16,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWorkerThreadAdjustmentStats {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `ThreadPoolWorkingThreadCount/Start`: Runtime event 60, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolWorkingThreadCount {
    pub count: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadPoolWorkingThreadCount {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let count = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { count, clr_instance_id })
    }
}

/// The payload of:
///
/// * `Thread/Sample`: SampleProfiler event 0, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadSample {
    pub kind: ThreadSampleType,
}

impl<'a> Shape<'a> for ThreadSample {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let kind = ThreadSampleType(r.u32()?);
        r.field_done();
        Ok(Self { kind })
    }
}

/// The payload of:
///
/// * `AppDomainResourceManagement/ThreadTerminated`: Runtime event 86, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct ThreadTerminated {
    pub managed_thread_id: u64,
    pub app_domain_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for ThreadTerminated {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `TieredCompilation/BackgroundJitStart`: Runtime event 283, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TieredCompilationBackgroundJitStart {
    pub clr_instance_id: u16,
    pub pending_method_count: u32,
}

impl<'a> Shape<'a> for TieredCompilationBackgroundJitStart {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let pending_method_count = r.u32()?;
        r.field_done();
        Ok(Self { clr_instance_id, pending_method_count })
    }
}

/// The payload of:
///
/// * `TieredCompilation/BackgroundJitStop`: Runtime event 284, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TieredCompilationBackgroundJitStop {
    pub clr_instance_id: u16,
    pub pending_method_count: u32,
    pub jitted_method_count: u32,
}

impl<'a> Shape<'a> for TieredCompilationBackgroundJitStop {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `TieredCompilation/Resume`: Runtime event 282, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TieredCompilationResume {
    pub clr_instance_id: u16,
    pub new_method_count: u32,
}

impl<'a> Shape<'a> for TieredCompilationResume {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let new_method_count = r.u32()?;
        r.field_done();
        Ok(Self { clr_instance_id, new_method_count })
    }
}

/// The payload of:
///
/// * `TieredCompilation/Settings`: Runtime event 280, from version 0.
/// * `TieredCompilationRundown/SettingsDCStart`: Rundown event 280, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TieredCompilationSettings {
    pub clr_instance_id: u16,
    pub flags: TieredCompilationSettingsFlags,
}

impl<'a> Shape<'a> for TieredCompilationSettings {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let flags = TieredCompilationSettingsFlags(r.u32()?);
        r.field_done();
        Ok(Self { clr_instance_id, flags })
    }
}

/// The payload of:
///
/// * `TypeLoad/Start`: Runtime event 73, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TypeLoadStart {
    pub type_load_start_id: u32,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for TypeLoadStart {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let type_load_start_id = r.u32()?;
        r.field_done();
        let clr_instance_id = r.u16()?;
        r.field_done();
        Ok(Self { type_load_start_id, clr_instance_id })
    }
}

/// The payload of:
///
/// * `TypeLoad/Stop`: Runtime event 74, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct TypeLoadStop<'a> {
    pub type_load_start_id: u32,
    pub clr_instance_id: u16,
    pub load_level: u16,
    pub type_id: u64,
    pub type_name: Utf16<'a>,
}

impl<'a> Shape<'a> for TypeLoadStop<'a> {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `WaitHandleWait/Start`: Runtime event 301, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct WaitHandleWaitStart {
    pub wait_source: WaitHandleWaitSource,
    pub associated_object_id: u64,
    pub clr_instance_id: u16,
}

impl<'a> Shape<'a> for WaitHandleWaitStart {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
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
/// * `YieldProcessorMeasurement`: Runtime event 58, from version 0.
#[derive(Debug, Clone, Copy)]
pub struct YieldProcessorMeasurement {
    pub clr_instance_id: u16,
    pub ns_per_yield: f64,
    pub established_ns_per_yield: f64,
}

impl<'a> Shape<'a> for YieldProcessorMeasurement {
    fn read(r: &mut Reader<'a>, _: u8) -> Parsed<Self> {
        let clr_instance_id = r.u16()?;
        r.field_done();
        let ns_per_yield = r.f64()?;
        r.field_done();
        let established_ns_per_yield = r.f64()?;
        r.field_done();
        Ok(Self { clr_instance_id, ns_per_yield, established_ns_per_yield })
    }
}
