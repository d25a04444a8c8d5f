//! A real core dump, compared with createdump's crash report, and damaged.

use std::collections::{BTreeMap, BTreeSet};

use clr_dump::{
    Address, CoreFile, Death, DeathCause, Dump, Error, ExceptionState, GenerationContents, HeapObject,
    HeapVisitor, NamedFrame, NativeImages, ObjectContent, ReadAt, Runtime, StrippedCore, ThreadSnapshot,
    ThreadWaits, TypeHandle, TypeStatistics, Value, WaitedFor, deadlocks, held_locks,
};

/// A mini dump of .NET 9.0.1, cut down to the memory that its analysis reads.
fn core() -> Vec<u8> {
    testdata::bytes("cores/parked-mini.core.xz")
}

/// A dump with heap of .NET 9.0.1, stripped, and cut down to the memory that its analysis reads.
fn heap_core() -> Vec<u8> {
    testdata::bytes("cores/shop-heap.core.xz")
}

/// A dump with heap of .NET Core 3.1.23 with a deadlock, stripped, and cut down in the same way.
fn old_core() -> Vec<u8> {
    testdata::bytes("cores/deadlock-3.1.core.xz")
}

/// A dump of .NET 10.0.9 on arm64 with a deadlock, stripped, and cut down in the same way.
fn arm64_core() -> Vec<u8> {
    testdata::bytes("cores/deadlock-10-arm64.core.xz")
}

/// A dump that the kernel wrote of a program of NativeAOT, without its code and metadata, stripped, and cut
/// down in the same way: threads that are parked in known methods, and a thread that an exception has ended.
fn native_core() -> Vec<u8> {
    testdata::bytes("cores/native-aot.core.xz")
}

/// The file of that program.
fn native_program() -> Vec<u8> {
    testdata::bytes("workload/nativeaot/workload-9.xz")
}

/// Opens a dump of the program with its file.
fn with_program(core: Vec<u8>, program: &[u8]) -> Result<CoreFile, Error> {
    let mut core = CoreFile::open(core)?;
    let own = |path: &str| path.ends_with("/workload").then(|| Box::new(program.to_vec()) as Box<dyn ReadAt>);
    core.add_files(own);
    Ok(core)
}

/// The first object of each type, and the number of references.
#[derive(Default)]
struct Examples {
    objects: BTreeMap<TypeHandle, HeapObject>,
    references: u64,
}

impl HeapVisitor for Examples {
    fn object(&mut self, object: &HeapObject) {
        if self.objects.len() < 1000 {
            self.objects.entry(object.type_handle).or_insert(*object);
        }
    }

    fn reference(&mut self, _: Address) {
        self.references += 1;
    }

    fn wants_references(&self) -> bool {
        true
    }
}

/// The addresses of all objects.
#[derive(Default)]
struct Starts(BTreeSet<Address>);

impl HeapVisitor for Starts {
    fn object(&mut self, object: &HeapObject) {
        self.0.insert(object.address);
    }
}

/// Reads the contents of objects, and what keeps them alive.
fn read_objects(core: &CoreFile, dump: &Dump<'_>) -> u64 {
    let mut examples = Examples::default();
    let _ = dump.heap().walk(&mut examples);
    for object in examples.objects.values() {
        let _ = dump.heap().content(object, 16);
    }
    let threads = dump.threads().list().unwrap_or_default();
    for field in dump.statics().fields(examples.objects.keys().copied(), &threads) {
        dump.statics().value(&field);
    }
    let _ = (dump.heap().handles(), dump.statics().objects(), dump.heap().awaited_semaphores());
    if let (Ok(contents), Ok(regions)) = (dump.heap().contents(), dump.heap().regions()) {
        let sum = |amount: fn(&GenerationContents) -> u64| contents.sums().iter().map(amount).sum::<u64>();
        assert!(sum(|of| of.objects.objects) <= contents.walk.objects.objects);
        let _ = (regions.generations(), regions.large_objects(16), regions.finalizer_queue());
        if let (Ok(objects), Ok(count)) = (regions.finalizable(), regions.finalizable_count()) {
            assert!(objects.len() as u64 <= count, "the queue has null entries, too");
        }
    }
    for thread in &threads {
        let registers = core.registers(thread.os_id);
        let stack = dump.threads().stack(thread, registers);
        let _ = dump.statics().thread_object(thread);
        let _ = dump.heap().stack_words(thread, &stack, registers);
        let _ = (dump.threads().stack_roots(thread, registers), dump.threads().variables(thread, registers));
    }
    examples.references
}

