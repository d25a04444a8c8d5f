//! Builds the graph of a heap dump from its events.

mod memory;

use std::collections::BTreeSet;
use std::sync::Arc;

use clr_events::enums::{GcRootFlags, GcRootKind, GcRootStaticVarFlags, ModuleFlags};
use clr_events::view::{
    BulkType, GcBulkEdge, GcBulkNode, GcBulkRootConditionalWeakTableElementEdge, GcBulkRootEdge,
    GcBulkRootStaticVar, GcStart, Module,
};
use clr_events::{ClrEvent, Provider, ids};
use hashbrown::HashMap;
use nettrace::Event;

use crate::address::{AddressCode, AddressTable};
use crate::completeness::Completeness;
use crate::definitions::{DefinedType, Definitions};
use crate::error::Error;
use crate::graph::{HeapGraph, MAX_OBJECTS, Root, Shape, slots};
use crate::large_vec::push;
use crate::object_addresses::ObjectAddresses;
use crate::object_index::{ObjectIndex, Repeated};
use crate::root_groups::RootGroups;
use crate::shape_numbers::ShapeNumbers;
use crate::type_name::{RepeatBudget, name_of_event};
use crate::type_table::{TypeDescription, TypeTable};

pub use memory::{MemoryCompleteness, MemoryGraphBuilder, MemoryType, RootKind};

/// The reason of an induced collection.
const INDUCED: u32 = 1;

/// Maximum number of other processes to list.
const MAX_PROCESSES: usize = 1000;
/// The characters of a type's name in the names of static fields, once type names have been repeated too
/// often.
const SHORT_NAME: usize = 64;

/// Builds the graph of a heap dump from the events of a recording or of a live session.
///
/// The dump belongs to the first collection that was forced for a dump, in any process or in [a given
/// one](Self::of_process). In a recording of several processes all other data belongs to that process, too.
/// Events have to be added in time order, at least within each thread. Memory is linear in the bytes of the
/// events: 3 bytes an object, 4 a reference. Names are cut at 4,096 characters.
///
/// ```no_run
/// use gcdump::HeapGraphBuilder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut builder = HeapGraphBuilder::new();
/// let mut events = nettrace::Reader::new(std::fs::File::open("heap.nettrace")?)?.in_time_order();
/// while let Some(event) = events.next()? {
///     builder.add(&event);
/// }
/// let graph = builder.finish(events.loss().total())?;
/// println!("{} objects, {} bytes", graph.object_count(), graph.total_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct HeapGraphBuilder {
    /// The process of the wanted dump; any if `None`.
    wanted: Option<u64>,
    /// Keys and values of dependent handles, if these are to be references.
    dependents: Option<Vec<(AddressCode, AddressCode)>>,
    state: State,
    /// The process of the dump, set when the dump begins.
    process_id: Option<u64>,
    /// Running collections that may be dumps, by process.
    collections: HashMap<Option<u64>, Collection>,
    /// True if a collection described types without any objects.
    has_empty_dump: bool,
    /// Other processes that have dumps.
    other_processes: BTreeSet<u64>,
    /// Created when the dump begins.
    addresses: Option<AddressTable>,
    pointer_size: u8,
    object_addresses: ObjectAddresses,
    object_shapes: ShapeNumbers,
    /// The numbers of shapes.
    shape_numbers: HashMap<ShapeKey, u32>,
    /// Shapes by number.
    shapes: Vec<ShapeKey>,
    /// Codes of the referenced addresses.
    edges: Vec<u32>,
    groups: RootGroups,
    /// The targets are codes of addresses.
    roots: Vec<Root>,
    statics: Vec<StaticVariable>,
    descriptions: Vec<TypeDescription>,
    /// The paths of modules, by process and number.
    modules: HashMap<(Option<u64>, u64), Arc<str>>,
    /// The expected index of the next event of a kind.
    next_objects: u32,
    next_edges: u32,
    next_roots: u32,
    completeness: Completeness,
}

/// The progress of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Not begun.
    #[default]
    Before,
    /// The collection with this number is running.
    Running(u32),
    Complete,
}

/// An induced collection: by the program itself, or for a dump.
#[derive(Debug, Clone, Copy)]
struct Collection {
    number: u32,
    pointer_size: u8,
    /// True if types have been described since it began.
    has_types: bool,
}

