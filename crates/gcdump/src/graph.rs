//! The graph of a heap's objects.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::address::{AddressCode, AddressTable};
use crate::completeness::Completeness;
use crate::object_addresses::ObjectAddresses;
use crate::shape_numbers::ShapeNumbers;
use crate::type_name::{csharp_name, csharp_of_tool};

/// Objects between two entries of [`HeapGraph::edge_starts`]: finding the references of an object sums the
/// reference counts of up to as many objects before it.
pub(crate) const STRIDE: u32 = 16;

/// Maximum number of objects, and of references, of a graph.
pub(crate) const MAX_OBJECTS: u32 = u32::MAX - 1;

/// The objects of a heap, the references between them, and the roots that hold them.
///
/// # Memory
/// An object takes 3 bytes and a reference 4, both while they are read and afterwards: an object is the
/// 16-bit number of its shape, which is its type, its size and the number of its references. Some thousand
/// shapes suffice for most heaps; with more than 65,536 of them, their numbers have 32 bits. Most addresses
/// follow from the previous one and its size; a hole takes a byte. In a heap with many large holes an object
/// takes 4 bytes more for its own address.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// // A table of 32 bytes holds a row of 24.
/// for object in graph.objects() {
///     let name = object.heap_type().map(|of| of.csharp());
///     println!("{name:?} at {:x?}: {} bytes", object.address(), object.size());
/// }
/// assert_eq!((graph.object_count(), graph.total_bytes()), (2, 56));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapGraph {
    pub(crate) process_id: Option<u64>,
    /// In rising order.
    pub(crate) other_processes: Vec<u64>,
    pub(crate) pointer_size: u8,
    pub(crate) addresses: AddressTable,
    /// The addresses of the objects, in the order in which they were added.
    pub(crate) object_addresses: ObjectAddresses,
    /// The shape of each object.
    pub(crate) object_shapes: ShapeNumbers,
    pub(crate) shapes: Vec<Shape>,
    /// The index in `edges` of every 16th object's first reference.
    pub(crate) edge_starts: Vec<u32>,
    /// The referenced objects, in the order of the referencing objects. Objects of which only the address is
    /// known have the highest numbers.
    pub(crate) edges: Vec<u32>,
    /// The addresses of referenced objects that are missing.
    pub(crate) undefined: Vec<AddressCode>,
    /// The first is `UNDEFINED`.
    pub(crate) types: Vec<HeapType>,
    /// The first holds all others.
    pub(crate) groups: Vec<RootGroup>,
    pub(crate) roots: Vec<Root>,
    pub(crate) completeness: Completeness,
}

/// The common properties of objects: type, size and number of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The index of the type.
    pub(crate) heap_type: u32,
    /// The index of the type with its size class, as in a file.
    pub(crate) file_type: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// References.
    pub(crate) edges: u32,
}

/// A type of objects.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// let row = graph.object_at(0x1020).and_then(|object| object.heap_type()).expect("a type");
/// assert_eq!((row.csharp(), row.namespace(), row.module_name()), ("Shop.Row", "Shop", "shop.dll"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapType {
    /// The name as dotnet-gcdump writes it.
    pub(crate) name: Arc<str>,
    /// The name in C#.
    pub(crate) csharp: String,
    pub(crate) namespace: String,
    /// Shared by types: a path can be long, and have many types.
    pub(crate) module: Option<Arc<str>>,
    /// The size of the first object, in bytes.
    pub(crate) first_size: Option<u64>,
    /// True if it was described.
    pub(crate) is_known: bool,
}

impl HeapType {
    /// The name as dotnet-gcdump writes it: `System.Collections.Generic.List<System.Int32>`. Nested types
    /// have their own name only.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name in C#: `System.Collections.Generic.List<int>`. Nested types have their enclosing types if
    /// these are known.
    pub fn csharp(&self) -> &str {
        &self.csharp
    }

