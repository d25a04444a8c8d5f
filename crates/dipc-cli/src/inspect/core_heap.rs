//! The heap of a core dump or of a process's memory as a graph, with its roots.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use clr_dump::{Dump, HandleKind, Handles, HeapObject, HeapVisitor, HeapWalk, TypeHandle, ValueKind};
use gcdump::{HeapGraph, MemoryCompleteness, MemoryGraphBuilder, MemoryType, RootKind};

use crate::exit::{Exit, Failure};
use crate::inspect::core_advice;
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_source::Source;
use crate::inspect::pause::Pause;
use crate::render::units;

/// The number of times that the heap of a running process is read, if a collection changes it meanwhile, and the
/// time between.
const ATTEMPTS: usize = 8;
const WAIT: Duration = Duration::from_millis(20);

/// The number of objects between two looks at the clock.
const LOOK: u64 = 4096;

/// The heap of a core dump or a process.
pub(crate) struct MemoryHeap {
    pub(crate) graph: HeapGraph,
    /// The bytes that are committed for it.
    pub(crate) committed_bytes: u64,
}

/// Reads the heap; a failure if the dump does not have it. A process is stopped meanwhile, for `stop` at
/// most.
pub(crate) fn read(source: &Source, stop: Option<Duration>) -> Result<MemoryHeap, Failure> {
    let runtime = source.runtime()?;
    let mut attempts = if source.pid().is_some() && stop.is_none() { ATTEMPTS } else { 1 };
    let mut best: Option<MemoryHeap> = None;
    loop {
        attempts -= 1;
        let pause = stop.map(|limit| Pause::begin(source, limit)).transpose()?;
        let read = Analysis::new(source, &runtime).and_then(|analysis| read_once(&analysis, pause));
        match read {
            Ok(heap) if heap.graph.completeness().is_complete() => return Ok(heap),
            Ok(heap) => {
                let is_better = |best: &MemoryHeap| heap.graph.object_count() > best.graph.object_count();
                if best.as_ref().is_none_or(is_better) {
                    best = Some(heap);
                }
            }
            Err(failure) if attempts == 0 && best.is_none() => return Err(failure),
            Err(_) => {}
        }
        match best {
            Some(heap) if attempts == 0 => return Ok(heap),
            _ => std::thread::sleep(WAIT),
        }
    }
}

fn read_once(analysis: &Analysis<'_>, pause: Option<Pause>) -> Result<MemoryHeap, Failure> {
    let dump = &analysis.dump;
    let pid = match analysis.source.core() {
        Some(core) => core.process().map(|process| process.pid.into()),
        None => analysis.source.pid().map(Into::into),
    };
    let mut missing = MemoryCompleteness::default();
    let (words, without_stack) = stack_words(analysis);
    missing.stacks_without_roots = without_stack;
    let handles = dump.heap().handles();
    let mut reader = Reader {
        builder: MemoryGraphBuilder::new(8, pid),
        dependents: handles.as_ref().map(dependents).unwrap_or_default(),
        types: BTreeSet::new(),
        recent_types: [TypeHandle::default(); 8],
        words: words.into_iter().peekable(),
        on_stacks: Vec::new(),
        frozen: dump.heap().frozen_objects().unwrap_or_default(),
        frozen_objects: Vec::new(),
        bytes: 0,
        objects: 0,
        pause,
    };
    let walk =
        dump.heap().walk(&mut reader).map_err(|missing| lacks(analysis.source, &missing.to_string()))?;
    let Reader { mut builder, types, on_stacks, frozen_objects, bytes, pause, .. } = reader;
    check(analysis.source, bytes, &walk)?;
    missing.missing_bytes = missing_bytes(&walk);
    missing.is_moving = walk.is_moving;
    missing.objects_without_references = walk.objects_without_references;
    missing.conservative_roots = on_stacks.len() as u64;
    missing.missing_roots =
        add_handles(handles.ok().as_ref(), &mut builder) + add_finalizable(dump, &mut builder);
    for thread in &analysis.threads {
        match dump.statics().thread_object(&thread.thread) {
            Ok(Some(array)) => builder.add_root(RootKind::ThreadStatic, array),
            Ok(None) => {}
            Err(_) => missing.missing_roots += 1,
        }
    }
    add_statics(dump, &types, &mut builder);
    match dump.statics().objects() {
        Ok(objects) => objects.iter().for_each(|object| builder.add_root(RootKind::Static, *object)),
        Err(_) => missing.missing_roots += 1,
    }
    for object in &frozen_objects {
        builder.add_root(RootKind::Static, *object);
    }
    // The last: what else holds an object says more.
    for object in &on_stacks {
        builder.add_root(RootKind::Stack, *object);
    }
    add_types(dump, &types, &mut builder);
    if let Some(pause) = pause {
        pause.end();
    }
    let failed = |error| Failure::new(Exit::Failed, format_args!("read the heap: {error}"));
    let graph = builder.with_completeness(missing).finish().map_err(failed)?;
    Ok(MemoryHeap { graph, committed_bytes: walk.committed_bytes })
}

