//! Builds the graph of a heap that is read from memory, object by object.

use clr_events::enums::TypeFlags;

use super::{HeapGraphBuilder, ShapeKey, State, StaticVariable, push, slots_of};
use crate::address::{AddressCode, AddressTable};
use crate::error::Error;
use crate::graph::{HeapGraph, MAX_OBJECTS};
use crate::root_groups::RootGroups;
use crate::type_name::limited_name;
use crate::type_table::TypeDescription;

/// Builds the graph of a heap that is read from the memory of a process or from a core dump.
///
/// The graph has the same names, groups and numbers as a graph from the events of the same heap.
///
/// ```
/// use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
///
/// let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// builder.add_module(1, "/app/shop.dll");
/// builder.add_type(MemoryType { id: 2, module_id: 1, name: "Shop.Row", whole_name: "Shop.Row", is_array: false });
/// builder.add_object(0x1000, 2, 24);
/// builder.add_reference(0x1018);
/// builder.add_object(0x1018, 2, 24);
/// builder.add_root(RootKind::StrongHandle, 0x1000);
/// let graph = builder.finish()?;
/// assert_eq!((graph.object_count(), graph.reference_count(), graph.root_count()), (2, 1, 1));
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryGraphBuilder {
    builder: HeapGraphBuilder,
    /// The last object, to which references are being added.
    last: Option<Object>,
}

#[derive(Debug)]
struct Object {
    code: Option<AddressCode>,
    type_id: u64,
    size: u64,
    edges: u32,
}

/// A type of objects.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "made by those who read memory")]
pub struct MemoryType<'a> {
    /// The number that objects refer to.
    pub id: u64,
    /// The number of its module.
    pub module_id: u64,
    /// The name as the runtime writes it in events: nested types without their enclosing types.
    pub name: &'a str,
    /// The name with its enclosing types.
    pub whole_name: &'a str,
    /// True if it is an array.
    pub is_array: bool,
}

/// The known missing parts of a heap that was read from memory.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::exhaustive_structs, reason = "made by those who read memory")]
#[non_exhaustive]
pub struct MemoryCompleteness {
    /// Objects with unreadable references.
    pub objects_without_references: u64,
    /// Bytes of the heap that could not be read.
    pub missing_bytes: u64,
    /// True if a collection was moving objects.
    pub is_moving: bool,
    /// Objects that stacks seem to refer to.
    pub conservative_roots: u64,
    /// Threads with stacks that could not be searched.
    pub stacks_without_roots: u64,
    /// Threads with more references on their stacks than were read.
    pub truncated_stacks: u64,
    /// Kinds of roots that could not be read.
    pub missing_roots: u64,
}

/// A kind of roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootKind {
    /// A local variable, or a word of a stack that may be one.
    Stack,
    /// A strong handle.
    StrongHandle,
    /// A pinned handle.
    PinnedHandle,
    /// A counted handle.
    RefCounted,
    /// The queue of objects that wait for their finalizers.
    Finalizer,
    /// The static fields of a thread.
    ThreadStatic,
    /// The static fields of types, or objects that are a part of the program.
    Static,
}

impl MemoryGraphBuilder {
    /// Starts a graph without objects. `pointer_size` is 4 or 8.
    pub fn new(pointer_size: u8, process_id: Option<u64>) -> Self {
        let mut builder = HeapGraphBuilder {
            process_id,
            state: State::Complete,
            addresses: Some(AddressTable::new(pointer_size)),
            pointer_size,
            ..HeapGraphBuilder::default()
        };
        // The first group, as in dumps by events.
        let statics = builder.groups.child(RootGroups::ALL, "[static vars]");
        builder.make_group(statics);
        Self { builder, last: None }
    }

    /// Adds a module.
    pub fn add_module(&mut self, id: u64, path: &str) {
        let key = (self.builder.process_id, id);
        self.builder.modules.insert(key, limited_name(path).into());
    }