    /// The path of the module, or a string in its place; `None` if it is unknown.
    pub fn module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// The last part of the module's path, of any operating system; empty if it is unknown.
    pub fn module_name(&self) -> &str {
        self.module().and_then(|path| path.rsplit(['/', '\\']).next()).unwrap_or_default()
    }

    /// The namespace; empty for types without one, and for nested types without known enclosing types.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns true if the dump describes the type.
    pub const fn is_known(&self) -> bool {
        self.is_known
    }
}

/// A group of roots: `[strong Handles]`, `[static var Program.Kept]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootGroup {
    pub(crate) name: Arc<str>,
    /// The group that holds this one.
    pub(crate) parent: Option<u32>,
    /// The declaring type of the static field, if it is known.
    pub(crate) owner: Option<Arc<str>>,
}

impl RootGroup {
    /// The name as dotnet-gcdump writes it, in brackets. For a static field it contains the type of the
    /// object in the field, not the declaring type, which is not in dumps: `[static var
    /// System.Collections.Generic.List<System.Byte[]>.Held]`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the static field, as its type declares it; `None` for other groups.
    pub(crate) fn field(&self) -> Option<&str> {
        let name = self.name.strip_prefix(STATIC_FIELD)?.strip_suffix(']')?;
        name.rsplit_once('.').map(|(_, field)| field)
    }

    /// The name with the field and its type as in C#: `[static var Held:
    /// System.Collections.Generic.List<byte[]>]`; with the declaring type if it is known: `[static var
    /// Program.Held: …]`.
    pub fn csharp(&self) -> Cow<'_, str> {
        let parts =
            self.name.strip_prefix(STATIC_FIELD).and_then(|name| static_field(name.strip_suffix(']')?));
        match parts {
            Some((of, field)) => {
                let owner = self.owner.as_deref().map(|owner| csharp_name(owner) + ".").unwrap_or_default();
                format!("{STATIC_FIELD}{owner}{field}: {}]", csharp_of_tool(of)).into()
            }
            None => Cow::Borrowed(&self.name),
        }
    }
}

/// The prefix of the name of a static field.
const STATIC_FIELD: &str = "[static var ";

/// Splits the name of a static field into the type of the object in it, and the name of the field or of its
/// property.
fn static_field(name: &str) -> Option<(&str, &str)> {
    let (of, field) = name.rsplit_once('.')?;
    let property = field.strip_prefix('<').and_then(|field| field.strip_suffix(">k__BackingField"));
    Some((of, property.unwrap_or(field)))
}

/// A group that holds an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) group: u32,
    /// The object; [`Root::NONE`] if the entry only creates the group.
    pub(crate) target: u32,
}

impl Root {
    pub(crate) const NONE: u32 = u32::MAX;
}

/// The number of a node of a graph: first the objects, then objects of which only the address is known, then
/// groups of roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// The number of a type in [`HeapGraph::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(crate) u32);

impl TypeId {
    /// The index in [`HeapGraph::types`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An object.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// for object in graph.objects().filter(|object| object.size() >= 32) {
///     println!("{:x?} holds {} objects", object.address(), object.references().len());
///     assert_eq!(object.address(), Some(0x1000));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Object<'g> {
    id: NodeId,
    graph: &'g HeapGraph,
    shape: Shape,
    edges: &'g [u32],
}

impl<'g> Object<'g> {
    /// The number of the object.
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// The address, if it is known.
    pub fn address(&self) -> Option<u64> {
        self.graph.address(self.id)
    }

    /// Bytes of the object, as the runtime counts them: not rounded.
    pub const fn size(&self) -> u64 {
        self.shape.size
    }

    /// The number of the type.
    pub const fn type_id(&self) -> TypeId {
        TypeId(self.shape.heap_type)
    }

    /// The type.
    pub fn heap_type(&self) -> Option<&'g HeapType> {
        self.graph.types.get(self.shape.heap_type as usize)
    }

    /// The referenced objects, in the order of its fields.
    pub fn references(&self) -> impl ExactSizeIterator<Item = NodeId> + use<'g> {
        self.edges.iter().map(|target| NodeId(*target))
    }

    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) const fn edges(&self) -> &'g [u32] {
        self.edges
    }
}

