//! A server can keep the types that hold the data of a core dump or a process, and use them in any thread.

use clr_dump::*;

const fn is_send<T: Send>() {}
const fn is_shared<T: Send + Sync>() {}

/// Fails to compile if a type is tied to a thread.
#[test]
fn types_that_hold_data_can_be_sent() {
    is_shared::<CoreFile>();
    #[cfg(target_os = "linux")]
    is_shared::<(ProcessMemory, CopiedCore, CopyLimits, CopySettings<'_>, TimeLimit, CoreContent<'_>)>();
    is_shared::<(Box<dyn ReadAt>, &dyn Memory)>();
    is_shared::<(WithCopy<'_, CoreFile>, TouchedMemory<'_, CoreFile>)>();
    is_shared::<(Runtime, CodeMap, NativeImages, NativeImage, Module)>();
    is_shared::<(CoreProcess, CoreThread, SignalInfo, MappedFile, Mapping, CopyNote, CopiedContent)>();
    is_shared::<(TypeHandle, MethodDesc)>();
    is_shared::<(ThreadSnapshot, NamedFrame, ThreadWaits, ThreadWait, WaitedFor, HeldLock, Death, DeathCause)>(
    );
    is_shared::<(Thread, Stack, Frame, Gap, Registers, Register, Code, CodeOrigin, FunctionEntry)>();
    is_shared::<(Method, MethodName, Field, StaticField, FieldValue, Value, ObjectContent, ValueKind)>();
    is_shared::<(Exception, ExceptionFrame, ExceptionState, Identity, ThreadExceptions)>();
    is_shared::<(Handle, HandleKind, Handles, Monitor, MonitorWait, Monitors, Owner, WaitKind)>();
    is_shared::<(HeapObject, HeapGap, HeapWalk, HeapStatistics, TypeStatistics, Amount)>();
    is_shared::<(AwaitChains, AwaitGroup, AwaitKind, AwaitNode, ChainEnd, Delay, TaskState)>();
    is_shared::<(ProcessNote, ThreadNote, WrittenCopy, Contents, Error, UnwindError, Missing, Machine)>();
    is_shared::<(ObjectSelection, HeapStrings, DistinctString, ThreadStacks, ManagedStack, NativeStack)>();
    is_shared::<(NativeFrames, FileCode)>();
    // These types cache names without a lock: use one for each thread.
    is_send::<(Dump<'_>, StrippedCore<'_>)>();
}

/// A dump that was opened in one thread is read in others at the same time.
#[test]
fn threads_read_a_dump_at_the_same_time() {
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(64, 0);
    // A core (type 4) of x86-64 (machine 62) with one program header: memory at 0x10000.
    file[16..20].copy_from_slice(&[4, 0, 62, 0]);
    file[32] = 64;
    file[54] = 56;
    file[56] = 1;
    let mut header = vec![1, 0, 0, 0, 4, 0, 0, 0];
    for word in [120_u64, 0x10000, 0, 1 << 20, 1 << 20, 1] {
        header.extend(word.to_le_bytes());
    }
    file.extend(header);
    file.extend((0..1_u32 << 18).flat_map(u32::to_le_bytes));
    let core = CoreFile::open(file).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let memory: &dyn Memory = &core;
            scope.spawn(move || {
                for step in 0..1_u64 << 16 {
                    let index = step * 4 + thread;
                    assert_eq!(memory.u32(0x10000 + index * 4).map(u64::from), Ok(index));
                }
            });
        }
    });
}