    /// Adds a type, before or after its objects.
    pub fn add_type(&mut self, of: MemoryType<'_>) {
        self.builder.descriptions.push(TypeDescription {
            process_id: self.builder.process_id,
            id: of.id,
            module_id: of.module_id,
            token: 0,
            flags: if of.is_array { TypeFlags::ARRAY } else { TypeFlags(0) },
            name: limited_name(of.name),
            whole_name: Some(limited_name(of.whole_name)),
            parameters: Vec::new(),
        });
    }

    /// Adds an object. Addresses that mostly rise take the least memory.
    pub fn add_object(&mut self, address: u64, type_id: u64, size: u64) {
        self.close_object();
        let code = self.builder.encode(address);
        self.last = Some(Object { code, type_id, size, edges: 0 });
    }

    /// Adds a reference of the last object.
    pub fn add_reference(&mut self, target: u64) {
        let Some(last) = &mut self.last else { return };
        let builder = &mut self.builder;
        if builder.edges.len() >= MAX_OBJECTS as usize {
            builder.completeness.over_limit = builder.completeness.over_limit.saturating_add(1);
            return;
        }
        last.edges = last.edges.saturating_add(1);
        let code = builder.encode_target(target);
        push(&mut builder.edges, code.0);
    }

    /// Adds a reference from outside the heap.
    pub fn add_root(&mut self, kind: RootKind, target: u64) {
        let groups = &mut self.builder.groups;
        let group = match kind {
            RootKind::Stack => groups.child(RootGroups::ALL, "[local vars]"),
            RootKind::ThreadStatic => groups.child(RootGroups::ALL, "[thread static vars]"),
            RootKind::Static => groups.child(RootGroups::ALL, "[static vars]"),
            RootKind::StrongHandle => other(groups, "[strong Handles]"),
            RootKind::PinnedHandle => other(groups, "[pinning Handles]"),
            RootKind::RefCounted => other(groups, "[COM/WinRT Objects]"),
            RootKind::Finalizer => other(groups, "[finalizer Handles]"),
        };
        let target = self.builder.encode_target(target).0;
        self.builder.add_root(group, target);
    }

    /// Adds a local variable that refers to an object. `name` is that of its group of roots, in brackets: the
    /// frame with the place of the variable.
    ///
    /// ```
    /// use gcdump::{MemoryGraphBuilder, MemoryType};
    ///
    /// let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// builder.add_module(1, "/app/shop.dll");
    /// let name = "Shop.Row";
    /// builder.add_type(MemoryType { id: 2, module_id: 1, name, whole_name: name, is_array: false });
    /// builder.add_object(0x1000, 2, 24);
    /// builder.add_variable("[frame Shop.Program.Main: rbx]", 0x1000);
    /// let graph = builder.finish()?;
    /// let groups: Vec<_> = graph.groups().iter().map(|group| group.csharp()).collect();
    /// assert!(groups.iter().any(|group| group == "[frame Shop.Program.Main: rbx]"), "{groups:?}");
    /// # Ok::<(), gcdump::Error>(())
    /// ```
    pub fn add_variable(&mut self, name: &str, target: u64) {
        let variables = self.builder.groups.child(RootGroups::ALL, "[local vars]");
        let group = self.builder.groups.child(variables, &limited_name(name));
        let target = self.builder.encode_target(target).0;
        self.builder.add_root(group, target);
    }