impl HeapGraph {
    /// The process that owns the heap, if the source states it.
    pub const fn process_id(&self) -> Option<u64> {
        self.process_id
    }

    /// Other processes with dumps in the recording, in rising order: at most a thousand.
    pub fn other_processes(&self) -> &[u64] {
        &self.other_processes
    }

    /// The number of objects.
    pub fn object_count(&self) -> u32 {
        count(self.object_shapes.len())
    }

    /// The number of referenced objects that are missing.
    pub fn undefined_count(&self) -> u32 {
        count(self.undefined.len())
    }

    /// The number of references between objects.
    pub fn reference_count(&self) -> u32 {
        count(self.edges.len())
    }

    /// The types. The first is the type of missing objects.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// let names: Vec<_> = graph.types().iter().map(gcdump::HeapType::csharp).collect();
    /// assert!(names.contains(&"Shop.Row") && names.contains(&"Shop.Table"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn types(&self) -> &[HeapType] {
        &self.types
    }

    /// The groups of roots. The first holds all others.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// let groups: Vec<_> = graph.groups().iter().map(gcdump::RootGroup::name).collect();
    /// assert!(groups.contains(&"[strong Handles]"), "{groups:?}");
    /// assert_eq!(graph.root_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn groups(&self) -> &[RootGroup] {
        &self.groups
    }

    /// The number of references from roots.
    pub fn root_count(&self) -> usize {
        self.roots.iter().filter(|root| root.target != Root::NONE).count()
    }

    /// Returns the missing parts of the heap.
    pub const fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    /// Bytes of a pointer in the process: 4 or 8.
    pub const fn pointer_size(&self) -> u8 {
        self.pointer_size
    }

    /// The objects, in the order in which they were added.
    pub fn objects(&self) -> impl Iterator<Item = Object<'_>> {
        let mut start = 0_usize;
        (0..self.object_count()).zip(self.object_shapes.iter()).map(move |(id, shape)| {
            let shape = self.shape(shape);
            let end = start.saturating_add(shape.edges as usize);
            let edges = self.edges.get(start..end).unwrap_or_default();
            start = end;
            Object { id: NodeId(id), graph: self, shape, edges }
        })
    }

    /// Returns an object; `None` for other nodes.
    pub fn object(&self, id: NodeId) -> Option<Object<'_>> {
        let number = self.object_shapes.get(id.0)?;
        Some(Object { id, graph: self, shape: self.shape(number), edges: self.edges_of(id.0) })
    }

    /// Returns the group of roots of a node; `None` for other nodes.
    pub fn group(&self, id: NodeId) -> Option<&RootGroup> {
        self.groups.get(id.0.checked_sub(self.first_group())? as usize)
    }

    /// Returns the address of a node, if it has one.
    pub fn address(&self, id: NodeId) -> Option<u64> {
        Some(self.addresses.decode(self.code(id.0))).filter(|address| *address != 0)
    }

    /// Returns the object at an address. Looks at each object.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// let table = graph.object_at(0x1000).expect("an object");
    /// let row = graph.object(table.references().next().expect("a reference")).expect("an object");
    /// assert_eq!(row.address(), Some(0x1020));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn object_at(&self, address: u64) -> Option<Object<'_>> {
        let mut found = None;
        self.each_address(|node, of| {
            if of == address && address != 0 {
                found.get_or_insert(node);
            }
        });
        self.object(NodeId(found?))
    }

    /// Bytes of all objects together.
    pub fn total_bytes(&self) -> u64 {
        self.object_shapes.iter().fold(0, |sum, shape| sum.saturating_add(self.shape(shape).size))
    }

    /// Returns the code of the address of an object, present or missing.
    pub(crate) fn code(&self, node: u32) -> AddressCode {
        match node.checked_sub(self.object_count()) {
            None => self.object_addresses.code(node, |object| self.slots(object)),
            Some(undefined) => self.undefined.get(undefined as usize).copied().unwrap_or(AddressCode::NONE),
        }
    }

    /// Returns the size of an object, in units of the alignment of objects.
    fn slots(&self, object: u32) -> u64 {
        slots(self.size(object), self.pointer_size)
    }

    /// Passes every node that is not a group to `each`, with its address, in order.
    pub(crate) fn each_address(&self, mut each: impl FnMut(u32, u64)) {
        let objects = self.object_count();
        let address = |code| self.addresses.decode(code);
        self.object_addresses.each(|object| self.slots(object), |object, code| each(object, address(code)));
        (objects..).zip(&self.undefined).for_each(|(node, code)| each(node, address(*code)));
    }

    /// The number of the first group's node.
    pub(crate) fn first_group(&self) -> u32 {
        self.object_count().saturating_add(self.undefined_count())
    }

    /// The number of nodes of all kinds.
    pub(crate) fn node_count(&self) -> u32 {
        self.first_group().saturating_add(count(self.groups.len()))
    }

    pub(crate) fn shape(&self, number: u32) -> Shape {
        const UNDEFINED: Shape = Shape { heap_type: 0, file_type: 0, size: 0, edges: 0 };
        self.shapes.get(number as usize).copied().unwrap_or(UNDEFINED)
    }

    /// The bytes of a node; 0 unless it is an object.
    pub(crate) fn size(&self, node: u32) -> u64 {
        self.object_shapes.get(node).map_or(0, |shape| self.shape(shape).size)
    }

    /// Returns the references of an object. Takes the time of up to 16 look-ups if there are any.
    pub(crate) fn edges_of(&self, object: u32) -> &[u32] {
        let Some(shape) = self.object_shapes.get(object) else { return &[] };
        let count = self.shape(shape).edges;
        if count == 0 {
            return &[];
        }
        let stride = object / STRIDE;
        let start = self.edge_starts.get(stride as usize).copied().unwrap_or_default();
        let start = start.saturating_add(self.edges_in(stride.saturating_mul(STRIDE)..object));
        let end = start.saturating_add(count);
        self.edges.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Fills [`edge_starts`](Self::edge_starts).
    pub(crate) fn index_edges(&mut self) {
        let objects = self.object_count();
        let mut starts = Vec::with_capacity(self.object_shapes.len().div_ceil(STRIDE as usize));
        let mut sum = 0_u32;
        for first in (0..objects).step_by(STRIDE as usize) {
            starts.push(sum);
            sum = sum.saturating_add(self.edges_in(first..first.saturating_add(STRIDE).min(objects)));
        }
        self.edge_starts = starts;
    }

    /// The number of references of some objects.
    fn edges_in(&self, objects: Range<u32>) -> u32 {
        self.object_shapes.sum(objects, |shape| self.shape(shape).edges)
    }
}

/// Returns the space of an object with this size, in units of the alignment of objects, which equals the
/// pointer size.
pub(crate) fn slots(size: u64, pointer_size: u8) -> u64 {
    size.div_ceil(if pointer_size == 4 { 4 } else { 8 })
}

/// A length that is known to fit.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_fields_are_named_with_their_types() {
        for (name, expected) in [
            (
                "[static var System.Collections.Generic.List<System.Byte[]>.Held]",
                "[static var Held: System.Collections.Generic.List<byte[]>]",
            ),
            ("[static var System.String.<Name>k__BackingField]", "[static var Name: string]"),
            ("[static var System.Func<System.Int32>.<>9__0_0]", "[static var <>9__0_0: System.Func<int>]"),
            ("[static var X]", "[static var X]"),
            ("[strong Handles]", "[strong Handles]"),
        ] {
            let group = RootGroup { name: name.into(), parent: None, owner: None };
            assert_eq!(group.csharp(), expected);
        }
        let name = "[static var System.String.<Name>k__BackingField]".into();
        let group = RootGroup { name, parent: None, owner: Some("Shop.Cache+Inner".into()) };
        assert_eq!(group.csharp(), "[static var Shop.Cache.Inner.Name: string]");
    }
}
