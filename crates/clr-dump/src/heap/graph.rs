//! The heap as a graph of gcdump, with its roots.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use gcdump::{MemoryCompleteness, MemoryGraphBuilder, MemoryType, RootKind};

use crate::dump::Dump;
use crate::heap::contents::{GenerationCounter, HeapContents};
use crate::heap::generations::HeapRegions;
use crate::heap::handle::{Handle, HandleKind, Handles};
use crate::heap::stack_words::{StackPlaces, StackWords};
use crate::heap::{Heap, HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};
use crate::threads::all_stacks::ThreadStacks;
use crate::types::field::ValueKind;

/// The number of objects between two calls for progress.
const OBJECTS_PER_CALL: u64 = 4096;
/// The bytes of a pointer.
const POINTER_SIZE: u8 = 8;

/// The objects of a heap with their references, on their way into a graph: roots and names are still in the
/// memory.
#[derive(Debug)]
pub struct HeapGraphReader<'d> {
    dump: &'d Dump<'d>,
    regions: HeapRegions<'d>,
    stacks: &'d ThreadStacks,
    builder: MemoryGraphBuilder,
    handles: MemoryResult<Handles>,
    types: BTreeSet<TypeHandle>,
    /// Objects that stacks refer to, with the numbers of the places.
    on_stacks: Vec<(Address, u32)>,
    /// The places on stacks.
    places: StackPlaces,
    /// The objects that a NativeAOT program begins with.
    in_frozen: Vec<Address>,
    missing: MemoryCompleteness,
    contents: HeapContents,
}

impl<'d> Heap<'d> {
    /// Reads the objects and their references for a graph of the heap of the process `process_id`. Local
    /// variables are taken from the GCInfo of frames; where it cannot be read, words of `stacks` that point
    /// into objects are. `progress` is called for each 4,096 objects.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let stacks = dump.threads().stacks(&core.thread_registers())?;
    /// let heap = dump.heap().graph(None, &stacks, &mut || {})?;
    /// let graph = heap.into_builder().finish()?;
    /// println!("{} objects, {} roots", graph.object_count(), graph.root_count());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn graph(
        self,
        process_id: Option<u64>,
        stacks: &'d ThreadStacks,
        progress: &mut dyn FnMut(),
    ) -> MemoryResult<HeapGraphReader<'d>> {
        let regions = self.regions()?;
        let StackWords { words, places, stacks_without_roots, truncated_stacks } =
            StackWords::read(self, stacks, &regions.layout);
        let handles = self.handles();
        let mut objects = Objects {
            generations: GenerationCounter::new(&regions.layout),
            builder: MemoryGraphBuilder::new(POINTER_SIZE, process_id),
            dependents: handles.as_ref().map(dependents).unwrap_or_default(),
            types: BTreeSet::new(),
            recent_types: [TypeHandle::default(); 8],
            words: words.into_iter().peekable(),
            on_stacks: Vec::new(),
            frozen: self.frozen_objects().unwrap_or_default(),
            in_frozen: Vec::new(),
            count: 0,
            progress,
        };
        let walk = self.walk_layout(&regions.layout, &mut objects)?;
        let Objects { builder, types, on_stacks, in_frozen, generations, .. } = objects;
        let mut missing = MemoryCompleteness::default();
        missing.stacks_without_roots = stacks_without_roots;
        missing.truncated_stacks = truncated_stacks;
        missing.missing_bytes = walk.missing_bytes();
        missing.is_moving = walk.is_moving;
        missing.objects_without_references = walk.objects_without_references;
        missing.conservative_roots = places.count_conservative(&on_stacks);
        let no_handles = Handles::default();
        let contents = generations.finish(self, handles.as_ref().unwrap_or(&no_handles), walk);
        let dump = self.dump;
        Ok(HeapGraphReader {
            dump,
            regions,
            stacks,
            builder,
            handles,
            types,
            on_stacks,
            places,
            in_frozen,
            missing,
            contents,
        })
    }
}