/// Reads everything. Returns the number of frames, of which `names` has the named ones, and of objects.
fn read_all(bytes: Vec<u8>, names: &mut Vec<String>) -> Result<(usize, u64), Error> {
    read_core(&CoreFile::open(bytes)?, names)
}

fn read_core(core: &CoreFile, names: &mut Vec<String>) -> Result<(usize, u64), Error> {
    let dump = Dump::open(core)?;
    let mut frames = 0;
    for thread in dump.threads().list().unwrap_or_default() {
        let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
        frames += stack.managed().count();
        for (_, code) in stack.managed() {
            let name = dump.types().method(code).and_then(|method| method.name);
            names.extend(name.map(|name| format!("{}.{} {}", name.type_name, name.name, name.signature)));
        }
        let _ = dump.threads().name(&thread);
        let _ = dump.locks().waits(&thread);
        for (_, chain) in dump.exceptions().of_thread(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                dump.exceptions().method(frame);
            }
        }
    }
    dump.locks().monitors();
    dump.types().modules();
    let heap = dump.heap().statistics().unwrap_or_default();
    let _ = dump.awaits().chains();
    read_objects(core, &dump);
    Ok((frames, heap.types.iter().map(|of| of.amount.objects).sum()))
}

#[test]
fn every_managed_frame_of_the_crash_report_is_found() {
    let core = CoreFile::open(core()).unwrap();
    let dump = Dump::open(&core).unwrap();
    assert_eq!((dump.runtime().version(), dump.runtime().is_measured()), ("9.0.1", true));
    let mut found: BTreeMap<u64, Vec<(Address, u32)>> = BTreeMap::new();
    for thread in dump.threads().list().unwrap() {
        let registers = core.registers(thread.os_id);
        assert!(registers.is_some(), "{}", thread.os_id);
        let stack = dump.threads().stack(&thread, registers);
        // The native code of threads without managed frames is left out.
        let is_native = stack.managed().next().is_none() || stack.gaps.iter().all(|(_, gap)| gap.is_native());
        assert!(is_native, "{:?}", stack.gaps);
        let token = |code| dump.types().method(code).unwrap().token.unwrap_or_default();
        found.insert(thread.os_id, stack.managed().map(|(frame, code)| (frame.ip, token(code))).collect());
    }
    // Each row: thread, address, token and name of a frame, innermost first.
    let expected = String::from_utf8(testdata::bytes("cores/parked-mini.frames.txt")).unwrap();
    let mut rest: BTreeMap<u64, _> = found.iter().map(|(thread, frames)| (*thread, frames.iter())).collect();
    let mut count = 0;
    for row in expected.lines() {
        let [thread, address, token, _] = row.splitn(4, ' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let address = Address::new(u64::from_str_radix(address, 16).unwrap());
        let frame = (address, u32::from_str_radix(token, 16).unwrap());
        let frames = rest.get_mut(&thread.parse().unwrap()).unwrap();
        assert!(frames.any(|found| *found == frame), "{row} is missing or out of order");
        count += 1;
    }
    assert_eq!(count, 182);
    // The report leaves nine frames without a token.
    assert_eq!(found.values().map(Vec::len).sum::<usize>(), 191);
}

#[test]
fn methods_have_the_names_that_the_runtime_gives_them() {
    let mut names = Vec::new();
    read_all(core(), &mut names).unwrap();
    // `parked.cs` declares them. Type arguments belong to the runtime's own modules; their metadata is left
    // out.
    for expected in [
        "Parked.P.Main void  (class System.String[])",
        "Parked.P.Sleepy void  (int32)",
        "Parked.P+<>c__DisplayClass35_0.<Go>b__0 instance void  ()",
        "Parked.Gen`1.Run instance void  (!0,!!0,class System.Collections.Generic.List`1<!0>)",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected}: {names:#?}");
    }
}

/// Numbers that depend on the seed of random tests alone (xorshift).
struct Random(u64);

impl Random {
    fn new(test: u64) -> Self {
        Self(test ^ testdata::seed())
    }

    /// Puts another value in the place of a word.
    fn damage(&mut self, bytes: &mut [u8], at: usize) {
        const VALUES: [u64; 8] = [0, 1, 8, 0x7fff_ffff, 0xffff_ffff, 1 << 60, u64::MAX, u64::MAX - 7];
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let value = match self.below(3) {
            0 => VALUES[self.below(VALUES.len())],
            // Another word of the file: an address of something else.
            1 => word(self.below(bytes.len() / 8 - 1) * 8),
            _ => word(at) ^ 1 << self.below(64),
        };
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// `heap.cs` declares the objects.
#[test]
fn the_heap_has_the_objects_of_its_program() {
    let core = CoreFile::open(heap_core()).unwrap();
    assert!(core.is_stripped());
    let dump = Dump::open(&core).unwrap();
    let heap = dump.heap().statistics().unwrap();
    assert!(heap.walk.gaps.is_empty() && !heap.walk.is_moving, "{:?}", heap.walk.gaps);
    let amount = |name: &str| {
        let of = heap.types.iter().find(|of| of.name.as_deref() == Some(name));
        of.map(|of| (of.amount.objects, of.amount.bytes)).unwrap_or_default()
    };
    assert_eq!(amount("Shop.Row"), (2000, 80_000));
    assert_eq!(amount("Shop.Everything").0, 1);
    let mut examples = Examples::default();
    let walk = dump.heap().walk(&mut examples).unwrap();
    assert_eq!(walk.objects_without_references, 0);
    // Each row refers to others.
    assert!(examples.references > 2000, "{}", examples.references);
    // A string has its length, and lost its characters.
    let string = examples.objects.values().find(|object| dump.types().is_string(object.type_handle)).unwrap();
    let ObjectContent::Text { text, length } = dump.heap().content(string, 8).unwrap() else { panic!() };
    assert!(length > 0 && text.chars().all(|unit| unit == '\0'), "{text:?}");
    let everything = examples
        .objects
        .values()
        .find(|object| dump.types().name(object.type_handle).as_deref() == Some("Shop.Everything"));
    let ObjectContent::Fields(fields) = dump.heap().content(everything.unwrap(), 8).unwrap() else {
        panic!()
    };
    assert!(fields.len() > 5 && fields.iter().all(|field| field.value != Value::Missing), "{fields:?}");
}

/// The parts of a heap have all its objects, and the runtime's regions their bytes.
#[test]
fn objects_are_counted_by_generation() {
    let cores = [
        ("shop-heap", CoreFile::open(heap_core()).unwrap()),
        ("deadlock-3.1", CoreFile::open(old_core()).unwrap()),
        ("native-aot", with_program(native_core(), &native_program()).unwrap()),
    ];
    for (name, core) in &cores {
        let dump = Dump::open(core).unwrap();
        let contents = dump.heap().contents().unwrap();
        let regions = dump.heap().regions().unwrap();
        let sums = contents.sums();
        let sum = |amount: fn(&GenerationContents) -> u64| sums.iter().map(amount).sum::<u64>();
        let walk = &contents.walk;
        assert_eq!(sum(|of| of.objects.objects), walk.objects.objects, "{name}");
        assert_eq!(sum(|of| of.objects.bytes), walk.objects.bytes, "{name}");
        assert_eq!(sum(|of| of.free.bytes), walk.free.bytes, "{name}");
        assert_eq!(sum(|of| of.committed_bytes), regions.committed_bytes(), "{name}");
        let generations: Vec<_> = regions.generations().iter().map(|of| (of.number, of.bytes)).collect();
        let expected: Vec<_> = sums.iter().map(|of| (of.generation, of.bytes)).collect();
        assert_eq!(generations, expected, "{name}");
        for region in regions.regions() {
            let of = |address| (regions.generation_of(address), contents.generation_of(address));
            let is_empty = region.start == region.end;
            let expected = (!is_empty).then_some(region.generation);
            assert_eq!(of(region.start), (expected, expected), "{name}: {region:?}");
            assert_eq!(regions.region_of(region.start), Some(region), "{name}");
        }
        assert_eq!(regions.generation_of(Address::new(8)), None);
        assert!(contents.free_blocks.is_sorted_by_key(|block| std::cmp::Reverse(block.bytes)), "{name}");
    }
}

/// `heap.cs` leaves two objects that wait for their finalizers. The other cores lack the queue's parts.
#[test]
fn objects_with_finalizers_are_counted_by_type() {
    let core = CoreFile::open(heap_core()).unwrap();
    let dump = Dump::open(&core).unwrap();
    let regions = dump.heap().regions().unwrap();
    let queue = regions.finalizer_queue().unwrap();
    let first = queue.types.first().unwrap();
    assert_eq!(dump.types().name(first.type_handle).as_deref(), Some("Shop.Finalized"));
    assert_eq!((queue.ready, first.ready, first.registered), (2, 2, 0));
    assert_eq!(queue.ready, regions.finalizable_count().unwrap());
    let old = CoreFile::open(old_core()).unwrap();
    let queue = Dump::open(&old).unwrap().heap().regions().unwrap().finalizer_queue().unwrap();
    assert!(queue.is_incomplete && queue.registered_count() == 0, "{queue:?}");
}

/// `heap.cs` declares the objects. The core dump has lost the characters of its strings.
#[test]
fn finds_the_objects_of_a_type_and_equal_strings() {
    let core = CoreFile::open(heap_core()).unwrap();
    let dump = Dump::open(&core).unwrap();
    let heap = dump.heap().statistics().unwrap();
    let named = |name: &str| {
        heap.types.iter().find(|of| of.name.as_deref() == Some(name)).map(|of| (of.type_handle, of.amount))
    };
    let (rows, amount) = named("Shop.Row").unwrap();
    let found = dump.heap().objects_of([rows], None, 3).unwrap();
    assert_eq!((found.objects.len(), found.amount), (3, amount));
    assert_eq!(found.walk.objects.objects, heap.types.iter().map(|of| of.amount.objects).sum::<u64>());
    let strings = heap.types.iter().find(|of| dump.types().is_string(of.type_handle)).unwrap().amount;
    let found = dump.heap().strings(4096, |text| text.len() >= 3).unwrap();
    assert!(found.count == strings.objects && found.matching.objects < found.count, "{:?}", found.matching);
    let sum = found.strings.iter().map(|string| string.amount.objects).sum::<u64>();
    assert_eq!((sum, found.not_compared, found.unreadable), (found.matching.objects, 0, 0));
    assert!(
        found.strings.iter().all(|string| string.length >= 3 && string.text.chars().all(|it| it == '\0'))
    );
    assert!(found.strings.is_sorted_by_key(|string| std::cmp::Reverse(string.amount.bytes)));
    assert!(found.duplicate_bytes() > 0 && found.duplicate_bytes() < found.matching.bytes);
}

/// The graph has the objects of the heap, and the static field that holds the rows of `heap.cs`.
#[cfg(feature = "heap-graph")]
#[test]
fn a_heap_is_a_graph_with_roots() {
    for (core, held) in [(heap_core(), "[static var Shop.Program.rows: "), (old_core(), "[static vars]")] {
        let core = CoreFile::open(core).unwrap();
        let dump = Dump::open(&core).unwrap();
        let heap = dump.heap().statistics().unwrap();
        let stacks = dump.threads().stacks(&core.thread_registers()).unwrap();
        assert!(!stacks.managed.is_empty() && stacks.managed.iter().any(|of| of.registers.is_some()));
        let mut calls = 0_u64;
        let reader = dump.heap().graph(Some(4711), &stacks, &mut || calls += 1).unwrap();
        assert_eq!(reader.walk().objects, heap.walk.objects);
        let graph = reader.into_builder().finish().unwrap();
        assert_eq!((graph.process_id(), calls), (Some(4711), u64::from(graph.object_count()) / 4096));
        let objects = heap.walk.objects;
        assert_eq!((u64::from(graph.object_count()), graph.total_bytes()), (objects.objects, objects.bytes));
        assert!(graph.reference_count() > 100 && graph.root_count() > 20, "{}", graph.root_count());
        let groups: Vec<_> = graph.groups().iter().map(|group| group.csharp().into_owned()).collect();
        assert!(groups.iter().any(|group| group.starts_with(held)), "{groups:?}");
        assert!(groups.iter().any(|group| group == "[pinning Handles]"), "{groups:?}");
    }
}

/// `deadlock.cs` states the waits; the numbers of objects match the runtime's own heap dump.
#[test]
fn a_core_of_net_core_3_1_has_the_deadlock_and_the_objects_of_its_program() {
    let core = CoreFile::open(old_core()).unwrap();
    let dump = Dump::open(&core).unwrap();
    assert_eq!((dump.runtime().version(), dump.runtime().is_measured()), ("3.1.23", true));
    let threads = dump.threads().list().unwrap();
    let mut methods = Vec::new();
    for thread in &threads {
        let stack = dump.threads().stack(thread, core.registers(thread.os_id));
        let is_native = stack.managed().next().is_none() || stack.gaps.iter().all(|(_, gap)| gap.is_native());
        assert!(is_native, "{:?}", stack.gaps);
        let own = stack.managed().filter_map(|(_, code)| dump.types().method(code)?.name);
        methods.extend(own.map(|method| format!("{}.{}", method.type_name, method.name)));
    }
    assert_eq!(methods, ["Bank.Main", "Bank.Transfer1", "Bank.Transfer2"]);
    let monitors = dump.locks().monitors();
    let waits_for: Vec<_> = threads
        .iter()
        .map(|thread| {
            let waits = dump.locks().waits(thread).unwrap();
            let owner = monitors.at(waits.first()?.monitor)?.owner?;
            threads.iter().position(|other| other.address == owner.thread)
        })
        .collect();
    assert_eq!(deadlocks(&waits_for), [[3, 4]]);
    let heap = dump.heap().statistics().unwrap();
    let sum = |of: fn(&TypeStatistics) -> u64| heap.types.iter().map(of).sum::<u64>();
    assert_eq!((sum(|of| of.amount.objects), sum(|of| of.amount.bytes)), (464, 87_338));
    assert_eq!((heap.walk.gaps.len(), heap.thin_locks.len()), (0, 1));
    let handles = dump.heap().handles().unwrap();
    assert!(!handles.is_incomplete && handles.handles.len() > 20, "{handles:?}");
    let mut starts = Starts::default();
    dump.heap().walk(&mut starts).unwrap();
    assert!(handles.handles.iter().all(|handle| starts.0.contains(&handle.object)));
    assert!(dump.statics().has_places());
    // The core dump was cut down to the memory read at that time, which did not include these places.
    assert!(dump.statics().fields(heap.types.iter().map(|of| of.type_handle), &threads).is_empty());
}

/// createdump pads the names of the files with zeros. Names must not be taken for further addresses: numbers
/// can lie between those.
#[test]
fn mapped_files_are_those_of_the_list_alone() {
    for bytes in [core(), heap_core(), old_core(), native_core()] {
        let core = CoreFile::open(bytes).unwrap();
        assert!(core.files().len() > 20);
        for file in core.files() {
            assert!(file.start < file.end && file.end.get() < 1 << 47, "{file:x?}");
            assert!(file.path.starts_with('/'), "{file:x?}");
        }
    }
}

/// The managed threads of a dump with their stacks and the names of their frames.
fn snapshots(core: &CoreFile, dump: &Dump<'_>) -> Vec<ThreadSnapshot> {
    let snapshot = |thread: clr_dump::Thread| {
        let registers = core.registers(thread.os_id);
        let stack = dump.threads().stack(&thread, registers);
        dump.threads().snapshot(thread, stack, registers)
    };
    dump.threads().list().unwrap().into_iter().map(snapshot).collect()
}

/// The threads of `deadlock.cs` each hold the account that the other waits for.
#[test]
fn waits_lead_to_the_threads_that_hold_monitors() {
    let core = CoreFile::open(old_core()).unwrap();
    let dump = Dump::open(&core).unwrap();
    let threads = snapshots(&core, &dump);
    let threads: Vec<_> = threads.iter().collect();
    let waits = ThreadWaits::find(&dump, &threads, &dump.locks().monitors());
    let found: Vec<_> = waits.iter().map(|(index, wait)| (index, wait.kind, wait.owners.clone())).collect();
    assert_eq!(found, [(3, WaitedFor::Monitor, vec![4]), (4, WaitedFor::Monitor, vec![3])]);
    let [cycle] = &waits.deadlocks()[..] else { panic!("{:?}", waits.deadlocks()) };
    assert_eq!(
        cycle.iter().map(|(thread, _, owner)| (*thread, *owner)).collect::<Vec<_>>(),
        [(3, 4), (4, 3)]
    );
    assert_eq!((waits.lock_waits(), held_locks(&dump, &threads)), (2, Vec::new()));
    let name = |index: usize| threads[index].frames.iter().find_map(NamedFrame::full_name);
    assert_eq!([name(3), name(4)].map(Option::unwrap), ["Bank.Transfer1", "Bank.Transfer2"]);
    // It was written of a process that went on.
    assert_eq!(Death::find(&core, &dump, &threads), None);
}

/// A signal, a thread that throws, and the runtime's own native frames: the exception has ended the process.
#[test]
fn an_unhandled_exception_is_the_cause_of_death() {
    let core = with_program(native_core(), &native_program()).unwrap();
    let dump = Dump::open(&core).unwrap();
    let threads = snapshots(&core, &dump);
    let threads: Vec<_> = threads.iter().collect();
    let death = Death::find(&core, &dump, &threads).unwrap();
    let thread = threads.iter().find(|thread| thread.thread.os_id == death.tid).unwrap();
    assert_eq!((death.cause, thread.throws()), (DeathCause::UnhandledException, true));
}

#[test]
fn a_stripped_core_has_the_answers_of_its_original() {
    for bytes in [core(), heap_core(), old_core(), arm64_core()] {
        let copy = strip(&bytes);
        assert_ne!(copy, bytes);
        let (mut names, mut names_of_copy) = (Vec::new(), Vec::new());
        assert_eq!(read_all(bytes, &mut names).unwrap(), read_all(copy, &mut names_of_copy).unwrap());
        assert_eq!(names, names_of_copy);
    }
}

fn strip(bytes: &[u8]) -> Vec<u8> {
    let core = CoreFile::open(bytes.to_vec()).unwrap();
    let mut copy = vec![0; bytes.len()];
    let written = StrippedCore::new(&core).unwrap().write(|at, part| {
        let at = usize::try_from(at).unwrap();
        copy[at..at + part.len()].copy_from_slice(part);
        Ok(())
    });
    assert_eq!(written.unwrap().file_bytes, bytes.len() as u64);
    copy
}

mod random {
    use super::*;

    /// 10,000 damaged core dumps: all readable notes, threads, stacks and exceptions of each.
    #[test]
    fn ten_thousand_damaged_cores_neither_hang_nor_panic() {
        let mut random = Random::new(0x0123_4567_89ab_cdef);
        let cores = [core(), heap_core(), old_core(), arm64_core()];
        // The words that an analysis reads first decide most: headers and notes are damaged more often.
        let mut outcomes = [0_u32; 3];
        for round in 0..10_000 {
            let mut bytes = cores[round % cores.len()].clone();
            for _ in 0..=random.below(12) {
                let end = [0x400, 0x8000, bytes.len(), bytes.len()][random.below(4)];
                let at = random.below(end / 8 - 1) * 8;
                random.damage(&mut bytes, at);
            }
            outcomes[read_threads(bytes)] += 1;
        }
        assert!(outcomes.iter().all(|count| *count > 50), "{outcomes:?}");
    }

    /// Reads the threads of a core dump with their stacks and exceptions. Returns 0 if it is not a core dump,
    /// 1 if the runtime is not found, 2 otherwise.
    fn read_threads(bytes: Vec<u8>) -> usize {
        let Ok(core) = CoreFile::open(bytes) else { return 0 };
        let images = NativeImages::new(core.files());
        for registers in core.threads().iter().take(4).filter_map(|thread| thread.registers) {
            images.stack(&core, &registers);
        }
        let Ok(dump) = Dump::open(&core) else { return 1 };
        for thread in dump.threads().list().unwrap_or_default().iter().take(8) {
            dump.threads().stack(thread, core.registers(thread.os_id));
            dump.exceptions().of_thread(thread);
            let _ = dump.threads().name(thread);
        }
        2
    }

    #[test]
    fn damaged_words_neither_hang_nor_panic() {
        damage(&core(), 400);
    }

    #[test]
    fn a_damaged_heap_neither_hangs_nor_panics() {
        damage(&heap_core(), 200);
    }

    fn damage(whole: &[u8], times: u32) {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
        let mut outcomes = [0; 2];
        for _ in 0..times {
            let mut bytes = whole.to_vec();
            for _ in 0..=random.below(64) {
                let at = random.below(bytes.len() / 8 - 1) * 8;
                random.damage(&mut bytes, at);
            }
            if let Ok(core) = CoreFile::open(bytes.clone())
                && let Ok(copy) = StrippedCore::new(&core)
            {
                let _ = copy.write(|_, _| Ok(()));
            }
            let read = read_all(bytes, &mut Vec::new());
            outcomes[usize::from(read.is_ok())] += 1;
        }
        // Most damage is where it does no harm.
        assert!(outcomes[1] > times / 8, "{outcomes:?}");
    }

    #[test]
    fn a_damaged_core_of_net_core_3_1_neither_hangs_nor_panics() {
        damage(&old_core(), 200);
    }

    #[test]
    fn a_damaged_core_of_arm64_neither_hangs_nor_panics() {
        damage(&arm64_core(), 200);
    }

    #[test]
    fn a_damaged_program_of_native_aot_neither_hangs_nor_panics() {
        let (core, program) = (native_core(), native_program());
        for part in 1..20 {
            let cut = core[..core.len() * part / 20].to_vec();
            if let Ok(core) = with_program(cut, &program) {
                let _ = read_core(&core, &mut Vec::new());
            }
        }
        let mut random = Random::new(0x2545_f491_4f6c_dd1d);
        let mut next = |below: usize| random.below(below);
        for round in 0..24 {
            let (mut core, mut program) = (core.clone(), program.clone());
            for _ in 0..200 {
                let at = next(core.len());
                core[at] = u8::try_from(next(256)).unwrap();
                // The metadata and its maps, and code with its unwind information.
                let at = 0x1000 + next(program.len() - 0x1000);
                program[at] = u8::try_from(next(256)).unwrap();
            }
            // Headers that lead elsewhere are tried with the other core dumps.
            core[..0x4000].copy_from_slice(&native_core()[..0x4000]);
            if round % 2 == 0 {
                program = native_program();
            }
            if let Ok(core) = with_program(core, &program) {
                let _ = read_core(&core, &mut Vec::new());
            }
        }
    }
}

#[test]
fn reads_a_truncated_file_up_to_its_end() {
    truncate(&core());
}

#[test]
fn reads_a_truncated_heap_up_to_its_end() {
    truncate(&heap_core());
}

#[test]
fn reads_a_truncated_core_of_net_core_3_1_up_to_its_end() {
    truncate(&old_core());
}

#[test]
fn reads_a_truncated_core_of_arm64_up_to_its_end() {
    truncate(&arm64_core());
}

fn truncate(whole: &[u8]) {
    let (all, objects) = read_all(whole.to_vec(), &mut Vec::new()).unwrap();
    assert!(!CoreFile::open(whole.to_vec()).unwrap().is_truncated());
    let mut read = 0;
    for part in 0..100 {
        let bytes = whole[..whole.len() * part / 100].to_vec();
        match CoreFile::open(bytes.clone()) {
            Ok(core) => assert!(core.is_truncated() && core.file_bytes() < core.promised_bytes(), "{part}"),
            Err(Error::TruncatedHeader { bytes: length }) => assert_eq!(length, bytes.len() as u64),
            Err(error) => panic!("{part}: {error}"),
        }
        if let Ok((frames, some)) = read_all(bytes, &mut Vec::new()) {
            assert!(frames <= all && some <= objects, "{part}: {frames} of {all}");
            read += 1;
        }
    }
    assert!(read > 0);
}

/// The methods that the program's source has; the runtime itself has written the last four at its end.
#[test]
fn a_program_of_native_aot_has_the_stacks_and_the_objects_of_its_source() {
    let core = with_program(native_core(), &native_program()).unwrap();
    let dump = Dump::open(&core).unwrap();
    assert!(dump.runtime().is_native_aot() && dump.runtime().is_measured());
    assert_eq!(dump.runtime().version(), "9.0");
    let name = |method: Option<clr_dump::Method>| {
        let name = method?.name?;
        Some([&*name.type_name, ".", &*name.name].concat())
    };
    let mut found = BTreeSet::new();
    let mut exceptions = Vec::new();
    for thread in dump.threads().list().unwrap() {
        let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
        let of_program =
            |name: &String| ["Parked", "Spin.", "Program."].iter().any(|of| name.starts_with(of));
        let methods =
            stack.managed().filter_map(|(_, code)| name(dump.types().method(code))).filter(of_program);
        found.insert(methods.collect::<Vec<_>>().join(" "));
        let read = dump.exceptions().of_thread(&thread);
        assert_eq!((read.missing, read.is_uncertain), (None, false));
        exceptions.extend(read.exceptions);
    }
    let lambda = ["Parked+<>c.<Start>b__7_3", " Spin.Deep"].concat();
    for expected in [
        "Parked.Sleeper",
        "Parked.Blocked",
        "Parked+Box`1.Wait Parked.GenericWait",
        "Parked+<>c.<Start>b__7_2",
        "Parked+<>c.<Waits>b__6_0",
        "Program.Run Program.Say Program.Main",
    ] {
        assert!(found.contains(expected), "{expected}: {found:#?}");
    }
    assert!(found.iter().any(|methods| methods.starts_with(&lambda)), "{found:#?}");
    let [(ExceptionState::Current, chain)] = &exceptions[..] else { panic!("{exceptions:?}") };
    let [exception] = &chain[..] else { panic!("{chain:?}") };
    assert_eq!(exception.type_name.as_deref(), Some("System.FormatException"));
    // The core dump was stripped.
    assert_eq!((&exception.message, exception.lacks_message), (&None, true));
    assert_eq!(exception.hresult, Some(0x8013_1537));
    let frames: Vec<_> =
        exception.stack.iter().filter_map(|frame| name(dump.exceptions().method(frame))).collect();
    assert_eq!(frames, ["System.Number.ThrowFormatException", "Program.Run", "Program.Say", "Program.Main"]);
    let heap = dump.heap().statistics().unwrap();
    assert_eq!(heap.walk.gaps, []);
    let nodes = heap.types.iter().find(|of| of.name.as_deref() == Some("Program+Node")).unwrap();
    assert_eq!((nodes.amount.objects, nodes.amount.bytes), (100, 4000));
    assert_eq!(nodes.module.as_deref(), Some("workload"));
    let unnamed: Vec<_> = heap.types.iter().filter(|of| of.name.is_none()).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let statics: BTreeSet<Address> = dump.statics().objects().unwrap().into_iter().collect();
    assert!(statics.len() > 400, "{}", statics.len());
    let mut starts = Starts::default();
    dump.heap().walk(&mut starts).unwrap();
    assert!(statics.is_subset(&starts.0));
}

/// The metadata is in the file of the program alone: another file yields no names, and nothing is guessed.
#[test]
fn a_program_of_native_aot_is_not_read_with_another_file() {
    let mut program = native_program();
    let id = program.windows(4).position(|bytes| bytes == [0x01, 0x26, 0x52, 0x93]).unwrap();
    program[id] ^= 1;
    let core = with_program(native_core(), &program).unwrap();
    assert!(Runtime::find(&core, core.files()).is_err());
    let core = CoreFile::open(native_core()).unwrap();
    assert!(Runtime::find(&core, core.files()).is_err());
}

/// Sets the architecture in the header of a core dump, or in the headers of the mapped images.
fn of_machine(mut bytes: Vec<u8>, machine: u16, is_of_images: bool) -> Vec<u8> {
    let headers: Vec<usize> = (0..bytes.len().saturating_sub(64))
        .filter(|at| bytes[*at..].starts_with(b"\x7fELF\x02\x01") && (*at > 0) == is_of_images)
        .collect();
    assert!(!headers.is_empty());
    for at in headers {
        bytes[at + 18..at + 20].copy_from_slice(&machine.to_le_bytes());
    }
    bytes
}

#[test]
fn other_processors_are_refused_by_name() {
    let other = CoreFile::open(of_machine(core(), 243, false)).unwrap();
    assert_eq!((other.machine(), other.processor()), (clr_dump::Machine(243), None));
    let error = other.machine().check().unwrap_err();
    assert_eq!(error.to_string(), "programs of riscv64 are not read yet, only those of x86-64 and arm64");
    // The memory of a process has the headers of images alone.
    let other = CoreFile::open(of_machine(core(), 243, true)).unwrap();
    assert!(other.machine().check().is_ok());
    let error = Runtime::find(&other, other.files()).unwrap_err();
    assert!(matches!(error, Error::UnsupportedMachine(clr_dump::Machine(243))), "{error}");
    // On arm64 only .NET 10 is read.
    let other = CoreFile::open(of_machine(core(), 183, true)).unwrap();
    assert!(matches!(Runtime::find(&other, other.files()), Err(Error::UnknownRuntime { .. })));
}