    /// Adds a static field that refers to an object. `type_id` is the type of the object, `owner` the name of
    /// the type that declares the field.
    ///
    /// ```
    /// use gcdump::{MemoryGraphBuilder, MemoryType};
    ///
    /// let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// builder.add_module(1, "/app/shop.dll");
    /// let name = "Shop.Row";
    /// builder.add_type(MemoryType { id: 2, module_id: 1, name, whole_name: name, is_array: false });
    /// builder.add_object(0x1000, 2, 24);
    /// builder.add_static(Some("Shop.Program"), "Kept", 2, 0x1000);
    /// let graph = builder.finish()?;
    /// let groups: Vec<_> = graph.groups().iter().map(|group| group.csharp()).collect();
    /// assert!(groups.iter().any(|group| group == "[static var Shop.Program.Kept: Shop.Row]"), "{groups:?}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_static(&mut self, owner: Option<&str>, field: &str, type_id: u64, target: u64) {
        let target = self.builder.encode_target(target);
        self.builder.statics.push(StaticVariable {
            target,
            type_id,
            is_thread_local: false,
            field: limited_name(field),
            owner: owner.map(str::to_owned),
        });
    }

    /// With these counts of missing parts.
    #[must_use]
    pub fn with_completeness(mut self, missing: MemoryCompleteness) -> Self {
        let completeness = &mut self.builder.completeness;
        completeness.objects_without_references = missing.objects_without_references;
        completeness.missing_bytes = missing.missing_bytes;
        completeness.is_moving = missing.is_moving;
        completeness.conservative_roots = missing.conservative_roots;
        completeness.stacks_without_roots = missing.stacks_without_roots;
        completeness.truncated_stacks = missing.truncated_stacks;
        completeness.missing_roots = missing.missing_roots;
        self
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// [`Error::NoObjects`].
    pub fn finish(mut self) -> Result<HeapGraph, Error> {
        self.close_object();
        self.builder.finish(0)
    }

    fn close_object(&mut self) {
        let Some(object) = self.last.take() else { return };
        let builder = &mut self.builder;
        if builder.object_addresses.count() >= MAX_OBJECTS {
            builder.completeness.over_limit = builder.completeness.over_limit.saturating_add(1);
            return;
        }
        let key = ShapeKey { type_id: object.type_id, size: object.size, edges: object.edges };
        let shape = builder.shape_number(key);
        builder.object_shapes.push(shape);
        let slots = slots_of(&builder.object_shapes, &builder.shapes, builder.pointer_size);
        builder.object_addresses.push(object.code.unwrap_or(AddressCode::NONE), slots);
    }
}

/// A group of roots that are neither variables nor static fields.
fn other(groups: &mut RootGroups, name: &str) -> u32 {
    let others = groups.child(RootGroups::ALL, "[other roots]");
    groups.child(others, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::PathTree;

    #[test]
    fn roots_are_in_the_groups_of_dumps_by_events() {
        let mut builder = MemoryGraphBuilder::new(8, None);
        let of = |id, name, whole_name| MemoryType { id, module_id: 1, name, whole_name, is_array: false };
        builder.add_module(1, "/app/shop.dll");
        builder.add_type(of(2, "Entry[System.Int32]", "Shop.Table`1+Entry[System.Int32]"));
        builder.add_type(of(3, "Shop.Row", "Shop.Row"));
        for (address, of) in [(0x2000, 2), (0x1000, 3), (0x3000, 3)] {
            builder.add_object(address, of, 24);
        }
        builder.add_reference(0x2000);
        builder.add_static(Some("Shop.Store"), "<Rows>k__BackingField", 3, 0x3000);
        builder.add_root(RootKind::PinnedHandle, 0x1000);
        let graph = builder.finish().unwrap();
        let names: Vec<_> = graph.types().iter().skip(1).map(|of| (of.name(), of.csharp())).collect();
        assert_eq!(names, [("Entry<System.Int32>", "Shop.Table<int>.Entry"), ("Shop.Row", "Shop.Row")]);
        let groups: Vec<_> = graph.groups().iter().map(|group| group.csharp().into_owned()).collect();
        assert!(groups.contains(&"[static var Shop.Store.Rows: Shop.Row]".to_owned()), "{groups:?}");
        assert!(groups.contains(&"[pinning Handles]".to_owned()), "{groups:?}");
        let tree = PathTree::new(&graph);
        let paths = tree.paths_to(&graph, 9, |of| graph.types()[of.index()].name() == "Entry<System.Int32>");
        assert_eq!((paths.count, paths.unreachable), (1, 0));
        assert!(graph.completeness().is_complete());
    }

    #[test]
    fn a_heap_without_objects_is_an_error() {
        let builder = MemoryGraphBuilder::new(8, None);
        assert!(matches!(builder.finish(), Err(Error::NoObjects)));
    }
}