impl HeapGraphReader<'_> {
    /// Returns the walk through the heap, with its gaps.
    pub const fn walk(&self) -> &HeapWalk {
        &self.contents.walk
    }

    /// Returns the objects by generation.
    pub const fn contents(&self) -> &HeapContents {
        &self.contents
    }

    /// Reads the roots, and the names of types and modules. Nothing is read from memory after that.
    pub fn into_builder(mut self) -> MemoryGraphBuilder {
        self.add_handles();
        self.add_finalizable();
        for of in &self.stacks.managed {
            match self.dump.statics().thread_object(&of.thread) {
                Ok(Some(array)) => self.builder.add_root(RootKind::ThreadStatic, array.get()),
                Ok(None) => {}
                Err(_) => self.add_missing_roots(),
            }
        }
        self.add_statics();
        match self.dump.statics().objects() {
            Ok(objects) => {
                for object in objects {
                    self.builder.add_root(RootKind::Static, object.get());
                }
            }
            Err(_) => self.add_missing_roots(),
        }
        for object in &self.in_frozen {
            self.builder.add_root(RootKind::Static, object.get());
        }
        // The last: what else holds an object says more. Words that need not be in use follow those that are.
        let on_stacks = std::mem::take(&mut self.on_stacks);
        for is_exact in [true, false] {
            for (object, place) in &on_stacks {
                if self.places.is_exact(*place) == is_exact {
                    let name = self.places.name(self.dump, *place);
                    self.builder.add_variable(&name, object.get());
                }
            }
        }
        self.add_types();
        self.builder.with_completeness(self.missing)
    }

    /// Counts a kind of roots that could not be read.
    const fn add_missing_roots(&mut self) {
        self.missing.missing_roots = self.missing.missing_roots.saturating_add(1);
    }

    /// Adds the objects of handles that keep them alive.
    fn add_handles(&mut self) {
        let Ok(Handles { handles, is_incomplete }) = &self.handles else { return self.add_missing_roots() };
        for handle in handles.iter().filter(|handle| handle.kind.is_strong()) {
            self.builder.add_root(root_kind(handle), handle.object.get());
        }
        if *is_incomplete {
            self.add_missing_roots();
        }
    }

    /// Adds the objects that wait for their finalizers.
    fn add_finalizable(&mut self) {
        let Ok(objects) = self.regions.finalizable() else { return self.add_missing_roots() };
        for object in objects {
            self.builder.add_root(RootKind::Finalizer, object.get());
        }
    }

    /// Adds the static fields that refer to objects.
    fn add_statics(&mut self) {
        for field in self.dump.statics().fields(self.types.iter().copied(), &[]) {
            if !matches!(field.field.kind, ValueKind::REFERENCE | ValueKind::STRUCTURE) {
                continue;
            }
            let Some((target, of)) = self.dump.heap().reference_at(field.address) else { continue };
            let owner = self.dump.types().name(field.type_handle);
            self.builder.add_static(owner.as_deref(), &field.field.name, of.get(), target.get());
        }
    }

    /// Describes the types of the objects, and their modules.
    fn add_types(&mut self) {
        let types = self.dump.types();
        let mut modules = BTreeMap::new();
        for &type_handle in &self.types {
            let (name, whole_name) = match (types.event_name(type_handle), types.name(type_handle)) {
                (Some(name), Some(whole_name)) => (name, whole_name.to_string()),
                _ => match types.dynamic_name(type_handle) {
                    Some(name) => (name.clone(), name),
                    None => continue,
                },
            };
            let module_id = types.module(type_handle).map_or(0, |module| {
                let id = module.address.get();
                modules.entry(id).or_insert(module);
                id
            });
            self.builder.add_type(MemoryType {
                id: type_handle.get(),
                module_id,
                name: &name,
                whole_name: &whole_name,
                is_array: types.is_array(type_handle),
            });
        }
        // Objects with static fields do not belong to a module.
        self.builder.add_module(0, "");
        for (id, module) in modules {
            self.builder.add_module(id, &module.path);
        }
    }
}

/// The objects of a heap during a walk.
struct Objects<'p> {
    generations: GenerationCounter,
    builder: MemoryGraphBuilder,
    /// The objects that dependent handles keep alive, by the object that they depend on.
    dependents: BTreeMap<Address, Vec<Address>>,
    types: BTreeSet<TypeHandle>,
    /// The last types that were not among these.
    recent_types: [TypeHandle; 8],
    /// Words of stacks, in ascending order like the objects, with the numbers of their places.
    words: Peekable<IntoIter<(Address, u32)>>,
    on_stacks: Vec<(Address, u32)>,
    /// The address range of frozen objects, and these.
    frozen: Range<Address>,
    in_frozen: Vec<Address>,
    count: u64,
    progress: &'p mut dyn FnMut(),
}

impl HeapVisitor for Objects<'_> {
    fn object(&mut self, object: &HeapObject) {
        self.generations.object(object);
        self.count = self.count.saturating_add(1);
        if self.count.is_multiple_of(OBJECTS_PER_CALL) {
            (self.progress)();
        }
        while self.words.next_if(|(word, _)| *word < object.address).is_some() {}
        while let Some((_, place)) = self.words.next_if(|(word, _)| object.contains(*word)) {
            self.on_stacks.push((object.address, place));
        }
        if self.frozen.contains(&object.address) {
            self.in_frozen.push(object.address);
        }
        // Few types alternate.
        if !self.recent_types.contains(&object.type_handle) {
            self.recent_types.rotate_right(1);
            self.recent_types[0] = object.type_handle;
            self.types.insert(object.type_handle);
        }
        self.builder.add_object(object.address.get(), object.type_handle.get(), object.size);
        for dependent in self.dependents.get(&object.address).into_iter().flatten() {
            self.builder.add_reference(dependent.get());
        }
    }

    fn free(&mut self, block: &HeapObject) {
        self.generations.free(block);
    }

    fn reference(&mut self, target: Address) {
        self.builder.add_reference(target.get());
    }

    fn wants_references(&self) -> bool {
        true
    }
}

/// Returns the objects that dependent handles keep alive, by the object that they depend on: a key of a
/// `ConditionalWeakTable` holds its value.
fn dependents(handles: &Handles) -> BTreeMap<Address, Vec<Address>> {
    let mut dependents: BTreeMap<Address, Vec<Address>> = BTreeMap::new();
    for handle in handles.handles.iter().filter(|handle| !handle.dependent.is_null()) {
        dependents.entry(handle.object).or_default().push(handle.dependent);
    }
    dependents
}

/// Returns the kind of roots that a strong handle belongs to.
const fn root_kind(handle: &Handle) -> RootKind {
    match handle.kind {
        HandleKind::PINNED | HandleKind::ASYNC_PINNED => RootKind::PinnedHandle,
        HandleKind::REF_COUNTED => RootKind::RefCounted,
        _ => RootKind::StrongHandle,
    }
}
