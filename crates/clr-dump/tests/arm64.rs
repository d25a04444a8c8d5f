//! A core dump of .NET 10 on arm64, read on any machine.

use std::collections::BTreeSet;

use clr_dump::{
    Address, CodeOrigin, CoreFile, Dump, HeapObject, HeapVisitor, Machine, NamedFrame, Processor, Registers,
    Runtime, Stack, Thread, ThreadSnapshot, ThreadWaits, WaitedFor,
};

/// A dump of .NET 10.0.9 for arm64 with a deadlock, stripped, and cut down to the memory that its analysis
/// reads.
fn core() -> CoreFile {
    CoreFile::open(testdata::bytes("cores/deadlock-10-arm64.core.xz")).unwrap()
}

/// The stacks of `dipc stack` in the same process before: the runtime's own, by its session. Methods of
/// System.Private.CoreLib, whose metadata was left out, have no name.
const SESSION: [(&str, &[Option<&str>]); 3] = [
    (
        "Main",
        &[
            Some("Interop+Sys.Read"),
            Some("System.ConsolePal.Read"),
            Some("System.ConsolePal+UnixConsoleStream.Read"),
            Some("System.IO.ConsoleStream.Read"),
            None,
            None,
            Some("System.IO.SyncTextReader.ReadLine"),
            Some("System.Console.ReadLine"),
            Some("Bank.Main"),
        ],
    ),
    ("Transfer1", &[None, None, Some("Bank.Transfer1"), None, None, None]),
    ("Transfer2", &[None, None, Some("Bank.Transfer2"), None, None, None]),
];

fn methods(dump: &Dump<'_>, stack: &Stack) -> Vec<Option<String>> {
    let name = |code| {
        let name = dump.types().method(code)?.name?;
        Some(format!("{}.{}", name.type_name, name.name))
    };
    stack.managed().map(|(_, code)| name(code)).collect()
}

/// The three threads of the program: its first, and those that wait for one another.
fn threads(dump: &Dump<'_>) -> Vec<Thread> {
    let all = dump.threads().list().unwrap();
    assert_eq!(all.len(), 6);
    let own = all.into_iter().filter(|thread| [1, 4, 5].contains(&thread.managed_id));
    let own: Vec<_> = own.collect();
    assert_eq!(own.len(), 3);
    own
}

#[test]
fn the_processor_is_data_of_the_dump() {
    let core = core();
    assert_eq!((core.machine(), core.processor()), (Machine::AARCH64, Some(Processor::Aarch64)));
    let dump = Dump::open(&core).unwrap();
    let runtime = dump.runtime();
    assert_eq!((runtime.version(), runtime.processor()), ("10.0.9", Processor::Aarch64));
    assert!(runtime.is_described() && runtime.newer_contracts().is_empty());
    let registers = core.thread_registers();
    assert_eq!(registers.len(), 10);
    // Stack pointers are aligned to 16 bytes, and code to 4.
    assert!(registers.values().all(|of| of.sp.is_multiple_of(16) && of.ip.is_multiple_of(4) && of.sp != 0));
    assert!(registers.values().all(|of| of.frame_pointer().is_some_and(|frame| frame >= of.sp)));
}

#[test]
fn stacks_are_those_of_the_runtimes_session() {
    let core = core();
    let dump = Dump::open(&core).unwrap();
    for (thread, (name, expected)) in threads(&dump).iter().zip(SESSION) {
        let registers = core.registers(thread.os_id);
        let stack = dump.threads().stack(thread, registers);
        let expected: Vec<_> = expected.iter().map(|name| name.map(str::to_owned)).collect();
        assert_eq!(methods(&dump, &stack), expected, "{name}");
        // The code of CoreLib was compiled ahead of time; that of the program was not.
        let origins = stack.managed().map(|(_, code)| matches!(code.origin, CodeOrigin::Jit { .. }));
        assert!(origins.into_iter().any(|is_jit| is_jit), "{name}");
        // Only the outermost function of the program, which has no unwind information, is a gap.
        assert!(stack.gaps.iter().all(|(_, gap)| gap.is_native()), "{name}: {:?}", stack.gaps);
        assert_eq!(stack.gaps.len(), usize::from(name == "Main"), "{name}: {:?}", stack.gaps);
        // System calls, and the beginning of the thread.
        let own = |index: usize| {
            dump.native_image(stack.frames[index].ip).map(|image| image.file_name().to_owned())
        };
        let last = stack.frames.len() - if name == "Main" { 2 } else { 1 };
        assert_eq!([own(0), own(last)], [Some("libc.so.6".to_owned()), Some("libc.so.6".to_owned())]);
        // The runtime's list of explicit frames leads to the same methods.
        let without = dump.threads().stack(thread, None);
        assert_eq!(methods(&dump, &without), expected, "{name}");
        assert_eq!(without.gaps.len(), stack.gaps.len(), "{name}: {:?}", without.gaps);
    }
}