/// A failure for a heap that is not there.
pub(crate) fn lacks(source: &Source, why: &str) -> Failure {
    let what = match core_advice::shortfall(source) {
        Some(reason) => format!("the heap is not in the dump: {reason}"),
        None if source.pid().is_some() => {
            format!("the heap was not read: it changed in each of {ATTEMPTS} attempts ({why})")
        }
        None => format!("the heap is not in the dump: {why}"),
    };
    let help = core_advice::better(source);
    Failure::new(Exit::Incomplete, format_args!("{}: {what}", source.subject())).with_help(help)
}

/// Fails if less than half of the heap was read, unless a collection was moving it.
pub(crate) fn check(source: &Source, bytes: u64, walk: &HeapWalk) -> Result<(), Failure> {
    let missing = missing_bytes(walk);
    let is_moving = walk.is_moving && source.pid().is_none();
    if bytes.saturating_add(walk.free.bytes) < missing && !is_moving {
        return Err(lacks(source, &format!("{} of it cannot be read", units::bytes(missing))));
    }
    Ok(())
}

/// The sentence about a heap that was dumped during a collection that moved objects.
pub(crate) fn moving(source: &Source, missing: u64) -> String {
    let when = if source.pid().is_some() {
        "A collection moves objects at this moment"
    } else {
        "A collection was moving objects when the dump was taken"
    };
    let missing = match missing {
        0 => String::new(),
        missing => {
            format!("; {} of the heap are between two states, and are left out", units::bytes(missing))
        }
    };
    format!("{when}: some can be missing or counted twice{missing}")
}

fn missing_bytes(walk: &HeapWalk) -> u64 {
    walk.gaps.iter().map(|gap| gap.bytes).fold(0, u64::saturating_add)
}

/// The objects of a heap on their way into a graph.
struct Reader {
    builder: MemoryGraphBuilder,
    /// The objects that dependent handles keep alive, by the object that they depend on.
    dependents: BTreeMap<u64, Vec<u64>>,
    types: BTreeSet<TypeHandle>,
    /// The last types that were not among these.
    recent_types: [TypeHandle; 8],
    /// Words of stacks, in ascending order like the objects.
    words: std::iter::Peekable<std::vec::IntoIter<u64>>,
    /// Objects that words of stacks point into.
    on_stacks: Vec<u64>,
    /// The place of the objects that the program begins with, and these.
    frozen: Range<u64>,
    frozen_objects: Vec<u64>,
    bytes: u64,
    objects: u64,
    pause: Option<Pause>,
}

impl HeapVisitor for Reader {
    fn object(&mut self, object: &HeapObject) {
        self.objects += 1;
        if self.objects.is_multiple_of(LOOK)
            && let Some(pause) = &mut self.pause
        {
            pause.look();
        }
        while self.words.next_if(|word| *word < object.address).is_some() {}
        if self.words.next_if(|word| object.contains(*word)).is_some() {
            self.on_stacks.push(object.address);
        }
        if self.frozen.contains(&object.address) {
            self.frozen_objects.push(object.address);
        }
        // Few types alternate.
        if !self.recent_types.contains(&object.type_handle) {
            self.recent_types.rotate_right(1);
            self.recent_types[0] = object.type_handle;
            self.types.insert(object.type_handle);
        }
        self.bytes = self.bytes.saturating_add(object.size);
        self.builder.add_object(object.address, object.type_handle.get(), object.size);
        for dependent in self.dependents.get(&object.address).into_iter().flatten() {
            self.builder.add_reference(*dependent);
        }
    }

    fn reference(&mut self, target: u64) {
        self.builder.add_reference(target);
    }