/// A [`Shape`] by the runtime's number of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ShapeKey {
    type_id: u64,
    size: u64,
    edges: u32,
}

/// A static field that references an object.
#[derive(Debug)]
struct StaticVariable {
    target: AddressCode,
    type_id: u64,
    is_thread_local: bool,
    field: String,
    /// The declaring type; `None` if the source does not state it.
    owner: Option<String>,
}

impl HeapGraphBuilder {
    /// Creates a builder that has not seen any event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the dump of this process only.
    #[must_use]
    pub const fn of_process(mut self, process_id: u64) -> Self {
        self.wanted = Some(process_id);
        self
    }

    /// Makes the key of a dependent handle (an entry of a `ConditionalWeakTable`) reference its value, which
    /// it keeps alive. Otherwise the values are roots of the group `[Dependent Handles]`, as in
    /// dotnet-gcdump.
    ///
    /// ```no_run
    /// use gcdump::HeapGraphBuilder;
    ///
    /// // The values of a ConditionalWeakTable count for their keys.
    /// let mut builder = HeapGraphBuilder::new().with_dependent_references();
    /// let mut events = nettrace::Reader::new(std::fs::File::open("heap.nettrace")?)?.in_time_order();
    /// events.for_each(|event| builder.add(&event))?;
    /// let graph = builder.finish(events.loss().total())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_dependent_references(mut self) -> Self {
        self.dependents.get_or_insert_default();
        self
    }

    /// Returns true if the dump has begun.
    pub fn has_begun(&self) -> bool {
        self.state != State::Before
    }

    /// Other processes with dumps that are not in the graph, in rising order: the first thousand seen.
    pub fn other_processes(&self) -> impl Iterator<Item = u64> {
        self.other_processes.iter().copied()
    }

    /// Returns true if the collection of the dump has ended. Only the names of modules follow in the
    /// recording.
    pub fn has_ended(&self) -> bool {
        self.state == State::Complete
    }

    /// The number of objects so far.
    pub fn object_count(&self) -> usize {
        self.object_addresses.count() as usize
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let Some(provider) = Provider::of(event.metadata()) else { return };
        let process_id = event.process_id();
        let is_of_dump = provider == Provider::Runtime && is_of_dump(event.id());
        if !self.reads_process(process_id) {
            if is_of_dump && self.other_processes.len() < MAX_PROCESSES {
                self.other_processes.extend(process_id);
            }
            return;
        }
        if is_of_dump {
            self.begin(process_id);
        }
        if !is_of_interest(provider, event.id(), self.state) {
            return;
        }
        match ClrEvent::of(event) {
            Ok(Some(view)) => self.add_view(&view, process_id, event.pointer_size()),
            Ok(None) => {}
            Err(_) => self.completeness.invalid_events = self.completeness.invalid_events.saturating_add(1),
        }
    }

    /// Returns true if events of this process are read in this state.
    fn reads_process(&self, process_id: Option<u64>) -> bool {
        match self.state {
            State::Before => self.wanted.is_none_or(|wanted| process_id == Some(wanted)),
            State::Running(_) | State::Complete => process_id == self.process_id,
        }
    }

    fn add_view(&mut self, event: &ClrEvent<'_>, process_id: Option<u64>, pointer_size: u8) {
        match event {
            ClrEvent::GcStart(start) => self.start(start, process_id, pointer_size),
            ClrEvent::GcStop(stop) => self.stop(stop.count, process_id),
            ClrEvent::BulkType(types) => self.add_types(types, process_id),
            ClrEvent::ModuleLoad(module)
            | ClrEvent::ModuleUnload(module)
            | ClrEvent::ModuleDcStart(module)
            | ClrEvent::ModuleDcStop(module) => self.add_module(module, process_id),
            ClrEvent::GcBulkNode(nodes) => self.add_objects(nodes),
            ClrEvent::GcBulkEdge(edges) => self.add_references(edges),
            ClrEvent::GcBulkRootEdge(roots) => self.add_roots(roots),
            ClrEvent::GcBulkRootConditionalWeakTableElementEdge(edges) => self.add_weak_table(edges),
            ClrEvent::GcBulkRootStaticVar(variables) => self.add_statics(variables),
            ClrEvent::GcBulkRootCcw(wrappers) => self.count_wrappers(wrappers.values.len()),
            ClrEvent::GcBulkRcw(wrappers) => self.count_wrappers(wrappers.values.len()),
            _ => {}
        }
    }

    fn start(&mut self, start: &GcStart, process_id: Option<u64>, pointer_size: u8) {
        let may_be_dump = start.depth >= 2 && start.kind.0 == 0 && start.reason.0 == INDUCED;
        if self.state == State::Before && may_be_dump {
            let collection = Collection { number: start.count, pointer_size, has_types: false };
            self.collections.insert(process_id, collection);
        }
    }

    /// Begins the dump at the first event that occurs only in dumps, never in the program's own collections.
    fn begin(&mut self, process_id: Option<u64>) {
        if self.state != State::Before {
            return;
        }
        let Some(collection) = self.collections.get(&process_id) else { return };
        self.state = State::Running(collection.number);
        self.process_id = process_id;
        self.pointer_size = collection.pointer_size;
        self.addresses = Some(AddressTable::new(collection.pointer_size));
        self.collections = HashMap::new();
        self.descriptions.retain(|description| description.process_id == process_id);
        self.modules.retain(|(of, _), _| *of == process_id);
    }

    fn stop(&mut self, count: u32, process_id: Option<u64>) {
        match self.state {
            State::Running(number) if number == count => self.state = State::Complete,
            State::Before => {
                let of_number =
                    self.collections.get(&process_id).filter(|collection| collection.number == count);
                if let Some(collection) = of_number {
                    self.has_empty_dump |= collection.has_types;
                    self.collections.remove(&process_id);
                }
            }
            State::Running(_) | State::Complete => {}
        }
    }

    fn add_types(&mut self, types: &BulkType<'_>, process_id: Option<u64>) {
        if let Some(collection) = self.collections.get_mut(&process_id) {
            collection.has_types = true;
        }
        self.descriptions.extend(types.values.map(|row| TypeDescription {
            process_id,
            id: row.type_id,
            module_id: row.module_id,
            token: row.type_name_id,
            flags: row.flags,
            name: name_of_event(row.name),
            whole_name: None,
            parameters: row.type_parameters.collect(),
        }));
    }

    fn add_module(&mut self, module: &Module<'_>, process_id: Option<u64>) {
        // For a native image the path names another file.
        if !module.module_flags.contains(ModuleFlags::NATIVE) {
            self.modules
                .entry((process_id, module.module_id))
                .or_insert_with(|| name_of_event(module.module_il_path).into());
        }
    }

    fn add_objects(&mut self, nodes: &GcBulkNode<'_>) {
        let missing = missing(&mut self.next_objects, nodes.index);
        self.completeness.object_gaps = self.completeness.object_gaps.saturating_add(missing);
        for node in nodes.values {
            if self.object_addresses.count() >= MAX_OBJECTS {
                self.completeness.over_limit = self.completeness.over_limit.saturating_add(1);
                continue;
            }
            let code = self.encode(node.address);
            // After a gap it is unknown which references belong to which object.
            let is_broken = self.completeness.object_gaps > 0;
            let edges = u32::try_from(node.edge_count).unwrap_or(u32::MAX);
            if is_broken && edges > 0 {
                let count = &mut self.completeness.objects_without_references;
                *count = count.saturating_add(1);
            }
            let edges = if is_broken { 0 } else { edges };
            let shape = self.shape_number(ShapeKey { type_id: node.type_id, size: node.size, edges });
            self.object_shapes.push(shape);
            let slots = slots_of(&self.object_shapes, &self.shapes, self.pointer_size);
            self.object_addresses.push(code.unwrap_or(AddressCode::NONE), slots);
        }
    }

    fn shape_number(&mut self, key: ShapeKey) -> u32 {
        *self.shape_numbers.entry(key).or_insert_with(|| {
            self.shapes.push(key);
            // There are at most as many shapes with references as objects, and as many again without
            // references.
            u32::try_from(self.shapes.len()).unwrap_or(u32::MAX).saturating_sub(1)
        })
    }

    fn add_references(&mut self, edges: &GcBulkEdge<'_>) {
        let missing = missing(&mut self.next_edges, edges.index);
        self.completeness.reference_gaps = self.completeness.reference_gaps.saturating_add(missing);
        if self.completeness.reference_gaps > 0 {
            let count = &mut self.completeness.unused_references;
            *count = count.saturating_add(edges.values.len() as u64);
            return;
        }
        for edge in edges.values {
            if self.edges.len() >= MAX_OBJECTS as usize {
                self.completeness.over_limit = self.completeness.over_limit.saturating_add(1);
                continue;
            }
            let code = self.encode_target(edge.value);
            push(&mut self.edges, code.0);
        }
    }

    fn add_roots(&mut self, roots: &GcBulkRootEdge<'_>) {
        let missing = missing(&mut self.next_roots, roots.index);
        self.completeness.root_gaps = self.completeness.root_gaps.saturating_add(missing);
        let statics = self.groups.child(RootGroups::ALL, "[static vars]");
        self.make_group(statics);
        for root in roots.values {
            if root.gc_root_flag.contains(GcRootFlags::WEAK_REF) {
                continue;
            }
            let group = match root.gc_root_kind {
                GcRootKind::STACK => self.groups.child(RootGroups::ALL, "[local vars]"),
                kind => {
                    let others = self.groups.child(RootGroups::ALL, "[other roots]");
                    self.groups.child(others, other_root(kind, root.gc_root_flag))
                }
            };
            let target = self.encode_target(root.rooted_node_address).0;
            self.add_root(group, target);
        }
    }

    fn add_weak_table(&mut self, edges: &GcBulkRootConditionalWeakTableElementEdge<'_>) {
        let others = self.groups.child(RootGroups::ALL, "[other roots]");
        let group = self.groups.child(others, "[Dependent Handles]");
        self.make_group(group);
        for edge in edges.values.filter(|edge| edge.gc_key_node_id != 0) {
            let target = self.encode_target(edge.gc_value_node_id);
            let key = if self.dependents.is_some() { self.encode(edge.gc_key_node_id) } else { None };
            match (&mut self.dependents, key) {
                (Some(dependents), Some(key)) if dependents.len() < MAX_OBJECTS as usize => {
                    dependents.push((key, target));
                }
                _ => self.add_root(group, target.0),
            }
        }
    }

    /// Adds the references from keys of dependent handles to their values. The value of a key that did not
    /// arrive is a root.
    fn add_dependents(&mut self, index: &ObjectIndex) {
        let Some(dependents) = self.dependents.take() else { return };
        let find = |key| {
            let slots = slots_of(&self.object_shapes, &self.shapes, self.pointer_size);
            index.find(&self.object_addresses, slots, key, &mut 0)
        };
        let found = dependents.into_iter().map(|(key, value)| (find(key), value.0));
        let (known, unknown): (Vec<_>, Vec<_>) = found.partition(|(object, _)| object.is_some());
        let others = self.groups.child(RootGroups::ALL, "[other roots]");
        let group = self.groups.child(others, "[Dependent Handles]");
        for (_, value) in unknown {
            self.add_root(group, value);
        }
        let mut references: Vec<_> =
            known.into_iter().filter_map(|(object, value)| Some((object?, value))).collect();
        let room = (MAX_OBJECTS as usize).saturating_sub(self.edges.len());
        let over = references.len().saturating_sub(room);
        self.completeness.over_limit = self.completeness.over_limit.saturating_add(over as u64);
        references.truncate(room);
        references.sort_by_key(|(object, _)| *object);
        if references.is_empty() {
            return;
        }
        let mut references = references.into_iter().peekable();
        let own = std::mem::take(&mut self.edges);
        let mut own = own.iter();
        let mut shapes = std::mem::take(&mut self.object_shapes);
        for object in 0..self.object_addresses.count() {
            let Some(number) = shapes.get(object) else { break };
            let Some(shape) = self.shapes.get(number as usize).copied() else { continue };
            own.by_ref().take(shape.edges as usize).for_each(|edge| push(&mut self.edges, *edge));
            let mut edges = shape.edges;
            while let Some((_, value)) = references.next_if(|(of, _)| *of == object) {
                push(&mut self.edges, value);
                edges = edges.saturating_add(1);
            }
            if edges > shape.edges {
                shapes.set(object, self.shape_number(ShapeKey { edges, ..shape }));
            }
        }
        self.object_shapes = shapes;
    }

    fn add_statics(&mut self, variables: &GcBulkRootStaticVar<'_>) {
        for row in variables.values {
            let target = self.encode_target(row.object_id);
            self.statics.push(StaticVariable {
                target,
                type_id: row.type_id,
                is_thread_local: row.flags.contains(GcRootStaticVarFlags::THREAD_LOCAL),
                field: name_of_event(row.field_name),
                owner: None,
            });
        }
    }

    fn count_wrappers(&mut self, count: usize) {
        self.completeness.com_wrappers = self.completeness.com_wrappers.saturating_add(count as u64);
    }

    fn add_root(&mut self, group: u32, target: u32) {
        if self.roots.len() < MAX_OBJECTS as usize {
            self.roots.push(Root { group, target });
        } else {
            self.completeness.over_limit = self.completeness.over_limit.saturating_add(1);
        }
    }

    /// Creates the group with this number, without objects.
    fn make_group(&mut self, group: u32) {
        if self.groups.is_new(group) {
            self.add_root(group, Root::NONE);
        }
    }

    fn encode(&mut self, address: u64) -> Option<AddressCode> {
        let code = self.addresses.as_mut().and_then(|addresses| addresses.encode(address));
        if code.is_none() {
            self.completeness.invalid_addresses = self.completeness.invalid_addresses.saturating_add(1);
        }
        code
    }

    /// The code of a referenced object; that of null for an address that no object can have.
    fn encode_target(&mut self, address: u64) -> AddressCode {
        self.encode(address).or_else(|| self.encode(0)).unwrap_or(AddressCode(0))
    }

    /// Builds the graph. `lost_events` is the number of events that the runtime lost in the whole recording.
    ///
    /// ```
    /// use gcdump::{Error, HeapGraphBuilder};
    ///
    /// // No event with objects was added.
    /// assert_eq!(HeapGraphBuilder::new().finish(0).err(), Some(Error::NoDump));
    /// ```
    ///
    /// # Errors
    /// If the dump is missing or does not contain objects. A cut dump, or one with gaps, still gives a graph:
    /// see [`Completeness`].
    pub fn finish(self, lost_events: u64) -> Result<HeapGraph, Error> {
        self.finish_with(lost_events, |_| None)
    }

    /// Builds the graph, with names that are in the definitions of types but not in dumps: the enclosing
    /// types of nested ones, and the declaring types of static fields. `types_of` returns the types of the
    /// module at a path, in the order of their tokens; `None` if they are not known.
    ///
    /// ```no_run
    /// use gcdump::{DefinedType, HeapGraphBuilder};
    ///
    /// # let builder = HeapGraphBuilder::new();
    /// // The definitions of a module, by a reader of assemblies.
    /// let types = |module: &str| -> Option<Vec<DefinedType>> {
    ///     let program = DefinedType { name: "Program".into(), static_fields: vec!["Held".into()] };
    ///     module.ends_with("shop.dll").then(|| vec![program])
    /// };
    /// let graph = builder.finish_with(0, types)?;
    /// println!("{:?}", graph.groups().iter().map(|group| group.csharp()).collect::<Vec<_>>());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`finish`](Self::finish).
    pub fn finish_with(
        mut self,
        lost_events: u64,
        types_of: impl FnMut(&str) -> Option<Vec<DefinedType>>,
    ) -> Result<HeapGraph, Error> {
        let Some(addresses) = self.addresses.take() else {
            let has_collection = self.has_empty_dump || !self.collections.is_empty();
            return Err(if has_collection { Error::NoObjects } else { Error::NoDump });
        };
        if self.object_addresses.count() == 0 {
            return Err(Error::NoObjects);
        }
        self.completeness.lost_events = lost_events;
        self.completeness.other_processes = self.other_processes.len() as u64;
        self.completeness.is_cut = self.state != State::Complete;
        self.fit_references();
        let index = match self.index() {
            Ok(index) => index,
            Err(Repeated(repeated)) => {
                self.remove(&repeated);
                self.index().map_err(|_| Error::NoObjects)?
            }
        };
        self.add_dependents(&index);
        let modules = self.modules.iter().filter(|((of, _), _)| *of == self.process_id);
        let definitions = Definitions::read(modules.map(|((_, id), path)| (*id, path)), types_of);
        let mut types = TypeTable::new(&self.descriptions, &self.modules, &definitions);
        self.descriptions = Vec::new();
        self.finish_roots(&types, &definitions);
        let mut shapes = Vec::with_capacity(self.shapes.len());
        for key in &self.shapes {
            let (heap_type, file_type) = types.of_object(key.type_id, key.size);
            shapes.push(Shape { heap_type, file_type, size: key.size, edges: key.edges });
        }
        let is_unknown = |shape: &u32| {
            let shape = shapes.get(*shape as usize);
            shape.is_some_and(|shape| !types.is_known(shape.heap_type))
        };
        let unknown = self.object_shapes.iter().filter(|shape| is_unknown(shape)).count();
        self.completeness.objects_of_unknown_types = unknown as u64;
        self.completeness.unknown_types = types.unknown_count();
        let undefined = self.resolve(&index, &addresses);
        let mut graph = HeapGraph {
            process_id: self.process_id,
            other_processes: self.other_processes.into_iter().collect(),
            pointer_size: self.pointer_size,
            addresses,
            object_addresses: self.object_addresses,
            object_shapes: self.object_shapes,
            shapes,
            edge_starts: Vec::new(),
            edges: self.edges,
            undefined,
            types: types.into_types(),
            groups: self.groups.into_groups(),
            roots: self.roots,
            completeness: self.completeness,
        };
        graph.index_edges();
        Ok(graph)
    }

    fn index(&mut self) -> Result<ObjectIndex, Repeated> {
        let slots = slots_of(&self.object_shapes, &self.shapes, self.pointer_size);
        ObjectIndex::new(&mut self.object_addresses, slots)
    }

    /// Drops references without an object, and reference counts of objects with missing references.
    fn fit_references(&mut self) {
        let mut used = 0_usize;
        let mut place = 0_u32;
        let edges = |shapes: &[ShapeKey], number: u32| {
            shapes.get(number as usize).map_or(0, |shape| shape.edges as usize)
        };
        for shape in self.object_shapes.iter() {
            let end = used.saturating_add(edges(&self.shapes, shape));
            if end > self.edges.len() {
                break;
            }
            used = end;
            place = place.saturating_add(1);
        }
        let unused = self.edges.len().saturating_sub(used) as u64;
        self.completeness.unused_references = self.completeness.unused_references.saturating_add(unused);
        self.edges.truncate(used);
        let mut bare: HashMap<u32, u32> = HashMap::new();
        let mut shapes = std::mem::take(&mut self.object_shapes);
        for object in place..self.object_addresses.count() {
            let Some(shape) = shapes.get(object) else { break };
            let Some(key) = self.shapes.get(shape as usize).copied().filter(|key| key.edges > 0) else {
                continue;
            };
            let count = &mut self.completeness.objects_without_references;
            *count = count.saturating_add(1);
            let without =
                *bare.entry(shape).or_insert_with(|| self.shape_number(ShapeKey { edges: 0, ..key }));
            shapes.set(object, without);
        }
        self.object_shapes = shapes;
    }

    /// Removes objects, given in rising order, with their references.
    fn remove(&mut self, repeated: &[u32]) {
        self.completeness.repeated_objects = repeated.len() as u64;
        let mut repeated = repeated.iter().copied().peekable();
        let (mut addresses, mut shapes, mut edges) = <(ObjectAddresses, ShapeNumbers, Vec<_>)>::default();
        let mut rest = self.edges.as_slice();
        let codes =
            self.object_addresses.keep_each(slots_of(&self.object_shapes, &self.shapes, self.pointer_size));
        for (object, (code, shape)) in (0_u32..).zip(codes.iter().zip(self.object_shapes.iter())) {
            let count = self.shapes.get(shape as usize).map_or(0, |shape| shape.edges as usize);
            let (own, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = behind;
            if repeated.next_if_eq(&object).is_none() {
                shapes.push(shape);
                addresses.push(*code, slots_of(&shapes, &self.shapes, self.pointer_size));
                for edge in own {
                    push(&mut edges, *edge);
                }
            }
        }
        (self.object_addresses, self.object_shapes, self.edges) = (addresses, shapes, edges);
    }

    /// Adds the last roots: COM objects and static fields.
    fn finish_roots(&mut self, types: &TypeTable, definitions: &Definitions) {
        let com = self.groups.child(RootGroups::ALL, "[COM/WinRT Objects]");
        self.make_group(com);
        let statics = self.groups.child(RootGroups::ALL, "[static vars]");
        self.make_group(statics);
        let mut budget = RepeatBudget::default();
        let variables = std::mem::take(&mut self.statics);
        let owners = definitions.owners(variables.iter().map(|variable| &*variable.field));
        for (variable, owner) in variables.iter().zip(owners) {
            let holder = if variable.is_thread_local {
                self.groups.child(RootGroups::ALL, "[thread static vars]")
            } else {
                statics
            };
            let mut of = types.name_of(variable.type_id);
            if !budget.takes(&of) {
                of = of.chars().take(SHORT_NAME).collect::<String>().into();
            }
            let name = format!("[static var {of}.{}]", variable.field);
            let group = self.groups.child(holder, &name);
            self.groups.declare(group, variable.owner.as_deref().or(owner));
            self.add_root(group, variable.target.0);
        }
    }

    /// Replaces the codes in edges and roots with the numbers of objects. Returns the codes of missing
    /// objects.
    fn resolve(&mut self, index: &ObjectIndex, addresses: &AddressTable) -> Vec<AddressCode> {
        let first = self.object_addresses.count();
        let null = addresses.find(0);
        let mut undefined = Vec::new();
        let mut numbers: HashMap<AddressCode, u32> = HashMap::new();
        let mut dangling = 0_u64;
        let object_addresses = &self.object_addresses;
        let slots = slots_of(&self.object_shapes, &self.shapes, self.pointer_size);
        let mut hint = 0;
        let mut resolve = |target: &mut u32| {
            let code = AddressCode(*target);
            *target = index.find(object_addresses, &slots, code, &mut hint).unwrap_or_else(|| {
                dangling = dangling.saturating_add(u64::from(Some(code) != null));
                *numbers.entry(code).or_insert_with(|| {
                    undefined.push(code);
                    let number = u32::try_from(undefined.len()).unwrap_or(u32::MAX).saturating_sub(1);
                    first.saturating_add(number)
                })
            });
        };
        self.roots
            .iter_mut()
            .filter(|root| root.target != Root::NONE)
            .for_each(|root| resolve(&mut root.target));
        self.edges.iter_mut().for_each(resolve);
        self.completeness.dangling_references = dangling;
        undefined
    }
}