/// A thread that the runtime has stopped in the compiler: its methods are found by the registers that the
/// runtime saved when it was called (TransitionBlock), and by the unwind information of all code alike.
#[test]
fn a_method_that_is_being_compiled_leads_to_its_callers() {
    let core = core();
    let dump = Dump::open(&core).unwrap();
    let thread = dump.threads().list().unwrap().into_iter().find(|thread| thread.managed_id == 7).unwrap();
    let frames = |registers: Option<&Registers>| {
        let stack = dump.threads().stack(&thread, registers);
        assert_eq!(stack.gaps, []);
        stack.managed().map(|(frame, _)| (frame.ip, frame.sp)).collect::<Vec<_>>()
    };
    let by_registers = frames(core.registers(thread.os_id));
    assert_eq!((by_registers.len(), frames(None)), (12, by_registers));
}

/// The program's threads each hold the account that the other waits for.
#[test]
fn locks_have_the_deadlock_of_the_program() {
    let core = core();
    let dump = Dump::open(&core).unwrap();
    let snapshot = |thread: Thread| -> ThreadSnapshot {
        let registers = core.registers(thread.os_id);
        let stack = dump.threads().stack(&thread, registers);
        dump.threads().snapshot(thread, stack, registers)
    };
    let threads: Vec<_> = dump.threads().list().unwrap().into_iter().map(snapshot).collect();
    let threads: Vec<_> = threads.iter().collect();
    let waits = ThreadWaits::find(&dump, &threads, &dump.locks().monitors());
    let found: Vec<_> = waits.iter().map(|(index, wait)| (index, wait.kind, wait.owners.clone())).collect();
    assert_eq!(found, [(2, WaitedFor::Monitor, vec![3]), (3, WaitedFor::Monitor, vec![2])]);
    assert_eq!(waits.deadlocks().len(), 1);
    let name = |index: usize| threads[index].frames.iter().find_map(NamedFrame::full_name);
    assert_eq!([name(2), name(3)].map(Option::unwrap), ["Bank.Transfer1", "Bank.Transfer2"]);
}

/// The numbers are those of the whole core dump, of 38 MB.
#[test]
fn the_heap_is_walked_without_gaps() {
    let core = core();
    let alone = Runtime::find_described(&core, core.files()).unwrap();
    assert_eq!(alone.processor(), Processor::Aarch64);
    let dump = Dump::open(&core).unwrap();
    let heap = dump.heap().statistics().unwrap();
    let objects: u64 = heap.types.iter().map(|of| of.amount.objects).sum();
    let bytes: u64 = heap.types.iter().map(|of| of.amount.bytes).sum();
    assert_eq!((objects, bytes, heap.walk.gaps.len()), (7305, 529_434, 0));
    let handles = dump.heap().handles().unwrap();
    assert!(!handles.is_incomplete && handles.handles.len() > 20, "{handles:?}");
    let mut starts = Starts::default();
    dump.heap().walk(&mut starts).unwrap();
    let outside: Vec<_> =
        handles.handles.iter().filter(|handle| !starts.0.contains(&handle.object)).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

/// The addresses of all objects.
#[derive(Default)]
struct Starts(BTreeSet<Address>);

impl HeapVisitor for Starts {
    fn object(&mut self, object: &HeapObject) {
        self.0.insert(object.address);
    }
}

/// A library of .NET 10 that was compiled ahead of time. The numbers are those of the whole core dump, of
/// 38 MB.
#[test]
fn a_library_that_was_compiled_ahead_of_time_is_read() {
    let core = CoreFile::open(testdata::bytes("cores/aot-10-arm64.core.xz")).unwrap();
    assert_eq!(core.processor(), Some(Processor::Aarch64));
    let dump = Dump::open(&core).unwrap();
    let runtime = dump.runtime();
    assert!(runtime.is_native_aot() && runtime.is_measured() && !runtime.is_described());
    assert!(runtime.path().ends_with("/acadsharp_native.so"), "{}", runtime.path());
    let threads = dump.threads().list().unwrap();
    assert_eq!(threads.iter().map(|thread| thread.os_id).collect::<Vec<_>>(), [7553, 7573]);
    let heap = dump.heap().statistics().unwrap();
    let objects: u64 = heap.types.iter().map(|of| of.amount.objects).sum();
    let bytes: u64 = heap.types.iter().map(|of| of.amount.bytes).sum();
    assert_eq!((objects, bytes, heap.walk.gaps.len()), (10_562, 535_446, 0));
    let handles = dump.heap().handles().unwrap();
    assert_eq!((handles.handles.len(), handles.is_incomplete), (1, false));
}