    fn wants_references(&self) -> bool {
        true
    }
}

/// The words of all stacks that can be addresses of objects, in rising order, and the number of threads with
/// stacks that could not be searched.
fn stack_words(analysis: &Analysis<'_>) -> (Vec<u64>, u64) {
    let mut words = Vec::new();
    let mut without = 0;
    for of in &analysis.threads {
        let registers = analysis.source.core().and_then(|core| core.registers(of.thread.os_id));
        match analysis.dump.heap().stack_words(&of.thread, &of.stack, registers) {
            Ok(found) => words.extend(found),
            Err(_) => without += 1,
        }
        // The thread runs managed code, in which only registers locate its frames.
        if registers.is_none() && of.thread.is_cooperative {
            without += 1;
        }
    }
    words.sort_unstable();
    words.dedup();
    (words, without)
}

/// The objects that dependent handles keep alive, by the object that they depend on: a key of a
/// `ConditionalWeakTable` holds its value.
fn dependents(handles: &Handles) -> BTreeMap<u64, Vec<u64>> {
    let mut dependents: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for handle in handles.handles.iter().filter(|handle| handle.dependent != 0) {
        dependents.entry(handle.object).or_default().push(handle.dependent);
    }
    dependents
}

/// Adds the objects of handles that keep them alive. Returns the number of kinds of roots that are missing.
fn add_handles(handles: Option<&Handles>, builder: &mut MemoryGraphBuilder) -> u64 {
    let Some(handles) = handles else { return 1 };
    for handle in handles.handles.iter().filter(|handle| handle.kind.is_strong()) {
        let kind = match handle.kind {
            HandleKind::PINNED | HandleKind::ASYNC_PINNED => RootKind::PinnedHandle,
            HandleKind::REF_COUNTED => RootKind::RefCounted,
            _ => RootKind::StrongHandle,
        };
        builder.add_root(kind, handle.object);
    }
    u64::from(handles.is_incomplete)
}

/// Adds the objects that wait for their finalizers. Returns the number of kinds of roots that are missing.
fn add_finalizable(dump: &Dump<'_>, builder: &mut MemoryGraphBuilder) -> u64 {
    let Ok(objects) = dump.heap().finalizable() else { return 1 };
    for object in objects {
        builder.add_root(RootKind::Finalizer, object);
    }
    0
}

/// Adds the static fields that refer to objects.
fn add_statics(dump: &Dump<'_>, types: &BTreeSet<TypeHandle>, builder: &mut MemoryGraphBuilder) {
    let mut sorted: Vec<_> = types.iter().copied().collect();
    sorted.sort_unstable();
    for field in dump.statics().fields(sorted, &[]) {
        if !matches!(field.field.kind, ValueKind::REFERENCE | ValueKind::STRUCTURE) {
            continue;
        }
        let Some((target, of)) = dump.heap().reference_at(field.address) else { continue };
        let owner = dump.types().name(field.type_handle);
        builder.add_static(owner.as_deref(), &field.field.name, of.get(), target);
    }
}

/// The name of a type of a module that was made in memory.
pub(crate) fn dynamic_type(type_handle: TypeHandle) -> String {
    format!("(dynamic module) {type_handle}")
}

/// Describes the types of the objects, and their modules.
fn add_types(dump: &Dump<'_>, types: &BTreeSet<TypeHandle>, builder: &mut MemoryGraphBuilder) {
    let mut modules = BTreeMap::new();
    for &type_handle in types {
        let (name, whole_name) = match (dump.types().event_name(type_handle), dump.types().name(type_handle))
        {
            (Some(name), Some(whole_name)) => (name, whole_name.to_string()),
            _ if dump.types().is_dynamic(type_handle) => {
                (dynamic_type(type_handle), dynamic_type(type_handle))
            }
            _ => continue,
        };
        let module_id = match dump.types().module(type_handle) {
            Some(module) => {
                let id = module.address;
                modules.entry(id).or_insert(module);
                id
            }
            None => 0,
        };
        let is_array = dump.types().is_array(type_handle);
        let id = type_handle.get();
        builder.add_type(MemoryType { id, module_id, name: &name, whole_name: &whole_name, is_array });
    }
    // Objects with static fields do not belong to a module.
    builder.add_module(0, "");
    for (id, module) in modules {
        builder.add_module(id, &module.path);
    }
}