/// Returns a function from an object to its size, in units of the alignment of objects.
fn slots_of(object_shapes: &ShapeNumbers, shapes: &[ShapeKey], pointer_size: u8) -> impl Fn(u32) -> u64 {
    move |object| {
        let shape = object_shapes.get(object).and_then(|shape| shapes.get(shape as usize));
        slots(shape.map_or(0, |shape| shape.size), pointer_size)
    }
}

/// Returns the number of events missing before the one with this index, and sets the index of the next.
fn missing(next: &mut u32, index: u32) -> u64 {
    let missing = if index < *next { 1 } else { u64::from(index.saturating_sub(*next)) };
    *next = index.saturating_add(1);
    missing
}

/// The group of a root that is not a local variable.
fn other_root(kind: GcRootKind, flags: GcRootFlags) -> &'static str {
    match kind {
        _ if flags.contains(GcRootFlags::REF_COUNTED) => "[COM/WinRT Objects]",
        GcRootKind::FINALIZER => "[finalizer Handles]",
        GcRootKind::HANDLE if flags == GcRootFlags::PINNING => "[pinning Handles]",
        GcRootKind::HANDLE => "[strong Handles]",
        _ => "[other Handles]",
    }
}

/// Returns true if the runtime writes events with this number for heap dumps only: references, objects and
/// roots.
const fn is_of_dump(id: u32) -> bool {
    matches!(id, 16..=19 | 36..=38)
}

/// Returns true if events with this number are read in this state.
fn is_of_interest(provider: Provider, id: u32, state: State) -> bool {
    match provider {
        Provider::Rundown => matches!(id, ids::rundown::MODULE_DC_START | ids::rundown::MODULE_DC_STOP),
        Provider::Runtime => match id {
            ids::runtime::GC_START
            | ids::runtime::GC_STOP
            | ids::runtime::BULK_TYPE
            | ids::runtime::MODULE_LOAD
            | ids::runtime::MODULE_UNLOAD => true,
            id => is_of_dump(id) && matches!(state, State::Running(_)),
        },
        _ => false,
    }
}
